# Threads of a block exchange elements through shared memory. A barrier is missing: the run finds the race.
# Insert the line `T.cuda.cta_sync()` between the two accesses to S, and run again.
from tvm.script import tirx as T


# sim: reverse
#   A: float32[64] = i
#   B: float32[64] = 0 -> 63 - i
@T.prim_func
def reverse(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((64,), "float32")
    S[tx] = A[tx]
    B[tx] = S[63 - tx]
