# A loop without an end: "Stop" ends it at once, and the simulator ends it after its step limit.
from tvm.script import tirx as T


# sim: endless
#   A: int32[1] = 1
@T.prim_func
def endless(A: T.Buffer((1,), "int32")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([1])
    while A[0] != 0:
        A[0] = 1
