# Rings of slots that bulk copies fill, right and with one mistake each.
from tvm.script import tirx as T


# A ring of two slots that is gone round more than three times: bulk copies fill it, a warp empties it.
# sim: ring
#   A: float32[7x32] = i * 32 + j
#   B: float32[32] = 0 -> 672 + i * 7
#   seeds: 6
@T.prim_func
def ring(A: T.Buffer((7, 32), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((2, 32), "float32", align=128)
    full = T.alloc_shared((2,), "uint64")
    empty = T.alloc_shared((2,), "uint64")
    if tx == 0:
        for s in T.unroll(2):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(empty.ptr_to([s]), 32)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx < 32:
        if tx == 0:
            for k in range(7):
                T.ptx.mbarrier.try_wait(empty.ptr_to([k % 2]), k // 2 % 2 ^ 1)
                T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([k % 2]), 128)
                T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([k % 2, 0]), A.ptr_to([k, 0]), 128, full.ptr_to([k % 2]))
    else:
        sum: T.float32 = 0.0
        for k in range(7):
            T.ptx.mbarrier.try_wait(full.ptr_to([k % 2]), k // 2 % 2)
            sum += S[k % 2, tx - 32]
            T.ptx.mbarrier.arrive(empty.ptr_to([k % 2]))
        B[tx - 32] = sum


# The slots count as full in the beginning.
# sim: ring_first_empty_parity
#   A: float32[7x32] = i * 32 + j
#   B: float32[32] = 0
#   fault: no thread can run any more
@T.prim_func
def ring_first_empty_parity(A: T.Buffer((7, 32), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((2, 32), "float32", align=128)
    full = T.alloc_shared((2,), "uint64")
    empty = T.alloc_shared((2,), "uint64")
    if tx == 0:
        for s in T.unroll(2):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(empty.ptr_to([s]), 32)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx < 32:
        if tx == 0:
            for k in range(7):
                T.ptx.mbarrier.try_wait(empty.ptr_to([k % 2]), k // 2 % 2)
                T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([k % 2]), 128)
                T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([k % 2, 0]), A.ptr_to([k, 0]), 128, full.ptr_to([k % 2]))
    else:
        sum: T.float32 = 0.0
        for k in range(7):
            T.ptx.mbarrier.try_wait(full.ptr_to([k % 2]), k // 2 % 2)
            sum += S[k % 2, tx - 32]
            T.ptx.mbarrier.arrive(empty.ptr_to([k % 2]))
        B[tx - 32] = sum


# The parity does not change.
# sim: ring_constant_parity
#   A: float32[7x32] = i * 32 + j
#   B: float32[32] = 0
#   fault: reads `S[
#   seeds: 12
@T.prim_func
def ring_constant_parity(A: T.Buffer((7, 32), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((2, 32), "float32", align=128)
    full = T.alloc_shared((2,), "uint64")
    empty = T.alloc_shared((2,), "uint64")
    if tx == 0:
        for s in T.unroll(2):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(empty.ptr_to([s]), 32)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx < 32:
        if tx == 0:
            for k in range(7):
                T.ptx.mbarrier.try_wait(empty.ptr_to([k % 2]), k // 2 % 2 ^ 1)
                T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([k % 2]), 128)
                T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([k % 2, 0]), A.ptr_to([k, 0]), 128, full.ptr_to([k % 2]))
    else:
        sum: T.float32 = 0.0
        for k in range(7):
            T.ptx.mbarrier.try_wait(full.ptr_to([k % 2]), 0)
            sum += S[k % 2, tx - 32]
            T.ptx.mbarrier.arrive(empty.ptr_to([k % 2]))
        B[tx - 32] = sum


# The parity changes as if there were three slots.
# sim: ring_parity_of_three
#   A: float32[7x32] = i * 32 + j
#   B: float32[32] = 0
#   fault: no thread can run any more
@T.prim_func
def ring_parity_of_three(A: T.Buffer((7, 32), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((2, 32), "float32", align=128)
    full = T.alloc_shared((2,), "uint64")
    empty = T.alloc_shared((2,), "uint64")
    if tx == 0:
        for s in T.unroll(2):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(empty.ptr_to([s]), 32)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx < 32:
        if tx == 0:
            for k in range(7):
                T.ptx.mbarrier.try_wait(empty.ptr_to([k % 2]), k // 2 % 2 ^ 1)
                T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([k % 2]), 128)
                T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([k % 2, 0]), A.ptr_to([k, 0]), 128, full.ptr_to([k % 2]))
    else:
        sum: T.float32 = 0.0
        for k in range(7):
            T.ptx.mbarrier.try_wait(full.ptr_to([k % 2]), k // 3 % 2)
            sum += S[k % 2, tx - 32]
            T.ptx.mbarrier.arrive(empty.ptr_to([k % 2]))
        B[tx - 32] = sum


# The slot is given back before it is read.
# sim: ring_empty_before_read
#   A: float32[7x32] = i * 32 + j
#   B: float32[32] = 0
#   fault: the bulk copy writes byte
@T.prim_func
def ring_empty_before_read(A: T.Buffer((7, 32), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((2, 32), "float32", align=128)
    full = T.alloc_shared((2,), "uint64")
    empty = T.alloc_shared((2,), "uint64")
    if tx == 0:
        for s in T.unroll(2):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(empty.ptr_to([s]), 32)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx < 32:
        if tx == 0:
            for k in range(7):
                T.ptx.mbarrier.try_wait(empty.ptr_to([k % 2]), k // 2 % 2 ^ 1)
                T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([k % 2]), 128)
                T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([k % 2, 0]), A.ptr_to([k, 0]), 128, full.ptr_to([k % 2]))
    else:
        sum: T.float32 = 0.0
        for k in range(7):
            T.ptx.mbarrier.try_wait(full.ptr_to([k % 2]), k // 2 % 2)
            T.ptx.mbarrier.arrive(empty.ptr_to([k % 2]))
            sum += S[k % 2, tx - 32]
        B[tx - 32] = sum


# The slot is empty when one of 32 has read it.
# sim: ring_empty_of_one
#   A: float32[7x32] = i * 32 + j
#   B: float32[32] = 0
#   fault: arrives 32 times at an mbarrier whose phase 0 waits for 1 more of its 1 arrivals
@T.prim_func
def ring_empty_of_one(A: T.Buffer((7, 32), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((2, 32), "float32", align=128)
    full = T.alloc_shared((2,), "uint64")
    empty = T.alloc_shared((2,), "uint64")
    if tx == 0:
        for s in T.unroll(2):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(empty.ptr_to([s]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx < 32:
        if tx == 0:
            for k in range(7):
                T.ptx.mbarrier.try_wait(empty.ptr_to([k % 2]), k // 2 % 2 ^ 1)
                T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([k % 2]), 128)
                T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([k % 2, 0]), A.ptr_to([k, 0]), 128, full.ptr_to([k % 2]))
    else:
        sum: T.float32 = 0.0
        for k in range(7):
            T.ptx.mbarrier.try_wait(full.ptr_to([k % 2]), k // 2 % 2)
            sum += S[k % 2, tx - 32]
            T.ptx.mbarrier.arrive(empty.ptr_to([k % 2]))
        B[tx - 32] = sum


# The other slot is given back.
# sim: ring_other_slot
#   A: float32[7x32] = i * 32 + j
#   B: float32[32] = 0
#   fault: for parity 1 of the mbarrier `empty[1]`
#   seeds: 16
@T.prim_func
def ring_other_slot(A: T.Buffer((7, 32), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((2, 32), "float32", align=128)
    full = T.alloc_shared((2,), "uint64")
    empty = T.alloc_shared((2,), "uint64")
    if tx == 0:
        for s in T.unroll(2):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(empty.ptr_to([s]), 32)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx < 32:
        if tx == 0:
            for k in range(7):
                T.ptx.mbarrier.try_wait(empty.ptr_to([k % 2]), k // 2 % 2 ^ 1)
                T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([k % 2]), 128)
                T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([k % 2, 0]), A.ptr_to([k, 0]), 128, full.ptr_to([k % 2]))
    else:
        sum: T.float32 = 0.0
        for k in range(7):
            T.ptx.mbarrier.try_wait(full.ptr_to([k % 2]), k // 2 % 2)
            sum += S[k % 2, tx - 32]
            T.ptx.mbarrier.arrive(empty.ptr_to([(k + 1) % 2]))
        B[tx - 32] = sum


# One lane gives the slot back for all, without having met them.
# sim: ring_one_lane_for_the_warp
#   A: float32[7x32] = i * 32 + j
#   B: float32[32] = 0
#   fault: the bulk copy writes byte
@T.prim_func
def ring_one_lane_for_the_warp(A: T.Buffer((7, 32), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((2, 32), "float32", align=128)
    full = T.alloc_shared((2,), "uint64")
    empty = T.alloc_shared((2,), "uint64")
    if tx == 0:
        for s in T.unroll(2):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(empty.ptr_to([s]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx < 32:
        if tx == 0:
            for k in range(7):
                T.ptx.mbarrier.try_wait(empty.ptr_to([k % 2]), k // 2 % 2 ^ 1)
                T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([k % 2]), 128)
                T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([k % 2, 0]), A.ptr_to([k, 0]), 128, full.ptr_to([k % 2]))
    else:
        sum: T.float32 = 0.0
        for k in range(7):
            T.ptx.mbarrier.try_wait(full.ptr_to([k % 2]), k // 2 % 2)
            sum += S[k % 2, tx - 32]
            if tx == 32:
                T.ptx.mbarrier.arrive(empty.ptr_to([k % 2]))
        B[tx - 32] = sum


# One lane gives the slot back for all: they have met.
# sim: ring_one_lane_after_meeting
#   A: float32[7x32] = i * 32 + j
#   B: float32[32] = 0 -> 672 + i * 7
#   seeds: 6
@T.prim_func
def ring_one_lane_after_meeting(A: T.Buffer((7, 32), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((2, 32), "float32", align=128)
    full = T.alloc_shared((2,), "uint64")
    empty = T.alloc_shared((2,), "uint64")
    if tx == 0:
        for s in T.unroll(2):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(empty.ptr_to([s]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx < 32:
        if tx == 0:
            for k in range(7):
                T.ptx.mbarrier.try_wait(empty.ptr_to([k % 2]), k // 2 % 2 ^ 1)
                T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([k % 2]), 128)
                T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([k % 2, 0]), A.ptr_to([k, 0]), 128, full.ptr_to([k % 2]))
    else:
        sum: T.float32 = 0.0
        for k in range(7):
            T.ptx.mbarrier.try_wait(full.ptr_to([k % 2]), k // 2 % 2)
            sum += S[k % 2, tx - 32]
            T.cuda.warp_sync()
            if tx == 32:
                T.ptx.mbarrier.arrive(empty.ptr_to([k % 2]))
        B[tx - 32] = sum


# The copy fills the other slot.
# sim: ring_of_wrong_slot
#   A: float32[7x32] = i * 32 + j
#   B: float32[32] = 0
#   fault: which an asynchronous operation writes whose completion this thread has not waited for
@T.prim_func
def ring_of_wrong_slot(A: T.Buffer((7, 32), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((2, 32), "float32", align=128)
    full = T.alloc_shared((2,), "uint64")
    empty = T.alloc_shared((2,), "uint64")
    if tx == 0:
        for s in T.unroll(2):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(empty.ptr_to([s]), 32)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx < 32:
        if tx == 0:
            for k in range(7):
                T.ptx.mbarrier.try_wait(empty.ptr_to([k % 2]), k // 2 % 2 ^ 1)
                T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([k % 2]), 128)
                T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([(k + 1) % 2, 0]), A.ptr_to([k, 0]), 128, full.ptr_to([k % 2]))
    else:
        sum: T.float32 = 0.0
        for k in range(7):
            T.ptx.mbarrier.try_wait(full.ptr_to([k % 2]), k // 2 % 2)
            sum += S[k % 2, tx - 32]
            T.ptx.mbarrier.arrive(empty.ptr_to([k % 2]))
        B[tx - 32] = sum


# The arrival of the consumers is relaxed.
# sim: ring_relaxed_empty
#   A: float32[7x32] = i * 32 + j
#   B: float32[32] = 0
#   fault: nothing orders the two
@T.prim_func
def ring_relaxed_empty(A: T.Buffer((7, 32), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((2, 32), "float32", align=128)
    full = T.alloc_shared((2,), "uint64")
    empty = T.alloc_shared((2,), "uint64")
    if tx == 0:
        for s in T.unroll(2):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(empty.ptr_to([s]), 32)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx < 32:
        if tx == 0:
            for k in range(7):
                T.ptx.mbarrier.try_wait(empty.ptr_to([k % 2]), k // 2 % 2 ^ 1)
                T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([k % 2]), 128)
                T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([k % 2, 0]), A.ptr_to([k, 0]), 128, full.ptr_to([k % 2]))
    else:
        sum: T.float32 = 0.0
        for k in range(7):
            T.ptx.mbarrier.try_wait(full.ptr_to([k % 2]), k // 2 % 2)
            sum += S[k % 2, tx - 32]
            T.ptx.mbarrier.arrive(empty.ptr_to([k % 2]), sem="relaxed", scope="cta")
        B[tx - 32] = sum


# Threads clear the array, then a copy fills a part of it: their writes are fenced before.
# sim: cleared
#   A: float32[32] = i + 1
#   B: float32[64] = 0 -> (i + 1) * (i < 32)
@T.prim_func
def cleared(A: T.Buffer((32,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32", align=128)
    full = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    S[tx] = T.float32(0)
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 128)
        T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([0]), A.ptr_to([0]), 128, full.ptr_to([0]))
    T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)
    B[tx] = S[tx]


# Without the fence the zeros may come after the copy.
# sim: cleared_without_fence
#   A: float32[32] = i + 1
#   B: float32[64] = 0
#   fault: the bulk copy writes byte 0 of shared `S`, which thread (0, 0, 0) wrote, and the write is of the generic proxy
@T.prim_func
def cleared_without_fence(A: T.Buffer((32,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32", align=128)
    full = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    S[tx] = T.float32(0)
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 128)
        T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([0]), A.ptr_to([0]), 128, full.ptr_to([0]))
    T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)
    B[tx] = S[tx]
