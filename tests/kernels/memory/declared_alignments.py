# test: cuda sm_90a
# The alignment that declarations guarantee is what tensor copies are held to, not the address that came out.
from tvm.script import tirx as T


# sim: declared_with_128
#   A: float32[8x32] = i * 32 + j
#   B: float32[256] = 0 -> i
@T.prim_func
def declared_with_128(A: T.Buffer((8, 32), "float32"), B: T.Buffer((256,), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, A.data, 32, 8, 128, 32, 8, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((256,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 1024)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([0]), bar.ptr_to([0]), T.address_of(A_map), 0, 1, "", 0, 0)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    for k in range(8):
        B[k * 32 + tx] = S[k * 32 + tx]


# Without `align` an array has 64 bytes.
# sim: declared_without
#   A: float32[8x32] = i * 32 + j
#   B: float32[256] = 0
#   fault: is in shared `S`, which is declared with an alignment of 64 bytes, and 128 are required: declare it with align=128
@T.prim_func
def declared_without(A: T.Buffer((8, 32), "float32"), B: T.Buffer((256,), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, A.data, 32, 8, 128, 32, 8, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((256,), "float32")
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 1024)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([0]), bar.ptr_to([0]), T.address_of(A_map), 0, 1, "", 0, 0)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    for k in range(8):
        B[k * 32 + tx] = S[k * 32 + tx]


# The pattern of a swizzle over 128 bytes begins at multiples of 1024.
# sim: swizzled_with_128
#   A: float32[8x32] = i * 32 + j
#   B: float32[256] = 0
#   fault: is in shared `S`, which is declared with an alignment of 128 bytes, and 1024 are required: declare it with align=1024
@T.prim_func
def swizzled_with_128(A: T.Buffer((8, 32), "float32"), B: T.Buffer((256,), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, A.data, 32, 8, 128, 32, 8, 1, 1, 0, 3, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((256,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 1024)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([0]), bar.ptr_to([0]), T.address_of(A_map), 0, 1, "", 0, 0)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    for k in range(8):
        B[k * 32 + tx] = S[k * 32 + tx]


# A pool begins at a multiple of 1024 bytes, though a static array stands before it.
# sim: part_of_a_pool
#   A: float32[8x32] = i * 32 + j
#   B: float32[256] = 0 -> i // 32 * 32 + (i % 32 // 4 ^ i // 32) * 4 + i % 4
@T.prim_func
def part_of_a_pool(A: T.Buffer((8, 32), "float32"), B: T.Buffer((256,), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, A.data, 32, 8, 128, 32, 8, 1, 1, 0, 3, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    bar = T.alloc_shared((1,), "uint64")
    pool = T.SMEMPool()
    S = pool.alloc((256,), "float32", align=1024)
    pool.commit()
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 1024)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([0]), bar.ptr_to([0]), T.address_of(A_map), 0, 1, "", 0, 0)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    for k in range(8):
        B[k * 32 + tx] = S[k * 32 + tx]
