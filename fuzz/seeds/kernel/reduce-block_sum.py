"""Reductions: over a warp, a block, and the rows of a matrix."""
from __future__ import annotations
from tvm.script import tirx as T
@T.prim_func
def block_sum(a: T.handle, out: T.handle):
    """Out[b] = sum of A[256 b .. 256 (b + 1)], through shared memory."""
    n = T.int32()
    blocks = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    Out = T.match_buffer(out, (blocks,), "float32")
    T.device_entry()
    bx = T.cta_id([blocks]); tx = T.thread_id([256])
    partial = T.alloc_shared((256,), "float32")
    i: T.let = bx * 256 + tx
    partial[tx] = T.if_then_else(i < n, A[i], T.float32(0))
    T.cuda.cta_sync()
    stride: T.int32 = 128
    while stride > 0:
        if tx < stride:
            partial[tx] += partial[tx + stride]
        T.cuda.cta_sync()
        stride = stride // 2
    if tx == 0:
        Out[bx] = partial[0]
