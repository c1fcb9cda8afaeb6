"""Normalization of rows: RMSNorm and LayerNorm, with a residual that is updated in place."""

from __future__ import annotations

from tvm.script import tirx as T

from rows import CACHED, WARPS, load, misaligned, row_sum, store, vector


@T.jit
def norm(x: T.handle, r: T.handle, w: T.handle, b: T.handle, y: T.handle, eps: T.float32, offset: T.float32, centered: T.int32,
         warps: T.int32, *, dtype: T.constexpr):
    """Y = (S - mean) / sqrt(mean((S - mean)^2) + eps) * (W + offset) + B for each row of S = X + R, which replaces R.

    The mean is 0 unless `centered`. R, W and B may be empty. The first vectors of a row stay in registers; a longer row is read again."""
    outer, inner, columns = T.int32(), T.int32(), T.int32()
    x_outer, x_inner, y_outer, y_inner = T.int64(), T.int64(), T.int64(), T.int64()
    of_r, r_outer, r_inner, of_w, of_b = T.int32(), T.int64(), T.int64(), T.int32(), T.int32()
    X = T.match_buffer(x, (outer, inner, columns), dtype, strides=(x_outer, x_inner, 1))
    R = T.match_buffer(r, (of_r, inner, columns), dtype, strides=(r_outer, r_inner, 1))
    W = T.match_buffer(w, (of_w,), dtype)
    B = T.match_buffer(b, (of_b,), dtype)
    Y = T.match_buffer(y, (outer, inner, columns), dtype, strides=(y_outer, y_inner, 1))
    VEC = T.meta_var(vector(dtype))
    T.device_entry()
    block = T.cta_id([T.ceildiv(outer * inner * warps, WARPS)])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    parts = T.alloc_shared((WARPS,), "float32")
    kept = T.alloc_local((CACHED * VEC,), dtype)
    other = T.alloc_local((VEC,), dtype)
    scale = T.alloc_local((VEC,), dtype)
    shift = T.alloc_local((VEC,), dtype)
    total = T.alloc_local((1,), "float32")
    mean = T.alloc_local((1,), "float32")
    first_warp: T.int32 = T.truncdiv(warp, warps) * warps
    row: T.int32 = block * T.truncdiv(WARPS, warps) + T.truncdiv(warp, warps)
    last: T.int32 = columns                                    # the columns of a row behind the tensor
    if row >= outer * inner:
        row = 0
        last = 0
    o: T.int32 = T.truncdiv(row, inner)
    i: T.int32 = row - o * inner
    step: T.int32 = warps * 32 * VEC
    begin: T.int32 = ((warp - first_warp) * 32 + lane) * VEC
    bits: T.uint8 = misaligned(X.ptr_to([o, i, 0])) | misaligned(Y.ptr_to([o, i, 0])) | misaligned(W.ptr_to([0]))
    bits = bits | misaligned(B.ptr_to([0])) | misaligned(R.ptr_to([o, i, 0]))
    Xs = T.decl_buffer((columns,), dtype, data=X.ptr_to([o, i, 0]), scope="global")
    Rs = T.decl_buffer((columns,), dtype, data=R.ptr_to([o, i, 0]), scope="global")
    Ys = T.decl_buffer((columns,), dtype, data=Y.ptr_to([o, i, 0]), scope="global")

    @T.inline
    def again(to, at, column):
        if of_r > 0:
            load(to, at, Rs, column, last, bits == T.uint8(0), dtype, VEC)
        else:
            load(to, at, Xs, column, last, bits == T.uint8(0), dtype, VEC)

    @T.inline
    def first(to, at, column):
        load(to, at, Xs, column, last, bits == T.uint8(0), dtype, VEC)
        if of_r > 0:
            load(other, 0, Rs, column, last, bits == T.uint8(0), dtype, VEC)
            for v in T.unroll(VEC):
                to[at + v] = T.cast(T.cast(to[at + v], "float32") + T.cast(other[v], "float32"), dtype)
            store(Rs, column, last, to, at, bits == T.uint8(0), dtype, VEC)

    @T.inline
    def squares(of, at, column):
        for v in T.unroll(VEC):
            if column + v < last:
                total[0] += (T.cast(of[at + v], "float32") - mean[0]) * (T.cast(of[at + v], "float32") - mean[0])

    @T.inline
    def last_pass(of, at, column, factor):
        if of_w > 0:
            load(scale, 0, W, column, last, bits == T.uint8(0), dtype, VEC)
        if of_b > 0:
            load(shift, 0, B, column, last, bits == T.uint8(0), dtype, VEC)
        for v in T.unroll(VEC):
            value: T.float32 = (T.cast(of[at + v], "float32") - mean[0]) * factor
            if of_w > 0:
                value = value * (T.cast(scale[v], "float32") + offset)
            if of_b > 0:
                value = value + T.cast(shift[v], "float32")
            of[at + v] = T.cast(value, dtype)
        store(Ys, column, last, of, at, bits == T.uint8(0), dtype, VEC)

    mean[0] = 0.0
    total[0] = 0.0
    for c in T.unroll(CACHED):
        if c * step < columns:
            first(kept, c * VEC, c * step + begin)
    for c in range(CACHED, T.ceildiv(columns, step)):
        first(scale, 0, c * step + begin)
    if centered != 0:
        for c in T.unroll(CACHED):
            if c * step < columns:
                for v in T.unroll(VEC):
                    total[0] += T.cast(kept[c * VEC + v], "float32")
        for c in range(CACHED, T.ceildiv(columns, step)):
            again(other, 0, c * step + begin)
            for v in T.unroll(VEC):
                total[0] += T.cast(other[v], "float32")
        row_sum(total, parts, warp, lane, first_warp, warps)
        mean[0] = total[0] / T.cast(columns, "float32")
        total[0] = 0.0
    for c in T.unroll(CACHED):
        if c * step < columns:
            squares(kept, c * VEC, c * step + begin)
    for c in range(CACHED, T.ceildiv(columns, step)):
        again(other, 0, c * step + begin)
        squares(other, 0, c * step + begin)
    row_sum(total, parts, warp, lane, first_warp, warps)
    factor: T.float32 = T.rsqrt(total[0] / T.cast(columns, "float32") + eps)
    for c in T.unroll(CACHED):
        if c * step < columns:
            last_pass(kept, c * VEC, c * step + begin, factor)
    for c in range(CACHED, T.ceildiv(columns, step)):
        again(other, 0, c * step + begin)
        last_pass(other, 0, c * step + begin, factor)
