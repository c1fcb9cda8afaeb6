# Barriers that count threads for which a condition holds, barriers without a count, and parts of a warp at a barrier that is
# not aligned.
from tvm.script import tirx as T


# Threads 0 to 39 of 128.
# sim: votes_of_the_block
#   B: uint32[3x128] = 0 -> (40 if i == 0 else 0 if i == 1 else 1)
#   seeds: 3
@T.prim_func
def votes_of_the_block(B: T.Buffer((3, 128), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    vote = T.alloc_local((3,), "uint32")
    T.ptx["bar.red.popc.u32"](vote[0], T.uint32(1), tx < 40)
    T.ptx["bar.red.and.pred"](vote[1], T.uint32(2), tx < 40)
    T.ptx["bar.red.or.pred"](vote[2], T.uint32(3), tx < 40)
    for k in range(3):
        B[k, tx] = vote[k]


# Two warps of four, which also exchange what they wrote before.
# sim: votes_of_two_warps
#   B: uint32[2x32] = 0 -> 10 + (32 - 32 * i) + j
#   seeds: 3
@T.prim_func
def votes_of_two_warps(B: T.Buffer((2, 32), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    warp = T.warp_id([4])
    lane = T.lane_id([32])
    S = T.alloc_shared((2, 32), "uint32")
    vote = T.alloc_local((1,), "uint32")
    if warp % 2 == 1:
        S[warp // 2, lane] = T.uint32(warp // 2 * 32 + lane)
        T.ptx["barrier.red.popc.aligned.u32"](vote[0], T.uint32(5), T.uint32(64), lane < 5)
        B[warp // 2, lane] = vote[0] + S[1 - warp // 2, lane]

# variant: one_warp_does_not_vote of votes_of_two_warps
#   replace: "        T.ptx[\"barrier" -> "        if warp == 3:\n            T.ptx.barrier.sync(T.uint32(5), T.uint32(64))\n        else:\n            T.ptx[\"barrier"
#   fault: with a reduction (barrier.red) and other warps without it

# variant: count_of_no_warps of votes_of_two_warps
#   replace: "T.uint32(64)" -> "T.uint32(33)"
#   fault: for 33 threads, which are not whole warps

# variant: count_of_too_many of votes_of_two_warps
#   replace: "T.uint32(64)" -> "T.uint32(128)"
#   fault: deadlock


# Barrier 0 is the barrier of the block; without a count a barrier is for all of its threads.
# sim: counts_of_the_whole_block
#   B: int32[64] = 0 -> 2 * (63 - i)
#   seeds: 3
@T.prim_func
def counts_of_the_whole_block(B: T.Buffer((64,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "int32")
    S[tx] = tx
    if tx < 32:
        T.cuda.cta_sync()
    else:
        T.ptx.bar.sync(T.uint32(0))
    B[tx] = S[63 - tx]
    T.ptx.bar.cta.sync(T.uint32(7))
    S[63 - tx] = B[tx]
    T.ptx.barrier.cta.sync(T.uint32(0))
    B[tx] = 2 * S[63 - tx]

# A GPU stops at both of these.
# variant: count_beside_none_at_barrier_0 of counts_of_the_whole_block
#   replace: "bar.sync(T.uint32(0))" -> "bar.sync(T.uint32(0), T.uint32(64))"
#   fault: a GPU stops if some threads give a count and other threads do not

# variant: count_beside_none of counts_of_the_whole_block
#   replace: "    T.ptx.bar.cta.sync(T.uint32(7))" -> "    if tx < 32:\n        T.ptx.bar.cta.sync(T.uint32(7))\n    else:\n        T.ptx.bar.cta.sync(T.uint32(7), T.uint32(64))"
#   fault: a count of threads, other warps


# `barrier` without `.aligned` may be reached by parts of a warp.
# sim: parts_of_a_warp
#   B: int32[32] = 0 -> 31 - i
#   seeds: 3
@T.prim_func
def parts_of_a_warp(B: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "int32")
    if tx < 16:
        S[tx] = tx
        T.ptx.barrier.sync(T.uint32(3), T.uint32(32))
    else:
        S[tx] = tx
        T.ptx.barrier.sync(T.uint32(3), T.uint32(32))
    B[tx] = S[31 - tx]

# variant: parts_at_an_aligned_one of parts_of_a_warp
#   replace all: "T.ptx.barrier.sync" -> "T.ptx.bar.sync"
#   fault: 16 of the warp's 32 lanes come to named barrier 3
