"""Kernels over vectors: the first ones of the TIRx documentation, and their many-block forms."""
from __future__ import annotations
from tvm.script import tirx as T
"""
@T.prim_func
def scale_dyn(a: T.handle, b: T.handle):
    """B = 2 A for any length, by one thread."""
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([1])
    for i in range(n):
        B[i] = A[i] * T.float32(2.0)
