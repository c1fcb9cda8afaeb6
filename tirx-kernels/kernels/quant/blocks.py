"""Weights of few bits: the numbers themselves, and products with them by FMA. The formats are those of GGUF files, MXFP4, and rows of 4-bit or
float8 numbers with a factor for each group.

`dequantize` takes every format. `matmul` takes groups of other sizes than `few` and `row`, which multiply by `mma.sync`. A warp works on 256
weights of a row at a time, and a lane on 8 neighbors, whose factors of X are one load of 16 bytes. Blocks begin at multiples of 2 bytes (Q8_0,
Q6_K) or 4 bytes (Q4_K), so a lane loads words of 2 or 4 bytes; the lanes of a warp load neighbors."""

from __future__ import annotations

from tvm.script import tirx as T

WARPS = 8
# Bytes of 256 weights, and the alignment of a row.
SIZE = {"Q8_0": 272, "Q4_K": 144, "Q6_K": 210, "INT4": 128, "FP8": 256, "MXFP4": 128}
PTX = {"bfloat16": "bf16", "float16": "f16"}
FACTORS = {"INT4": "float16", "FP8": "float32"}
ALIGN = {"Q8_0": 2, "Q4_K": 4, "Q6_K": 2, "INT4": 4, "FP8": 4, "MXFP4": 4}


def half(bits):
    """The value of a float16 in the low bits of a word."""
    return T.cast(T.reinterpret("float16", T.cast(bits, "uint16")), "float32")


def power_of_two(byte):
    """The value of a float8_e8m0: 2^(byte - 127), and NaN for 255."""
    bits = T.max(T.cast(byte, "uint32") << T.uint32(23), T.uint32(0x00400000))
    return T.reinterpret("float32", T.if_then_else(bits == T.uint32(0x7F800000), T.uint32(0x7FC00000), bits))


