"""Numbers in few bits: rows and blocks in 8 bits with a factor each, groups in 4 bits with a factor of 8 bits."""

from __future__ import annotations

from tvm.script import tirx as T

from rows import BY_NVCC, CACHED, THREADS, WARPS, after_previous, inside, load_row, load_vector, misaligned, quotient, row_max, store_row, vector

LARGEST = {"float8_e4m3fn": 448.0, "int8": 127.0}
BLOCK = 128                                  # rows and columns with a common factor in `blocks`


@T.inline
def most_of(most, source, at, count, whole, column, columns):
    """The maximum of `most[0]` and the magnitudes of a vector, up to the end of its row."""
    for v in T.unroll(count):
        if inside(whole, column, v, columns):
            most[0] = T.max(most[0], T.fabs(T.cast(source[at + v], "float32")))


def factor(most, target):
    """The factor of numbers whose largest magnitude is `most`."""
    return T.if_then_else(most == T.float32(0), T.float32(1), most / T.float32(LARGEST[target]))


@T.inline
def to_8_bits(to, source, at, inverse, target, count):
    """The numbers times `inverse`, rounded to the nearest."""
    if target == "int8":
        for v in T.unroll(count):
            value: T.float32 = T.max(T.min(T.cast(source[at + v], "float32") * inverse, T.float32(127)), T.float32(-127))
            # The last byte of value + 1.5 * 2^23 is the rounded value: an addition costs less than two conversions.
            to[v] = T.cast(T.reinterpret("int32", value + T.float32(12582912.0)), target)
    else:
        # One instruction rounds two numbers, and bounds them.
        two = T.alloc_local((2,), "float32")
        for pair in T.unroll(count // 2):
            for e in T.unroll(2):
                two[e] = T.cast(source[at + pair * 2 + e], "float32") * inverse
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
        row_max(most, parts, thread, threads)
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
        row_max(most, parts, thread, THREADS)
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
    times the factor, for NVFP4 also times `of_tensor`. The number with the even column is in the low half of a byte of Q. A thread has 16 numbers.

    A group with a number that is not finite has a factor that is none."""
    outer, inner, columns, pairs, of_row = T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
    x_outer, x_inner, q_outer, q_inner, s_outer, s_inner = T.int64(), T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (outer, inner, columns), dtype, strides=(x_outer, x_inner, 1))
    Q = T.match_buffer(q, (outer, inner, pairs), "uint8", strides=(q_outer, q_inner, 1))
    S = T.match_buffer(s, (outer, inner, of_row), "uint8", strides=(s_outer, s_inner, 1))
    VEC = T.meta_var(vector(dtype))
    T.device_entry()
    after_previous()
    block = T.cta_id([T.ceildiv(outer * inner * T.truncdiv(columns, 16), THREADS)])
    thread = T.thread_id([THREADS])
    numbers = T.alloc_local((16,), dtype)
    codes = T.alloc_local((2,), "uint32")
    unit: T.int32 = block * THREADS + thread
    of_columns: T.int32 = T.truncdiv(columns, 16)
    row: T.int32 = T.min(T.truncdiv(unit, of_columns), outer * inner - 1)
    column: T.int32 = (unit - T.truncdiv(unit, of_columns) * of_columns) * 16
    o: T.int32 = T.truncdiv(row, inner)
    i: T.int32 = row - o * inner
    Xs = T.decl_buffer((columns,), dtype, data=X.ptr_to([o, i, 0]), scope="global")
    if T.bitwise_or(misaligned(X.ptr_to([0, 0, 0])), T.cast((x_outer | x_inner) % VEC, "uint8")) == T.uint8(0):
        for v in T.unroll(16 // VEC, annotations=BY_NVCC):
            load_vector(numbers, v * VEC, Xs, column + v * VEC, columns, dtype, VEC)
    else:
        for v in T.unroll(16, annotations=BY_NVCC):
            numbers[v] = Xs[column + v]
    # As integers, the bits of magnitudes are ordered like the magnitudes, and those of numbers that are not finite are the greatest.
    most: T.int32 = 0
    for v in T.unroll(16, annotations=BY_NVCC):
        most = T.max(most, T.bitwise_and(T.reinterpret("int32", T.cast(numbers[v], "float32")), 0x7FFFFFFF))
    byte: T.uint32 = T.uint32(0)
    inverse: T.float32 = 0.0
    if GROUP == 32:
        most = T.max(most, T.tvm_warp_shuffle_xor(0xFFFFFFFF, most, 1, 32, 32))
        # The least power of two that is not below a sixth of the largest magnitude.
        sixth: T.uint32 = T.reinterpret("uint32", T.reinterpret("float32", most) / 6.0)
        byte = T.if_then_else(most == 0, T.uint32(127), (sixth + T.uint32(0x007FFFFF)) >> T.uint32(23))
        if most >= 0x7F800000:
            byte = T.uint32(255)
        inverse = T.reinterpret("float32", (T.uint32(254) - T.min(byte, T.uint32(254))) << T.uint32(23))
    else:
        small: T.float8_e4m3fn = T.cast(T.min(T.reinterpret("float32", most) / 6.0 / of_tensor, T.float32(448)), "float8_e4m3fn")
        whole: T.float32 = T.cast(small, "float32") * of_tensor
        byte = T.cast(T.reinterpret("uint8", small), "uint32")
        if most >= 0x7F800000:
            byte = T.uint32(0x7F)
        if whole > T.float32(0):
            inverse = 1.0 / whole
    for w in T.unroll(2):
        codes[w] = T.uint32(0)
        for v in T.unroll(8, annotations=BY_NVCC):
            number: T.float32 = T.cast(numbers[w * 8 + v], "float32") * inverse
            size: T.float32 = T.min(T.fabs(number), T.float32(6))
            # Rounded to halves up to 2, to ones up to 4, to twos up to 6: of the three roundings, the one that counts least is the right one. Behind
            # an addition of 2^22, 2^23 and 2^24, the last bits count.
            halves: T.uint32 = T.reinterpret("uint32", size + T.float32(4194304.0)) - T.uint32(0x4A800000)
            ones: T.uint32 = T.reinterpret("uint32", size + T.float32(8388608.0)) - T.uint32(0x4B000000 - 2)
            twos: T.uint32 = T.reinterpret("uint32", size + T.float32(16777216.0)) - T.uint32(0x4B800000 - 4)
            code: T.uint32 = T.min(halves, T.min(ones, twos))
            sign: T.uint32 = (T.reinterpret("uint32", number) >> T.uint32(28)) & T.uint32(8)
            codes[w] = codes[w] | ((code | sign) << T.uint32(v * 4))
    if unit < outer * inner * of_columns:
        if T.bitwise_and(misaligned(Q.ptr_to([o, i, 0])), T.uint8(3)) == T.uint8(0):
            Qs = T.decl_buffer((T.truncdiv(pairs, 4),), "uint32", data=Q.ptr_to([o, i, 0]), scope="global")
            for w in T.unroll(2):
                Qs[T.truncdiv(column, 8) + w] = codes[w]
        else:
            for e in T.unroll(8, annotations=BY_NVCC):
                Q[o, i, T.truncdiv(column, 2) + e] = T.cast((codes[e // 4] >> T.uint32(e % 4 * 8)) & T.uint32(255), "uint8")
        if column % GROUP == 0:
            S[o, i, T.truncdiv(column, GROUP)] = T.cast(byte, "uint8")
