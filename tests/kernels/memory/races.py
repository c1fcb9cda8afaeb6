# Races that do not show in the results: each is reported, with the broken rule.
from tvm.script import tirx as T


# A plain write beside relaxed atomics of other threads.
# sim: plain_write_beside_atomics
#   A: uint32[32] = i
#   B: uint32[1] = 0
#   fault: race
@T.prim_func
def plain_write_beside_atomics(A: T.Buffer((32,), "uint32"), B: T.Buffer((1,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((1,), "uint32")
    if tx == 0:
        S[0] = T.uint32(0)
    T.ptx.red_scalar(S.ptr_to([0]), A[tx], op="add", ptx_type="u32", space="shared")


# A plain read beside relaxed atomics of other threads.
# sim: plain_read_beside_atomics
#   A: uint32[32] = i
#   B: uint32[1] = 0
#   fault: race
@T.prim_func
def plain_read_beside_atomics(A: T.Buffer((32,), "uint32"), B: T.Buffer((1,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((1,), "uint32")
    if tx == 0:
        S[0] = T.uint32(0)
    T.cuda.cta_sync()
    T.ptx.red_scalar(S.ptr_to([0]), A[tx], op="add", ptx_type="u32", space="shared")
    if tx == 0:
        B[0] = S[0]


# The same by a histogram of a block: no barrier between the counts and their reads.
# sim: histogram_without_barrier
#   A: uint32[64] = i % 4
#   B: int32[4] = 0
#   fault: race
@T.prim_func
def histogram_without_barrier(A: T.Buffer((64,), "uint32"), B: T.Buffer((4,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((4,), "int32")
    if tx < 4:
        S[tx] = 0
    T.cuda.cta_sync()
    T.cuda.atomic_add(S.ptr_to([A[tx]]), T.int32(1))
    if tx < 4:
        B[tx] = S[tx]


# With it there is nothing to report.
# sim: histogram
#   A: uint32[64] = i % 4
#   B: int32[4] = 0 -> 16
@T.prim_func
def histogram(A: T.Buffer((64,), "uint32"), B: T.Buffer((4,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((4,), "int32")
    if tx < 4:
        S[tx] = 0
    T.cuda.cta_sync()
    T.cuda.atomic_add(S.ptr_to([A[tx]]), T.int32(1))
    T.cuda.cta_sync()
    if tx < 4:
        B[tx] = S[tx]


# Thread 0 waits for the flag, the others of its block do not.
# sim: one_waits_for_all
#   A: float32[64] = i
#   F: uint32[1] = 0
#   B: float32[64] = 0
#   fault: race
@T.prim_func
def one_waits_for_all(A: T.Buffer((64,), "float32"), F: T.Buffer((1,), "uint32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([64])
    if bx == 0:
        A[tx] = A[tx] * T.float32(2)
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.st_release(F.ptr_to([0]), T.uint32(1), ptx_type="u32")
    else:
        if tx == 0:
            while T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32") == T.uint32(0):
                T.cuda.nano_sleep(T.uint64(20))
        B[tx] = A[63 - tx]


# Thread 0 releases the whole block's writes without a barrier with the others.
# sim: one_tells_for_all
#   A: float32[64] = i
#   F: uint32[1] = 0
#   B: float32[64] = 0
#   fault: race
@T.prim_func
def one_tells_for_all(A: T.Buffer((64,), "float32"), F: T.Buffer((1,), "uint32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([64])
    if bx == 0:
        A[tx] = A[tx] * T.float32(2)
        if tx == 0:
            T.ptx.st_release(F.ptr_to([0]), T.uint32(1), ptx_type="u32")
    else:
        while T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32") == T.uint32(0):
            T.cuda.nano_sleep(T.uint64(20))
        B[tx] = A[63 - tx]


# A relaxed store releases nothing, whatever the order of the load.
# sim: relaxed_flag
#   A: float32[32] = i
#   F: uint32[1] = 0
#   B: float32[32] = 0
#   fault: race
@T.prim_func
def relaxed_flag(A: T.Buffer((32,), "float32"), F: T.Buffer((1,), "uint32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([1])
    if bx == 0:
        A[0] = T.float32(2)
        T.ptx.st_relaxed(F.ptr_to([0]), T.uint32(1), ptx_type="u32", scope="gpu")
    else:
        while T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32") == T.uint32(0):
            T.cuda.nano_sleep(T.uint64(20))
        B[0] = A[0]


# A release within the block does not reach another block.
# sim: scope_of_the_block
#   A: float32[32] = i
#   F: uint32[1] = 0
#   B: float32[32] = 0
#   fault: race
@T.prim_func
def scope_of_the_block(A: T.Buffer((32,), "float32"), F: T.Buffer((1,), "uint32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([1])
    if bx == 0:
        A[0] = T.float32(2)
        T.ptx.st_release(F.ptr_to([0]), T.uint32(1), ptx_type="u32", scope="cta")
    else:
        while T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32", scope="cta") == T.uint32(0):
            T.cuda.nano_sleep(T.uint64(20))
        B[0] = A[0]


# The tile's number is overwritten while others still read it.
# sim: queue_without_second_barrier
#   Q: int32[1] = 0
#   B: int32[256] = 0
#   fault: race
@T.prim_func
def queue_without_second_barrier(Q: T.Buffer((1,), "int32"), B: T.Buffer((256,), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    S = T.alloc_shared((1,), "int32")
    while True:
        if tx == 0:
            S[0] = T.cuda.atomic_add(Q.ptr_to([0]), 1)
        T.cuda.cta_sync()
        t: T.let = S[0]
        if t >= 8:
            break
        B[t * 32 + tx] = t


# The other block's shared memory before its barrier, and the flag before the warp has met.
# sim: cluster_without_barrier
#   B: int32[32] = 0
#   fault: race
@T.prim_func
def cluster_without_barrier(B: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "int32")
    S[tx] = 0
    if rank == 1:
        there: T.let = T.ptx.mapa(S.ptr_to([tx]), 0, "shared::cluster", "u32", "uint32")
        T.ptx.st(there, tx, ptx_type="s32", space="shared::cluster")
    T.cuda.cluster_sync()
    B[tx] = S[tx]


# sim: flag_before_the_warp
#   B: int32[32] = 0
#   fault: race
@T.prim_func
def flag_before_the_warp(B: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "int32")
    F = T.alloc_shared((1,), "int32")
    if tx == 0:
        F[0] = 0
    T.cuda.cluster_sync()
    if rank == 1:
        there: T.let = T.ptx.mapa(S.ptr_to([tx]), 0, "shared::cluster", "u32", "uint32")
        T.ptx.st(there, tx + 7, ptx_type="s32", space="shared::cluster")
        if tx == 0:
            flag: T.let = T.ptx.mapa(F.ptr_to([0]), 0, "shared::cluster", "u32", "uint32")
            T.ptx.st_release(flag, 1, ptx_type="s32", scope="cluster", space="shared::cluster")
    else:
        while T.ptx.ld_acquire(F.ptr_to([0]), "int32", "s32", scope="cluster", space="shared::cta") == 0:
            T.evaluate(0)
        B[tx] = S[tx]
    T.cuda.cluster_sync()


# sim: block_ends_too_early
#   B: int32[32] = 0
#   fault: of rank 0 of the cluster, whose block has ended
@T.prim_func
def block_ends_too_early(B: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "int32")
    S[tx] = tx
    T.cuda.cluster_sync()
    if rank == 1:
        there: T.let = T.ptx.mapa(S.ptr_to([tx]), 0, "shared::cluster", "u32", "uint32")
        B[tx] = T.ptx.ld(there, "int32", "s32", space="shared::cluster")


# Data of a copy that is not complete.
# sim: copy_under_way
#   A: float32[32] = i
#   B: float32[32] = 0
#   fault: race
@T.prim_func
def copy_under_way(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=16)
    S[tx] = T.float32(0)
    T.ptx.cp_async(S.ptr_to([tx]), A.ptr_to([tx]), 4)
    T.ptx.cp_async.commit_group()
    B[tx] = S[tx]


# A group's copies are there for the threads that issued them, for others after a barrier.
# sim: copy_of_another_thread
#   A: float32[64] = i
#   B: float32[64] = 0
#   fault: race
@T.prim_func
def copy_of_another_thread(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32", align=16)
    S[tx] = T.float32(0)
    T.cuda.cta_sync()
    T.ptx.cp_async(S.ptr_to([tx]), A.ptr_to([tx]), 4)
    T.ptx.cp_async.commit_group()
    T.ptx.cp_async.wait_group(0)
    B[tx] = S[63 - tx]


# A fence of all threads, a barrier, one thread counts; a barrier, a fence of all threads: `fence.sc` has one order.
# sim: last_block_adds
#   A: float32[256] = i % 7
#   P: float32[256] = 0 -> A[i]
#   C: int32[1] = 0 -> 4
#   B: float32[64] = 0 -> A[i] + A[i + 64] + A[i + 128] + A[i + 192]
@T.prim_func
def last_block_adds(
    A: T.Buffer((256,), "float32"),
    P: T.Buffer((256,), "float32"),
    C: T.Buffer((1,), "int32"),
    B: T.Buffer((64,), "float32"),
):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    last = T.alloc_shared((1,), "int32")
    P[bx * 64 + tx] = A[bx * 64 + tx]
    T.cuda.thread_fence()
    T.cuda.cta_sync()
    if tx == 0:
        last[0] = T.cuda.atomic_add(C.ptr_to([0]), T.int32(1))
    T.cuda.cta_sync()
    if last[0] == 3:
        T.cuda.thread_fence()
        B[tx] = P[tx] + P[tx + 64] + P[tx + 128] + P[tx + 192]

# variant: last_block_without_fence of last_block_adds
#   without 2: "T.cuda.thread_fence()"
#   fault: race


# Each warp reads what the other one writes: without the barrier the reader may come first, before anything is there.
# sim: turned
#   A: float32[64] = i
#   B: float32[64] = 0 -> 63 - i
#   seeds: 3
@T.prim_func
def turned(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32")
    S[tx] = A[tx]
    T.cuda.cta_sync()
    B[tx] = S[63 - tx]

# variant: turned_without_barrier of turned
#   without: "T.cuda.cta_sync()"
#   fault: data race in kernel `turned_without_barrier_kernel`: reads `S[63]` before any thread has written it; a write comes later

# A barrier of the warp is not enough.
# variant: turned_behind_a_warp_barrier of turned
#   replace: "T.cuda.cta_sync()" -> "T.cuda.warp_sync()"
#   fault: no barrier orders the two

# A barrier behind the read makes it a read of what nobody has written.
# variant: turned_too_early of turned
#   replace: "    S[tx] = A[tx]\n    T.cuda.cta_sync()\n    B[tx] = S[63 - tx]" -> "    B[tx] = S[63 - tx]\n    T.cuda.cta_sync()\n    S[tx] = A[tx]"
#   fault: uninitialized read in kernel `turned_too_early_kernel`: reads `S[63]` before any thread has written it

# Atomics on counters that another warp has yet to clear.
# sim: counted
#   A: int32[64] = i % 4
#   B: int32[4] = 0 -> 16
@T.prim_func
def counted(A: T.Buffer((64,), "int32"), B: T.Buffer((4,), "int32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((4,), "int32")
    if tx >= 60:
        S[tx - 60] = 0
    T.cuda.cta_sync()
    T.cuda.atomic_add(S.ptr_to([A[tx]]), 1)
    T.cuda.cta_sync()
    if tx < 4:
        B[tx] = S[tx]

# variant: counted_without_barrier of counted
#   without 1: "T.cuda.cta_sync()"
#   fault: data race in kernel `counted_without_barrier_kernel`: updates `S[0]` before any thread has written it; a write comes later


# What another block of the cluster writes here: the barrier of the block does not wait for it.
# sim: given
#   B: int32[2x32] = 0 -> (1 - i) * 32 + j
@T.prim_func
def given(B: T.Buffer((2, 32), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "int32")
    there: T.let = T.ptx.mapa(S.ptr_to([tx]), 1 - rank, "shared::cluster", "u32", "uint32")
    T.cuda.cluster_sync()
    T.ptx.st(there, rank * 32 + tx, space="shared::cluster", ptx_type="s32")
    T.cuda.cluster_sync()
    B[bx, tx] = S[tx]

# variant: given_behind_the_blocks_barrier of given
#   replace 2: "T.cuda.cluster_sync()" -> "T.cuda.cta_sync()"
#   fault: of rank 0 of the cluster, which thread (0, 0, 0) of block (0, 0, 0) read, and no cluster barrier orders the two
