# error: tile: the 8 elements of dimension 0 are not divisible by 3
# error: --> error_tile_factors.py:10:9
# The factors of a dimension multiply to its extent.
from tvm.script import tirx as T

@T.prim_func
def kernel(A: T.Buffer((8, 4), "float32"), B: T.Buffer((4,), "float32")):
    T.device_entry()
    tx = T.thread_id([4])
    V = A.tile(0, (3, -1))[0, :]
    B[tx] = V[0, tx]
