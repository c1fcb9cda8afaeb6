"""Work on single elements of rows: gated activations, casts, and rows of a table."""

from __future__ import annotations

from tvm.script import tirx as T

from rows import WARPS, load, misaligned, store, vector

LOG2_E = 1.4426950408889634
VECTORS = 2                                  # vectors of a segment that a thread has in flight


@T.jit
def activation(g: T.handle, u: T.handle, y: T.handle, kind: T.int32, warps: T.int32, segments: T.int32, *, dtype: T.constexpr):
    """Y = f(G) * U, or f(G) if U is empty. `kind`: 0 SiLU, 1 GELU by tanh, 2 GELU by erf, 3 ReLU."""
    outer, inner, columns, of_u = T.int32(), T.int32(), T.int32(), T.int32()
    g_outer, g_inner, u_outer, u_inner, y_outer, y_inner = T.int64(), T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
    G = T.match_buffer(g, (outer, inner, columns), dtype, strides=(g_outer, g_inner, 1))
    U = T.match_buffer(u, (of_u, inner, columns), dtype, strides=(u_outer, u_inner, 1))
    Y = T.match_buffer(y, (outer, inner, columns), dtype, strides=(y_outer, y_inner, 1))
    VEC = T.meta_var(vector(dtype))
    T.device_entry()
    block = T.cta_id([T.ceildiv(outer * inner * segments * warps, WARPS)])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    gate = T.alloc_local((VECTORS * VEC,), dtype)
    up = T.alloc_local((VECTORS * VEC,), dtype)
    unit: T.int32 = block * T.truncdiv(WARPS, warps) + T.truncdiv(warp, warps)
    row: T.int32 = T.truncdiv(unit, segments)
    if row < outer * inner:
        o: T.int32 = T.truncdiv(row, inner)
        i: T.int32 = row - o * inner
        step: T.int32 = warps * 32 * VEC
        begin: T.int32 = (unit - row * segments) * step * VECTORS + ((warp - T.truncdiv(warp, warps) * warps) * 32 + lane) * VEC
        bits: T.uint8 = misaligned(G.ptr_to([o, i, 0])) | misaligned(U.ptr_to([o, i, 0])) | misaligned(Y.ptr_to([o, i, 0]))
        Gs = T.decl_buffer((columns,), dtype, data=G.ptr_to([o, i, 0]), scope="global")
        Us = T.decl_buffer((columns,), dtype, data=U.ptr_to([o, i, 0]), scope="global")
        Ys = T.decl_buffer((columns,), dtype, data=Y.ptr_to([o, i, 0]), scope="global")
        for c in T.unroll(VECTORS):
            if begin + c * step < columns:
                load(gate, c * VEC, Gs, begin + c * step, columns, bits == T.uint8(0), dtype, VEC)
                if of_u > 0:
                    load(up, c * VEC, Us, begin + c * step, columns, bits == T.uint8(0), dtype, VEC)
                else:
                    for v in T.unroll(VEC):
                        up[c * VEC + v] = T.cast(1.0, dtype)

        @T.inline
        def results(function):
            for c in T.unroll(VECTORS):
                if begin + c * step < columns:
                    for v in T.unroll(VEC):
                        value: T.float32 = T.cast(gate[c * VEC + v], "float32")
                        if function == "silu":
                            value = value * T.ptx.rcp(1.0 + T.ptx.exp2(value * T.float32(-LOG2_E)))
                        elif function == "gelu_tanh":
                            # x (1 + tanh y) / 2 = x / (1 + exp(-2 y))
                            value = value * T.ptx.rcp(1.0 + T.ptx.exp2(
                                value * (value * value * T.float32(-0.07135481627 * LOG2_E) + T.float32(-1.59576912161 * LOG2_E))))
                        elif function == "gelu":
                            value = value * 0.5 * (1.0 + T.erf(value * T.float32(0.70710678118)))
                        else:
                            value = T.max(value, T.float32(0))
                        gate[c * VEC + v] = T.cast(value * T.cast(up[c * VEC + v], "float32"), dtype)
                    store(Ys, begin + c * step, columns, gate, c * VEC, bits == T.uint8(0), dtype, VEC)

        # A choice within the loops would keep the elements from being computed side by side.
        if kind == 0:
            results("silu")
        elif kind == 1:
            results("gelu_tanh")
        elif kind == 2:
            results("gelu")
        else:
            results("relu")


