# error: T.warp_id needs whole warps, but a CTA has 48 threads
# error: --> error_whole_warps.py:10:9
# error: a warp has 32 threads: make the number of threads a multiple of 32
# Warp ids need whole warps.
from tvm.script import tirx as T

@T.prim_func
def kernel(A: T.Buffer((48,), "float32")):
    T.device_entry()
    w = T.warp_id([2])
    tx = T.thread_id([48])
    A[tx] = T.cast(w, "float32")
