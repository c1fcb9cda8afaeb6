# What orders accesses of threads and of engines, and what does not (PTX ISA, "Memory Consistency Model", "Async proxy").
from tvm.script import tirx as T


# Production kernels initialize the mbarriers of a cluster so: the fence releases the initializations, though the arrival at the
# barrier of the cluster is relaxed.
# sim: initialized_for_the_cluster
#   A: float32[64] = i
#   B: float32[2x64] = 0 -> j
#   seeds: 8
@T.prim_func
def initialized_for_the_cluster(A: T.Buffer((64,), "float32"), B: T.Buffer((2, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32", align=128)
    full = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.ptx.barrier.cluster.arrive("relaxed")
    T.ptx.barrier.cluster.wait(True)
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 256)
        if rank == 0:
            T.ptx.cp_async_bulk_g2s_cluster(S.ptr_to([0]), A.ptr_to([0]), 256, full.ptr_to([0]), multicast=True, cta_mask=3)
    T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)
    B[bx, tx] = S[tx]
    T.cuda.cluster_sync()

# Without the fence a relaxed arrival releases nothing.
# variant: initialized_without_fence of initialized_for_the_cluster
#   without: "T.ptx.fence.mbarrier_init()"
#   replace 2: "if tx == 0:" -> "if tx == 32:"
#   fault: uses the mbarrier `full[0]`, which thread (0, 0, 0) wrote


# The fence releases the initialization alone, not what the thread has written besides.
# sim: fence_of_initializations
#   A: float32[64] = i
#   B: float32[2x64] = 0
#   fault: no warp or block barrier orders the two
@T.prim_func
def fence_of_initializations(A: T.Buffer((64,), "float32"), B: T.Buffer((2, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([64])
    S = T.alloc_shared((1,), "float32", align=128)
    full = T.alloc_shared((1,), "uint64")
    if tx == 0:
        S[0] = A[rank]
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.ptx.barrier.cluster.arrive("relaxed")
    T.ptx.barrier.cluster.wait(True)
    B[bx, tx] = S[0]
    T.cuda.cluster_sync()


# A proxy fence of global memory does not make tiles in shared memory visible to a copy.
# sim: proxy_fence_of_the_other_space
#   A: float32[64] = i
#   B: float32[64] = 0
#   fault: no fence.proxy.async makes it visible to the async proxy
@T.prim_func
def proxy_fence_of_the_other_space(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32", align=128)
    S[tx] = A[tx]
    T.ptx.fence.proxy_async("global")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.cp_async_bulk_s2g(B.ptr_to([0]), S.ptr_to([0]), 256)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)


# Nor does one of shared memory for data in global memory that a bulk copy reads.
# sim: proxy_fence_of_shared_memory
#   A: float32[64] = i
#   B: float32[64] = 0
#   W: float32[64] = 0
#   fault: no fence.proxy.async makes it visible to the async proxy
@T.prim_func
def proxy_fence_of_shared_memory(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), W: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32", align=128)
    full = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    W[tx] = A[tx]
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 256)
        T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([0]), W.ptr_to([0]), 256, full.ptr_to([0]))
    T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)
    B[tx] = S[tx]


# The right one.
# sim: proxy_fence_of_global_memory
#   A: float32[64] = i
#   B: float32[64] = 0 -> i
#   W: float32[64] = 0 -> i
#   seeds: 4
@T.prim_func
def proxy_fence_of_global_memory(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), W: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32", align=128)
    full = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    W[tx] = A[tx]
    T.ptx.fence.proxy_async("global")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 256)
        T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([0]), W.ptr_to([0]), 256, full.ptr_to([0]))
    T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)
    B[tx] = S[tx]


# An arrival at another block's mbarrier is at the scope of a block, unless it says otherwise: it orders nothing of threads.
# sim: remote_arrival_of_block_scope
#   A: float32[64] = i
#   B: float32[64] = 0
#   fault: no cluster barrier orders the two
@T.prim_func
def remote_arrival_of_block_scope(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32")
    full = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 64)
        T.ptx.fence.mbarrier_init()
    T.cuda.cluster_sync()
    if rank == 0:
        there: T.let = T.ptx.mapa(S.ptr_to([tx]), 1, "shared::cluster", "u32", "uint32")
        T.ptx.st(there, A[tx] * T.float32(2), ptx_type="f32", space="shared::cluster")
        T.ptx.mbarrier.arrive(full.ptr_to([0]), remote=1)
    else:
        T.ptx.mbarrier.try_wait_acquire_cluster(full.ptr_to([0]), 0)
        B[tx] = S[tx]
    T.cuda.cluster_sync()

