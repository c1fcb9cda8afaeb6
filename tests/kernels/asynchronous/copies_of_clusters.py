# Copies and arrivals between the blocks of a cluster, right and with one mistake each.
from tvm.script import tirx as T


# Both blocks of a cluster get a tile by multicast, twice into the same array: the second time when both have read the first.
# sim: multicast
#   A: float32[2x64] = i * 64 + j
#   B: float32[2x64] = 0 -> 64 + 2 * j
#   seeds: 6
@T.prim_func
def multicast(A: T.Buffer((2, 64), "float32"), B: T.Buffer((2, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32", align=128)
    full = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cluster_sync()
    sum: T.float32 = 0.0
    for k in range(2):
        if tx == 0:
            T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 256)
            if rank == 0:
                T.ptx.cp_async_bulk_g2s_cluster(S.ptr_to([0]), A.ptr_to([k, 0]), 256, full.ptr_to([0]), multicast=True, cta_mask=3)
        T.ptx.mbarrier.try_wait(full.ptr_to([0]), k)
        sum += S[tx]
        T.cuda.cluster_sync()
    B[bx, tx] = sum

# The other block may not have read the first tile.
# variant: multicast_over_unread of multicast
#   replace 2: "T.cuda.cluster_sync()" -> "T.cuda.cta_sync()"
#   fault: which another asynchronous operation wrote, and nothing orders the two

# One block expects half the bytes.
# variant: multicast_half_expected of multicast
#   replace: "full.ptr_to([0]), 256)" -> "full.ptr_to([0]), 256 - rank * 128)"
#   fault: no thread can run any more


# The sender does not wait; it may end while the copy runs.
# sim: multicast_ends_early
#   A: float32[2x64] = i * 64 + j
#   B: float32[2x64] = 0
#   fault: arrives for phase 1 of an mbarrier, and no thread has seen that phase 0 is complete
@T.prim_func
def multicast_ends_early(A: T.Buffer((2, 64), "float32"), B: T.Buffer((2, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32", align=128)
    full = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cluster_sync()
    sum: T.float32 = 0.0
    for k in range(2):
        if tx == 0:
            T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 256)
            if rank == 0:
                T.ptx.cp_async_bulk_g2s_cluster(S.ptr_to([0]), A.ptr_to([k, 0]), 256, full.ptr_to([0]), multicast=True, cta_mask=3)
        if rank == 1:
            T.ptx.mbarrier.try_wait(full.ptr_to([0]), k)
            sum += S[tx]
        T.cuda.cluster_sync()
    B[bx, tx] = sum


# A block writes to the other's memory and arrives at its mbarrier.
# sim: remote_arrival
#   A: float32[64] = i
#   B: float32[64] = 0 -> 2 * i
#   seeds: 6
@T.prim_func
def remote_arrival(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
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
        T.ptx.mbarrier.arrive(full.ptr_to([0]), sem="release", scope="cluster", space="shared::cluster", remote=1)
    else:
        T.ptx.mbarrier.try_wait_acquire_cluster(full.ptr_to([0]), 0)
        B[tx] = S[tx]
    T.cuda.cluster_sync()

# A relaxed arrival tells nothing.
# variant: remote_arrival_relaxed of remote_arrival
#   replace: 'sem="release",' -> 'sem="relaxed",'
#   fault: no cluster barrier orders the two


# The arrival stands before the write.
# sim: remote_arrival_before_write
#   A: float32[64] = i
#   B: float32[64] = 0
#   fault: no cluster barrier orders the two
@T.prim_func
def remote_arrival_before_write(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
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
        T.ptx.mbarrier.arrive(full.ptr_to([0]), sem="release", scope="cluster", space="shared::cluster", remote=1)
        T.ptx.st(there, A[tx] * T.float32(2), ptx_type="f32", space="shared::cluster")
    else:
        T.ptx.mbarrier.try_wait_acquire_cluster(full.ptr_to([0]), 0)
        B[tx] = S[tx]
    T.cuda.cluster_sync()


# One thread arrives for all, without having met them.
# sim: remote_arrival_of_one
#   A: float32[64] = i
#   B: float32[64] = 0
#   fault: no cluster barrier orders the two
@T.prim_func
def remote_arrival_of_one(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32")
    full = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cluster_sync()
    if rank == 0:
        there: T.let = T.ptx.mapa(S.ptr_to([tx]), 1, "shared::cluster", "u32", "uint32")
        T.ptx.st(there, A[tx] * T.float32(2), ptx_type="f32", space="shared::cluster")
        if tx == 0:
            T.ptx.mbarrier.arrive(full.ptr_to([0]), sem="release", scope="cluster", space="shared::cluster", remote=1)
    else:
        T.ptx.mbarrier.try_wait_acquire_cluster(full.ptr_to([0]), 0)
        B[tx] = S[tx]
    T.cuda.cluster_sync()


# Split cluster barriers: arrive when the own part is there, wait before reading the other's.
# sim: split_barrier
#   A: int32[64] = i
#   B: int32[64] = 0 -> (i + 32) % 64
#   seeds: 6
@T.prim_func
def split_barrier(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "int32")
    S[tx] = A[bx * 32 + tx]
    T.ptx.barrier.cluster.arrive("release")
    there: T.let = T.ptx.mapa(S.ptr_to([tx]), 1 - rank, "shared::cluster", "u32", "uint32")
    T.ptx.barrier.cluster.wait(acquire=True)
    B[bx * 32 + tx] = T.ptx.ld(there, "int32", "s32", space="shared::cluster")
    T.ptx.barrier.cluster.arrive("relaxed")
    T.ptx.barrier.cluster.wait()

# A relaxed arrival releases nothing.
# variant: split_barrier_relaxed of split_barrier
#   replace: 'T.ptx.barrier.cluster.arrive("release")' -> 'T.ptx.barrier.cluster.arrive("relaxed")'
#   fault: no cluster barrier orders the two

# The write stands behind the arrival.
# variant: split_barrier_late_write of split_barrier
#   replace: 'S = T.alloc_shared((32,), "int32")' -> 'S = T.alloc_shared((32,), "int32")\n    T.ptx.barrier.cluster.arrive("release")'
#   without 2: 'T.ptx.barrier.cluster.arrive("release")'
#   fault: no cluster barrier orders the two


# One block alone waits at the second.
# sim: split_barrier_one_block
#   A: int32[64] = i
#   B: int32[64] = 0
#   fault: no cluster barrier stands between
@T.prim_func
def split_barrier_one_block(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "int32")
    S[tx] = A[bx * 32 + tx]
    T.ptx.barrier.cluster.arrive("release")
    there: T.let = T.ptx.mapa(S.ptr_to([tx]), 1 - rank, "shared::cluster", "u32", "uint32")
    T.ptx.barrier.cluster.wait(acquire=True)
    B[bx * 32 + tx] = T.ptx.ld(there, "int32", "s32", space="shared::cluster")
    if rank == 0:
        T.ptx.barrier.cluster.arrive("relaxed")
        T.ptx.barrier.cluster.wait()


# Rank 1 changes its tile and fences that, and tells rank 0 at the scope of the block; what rank 0 then copies may write over it.
# sim: multicast_over_fenced
#   A: float32[64] = i
#   B: float32[2x64] = 0 -> j
#   seeds: 6
@T.prim_func
def multicast_over_fenced(A: T.Buffer((64,), "float32"), B: T.Buffer((2, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32", align=128)
    full = T.alloc_shared((1,), "uint64")
    changed = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.mbarrier.init(changed.ptr_to([0]), 64)
        T.ptx.fence.mbarrier_init()
    T.cuda.cluster_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 256)
    if rank == 1:
        S[tx] = T.float32(0)
        T.ptx.fence.proxy_async("shared::cta")
        T.ptx.mbarrier.arrive(changed.ptr_to([0]), remote=0)
    elif tx == 0:
        T.ptx.mbarrier.try_wait(changed.ptr_to([0]), 0)
        T.ptx.cp_async_bulk_g2s_cluster(S.ptr_to([0]), A.ptr_to([0]), 256, full.ptr_to([0]), multicast=True, cta_mask=3)
    T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)
    B[bx, tx] = S[tx]
    T.cuda.cluster_sync()

# Without the fence nothing orders the copy behind the change.
# variant: multicast_over_changed of multicast_over_fenced
#   without: 'T.ptx.fence.proxy_async("shared::cta")'
#   fault: writes byte