@T.inline
def weights(out, words, pairs, block, lane, S, Z, n, of_group, FORMAT):
    """Weights 8 lane .. 8 lane + 7 of a block of 256. `words` and `pairs` are the row's bytes by four and by two; S and Z have the factor and
    the zero of each group of `of_group` weights of row n."""
    if FORMAT == "INT4":
        # The weight with the even column is in the low half of a byte.
        group: T.int32 = T.truncdiv(block * 256 + lane * 8, of_group)
        factor: T.float32 = T.cast(S[n, group], "float32")
        zero: T.float32 = T.cast(Z[n, group], "float32")
        word: T.uint32 = words[block * 32 + lane]
        for e in T.unroll(8):
            out[e] = (T.cast((word >> T.cast(e * 4, "uint32")) & T.uint32(15), "float32") - zero) * factor
    elif FORMAT == "MXFP4":
        # The bits of a float4 in a float16 are its value times 2^-14, also for subnormals.
        factor: T.float32 = power_of_two(S[n, block * 8 + T.truncdiv(lane, 4)])
        word: T.uint32 = words[block * 32 + lane]
        for e in T.unroll(8):
            number: T.uint32 = word >> T.uint32(e * 4)
            out[e] = half(((number & T.uint32(7)) << T.uint32(9)) | ((number & T.uint32(8)) << T.uint32(12))) * 16384.0 * factor
    elif FORMAT == "FP8":
        factor: T.float32 = S[n, T.truncdiv(block * 256 + lane * 8, of_group)]
        for p in T.unroll(2):
            word: T.uint32 = words[block * 64 + lane * 2 + p]
            for e in T.unroll(4):
                byte: T.uint8 = T.cast((word >> T.cast(e * 8, "uint32")) & T.uint32(255), "uint8")
                out[p * 4 + e] = T.cast(T.reinterpret("float8_e4m3fn", byte), "float32") * factor
    elif FORMAT == "Q8_0":
        # 8 blocks of 32: a float16 factor and 32 signed bytes.
        begin: T.int32 = block * (SIZE[FORMAT] // 2) + T.truncdiv(lane, 4) * 17
        factor: T.float32 = half(pairs[begin])
        for p in T.unroll(4):
            pair: T.uint16 = pairs[begin + 1 + lane % 4 * 4 + p]
            for e in T.unroll(2):
                byte: T.int8 = T.reinterpret("int8", T.cast(T.bitwise_and(pair >> T.cast(e * 8, "uint16"), T.uint16(255)), "uint8"))
                out[p * 2 + e] = T.cast(byte, "float32") * factor
    elif FORMAT == "Q4_K":
        # Two float16 factors, twelve bytes with 8 factors and 8 minima of 6 bits, 128 bytes: 64 weights in 32 bytes, the low halves first.
        begin: T.int32 = block * (SIZE[FORMAT] // 4)
        factors: T.uint32 = words[begin]
        low: T.uint32 = words[begin + 1]
        middle: T.uint32 = words[begin + 2]
        high: T.uint32 = words[begin + 3]
        part: T.int32 = T.truncdiv(lane, 4)
        shift: T.uint32 = T.cast(part % 4 * 8, "uint32")
        scale: T.uint32 = T.uint32(0)
        least: T.uint32 = T.uint32(0)
        if part < 4:
            scale = (low >> shift) & T.uint32(63)
            least = (middle >> shift) & T.uint32(63)
        else:
            scale = ((high >> shift) & T.uint32(15)) | (((low >> shift) & T.uint32(0xC0)) >> T.uint32(2))
            least = ((high >> (shift + T.uint32(4))) & T.uint32(15)) | (((middle >> shift) & T.uint32(0xC0)) >> T.uint32(2))
        factor: T.float32 = half(factors & T.uint32(0xFFFF)) * T.cast(scale, "float32")
        minimum: T.float32 = half(factors >> T.uint32(16)) * T.cast(least, "float32")
        nibble: T.uint32 = T.cast(T.truncdiv(lane, 4) % 2 * 4, "uint32")
        for p in T.unroll(2):
            word: T.uint32 = words[begin + 4 + T.truncdiv(lane, 8) * 8 + lane % 4 * 2 + p] >> nibble
            for e in T.unroll(4):
                out[p * 4 + e] = T.cast((word >> T.cast(e * 8, "uint32")) & T.uint32(15), "float32") * factor - minimum
    else:
        # Two halves of 128: 64 bytes with the low four bits, 32 bytes with the high two; 16 signed factors, a float16 factor.
        begin: T.int32 = block * (SIZE[FORMAT] // 2)
        side: T.int32 = T.truncdiv(lane, 16)
        quarter: T.int32 = T.truncdiv(lane, 4) % 4
        scales: T.uint16 = pairs[begin + 96 + side * 4 + quarter]
        byte: T.uint16 = T.bitwise_and(scales >> T.cast(T.truncdiv(lane % 4, 2) * 8, "uint16"), T.uint16(255))
        factor: T.float32 = half(pairs[begin + 104]) * T.cast(T.reinterpret("int8", T.cast(byte, "uint8")), "float32")
        for p in T.unroll(4):
            low_bits: T.uint32 = T.cast(pairs[begin + side * 32 + quarter % 2 * 16 + lane % 4 * 4 + p], "uint32")
            high_bits: T.uint32 = T.cast(pairs[begin + 64 + side * 16 + lane % 4 * 4 + p], "uint32")
            for e in T.unroll(2):
                value: T.uint32 = ((low_bits >> T.cast(T.truncdiv(quarter, 2) * 4 + e * 8, "uint32")) & T.uint32(15)) | (
                    ((high_bits >> T.cast(quarter * 2 + e * 8, "uint32")) & T.uint32(3)) << T.uint32(4))
                out[p * 2 + e] = (T.cast(value, "float32") - 32.0) * factor


@T.jit
def matmul(x: T.handle, w: T.handle, s: T.handle, z: T.handle, y: T.handle, warps: T.int32, of_group: T.int32, *, dtype: T.constexpr,
           FORMAT: T.constexpr, M: T.constexpr):
    """Y = X W^T for up to M rows of X at a time; `warps` warps divide the columns of a few rows of W. S and Z are empty for formats that have
    factors in their blocks."""
    rows, columns, outputs, size, of_s, of_z, groups = T.int32(), T.int32(), T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
    x_row, w_row, s_row, z_row, y_row = T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (rows, columns), dtype, strides=(x_row, 1), align=16)
    W = T.match_buffer(w, (outputs, size), "uint8", strides=(w_row, 1), align=ALIGN[FORMAT])
    S = T.match_buffer(s, (of_s, groups), FACTORS.get(FORMAT, "uint8"), strides=(s_row, 1))
    Z = T.match_buffer(z, (of_z, groups), "uint8", strides=(z_row, 1))
    Y = T.match_buffer(y, (rows, outputs), dtype, strides=(y_row, 1))
    ROWS = T.meta_var(4 if M == 1 else 2)        # more rows at a time have more bytes in flight
    T.device_entry()
    block, first_row = T.cta_id([T.ceildiv(outputs * warps, WARPS * ROWS), T.ceildiv(rows, M)])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    parts = T.alloc_shared((WARPS, ROWS, M), "float32")
    factors = T.alloc_local((ROWS, 8), "float32")
    one = T.alloc_local((8,), "float32")
    input = T.alloc_local((8,), dtype)
    vector = T.decl_buffer((1,), dtype + "x8", data=input.data, scope="local")
    acc = T.alloc_local((ROWS, M), "float32")
    unit: T.int32 = block * T.truncdiv(WARPS, warps) + T.truncdiv(warp, warps)
    own: T.int32 = warp - T.truncdiv(warp, warps) * warps
    for r, m in T.grid(ROWS, M):
        acc[r, m] = T.float32(0)
    for step in range(T.ceildiv(columns, 256 * warps)):
        number: T.int32 = step * warps + own
        column: T.int32 = number * 256 + lane * 8
        if column < columns:
            for r in T.unroll(ROWS):
                # The last unit may have fewer rows; it reads the last row again.
                n: T.int32 = T.min(unit * ROWS + r, outputs - 1)
                words = T.decl_buffer((size // 4,), "uint32", data=W.ptr_to([n, 0]), scope="global")
                pairs = T.decl_buffer((size // 2,), "uint16", data=W.ptr_to([n, 0]), scope="global")
                weights(one, words, pairs, number, lane, S, Z, n, of_group, FORMAT)
                for e in T.unroll(8):
                    factors[r, e] = one[e]
            for m in T.unroll(M):
                if first_row * M + m < rows:
                    Xs = T.decl_buffer((columns // 8,), dtype + "x8", data=X.ptr_to([first_row * M + m, 0]), scope="global")
                    vector[0] = Xs[T.truncdiv(column, 8)]
                    for e in T.unroll(8):
                        for r in T.unroll(ROWS):
                            acc[r, m] += T.cast(input[e], "float32") * factors[r, e]
    for r, m in T.grid(ROWS, M):
        acc[r, m] = T.cuda.warp_sum(acc[r, m])
    if lane == 0:
        for r, m in T.grid(ROWS, M):
            parts[warp, r, m] = acc[r, m]
    T.cuda.cta_sync()
    if own == 0 and lane < ROWS * M:
        r: T.int32 = T.truncdiv(lane, M)
        m: T.int32 = lane % M
        total: T.float32 = 0.0
        for k in range(warps):
            total += parts[warp + k, r, m]
        if unit * ROWS + r < outputs and first_row * M + m < rows:
            Y[first_row * M + m, unit * ROWS + r] = T.cast(total, dtype)


@T.jit
def dequantize(w: T.handle, s: T.handle, z: T.handle, y: T.handle, of_group: T.int32, *, dtype: T.constexpr, FORMAT: T.constexpr):
    """Y = W: a warp for each 256 numbers."""
    outputs, columns, size, of_s, of_z, groups = T.int32(), T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
    w_row, s_row, z_row, y_row = T.int64(), T.int64(), T.int64(), T.int64()
    W = T.match_buffer(w, (outputs, size), "uint8", strides=(w_row, 1), align=ALIGN[FORMAT])
    S = T.match_buffer(s, (of_s, groups), FACTORS.get(FORMAT, "uint8"), strides=(s_row, 1))
    Z = T.match_buffer(z, (of_z, groups), "uint8", strides=(z_row, 1))
    Y = T.match_buffer(y, (outputs, columns), dtype, strides=(y_row, 1), align=16)
    T.device_entry()
    n, block = T.cta_id([outputs, T.ceildiv(columns, 256 * WARPS)])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    one = T.alloc_local((8,), "float32")
    out = T.alloc_local((8,), dtype)
    number: T.int32 = block * WARPS + warp
    column: T.int32 = number * 256 + lane * 8
    if column < columns:
        words = T.decl_buffer((size // 4,), "uint32", data=W.ptr_to([n, 0]), scope="global")
        pairs = T.decl_buffer((size // 2,), "uint16", data=W.ptr_to([n, 0]), scope="global")
        weights(one, words, pairs, number, lane, S, Z, n, of_group, FORMAT)
        for e in T.unroll(8):
            out[e] = T.cast(one[e], dtype)
        Ys = T.decl_buffer((columns // 8,), dtype + "x8", data=Y.ptr_to([n, 0]), scope="global")
        vector = T.decl_buffer((1,), dtype + "x8", data=out.data, scope="local")
        Ys[T.truncdiv(column, 8)] = vector[0]
