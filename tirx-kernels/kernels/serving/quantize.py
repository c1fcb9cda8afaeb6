"""Rows in 8 bits with a factor for each row."""

from __future__ import annotations

from tvm.script import tirx as T

from rows import CACHED, THREADS, WARPS, load_row, misaligned, row_max, store_row, vector

LARGEST = {"float8_e4m3fn": 448.0, "int8": 127.0}


# sim: quantize(dtype="float32", target="int8")
#   x: float32[1x5x80] = (j + k) % 5 - 254
#   q: int8[1x5x80] = 0 -> round(((j + k) % 5 - 254) / 2)
#   s: float32[1x5] = 0 -> 2
#   threads = 2
@T.jit
def quantize(x: T.handle, q: T.handle, s: T.handle, threads: T.int32, *, dtype: T.constexpr, target: T.constexpr):
    """S[r] = max(|X[r]|) / the largest value of 8 bits, or 1 for a row of zeros; Q = X * (1 / S), rounded to the nearest."""
    outer, inner, columns = T.int32(), T.int32(), T.int32()
    x_outer, x_inner, q_outer, q_inner, s_outer, s_inner = T.int64(), T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (outer, inner, columns), dtype, strides=(x_outer, x_inner, 1))
    Q = T.match_buffer(q, (outer, inner, columns), target, strides=(q_outer, q_inner, 1))
    S = T.match_buffer(s, (outer, inner), "float32", strides=(s_outer, s_inner))
    VEC = T.meta_var(vector(dtype))
    T.device_entry()
    block = T.cta_id([T.ceildiv(outer * inner, T.truncdiv(THREADS, threads))])
    thread = T.thread_id([THREADS])
    parts = T.alloc_shared((WARPS,), "float32")
    kept = T.alloc_local((CACHED * VEC,), dtype)
    more = T.alloc_local((VEC,), dtype)
    small = T.alloc_local((VEC,), target)
    most = T.alloc_local((1,), "float32")
    row: T.int32 = block * T.truncdiv(THREADS, threads) + T.truncdiv(thread, threads)
    last: T.int32 = columns
    if row >= outer * inner:
        row = 0
        last = 0
    o: T.int32 = T.truncdiv(row, inner)
    i: T.int32 = row - o * inner
    step: T.int32 = threads * VEC
    begin: T.int32 = T.bitwise_and(thread, threads - 1) * VEC
    strides: T.let = x_outer | x_inner | q_outer | q_inner | T.cast(columns, "int64")
    bits: T.let = misaligned(X.ptr_to([0, 0, 0])) | misaligned(Q.ptr_to([0, 0, 0]))
    Xs = T.decl_buffer((columns,), dtype, data=X.ptr_to([o, i, 0]), scope="global")
    Qs = T.decl_buffer((columns,), target, data=Q.ptr_to([o, i, 0]), scope="global")

    @T.inline
    def maximum(of, at):
        for v in T.unroll(VEC):
            most[0] = T.max(most[0], T.fabs(T.cast(of[at + v], "float32")))

    @T.inline
    def result(whole, of, at, column, inverse):
        for v in T.unroll(VEC):
            value: T.float32 = T.max(T.min(T.cast(of[at + v], "float32") * inverse, T.float32(LARGEST[target])), T.float32(-LARGEST[target]))
            if target == "int8":
                # The last byte of value + 1.5 * 2^23 is the rounded value: an addition costs less than two conversions.
                small[v] = T.cast(T.reinterpret("int32", value + T.float32(12582912.0)), target)
            else:
                small[v] = T.cast(value, target)
        store_row(whole, Qs, column, last, small, 0, target, VEC)

    @T.inline
    def rows(whole):
        for c in T.unroll(CACHED):
            load_row(whole, kept, c * VEC, Xs, c * step + begin, last, dtype, VEC)
        for c in T.unroll(CACHED):
            maximum(kept, c * VEC)
        for c in range(CACHED, T.ceildiv(columns, step)):
            load_row(whole, more, 0, Xs, c * step + begin, last, dtype, VEC)
            maximum(more, 0)
        row_max(most, parts, thread, threads)
        scale: T.float32 = most[0] / T.float32(LARGEST[target])
        if scale == T.float32(0):
            scale = 1.0
        inverse: T.float32 = 1.0 / scale
        for c in T.unroll(CACHED):
            if c * step < columns:
                result(whole, kept, c * VEC, c * step + begin, inverse)
        for c in range(CACHED, T.ceildiv(columns, step)):
            load_row(whole, more, 0, Xs, c * step + begin, last, dtype, VEC)
            result(whole, more, 0, c * step + begin, inverse)
        if T.bitwise_and(thread, threads - 1) == 0 and last > 0:
            S[o, i] = scale

    most[0] = 0.0
    if bits == T.uint8(0) and strides % VEC == 0:
        rows(True)
    else:
        rows(False)
