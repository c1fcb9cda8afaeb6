"""Numbers in few bits: rows and blocks in 8 bits with a factor each, groups in 4 bits with a factor of 8 bits."""

from __future__ import annotations

from tvm.script import tirx as T

from rows import BY_NVCC, CACHED, THREADS, WARPS, after_previous, greater, inside, load_row, load_vector, misaligned, quotient, row_max, store_row, vector, widen

LARGEST = {"float8_e4m3fn": 448.0, "int8": 127.0}
BLOCK = 128                                  # rows and columns with a common factor in `blocks`
UNITS = 2                                    # units of 16 numbers that a thread has in `groups`


@T.inline
def most_of(most, source, at, count, whole, column, columns):
    """The maximum of `most[0]` and the magnitudes of a vector, up to the end of its row."""
    wide = T.alloc_local((count,), "float32")
    widen(wide, source, at, count)
    for v in T.unroll(count):
        if inside(whole, column, v, columns):
            most[0] = greater(most[0], T.fabs(wide[v]))


def factor(most, target):
    """The factor of numbers whose largest magnitude is `most`: at least 2^-126, so that its inverse is finite, and NaN if `most` is."""
    share = most / T.float32(LARGEST[target])
    return T.if_then_else(most == T.float32(0), T.float32(1), T.if_then_else(share < T.float32(2.0 ** -126), T.float32(2.0 ** -126), share))


