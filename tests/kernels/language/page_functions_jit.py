# test: parse
# test: cuda sm_90a
# test: compile sm_100a
# -D N=256
# The specialized kernel of the documentation's page on functions.
from __future__ import annotations

@T.jit
def add(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32"),
        C: T.Buffer((N,), "float32"), *, N: T.constexpr):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([N])
    C[tx] = A[tx] + B[tx]
