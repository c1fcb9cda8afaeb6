# test: compile sm_90a
# Tensor copies with each swizzle: shared memory byte by byte after a load, and a store from it.
from tvm.script import tirx as T


def place(bits, width, row, column):
    """The element of a box of float32 whose place in shared memory is (row, column)."""
    offset = (row * width + column) * 4
    return (offset ^ (((offset >> 7) & ((1 << bits) - 1)) << 4)) // 4


def element(rows, bits, width, row, column):
    at = place(bits, width, row, column)
    return rows[at // width][at % width]


def inverse(rows, bits, width, row, column):
    """The element that a store puts at (row, column) from row-major shared memory: the permutation is its own inverse."""
    return element(rows, bits, width, row, column)


# sim: loads_plain
#   A: float32[16x32] = i * 32 + j
#   B: float32[16x32] = 0 -> element(A, 0, 32, i, j)
@T.prim_func
def loads_plain(A: T.Buffer((16, 32), "float32"), B: T.Buffer((16, 32), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, A.data, 32, 16, 128, 32, 16, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((512,), "float32", align=1024)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 2048)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([0]), bar.ptr_to([0]), T.address_of(A_map), 0, 1, "", 0, 0)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    for k in T.serial(16):
        B[(k * 32 + tx) // 32, (k * 32 + tx) % 32] = S[k * 32 + tx]


# sim: stores_plain
#   A: float32[16x32] = i * 32 + j
#   B: float32[16x32] = 0 -> inverse(A, 0, 32, i, j)
@T.prim_func
def stores_plain(A: T.Buffer((16, 32), "float32"), B: T.Buffer((16, 32), "float32")):
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "float32", 2, B.data, 32, 16, 128, 32, 16, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((512,), "float32", align=1024)
    for k in T.serial(16):
        S[k * 32 + tx] = A[(k * 32 + tx) // 32, (k * 32 + tx) % 32]
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.cp_async.bulk.tensor.s2g(2, S.ptr_to([0]), T.address_of(B_map), "", 0, 0)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)


# sim: loads_of_32_bytes
#   A: float32[16x8] = i * 8 + j
#   B: float32[16x8] = 0 -> element(A, 1, 8, i, j)
@T.prim_func
def loads_of_32_bytes(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, A.data, 8, 16, 32, 8, 16, 1, 1, 0, 1, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((128,), "float32", align=1024)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 512)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([0]), bar.ptr_to([0]), T.address_of(A_map), 0, 1, "", 0, 0)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    for k in T.serial(4):
        B[(k * 32 + tx) // 8, (k * 32 + tx) % 8] = S[k * 32 + tx]


# sim: stores_of_32_bytes
#   A: float32[16x8] = i * 8 + j
#   B: float32[16x8] = 0 -> inverse(A, 1, 8, i, j)
@T.prim_func
def stores_of_32_bytes(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "float32", 2, B.data, 8, 16, 32, 8, 16, 1, 1, 0, 1, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((128,), "float32", align=1024)
    for k in T.serial(4):
        S[k * 32 + tx] = A[(k * 32 + tx) // 8, (k * 32 + tx) % 8]
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.cp_async.bulk.tensor.s2g(2, S.ptr_to([0]), T.address_of(B_map), "", 0, 0)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)


# sim: loads_of_64_bytes
#   A: float32[16x16] = i * 16 + j
#   B: float32[16x16] = 0 -> element(A, 2, 16, i, j)
@T.prim_func
def loads_of_64_bytes(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, A.data, 16, 16, 64, 16, 16, 1, 1, 0, 2, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((256,), "float32", align=1024)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 1024)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([0]), bar.ptr_to([0]), T.address_of(A_map), 0, 1, "", 0, 0)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    for k in T.serial(8):
        B[(k * 32 + tx) // 16, (k * 32 + tx) % 16] = S[k * 32 + tx]


# sim: stores_of_64_bytes
#   A: float32[16x16] = i * 16 + j
#   B: float32[16x16] = 0 -> inverse(A, 2, 16, i, j)
@T.prim_func
def stores_of_64_bytes(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "float32", 2, B.data, 16, 16, 64, 16, 16, 1, 1, 0, 2, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((256,), "float32", align=1024)
    for k in T.serial(8):
        S[k * 32 + tx] = A[(k * 32 + tx) // 16, (k * 32 + tx) % 16]
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.cp_async.bulk.tensor.s2g(2, S.ptr_to([0]), T.address_of(B_map), "", 0, 0)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)

# variant: loads_of_128_bytes of loads_plain
#   replace: "1, 0, 0, 0, 0" -> "1, 0, 3, 0, 0"
#   B: float32[16x32] = 0 -> element(A, 3, 32, i, j)

# variant: stores_of_128_bytes of stores_plain
#   replace: "1, 0, 0, 0, 0" -> "1, 0, 3, 0, 0"
#   B: float32[16x32] = 0 -> inverse(A, 3, 32, i, j)
