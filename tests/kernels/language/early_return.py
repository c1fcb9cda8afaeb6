# Threads of a kernel end early by `return`; the value, which C++ code returns to nobody, is dropped.
from tvm.script import tirx as T


# sim: ends
#   A: int32[64] = i
#   B: int32[64] = 7 -> 7 if i < 40 and i % 3 == 0 else (i if i < 40 else 7)
@T.prim_func
def ends(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    if tx >= 40:
        return 0
    for i in T.serial(4):
        if tx % 3 == 0:
            return 0
        B[tx] = A[tx]
