"""Weights of few bits: products with few rows, and the numbers themselves. The formats are those of GGUF files, MXFP4, and rows of 4-bit or
float8 numbers with a factor for each group.

`few` multiplies by `mma.sync`: the numbers of the weights are small integers or float8, exact in 16 bits, and their factors multiply the
float32 results of 16 to 128 columns. For a number of unsigned bits the bits themselves are the low bits of a 16-bit float, so it needs no conversion. The product by
the numbers less their bias is the product by the biased numbers less the bias times the sum of X, an MMA with a matrix of ones.

`matmul` takes what `few` does not: groups of other sizes, unaligned rows, and one row of X for Q8_0. `dequantize` takes every format. A warp
works on 256 weights of a row at a time, and a lane on 8 neighbors, whose factors of X are one load of 16 bytes. Blocks begin at
multiples of 2 bytes (Q8_0, Q6_K) or 16 bytes (Q4_K), so a lane loads words of 2 or 4 bytes; the lanes of a warp load neighbors."""

from __future__ import annotations

from tvm.script import tirx as T

WARPS = 8
# Bytes of 256 weights, and the alignment of a row.
SIZE = {"Q8_0": 272, "Q4_K": 144, "Q6_K": 210, "INT4": 128, "FP8": 256, "MXFP4": 128}
PTX = {"bfloat16": "bf16", "float16": "f16"}
FACTORS = {"INT4": "float16", "FP8": "float32"}
ALIGN = {"Q8_0": 2, "Q4_K": 4, "Q6_K": 2, "INT4": 4, "FP8": 4, "MXFP4": 4}
# The alignment of a row for `few`. INT4_128 is INT4 in groups of a multiple of 128 columns.
ALIGN_FEW = {"Q8_0": 2, "Q4_K": 16, "Q6_K": 2, "INT4": 4, "INT4_128": 16, "FP8": 16, "MXFP4": 4}


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


@T.inline
def each(to, word, mask, bits):
    """The masked bits of a word over `bits`: two numbers in the mantissas of 16-bit floats."""
    T.ptx.lop3.b32(to, word, T.uint32(mask), T.uint32(bits), 0xEA)


def shifted(word, right):
    """A word, shifted to the right, or to the left by `-right`."""
    return T.if_then_else(right >= 0, word >> T.cast(T.max(right, 0), "uint32"), word << T.cast(T.max(-right, 0), "uint32"))


@T.inline
def times_byte(to, at, factor, zero, word, shift):
    """The factor times a byte of a word. 2^23 + the byte is a float32 whose last bits are those of the byte, and `zero` is the factor times
    -2^23: the product is exact, and needs no conversion."""
    byte = T.alloc_local((1,), "uint32")
    each(byte[0], word >> T.uint32(shift), 255, 0x4B000000)
    to[at] = T.fma(factor, T.reinterpret("float32", byte[0]), zero)


