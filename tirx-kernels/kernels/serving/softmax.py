"""Softmax of rows, and the cross-entropy of rows of logits."""

from __future__ import annotations

from tvm.script import tirx as T

from rows import CACHED, WARPS, load, misaligned, row_max, row_sum, store, vector

LOG2_E = 1.4426950408889634
LN_2 = 0.6931471805599453


@T.jit
def softmax(x: T.handle, y: T.handle, scale: T.float32, warps: T.int32, *, dtype: T.constexpr):
    """Y = softmax(scale X) of each row. The first vectors of a row stay in registers; a longer row is read again."""
    outer, inner, columns = T.int32(), T.int32(), T.int32()
    x_outer, x_inner, y_outer, y_inner = T.int64(), T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (outer, inner, columns), dtype, strides=(x_outer, x_inner, 1))
    Y = T.match_buffer(y, (outer, inner, columns), dtype, strides=(y_outer, y_inner, 1))
    VEC = T.meta_var(vector(dtype))
    T.device_entry()
    block = T.cta_id([T.ceildiv(outer * inner * warps, WARPS)])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    parts = T.alloc_shared((WARPS,), "float32")
    kept = T.alloc_local((CACHED * VEC,), dtype)
    more = T.alloc_local((VEC,), dtype)
    most = T.alloc_local((1,), "float32")
    total = T.alloc_local((1,), "float32")
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
    bits: T.uint8 = misaligned(X.ptr_to([o, i, 0])) | misaligned(Y.ptr_to([o, i, 0]))
    factor: T.float32 = scale * T.float32(LOG2_E)
    Xs = T.decl_buffer((columns,), dtype, data=X.ptr_to([o, i, 0]), scope="global")
    Ys = T.decl_buffer((columns,), dtype, data=Y.ptr_to([o, i, 0]), scope="global")

    @T.inline
    def maximum(of, at, column):
        for v in T.unroll(VEC):
            if column + v < last:
                most[0] = T.max(most[0], T.cast(of[at + v], "float32") * factor)

    @T.inline
    def addition(of, at, column):
        for v in T.unroll(VEC):
            if column + v < last:
                total[0] += T.exp2(T.cast(of[at + v], "float32") * factor - most[0])

    @T.inline
    def result(of, at, column, inverse):
        for v in T.unroll(VEC):
            of[at + v] = T.cast(T.exp2(T.cast(of[at + v], "float32") * factor - most[0]) * inverse, dtype)
        store(Ys, column, last, of, at, bits == T.uint8(0), dtype, VEC)

    most[0] = T.min_value("float32")
    total[0] = 0.0
    for c in T.unroll(CACHED):
        if c * step < columns:
            load(kept, c * VEC, Xs, c * step + begin, last, bits == T.uint8(0), dtype, VEC)
    for c in T.unroll(CACHED):
        if c * step < columns:
            maximum(kept, c * VEC, c * step + begin)
    for c in range(CACHED, T.ceildiv(columns, step)):
        load(more, 0, Xs, c * step + begin, last, bits == T.uint8(0), dtype, VEC)
        maximum(more, 0, c * step + begin)
    row_max(most, parts, warp, lane, first_warp, warps)
    for c in T.unroll(CACHED):
        if c * step < columns:
            addition(kept, c * VEC, c * step + begin)
    for c in range(CACHED, T.ceildiv(columns, step)):
        load(more, 0, Xs, c * step + begin, last, bits == T.uint8(0), dtype, VEC)
        addition(more, 0, c * step + begin)
    row_sum(total, parts, warp, lane, first_warp, warps)
    inverse: T.float32 = 1.0 / total[0]
    for c in T.unroll(CACHED):
        if c * step < columns:
            result(kept, c * VEC, c * step + begin, inverse)
    for c in range(CACHED, T.ceildiv(columns, step)):
        load(more, 0, Xs, c * step + begin, last, bits == T.uint8(0), dtype, VEC)
        result(more, 0, c * step + begin, inverse)


@T.jit
def cross_entropy(x: T.handle, targets: T.handle, losses: T.handle, *, dtype: T.constexpr):
    """losses[r] = log(sum(exp(X[r]))) - X[r, targets[r]], in one pass; 0 if the row has no such column."""
    rows, columns = T.int32(), T.int32()
    x_row, t_step, l_step = T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (rows, columns), dtype, strides=(x_row, 1))
    Targets = T.match_buffer(targets, (rows,), "int32", strides=(t_step,))
    Losses = T.match_buffer(losses, (rows,), "float32", strides=(l_step,))
    VEC = T.meta_var(vector(dtype))
    T.device_entry()
    row = T.cta_id([rows])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    parts = T.alloc_shared((WARPS,), "float32")
    values = T.alloc_local((2 * VEC,), dtype)
    most = T.alloc_local((1,), "float32")
    total = T.alloc_local((1,), "float32")
    bits: T.uint8 = misaligned(X.ptr_to([row, 0]))
    Xs = T.decl_buffer((columns,), dtype, data=X.ptr_to([row, 0]), scope="global")
    most[0] = T.min_value("float32")
    total[0] = 0.0
    step: T.let = WARPS * 32 * VEC
    for c in range(T.ceildiv(columns, 2 * step)):
        begin: T.int32 = c * (2 * step) + (warp * 32 + lane) * VEC
        for k in T.unroll(2):
            load(values, k * VEC, Xs, begin + k * step, columns, bits == T.uint8(0), dtype, VEC)
        high: T.float32 = most[0]
        for k in T.unroll(2):
            for v in T.unroll(VEC):
                if begin + k * step + v < columns:
                    high = T.max(high, T.cast(values[k * VEC + v], "float32"))
        total[0] = total[0] * T.exp2((most[0] - high) * T.float32(LOG2_E))
        for k in T.unroll(2):
            for v in T.unroll(VEC):
                if begin + k * step + v < columns:
                    total[0] += T.exp2((T.cast(values[k * VEC + v], "float32") - high) * T.float32(LOG2_E))
        most[0] = high
    own: T.float32 = most[0]
    row_max(most, parts, warp, lane, 0, WARPS)
    total[0] = total[0] * T.exp2((own - most[0]) * T.float32(LOG2_E))
    row_sum(total, parts, warp, lane, 0, WARPS)
    if warp == 0 and lane == 0:
        target: T.int32 = Targets[row]
        loss: T.float32 = 0.0
        if target >= 0 and target < columns:
            loss = T.log2(total[0]) * T.float32(LN_2) + (most[0] - T.cast(Xs[target], "float32"))
        Losses[row] = loss
