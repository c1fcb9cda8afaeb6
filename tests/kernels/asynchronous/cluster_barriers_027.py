# In TVM 0.27 the barrier of a cluster is not `.aligned` unless its name says so: halves of a warp may come to it.
from tvm.script import tirx as T


# sim: halves_that_are_not_aligned
#   A: float32[2x64] = i * 64 + j
#   B: float32[2x64] = 0 -> (1 - i) * 64 + j
#   seeds: 4
@T.prim_func
def halves_that_are_not_aligned(A: T.Buffer((2, 64), "float32"), B: T.Buffer((2, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32")
    S[tx] = A[rank, tx]
    if tx % 2 == 0:
        T.ptx.barrier.cluster.arrive()
    else:
        T.ptx.barrier.cluster.arrive()
    T.ptx.barrier.cluster.wait()
    address: T.uint64
    T.ptx.mapa.u64(address, S.ptr_to([0]), T.uint32(1 - rank))
    mapped: T.let = T.reinterpret("handle", address)
    far = T.decl_buffer((64,), "float32", data=mapped)
    B[rank, tx] = far[tx]
    T.cuda.cluster_sync()