@T.inline
def to_8_bits(to, source, at, inverse, target, count):
    """The numbers times `inverse`, rounded to the nearest."""
    wide = T.alloc_local((count,), "float32")
    widen(wide, source, at, count)
    if target == "int8":
        for v in T.unroll(count):
            value: T.float32 = T.max(T.min(wide[v] * inverse, T.float32(127)), T.float32(-127))
            # The last byte of value + 1.5 * 2^23 is the rounded value: an addition costs less than two conversions.
            to[v] = T.cast(T.reinterpret("int32", value + T.float32(12582912.0)), target)
    else:
        # One instruction rounds two numbers, and bounds them.
        two = T.alloc_local((2,), "float32")
        for pair in T.unroll(count // 2):
            for e in T.unroll(2):
                two[e] = wide[pair * 2 + e] * inverse
            for e in T.vectorized(2):
                to[pair * 2 + e] = T.cast(two[e], target)


# sim: quantize(dtype="float32", target="int8")
#   x: float32[2x5x32] = (j + k) % 5 - 254
#   q: int8[2x5x32] = 0 -> round(((j + k) % 5 - 254) / 2)
#   s: float32[2x5] = 0 -> 2
#   threads = 2
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
    after_previous()
    block = T.cta_id([T.ceildiv(outer * inner, T.truncdiv(THREADS, threads))])
    thread = T.thread_id([THREADS])
    parts = T.alloc_shared((WARPS,), "float32")
    kept = T.alloc_local((CACHED * VEC,), dtype)
    small = T.alloc_local((VEC,), target)
    most = T.alloc_local((1,), "float32")
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
    strides: T.let = x_outer | x_inner | q_outer | q_inner | T.cast(columns, "int64")
    bits: T.let = misaligned(X.ptr_to([0, 0, 0])) | misaligned(Q.ptr_to([0, 0, 0]))
    Xs = T.decl_buffer((columns,), dtype, data=X.ptr_to([o, i, 0]), scope="global")
    Qs = T.decl_buffer((columns,), target, data=Q.ptr_to([o, i, 0]), scope="global")

    @T.inline
    def result(whole, at, column, inverse):
        to_8_bits(small, kept, at, inverse, target, VEC)
        store_row(whole, Qs, column, last, small, 0, target, VEC)

    @T.inline
    def rows(whole, in_registers):
        turns: T.int32 = T.ceildiv(columns, step)
        if in_registers:
            for c in T.unroll(CACHED, annotations=BY_NVCC):
                load_vector(kept, c * VEC, Xs, c * step + begin, columns, dtype, VEC)
            for c in T.unroll(CACHED, annotations=BY_NVCC):
                most_of(most, kept, c * VEC, VEC, True, c * step + begin, last)
        else:
            for c in range(turns):
                load_row(whole, kept, 0, Xs, c * step + begin, columns, dtype, VEC)
                most_of(most, kept, 0, VEC, whole, c * step + begin, last)
        row_max(most, parts, thread, threads, greater)
        scale: T.float32 = factor(most[0], target)
        inverse: T.float32 = 1.0 / scale
        if in_registers:
            for c in T.unroll(CACHED, annotations=BY_NVCC):
                result(True, c * VEC, c * step + begin, inverse)
        else:
            for c in range(turns):
                load_row(whole, kept, 0, Xs, c * step + begin, columns, dtype, VEC)
                result(whole, 0, c * step + begin, inverse)
        if T.bitwise_and(thread, threads - 1) == 0 and last > 0:
            S[o, i] = scale

    most[0] = 0.0
    if bits == T.uint8(0) and strides % VEC == 0:
        if columns <= CACHED * step:
            rows(True, True)
        else:
            rows(True, False)
    else:
        rows(False, False)


# sim: blocks(dtype="float32")
#   x: float32[2x130x140] = 448 * (i + 1) * (1 + 3 * (j > 127)) if j % 128 == 0 or k % 128 == 0 else i
#   q: float8_e4m3fn[2x130x140] = 0 -> 448 if j % 128 == 0 or k % 128 == 0 else i / ((i + 1) * (1 + 3 * (j > 127)))
#   s: float32[2x2x2] = 0 -> (i + 1) * (1 + 3 * j)
@T.jit
def blocks(x: T.handle, q: T.handle, s: T.handle, *, dtype: T.constexpr):
    """The factor of each block of 128 by 128 numbers, and the numbers in float8. A block of threads has a block of numbers in its registers."""
    batch, rows, columns, down, across = T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
    x_batch, x_row, q_batch, q_row, s_batch, s_row = T.int64(), T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
    target = T.meta_var("float8_e4m3fn")
    X = T.match_buffer(x, (batch, rows, columns), dtype, strides=(x_batch, x_row, 1))
    Q = T.match_buffer(q, (batch, rows, columns), target, strides=(q_batch, q_row, 1))
    S = T.match_buffer(s, (batch, down, across), "float32", strides=(s_batch, s_row, 1))
    VEC = T.meta_var(vector(dtype))
    ACROSS = T.meta_var(BLOCK // VEC)            # threads that share a row
    TURNS = T.meta_var(BLOCK * ACROSS // THREADS)
    T.device_entry()
    after_previous()
    n, m, b = T.cta_id([across, down, batch])
    thread = T.thread_id([THREADS])
    parts = T.alloc_shared((WARPS,), "float32")
    kept = T.alloc_local((TURNS * VEC,), dtype)
    small = T.alloc_local((VEC,), target)
    most = T.alloc_local((1,), "float32")
    column: T.int32 = n * BLOCK + thread % ACROSS * VEC
    first: T.int32 = m * BLOCK + T.truncdiv(thread, ACROSS)
    strides: T.let = x_batch | x_row | q_batch | q_row | T.cast(columns, "int64")
    bits: T.let = misaligned(X.ptr_to([0, 0, 0])) | misaligned(Q.ptr_to([0, 0, 0]))

    @T.inline
    def block_of_numbers(whole):
        for turn in T.unroll(TURNS, annotations=BY_NVCC):
            Xs = T.decl_buffer((columns,), dtype, data=X.ptr_to([b, T.min(first + turn * (THREADS // ACROSS), rows - 1), 0]), scope="global")
            load_row(whole, kept, turn * VEC, Xs, column, columns, dtype, VEC)
        for turn in T.unroll(TURNS, annotations=BY_NVCC):
            most_of(most, kept, turn * VEC, VEC, whole, column, columns)
        row_max(most, parts, thread, THREADS, greater)
        scale: T.float32 = factor(most[0], target)
        inverse: T.float32 = 1.0 / scale
        for turn in T.unroll(TURNS, annotations=BY_NVCC):
            row: T.int32 = first + turn * (THREADS // ACROSS)
            if row < rows:
                Qs = T.decl_buffer((columns,), target, data=Q.ptr_to([b, row, 0]), scope="global")
                to_8_bits(small, kept, turn * VEC, inverse, target, VEC)
                store_row(whole, Qs, column, columns, small, 0, target, VEC)
        if thread == 0:
            S[b, m, n] = scale

    most[0] = 0.0
    if bits == T.uint8(0) and strides % VEC == 0:
        block_of_numbers(True)
    else:
        block_of_numbers(False)


# sim: groups(dtype="float32", GROUP=32)
#   x: float32[1x3x64] = [0, 1, -3, 12][k % 4] * 2 ** j
#   q: uint8[1x3x32] = 0 -> [0x10, 0x7B][k % 2]
#   s: uint8[1x3x2] = 0 -> 128 + j
#   of_tensor = 1.0
# sim: groups(dtype="float32", GROUP=16)
#   x: float32[1x3x64] = [0, 1, -3, 12][k % 4] * 2 ** j
#   q: uint8[1x3x32] = 0 -> [0x10, 0x7B][k % 2]
#   s: uint8[1x3x4] = 0 -> 0x48 + 8 * j
#   of_tensor = 0.5
@T.jit
def groups(x: T.handle, q: T.handle, s: T.handle, of_tensor: T.float32, *, dtype: T.constexpr, GROUP: T.constexpr):
    """Float4 (e2m1) with a factor for each GROUP columns: a power of two in 8 bits for 32 (MXFP4), a float8 for 16 (NVFP4). A number is the float4
    times the factor, for NVFP4 also times `of_tensor`. The number with the even column is in the low half of a byte of Q. A thread has UNITS times 16 numbers.

    A group with a number that is not finite has a factor that is none."""
    outer, inner, columns, pairs, of_row = T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
    x_outer, x_inner, q_outer, q_inner, s_outer, s_inner = T.int64(), T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (outer, inner, columns), dtype, strides=(x_outer, x_inner, 1))
    Q = T.match_buffer(q, (outer, inner, pairs), "uint8", strides=(q_outer, q_inner, 1))
    S = T.match_buffer(s, (outer, inner, of_row), "uint8", strides=(s_outer, s_inner, 1))
    VEC = T.meta_var(vector(dtype))
    of_columns: T.let = T.truncdiv(columns, 16)
    T.device_entry()
    after_previous()
    block = T.cta_id([T.ceildiv(outer * inner * of_columns, UNITS * THREADS)])
    thread = T.thread_id([THREADS])
    numbers = T.alloc_local((UNITS * 16,), dtype)
    wide = T.alloc_local((16,), "float32")
    codes = T.alloc_local((2,), "uint32")
    two_codes = T.decl_buffer((1,), "uint32x2", data=codes.data, scope="local")
    at = T.alloc_local((UNITS, 3), "int32")
    most = T.alloc_local((1,), "float32")

    @T.inline
    def find(u):
        """The place of a unit of 16 numbers: two outer dimensions and the column. Units behind the last one have the place of the last one."""
        unit: T.int32 = T.min((block * UNITS + u) * THREADS + thread, outer * inner * of_columns - 1)
        row: T.int32 = 0
        if outer * inner > 1:
            row = T.truncdiv(unit, of_columns)
        at[u, 0] = 0
        if outer > 1:
            at[u, 0] = T.truncdiv(row, inner)
        at[u, 1] = row - at[u, 0] * inner
        at[u, 2] = (unit - row * of_columns) * 16

    @T.inline
    def quantize_units(whole):
        for u in T.unroll(UNITS, annotations=BY_NVCC):
            find(u)
            Xs = T.decl_buffer((columns,), dtype, data=X.ptr_to([at[u, 0], at[u, 1], 0]), scope="global")
            if whole:
                for v in T.unroll(16 // VEC, annotations=BY_NVCC):
                    load_vector(numbers, u * 16 + v * VEC, Xs, at[u, 2] + v * VEC, columns, dtype, VEC)
            else:
                for v in T.unroll(16, annotations=BY_NVCC):
                    numbers[u * 16 + v] = Xs[at[u, 2] + v]
        for u in T.unroll(UNITS, annotations=BY_NVCC):
            most[0] = 0.0
            widen(wide, numbers, u * 16, 16)
            for v in T.unroll(16, annotations=BY_NVCC):
                most[0] = T.ptx.max_f32(most[0], T.fabs(wide[v]), nan=True)
            if GROUP == 32:
                of_neighbor: T.float32 = T.tvm_warp_shuffle_xor(0xFFFFFFFF, most[0], 1, 32, 32)
                most[0] = T.ptx.max_f32(most[0], of_neighbor, nan=True)
            most_bits: T.uint32 = T.reinterpret("uint32", most[0])
            byte: T.int32 = 0
            inverse: T.float32 = 0.0
            if GROUP == 32:
                # The least power of two that is not below a sixth of the largest magnitude: a sixth of 1.5 is a quarter.
                byte = T.if_then_else(most_bits == T.uint32(0), 127, T.max(T.cast((most_bits + T.uint32(0x003FFFFF)) >> T.uint32(23), "int32") - 2, 0))
                inverse = T.reinterpret("float32", (254 - byte) << 23)
            else:
                small: T.float8_e4m3fn = T.cast(T.min(most[0] / 6.0 / of_tensor, T.float32(448)), "float8_e4m3fn")
                of_group: T.float32 = T.cast(small, "float32") * of_tensor
                byte = T.cast(T.reinterpret("uint8", small), "int32")
                if of_group > T.float32(0):
                    inverse = 1.0 / of_group
                # Only a factor at an end of the range of float8 leaves numbers above 6, and by more than rounding.
                if most[0] * inverse > T.float32(6.9):
                    for v in T.unroll(16, annotations=BY_NVCC):
                        wide[v] = T.max(T.min(wide[v], of_group * T.float32(6)), of_group * T.float32(-6))
            if most_bits >= T.uint32(0x7F800000):
                byte = 0xFF if GROUP == 32 else 0x7F
            for w in T.unroll(2):
                codes[w] = T.uint32(0)
                for v in T.unroll(8, annotations=BY_NVCC):
                    number: T.float32 = wide[w * 8 + (7 - v)] * inverse
                    # Float4 from a power of two p, at least 1, to 2 p are p / 2 apart. A number that is c of these distances has the code
                    # c + 2 log2(p). The last bit of the sum below counts p / 2, so its bits end with c + 6; twice its exponent is 2 log2(p) + 298.
                    # Modulo 8, the 6 and the 298 cancel.
                    power: T.uint32 = T.max(T.reinterpret("uint32", number) & T.uint32(0x7F800000), T.uint32(0x3F800000))
                    sum: T.uint32 = T.reinterpret("uint32", T.reinterpret("float32", power) * T.float32(4194307.0) + T.fabs(number))
                    sign: T.uint32 = T.reinterpret("uint32", number) >> T.uint32(28)
                    codes[w] = (codes[w] << T.uint32(4)) | ((((sum + (sum >> T.uint32(22))) ^ sign) & T.uint32(7)) ^ sign)
            if (block * UNITS + u) * THREADS + thread < outer * inner * of_columns:
                if whole:
                    Qs = T.decl_buffer((T.truncdiv(pairs, 8),), "uint32x2", data=Q.ptr_to([at[u, 0], at[u, 1], 0]), scope="global")
                    Qs[T.truncdiv(at[u, 2], 16)] = two_codes[0]
                else:
                    for e in T.unroll(8, annotations=BY_NVCC):
                        Q[at[u, 0], at[u, 1], T.truncdiv(at[u, 2], 2) + e] = T.cast((codes[e // 4] >> T.uint32(e % 4 * 8)) & T.uint32(255), "uint8")
                if at[u, 2] % GROUP == 0:
                    S[at[u, 0], at[u, 1], T.truncdiv(at[u, 2], GROUP)] = T.cast(byte, "uint8")

    bits: T.let = misaligned(X.ptr_to([0, 0, 0])) | misaligned(Q.ptr_to([0, 0, 0]))
    if bits == T.uint8(0) and (x_outer | x_inner) % VEC == 0 and (q_outer | q_inner) % 8 == 0:
        quantize_units(True)
    else:
        quantize_units(False)
