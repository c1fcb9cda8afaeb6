# Tiles that leave by bulk copies, and groups of cp.async, right and with one mistake each.
from tvm.script import tirx as T


# Tiles leave by bulk copies; the shared array is written again for each.
# sim: stores
#   A: float32[4x64] = i * 64 + j
#   B: float32[4x64] = 0 -> A[i][j] * 2
#   seeds: 6
@T.prim_func
def stores(A: T.Buffer((4, 64), "float32"), B: T.Buffer((4, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32", align=128)
    for k in range(4):
        if tx == 0:
            T.ptx.cp_async.bulk.wait_group(0, True)
        T.cuda.cta_sync()
        S[tx] = A[k, tx] * T.float32(2)
        T.ptx.fence.proxy_async("shared::cta")
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.cp_async_bulk_s2g(B.ptr_to([k, 0]), S.ptr_to([0]), 256)
            T.ptx.cp_async.bulk.commit_group()
    if tx == 0:
        T.ptx.cp_async.bulk.wait_group(0, False)

# Thread 0 alone fences what it has written, before the barrier.
# variant: stores_fence_of_thread_0 of stores
#   replace: 'T.ptx.fence.proxy_async("shared::cta")' -> 'if tx == 0:\n            T.ptx.fence.proxy_async("shared::cta")'
#   fault: no fence.proxy.async makes it visible

# The fence stands before the write.
# variant: stores_fence_before_write of stores
#   replace 1: "T.cuda.cta_sync()" -> 'T.cuda.cta_sync()\n        T.ptx.fence.proxy_async("shared::cta")'
#   without 2: 'T.ptx.fence.proxy_async("shared::cta")'
#   fault: no fence.proxy.async makes it visible


# Thread 0 fences behind the barrier, for all that it has been told of.
# sim: stores_fence_after_barrier
#   A: float32[4x64] = i * 64 + j
#   B: float32[4x64] = 0 -> A[i][j] * 2
@T.prim_func
def stores_fence_after_barrier(A: T.Buffer((4, 64), "float32"), B: T.Buffer((4, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32", align=128)
    for k in range(4):
        if tx == 0:
            T.ptx.cp_async.bulk.wait_group(0, True)
        T.cuda.cta_sync()
        S[tx] = A[k, tx] * T.float32(2)
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.fence.proxy_async("shared::cta")
            T.ptx.cp_async_bulk_s2g(B.ptr_to([k, 0]), S.ptr_to([0]), 256)
            T.ptx.cp_async.bulk.commit_group()
    if tx == 0:
        T.ptx.cp_async.bulk.wait_group(0, False)

# One group too few is waited for.
# variant: stores_wait_for_all_but_one of stores
#   replace: "T.ptx.cp_async.bulk.wait_group(0, True" -> "T.ptx.cp_async.bulk.wait_group(1, True"
#   fault: which an asynchronous operation reads

# No group is committed.
# variant: stores_without_commit of stores
#   without: "T.ptx.cp_async.bulk.commit_group()"
#   fault: which an asynchronous operation reads

# The others go on without having met the thread that waits.
# variant: stores_wait_alone of stores
#   without 1: "T.cuda.cta_sync()"
#   fault: the bulk copy reads byte

# The block ends while the copy reads its memory.
# variant: stores_left_alone of stores
#   replace: "if tx == 0:\n        T.ptx.cp_async.bulk.wait_group(0, False)" -> "T.cuda.cta_sync()"
#   fault: the block ends while an asynchronous operation reads its shared memory


# Waiting for the reads is enough at the end.
# sim: stores_wait_for_reads_at_end
#   A: float32[4x64] = i * 64 + j
#   B: float32[4x64] = 0 -> A[i][j] * 2
@T.prim_func
def stores_wait_for_reads_at_end(A: T.Buffer((4, 64), "float32"), B: T.Buffer((4, 64), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32", align=128)
    for k in range(4):
        if tx == 0:
            T.ptx.cp_async.bulk.wait_group(0, True)
        T.cuda.cta_sync()
        S[tx] = A[k, tx] * T.float32(2)
        T.ptx.fence.proxy_async("shared::cta")
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.cp_async_bulk_s2g(B.ptr_to([k, 0]), S.ptr_to([0]), 256)
            T.ptx.cp_async.bulk.commit_group()
    if tx == 0:
        T.ptx.cp_async.bulk.wait_group(0, True)

# Another thread waits than the one whose groups they are.
# variant: stores_wait_by_another of stores
#   replace 1: "if tx == 0:" -> "if tx == 32:"
#   fault: which an asynchronous operation reads


# What a bulk copy has left in global memory is read by the thread that waited for its writes.
# sim: read_back
#   A: float32[64] = i
#   B: float32[64] = 0 -> i + 1
#   C: float32[1] = 0 -> 2016 + 64
@T.prim_func
def read_back(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), C: T.Buffer((1,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32", align=128)
    S[tx] = A[tx] + T.float32(1)
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.cp_async_bulk_s2g(B.ptr_to([0]), S.ptr_to([0]), 256)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)
        s: T.float32 = 0.0
        for i in range(64):
            s += B[i]
        C[0] = s

# It has waited for the reads of shared memory alone.
# variant: read_back_after_reads of read_back
#   replace: "T.ptx.cp_async.bulk.wait_group(0, False)" -> "T.ptx.cp_async.bulk.wait_group(0, True)"
#   fault: which an asynchronous operation writes


# Three slots filled by cp.async, two tiles ahead; a group is committed in each turn, an empty one too.
# sim: groups
#   A: float32[6x32] = i * 32 + j
#   B: float32[32] = 0 -> 15 * 32 + (31 - i) * 6
#   seeds: 6
@T.prim_func
def groups(A: T.Buffer((6, 32), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((3, 32), "float32", align=16)
    for k in T.unroll(2):
        if tx < 8:
            T.ptx.cp_async(S.ptr_to([k, tx * 4]), A.ptr_to([k, tx * 4]), 16)
        T.ptx.cp_async.commit_group()
    sum: T.float32 = 0.0
    for k in range(6):
        T.ptx.cp_async.wait_group(1)
        T.cuda.cta_sync()
        if k < 4:
            if tx < 8:
                T.ptx.cp_async(S.ptr_to([(k + 2) % 3, tx * 4]), A.ptr_to([k + 2, tx * 4]), 16)
        T.ptx.cp_async.commit_group()
        sum += S[k % 3, 31 - tx]
    B[tx] = sum

# No empty groups in the end: the count is off.
# variant: groups_without_empty_ones of groups
#   replace 2: "T.ptx.cp_async.commit_group()" -> "    T.ptx.cp_async.commit_group()"
#   fault: which an asynchronous operation writes

# The barrier stands before the wait.
# variant: groups_barrier_before_wait of groups
#   replace: "for k in range(6):" -> "for k in range(6):\n        T.cuda.cta_sync()"
#   without 2: "T.cuda.cta_sync()"
#   fault: which an asynchronous operation writes

# The slot that is filled is the one that is read.
# variant: groups_of_two_slots of groups
#   replace: "[(k + 2) % 3," -> "[(k + 3) % 3,"
#   fault: nothing orders the two

# The commit stands behind the next wait.
# variant: groups_commit_late of groups
#   without 2: "T.ptx.cp_async.commit_group()"
#   fault: which an asynchronous operation writes


# cp.async tells an mbarrier.
# sim: counted_copies
#   A: float32[32] = i
#   B: float32[32] = 0 -> 31 - i
@T.prim_func
def counted_copies(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=16)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 8)
    T.cuda.cta_sync()
    if tx < 8:
        T.ptx.cp_async(S.ptr_to([tx * 4]), A.ptr_to([tx * 4]), 16)
        T.ptx.cp_async.mbarrier.arrive(bar.ptr_to([0]), noinc=True)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    B[tx] = S[31 - tx]

# The arrival stands before the copy.
# variant: counted_copies_arrive_first of counted_copies
#   replace: "if tx < 8:" -> "if tx < 8:\n        T.ptx.cp_async.mbarrier.arrive(bar.ptr_to([0]), noinc=True)"
#   without 2: "T.ptx.cp_async.mbarrier.arrive(bar.ptr_to([0]), noinc=True)"
#   fault: which an asynchronous operation writes
