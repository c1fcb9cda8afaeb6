# test: parse
# test: lower MakePackedAPI
# test: cuda sm_90a
# test: sim
# -D N=16
# -D Bias=None
# -D shift=None
# T.Optional parameters that a specialization leaves out, and one that it keeps.
from __future__ import annotations
from tvm.script import tirx as T


@T.jit
def biased(A: T.Buffer((N,), "float32"), Bias: T.Optional(T.Buffer((N,), "float32")), Scale: T.Optional(T.Buffer((N,), "float32")), shift: T.Optional(T.float32), *, N: T.constexpr):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([N])
    if Bias is not None:
        A[tx] = A[tx] + Bias[tx]
    if Scale is not None:
        A[tx] = A[tx] * Scale[tx]
    if shift is None:
        A[tx] = A[tx] + 0.5
    else:
        A[tx] = A[tx] + shift
