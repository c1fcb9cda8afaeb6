# entry: kernel
# error: kernel "kernel" needs a value for constexpr "M"
# error: --> error_constexpr.py:
# error: -D M=…
# -D N=32
# A compile-time parameter without a value.

@T.jit
def kernel(A: T.Buffer((N, M), "float32"), *, N: T.constexpr, M: T.constexpr):
    T.device_entry()
    bx = T.cta_id([M])
    tx = T.thread_id([N])
    A[tx, bx] = 1.0