# Nor does a wait at the scope of a block.
# variant: wait_of_block_scope of remote_arrival_of_block_scope
#   replace: "), remote=1)" -> '), sem="release", scope="cluster", space="shared::cluster", remote=1)'
#   replace: "T.ptx.mbarrier.try_wait_acquire_cluster" -> "T.ptx.mbarrier.try_wait"
#   fault: no cluster barrier orders the two


# The path for constant memory may give what was there before, whatever orders the two.
# sim: constant_load_of_written_memory
#   A: float32[64] = i
#   W: float32[64] = 0
#   B: float32[64] = 0
#   fault: is a load through the path for memory that does not change while the kernel runs
@T.prim_func
def constant_load_of_written_memory(A: T.Buffer((64,), "float32"), W: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    W[tx] = A[tx]
    T.cuda.cta_sync()
    B[tx] = T.cuda.ldg(W.ptr_to([63 - tx]), "float32")


# The same the other way round.
# sim: written_after_constant_load
#   W: uint32[64] = i
#   B: uint32[64] = 0
#   fault: is a load through the path for memory that does not change while the kernel runs
@T.prim_func
def written_after_constant_load(W: T.Buffer((64,), "uint32"), B: T.Buffer((64,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    B[tx] = T.ptx.ld_global_nc(W.ptr_to([63 - tx]), "uint32", "u32")
    T.cuda.cta_sync()
    W[tx] = T.uint32(7)


# Accesses to a part of a word do not synchronize with those to all of it.
# sim: sizes_of_a_flag
#   A: float32[32] = i
#   W: float32[32] = 0
#   F: uint64[1] = 0
#   B: float32[32] = 0
#   fault: the two are of different sizes
@T.prim_func
def sizes_of_a_flag(A: T.Buffer((32,), "float32"), W: T.Buffer((32,), "float32"), F: T.Buffer((1,), "uint64"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    if bx == 0:
        W[tx] = A[tx]
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.st_release(F.ptr_to([0]), T.uint64(1), ptx_type="u64", scope="gpu")
    else:
        if tx == 0:
            while T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32", scope="gpu") == T.uint32(0):
                T.cuda.nano_sleep(T.uint64(20))
        T.cuda.cta_sync()
        B[tx] = W[tx]


# A block that has ended never comes to a barrier of the grid.
# sim: ended_before_the_grid_met
#   B: float32[4] = 0
#   fault: block (3, 0, 0) has ended without reaching this barrier of the grid
@T.prim_func
def ended_before_the_grid_met(B: T.Buffer((4,), "float32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([32])
    if bx == 3:
        T.thread_return()
    T.cuda.grid_sync()
    if tx == 0:
        B[bx] = 1.0


# Block 0 waits for the last one, which may start when block 0 is done.
# sim: waits_for_a_block_that_cannot_start
#   F: uint32[6000] = 0
#   fault: blocks have not started
@T.prim_func
def waits_for_a_block_that_cannot_start(F: T.Buffer((6000,), "uint32")):
    T.device_entry()
    bx = T.cta_id([6000])
    tx = T.thread_id([32])
    if tx == 0:
        while T.ptx.ld_acquire(F.ptr_to([T.min(bx + 1, 5999)]), "uint32", "u32", scope="gpu") == T.uint32(0) and bx < 5999:
            T.cuda.nano_sleep(T.uint64(20))
        T.ptx.st_release(F.ptr_to([bx]), T.uint32(1), ptx_type="u32", scope="gpu")


# All lanes of a warp come to a barrier together.
# sim: barrier_by_some_lanes
#   B: float32[64] = 0
#   fault: 16 of the warp's 32 lanes come to named barrier 1
@T.prim_func
def barrier_by_some_lanes(B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    if tx % 32 < 16:
        T.ptx.bar.sync(1, 32)
    B[tx] = 1.0


# So they do where both branches have a barrier.
# sim: barriers_in_two_branches
#   B: float32[64] = 0
#   fault: of the warp's 32 lanes come to named barrier 1
@T.prim_func
def barriers_in_two_branches(B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    if tx % 32 < 16:
        T.ptx.bar.sync(1, 64)
        B[tx] = 1.0
    else:
        T.ptx.bar.sync(1, 64)
        B[tx] = 2.0


# Barrier 0 is that of the block: for some of its threads alone it may take in those that come for all.
# sim: barrier_0_for_some
#   B: float32[128] = 0
#   fault: use a barrier from 1 to 15 for some of the threads
@T.prim_func
def barrier_0_for_some(B: T.Buffer((128,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    S = T.alloc_shared((128,), "float32")
    S[tx] = 1.0
    if tx < 64:
        T.ptx.bar.sync(0, 64)
    T.cuda.cta_sync()
    B[tx] = S[127 - tx]


# Polls of an mbarrier that nobody completes are recognized.
# sim: endless_tests
#   B: float32[32] = 0
#   fault: no thread can run any more
@T.prim_func
def endless_tests(B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
    T.cuda.cta_sync()
    while T.ptx.mbarrier.test_wait(bar.ptr_to([0]), 0) == T.uint32(0):
        T.cuda.nano_sleep(T.uint64(20))
    B[tx] = 1.0


# A loop that polls by plain loads.
# sim: polls_by_plain_loads
#   F: uint32[1] = 0
#   B: float32[32] = 0
#   fault: is a plain load in the condition of a loop that waits: nvcc may move it out of the loop
@T.prim_func
def polls_by_plain_loads(F: T.Buffer((1,), "uint32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    if bx == 0:
        if tx == 0:
            T.ptx.st_release(F.ptr_to([0]), T.uint32(1), ptx_type="u32", scope="gpu")
    else:
        if tx == 0:
            while F[0] == T.uint32(0):
                T.cuda.nano_sleep(T.uint64(20))
        B[tx] = 1.0


# The release is at the scope of a block, and so tells the other block nothing.
# sim: lock_released_to_the_block
#   L: uint32[1] = 0
#   B: float32[1] = 0
#   fault: the value that it has read was released at scope cta, which does not reach from block to block
@T.prim_func
def lock_released_to_the_block(L: T.Buffer((1,), "uint32"), B: T.Buffer((1,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    if tx == 0:
        while T.cuda.atomic_cas(L.ptr_to([0]), T.uint32(0), T.uint32(1)) != T.uint32(0):
            T.cuda.nano_sleep(T.uint64(20))
        T.ptx.fence("acq_rel", "gpu")
        B[0] = B[0] + T.float32(1)
        T.ptx.fence("acq_rel", "cta")
        T.cuda.atomic_cas(L.ptr_to([0]), T.uint32(1), T.uint32(0))


# The barrier that some threads skip is the cause, not what they do behind it.
# sim: barrier_that_some_skip
#   A: float32[128] = i
#   B: float32[128] = 0
#   fault: 64 of the block's 128 threads wait at a block barrier (cta_sync) within a branch that other threads do not take
@T.prim_func
def barrier_that_some_skip(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    S = T.alloc_shared((128,), "float32")
    S[tx] = A[tx]
    if tx < 64:
        T.cuda.cta_sync()
    B[tx] = S[127 - tx]

# What is read behind it has not been written yet.
# variant: barrier_of_the_first_warp of barrier_that_some_skip
#   replace: "tx < 64" -> "tx < 32"
#   fault: 32 of the block's 128 threads wait at a block barrier (cta_sync) within a branch that other threads do not take


# The wait is there, and no group.
# sim: copies_without_group
#   A: float32[128] = i
#   B: float32[128] = 0
#   fault: the operation is in no group, since cp.async.commit_group is missing between it and the wait
@T.prim_func
def copies_without_group(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((128,), "float32", align=16)
    T.ptx.cp_async(S.ptr_to([tx * 4]), A.ptr_to([tx * 4]), 16)
    T.ptx.cp_async.wait_group(0)
    T.cuda.cta_sync()
    for i in range(4):
        B[i * 32 + tx] = S[i * 32 + tx]

# Neither is there.
# variant: copies_without_wait of copies_without_group
#   without: "T.ptx.cp_async.wait_group(0)"
#   fault: has not waited for its completion: cp.async.commit_group and cp.async.wait_group are missing

# The group is there, and no wait.
# variant: copies_in_a_group_without_wait of copies_without_group
#   replace: "T.ptx.cp_async.wait_group(0)" -> "T.ptx.cp_async.commit_group()"
#   fault: has not waited for its completion: cp.async.wait_group is missing

# The wait is for all groups but one.
# variant: copies_of_the_last_group of copies_without_group
#   replace: "T.ptx.cp_async.wait_group(0)" -> "T.ptx.cp_async.commit_group()\n    T.ptx.cp_async.wait_group(1)"
#   fault: has not waited for its completion: cp.async.wait_group lets its group go on


# A wait for the other parity returns at once.
# sim: wrong_parity
#   A: float32[64] = i
#   B: float32[64] = 0
#   fault: it completes at the mbarrier `full[0]`; this thread's last wait there was for parity 1
@T.prim_func
def wrong_parity(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32", align=128)
    full = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 256)
        T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([0]), A.ptr_to([0]), 256, full.ptr_to([0]))
    T.ptx.mbarrier.try_wait(full.ptr_to([0]), 1)
    B[tx] = S[tx]

# More bytes are expected than copied.
# variant: too_few_bytes of wrong_parity
#   replace: "full.ptr_to([0]), 256)" -> "full.ptr_to([0]), 512)"
#   replace: "T.ptx.mbarrier.try_wait(full.ptr_to([0]), 1)" -> "T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)"
#   fault: and 256 bytes of copies (counted so far: 256 of the copy in line


# The slot is filled again before its readers have said that it is free.
# sim: slot_not_waited_for
#   A: float32[2x64] = i * 64 + j
#   B: float32[64] = 0
#   fault: has not waited until the readers were done
@T.prim_func
def slot_not_waited_for(A: T.Buffer((2, 64), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([96])
    S = T.alloc_shared((64,), "float32", align=128)
    full = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 64:
        for k in range(2):
            T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 256)
            T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([0]), A.ptr_to([k, 0]), 256, full.ptr_to([0]))
            T.ptx.mbarrier.try_wait(full.ptr_to([0]), k)
    if tx < 64:
        T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)
        B[tx] = S[tx]


# A flag passes on what the threads of a block have written.
# sim: flag_of_a_block
#   A: int32[32] = 100 + i
#   D: int32[32] = 0 -> 100 + i
#   F: uint32[1] = 0 -> 1
#   B: int32[32] = 0 -> 100 + i
#   seeds: 4
@T.prim_func
def flag_of_a_block(A: T.Buffer((32,), "int32"), D: T.Buffer((32,), "int32"), F: T.Buffer((1,), "uint32"), B: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    if bx == 0:
        D[tx] = A[tx]
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.st_release(F.ptr_to([0]), T.uint32(1), ptx_type="u32", scope="gpu")
    else:
        if tx == 0:
            while T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32", scope="gpu") == T.uint32(0):
                T.cuda.nano_sleep(T.uint64(20))
        T.cuda.cta_sync()
        B[tx] = D[tx]

# The poll is strong; the scopes are too narrow.
# variant: flag_released_to_the_block of flag_of_a_block
#   replace: 'ptx_type="u32", scope="gpu"' -> 'ptx_type="u32", scope="cta"'
#   fault: one is at scope cta, the other at gpu, and each must reach the other's block

# variant: flag_acquired_from_the_block of flag_of_a_block
#   replace: '"uint32", "u32", scope="gpu"' -> '"uint32", "u32", scope="cta"'
#   fault: one is at scope gpu, the other at cta, and each must reach the other's block

# The write is plain.
# variant: flag_written_plainly of flag_of_a_block
#   replace: 'T.ptx.st_release(F.ptr_to([0]), T.uint32(1), ptx_type="u32", scope="gpu")' -> 'F[0] = T.uint32(1)'
#   fault: of block (0, 0, 0) wrote, and nothing orders the two blocks


# The warp that skips the barrier may come first to what is behind it.
# sim: barrier_that_the_first_warp_skips
#   A: int8[96] = i
#   B: int8[96] = 0
#   fault: 64 of the block's 96 threads wait at a block barrier (cta_sync) within a branch that other threads do not take
#   seeds: 4
@T.prim_func
def barrier_that_the_first_warp_skips(A: T.Buffer((96,), "int8"), B: T.Buffer((96,), "int8")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([96])
    S = T.alloc_shared((96,), "int8")
    S[tx] = A[tx]
    if A[tx] > 31:
        T.cuda.cta_sync()
    B[tx] = S[95 - tx]
