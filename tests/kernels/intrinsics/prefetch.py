# test: cuda sm_90a
# test: compile sm_80
# Lines of global memory come to a cache before they are read.
from tvm.script import tirx as T


# sim: both_caches
#   A: int32[128] = i
#   B: int32[64] = 0 -> 2 * i + 64
@T.prim_func
def both_caches(A: T.Buffer((128,), "int32"), B: T.Buffer((64,), "int32")):
    T.device_entry()
    tx = T.thread_id([64])
    T.prefetch(A.ptr_to([tx]), 0, 3, 1)
    T.prefetch(A.ptr_to([64 + tx]), 0, 2, 1)
    B[tx] = A[tx] + A[64 + tx]