@T.jit
def few(x: T.handle, w: T.handle, s: T.handle, z: T.handle, y: T.handle, warps: T.int32, of_group: T.int32, blocks: T.int32, *,
        dtype: T.constexpr, FORMAT: T.constexpr, TILES: T.constexpr = 1):
    """Y = X W^T by `mma.sync` for up to 8 TILES rows of X at a time: the rows of an MMA are 16 rows of W, its columns are 8 rows of X. `warps`
    warps divide the columns of 16 rows of W, a unit; a block goes from unit to unit, and loads the next weights while it multiplies by those
    that it has. Groups have a multiple of 32 columns, of 64 for FP8."""
    INT4 = T.meta_var(FORMAT == "INT4" or FORMAT == "INT4_128")
    rows, columns, outputs, size, of_s, of_z, groups = T.int32(), T.int32(), T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
    x_row, w_row, s_row, z_row, y_row = T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (rows, columns), dtype, strides=(x_row, 1), align=16)
    W = T.match_buffer(w, (outputs, size), "uint8", strides=(w_row, 1), align=ALIGN_FEW[FORMAT])
    S = T.match_buffer(s, (of_s, groups), "float16" if INT4 else "float32" if FORMAT == "FP8" else "uint8", strides=(s_row, 1))
    Z = T.match_buffer(z, (of_z, groups), "uint8", strides=(z_row, 1))
    Y = T.match_buffer(y, (rows, outputs), dtype, strides=(y_row, 1))
    # A number n of up to 7 bits is the bfloat16 128 + n, or the subnormal float16 n 2^-24: its bits are those of n, below these.
    BF16 = T.meta_var(dtype == "bfloat16")
    BITS = T.meta_var(0x43004300 if BF16 else 0)
    SIGNS = T.meta_var(0xC300C300 if BF16 else 0x80008000)
    ONES = T.meta_var(0x3F803F80 if BF16 else 0x3C003C00)
    BIAS = T.meta_var(128.0 if BF16 else 0.0)
    UNIT = T.meta_var(1.0 if BF16 else 16777216.0)
    # The 32 columns from which a lane takes neighbors: 16 bytes of 128 columns for INT4 in groups of a multiple of 128, and of 64 for FP8.
    SPAN = T.meta_var(4 if FORMAT == "INT4_128" else 2 if FORMAT == "FP8" else 1)
    # The shift of a float8 or float4 without its sign to its place in a 16-bit float.
    MAGNITUDE = T.meta_var((6 if BF16 else 9) if FORMAT == "MXFP4" else 4 if BF16 else 7)
    MINIMA = T.meta_var(INT4 or FORMAT == "Q4_K")
    # The words that a lane loads of a row in 256 columns: the numbers, then their factors.
    NUMBERS = T.meta_var({"Q4_K": 12, "Q6_K": 12, "Q8_0": 16, "INT4": 8, "INT4_128": 8, "FP8": 16, "MXFP4": 8}[FORMAT])
    FACTORS_OF = T.meta_var({"Q4_K": 0, "Q6_K": 9, "Q8_0": 8, "INT4": 16, "INT4_128": 4, "FP8": 4, "MXFP4": 8}[FORMAT])
    T.device_entry()
    block, first_row = T.cta_id([blocks, T.ceildiv(rows, 8 * TILES)])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    parts = T.alloc_shared((2, WARPS, TILES, 16, 8), "float32")
    raw = T.alloc_local((2, NUMBERS), "uint32")
    ahead = T.alloc_local((2, NUMBERS), "uint32")
    if FACTORS_OF > 0:
        raw_factors = T.alloc_local((2, FACTORS_OF), "uint32")
        factors_ahead = T.alloc_local((2, FACTORS_OF), "uint32")
    by_4_words = T.decl_buffer((NUMBERS // 2,), "uint32x4", data=ahead.data, scope="local")
    by_2_words = T.decl_buffer((NUMBERS,), "uint32x2", data=ahead.data, scope="local")
    xs = T.alloc_local((TILES, 4), "uint32")
    vector = T.decl_buffer((TILES,), "uint32x4", data=xs.data, scope="local")
    halves = T.decl_buffer((TILES * 2,), "uint32x2", data=xs.data, scope="local")
    a = T.alloc_local((4,), "uint32")
    b = T.alloc_local((2,), "uint32")
    if FORMAT != "FP8" and FORMAT != "MXFP4":
        second = T.alloc_local((4,), "uint32")           # another operand for the same numbers of X
    part = T.alloc_local((TILES * 4,), "float32")
    scaled = T.alloc_local((2,), "float32")
    if MINIMA:
        sums = T.alloc_local((TILES * 4,), "float32")
        least = T.alloc_local((2,), "float32")
    acc = T.alloc_local((TILES * 4,), "float32")
    own: T.int32 = warp - T.truncdiv(warp, warps) * warps
    row: T.int32 = T.truncdiv(lane, 4)
    four: T.int32 = lane % 4
    units: T.int32 = T.truncdiv(WARPS, warps)            # of a block at a time
    steps: T.let = T.ceildiv(columns, 256 * warps)
    last: T.let = T.ceildiv(columns, 256) - 1
    for e in T.unroll(TILES * 4):
        acc[e] = T.float32(0)
    if FORMAT == "Q6_K":
        for e in T.unroll(4):
            second[e] = T.uint32(SIGNS | 0x00200020)
    elif MINIMA:
        for e in T.unroll(4):
            second[e] = T.uint32(ONES)

    @T.inline
    def load_ahead(unit, wanted):
        """Loads block `wanted` of the rows of a unit. What is past the end is the last of its kind again, and nothing of it is written."""
        number: T.let = T.min(wanted, last)
        for r in T.unroll(2):
            n: T.int32 = T.min(unit * 16 + row + r * 8, outputs - 1)
            by16 = T.decl_buffer((size // 16,), "uint32x4", data=W.ptr_to([n, 0]), scope="global")
            by8 = T.decl_buffer((size // 8,), "uint32x2", data=W.ptr_to([n, 0]), scope="global")
            by4 = T.decl_buffer((size // 4,), "uint32", data=W.ptr_to([n, 0]), scope="global")
            by2 = T.decl_buffer((size // 2,), "uint16", data=W.ptr_to([n, 0]), scope="global")
            if FORMAT == "Q4_K":
                # Two float16 factors, twelve bytes with 8 factors and 8 minima of 6 bits; 128 bytes.
                by_4_words[r * 3] = by16[number * 9]
                for c in T.unroll(4):
                    by_2_words[r * 6 + 2 + c] = by8[number * 18 + 2 + c * 4 + four]
            elif FORMAT == "Q6_K":
                # The low four bits by side, half of 16, quarter % 2; then the high two bits by side, half of 16.
                begin: T.int32 = number * 105 + four * 2
                for k in T.unroll(4):
                    for p in T.unroll(2):
                        at: T.int32 = begin + k // 2 * 32 + p * 16 + k % 2 * 8
                        ahead[r, k * 2 + p] = T.cast(by2[at], "uint32") | (T.cast(by2[at + 1], "uint32") << T.uint32(16))
                    at: T.int32 = begin + 64 + k * 8
                    ahead[r, 8 + k] = T.cast(by2[at], "uint32") | (T.cast(by2[at + 1], "uint32") << T.uint32(16))
                for i in T.unroll(9):
                    factors_ahead[r, i] = T.cast(by2[number * 105 + 96 + i], "uint32")
            elif FORMAT == "Q8_0":
                for i in T.unroll(8):
                    begin: T.int32 = T.min(number * 8 + i, columns // 32 - 1) * 17
                    factors_ahead[r, i] = T.cast(by2[begin], "uint32")
                    for j in T.unroll(2):
                        at: T.int32 = begin + 1 + four * 4 + j * 2
                        ahead[r, i * 2 + j] = T.cast(by2[at], "uint32") | (T.cast(by2[at + 1], "uint32") << T.uint32(16))
            elif FORMAT == "FP8":
                for k in T.unroll(4):
                    at: T.int32 = T.min(number * 4 + k, columns // 64 - 1)
                    by_4_words[r * 4 + k] = by16[at * 4 + four]
                    factors_ahead[r, k] = T.reinterpret("uint32", S[n, T.truncdiv(at * 64, of_group)])
            elif FORMAT == "MXFP4":
                for k in T.unroll(8):
                    at: T.int32 = T.min(number * 8 + k, columns // 32 - 1)
                    ahead[r, k] = by4[at * 4 + four]
                    factors_ahead[r, k] = T.cast(S[n, at], "uint32")
            else:
                # The group of the first 32 columns, and its columns that are done, by 32.
                of_32: T.int32 = T.truncdiv(of_group, 32)
                group: T.int32 = T.truncdiv(number * 8, of_32)
                done: T.int32 = number * 8 - group * of_32
                for k in T.unroll(8 // SPAN):
                    at: T.int32 = T.min(number * 8 // SPAN + k, columns // (32 * SPAN) - 1)
                    if SPAN == 4:
                        by_4_words[r * 2 + k] = by16[at * 4 + four]
                    else:
                        ahead[r, k] = by4[at * 4 + four]
                    if done >= of_32:
                        group += 1
                        done = 0
                    done += SPAN
                    factors_ahead[r, k] = T.cast(T.reinterpret("uint16", S[n, T.min(group, groups - 1)]), "uint32")
                    factors_ahead[r, 8 // SPAN + k] = T.cast(Z[n, T.min(group, groups - 1)], "uint32")

    @T.inline
    def load_x(number, i):
        """Eight numbers of each row of X, in the order in which a lane has those of W. Zeros past the end."""
        for t in T.unroll(TILES):
            m: T.let = T.min((first_row * TILES + t) * 8 + row, rows - 1)
            by8 = T.decl_buffer((columns // 8,), "uint32x4", data=X.ptr_to([m, 0]), scope="global")
            by4 = T.decl_buffer((columns // 4,), "uint32x2", data=X.ptr_to([m, 0]), scope="global")
            if FORMAT == "Q4_K":
                vector[t] = by8[number * 32 + i * 4 + four]
            elif FORMAT == "Q6_K":
                for h in T.unroll(2):
                    halves[t * 2 + h] = by4[number * 64 + i * 8 + h * 4 + four]
            else:
                for e in T.unroll(4):
                    xs[t, e] = T.uint32(0)
                if number * 256 + i // SPAN * SPAN * 32 < columns:
                    vector[t] = by8[number * 32 + i // SPAN * SPAN * 4 + four * SPAN + i % SPAN]

    @T.inline
    def multiply(of, out, t):
        T.ptx["mma.sync.aligned.m16n8k16.row.col.f32." + PTX[dtype] + "." + PTX[dtype] + ".f32"](
            [out.ptr_to([t * 4 + e]) for e in range(4)], [of[e] for e in range(4)], [b[e] for e in range(2)], [out[t * 4 + e] for e in range(4)])

    @T.inline
    def multiply_both(first, next, also):
        """By `a`, and with `also` by `second`. Each pair of numbers of X is split: bytes of weights are taken by two that are no neighbors."""
        for t in T.unroll(TILES):
            b[0] = (xs[t, first] & T.uint32(0xFFFF)) | (xs[t, next] << T.uint32(16))
            b[1] = (xs[t, first] >> T.uint32(16)) | (xs[t, next] & T.uint32(0xFFFF0000))
            multiply(a, part, t)
            if also == "sums":
                multiply(second, sums, t)
            elif also == "part":
                multiply(second, part, t)

    @T.inline
    def clear():
        for e in T.unroll(TILES * 4):
            part[e] = T.float32(0)
            if MINIMA:
                sums[e] = T.float32(0)

    @T.inline
    def add():
        for t, r, e in T.grid(TILES, 2, 2):
            acc[t * 4 + r * 2 + e] = T.fma(scaled[r], part[t * 4 + r * 2 + e], acc[t * 4 + r * 2 + e])
            if MINIMA:
                acc[t * 4 + r * 2 + e] = T.fma(least[r], sums[t * 4 + r * 2 + e], acc[t * 4 + r * 2 + e])

    @T.inline
    def multiply_q4_k(number):
        table = T.alloc_local((2, 4), "uint32")
        both = T.alloc_local((2, 2), "float32")
        zero = T.alloc_local((2, 2), "float32")
        for r in T.unroll(2):
            table[r, 0] = raw[r, 1] & T.uint32(0x3F3F3F3F)
            table[r, 1] = (raw[r, 3] & T.uint32(0x0F0F0F0F)) | ((raw[r, 1] >> T.uint32(2)) & T.uint32(0x30303030))
            table[r, 2] = raw[r, 2] & T.uint32(0x3F3F3F3F)
            table[r, 3] = ((raw[r, 3] >> T.uint32(4)) & T.uint32(0x0F0F0F0F)) | ((raw[r, 2] >> T.uint32(2)) & T.uint32(0x30303030))
            both[r, 0] = half(raw[r, 0] & T.uint32(0xFFFF)) * T.float32(UNIT)
            both[r, 1] = -half(raw[r, 0] >> T.uint32(16))
            for e in T.unroll(2):
                zero[r, e] = both[r, e] * T.float32(-8388608.0)
        for i in T.unroll(8):
            load_x(number, i)
            clear()
            for j in T.unroll(2):
                for r in T.unroll(2):
                    for e in T.unroll(2):
                        each(a[2 * e + r], raw[r, 4 + i // 2 * 2 + j] >> T.uint32(i % 2 * 4 + e * 8), 0x000F000F, BITS)
                multiply_both(j * 2, j * 2 + 1, "sums")
            for r in T.unroll(2):
                times_byte(scaled, r, both[r, 0], zero[r, 0], table[r, i // 4], i % 4 * 8)
                times_byte(least, r, both[r, 1], zero[r, 1], table[r, 2 + i // 4], i % 4 * 8)
                if BF16:
                    least[r] = T.fma(scaled[r], T.float32(-BIAS), least[r])
            add()

    @T.inline
    def multiply_q6_k(number):
        bits = T.alloc_local((1,), "uint32")
        for i in T.unroll(8):
            load_x(number, i)
            for h in T.unroll(2):
                clear()
                for r in T.unroll(2):
                    for e in T.unroll(2):
                        each(a[2 * e + r], raw[r, (i // 4 * 2 + h) * 2 + i % 2] >> T.uint32(i % 4 // 2 * 4 + e * 8), 0x000F000F, BITS)
                        T.ptx.lop3.b32(a[2 * e + r], shifted(raw[r, 8 + i // 4 * 2 + h], i % 4 * 2 + e * 8 - 4), T.uint32(0x00300030),
                                       a[2 * e + r], 0xEA)
                multiply_both(h * 2, h * 2 + 1, "part")
                # The bits of 2^15 + 128 + the signed factor: a float32 with 8 bits behind the point.
                for r in T.unroll(2):
                    whole: T.let = half(raw_factors[r, 8]) * T.float32(UNIT)
                    each(bits[0], shifted(T.bitwise_xor(raw_factors[r, i], T.uint32(0x8080)), h * 8 - 8), 0xFF00, 0x47000000)
                    scaled[r] = T.fma(whole, T.reinterpret("float32", bits[0]), whole * T.float32(-32896.0))
                add()

    @T.inline
    def multiply_q8_0(number):
        # A signed byte is its low 7 bits, less 128 times the high bit: the sum of two MMAs.
        for i in T.unroll(8):
            load_x(number, i)
            clear()
            for j in T.unroll(2):
                for r in T.unroll(2):
                    for e in T.unroll(2):
                        each(a[2 * e + r], raw[r, i * 2 + j] >> T.uint32(e * 8), 0x007F007F, BITS)
                        each(second[2 * e + r], raw[r, i * 2 + j] >> T.uint32(e * 8), 0x00800080, SIGNS)
                multiply_both(j * 2, j * 2 + 1, "part")
            for r in T.unroll(2):
                scaled[r] = half(raw_factors[r, i]) * T.float32(UNIT)
            add()

    @T.inline
    def multiply_fp8(number):
        # The bits of a float8 below a 16-bit float's are its value times 2^-120, or 2^-8 for float16, also for subnormals.
        for k in T.unroll(4):
            clear()
            for i in T.unroll(2):
                load_x(number, k * 2 + i)
                for j in T.unroll(2):
                    for r in T.unroll(2):
                        word: T.let = raw[r, k * 4 + i * 2 + j]
                        for e in T.unroll(2):
                            a[2 * e + r] = shifted(word, e * 8 - MAGNITUDE) & T.uint32(0x007F007F << MAGNITUDE)
                            T.ptx.lop3.b32(a[2 * e + r], word << T.uint32(8 - e * 8), T.uint32(0x80008000), a[2 * e + r], 0xEA)
                            if BF16:
                                T.ptx.fma.rn.bf16x2(a[2 * e + r], a[2 * e + r], T.uint32(0x7B807B80), T.uint32(0x80008000))
                    multiply_both(j * 2, j * 2 + 1, "")
            for r in T.unroll(2):
                scaled[r] = T.reinterpret("float32", raw_factors[r, k])
                if not BF16:
                    scaled[r] = scaled[r] * T.float32(256.0)
            add()

    @T.inline
    def multiply_mxfp4(number):
        # The bits of a float4 below a 16-bit float's are its value times 2^-126, or 2^-14 for float16, also for subnormals.
        for k in T.unroll(8):
            clear()
            load_x(number, k)
            for j in T.unroll(2):
                for r in T.unroll(2):
                    for e in T.unroll(2):
                        a[2 * e + r] = shifted(raw[r, k], j * 8 + e * 4 - MAGNITUDE) & T.uint32(0x00070007 << MAGNITUDE)
                        T.ptx.lop3.b32(a[2 * e + r], shifted(raw[r, k], j * 8 + e * 4 - 12), T.uint32(0x80008000), a[2 * e + r], 0xEA)
                        if BF16:
                            T.ptx.fma.rn.bf16x2(a[2 * e + r], a[2 * e + r], T.uint32(0x7E807E80), T.uint32(0x80008000))
                multiply_both(j, j + 2, "")
            for r in T.unroll(2):
                scaled[r] = power_of_two(raw_factors[r, k])
                if not BF16:
                    scaled[r] = scaled[r] * T.float32(16384.0)
            add()

    @T.inline
    def multiply_int4(number):
        for k in T.unroll(8 // SPAN):
            clear()
            for i in T.unroll(SPAN):
                load_x(number, k * SPAN + i)
                for j in T.unroll(2):
                    for r in T.unroll(2):
                        for e in T.unroll(2):
                            each(a[2 * e + r], raw[r, k * SPAN + i] >> T.uint32(j * 8 + e * 4), 0x000F000F, BITS)
                    multiply_both(j, j + 2, "sums")
            for r in T.unroll(2):
                factor: T.let = half(raw_factors[r, k])
                scaled[r] = factor * T.float32(UNIT)
                least[r] = (T.cast(raw_factors[r, 8 // SPAN + k], "float32") + T.float32(BIAS)) * (-factor)
            add()

    @T.inline
    def end_unit(unit, side):
        """The sum over the warps of a unit. The other side of `parts` may still be read."""
        for t, e in T.grid(TILES, 4):
            parts[side, warp, t, row + e // 2 * 8, four * 2 + e % 2] = acc[t * 4 + e]
            acc[t * 4 + e] = T.float32(0)
        T.cuda.cta_sync()
        for k in range(T.ceildiv(TILES * 4, warps)):
            index: T.let = (k * warps + own) * 32 + lane
            t: T.let = T.truncdiv(index, 128)
            output: T.let = unit * 16 + index % 128 // 8
            m: T.let = (first_row * TILES + t) * 8 + index % 8
            if t < TILES and output < outputs and m < rows:
                total: T.float32 = 0.0
                for other in range(warps):
                    total += parts[side, warp - own + other, t, index % 128 // 8, index % 8]
                Y[m, output] = T.cast(total, dtype)

    rounds: T.let = T.ceildiv(T.ceildiv(outputs, 16), blocks * units)
    unit: T.int32 = block * units + T.truncdiv(warp, warps)
    load_ahead(unit, own)
    for round in range(rounds):
        for step in range(steps):
            number: T.let = step * warps + own
            for r in T.unroll(2):
                for e in T.unroll(NUMBERS):
                    raw[r, e] = ahead[r, e]
                if FACTORS_OF > 0:
                    for e in T.unroll(FACTORS_OF):
                        raw_factors[r, e] = factors_ahead[r, e]
            if step + 1 < steps:
                load_ahead(unit, number + warps)
            elif round + 1 < rounds:
                load_ahead(unit + blocks * units, own)
            if number * 256 < columns:
                if FORMAT == "Q4_K":
                    multiply_q4_k(number)
                elif FORMAT == "Q6_K":
                    multiply_q6_k(number)
                elif FORMAT == "Q8_0":
                    multiply_q8_0(number)
                elif FORMAT == "FP8":
                    multiply_fp8(number)
                elif FORMAT == "MXFP4":
                    multiply_mxfp4(number)
                else:
                    multiply_int4(number)
        end_unit(unit, round % 2)
        unit += blocks * units


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
