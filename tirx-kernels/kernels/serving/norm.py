"""Normalization of rows: RMSNorm and LayerNorm, with a residual that is updated in place, and with results in 8 bits."""

from __future__ import annotations

from tvm.script import tirx as T

from quantize import factor, to_8_bits
from rows import (BY_NVCC, CACHED, FEW, THREADS, WARPS, greater, inside, load_row, load_vector, misaligned, quotient, row_max, row_sum,
                  start_next, store_row, to_l2, vector, widen)


# sim: norm(dtype="float32", s=None)
#   x: float32[1x5x40] = 1 + (i + j + k) % 3
#   r: float32[1x5x40] = k -> k + 1 + (j + k) % 3
#   w: float32[40] = 2
#   b: float32[0] = 0
#   y: float32[1x5x40] = 0 -> 2 * (k + 1 + (j + k) % 3) / (sum([(c + 1 + (j + c) % 3) ** 2 for c in range(40)]) / 40) ** 0.5 +- 1e-4
#   eps = 0.0
#   offset = 0.0
#   centered = 0
#   threads = 2
# sim: norm(dtype="float32", s=None)
#   x: float32[1x3x32] = k % 2
#   r: float32[1x3x32] = k % 2 -> 2 * (k % 2)
#   w: float32[32] = 1
#   b: float32[32] = 3
#   y: float32[1x3x32] = 0 -> 3 + 2 * (2 * (k % 2) - 1) +- 1e-5
#   eps = 0.0
#   offset = 1.0
#   centered = 1
#   threads = 2
# sim: norm(dtype="float32", target="int8")
#   x: float32[1x5x40] = 1 if k % 2 == 0 else -1
#   r: float32[0x5x40] = 0
#   w: float32[40] = 254 if i == 7 else 2 * (i % 3)
#   b: float32[0] = 0
#   y: int8[1x5x40] = 0 -> (1 if k % 2 == 0 else -1) * (127 if k == 7 else k % 3)
#   s: float32[1x5] = 0 -> 2
#   eps = 0.0
#   offset = 0.0
#   centered = 0
#   threads = 2
@T.jit
def norm(x: T.handle, r: T.handle, w: T.handle, b: T.handle, y: T.handle, s: T.Optional(T.handle), eps: T.float32, offset: T.float32,
         centered: T.int32, threads: T.int32, *, dtype: T.constexpr, target: T.constexpr = ""):
    """Y = (S - mean) / sqrt(mean((S - mean)^2) + eps) * (W + offset) + B for each row of S = X + R, which replaces R.

    The mean is 0 unless `centered`. R, W and B may be empty. A short row of whole vectors stays in registers; other rows are read again. With S,
    rows of Y are in `target`, and S has the factor of each."""
    outer, inner, columns = T.int32(), T.int32(), T.int32()
    x_outer, x_inner, y_outer, y_inner = T.int64(), T.int64(), T.int64(), T.int64()
    of_r, r_outer, r_inner, of_w, of_b = T.int32(), T.int64(), T.int64(), T.int32(), T.int32()
    X = T.match_buffer(x, (outer, inner, columns), dtype, strides=(x_outer, x_inner, 1))
    R = T.match_buffer(r, (of_r, inner, columns), dtype, strides=(r_outer, r_inner, 1))
    W = T.match_buffer(w, (of_w,), dtype)
    B = T.match_buffer(b, (of_b,), dtype)
    target = T.meta_var(target or dtype)
    Y = T.match_buffer(y, (outer, inner, columns), target, strides=(y_outer, y_inner, 1))
    if s is not None:
        s_outer, s_inner = T.int64(), T.int64()
        S = T.match_buffer(s, (outer, inner), "float32", strides=(s_outer, s_inner))
    VEC = T.meta_var(vector(dtype))
    of_columns: T.let = T.cast(columns, "float32")             # the launch computes it, and the share of an element in a mean
    share: T.let = T.float32(1) / T.cast(columns, "float32")
    strides: T.let = x_outer | x_inner | y_outer | y_inner | r_outer | r_inner | T.cast(columns, "int64")
    T.device_entry()
    start_next()
    block = T.cta_id([T.ceildiv(outer * inner, T.truncdiv(THREADS, threads))])
    thread = T.thread_id([THREADS])
    parts = T.alloc_shared((WARPS,), "float32")
    more_parts = T.alloc_shared((WARPS,), "float32")
    kept = T.alloc_local((CACHED * VEC,), dtype)
    other = T.alloc_local((CACHED * VEC,), dtype)
    shift = T.alloc_local((VEC,), dtype)
    wide = T.alloc_local((VEC,), "float32")
    of_other = T.alloc_local((VEC,), "float32")
    of_shift = T.alloc_local((VEC,), "float32")
    two = T.alloc_local((2,), "float32")
    if s is not None:
        last_parts = T.alloc_shared((WARPS,), "float32")
        most = T.alloc_local((1,), "float32")
        largest = T.alloc_local((1,), "float32")
        small = T.alloc_local((VEC,), target)
    total = T.alloc_local((1,), "float32")
    mean = T.alloc_local((1,), "float32")
    row: T.int32 = block * quotient(THREADS, threads) + quotient(thread, threads)
    last: T.int32 = columns                                    # the end of the row; 0 for a row behind the tensor
    if row >= outer * inner:
        row = 0
        last = 0
    o: T.int32 = 0
    if outer > 1:
        o = T.truncdiv(row, inner)
    i: T.int32 = row - o * inner
    step: T.int32 = threads * VEC
    begin: T.int32 = T.bitwise_and(thread, threads - 1) * VEC
    bits: T.let = (misaligned(X.ptr_to([0, 0, 0])) | misaligned(Y.ptr_to([0, 0, 0])) | misaligned(R.ptr_to([0, 0, 0]))
                   | misaligned(W.ptr_to([0])) | misaligned(B.ptr_to([0])))
    Xs = T.decl_buffer((columns,), dtype, data=X.ptr_to([o, i, 0]), scope="global")
    Rs = T.decl_buffer((columns,), dtype, data=R.ptr_to([o, i, 0]), scope="global")
    Ys = T.decl_buffer((columns,), target, data=Y.ptr_to([o, i, 0]), scope="global")
    if outer * inner <= FEW:
        # In a step of a model, the weights of the layers before have evicted these.
        for c in T.unroll(CACHED, annotations=BY_NVCC):
            if c * step + begin < last:
                if of_r > 0:
                    to_l2(Rs.ptr_to([c * step + begin]))
                if of_w > 0:
                    to_l2(W.ptr_to([c * step + begin]))
    T.ptx.griddepcontrol.wait()

    @T.inline
    def round_two(to, at):
        """One instruction rounds the two numbers."""
        for e in T.vectorized(2):
            to[at + e] = T.cast(two[e], dtype)

    @T.inline
    def add(to, at):
        widen(wide, to, at, VEC)
        widen(of_other, other, at, VEC)
        for pair in T.unroll(VEC // 2):
            for e in T.unroll(2):
                two[e] = wide[pair * 2 + e] + of_other[pair * 2 + e]
            round_two(to, at + pair * 2)

    @T.inline
    def count(whole, of, at, column, has_mean):
        """Adds the squares of the numbers, or of their deviations if there is a mean."""
        widen(wide, of, at, VEC)
        for v in T.unroll(VEC):
            if inside(whole, column, v, last):
                value: T.float32 = wide[v]
                if has_mean:
                    value = value - mean[0]
                total[0] += value * value

    @T.inline
    def add_up(whole, of, at, column):
        widen(wide, of, at, VEC)
        for v in T.unroll(VEC):
            if inside(whole, column, v, last):
                total[0] += wide[v]

    @T.inline
    def average():
        row_sum(total, parts, thread, threads)
        # What a division gives, without its instructions for rare cases: exact for a row of one number, if its sum is.
        mean[0] = total[0] * share
        mean[0] = T.fma(T.fma(0.0 - mean[0], of_columns, total[0]), share, mean[0])
        total[0] = 0.0

    @T.inline
    def normalize(of, at, inverse, at_w, has_mean, has_shift):
        """With W in `other` and B in `shift`."""
        widen(wide, of, at, VEC)
        widen(of_other, other, at_w, VEC)
        if has_shift:
            widen(of_shift, shift, 0, VEC)
        for pair in T.unroll(VEC // 2):
            for e in T.unroll(2):
                value: T.float32 = wide[pair * 2 + e]
                if has_mean:
                    value = value - mean[0]
                value = value * inverse * (of_other[pair * 2 + e] + offset_of_w)
                if has_shift:
                    value = value + of_shift[pair * 2 + e]
                two[e] = value
                if s is not None:
                    largest[0] = greater(largest[0], T.fabs(value))
            round_two(of, at + pair * 2)

    @T.inline
    def most_of_row(whole, of, at, column):
        widen(wide, of, at, VEC)
        for v in T.unroll(VEC):
            if inside(whole, column, v, last):
                most[0] = greater(most[0], T.fabs(wide[v]))

    @T.inline
    def store_8_bits(whole, of, at, column, inverse):
        to_8_bits(small, of, at, inverse, target, VEC)
        store_row(whole, Ys, column, last, small, 0, target, VEC)

    @T.inline
    def in_registers(has_residual, layer):
        """A row of whole vectors, each in the registers of a thread, with W, and with B if it is a LayerNorm. `kept` has X already."""
        if has_residual:
            for c in T.unroll(CACHED, annotations=BY_NVCC):
                # X in place of R behind the row's end: another thread may write the vector that is loaded there.
                own = T.decl_buffer((columns,), dtype, data=T.if_then_else(c * step + begin < last, Rs.data, Xs.data), scope="global")
                load_vector(other, c * VEC, own, c * step + begin, columns, dtype, VEC)
            for c in T.unroll(CACHED, annotations=BY_NVCC):
                add(kept, c * VEC)
                store_row(True, Rs, c * step + begin, last, kept, c * VEC, dtype, VEC)
        for c in T.unroll(CACHED, annotations=BY_NVCC):
            load_vector(other, c * VEC, W, c * step + begin, columns, dtype, VEC)
        if layer:
            for c in T.unroll(CACHED, annotations=BY_NVCC):
                add_up(True, kept, c * VEC, c * step + begin)
            average()
        for c in T.unroll(CACHED, annotations=BY_NVCC):
            count(True, kept, c * VEC, c * step + begin, layer)
        row_sum(total, more_parts, thread, threads)
        inverse: T.float32 = T.rsqrt(total[0] * share + eps)
        for c in T.unroll(CACHED, annotations=BY_NVCC):
            if layer:
                load_vector(shift, 0, B, c * step + begin, columns, dtype, VEC)
            if s is not None:
                largest[0] = 0.0
            normalize(kept, c * VEC, inverse, c * VEC, layer, layer)
            if s is not None:
                if c * step + begin < last:
                    most[0] = greater(most[0], largest[0])
        if s is None:
            for c in T.unroll(CACHED, annotations=BY_NVCC):
                store_row(True, Ys, c * step + begin, last, kept, c * VEC, dtype, VEC)
        else:
            row_max(most, last_parts, thread, threads, greater)
            # Rounding keeps the order, so the greatest number rounded is the greatest of the rounded ones.
            of_row: T.float32 = factor(T.cast(T.cast(most[0], dtype), "float32"), target)
            for c in T.unroll(CACHED, annotations=BY_NVCC):
                store_8_bits(True, kept, c * VEC, c * step + begin, 1.0 / of_row)
            if T.bitwise_and(thread, threads - 1) == 0 and last > 0:
                S[o, i] = of_row

    @T.inline
    def again(column):
        """The vector of S, in `kept`."""
        if of_r > 0:
            load_row(False, kept, 0, Rs, column, last, dtype, VEC)
        else:
            load_row(False, kept, 0, Xs, column, last, dtype, VEC)

    @T.inline
    def normalize_again(column, inverse):
        again(column)
        for v in T.unroll(VEC):
            other[v] = T.cast(1.0, dtype)
            shift[v] = T.cast(0.0, dtype)
        if of_w > 0:
            load_row(False, other, 0, W, column, last, dtype, VEC)
        if of_b > 0:
            load_row(False, shift, 0, B, column, last, dtype, VEC)
        normalize(kept, 0, inverse, 0, True, True)

    @T.inline
    def in_turns():
        """A row of any length: the thread has one vector at a time."""
        turns: T.int32 = T.ceildiv(columns, step)
        for c in range(turns):
            load_row(False, kept, 0, Xs, c * step + begin, last, dtype, VEC)
            if of_r > 0:
                load_row(False, other, 0, Rs, c * step + begin, last, dtype, VEC)
                add(kept, 0)
                store_row(False, Rs, c * step + begin, last, kept, 0, dtype, VEC)
            if centered != 0:
                add_up(False, kept, 0, c * step + begin)
            else:
                count(False, kept, 0, c * step + begin, True)
        if centered != 0:
            average()
            for c in range(turns):
                again(c * step + begin)
                count(False, kept, 0, c * step + begin, True)
        row_sum(total, more_parts, thread, threads)
        inverse: T.float32 = T.rsqrt(total[0] * share + eps)
        for c in range(turns):
            normalize_again(c * step + begin, inverse)
            if s is None:
                store_row(False, Ys, c * step + begin, last, kept, 0, dtype, VEC)
            else:
                most_of_row(False, kept, 0, c * step + begin)
        if s is not None:
            row_max(most, last_parts, thread, threads, greater)
            of_row: T.float32 = factor(most[0], target)
            for c in range(turns):
                normalize_again(c * step + begin, inverse)
                store_8_bits(False, kept, 0, c * step + begin, 1.0 / of_row)
            if T.bitwise_and(thread, threads - 1) == 0 and last > 0:
                S[o, i] = of_row

    offset_of_w: T.let = T.if_then_else(of_w > 0, offset, T.float32(0))
    mean[0] = 0.0
    total[0] = 0.0
    if s is not None:
        most[0] = 0.0
        largest[0] = 0.0
    if bits == T.uint8(0) and strides % VEC == 0 and columns <= CACHED * step and of_w > 0 and (of_b > 0) == (centered != 0):
        for c in T.unroll(CACHED, annotations=BY_NVCC):
            load_vector(kept, c * VEC, Xs, c * step + begin, columns, dtype, VEC)
        if centered != 0:
            if of_r > 0:
                in_registers(True, True)
            else:
                in_registers(False, True)
        else:
            if of_r > 0:
                in_registers(True, False)
            else:
                in_registers(False, False)
    else:
        in_turns()
