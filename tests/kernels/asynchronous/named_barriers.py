# Named barriers: who meets whom, and what cannot be meant.
from tvm.script import tirx as T


# Two warpgroups exchange among themselves, by a barrier of each.
# sim: a_barrier_of_each
#   B: int32[256] = 0 -> (i // 128) * 128 + 127 - i % 128
#   seeds: 6
@T.prim_func
def a_barrier_of_each(B: T.Buffer((256,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    S = T.alloc_shared((256,), "int32")
    S[tx] = tx
    T.ptx.bar.sync(1 + tx // 128, 128)
    B[tx] = S[tx // 128 * 128 + 127 - tx % 128]

# By mistake both take the same.
# variant: one_barrier_of_both of a_barrier_of_each
#   replace: "1 + tx // 128" -> "1"
#   fault: nothing orders the two arrivals


# The same in roles of a warpgroup each.
# sim: one_barrier_of_two_roles
#   B: int32[256] = 0
#   fault: nothing orders the two arrivals
@T.prim_func
def one_barrier_of_two_roles(B: T.Buffer((256,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    S = T.alloc_shared((256,), "int32")
    if tx < 128:
        S[tx] = tx
        T.ptx.bar.sync(1, 128)
        B[tx] = S[127 - tx]
    else:
        S[tx] = tx + 1
        T.ptx.bar.sync(1, 128)
        B[tx] = S[383 - tx]


# In turns of loops.
# sim: one_barrier_of_two_loops
#   B: int32[256] = 0
#   fault: nothing orders the two arrivals
@T.prim_func
def one_barrier_of_two_loops(B: T.Buffer((256,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    S = T.alloc_shared((2, 256), "int32")
    acc: T.int32 = 0
    if tx < 128:
        for i in range(4):
            S[i % 2, tx] = tx + i
            T.ptx.bar.sync(1, 128)
            acc += S[i % 2, 127 - tx]
    else:
        for i in range(4):
            S[i % 2, tx] = tx * i
            T.ptx.bar.sync(1, 128)
            acc += S[i % 2, 383 - tx]
    B[tx] = acc


# sim: two_counts
#   B: int32[128] = 0
#   fault: arrives at named barrier 1 with a count of 64 threads, other warps with 128
@T.prim_func
def two_counts(B: T.Buffer((128,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    S = T.alloc_shared((128,), "int32")
    S[tx] = tx
    if tx < 64:
        T.ptx.bar.sync(1, 128)
    else:
        T.ptx.bar.sync(1, 64)
    B[tx] = S[127 - tx]


# The consumer waits with the count of the producers alone.
# sim: producers_alone
#   B: int32[128] = 0
#   fault: nothing orders the two arrivals
@T.prim_func
def producers_alone(B: T.Buffer((128,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    S = T.alloc_shared((64,), "int32")
    if tx < 64:
        S[tx] = tx
        T.ptx.bar.arrive(1, 64)
    else:
        T.ptx.bar.sync(1, 64)
        B[tx] = S[tx - 64]


# A producer arrives twice before the consumers came.
# sim: arrives_twice
#   B: int32[64] = 0
#   fault: warp 0 arrives twice in one phase of named barrier 1
@T.prim_func
def arrives_twice(B: T.Buffer((64,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((32,), "int32")
    if tx < 32:
        S[tx] = tx
        T.ptx.bar.arrive(1, 64)
        S[tx] = tx + 1
        T.ptx.bar.arrive(1, 64)
    else:
        T.ptx.bar.sync(1, 64)
        B[tx] = S[tx - 32]


# Producer and consumer by two barriers: full and empty.
# sim: full_and_empty
#   B: int32[128] = 0 -> (i // 32) * 100 + i % 32
#   seeds: 6
@T.prim_func
def full_and_empty(B: T.Buffer((128,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((32,), "int32")
    if tx < 32:
        for i in range(4):
            if i > 0:
                T.ptx.bar.sync(2, 64)
            S[tx] = tx + i * 100
            T.ptx.bar.arrive(1, 64)
    else:
        for i in range(4):
            T.ptx.bar.sync(1, 64)
            B[i * 32 + tx - 32] = S[tx - 32]
            if i < 3:
                T.ptx.bar.arrive(2, 64)


# Without the second the producer overtakes.
# sim: full_alone
#   B: int32[128] = 0
#   fault: no barrier orders the two
@T.prim_func
def full_alone(B: T.Buffer((128,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((32,), "int32")
    if tx < 32:
        for i in range(4):
            S[tx] = tx + i * 100
            T.ptx.bar.sync(1, 64)
    else:
        for i in range(4):
            T.ptx.bar.sync(1, 64)
            B[i * 32 + tx - 32] = S[tx - 32]


# Barrier 0 is that of the block.
# sim: barrier_of_the_block
#   B: int32[128] = 0
#   fault: threads meet at named barrier 0 while other threads wait at the block's barrier
#   seeds: 6
@T.prim_func
def barrier_of_the_block(B: T.Buffer((128,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    S = T.alloc_shared((128,), "int32")
    S[tx] = tx
    if tx < 64:
        T.ptx.bar.sync(0, 64)
    T.cuda.cta_sync()
    B[tx] = S[127 - tx]


# With a count, barrier 0 is one like any other.
# sim: barrier_0_with_a_count
#   B: int32[128] = 0 -> 127 - i
@T.prim_func
def barrier_0_with_a_count(B: T.Buffer((128,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    S = T.alloc_shared((128,), "int32")
    S[tx] = tx
    T.ptx.bar.sync(0, 128)
    B[tx] = S[127 - tx]


# Behind the branch the lanes meet, and come to the barrier together: the elected lane's wait for the other block is over by then.
# sim: elected_lane_waits_for_the_other_block
#   B: int32[128] = 0 -> i + 1
#   seeds: 3
@T.prim_func
def elected_lane_waits_for_the_other_block(B: T.Buffer((128,), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([64])
    told = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(told.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cluster_sync()
    if tx < 32:
        if T.ptx.elect_sync():
            T.ptx.mbarrier.arrive(told.ptr_to([0]), sem="release", scope="cluster", space="shared::cluster", remote=1 - rank)
            T.ptx.mbarrier.try_wait_acquire_cluster(told.ptr_to([0]), 0)
    T.ptx.bar.sync(1, 64)
    B[bx * 64 + tx] = bx * 64 + tx + 1
    T.cuda.cluster_sync()


# At a barrier that is not aligned the lanes of a warp may come from both branches, and each counts for itself.
# sim: lanes_of_two_branches
#   B: int32[64] = 0 -> 63 - i
#   seeds: 3
@T.prim_func
def lanes_of_two_branches(B: T.Buffer((64,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "int32")
    if tx % 32 < 11:
        S[tx] = tx
        T.ptx.barrier.sync(1, 64)
    else:
        S[tx] = tx
        T.ptx.barrier.sync(1, 64)
    B[tx] = S[63 - tx]

# An aligned one is for whole warps.
# variant: lanes_of_two_branches_aligned of lanes_of_two_branches
#   replace 1: "T.ptx.barrier.sync(1, 64)" -> "T.ptx.bar.sync(1, 64)"
#   fault: of the warp's 32 lanes come to named barrier 1
