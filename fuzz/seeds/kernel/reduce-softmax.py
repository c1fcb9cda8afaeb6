"""Reductions: over a warp, a block, and the rows of a matrix."""
from __future__ import annotations
from tvm.script import tirx as T
FULL = 0xFFFFFFFF
@T.inline
def warp_sum(value):
    """Adds a one-element local buffer over the 32 lanes; every lane ends with the sum."""
    for step in T.unroll(5):
        value[0] += T.tvm_warp_shuffle_xor(FULL, value[0], 16 >> step, 32, 32)
@T.inline
def warp_max(value):
    """The maximum of a one-element local buffer over the 32 lanes."""
    for step in T.unroll(5):
        value[0] = T.max(value[0], T.tvm_warp_shuffle_xor(FULL, value[0], 16 >> step, 32, 32))
@T.prim_func
def softmax(x: T.handle, y: T.handle):
    """Y = softmax of each row of X, one warp a row, four rows a block."""
    rows = T.int32()
    columns = T.int32()
    X = T.match_buffer(x, (rows, columns), "float32")
    Y = T.match_buffer(y, (rows, columns), "float32")
    T.device_entry()
    bx = T.cta_id([T.ceildiv(rows, 4)]); warp = T.warp_id([4]); lane = T.lane_id([32])
    row: T.let = bx * 4 + warp
    if row < rows:
        peak = T.alloc_local((1,), "float32")
        total = T.alloc_local((1,), "float32")
        peak[0] = T.min_value("float32")
        for k in range(T.ceildiv(columns, 32)):
            if k * 32 + lane < columns:
                peak[0] = T.max(peak[0], X[row, k * 32 + lane])
        warp_max(peak)
        total[0] = 0.0
        for k in range(T.ceildiv(columns, 32)):
            if k * 32 + lane < columns:
                total[0] += T.exp(X[row, k * 32 + lane] - peak[0])
        warp_sum(total)
        for k in range(T.ceildiv(columns, 32)):
            if k * 32 + lane < columns:
                Y[row, k * 32 + lane] = T.exp(X[row, k * 32 + lane] - peak[0]) / total[0]
