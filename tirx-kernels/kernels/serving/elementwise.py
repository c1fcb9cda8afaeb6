"""Work on single elements of rows: gated activations, casts, and rows of a table."""

from __future__ import annotations

from tvm.script import tirx as T

from rows import BY_NVCC, VECTORS, WARPS, after_previous, load_row, load_vector, misaligned, quotient, start_next, store_row, vector

LOG2_E = 1.4426950408889634


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
    start_next()
    block = T.cta_id([T.ceildiv(outer * inner * segments * warps, WARPS)])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    gate = T.alloc_local((VECTORS * VEC,), dtype)
    up = T.alloc_local((VECTORS * VEC,), dtype)
    unit: T.int32 = block * quotient(WARPS, warps) + quotient(warp, warps)
    row: T.int32 = T.truncdiv(unit, segments)
    if row < outer * inner:
        o: T.int32 = 0
        if outer > 1:
            o = T.truncdiv(row, inner)
        i: T.int32 = row - o * inner
        step: T.int32 = segments * warps * 32 * VEC
        begin: T.int32 = ((unit - row * segments) * warps * 32 + T.bitwise_and(warp, warps - 1) * 32 + lane) * VEC
        strides: T.let = g_outer | g_inner | u_outer | u_inner | y_outer | y_inner | T.cast(columns, "int64")
        bits: T.let = misaligned(G.ptr_to([0, 0, 0])) | misaligned(U.ptr_to([0, 0, 0])) | misaligned(Y.ptr_to([0, 0, 0]))
        Gs = T.decl_buffer((columns,), dtype, data=G.ptr_to([o, i, 0]), scope="global")
        Us = T.decl_buffer((columns,), dtype, data=U.ptr_to([o, i, 0]), scope="global")
        Ys = T.decl_buffer((columns,), dtype, data=Y.ptr_to([o, i, 0]), scope="global")
        whole: T.let = bits == T.uint8(0) and strides % VEC == 0
        T.ptx.griddepcontrol.wait()

        @T.inline
        def results(function, is_gated, at):
            for v in T.unroll(VEC):
                value: T.float32 = T.cast(gate[at + v], "float32")
                if function == "silu":
                    value = value * T.ptx.rcp(1.0 + T.ptx.exp2(value * T.float32(-LOG2_E)))
                elif function == "gelu_tanh":
                    # x (1 + tanh y) / 2 = x / (1 + exp(-2 y))
                    value = value * T.ptx.rcp(1.0 + T.ptx.exp2(
                        value * (value * value * T.float32(-0.07135481627 * LOG2_E) + T.float32(-1.59576912161 * LOG2_E))))
                elif function == "gelu":
                    value = value * 0.5 * (1.0 + T.erf(value * T.float32(0.70710678118)))
                else:
                    value = T.ptx.max_f32(value, T.float32(0), nan=True)
                gate[at + v] = T.cast(value * T.cast(up[at + v], "float32") if is_gated else value, dtype)

        @T.inline
        def segment(function, is_gated, vectors):
            """The vectors of a thread in rows of whole vectors."""
            for c in T.unroll(vectors, annotations=BY_NVCC):
                load_vector(gate, c * VEC, Gs, begin + c * step, columns, dtype, VEC)
            if is_gated:
                for c in T.unroll(vectors, annotations=BY_NVCC):
                    load_vector(up, c * VEC, Us, begin + c * step, columns, dtype, VEC)
            for c in T.unroll(vectors, annotations=BY_NVCC):
                results(function, is_gated, c * VEC)
                store_row(True, Ys, begin + c * step, columns, gate, c * VEC, dtype, VEC)

        @T.inline
        def of_function(function):
            # A choice within the loops would keep the elements from being computed side by side. If a thread has one vector, a launch is so short
            # that the fetch of its instructions counts, so that case has its own.
            if whole and of_u > 0 and columns <= step:
                segment(function, True, 1)
            elif whole:
                if of_u > 0:
                    segment(function, True, VECTORS)
                else:
                    segment(function, False, VECTORS)
            else:
                for c in range(VECTORS):
                    load_row(False, gate, 0, Gs, begin + c * step, columns, dtype, VEC)
                    for v in T.unroll(VEC):
                        up[v] = T.cast(1.0, dtype)
                    if of_u > 0:
                        load_row(False, up, 0, Us, begin + c * step, columns, dtype, VEC)
                    results(function, True, 0)
                    store_row(False, Ys, begin + c * step, columns, gate, 0, dtype, VEC)

        if kind == 0:
            of_function("silu")
        elif kind == 1:
            of_function("gelu_tanh")
        elif kind == 2:
            of_function("gelu")
        else:
            of_function("relu")


