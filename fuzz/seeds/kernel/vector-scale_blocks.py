"""Kernels over vectors: the first ones of the TIRx documentation, and their many-block forms."""
from __future__ import annotations
from tvm.script import tirx as T
"""
@T.prim_func
def scale_blocks(a: T.handle, b: T.handle):
    """B = 2 A for any length, in blocks of 256 threads."""
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    T.device_entry()
    bx = T.cta_id([T.ceildiv(n, 256)]); tx = T.thread_id([256])
    i: T.let = bx * 256 + tx
    if i < n:
        B[i] = A[i] * T.float32(2.0)
