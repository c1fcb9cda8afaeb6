# Pipelines of several roles, right and with one mistake each: the report names what is missing.
from tvm.script import tirx as T


# Three roles: a copy fills a slot, a warp doubles what is in it, a copy takes it away.
# sim: relay
#   A: float32[9x64] = i * 64 + j
#   B: float32[9x64] = 0 -> 2 * A[i][j]
#   seeds: 6
@T.prim_func
def relay(A: T.Buffer((9, 64), "float32"), B: T.Buffer((9, 64), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([96])
    warp = T.warp_id([3])
    S = T.alloc_shared((3, 64), "float32", align=128)
    full = T.alloc_shared((3,), "uint64")
    done = T.alloc_shared((3,), "uint64")
    empty = T.alloc_shared((3,), "uint64")
    if tx == 0:
        for s in T.unroll(3):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(done.ptr_to([s]), 32)
            T.ptx.mbarrier.init(empty.ptr_to([s]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if warp == 0:
        if tx == 0:
            for k in range(9):
                T.ptx.mbarrier.try_wait(empty.ptr_to([k % 3]), k // 3 % 2 ^ 1)
                T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([k % 3]), 256)
                T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([k % 3, 0]), A.ptr_to([k, 0]), 256, full.ptr_to([k % 3]))
    elif warp == 1:
        for k in range(9):
            T.ptx.mbarrier.try_wait(full.ptr_to([k % 3]), k // 3 % 2)
            for half in T.unroll(2):
                S[k % 3, half * 32 + tx - 32] = S[k % 3, half * 32 + tx - 32] * T.float32(2)
            T.ptx.fence.proxy_async("shared::cta")
            T.ptx.mbarrier.arrive(done.ptr_to([k % 3]))
    else:
        if tx == 64:
            for k in range(9):
                T.ptx.mbarrier.try_wait(done.ptr_to([k % 3]), k // 3 % 2)
                T.ptx.cp_async_bulk_s2g(B.ptr_to([k, 0]), S.ptr_to([k % 3, 0]), 256)
                T.ptx.cp_async.bulk.commit_group()
                T.ptx.cp_async.bulk.wait_group(0, True)
                T.ptx.mbarrier.arrive(empty.ptr_to([k % 3]))
            T.ptx.cp_async.bulk.wait_group(0, False)

# What the warp wrote is not visible to the copy.
# variant: relay_unfenced of relay
#   without: "T.ptx.fence.proxy_async"
#   fault: no fence.proxy.async makes it visible to the async proxy

# The fence is for global memory.
# variant: relay_fenced_elsewhere of relay
#   replace: '"shared::cta"' -> '"global"'
#   fault: no fence.proxy.async makes it visible to the async proxy

# The slot is given back while the copy reads it.
# variant: relay_given_back_early of relay
#   without: "T.ptx.cp_async.bulk.wait_group(0, True)"
#   fault: which another asynchronous operation read, and nothing orders the two

# One copy may still read.
# variant: relay_one_in_flight of relay
#   replace: "wait_group(0, True)" -> "wait_group(1, True)"
#   fault: which another asynchronous operation read, and nothing orders the two

# The copy is in no group, so the wait is for nothing.
# variant: relay_without_group of relay
#   without: "T.ptx.cp_async.bulk.commit_group()"
#   fault: the other operation is in no group, since cp.async.bulk.commit_group is missing between it and the wait

# One lane arrives for 32.
# variant: relay_one_arrival of relay
#   replace: "T.ptx.mbarrier.arrive(done.ptr_to([k % 3]))" -> "if tx == 32:\n                T.ptx.mbarrier.arrive(done.ptr_to([k % 3]))"
#   fault: the mbarrier `done[0]`, whose phase 0 (parity 0) waits for 31 of 32 arrivals

# The copy fills a slot that is in use.
# variant: relay_full_slots of relay
#   without: "T.ptx.mbarrier.try_wait(empty.ptr_to([k % 3]), k // 3 % 2 ^ 1)"
#   fault: arrives once at an mbarrier whose phase 0 waits for 0 more of its 1 arrivals

# Half of the bytes are expected.
# variant: relay_half_expected of relay
#   replace: "full.ptr_to([k % 3]), 256)" -> "full.ptr_to([k % 3]), 128)"
#   fault: it expects 128 bytes (expect_tx), and copies have brought 256

# The copy back does not wait for the warp.
# variant: relay_wrong_barrier of relay
#   replace: "try_wait(done.ptr_to" -> "try_wait(full.ptr_to"
#   fault: the bulk copy reads byte 0 of shared `S`, which thread (32, 0, 0) wrote, and nothing orders the two

# The warp does not wait for the copy.
# variant: relay_unfilled of relay
#   without: "T.ptx.mbarrier.try_wait(full.ptr_to([k % 3]), k // 3 % 2)"
#   fault: an asynchronous operation writes, and this thread has not waited for its completion: it completes at the mbarrier `full[0]`

# The barriers are not visible to the copies.
# variant: relay_unfenced_barriers of relay
#   without: "T.ptx.fence.mbarrier_init()"
#   fault: whose initialization no fence has made visible to the async proxy

# Nobody waits until the barriers are there.
# variant: relay_without_barrier of relay
#   without: "T.cuda.cta_sync()"
#   fault: uses the mbarrier `full[0]`, which thread (0, 0, 0) wrote, and no barrier orders the two

# Each lane arrives twice.
# variant: relay_two_arrivals of relay
#   replace: "T.ptx.mbarrier.arrive(done.ptr_to([k % 3]))" -> "T.ptx.mbarrier.arrive(done.ptr_to([k % 3]))\n            T.ptx.mbarrier.arrive(done.ptr_to([k % 3]))"
#   fault: arrives for phase 1 of an mbarrier, and no thread has seen that phase 0 is complete

# The parity of the empty slots begins with the wrong one.
# variant: relay_wrong_first_parity of relay
#   replace: "k // 3 % 2 ^ 1)" -> "k // 3 % 2)"
#   fault: 1 thread waits for parity 0 of the mbarrier `empty[0]`, whose phase 0 (parity 0) waits for 1 of 1 arrivals


# Four blocks of a cluster send a number each to the first, which adds them.
# sim: gather
#   A: float32[4] = i + 1
#   B: float32[1] = 0 -> 10
#   seeds: 6
@T.prim_func
def gather(A: T.Buffer((4,), "float32"), B: T.Buffer((1,), "float32")):
    T.device_entry()
    T.cta_id([4])
    rank = T.cta_id_in_cluster([4])
    tx = T.thread_id([32])
    S = T.alloc_shared((4,), "float32")
    all_here = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(all_here.ptr_to([0]), 4)
        T.ptx.fence.mbarrier_init()
    T.cuda.cluster_sync()
    if tx == 0:
        there: T.let = T.ptx.mapa(S.ptr_to([rank]), 0, "shared::cluster", "u32", "uint32")
        T.ptx.st(there, A[rank], ptx_type="f32", space="shared::cluster")
        T.ptx.mbarrier.arrive(all_here.ptr_to([0]), sem="release", scope="cluster", space="shared::cluster", remote=0)
    if rank == 0:
        T.ptx.mbarrier.try_wait_acquire_cluster(all_here.ptr_to([0]), 0)
        if tx == 0:
            B[0] = S[0] + S[1] + S[2] + S[3]

# The barrier is initialized after others may have arrived.
# variant: gather_before_initialization of gather
#   replace: "T.cuda.cluster_sync()" -> "T.cuda.cta_sync()"
#   fault: whose block may not have started: no barrier of the cluster

# The first block goes on when three have arrived.
# variant: gather_of_three of gather
#   replace: "all_here.ptr_to([0]), 4)" -> "all_here.ptr_to([0]), 3)"
#   fault: arrives for phase 1 of an mbarrier, and no thread has seen that phase 0 is complete

# All write to one place.
# variant: gather_in_one_place of gather
#   replace: "S.ptr_to([rank])" -> "S.ptr_to([0])"
#   fault: of rank 0 of the cluster, which thread (0, 0, 0) of block (0, 0, 0) wrote, and no cluster barrier orders the two

# There is no fifth block.
# variant: gather_at_no_block of gather
#   replace: "S.ptr_to([rank]), 0," -> "S.ptr_to([rank]), 4,"
#   fault: in the shared memory of rank 4 of a cluster of 4 blocks

# The wait is relaxed.
# variant: gather_without_acquire of gather
#   replace: "T.ptx.mbarrier.try_wait_acquire_cluster" -> "T.ptx.mbarrier.try_wait"
#   fault: reads `S[1]`, which thread (0, 0, 0) of block (1, 0, 0) wrote, and no cluster barrier orders the two

# The first block does not wait, and reads what others are still to write.
# variant: gather_ended of gather
#   without: "T.ptx.mbarrier.try_wait_acquire_cluster(all_here.ptr_to([0]), 0)"
#   fault: of rank 0 of the cluster, which thread (0, 0, 0) of block (0, 0, 0) read, and no cluster barrier orders the two


# A warp produces, another consumes, by two named barriers in turn.
# sim: ping_pong
#   B: int32[4x32] = 0 -> i * 32 + 31 - j
#   seeds: 6
@T.prim_func
def ping_pong(B: T.Buffer((4, 32), "int32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((32,), "int32")
    if tx < 32:
        for k in range(4):
            T.ptx.bar.sync(2, 64)
            S[tx] = k * 32 + tx
            T.ptx.bar.arrive(1, 64)
    else:
        for k in range(4):
            T.ptx.bar.arrive(2, 64)
            T.ptx.bar.sync(1, 64)
            B[k, tx - 32] = S[63 - tx]

# The producer does not wait.
# variant: ping_pong_unread of ping_pong
#   without: "T.ptx.bar.sync(2, 64)"
#   fault: warp 0 arrives twice in one phase of named barrier 1

# The consumer does not wait.
# variant: ping_pong_unwritten of ping_pong
#   replace: "T.ptx.bar.sync(1, 64)" -> "T.ptx.bar.arrive(1, 64)"
#   fault: reads `S[31]` before any thread has written it

# The consumer says that it is done before it is.
# variant: ping_pong_too_early of ping_pong
#   without: "T.ptx.bar.arrive(2, 64)"
#   replace: "T.ptx.bar.sync(1, 64)" -> "T.ptx.bar.sync(1, 64)\n            T.ptx.bar.arrive(2, 64)"
#   fault: 32 threads wait at named barrier 2 for 64 threads; 32 threads wait at named barrier 1 for 64 threads

# The barrier is for one warp.
# variant: ping_pong_half of ping_pong
#   replace: "T.ptx.bar.arrive(1, 64)" -> "T.ptx.bar.arrive(1, 32)"
#   fault: warp 0 arrives at named barrier 1 with a count of 32 threads, other warps with 64

# One round too few.
# variant: ping_pong_short of ping_pong
#   replace 1: "range(4)" -> "range(3)"
#   fault: 32 threads wait at named barrier 1 for 64 threads

# The two barriers are one.
# variant: ping_pong_one_barrier of ping_pong
#   replace all: "(2, 64)" -> "(1, 64)"
#   fault: warp 1 arrives at named barrier 1, at which warp 0 arrived in the phase before, and nothing orders the two arrivals


# Tickets: a block takes its turn in the order of numbers, and adds to a sum that no lock protects otherwise.
# sim: turns
#   T_: uint32[1] = 0 -> 4
#   B: float32[32] = 0 -> 10
#   seeds: 6
@T.prim_func
def turns(T_: T.Buffer((1,), "uint32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([32])
    if tx == 0:
        while T.ptx.ld_acquire(T_.ptr_to([0]), "uint32", "u32", scope="gpu") != T.cast(bx, "uint32"):
            T.cuda.nano_sleep(T.uint64(20))
    T.cuda.cta_sync()
    B[tx] = B[tx] + T.cast(bx + 1, "float32")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.st_release(T_.ptr_to([0]), T.cast(bx + 1, "uint32"), ptx_type="u32", scope="gpu")

# The turn passes on before the others of the block have added.
# variant: turns_too_early of turns
#   without 2: "T.cuda.cta_sync()"
#   fault: reads `B[1]`, which thread (1, 0, 0) of block (0, 0, 0) wrote, and nothing orders the two blocks

# Only one thread has waited.
# variant: turns_of_one of turns
#   without 1: "T.cuda.cta_sync()"
#   fault: reads `B[1]`, which thread (1, 0, 0) of block (0, 0, 0) wrote, and nothing orders the two blocks

# The turn is seen by the own block alone.
# variant: turns_of_the_block of turns
#   replace: 'ptx_type="u32", scope="gpu"' -> 'ptx_type="u32", scope="cta"'
#   fault: one is at scope cta, the other at gpu, and each must reach the other

# The turn never comes.
# variant: turns_skipped of turns
#   replace: "bx + 1, \"uint32\"" -> "bx + 2, \"uint32\""
#   fault: 1 thread spins in a loop that waits for memory that nobody writes


def dot(a, b):
    return sum([x * y for x, y in zip(a, b)])


def row(i, j):
    return i // 32 * 16 + i % 32 // 4 + j // 2 * 8


# Four products of a warpgroup, of tiles in two places in turn: one is under way while the next tile is written.
# sim: steps
#   A: float16[4x64x16] = (i + j + k) % 5
#   B: float32[128x4] = 0 -> sum([dot(A[t][row(i, j)], A[t][i % 4 * 2 + j % 2]) for t in range(4)])
#   seeds: 4
@T.prim_func
def steps(A: T.Buffer((4, 64, 16), "float16"), B: T.Buffer((128, 4), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([128])
    S = T.alloc_shared((2, 1024), "float16", align=128)
    acc = T.alloc_local((4,), "float32")
    a: T.uint64
    T.ptx.wgmma.encode_matrix_descriptor(T.address_of(a), S.ptr_to([0, 0]), 8, 16, 0)
    for t in T.unroll(4):
        for k in T.serial(8):
            S[t % 2, (tx // 2 // 8 * 2 + tx % 2) * 64 + tx // 2 % 8 * 8 + k] = A[t, tx // 2, tx % 2 * 8 + k]
        T.ptx.fence.proxy_async("shared::cta")
        T.cuda.cta_sync()
        T.ptx.wgmma.fence()
        T.ptx.wgmma.mma_async.ss(a + T.uint64(t % 2 * 128), a + T.uint64(t % 2 * 128), acc[0], acc[1], acc[2], acc[3], M=64, N=8,
                                 K=16, in_dtype="float16", out_dtype="float32", transA=False, transB=False, scaleA=1.0, scaleB=1.0,
                                 scaleD=t > 0)
        T.ptx.wgmma.commit_group()
        T.ptx.wgmma.wait_group(1)
        T.cuda.cta_sync()
    T.ptx.wgmma.wait_group(0)
    for k in T.serial(4):
        B[tx, k] = acc[k]

# The product before the last may still read the tile.
# variant: steps_two_under_way of steps
#   replace: "wait_group(1)" -> "wait_group(2)"
#   fault: lets the tensor core read `S`

# A product is one operation of the warpgroup: a warp that has waited for it has waited for the other warps' part.
# variant: steps_of_one_warp of steps
#   without 2: "T.cuda.cta_sync()"
#   seeds: 4

# The sums are read while the last product is under way.
# variant: steps_unfinished of steps
#   without: "T.ptx.wgmma.wait_group(0)"
#   fault: wgmma.wait_group is missing, or lets too many groups go on

# The registers are not fenced.
# variant: steps_unfenced_registers of steps
#   without: "T.ptx.wgmma.fence()"
#   fault: the first wgmma of a warp needs a wgmma.fence before it

# A product is not committed.
# variant: steps_uncommitted of steps
#   without: "T.ptx.wgmma.commit_group()"
#   fault: the operation is in no group, since wgmma.commit_group is missing between it and the wait

# What the threads stored is not visible.
# variant: steps_unfenced of steps
#   without: "T.ptx.fence.proxy_async"
#   fault: no fence.proxy.async makes it visible to the async proxy
