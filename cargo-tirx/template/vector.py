from __future__ import annotations

from tvm.script import tirx as T


@T.jit
def add(
    A: T.Buffer((N,), "float32"),
    B: T.Buffer((N,), "float32"),
    C: T.Buffer((N,), "float32"),
    *,
    N: T.constexpr,
):
    """C = A + B, one block of N threads."""
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([N])
    C[tx] = A[tx] + B[tx]
