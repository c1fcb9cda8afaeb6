# error: a private function has no "global_symbol"
# error: --> error_private_symbol.py:8:5
# private=True contradicts an exported name.
from tvm.script import tirx as T

@T.prim_func(private=True)
def kernel(A: T.Buffer((32,), "float32")):
    T.func_attr({"global_symbol": "g"})
    T.device_entry()
    tx = T.thread_id([32])
    A[tx] = 0.0
