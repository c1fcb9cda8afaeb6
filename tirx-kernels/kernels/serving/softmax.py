"""Softmax of rows, and the cross-entropy of rows of logits."""

from __future__ import annotations

from tvm.script import tirx as T

from rows import BY_NVCC, CACHED, THREADS, WARPS, after_previous, inside, load_row, load_vector, misaligned, quotient, row_max, row_sum, store_row, vector

LOG2_E = 1.4426950408889634
LN_2 = 0.6931471805599453
AT_ONCE = 2                                  # vectors of logits that a thread has in flight


# sim: softmax(dtype="float32")
#   x: float32[2x3x28] = (j + k) % 3
#   y: float32[2x3x28] = 0 -> 2.718281828 ** ((j + k) % 3) / sum([2.718281828 ** ((j + c) % 3) for c in range(28)]) +- 1e-6
#   scale = 1.0
#   threads = 2
# sim: softmax(dtype="float32")
#   x: float32[1x5x40] = (j + k) % 3
#   y: float32[1x5x40] = 0 -> 2.718281828 ** ((j + k) % 3) / sum([2.718281828 ** ((j + c) % 3) for c in range(40)]) +- 1e-6
#   scale = 1.0
#   threads = 2
@T.jit
def softmax(x: T.handle, y: T.handle, scale: T.float32, threads: T.int32, *, dtype: T.constexpr):
    """Y = softmax(scale X) of each row. A short row of whole vectors stays in registers; other rows are read again."""
    outer, inner, columns = T.int32(), T.int32(), T.int32()
    x_outer, x_inner, y_outer, y_inner = T.int64(), T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (outer, inner, columns), dtype, strides=(x_outer, x_inner, 1))
    Y = T.match_buffer(y, (outer, inner, columns), dtype, strides=(y_outer, y_inner, 1))
    VEC = T.meta_var(vector(dtype))
    T.device_entry()
    after_previous()
    block = T.cta_id([T.ceildiv(outer * inner, T.truncdiv(THREADS, threads))])
    thread = T.thread_id([THREADS])
    parts = T.alloc_shared((WARPS,), "float32")
    more_parts = T.alloc_shared((WARPS,), "float32")
    kept = T.alloc_local((CACHED * VEC,), dtype)
    terms = T.alloc_local((CACHED * VEC,), "float32")
    most = T.alloc_local((1,), "float32")
    total = T.alloc_local((1,), "float32")
    row: T.int32 = block * quotient(THREADS, threads) + quotient(thread, threads)
    last: T.int32 = columns
    if row >= outer * inner:
        row = 0
        last = 0
    o: T.int32 = 0
    if outer > 1:
        o = T.truncdiv(row, inner)
    i: T.int32 = row - o * inner
    step: T.int32 = threads * VEC
    begin: T.int32 = T.bitwise_and(thread, threads - 1) * VEC
    strides: T.let = x_outer | x_inner | y_outer | y_inner | T.cast(columns, "int64")
    bits: T.let = misaligned(X.ptr_to([0, 0, 0])) | misaligned(Y.ptr_to([0, 0, 0]))
    # The greatest score is subtracted before the multiplication: scores up to the limit of float32 do not overflow, and that of the greatest is 0.
    sign: T.float32 = T.if_then_else(scale < T.float32(0), T.float32(-1), T.float32(1))
    factor: T.float32 = T.fabs(scale) * T.float32(LOG2_E)
    Xs = T.decl_buffer((columns,), dtype, data=X.ptr_to([o, i, 0]), scope="global")
    Ys = T.decl_buffer((columns,), dtype, data=Y.ptr_to([o, i, 0]), scope="global")

    @T.inline
    def maximum(whole, of, at, column):
        for v in T.unroll(VEC):
            if inside(whole, column, v, last):
                most[0] = T.max(most[0], T.cast(of[at + v], "float32") * sign)

    @T.inline
    def exponentials(whole, to, of, at, column):
        for v in T.unroll(VEC):
            to[at + v] = T.ptx.exp2((T.cast(of[at + v], "float32") * sign - most[0]) * factor)
            if inside(whole, column, v, last):
                total[0] += to[at + v]

    @T.inline
    def result(whole, to, of, at, column, inverse):
        for v in T.unroll(VEC):
            to[at + v] = T.cast(of[at + v] * inverse, dtype)
        store_row(whole, Ys, column, last, to, at, dtype, VEC)

    @T.inline
    def in_registers():
        for c in T.unroll(CACHED, annotations=BY_NVCC):
            load_vector(kept, c * VEC, Xs, c * step + begin, columns, dtype, VEC)
        for c in T.unroll(CACHED, annotations=BY_NVCC):
            maximum(True, kept, c * VEC, c * step + begin)
        row_max(most, parts, thread, threads)
        for c in T.unroll(CACHED, annotations=BY_NVCC):
            exponentials(True, terms, kept, c * VEC, c * step + begin)
        row_sum(total, more_parts, thread, threads)
        inverse: T.float32 = 1.0 / total[0]
        for c in T.unroll(CACHED, annotations=BY_NVCC):
            result(True, kept, terms, c * VEC, c * step + begin, inverse)

    @T.inline
    def in_turns(whole):
        turns: T.int32 = T.ceildiv(columns, step)
        for c in range(turns):
            load_row(whole, kept, 0, Xs, c * step + begin, columns, dtype, VEC)
            maximum(whole, kept, 0, c * step + begin)
        row_max(most, parts, thread, threads)
        for c in range(turns):
            load_row(whole, kept, 0, Xs, c * step + begin, columns, dtype, VEC)
            exponentials(whole, terms, kept, 0, c * step + begin)
        row_sum(total, more_parts, thread, threads)
        inverse: T.float32 = 1.0 / total[0]
        for c in range(turns):
            load_row(whole, kept, 0, Xs, c * step + begin, columns, dtype, VEC)
            exponentials(whole, terms, kept, 0, c * step + begin)
            result(whole, kept, terms, 0, c * step + begin, inverse)

    most[0] = T.min_value("float32")
    total[0] = 0.0
    if bits == T.uint8(0) and strides % VEC == 0:
        if columns <= CACHED * step:
            in_registers()
        else:
            in_turns(True)
    else:
        in_turns(False)


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
    after_previous()
    row = T.cta_id([rows])
    thread = T.thread_id([THREADS])
    parts = T.alloc_shared((WARPS,), "float32")
    more_parts = T.alloc_shared((WARPS,), "float32")
    values = T.alloc_local((AT_ONCE * VEC,), dtype)
    most = T.alloc_local((1,), "float32")
    total = T.alloc_local((1,), "float32")
    Xs = T.decl_buffer((columns,), dtype, data=X.ptr_to([row, 0]), scope="global")
    step: T.let = THREADS * VEC

    @T.inline
    def rows(whole):
        for c in range(T.ceildiv(columns, AT_ONCE * step)):
            begin: T.int32 = c * (AT_ONCE * step) + thread * VEC
            for k in T.unroll(AT_ONCE):
                load_row(whole, values, k * VEC, Xs, begin + k * step, columns, dtype, VEC)
            high: T.float32 = most[0]
            for k in T.unroll(AT_ONCE):
                for v in T.unroll(VEC):
                    if inside(whole, begin + k * step, v, columns):
                        high = T.max(high, T.cast(values[k * VEC + v], "float32"))
            total[0] = total[0] * T.ptx.exp2((most[0] - high) * T.float32(LOG2_E))
            for k in T.unroll(AT_ONCE):
                for v in T.unroll(VEC):
                    if inside(whole, begin + k * step, v, columns):
                        total[0] += T.ptx.exp2((T.cast(values[k * VEC + v], "float32") - high) * T.float32(LOG2_E))
            most[0] = high

    most[0] = T.min_value("float32")
    total[0] = 0.0
    if misaligned(Xs.ptr_to([0])) == T.uint8(0) and columns % VEC == 0:
        rows(True)
    else:
        rows(False)
    own: T.float32 = most[0]
    row_max(most, parts, thread, THREADS)
    total[0] = total[0] * T.ptx.exp2((own - most[0]) * T.float32(LOG2_E))
    row_sum(total, more_parts, thread, THREADS)
    if thread == 0:
        target: T.int32 = Targets[row]
        loss: T.float32 = 0.0
        if target >= 0 and target < columns:
            loss = T.log2(total[0]) * T.float32(LN_2) + (most[0] - T.cast(Xs[target], "float32"))
        Losses[row] = loss
