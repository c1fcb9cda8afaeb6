# Reports name the cause: the mbarrier, the bytes, the wait or the copy that is wrong.
from tvm.script import tirx as T


# Three copies of one loop, each at its own mbarrier.
# sim: ring
#   A: float32[3x64] = i * 64 + j
#   B: float32[64] = 0 -> i
@T.prim_func
def ring(A: T.Buffer((3, 64), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((3, 64), "float32", align=128)
    full = T.alloc_shared((3,), "uint64")
    if tx == 0:
        for s in T.unroll(3):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        for s in T.serial(3):
            T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([s]), 256)
            T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([s, 0]), A.ptr_to([s, 0]), 256, full.ptr_to([s]))
    T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)
    B[tx] = S[0, tx]
    T.ptx.mbarrier.try_wait(full.ptr_to([1]), 0)
    T.ptx.mbarrier.try_wait(full.ptr_to([2]), 0)

# variant: ring_without_a_wait of ring
#   without: "T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)"
#   fault: it completes at the mbarrier `full[0]`


# Two copies share a phase, which expects the bytes of one.
# sim: shared_phase
#   A: float32[128] = i
#   B: float32[64] = 0 -> 2 * i + 64
@T.prim_func
def shared_phase(A: T.Buffer((128,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((128,), "float32", align=128)
    full = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 512)
        T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([0]), A.ptr_to([0]), 256, full.ptr_to([0]))
        T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([64]), A.ptr_to([64]), 256, full.ptr_to([0]))
    T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)
    B[tx] = S[tx] + S[tx + 64]

# variant: shared_phase_half_expected of shared_phase
#   replace: "full.ptr_to([0]), 512)" -> "full.ptr_to([0]), 256)"
#   fault: whose phase 0 was complete without it: the phase expects 256 bytes (expect_tx), and its copies bring 512

# The next arrival comes to a phase that never completes.
# variant: shared_phase_arrival_behind of shared_phase
#   replace: "full.ptr_to([0]), 512)" -> "full.ptr_to([0]), 384)"
#   replace: "    B[tx] = S[tx] + S[tx + 64]" -> "    T.ptx.mbarrier.arrive(full.ptr_to([0]))"
#   fault: it expects 384 bytes (expect_tx), and copies have brought 512


# A thread reads what its copy writes: it has waited until the source was read.
# sim: written_by_a_copy
#   A: float32[64] = i
#   B: float32[64] = 0 -> i + (5 if i == 3 else 0)
@T.prim_func
def written_by_a_copy(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32", align=128)
    S[tx] = A[tx]
    T.ptx.fence.proxy_async("shared::cta")
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.cp_async_bulk_s2g(B.ptr_to([0]), S.ptr_to([0]), 256)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, False)
        B[3] = B[3] + T.float32(5)

# variant: read_by_a_copy of written_by_a_copy
#   replace: "wait_group(0, False)" -> "wait_group(0)"
#   fault: cp.async.bulk.wait_group.read waits until the operation has read its source, not until it has written


# Each block multicasts a quarter.
# sim: quarters
#   A: float32[64] = i
#   B: float32[4x64] = 0 -> j
@T.prim_func
def quarters(A: T.Buffer((64,), "float32"), B: T.Buffer((4, 64), "float32")):
    T.device_entry()
    T.cluster_id([1])
    rank = T.cta_id_in_cluster([4])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32", align=128)
    full = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cluster_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 256)
        T.ptx.cp_async_bulk_g2s_cluster(S.ptr_to([rank * 16]), A.ptr_to([rank * 16]), 64, full.ptr_to([0]), multicast=True,
                                        cta_mask=15)
    T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)
    B[rank, tx] = S[tx]
    T.cuda.cluster_sync()

# variant: quarters_for_three of quarters
#   replace: "cta_mask=15" -> "cta_mask=11"
#   fault: 64 threads wait for parity 0 of the mbarrier `full[0]`, whose phase 0 (parity 0) waits for 0 of 1 arrivals and 256 bytes of copies


