# Which threads come to the barrier of a cluster (PTX ISA, "barrier.cluster").
from tvm.script import tirx as T


# Warps may come at two places, each as a whole.
# sim: two_places
#   A: float32[2x64] = i * 64 + j
#   B: float32[2x64] = 0 -> (1 - i) * 64 + j
#   seeds: 4
@T.prim_func
def two_places(A: T.Buffer((2, 64), "float32"), B: T.Buffer((2, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    warp = T.warp_id([2])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32")
    S[tx] = A[rank, tx]
    if warp == 0:
        T.cuda.cluster_sync()
    else:
        T.cuda.cluster_sync()
    mapped: T.let = T.reinterpret("handle", T.ptx.map_shared_rank(S.ptr_to([0]), 1 - rank))
    far = T.decl_buffer((64,), "float32", data=mapped)
    B[rank, tx] = far[tx]
    T.cuda.cluster_sync()

# Halves of a warp may not.
# variant: halves_of_a_warp of two_places
#   replace: "if warp == 0:" -> "if tx < 16:"
#   fault: all lanes of a warp come to it together
#   seeds: 4

# variant: half_of_a_warp of two_places
#   replace: "    if warp == 0:\n        T.cuda.cluster_sync()\n    else:\n        T.cuda.cluster_sync()" -> "    if tx < 48:\n        T.cuda.cluster_sync()"
#   fault: all lanes of a warp come to it together
#   seeds: 4

# variant: halves_by_arrive_and_wait of two_places
#   replace: "    if warp == 0:\n        T.cuda.cluster_sync()\n    else:\n        T.cuda.cluster_sync()" -> "    if tx % 2 == 0:\n        T.ptx.barrier.cluster.arrive()\n    else:\n        T.ptx.barrier.cluster.arrive()\n    T.ptx.barrier.cluster.wait()"
#   fault: 16 of the warp's 32 lanes come to this cluster barrier
#   seeds: 4

# A warp skips the barrier and comes to the next one: the barriers of the two are one.
# variant: a_warp_skips of two_places
#   replace: "    else:\n        T.cuda.cluster_sync()\n" -> ""
#   fault: race
#   seeds: 4

# A block skips the last barrier.
# variant: a_block_skips of two_places
#   replace 3: "    T.cuda.cluster_sync()" -> "    if rank == 0:\n        T.cuda.cluster_sync()"
#   fault: a thread of another block of the cluster reads shared memory of this block, which may have ended by then
#   seeds: 4

# Threads that return are not waited for.
# variant: a_warp_returns of two_places
#   replace 3: "    T.cuda.cluster_sync()" -> "    if warp == 1:\n        T.evaluate(T.thread_return())\n    T.cuda.cluster_sync()"
#   fault: of another block of the cluster reads shared memory of this block, which may have ended by then
#   seeds: 4


# `cluster_sync` is for all threads of the cluster, like `cta_sync` for those of a block.
# sim: of_one_block
#   A: float32[2x64] = i * 64 + j
#   B: float32[2x64] = 0
#   fault: thread (0, 0, 0) of block (1, 0, 0) has ended without reaching this barrier of the cluster
#   seeds: 4
@T.prim_func
def of_one_block(A: T.Buffer((2, 64), "float32"), B: T.Buffer((2, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    warp = T.warp_id([2])
    tx = T.thread_id([64])
    B[rank, tx] = A[rank, tx]
    if rank == 0:
        T.cuda.cluster_sync()

# variant: of_one_warp of of_one_block
#   replace: "if rank == 0:" -> "if warp == 0:"
#   fault: thread (32, 0, 0) of block (0, 0, 0) has ended without reaching this barrier of the cluster
#   seeds: 4

# An arrival and a wait are for the threads that have not ended.
# variant: arrivals_of_one_warp of of_one_block
#   replace: "    if rank == 0:\n        T.cuda.cluster_sync()" -> "    if warp == 0:\n        T.ptx.barrier.cluster.arrive()\n        T.ptx.barrier.cluster.wait()"
#   B: float32[2x64] = 0 -> A[i][j]
#   seeds: 4


# Each thread arrives at an mbarrier of the other block, which waits for these arrivals.
# sim: arrivals_at_the_other_block
#   A: float32[2x64] = i * 64 + j
#   B: float32[2x64] = 0 -> A[i][j]
#   seeds: 4
@T.prim_func
def arrivals_at_the_other_block(A: T.Buffer((2, 64), "float32"), B: T.Buffer((2, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([64])
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 64)
        T.ptx.fence.mbarrier_init()
    T.cuda.cluster_sync()
    B[rank, tx] = A[rank, tx]
    T.ptx.mbarrier.arrive(bar.ptr_to([0]), space="shared::cluster", remote=1 - rank)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)

# Nobody waits, but a barrier of the cluster stands before the end.
# variant: arrivals_before_a_barrier of arrivals_at_the_other_block
#   replace: "    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)" -> "    T.cuda.cluster_sync()"
#   seeds: 4

# Neither: the block that an arrival is for may have ended.
# variant: arrivals_at_the_end of arrivals_at_the_other_block
#   without: "    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)"
#   fault: rank
#   seeds: 4

# The last slot of a ring that nobody fills again.
# variant: arrivals_for_nobody of arrivals_at_the_other_block
#   replace: "T.alloc_shared((1,)" -> "T.alloc_shared((2,)"
#   replace: "init(bar.ptr_to([0]), 64)" -> "init(bar.ptr_to([0]), 64)\n        T.ptx.mbarrier.init(bar.ptr_to([1]), 1)"
#   replace: "    T.ptx.mbarrier.try_wait" -> "    if tx == 0:\n        T.ptx.mbarrier.arrive(bar.ptr_to([1]), space='shared::cluster', remote=1 - rank)\n    T.ptx.mbarrier.try_wait"
#   fault: of this block, which may have ended by then
#   seeds: 8
