# error: an extent must be an integer, found a text
# -D N="abc"
from __future__ import annotations
from tvm.script import tirx as T

@T.jit
def k(A: T.Buffer((32,), "int32"), *, N: T.constexpr):
    T.device_entry()
    tx = T.thread_id([N])
    A[tx] = tx