@T.jit
def cast(x: T.handle, y: T.handle, warps: T.int32, segments: T.int32, *, source: T.constexpr, target: T.constexpr):
    """Y = X with other elements, rounded to the nearest."""
    outer, inner, columns = T.int32(), T.int32(), T.int32()
    x_outer, x_inner, y_outer, y_inner = T.int64(), T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (outer, inner, columns), source, strides=(x_outer, x_inner, 1))
    Y = T.match_buffer(y, (outer, inner, columns), target, strides=(y_outer, y_inner, 1))
    VEC = T.meta_var(min(vector(source), vector(target)))
    T.device_entry()
    after_previous()
    block = T.cta_id([T.ceildiv(outer * inner * segments * warps, WARPS)])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    before = T.alloc_local((VECTORS * VEC,), source)
    after = T.alloc_local((VEC,), target)
    unit: T.int32 = block * quotient(WARPS, warps) + quotient(warp, warps)
    row: T.int32 = T.truncdiv(unit, segments)
    if row < outer * inner:
        o: T.int32 = 0
        if outer > 1:
            o = T.truncdiv(row, inner)
        i: T.int32 = row - o * inner
        step: T.int32 = warps * 32 * VEC
        begin: T.int32 = (unit - row * segments) * step * VECTORS + (T.bitwise_and(warp, warps - 1) * 32 + lane) * VEC
        Xs = T.decl_buffer((columns,), source, data=X.ptr_to([o, i, 0]), scope="global")
        Ys = T.decl_buffer((columns,), target, data=Y.ptr_to([o, i, 0]), scope="global")

        @T.inline
        def result(whole, at, column):
            for v in T.unroll(VEC):
                after[v] = T.cast(T.cast(before[at + v], "float32"), target)
            store_row(whole, Ys, column, columns, after, 0, target, VEC)

        if (misaligned(X.ptr_to([0, 0, 0])) | misaligned(Y.ptr_to([0, 0, 0]))) == T.uint8(0) and (
                x_outer | x_inner | y_outer | y_inner | T.cast(columns, "int64")) % max(vector(source), vector(target)) == 0:
            for c in T.unroll(VECTORS, annotations=BY_NVCC):
                load_vector(before, c * VEC, Xs, begin + c * step, columns, source, VEC)
            for c in T.unroll(VECTORS, annotations=BY_NVCC):
                result(True, c * VEC, begin + c * step)
        else:
            for c in range(VECTORS):
                load_row(False, before, 0, Xs, begin + c * step, columns, source, VEC)
                result(False, 0, begin + c * step)


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
    after_previous()
    block = T.cta_id([T.ceildiv(rows * segments * warps, WARPS)])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    values = T.alloc_local((VECTORS * VEC,), dtype)
    unit: T.int32 = block * quotient(WARPS, warps) + quotient(warp, warps)
    row: T.int32 = T.truncdiv(unit, segments)
    if row < rows:
        entry: T.int32 = Ids[row]
        last: T.int32 = columns
        if entry < 0 or entry >= entries:
            entry = 0
            last = 0
        step: T.int32 = warps * 32 * VEC
        begin: T.int32 = (unit - row * segments) * step * VECTORS + (T.bitwise_and(warp, warps - 1) * 32 + lane) * VEC
        Ts = T.decl_buffer((columns,), dtype, data=Table.ptr_to([entry, 0]), scope="global")
        Ys = T.decl_buffer((columns,), dtype, data=Y.ptr_to([row, 0]), scope="global")
        if (misaligned(Table.ptr_to([0, 0])) | misaligned(Y.ptr_to([0, 0]))) == T.uint8(0) and (
                t_row | y_row | T.cast(columns, "int64")) % VEC == 0 and last > 0:
            for c in T.unroll(VECTORS, annotations=BY_NVCC):
                load_vector(values, c * VEC, Ts, begin + c * step, columns, dtype, VEC)
            for c in T.unroll(VECTORS, annotations=BY_NVCC):
                store_row(True, Ys, begin + c * step, columns, values, c * VEC, dtype, VEC)
        else:
            for c in range(VECTORS):
                load_row(False, values, 0, Ts, begin + c * step, last, dtype, VEC)
                store_row(False, Ys, begin + c * step, columns, values, 0, dtype, VEC)
