"""Rows in 8 bits with a factor for each row."""

from __future__ import annotations

from tvm.script import tirx as T

from rows import CACHED, WARPS, load, misaligned, row_max, store, vector

LARGEST = {"float8_e4m3fn": 448.0, "int8": 127.0}


@T.jit
def quantize(x: T.handle, q: T.handle, s: T.handle, warps: T.int32, *, dtype: T.constexpr, target: T.constexpr):
    """S[r] = max(|X[r]|) / the largest value of 8 bits, or 1 for a row of zeros; Q = X / S, rounded to the nearest."""
    outer, inner, columns = T.int32(), T.int32(), T.int32()
    x_outer, x_inner, q_outer, q_inner, s_outer, s_inner = T.int64(), T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (outer, inner, columns), dtype, strides=(x_outer, x_inner, 1))
    Q = T.match_buffer(q, (outer, inner, columns), target, strides=(q_outer, q_inner, 1))
    S = T.match_buffer(s, (outer, inner), "float32", strides=(s_outer, s_inner))
    VEC = T.meta_var(vector(dtype))
    T.device_entry()
    block = T.cta_id([T.ceildiv(outer * inner * warps, WARPS)])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    parts = T.alloc_shared((WARPS,), "float32")
    kept = T.alloc_local((CACHED * VEC,), dtype)
    more = T.alloc_local((VEC,), dtype)
    small = T.alloc_local((VEC,), target)
    most = T.alloc_local((1,), "float32")
    first_warp: T.int32 = T.truncdiv(warp, warps) * warps
    row: T.int32 = block * T.truncdiv(WARPS, warps) + T.truncdiv(warp, warps)
    last: T.int32 = columns
    if row >= outer * inner:
        row = 0
        last = 0
    o: T.int32 = T.truncdiv(row, inner)
    i: T.int32 = row - o * inner
    step: T.int32 = warps * 32 * VEC
    begin: T.int32 = ((warp - first_warp) * 32 + lane) * VEC
    bits: T.uint8 = misaligned(X.ptr_to([o, i, 0])) | misaligned(Q.ptr_to([o, i, 0]))
    Xs = T.decl_buffer((columns,), dtype, data=X.ptr_to([o, i, 0]), scope="global")
    Qs = T.decl_buffer((columns,), target, data=Q.ptr_to([o, i, 0]), scope="global")

    @T.inline
    def maximum(of, at):
        for v in T.unroll(VEC):
            most[0] = T.max(most[0], T.fabs(T.cast(of[at + v], "float32")))

    @T.inline
    def result(of, at, column, scale):
        for v in T.unroll(VEC):
            value: T.float32 = T.max(T.min(T.cast(of[at + v], "float32") / scale, T.float32(LARGEST[target])), T.float32(-LARGEST[target]))
            if target == "int8":
                value = T.nearbyint(value)
            small[v] = T.cast(value, target)
        store(Qs, column, last, small, 0, bits == T.uint8(0), target, VEC)

    most[0] = 0.0
    for c in T.unroll(CACHED):
        if c * step < columns:
            load(kept, c * VEC, Xs, c * step + begin, last, bits == T.uint8(0), dtype, VEC)
    for c in T.unroll(CACHED):
        if c * step < columns:
            maximum(kept, c * VEC)
    for c in range(CACHED, T.ceildiv(columns, step)):
        load(more, 0, Xs, c * step + begin, last, bits == T.uint8(0), dtype, VEC)
        maximum(more, 0)
    row_max(most, parts, warp, lane, first_warp, warps)
    scale: T.float32 = most[0] / T.float32(LARGEST[target])
    if scale == T.float32(0):
        scale = 1.0
    for c in T.unroll(CACHED):
        if c * step < columns:
            result(kept, c * VEC, c * step + begin, scale)
    for c in range(CACHED, T.ceildiv(columns, step)):
        load(more, 0, Xs, c * step + begin, last, bits == T.uint8(0), dtype, VEC)
        result(more, 0, c * step + begin, scale)
    if warp == first_warp and lane == 0 and last > 0:
        S[o, i] = scale
