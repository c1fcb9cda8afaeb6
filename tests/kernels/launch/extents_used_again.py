# The count of blocks is computed in the kernel too: one name stands for both there, and the host computes the extent.
from __future__ import annotations
from tvm.script import tirx as T

WIDTH = 8


# sim: counts
#   X: int32[3x19] = 0 -> 2
@T.prim_func
def counts(x: T.handle):
    rows, columns = T.int32(), T.int32()
    X = T.match_buffer(x, (rows, columns), "int32")
    T.device_entry()
    row, block = T.cta_id([rows, T.ceildiv(columns, WIDTH)])
    tid = T.thread_id([WIDTH])
    if block * WIDTH + tid < columns:
        X[row, block * WIDTH + tid] = T.ceildiv(columns, WIDTH) - 1
