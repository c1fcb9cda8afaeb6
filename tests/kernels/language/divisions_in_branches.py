# test: cuda sm_90a
# A floor division by a scalar takes its remainder twice, so that this has a name: in each branch its own.
from tvm.script import tirx as T


# sim: k
#   A_handle: float32[5x2] = i * 10 + j
#   B: float32[32] = 0 -> (i % 5) * 10 if i < 16 else (i % 5) * 10 + 3
@T.prim_func
def k(A_handle: T.handle, B: T.Buffer((32,), "float32")):
    m = T.int32()
    A = T.match_buffer(A_handle, (m, 2), "float32")
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    B[tx] = T.if_then_else(tx < 16, A[tx % m, 0], A[tx % m, 1] + 2.0)
