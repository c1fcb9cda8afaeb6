from __future__ import annotations

from tvm.script import tirx as T


# What `cargo tirx test` runs on the simulator: each argument's elements, and behind `->` what the kernel leaves.
# sim: add(N=256)
#   A: float32[256] = i
#   B: float32[256] = 0.5
#   C: float32[256] = 0 -> i + 0.5
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
