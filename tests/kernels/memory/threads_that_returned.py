# No barrier orders what a thread stored before it returned: a barrier waits for, and orders, threads that have not exited
# (PTX ISA, "bar, barrier", "bar.warp.sync").
from tvm.script import tirx as T


# sim: stored_before_the_return
#   A: float32[64] = i
#   B: float32[64] = 0
#   fault: no barrier orders the two
#   seeds: 4
@T.prim_func
def stored_before_the_return(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32")
    S[tx] = A[tx]
    if tx >= 32:
        T.evaluate(T.thread_return())
    T.cuda.cta_sync()
    B[tx] = S[tx + 32]

# The store is ordered before the thread returns.
# sim: behind_a_barrier
#   A: float32[64] = i
#   B: float32[64] = 0 -> i + 32 if i < 32 else 0
#   seeds: 4
@T.prim_func
def behind_a_barrier(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32")
    S[tx] = A[tx]
    T.cuda.cta_sync()
    if tx >= 32:
        T.evaluate(T.thread_return())
    T.cuda.cta_sync()
    B[tx] = S[tx + 32]

# The last of the two stores is not.
# variant: stored_again of behind_a_barrier
#   replace: "    if tx >= 32:\n" -> "    if tx >= 32:\n        S[tx] = A[tx] + T.float32(1)\n"
#   fault: no barrier orders the two
#   seeds: 4

# Global memory.
# variant: stored_in_global_memory of behind_a_barrier
#   replace: "        T.evaluate" -> "        B[tx - 32] = A[tx] + T.float32(1)\n        T.evaluate"
#   fault: no barrier orders the two
#   seeds: 4

# Half of a warp returns.
# variant: half_of_a_warp of behind_a_barrier
#   replace: "    if tx >= 32:" -> "    if tx >= 48 or tx < 16:"
#   replace: "    B[tx] = S[tx + 32]" -> "    B[tx] = S[(tx + 32) % 64]"
#   B: float32[64] = 0 -> (i + 32) % 64 if 16 <= i < 48 else 0
#   seeds: 4

# variant: half_of_a_warp_stores of behind_a_barrier
#   replace: "    if tx >= 32:\n" -> "    if tx >= 48 or tx < 16:\n        S[tx] = A[tx] + T.float32(1)\n"
#   replace: "    B[tx] = S[tx + 32]" -> "    B[tx] = S[(tx + 32) % 64]"
#   fault: race
#   seeds: 4

# What it read may be written over: a thread does not return before its loads are done.
# variant: read_before_the_return of behind_a_barrier
#   replace: "        T.evaluate" -> "        B[tx] = S[tx - 32]\n        T.evaluate"
#   replace: "    B[tx] = S[tx + 32]" -> "    S[tx] = T.float32(7)\n    B[tx] = S[tx] + T.float32(1)"
#   B: float32[64] = 0 -> 8 if i < 32 else i - 32
#   seeds: 4


# An arrival at an mbarrier orders it.
# sim: behind_an_arrival
#   A: float32[64] = i
#   B: float32[64] = 0 -> i + 32 if i < 32 else 0
#   seeds: 4
@T.prim_func
def behind_an_arrival(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32")
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 32)
    T.cuda.cta_sync()
    S[tx] = A[tx]
    if tx >= 32:
        T.ptx.mbarrier.arrive(bar.ptr_to([0]))
        T.evaluate(T.thread_return())
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    T.cuda.cta_sync()
    B[tx] = S[tx + 32]

# variant: arrival_before_the_store of behind_an_arrival
#   without: "    S[tx] = A[tx]"
#   replace: "        T.evaluate" -> "        S[tx] = A[tx]\n        T.evaluate"
#   fault: S
#   seeds: 4


# The barrier of a warp.
# sim: lanes_of_a_warp
#   A: float32[32] = i
#   B: float32[32] = 0
#   fault: no warp or block barrier orders the two
#   seeds: 4
@T.prim_func
def lanes_of_a_warp(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32,), "float32")
    S[tx] = A[tx]
    if tx >= 16:
        T.evaluate(T.thread_return())
    T.cuda.warp_sync()
    B[tx] = S[tx + 16]

# variant: lanes_that_met of lanes_of_a_warp
#   replace: "    if tx >= 16:" -> "    T.cuda.warp_sync()\n    if tx >= 16:"
#   B: float32[32] = 0 -> i + 16 if i < 16 else 0
#   seeds: 4
