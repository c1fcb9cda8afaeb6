# test: cuda sm_100a
# A whole warp commits: the instruction is predicated, so that one lane runs it and the warp does not part. A mask of several blocks
# is an operand, a mask of one is not.
from tvm.backend.cuda.lang import TCGen05Bar
from tvm.script import tirx as T


# sim: committed on sm_100a
#   A: int32[2x32] = 0 -> 10 * i + j
@T.prim_func
def committed(A: T.Buffer((2, 32), "int32")):
    T.device_entry()
    T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    lane = T.thread_id([32])
    pool = T.SMEMPool()
    bars = TCGen05Bar(pool, 2)
    pool.commit()
    bars.init(1)
    T.ptx.fence.mbarrier_init()
    T.cuda.cluster_sync()
    if rank == 0:
        elected: T.bool = T.cuda.elect_sync()
        bars.arrive(0, cta_mask=3, pred=elected)
        bars.arrive(1, cta_mask=1, pred=elected)
        bars.wait(1, 0)
    bars.wait(0, 0)
    A[rank, lane] = 10 * rank + lane
    T.cuda.cluster_sync()
