# test: cuda sm_90a
# Waits at an mbarrier that do not acquire: what was written before the arrivals is visible after a fence.
from tvm.script import tirx as T


# sim: fenced
#   A: float32[64] = i
#   B: float32[64] = 0 -> 63 - i
#   seeds: 3
@T.prim_func
def fenced(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32")
    bar = T.alloc_shared((1,), "uint64")
    done: T.uint32
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(64))
    T.cuda.cta_sync()
    S[tx] = A[tx]
    T.ptx.mbarrier.arrive.shared.b64(bar.ptr_to([0]))
    done = T.uint32(0)
    while done == T.uint32(0):
        T.ptx.mbarrier.try_wait.parity.relaxed.cta.shared__cta.b64(done, bar.ptr_to([0]), T.uint32(0))
    T.ptx.fence.acq_rel.cta()
    B[tx] = S[63 - tx]

# variant: unfenced of fenced
#   without: "T.ptx.fence.acq_rel.cta()"
#   fault: race

# An acquiring wait needs no fence.
# variant: acquired of fenced
#   without: "T.ptx.fence.acq_rel.cta()"
#   replace: "try_wait.parity.relaxed.cta" -> "try_wait.parity.acquire.cta"


# sim: waited
#   A: float32[64] = i
#   B: float32[64] = 0 -> 63 - i
#   seeds: 3
@T.prim_func
def waited(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32")
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(64))
    T.cuda.cta_sync()
    S[tx] = A[tx]
    T.ptx.mbarrier.arrive.shared.b64(bar.ptr_to([0]))
    T.cuda.mbarrier_wait_relaxed(bar.ptr_to([0]))
    T.ptx.fence.acq_rel.cta()
    B[tx] = S[63 - tx]

# variant: waited_unfenced of waited
#   without: "T.ptx.fence.acq_rel.cta()"
#   fault: race


# The same for what a bulk copy has written.
# sim: copied
#   A: float32[32] = i
#   B: float32[32] = 0 -> i
#   seeds: 3
@T.prim_func
def copied(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32", align=16)
    bar = T.alloc_shared((1,), "uint64")
    done: T.uint32
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
        T.ptx.fence.mbarrier_init.release.cluster()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), 128)
        T.ptx["cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"](S.ptr_to([0]), A.ptr_to([0]), T.uint32(128),
                                                                               bar.ptr_to([0]))
    done = T.uint32(0)
    while done == T.uint32(0):
        T.ptx.mbarrier.try_wait.parity.relaxed.cta.shared__cta.b64(done, bar.ptr_to([0]), T.uint32(0))
    T.ptx.fence.acq_rel.cta()
    B[tx] = S[tx]

# variant: copied_unfenced of copied
#   without: "T.ptx.fence.acq_rel.cta()"
#   fault: for which this thread has waited by a relaxed wait, which orders nothing
