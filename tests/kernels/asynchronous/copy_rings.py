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
# variant: ring_first_empty_parity of ring
#   replace: "/ 2 % 2 ^ 1)" -> "/ 2 % 2)"
#   fault: no thread can run any more

# The parity does not change.
# variant: ring_constant_parity of ring
#   replace: ", k // 2 % 2)" -> ", 0)"
#   fault: reads `S[
#   seeds: 12

# The parity changes as if there were three slots.
# variant: ring_parity_of_three of ring
#   replace: ", k // 2 % 2)" -> ", k // 3 % 2)"
#   fault: arrives for phase 1 of an mbarrier, and no thread has seen that phase 0 is complete


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
# variant: ring_empty_of_one of ring
#   replace: "empty.ptr_to([s]), 32)" -> "empty.ptr_to([s]), 1)"
#   fault: arrives 32 times at an mbarrier whose phase 0 waits for 1 more of its 1 arrivals

# The other slot is given back.
# variant: ring_other_slot of ring
#   replace: "empty.ptr_to([k % 2]))" -> "empty.ptr_to([(k + 1) % 2]))"
#   fault: (the mbarrier `empty[1]`)
#   seeds: 16

# One lane gives the slot back for all, without having met them.
# variant: ring_one_lane_for_the_warp of ring
#   replace: "empty.ptr_to([s]), 32)" -> "empty.ptr_to([s]), 1)"
#   replace: "T.ptx.mbarrier.arrive(empty.ptr_to([k % 2]))" -> "if tx == 32:\n                T.ptx.mbarrier.arrive(empty.ptr_to([k % 2]))"
#   fault: the bulk copy writes byte


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
# variant: ring_of_wrong_slot of ring
#   replace: "S.ptr_to([k %" -> "S.ptr_to([(k + 1) %"
#   fault: which an asynchronous operation writes, and this thread has not waited for its completion

# The arrival of the consumers is relaxed.
# variant: ring_relaxed_empty of ring
#   replace: "empty.ptr_to([k % 2]))" -> 'empty.ptr_to([k % 2]), sem="relaxed", scope="cta")'
#   fault: nothing orders the two


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
# variant: cleared_without_fence of cleared
#   without: 'T.ptx.fence.proxy_async("shared::cta")'
#   fault: the bulk copy writes byte 0 of shared `S`, which thread (0, 0, 0) wrote, and the write is of the generic proxy
