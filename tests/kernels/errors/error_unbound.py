# error: `w` has no value: no argument determines it
# error: --> error_unbound.py:11:28
# error: note: `w` is declared here
# error: make it a parameter (`w: T.int32`)
from tvm.script import tirx as T


@T.prim_func
def kernel(d: T.handle, A: T.Buffer((4,), "float32")):
    w = T.int32()
    D = T.match_buffer(d, (w * 2,), "float32")
    T.device_entry()
    tx = T.thread_id([4])
    A[tx] = D[tx]
