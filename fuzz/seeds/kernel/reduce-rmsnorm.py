"""Reductions: over a warp, a block, and the rows of a matrix."""
from __future__ import annotations
from tvm.script import tirx as T
FULL = 0xFFFFFFFF
@T.inline
def warp_sum(value):
    """Adds a one-element local buffer over the 32 lanes; every lane ends with the sum."""
    for step in T.unroll(5):
        value[0] += T.tvm_warp_shuffle_xor(FULL, value[0], 16 >> step, 32, 32)
@T.jit
def rmsnorm(X: T.Buffer((ROWS, D), "float16"), W: T.Buffer((D,), "float16"),
            Y: T.Buffer((ROWS, D), "float16"), eps: T.float32, *, ROWS: T.constexpr, D: T.constexpr):
    """Y = X / sqrt(mean(X^2) + eps) * W for each row: one block of 128 threads a row, 8-byte loads."""
    VEC = T.meta_var(4)  # elements of an 8-byte access
    T.static_assert(D % (128 * VEC) == 0, "D must be a multiple of 512")
    T.device_entry()
    row = T.cta_id([ROWS]); warp = T.warp_id([4]); lane = T.lane_id([32]); tx = T.thread_id([128])
    parts = T.alloc_shared((4,), "float32")
    x = T.alloc_local((D // 128,), "float16")
    total = T.alloc_local((1,), "float32")
    total[0] = 0.0
    for k in T.unroll(D // (128 * VEC)):
        for v in T.vectorized(VEC):
            x[k * VEC + v] = X[row, k * 128 * VEC + tx * VEC + v]
    for k in T.unroll(D // 128):
        total[0] += T.cast(x[k], "float32") * T.cast(x[k], "float32")
    warp_sum(total)
    if lane == 0:
        parts[warp] = total[0]
    T.cuda.cta_sync()
    factor: T.let = T.rsqrt((parts[0] + parts[1] + parts[2] + parts[3]) / T.float32(D) + eps)
    for k in T.unroll(D // (128 * VEC)):
        y = T.alloc_local((VEC,), "float16")
        for v in T.unroll(VEC):
            y[v] = T.cast(T.cast(x[k * VEC + v], "float32") * factor
                          * T.cast(W[k * 128 * VEC + tx * VEC + v], "float32"), "float16")
        for v in T.vectorized(VEC):
            Y[row, k * 128 * VEC + tx * VEC + v] = y[v]