@T.jit
def cast(x: T.handle, y: T.handle, warps: T.int32, segments: T.int32, *, source: T.constexpr, target: T.constexpr):
    """Y = X with other elements, rounded to the nearest."""
    outer, inner, columns = T.int32(), T.int32(), T.int32()
    x_outer, x_inner, y_outer, y_inner = T.int64(), T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (outer, inner, columns), source, strides=(x_outer, x_inner, 1))
    Y = T.match_buffer(y, (outer, inner, columns), target, strides=(y_outer, y_inner, 1))
    VEC = T.meta_var(min(vector(source), vector(target)))
    T.device_entry()
    block = T.cta_id([T.ceildiv(outer * inner * segments * warps, WARPS)])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    before = T.alloc_local((VECTORS * VEC,), source)
    after = T.alloc_local((VEC,), target)
    unit: T.int32 = block * T.truncdiv(WARPS, warps) + T.truncdiv(warp, warps)
    row: T.int32 = T.truncdiv(unit, segments)
    if row < outer * inner:
        o: T.int32 = T.truncdiv(row, inner)
        i: T.int32 = row - o * inner
        step: T.int32 = warps * 32 * VEC
        begin: T.int32 = (unit - row * segments) * step * VECTORS + ((warp - T.truncdiv(warp, warps) * warps) * 32 + lane) * VEC
        bits: T.uint8 = misaligned(X.ptr_to([o, i, 0])) | misaligned(Y.ptr_to([o, i, 0]))
        Xs = T.decl_buffer((columns,), source, data=X.ptr_to([o, i, 0]), scope="global")
        Ys = T.decl_buffer((columns,), target, data=Y.ptr_to([o, i, 0]), scope="global")
        for c in T.unroll(VECTORS):
            if begin + c * step < columns:
                load(before, c * VEC, Xs, begin + c * step, columns, bits == T.uint8(0), source, VEC)
        for c in T.unroll(VECTORS):
            if begin + c * step < columns:
                for v in T.unroll(VEC):
                    after[v] = T.cast(T.cast(before[c * VEC + v], "float32"), target)
                store(Ys, begin + c * step, columns, after, 0, bits == T.uint8(0), target, VEC)


@T.jit
def gather(table: T.handle, ids: T.handle, y: T.handle, warps: T.int32, segments: T.int32, *, dtype: T.constexpr):
    """Row r of Y is row ids[r] of the table, or zeros if the table has no such row."""
    rows, entries, columns = T.int32(), T.int32(), T.int32()
    t_row, y_row, id_step = T.int64(), T.int64(), T.int64()
    Table = T.match_buffer(table, (entries, columns), dtype, strides=(t_row, 1))
    Ids = T.match_buffer(ids, (rows,), "int32", strides=(id_step,))
    Y = T.match_buffer(y, (rows, columns), dtype, strides=(y_row, 1))
    VEC = T.meta_var(vector(dtype))
    T.device_entry()
    block = T.cta_id([T.ceildiv(rows * segments * warps, WARPS)])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    values = T.alloc_local((VECTORS * VEC,), dtype)
    unit: T.int32 = block * T.truncdiv(WARPS, warps) + T.truncdiv(warp, warps)
    row: T.int32 = T.truncdiv(unit, segments)
    if row < rows:
        entry: T.int32 = Ids[row]
        last: T.int32 = columns
        if entry < 0 or entry >= entries:
            entry = 0
            last = 0
        step: T.int32 = warps * 32 * VEC
        begin: T.int32 = (unit - row * segments) * step * VECTORS + ((warp - T.truncdiv(warp, warps) * warps) * 32 + lane) * VEC
        bits: T.uint8 = misaligned(Table.ptr_to([entry, 0])) | misaligned(Y.ptr_to([row, 0]))
        Ts = T.decl_buffer((columns,), dtype, data=Table.ptr_to([entry, 0]), scope="global")
        Ys = T.decl_buffer((columns,), dtype, data=Y.ptr_to([row, 0]), scope="global")
        for c in T.unroll(VECTORS):
            load(values, c * VEC, Ts, begin + c * step, last, bits == T.uint8(0), dtype, VEC)
        for c in T.unroll(VECTORS):
            store(Ys, begin + c * step, columns, values, c * VEC, bits == T.uint8(0), dtype, VEC)
