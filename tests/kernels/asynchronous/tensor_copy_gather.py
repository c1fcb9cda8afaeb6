# test: compile sm_100a
# A gather of four rows, which need not be in order and may lie beyond the tensor.
from tvm.script import tirx as T


# sim: gathers
#   A: float32[16x8] = i * 8 + j
#   B: float32[4x8] = 9 -> A[[9, 2, 2, 0][i]][j + 0] if i < 3 else 0
@T.prim_func
def gathers(A: T.Buffer((16, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, A.data, 8, 16, 32, 8, 1, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 128)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([0]), bar.ptr_to([0]), T.address_of(A_map), 0, 1, "", 0, 9, 2, 2, 16, load_mode="tile_gather4")
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    B[tx // 8, tx % 8] = S[tx]


# Elements of four bits, of which each 16 get 16 bytes in shared memory, 8 of them a gap: the bytes of the elements count.
# sim: padded on sm_100a
#   A: uint8[4x64] = i * 64 + j
#   B: uint8[4x64] = 9 -> A[i][j]
@T.prim_func
def padded(A: T.Buffer((4, 64), "uint8"), B: T.Buffer((4, 64), "uint8")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float4_e2m1fn", 2, A.data, 128, 4, 64, 128, 4, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((4, 8, 16), "uint8", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 256)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, S.ptr_to([0, 0, 0]), bar.ptr_to([0]), T.address_of(A_map), 0, 1, "", 0, 0)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    for i in T.serial(4):
        B[i, tx] = S[i, tx // 8, tx % 8]
