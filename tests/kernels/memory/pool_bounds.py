# Each buffer of a pool has bounds of its own, and reports name its elements.
from tvm.script import tirx as T


# sim: one_beyond
#   A: float32[64] = i
#   B: float32[64] = 0
#   fault: reads shared `a[64]`, which has 64 elements (256 bytes)
@T.prim_func
def one_beyond(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    pool = T.SMEMPool()
    a = pool.alloc((64,), "float32")
    b = pool.alloc((64,), "float32")
    pool.commit()
    a[tx] = A[tx]
    b[tx] = 1.0
    T.cuda.cta_sync()
    B[tx] = a[tx + 1]


# sim: one_before
#   A: float32[64] = i
#   B: float32[64] = 0
#   fault: writes shared `b[-1]`, which has 64 elements (256 bytes)
@T.prim_func
def one_before(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    pool = T.SMEMPool()
    a = pool.alloc((64,), "float32")
    b = pool.alloc((64,), "float32")
    pool.commit()
    b[tx - 1] = A[tx]


# A vector that begins in the buffer and ends behind it.
# sim: vector_beyond
#   A: float32[64] = i
#   B: float32[64] = 0
#   fault: writes shared `a[64:68]`, which has 64 elements (256 bytes)
@T.prim_func
def vector_beyond(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([16])
    pool = T.SMEMPool()
    a = pool.alloc((64,), "float32", align=16)
    b = pool.alloc((64,), "float32", align=16)
    pool.commit()
    a[T.ramp(tx * 4 + 4, 1, 4)] = A[T.ramp(tx * 4, 1, 4)]


# sim: half_of_a_vector_beyond
#   A: float32[64] = i
#   B: float32[64] = 0
#   fault: reads shared `a[62:66]`
@T.prim_func
def half_of_a_vector_beyond(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    pool = T.SMEMPool()
    b = pool.alloc((2,), "float32", align=16)
    a = pool.alloc((64,), "float32")
    c = pool.alloc((64,), "float32")
    pool.commit()
    for k in T.serial(2):
        a[tx * 2 + k] = A[tx * 2 + k]
        c[tx * 2 + k] = 0.0
    T.cuda.cta_sync()
    if tx == 15:
        B[T.ramp(0, 1, 4)] = a[T.ramp(tx * 4 + 2, 1, 4)]


# sim: a_row_beyond
#   A: float32[64] = i
#   B: float32[64] = 0
#   fault: writes shared `As[2, 0, 0]`, which has 64 elements (256 bytes)
@T.prim_func
def a_row_beyond(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    pool = T.SMEMPool()
    first = pool.alloc((32,), "float32")
    As = pool.alloc((2, 4, 8), "float32")
    behind = pool.alloc((32,), "float32")
    pool.commit()
    for k in T.serial(3):
        As[k, tx // 8, tx % 8] = A[tx]


# Rows of four elements in eight, and a swizzled tile: both reach as far as their layouts.
# sim: in_padded_rows
#   A: float32[32] = i
#   B: float32[32] = 0 -> i
@T.prim_func
def in_padded_rows(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    pool = T.SMEMPool()
    a = pool.alloc((8, 4), "float32", layout=T.TileLayout(T.S[(8, 4) : (8, 1)]))
    room = pool.alloc((32,), "float32")
    pool.commit()
    a[tx // 4, tx % 4] = A[tx]
    T.cuda.cta_sync()
    B[tx] = a[tx // 4, tx % 4]


# sim: beyond_padded_rows
#   A: float32[32] = i
#   B: float32[32] = 0
#   fault: writes shared `a[8, 0]`
@T.prim_func
def beyond_padded_rows(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    pool = T.SMEMPool()
    a = pool.alloc((8, 4), "float32", layout=T.TileLayout(T.S[(8, 4) : (8, 1)]))
    room = pool.alloc((64,), "float32")
    pool.commit()
    a[tx // 4 + 1, tx % 4] = A[tx]


# sim: beyond_a_swizzled_tile
#   A: float16[64] = i
#   B: float16[64] = 0
#   fault: writes shared `As[8, 0]`
@T.prim_func
def beyond_a_swizzled_tile(A: T.Buffer((64,), "float16"), B: T.Buffer((64,), "float16")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    pool = T.SMEMPool()
    As = pool.alloc_tcgen05_mma_AB((8, 64), "float16")
    Bs = pool.alloc_tcgen05_mma_AB((8, 64), "float16")
    pool.commit()
    for row in T.serial(9):
        As[row, tx] = A[tx]


# sim: unwritten_element_of_a_swizzled_tile
#   A: float16[64] = i
#   B: float16[64] = 0
#   fault: reads `As[3, 8]` before any thread has written it
@T.prim_func
def unwritten_element_of_a_swizzled_tile(A: T.Buffer((64,), "float16"), B: T.Buffer((64,), "float16")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    pool = T.SMEMPool()
    first = pool.alloc((64,), "float16", align=1024)
    As = pool.alloc_tcgen05_mma_AB((8, 64), "float16")
    pool.commit()
    if tx == 0:
        B[0] = As[3, 8]


# sim: race_on_an_element
#   A: float32[64] = i
#   B: float32[64] = 0
#   fault: thread (32, 0, 0) writes `b[1, 0]`, which thread (0, 0, 0) wrote, and no barrier orders the two
@T.prim_func
def race_on_an_element(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    pool = T.SMEMPool()
    a = pool.alloc((64,), "float32")
    b = pool.alloc((2, 32), "float32")
    pool.commit()
    b[1, tx % 32] = A[tx]


# The phases of a ring: an mbarrier behind the last one of the array.
# sim: mbarrier_beyond
#   B: int32[32] = 0
#   fault: an mbarrier at shared `full[2]`, which has 2 elements (16 bytes)
@T.prim_func
def mbarrier_beyond(B: T.Buffer((32,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    pool = T.SMEMPool()
    full = pool.alloc((2,), "uint64", align=8)
    empty = pool.alloc((2,), "uint64", align=8)
    pool.commit()
    if tx == 0:
        for stage in T.serial(3):
            T.ptx.mbarrier.init(full.ptr_to([stage]), 1)


# sim: mbarrier_by_name
#   B: int32[32] = 0
#   fault: 32 threads wait for parity 0 of the mbarrier `empty[1]`
@T.prim_func
def mbarrier_by_name(B: T.Buffer((32,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    pool = T.SMEMPool()
    full = pool.alloc((2,), "uint64", align=8)
    empty = pool.alloc((2,), "uint64", align=8)
    pool.commit()
    if tx == 0:
        for stage in T.serial(2):
            T.ptx.mbarrier.init(empty.ptr_to([stage]), 1)
    T.cuda.cta_sync()
    T.ptx.mbarrier.try_wait(empty.ptr_to([1]), 0)


# A bulk copy that begins in the buffer that it names and ends in the next one.
# sim: copy_beyond
#   A: float32[64] = i
#   B: float32[64] = 0
#   fault: bytes 0 to 256 of shared `a`, which has 128
@T.prim_func
def copy_beyond(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    pool = T.SMEMPool()
    bar = pool.alloc((1,), "uint64", align=8)
    a = pool.alloc((32,), "float32", align=128)
    b = pool.alloc((32,), "float32", align=128)
    pool.commit()
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 256)
        T.ptx.cp_async_bulk_g2s_cluster(a.ptr_to([0]), A.ptr_to([0]), 256, bar.ptr_to([0]))
    T.cuda.cta_sync()
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    B[tx] = a[tx]


# sim: atomic_beyond
#   B: int32[32] = 0
#   fault: `count[1]`
@T.prim_func
def atomic_beyond(B: T.Buffer((32,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    pool = T.SMEMPool()
    count = pool.alloc((1,), "int32")
    other = pool.alloc((1,), "int32")
    pool.commit()
    other[0] = 0
    T.cuda.cta_sync()
    T.cuda.atomic_add(count.ptr_to([1]), 1)


# A view that is larger than the allocation.
# sim: larger_than_the_pool
#   B: int32[32] = 0
#   fault: writes shared `v[16]`, beyond the end of its allocation `pool_buf`, which has 64 bytes
@T.prim_func
def larger_than_the_pool(B: T.Buffer((32,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    pool = T.SMEMPool()
    a = pool.alloc((16,), "int32")
    pool.commit()
    v = T.decl_buffer((32,), "int32", data=a.data, scope="shared.dyn")
    v[tx] = tx


# Aliases are in order as long as each access stays in the buffer that it names.
# sim: rewound
#   A: float32[64] = i
#   B: float32[64] = 0 -> i + 1
@T.prim_func
def rewound(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    pool = T.SMEMPool()
    a = pool.alloc((64,), "float32")
    pool.move_base_to(0)
    b = pool.alloc((2, 64), "float32")
    pool.commit()
    a[tx] = A[tx]
    T.cuda.cta_sync()
    x: T.float32 = a[63 - tx]
    T.cuda.cta_sync()
    b[1, 63 - tx] = x + 1.0
    b[0, tx] = 0.0
    T.cuda.cta_sync()
    B[tx] = b[1, tx]


# sim: one_view_beside_another
#   A: float32[64] = i
#   B: float32[64] = 0 -> i
@T.prim_func
def one_view_beside_another(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    pool = T.SMEMPool()
    pad = pool.alloc((16,), "float32")
    a = pool.alloc((64,), "float32")
    pool.commit()
    words = T.decl_buffer((64,), "uint32", data=a.data, elem_offset=16, scope="shared.dyn")
    rows = a.view(8, 8)
    upper = T.decl_buffer((32,), "float32", data=a.data, elem_offset=48, scope="shared.dyn")
    rows[tx // 8, tx % 8] = A[tx]
    T.cuda.cta_sync()
    if tx < 32:
        B[tx] = T.reinterpret("float32", words[tx])
    else:
        B[tx] = upper[tx - 32]


# An offset that is only known at run time has no bounds but those of the pool.
# sim: offset_at_run_time
#   A: float32[64] = i
#   B: float32[64] = 0 -> i
@T.prim_func
def offset_at_run_time(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    pool = T.SMEMPool()
    a = pool.alloc((64,), "float32")
    pool.commit()
    half = T.decl_buffer((32,), "float32", data=a.data, elem_offset=tx // 32 * 32, scope="shared.dyn")
    half[tx % 32] = A[tx]
    T.cuda.cta_sync()
    B[tx] = half[tx % 32]


# sim: pointer_across_buffers
#   A: float32[64] = i
#   B: float32[64] = 0 -> i
@T.prim_func
def pointer_across_buffers(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    pool = T.SMEMPool()
    a = pool.alloc((32,), "float32")
    b = pool.alloc((32,), "float32")
    pool.commit()
    both: T.let[T.handle("float32", "shared.dyn")] = a.ptr_to([0])
    whole = T.decl_buffer((64,), "float32", data=both, scope="shared.dyn")
    whole[tx] = A[tx]
    T.cuda.cta_sync()
    if tx < 32:
        B[tx] = a[tx]
    else:
        B[tx] = b[tx - 32]


# A flag that is polled under one name and set under another one of the same bytes.
# sim: polled_under_another_name
#   B: int32[2] = 0 -> (1 if i == 0 else 0)
@T.prim_func
def polled_under_another_name(B: T.Buffer((2,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    pool = T.SMEMPool()
    pad = pool.alloc((8,), "int32")
    flag = pool.alloc((1,), "int32")
    pool.commit()
    same = T.decl_buffer((9,), "int32", data=flag.data, scope="shared.dyn")
    if tx == 0:
        flag[0] = 0
    T.cuda.cta_sync()
    if tx == 32:
        same[8] = 1
    if tx == 0:
        while flag[0] == 0:
            T.evaluate(0)
        B[0] = flag[0]