# A block arrives at the mbarrier of the other one.
# sim: told_by_the_other
#   B: int32[2] = 0 -> i
@T.prim_func
def told_by_the_other(B: T.Buffer((2,), "int32")):
    T.device_entry()
    T.cluster_id([1])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cluster_sync()
    if rank == 0:
        if tx == 0:
            T.ptx.mbarrier.arrive(bar.ptr_to([0]), remote=1)
    else:
        T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    if tx == 0:
        B[rank] = rank
    T.cuda.cluster_sync()

# The report is of the block that waits at its mbarrier.
# variant: told_by_nobody of told_by_the_other
#   replace: "            T.ptx.mbarrier.arrive(bar.ptr_to([0]), remote=1)" -> "            B[0] = 0"
#   fault: no thread can run any more: 32 threads wait for parity 0 of the mbarrier `bar[0]`


# An mbarrier is used for four phases.
# sim: phases
#   B: int32[64] = 0 -> i
@T.prim_func
def phases(B: T.Buffer((64,), "int32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([64])
    bar = T.alloc_shared((1,), "uint64")
    other = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 32)
        T.ptx.mbarrier.init(other.ptr_to([0]), 32)
    T.cuda.cta_sync()
    for i in T.serial(4):
        if tx < 32:
            T.ptx.mbarrier.arrive(bar.ptr_to([0]))
            T.ptx.mbarrier.try_wait(other.ptr_to([0]), i % 2)
        else:
            T.ptx.mbarrier.try_wait(bar.ptr_to([0]), i % 2)
            T.ptx.mbarrier.arrive(other.ptr_to([0]))
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.inval(bar.ptr_to([0]))
        T.ptx.mbarrier.inval(other.ptr_to([0]))
    B[tx] = tx

# Nobody waits for the first phase.
# variant: phases_that_nobody_sees of phases
#   replace: "            T.ptx.mbarrier.try_wait(bar.ptr_to([0]), i % 2)" -> "            if i % 2 == 1:\n                T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 1)"
#   fault: arrives for phase 1 of an mbarrier, and no thread has seen that phase 0 is complete

# variant: used_when_invalid of phases
#   replace: "    B[tx] = tx" -> "        T.ptx.mbarrier.arrive(bar.ptr_to([0]))\n    B[tx] = tx"
#   fault: the mbarrier `bar[0]` is no mbarrier: it has been invalidated (mbarrier.inval)

# A plain store.
# variant: overwritten of phases
#   replace: "    for i in T.serial(4):" -> "    if tx == 0:\n        bar[0] = T.uint64(0)\n    T.cuda.cta_sync()\n    for i in T.serial(4):"
#   fault: thread (0, 0, 0) writes over the mbarrier `bar[0]`, which is valid

# variant: overwritten_at_the_end of phases
#   replace: "        T.ptx.mbarrier.inval(bar.ptr_to([0]))" -> "        bar[0] = T.uint64(0)"
#   fault: thread (0, 0, 0) writes over the mbarrier `bar[0]`, which is valid

# variant: initialized_under_a_waiter of phases
#   replace: "            T.ptx.mbarrier.arrive(bar.ptr_to([0]))" -> "            if tx == 0:\n                T.cuda.nano_sleep(T.uint64(100))\n                T.ptx.mbarrier.init(bar.ptr_to([0]), 32)\n            T.ptx.mbarrier.arrive(bar.ptr_to([0]))"
#   fault: the mbarrier `bar[0]`


# setmaxnreg: two warpgroups take what the third returns.
# sim: budgets
#   B: int32[384] = 0 -> i
@T.prim_func
def budgets(B: T.Buffer((384,), "int32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([384])
    if tx < 128:
        T.ptx.setmaxnreg(False, 40)
    else:
        T.ptx.setmaxnreg(True, 232)
    T.cuda.cta_sync()
    B[tx] = tx

# The report is at the request, whatever waits behind it.
# variant: too_many of budgets
#   replace: "(True, 232)" -> "(True, 240)"
#   fault: wait for registers (setmaxnreg.inc 240): the warps of the block ask for 66560 registers together, and the block has 64512

# variant: dec_above of budgets
#   replace: "(False, 40)" -> "(False, 176)"
#   fault: setmaxnreg.dec to 176 registers, but the warp has 168 from its launch: this is undefined

# variant: inc_below of budgets
#   replace: "(True, 232)" -> "(True, 160)"
#   fault: setmaxnreg.inc to 160 registers, but the warp has 168 from its launch: this is undefined
