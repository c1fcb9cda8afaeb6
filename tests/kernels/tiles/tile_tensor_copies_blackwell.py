# test: compile sm_100a
# Tensor copies of Blackwell: four rows gathered, and the mbarrier of the other block of a pair.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


@T.inline
def begin(bar, tx):
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cluster_sync()


# Rows in any order, of one of two tensors; a row beyond the tensor is zero.
# sim: gathered
#   A: float16[16x128] = i * 128 + j
#   B: float16[8x128] = 1000 + i * 128 + j
#   C: float16[2x4x64] = 9 -> ([A, B][i][[7, 2, 2, 0][j]][64 + k] if j < 3 else 0)
@T.prim_func
def gathered(A: T.Buffer((16, 128), "float16"), B: T.Buffer((8, 128), "float16"), C: T.Buffer((2, 4, 64), "float16")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([64])
    s = T.alloc_shared((4, 64), "float16", align=128)
    bar = T.alloc_shared((1,), "uint64")
    begin(bar, tx)
    if tx == 0:
        Tx.copy_async(s, A[0:1, 64:128], dispatch="tma_explicit", mbar=bar.ptr_to([0]), gather4=[7, 2, 2, bx + 16],
                      src_selector=[(bx == 1, B)], mbarrier_addr=True)
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 512)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    for i in T.serial(4):
        C[bx, i, tx] = s[i, tx]


# Both blocks of a pair load; the bytes of both count at the first block's mbarrier.
# sim: counted_by_the_first
#   A: float32[2x8x32] = i * 256 + j * 32 + k
#   B: float32[2x8x32] = 0 -> A[i][j][k]
#   seeds: 3
@T.prim_func
def counted_by_the_first(A: T.Buffer((2, 8, 32), "float32"), B: T.Buffer((2, 8, 32), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    s = T.alloc_shared((8, 32), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    begin(bar, tx)
    first: T.let = T.reinterpret("handle", T.ptx.map_shared_rank(bar.ptr_to([0]), 0))
    if tx == 0:
        if rank == 0:
            T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 2048)
        Tx.copy_async(s, A[bx], mbar=first, cta_group=2)
    if rank == 0:
        T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    T.cuda.cluster_sync()
    for i in T.serial(8):
        B[bx, i, tx] = s[i, tx]


# The same, where each block's tile goes to both: the bytes that arrive in either block count at the first one's mbarrier.
# sim: multicast_counted_by_the_first
#   A: float32[2x8x32] = i * 256 + j * 32 + k
#   B: float32[2x2x8x32] = 0 -> A[j][k][l]
#   seeds: 3
@T.prim_func
def multicast_counted_by_the_first(A: T.Buffer((2, 8, 32), "float32"), B: T.Buffer((2, 2, 8, 32), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    s = T.alloc_shared((2, 8, 32), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    begin(bar, tx)
    first: T.let = T.reinterpret("handle", T.ptx.map_shared_rank(bar.ptr_to([0]), 0))
    if tx == 0:
        if rank == 0:
            T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 4096)
        Tx.copy_async(s[rank], A[bx], mbar=first, cta_group=2, cta_mask=3)
    if rank == 0:
        T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    T.cuda.cluster_sync()
    for t in T.serial(2):
        for i in T.serial(8):
            B[bx, t, i, tx] = s[t, i, tx]
