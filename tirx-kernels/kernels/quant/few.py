"""Products of a few rows with weights of few bits, by `mma.sync`.

The numbers of the weights are small integers or float8, exact in 16 bits, and their factors multiply the float32 results of 16 to 128 columns.
For a number of unsigned bits the bits themselves are the low bits of a 16-bit float, so it needs no conversion. The product by the numbers less
their bias is the product by the biased numbers less the bias times the sum of X, an MMA with a matrix of ones.

Weights pass through shared memory: there a lane reads words of any alignment, and copies in flight take no registers."""

from __future__ import annotations

from blocks import ALIGN, PTX, SIZE, WARPS, half, power_of_two
from tvm.script import tirx as T


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


@T.inline
def bytes_of(to, low, high, chosen):
    """Four bytes of two words, by the numbers 0 to 7 in the low halves of four bits. A number with the high bit gives the sign of that byte."""
    T.ptx.prmt.b32(to, low, high, chosen)


def kept(constant, positive):
    """A constant that nvcc does not know: it stays in its register. Otherwise each use begins with a move."""
    return T.uint32(constant) | T.cast(T.min(positive, 0), "uint32")


@T.jit
def few(x: T.handle, w: T.handle, s: T.handle, z: T.handle, y: T.handle, warps: T.int32, of_group: T.int32, blocks: T.int32, aligned: T.int32,
        *, dtype: T.constexpr, FORMAT: T.constexpr, TILES: T.constexpr = 1):
    """Y = X W^T by `mma.sync` for up to 8 TILES rows of X at a time: the rows of an MMA are 16 rows of W, its columns are 8 rows of X. `warps`
    warps divide the columns of 16 rows of W, a unit; a block goes from unit to unit. A warp copies 256 columns of its rows to a ring in
    shared memory, some steps ahead: by 16 or 4 bytes if the rows are `aligned` so, by 4 also those of
    Q6_K if the first row is (2), otherwise by 2. Each lane decodes some of the factors of a
    step, and the warp shares them in shared memory. Groups have a multiple of 32 columns, of 64 for FP8."""
    INT4 = T.meta_var(FORMAT == "INT4" or FORMAT == "INT4_128")
    rows, columns, outputs, size, of_s, of_z, groups = T.int32(), T.int32(), T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
    x_row, w_row, s_row, z_row, y_row = T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (rows, columns), dtype, strides=(x_row, 1), align=16)
    W = T.match_buffer(w, (outputs, size), "uint8", strides=(w_row, 1), align=ALIGN[FORMAT[:4] if INT4 else FORMAT])
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
    # The 32 columns from which a lane takes neighbors: 16 bytes of 64 for FP8. Those that share a factor: groups of INT4_128 have a multiple of 128.
    SPAN = T.meta_var(2 if FORMAT == "FP8" else 1)
    SHARED = T.meta_var(4 if FORMAT == "INT4_128" else SPAN)
    # The shift of a float8 without its sign to its place in a 16-bit float.
    MAGNITUDE = T.meta_var(4 if BF16 else 7)
    MINIMA = T.meta_var(INT4 or FORMAT == "Q4_K")
    # The bytes of a row in 256 columns; in shared memory eight rows have the same word in different banks. A block of Q6_K begins anywhere in 16
    # bytes.
    BYTES = T.meta_var(SIZE["INT4" if INT4 else FORMAT])
    CHUNKS = T.meta_var(15 if FORMAT == "Q6_K" else BYTES // 16)
    PITCH = T.meta_var({"Q8_0": 68, "Q4_K": 36, "Q6_K": 60, "FP8": 68}.get(FORMAT, 36))
    STAGES = T.meta_var(3 if PITCH == 36 else 2)
    # The parts of 256 columns that have a factor, and those of which a lane decodes the factors.
    PARTS = T.meta_var({"Q6_K": 16, "FP8": 4, "INT4_128": 2}.get(FORMAT, 8))
    OWN = T.meta_var(PARTS // 2)
    # The 32 columns for which X is loaded at a time.
    BATCH = T.meta_var(1 if TILES == 2 and MINIMA else 4 // TILES)
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 2})
    block, first_row = T.cta_id([blocks, T.ceildiv(rows, 8 * TILES)])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    pool = T.SMEMPool()
    ring = pool.alloc((WARPS, STAGES, 16, PITCH), "uint32", align=16)
    shared_factors = pool.alloc((WARPS, 16, PARTS), "float32", align=16)
    if MINIMA:
        shared_least = pool.alloc((WARPS, 16, PARTS), "float32", align=16)
    parts = pool.alloc((2, WARPS, TILES, 16, 8), "float32", align=16)
    pool.commit()
    # With two tiles there are no registers for all of a lane's factors, and it loads them for each part.
    TAKEN = T.meta_var(PARTS if TILES == 1 else 1)
    scaled = T.alloc_local((2, TAKEN), "float32")
    decoded = T.alloc_local((PARTS,), "float32")         # a lane's factors, then its minima
    if MINIMA:
        sums = T.alloc_local((TILES * 4,), "float32")
        least = T.alloc_local((2, TAKEN), "float32")
    if FORMAT == "MXFP4" or FORMAT == "FP8" or INT4:
        ahead = T.alloc_local((PARTS,), "uint32")
    xs = T.alloc_local((2, BATCH, TILES, 4), "uint32")
    vector = T.decl_buffer((2, BATCH, TILES), "uint32x4", data=xs.data, scope="local")
    halves = T.decl_buffer((2, BATCH, TILES, 2), "uint32x2", data=xs.data, scope="local")
    a = T.alloc_local((4,), "uint32")
    b = T.alloc_local((2,), "uint32")
    if FORMAT != "FP8":
        second = T.alloc_local((4,), "uint32")           # another operand for the same numbers of X
    raw = T.alloc_local((2, 4), "uint32")
    pair = T.decl_buffer((2, 2), "uint32x2", data=raw.data, scope="local")
    part = T.alloc_local((TILES * 4,), "float32")
    acc = T.alloc_local((TILES * 4,), "float32")
    if FORMAT == "Q6_K":
        starts = T.alloc_local((3,), "int32")            # of a block: in two rows of a lane, and in that of its factors
    own: T.int32 = warp - T.truncdiv(warp, warps) * warps
    row: T.int32 = T.truncdiv(lane, 4)
    four: T.int32 = lane % 4
    its: T.int32 = T.truncdiv(lane, 2)                   # the row of the factors that a lane decodes, and their half
    half_of_its: T.int32 = lane % 2
    units: T.int32 = T.truncdiv(WARPS, warps)            # of a block at a time
    steps: T.let = T.ceildiv(columns, 256 * warps)
    last: T.let = T.ceildiv(columns, 256) - 1
    turns: T.int32 = T.ceildiv(TILES * 4, warps)
    # Rows are less than 2^31 bytes apart, so an address is one multiplication.
    of_row_of_w: T.let = T.cast(T.cast(w_row, "int32"), "int64")
    of_row_of_s: T.let = T.cast(T.cast(s_row, "int32"), "int64")
    if FORMAT == "MXFP4":
        S_flat = T.decl_buffer((T.cast(of_s - 1, "int64") * s_row + T.cast(groups, "int64"),), "uint8", data=S.data, scope="global")
    # From byte 2 on: the launcher asks for no more of W than 2 bytes of alignment.
    W_bytes = T.decl_buffer((T.cast(outputs - 1, "int64") * w_row + T.cast(size, "int64"),), "uint8", data=W.ptr_to([0, 2]), scope="global")
    for e in T.unroll(TILES * 4):
        acc[e] = T.float32(0)
    if FORMAT != "FP8" and FORMAT != "Q8_0":
        for e in T.unroll(4):
            second[e] = kept(SIGNS | 0x00200020 if FORMAT == "Q6_K" else SIGNS | 0x00300030 if FORMAT == "MXFP4" else ONES, warps + e)
    if FORMAT == "MXFP4":
        table = T.alloc_local((3,), "uint32")
        table[0] = kept(0x0C080400, warps)
        table[1] = kept(0x30201810, warps + 1)
        table[2] = kept(BITS, warps + 2)

    def odd(row, begin):
        """1 if the block of Q6_K that begins at this byte of a row is 2 bytes behind a multiple of 4, otherwise 0. The first row is at one."""
        return T.bitwise_and(row * T.bitwise_and(T.cast(w_row, "int32") >> 1, 1) + T.truncdiv(begin, 2), 1)

    def start_of(row, begin):
        """The place of that block in shared memory, by 2 bytes."""
        return T.truncdiv(begin % 16, 4) * 2 + odd(row, begin)

    @T.inline
    def copy(unit, number, stage):
        """Copies block `number` of the rows of a unit. What is past the end is the last of its kind again."""
        begin: T.int32 = number * BYTES
        if aligned == 16:
            for i in T.unroll((CHUNKS + 7) // 8):
                chunk: T.int32 = i * 8 + lane % 8
                if chunk < CHUNKS:
                    from_byte: T.int32 = T.min((T.truncdiv(begin, 16) + chunk) * 16, size - 16)
                    for j in T.unroll(4):
                        n: T.int32 = T.min(unit * 16 + j * 4 + T.truncdiv(lane, 8), outputs - 1)
                        T.ptx.cp.async_.cg.shared.global_(ring.ptr_to([warp, stage, j * 4 + T.truncdiv(lane, 8), chunk * 4]),
                                                          W_bytes.ptr_to([T.cast(n, "int64") * of_row_of_w + T.cast(from_byte - 2, "int64")]), 16)
        elif aligned >= 2:
            # A block of Q6_K may begin and end within words, the last one with the weights.
            WORDS = T.meta_var((BYTES + 3) // 4)
            for k in range(WORDS // 2 + WORDS % 2):
                index: T.int32 = k * 32 + lane
                n: T.int32 = T.truncdiv(index, WORDS)
                at: T.int32 = index - n * WORDS
                if n < 16:
                    of_row: T.int32 = T.min(unit * 16 + n, outputs - 1)
                    word: T.let = T.truncdiv(begin % 16, 4) + at
                    if FORMAT == "Q6_K":
                        from_byte: T.int64 = T.cast(of_row, "int64") * of_row_of_w + T.cast(
                            begin + at * 4 - odd(of_row, begin) * 2, "int64")
                        behind: T.int64 = T.cast(outputs - 1, "int64") * of_row_of_w + T.cast(size, "int64") - from_byte
                        if behind >= T.int64(4):
                            T.ptx.cp.async_.ca.shared.global_(ring.ptr_to([warp, stage, n, word]), W_bytes.ptr_to([from_byte - T.int64(2)]), 4)
                        else:
                            by2 = T.decl_buffer((T.truncdiv(size, 2),), "uint16", data=W.ptr_to([of_row, 0]), scope="global")
                            to = T.decl_buffer((PITCH * 2,), "uint16", data=ring.ptr_to([warp, stage, n, 0]), scope="shared.dyn")
                            to[word * 2] = by2[T.truncdiv(begin, 2) + at * 2]
                    else:
                        from_word: T.int32 = T.min(begin + at * 4, size - 4)
                        T.ptx.cp.async_.ca.shared.global_(ring.ptr_to([warp, stage, n, word]),
                                                          W_bytes.ptr_to([T.cast(of_row, "int64") * of_row_of_w + T.cast(from_word - 2, "int64")]), 4)
        else:
            for k in range(T.ceildiv(16 * (BYTES // 2), 32)):
                index: T.int32 = k * 32 + lane
                n: T.int32 = T.truncdiv(index, BYTES // 2)
                at: T.int32 = index - n * (BYTES // 2)
                if n < 16:
                    of_row: T.int32 = T.min(unit * 16 + n, outputs - 1)
                    by2 = T.decl_buffer((T.truncdiv(size, 2),), "uint16", data=W.ptr_to([of_row, 0]), scope="global")
                    to = T.decl_buffer((PITCH * 2,), "uint16", data=ring.ptr_to([warp, stage, n, 0]), scope="shared.dyn")
                    to[(start_of(of_row, begin) if FORMAT == "Q6_K" else 0) + at] = by2[T.min(T.truncdiv(begin, 2) + at, T.truncdiv(size, 2) - 1)]

    @T.inline
    def load_factors(unit, wanted):
        """The factors of a lane in block `wanted`, if they are not in the blocks. Past the end the last ones again."""
        n: T.int32 = T.min(unit * 16 + its, outputs - 1)
        first: T.int32 = T.min(wanted, last) * PARTS + half_of_its * OWN
        if FORMAT == "MXFP4":
            if first + 4 <= groups:
                for k in T.unroll(4):
                    ahead[k] = T.cast(S_flat[T.cast(n, "int64") * of_row_of_s + T.cast(first, "int64") + T.int64(k)], "uint32")
            else:
                for k in T.unroll(4):
                    ahead[k] = T.cast(S[n, T.min(first + k, groups - 1)], "uint32")
        elif FORMAT == "FP8" or INT4:
            # The group of the first columns, and its columns that are done.
            group: T.int32 = T.truncdiv(first * (256 // PARTS), of_group)
            done: T.int32 = first * (256 // PARTS) - group * of_group
            for k in T.unroll(OWN):
                if done >= of_group:
                    group += 1
                    done = 0
                done += 256 // PARTS
                if FORMAT == "FP8":
                    ahead[k] = T.reinterpret("uint32", S[n, T.min(group, groups - 1)])
                else:
                    ahead[k] = T.cast(T.reinterpret("uint16", S[n, T.min(group, groups - 1)]), "uint32")
                    ahead[OWN + k] = T.cast(Z[n, T.min(group, groups - 1)], "uint32")

    @T.inline
    def decode_factors(number, stage):
        """Decodes a lane's factors, and shares them with the warp."""
        vectors = T.decl_buffer((1,), "uint32x4", data=ring.ptr_to([warp, stage, its, 0]), scope="shared.dyn")
        shorts = T.decl_buffer((PITCH * 2,), "uint16", data=ring.ptr_to([warp, stage, its, 0]), scope="shared.dyn")
        if FORMAT == "Q4_K":
            # Two float16 factors, twelve bytes with 8 factors and 8 minima of 6 bits.
            header = T.alloc_local((4,), "uint32")
            header_vector = T.decl_buffer((1,), "uint32x4", data=header.data, scope="local")
            header_vector[0] = vectors[0]
            factors: T.uint32 = header[1] & T.uint32(0x3F3F3F3F)
            minima: T.uint32 = header[2] & T.uint32(0x3F3F3F3F)
            if half_of_its == 1:
                factors = (header[3] & T.uint32(0x0F0F0F0F)) | ((header[1] >> T.uint32(2)) & T.uint32(0x30303030))
                minima = ((header[3] >> T.uint32(4)) & T.uint32(0x0F0F0F0F)) | ((header[2] >> T.uint32(2)) & T.uint32(0x30303030))
            of_factors: T.float32 = half(header[0] & T.uint32(0xFFFF)) * T.float32(UNIT)
            of_minima: T.float32 = -half(header[0] >> T.uint32(16))
            for k in T.unroll(4):
                times_byte(decoded, k, of_factors, of_factors * T.float32(-8388608.0), factors, k * 8)
                times_byte(decoded, 4 + k, of_minima, of_minima * T.float32(-8388608.0), minima, k * 8)
                if BF16:
                    decoded[4 + k] = T.fma(decoded[k], T.float32(-BIAS), decoded[4 + k])
        elif FORMAT == "Q6_K":
            # 16 signed bytes, a float16 factor of those.
            at: T.int32 = starts[2]
            whole: T.float32 = half(T.cast(shorts[at + 104], "uint32")) * T.float32(UNIT)
            for k in T.unroll(4):
                both: T.uint16 = shorts[at + 96 + half_of_its * 4 + k]
                for e in T.unroll(2):
                    byte: T.int8 = T.reinterpret("int8", T.cast(T.bitwise_and(both >> T.uint16(e * 8), T.uint16(255)), "uint8"))
                    decoded[k * 2 + e] = T.cast(byte, "float32") * whole
        elif FORMAT == "Q8_0":
            for k in T.unroll(4):
                factor: T.float32 = half(T.cast(shorts[(half_of_its * 4 + k) * 17], "uint32")) * T.float32(UNIT)
                decoded[k] = T.if_then_else(number * 256 + (half_of_its * 4 + k) * 32 < columns, factor, T.float32(0))
        elif FORMAT == "MXFP4":
            for k in T.unroll(4):
                decoded[k] = power_of_two(ahead[k]) * T.float32(UNIT / 8.0)
        elif FORMAT == "FP8":
            for k in T.unroll(2):
                decoded[k] = T.reinterpret("float32", ahead[k]) * T.float32(1.0 if BF16 else 256.0)
        else:
            for k in T.unroll(OWN):
                factor: T.float32 = half(ahead[k])
                decoded[k] = factor * T.float32(UNIT)
                decoded[OWN + k] = (T.cast(ahead[OWN + k], "float32") + T.float32(BIAS)) * (-factor)
        share(shared_factors, 0)
        if MINIMA:
            share(shared_least, OWN)
        T.cuda.warp_sync()
        if TAKEN > 1:
            take(scaled, shared_factors)
            if MINIMA:
                take(least, shared_least)

    @T.inline
    def share(to, first):
        WIDE = T.meta_var(4 if OWN % 4 == 0 else OWN)
        target = T.decl_buffer((OWN // WIDE,), "float32" + ("" if WIDE == 1 else "x" + str(WIDE)), data=to.ptr_to([warp, its, half_of_its * OWN]),
                               scope="shared.dyn")
        source = T.decl_buffer((PARTS // WIDE,), "float32" + ("" if WIDE == 1 else "x" + str(WIDE)), data=decoded.data, scope="local")
        for k in T.unroll(OWN // WIDE):
            target[k] = source[first // WIDE + k]

    @T.inline
    def take(to, source):
        WIDE = T.meta_var(4 if PARTS % 4 == 0 else 2)
        target = T.decl_buffer((2, PARTS // WIDE), "float32x" + str(WIDE), data=to.data, scope="local")
        for r in T.unroll(2):
            of_row = T.decl_buffer((PARTS // WIDE,), "float32x" + str(WIDE), data=source.ptr_to([warp, row + r * 8, 0]), scope="shared.dyn")
            for k in T.unroll(PARTS // WIDE):
                target[r, k] = of_row[k]

    @T.inline
    def load_x(number, turn):
        """Eight numbers of each row of X for each of some 32 columns, in the order in which a lane has those of W. Zeros past the end."""
        if number * 256 + (turn + 1) * BATCH * 32 <= columns:
            for t in T.unroll(TILES):
                m: T.let = T.min((first_row * TILES + t) * 8 + row, rows - 1)
                by8 = T.decl_buffer((T.truncdiv(columns, 8),), "uint32x4", data=X.ptr_to([m, 0]), scope="global")
                by4 = T.decl_buffer((T.truncdiv(columns, 4),), "uint32x2", data=X.ptr_to([m, 0]), scope="global")
                for j in T.unroll(BATCH):
                    if FORMAT == "Q6_K":
                        for h in T.unroll(2):
                            halves[turn % 2, j, t, h] = by4[number * 64 + (turn * BATCH + j) * 8 + h * 4 + four]
                    else:
                        vector[turn % 2, j, t] = by8[number * 32 + place_of_x(turn * BATCH + j)]
        else:
            for j in T.unroll(BATCH):
                for t in T.unroll(TILES):
                    m: T.let = T.min((first_row * TILES + t) * 8 + row, rows - 1)
                    by8 = T.decl_buffer((T.truncdiv(columns, 8),), "uint32x4", data=X.ptr_to([m, 0]), scope="global")
                    for e in T.unroll(4):
                        xs[turn % 2, j, t, e] = T.uint32(0)
                    if number * 256 + (turn * BATCH + j) // SPAN * SPAN * 32 < columns:
                        vector[turn % 2, j, t] = by8[number * 32 + place_of_x(turn * BATCH + j)]

    def place_of_x(i):
        return i // SPAN * SPAN * 4 + four * SPAN + i % SPAN

    @T.inline
    def multiply(of, out, t):
        T.ptx["mma.sync.aligned.m16n8k16.row.col.f32." + PTX[dtype] + "." + PTX[dtype] + ".f32"](
            [out.ptr_to([t * 4 + e]) for e in range(4)], [of[e] for e in range(4)], [b[e] for e in range(2)], [out[t * 4 + e] for e in range(4)])

    @T.inline
    def multiply_both(i, first, next, split, also):
        """By `a`, and with `also` by `second`, for 32 columns. With `split`, pairs of numbers of X are divided: weights are taken by two that
        are no neighbors."""
        for t in T.unroll(TILES):
            if split:
                bytes_of(b[0], xs[i // BATCH % 2, i % BATCH, t, first], xs[i // BATCH % 2, i % BATCH, t, next], T.uint32(0x5410))
                bytes_of(b[1], xs[i // BATCH % 2, i % BATCH, t, first], xs[i // BATCH % 2, i % BATCH, t, next], T.uint32(0x7632))
            else:
                b[0] = xs[i // BATCH % 2, i % BATCH, t, first]
                b[1] = xs[i // BATCH % 2, i % BATCH, t, next]
            if also == "part":
                multiply(second, part, t)
            elif also == "sums":
                multiply(second, sums, t)
            multiply(a, part, t)

    @T.inline
    def clear():
        for e in T.unroll(TILES * 4):
            part[e] = T.float32(0)
            if MINIMA:
                sums[e] = T.float32(0)

    @T.inline
    def add(p):
        if TAKEN == 1:
            for r in T.unroll(2):
                scaled[r, 0] = shared_factors[warp, row + r * 8, p]
                if MINIMA:
                    least[r, 0] = shared_least[warp, row + r * 8, p]
        for t, r, e in T.grid(TILES, 2, 2):
            acc[t * 4 + r * 2 + e] = T.fma(scaled[r, p % TAKEN], part[t * 4 + r * 2 + e], acc[t * 4 + r * 2 + e])
            if MINIMA:
                acc[t * 4 + r * 2 + e] = T.fma(least[r, p % TAKEN], sums[t * 4 + r * 2 + e], acc[t * 4 + r * 2 + e])

    @T.inline
    def multiply_32(number, stage, i):
        """The part of 32 columns of a block of 256."""
        for r in T.unroll(2):
            words = T.decl_buffer((PITCH,), "uint32", data=ring.ptr_to([warp, stage, row + r * 8, 0]), scope="shared.dyn")
            by2_words = T.decl_buffer((PITCH // 2,), "uint32x2", data=ring.ptr_to([warp, stage, row + r * 8, 0]), scope="shared.dyn")
            shorts = T.decl_buffer((PITCH * 2,), "uint16", data=ring.ptr_to([warp, stage, row + r * 8, 0]), scope="shared.dyn")
            if FORMAT == "Q4_K":
                if i % 2 == 0:
                    pair[r, 0] = by2_words[2 + i // 2 * 4 + four]
            elif FORMAT == "Q6_K":
                # The low four bits by side, half of 16, quarter % 2; then the high two bits by side, half of 16.
                at: T.int32 = starts[r] + four * 2
                for h in T.unroll(2):
                    low: T.let = at + i // 4 * 32 + i % 2 * 16 + h * 8
                    raw[r, h] = T.cast(shorts[low], "uint32") | (T.cast(shorts[low + 1], "uint32") << T.uint32(16))
                    if i % 4 == 0:
                        high: T.let = at + 64 + i // 4 * 16 + h * 8
                        raw[r, 2 + h] = T.cast(shorts[high], "uint32") | (T.cast(shorts[high + 1], "uint32") << T.uint32(16))
            elif FORMAT == "Q8_0":
                # 34 bytes of each 32 columns: the numbers of every other begin at a multiple of 4 bytes.
                at: T.let = (i * 34 + 2) // 4 + four * 2
                if i % 2 == 1:
                    raw[r, 0] = words[at]
                    raw[r, 1] = words[at + 1]
                else:
                    middle: T.uint32 = words[at + 1]
                    bytes_of(raw[r, 0], words[at], middle, T.uint32(0x5432))
                    bytes_of(raw[r, 1], middle, words[at + 2], T.uint32(0x5432))
            elif FORMAT == "FP8":
                pair[r, 0] = by2_words[i // SPAN * 8 + four * 2 + i % SPAN]
            else:
                raw[r, 0] = words[i * 4 + four]
        if FORMAT == "MXFP4":
            # Eight times the numbers, and 48: 0 to 96. A number has its value in one of two words, and 0 in the other.
            clear()
            for j in T.unroll(2):
                for r in T.unroll(2):
                    positive = T.alloc_local((2,), "uint32")
                    bytes_of(positive[0], table[0], table[1], raw[r, 0] >> T.uint32(j * 16))
                    bytes_of(positive[1], table[0], table[1], T.bitwise_xor(raw[r, 0], T.uint32(0x88888888)) >> T.uint32(j * 16))
                    number_of: T.uint32 = positive[0] + T.uint32(0x30303030) - positive[1]
                    bytes_of(a[r], number_of, table[2], T.uint32(0x7170))
                    bytes_of(a[2 + r], number_of, table[2], T.uint32(0x7372))
                multiply_both(i, j * 2, j * 2 + 1, False, "part")
            add(i)
        elif FORMAT == "Q4_K":
            clear()
            for j in T.unroll(2):
                for r in T.unroll(2):
                    for e in T.unroll(2):
                        each(a[2 * e + r], raw[r, j] >> T.uint32(i % 2 * 4 + e * 8), 0x000F000F, BITS)
                multiply_both(i, j * 2, j * 2 + 1, True, "sums")
            add(i)
        elif FORMAT == "Q6_K":
            for h in T.unroll(2):
                clear()
                for r in T.unroll(2):
                    for e in T.unroll(2):
                        each(a[2 * e + r], raw[r, h] >> T.uint32(i % 4 // 2 * 4 + e * 8), 0x000F000F, BITS)
                        T.ptx.lop3.b32(a[2 * e + r], shifted(raw[r, 2 + h], i % 4 * 2 + e * 8 - 4), T.uint32(0x00300030), a[2 * e + r], 0xEA)
                multiply_both(i, h * 2, h * 2 + 1, True, "part")
                add(i * 2 + h)
        elif FORMAT == "Q8_0":
            # A signed byte is its low 7 bits, less 128 times the high bit: the sum of two MMAs.
            clear()
            for j in T.unroll(2):
                for r in T.unroll(2):
                    for e in T.unroll(2):
                        each(a[2 * e + r], raw[r, j] >> T.uint32(e * 8), 0x007F007F, BITS)
                        each(second[2 * e + r], raw[r, j] >> T.uint32(e * 8), 0x00800080, SIGNS)
                multiply_both(i, j * 2, j * 2 + 1, True, "part")
            add(i)
        elif FORMAT == "FP8":
            # The bits of a float8 below a 16-bit float's are its value times 2^-120, or 2^-8 for float16, also for subnormals.
            if i % 2 == 0:
                clear()
            for j in T.unroll(2):
                for r in T.unroll(2):
                    for e in T.unroll(2):
                        a[2 * e + r] = shifted(raw[r, j], e * 8 - MAGNITUDE) & T.uint32(0x007F007F << MAGNITUDE)
                        T.ptx.lop3.b32(a[2 * e + r], raw[r, j] << T.uint32(8 - e * 8), T.uint32(0x80008000), a[2 * e + r], 0xEA)
                        if BF16:
                            T.ptx.fma.rn.bf16x2(a[2 * e + r], a[2 * e + r], T.uint32(0x7B807B80), T.uint32(0x80008000))
                multiply_both(i, j * 2, j * 2 + 1, True, "")
            if i % 2 == 1:
                add(i // 2)
        else:
            if i % SHARED == 0:
                clear()
            for j in T.unroll(2):
                for r in T.unroll(2):
                    for e in T.unroll(2):
                        each(a[2 * e + r], raw[r, 0] >> T.uint32(j * 8 + e * 4), 0x000F000F, BITS)
                multiply_both(i, j, j + 2, True, "sums")
            if i % SHARED == SHARED - 1:
                add(i // SHARED)

    @T.inline
    def end_unit(unit, side):
        """The sum over the warps of a unit. The other side of `parts` may still be read."""
        for t, e in T.grid(TILES, 4):
            parts[side, warp, t, row + e // 2 * 8, four * 2 + e % 2] = acc[t * 4 + e]
            acc[t * 4 + e] = T.float32(0)
        T.cuda.cta_sync()
        for k in range(turns):
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
    # The next step to copy, and the stages of the next copy and of this step.
    next_unit: T.int32 = unit
    next_number: T.int32 = own
    next_stage: T.int32 = 0
    stage: T.int32 = 0

    @T.inline
    def copy_next():
        if next_unit * 16 < outputs and next_number <= last:
            copy(next_unit, next_number, next_stage)
        T.ptx.cp.async_.commit_group()
        next_stage = T.if_then_else(next_stage == STAGES - 1, 0, next_stage + 1)
        next_number += warps
        if next_number >= steps * warps:
            next_number = own
            next_unit += blocks * units

    for k in T.unroll(STAGES - 1):
        copy_next()
    if FORMAT == "MXFP4" or FORMAT == "FP8" or INT4:
        load_factors(unit, own)
    load_x(own, 0)
    for round in range(rounds):
        for step in range(steps):
            number: T.let = step * warps + own
            T.ptx.cp.async_.wait_group(STAGES - 2)
            # All lanes have copied this stage, and have read the one that is overwritten now.
            T.cuda.warp_sync()
            copy_next()
            here: T.let = unit * 16 < outputs and number <= last
            more: T.let = step + 1 < steps
            next_step: T.let = T.if_then_else(more, number + warps, own)
            if here:
                if FORMAT == "Q6_K":
                    starts[0] = start_of(T.min(unit * 16 + row, outputs - 1), number * BYTES)
                    starts[1] = start_of(T.min(unit * 16 + row + 8, outputs - 1), number * BYTES)
                    starts[2] = start_of(T.min(unit * 16 + its, outputs - 1), number * BYTES)
                decode_factors(number, stage)
            if FORMAT == "MXFP4" or FORMAT == "FP8" or INT4:
                load_factors(T.if_then_else(more, unit, unit + blocks * units), next_step)
            if here:
                for i in T.unroll(8):
                    if i % BATCH == 0 and i + BATCH < 8:
                        load_x(number, i // BATCH + 1)
                    elif i % BATCH == 0:
                        load_x(next_step, 0)
                    multiply_32(number, stage, i)
            else:
                load_x(next_step, 0)
            stage = T.if_then_else(stage == STAGES - 1, 0, stage + 1)
        end_unit(unit, round % 2)
        unit += blocks * units
    T.ptx.cp.async_.wait_group(0)
