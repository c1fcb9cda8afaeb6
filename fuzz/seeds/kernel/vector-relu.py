"""Kernels over vectors: the first ones of the TIRx documentation, and their many-block forms."""
from __future__ import annotations
from tvm.script import tirx as T
RELU = r"""
"""
@T.prim_func
def relu(A_ptr: T.handle, B_ptr: T.handle):
    """B = max(A, 0) through a raw CUDA function."""
    A = T.match_buffer(A_ptr, (256,), "float32")
    B = T.match_buffer(B_ptr, (256,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([256])
    B[tx] = T.cuda.func_call("my_relu", A[tx], source_code=RELU, return_type="float32")
