"""Kernels over vectors: the first ones of the TIRx documentation, and their many-block forms."""

from __future__ import annotations

from tvm.script import tirx as T

RELU = r"""
__device__ __forceinline__ float my_relu(float x) { return x > 0.f ? x : 0.f; }
"""


@T.prim_func
def scale(A_ptr: T.handle, B_ptr: T.handle):
    """B = 2 A, one block."""
    A = T.match_buffer(A_ptr, (256,), "float32")
    B = T.match_buffer(B_ptr, (256,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([256])
    B[tx] = A[tx] * T.float32(2.0)


@T.prim_func
def scal(A_ptr: T.handle, B_ptr: T.handle, s: T.float32):
    """B = s A with a factor given at run time."""
    A = T.match_buffer(A_ptr, (256,), "float32")
    B = T.match_buffer(B_ptr, (256,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([256])
    B[tx] = A[tx] * s


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


@T.jit
def add(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32"),
        C: T.Buffer((N,), "float32"), *, N: T.constexpr):
    """C = A + B, one block of N threads."""
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([N])
    C[tx] = A[tx] + B[tx]


@T.prim_func
def relu(A_ptr: T.handle, B_ptr: T.handle):
    """B = max(A, 0) through a raw CUDA function."""
    A = T.match_buffer(A_ptr, (256,), "float32")
    B = T.match_buffer(B_ptr, (256,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([256])
    B[tx] = T.cuda.func_call("my_relu", A[tx], source_code=RELU, return_type="float32")
