"""One row of X times weights of few bits. An MMA has eight columns for rows of X, and one row needs one of them: here each column has another
group of 32 columns of W.

A warp multiplies 16 rows by 256 columns in two sets of 8 MMAs. In a set each lane of four has another group, from which an MMA takes four
numbers; in the matrix of X, column c has the numbers of the group of lane c in the first set, column 4 + c those in the second, and zeros
elsewhere. So the accumulators have the products of eight groups: their factors apply once for 256 columns. X lies in shared memory in the order
of the MMAs, with its sums over groups: the product by the numbers less their bias is the product by the biased numbers less the bias times the
sum of X."""

from __future__ import annotations

from blocks import ALIGN, PTX, SIZE, WARPS, half, power_of_two
from few import bytes_of, each, kept, shifted
from tvm.script import tirx as T


@T.jit
def row(x: T.handle, w: T.handle, s: T.handle, z: T.handle, y: T.handle, warps: T.int32, of_group: T.int32, blocks: T.int32, aligned: T.int32,
        *, dtype: T.constexpr, FORMAT: T.constexpr):
    """y = W x. `warps` warps divide the columns of 16 rows of W, a unit; a block goes from unit to unit. A warp copies 256 columns of its rows to
    a ring in shared memory, some steps ahead: by 16 or 4 bytes if the rows are `aligned` so, otherwise by 2. Groups have a
    multiple of 32 columns, of 64 for INT4. W has 16 rows at least."""
    rows, columns, outputs, size, of_s, of_z, groups = T.int32(), T.int32(), T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
    x_row, w_row, s_row, z_row, y_row = T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (rows, columns), dtype, strides=(x_row, 1), align=16)
    W = T.match_buffer(w, (outputs, size), "uint8", strides=(w_row, 1), align=ALIGN[FORMAT])
    S = T.match_buffer(s, (of_s, groups), "float16" if FORMAT == "INT4" else "float32" if FORMAT == "FP8" else "uint8", strides=(s_row, 1))
    Z = T.match_buffer(z, (of_z, groups), "uint8", strides=(z_row, 1))
    Y = T.match_buffer(y, (rows, outputs), dtype, strides=(y_row, 1))
    # A number n of up to 7 bits is the bfloat16 128 + n, or the subnormal float16 n 2^-24: its bits are those of n, below these.
    BF16 = T.meta_var(dtype == "bfloat16")
    BITS = T.meta_var(0x43004300 if BF16 else 0)
    SIGNS = T.meta_var(0xC300C300 if BF16 else 0x80008000)
    BIAS = T.meta_var((128.0 if BF16 else 0.0) + (48.0 if FORMAT == "MXFP4" else 0.0))
    UNIT = T.meta_var(1.0 if BF16 else 16777216.0)
    # The shift of a float8 without its sign to its place in a 16-bit float.
    MAGNITUDE = T.meta_var(4 if BF16 else 7)
    BIASED = T.meta_var(FORMAT != "FP8" and FORMAT != "Q8_0")
    OUTSIDE = T.meta_var(FORMAT == "INT4" or FORMAT == "FP8" or FORMAT == "MXFP4")       # the factors are not in the blocks
    # The bytes of a row in 256 columns; in shared memory eight rows have the same word in different banks.
    BYTES = T.meta_var(SIZE[FORMAT])
    WIDE = T.meta_var(2 if FORMAT == "INT4" or FORMAT == "Q4_K" else 1)    # 256 columns of a step
    CHUNKS = T.meta_var(WIDE * BYTES // 16)
    PITCH = T.meta_var({"Q4_K": 72, "INT4": 64, "MXFP4": 32}.get(FORMAT, 68))
    STAGES = T.meta_var(3 if FORMAT == "MXFP4" else 2)
    MOST = T.meta_var(12288 if FORMAT == "Q4_K" else 14336)                # columns: with X, a block has 99 KiB of shared memory at most
    ZEROS = T.meta_var(MOST // 2)
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 2})
    block = T.cta_id([blocks])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    last: T.let = T.ceildiv(columns, 256 * WIDE) - 1
    pool = T.SMEMPool()
    ring = pool.alloc((WARPS, STAGES, 16, PITCH), "uint32", align=16)
    parts = pool.alloc((2, WARPS, 16), "float32", align=16)
    # The 16 pairs of columns of each group, one for each MMA, and 16 pairs of zeros; then the sum of each group.
    xs = pool.alloc((ZEROS + 16,), "uint32", align=16)
    if BIASED:
        sums = pool.alloc((MOST // 32,), "float32", align=16)
    pool.commit()
    raw = T.alloc_local((2, 12), "uint32")               # words of two rows
    quads = T.decl_buffer((2, 3), "uint32x4", data=raw.data, scope="local")
    pairs = T.alloc_local((2, 4), "uint32")              # of X, for two MMAs, and those of the next two
    pairs_vector = T.decl_buffer((2,), "uint32x4", data=pairs.data, scope="local")
    a = T.alloc_local((4,), "uint32")
    if FORMAT == "Q8_0":
        second = T.alloc_local((4,), "uint32")           # the high bits of the same numbers
    part = T.alloc_local((2, 4), "float32")
    scaled = T.alloc_local((WIDE, 2, 2), "float32")      # the factors of a lane's rows and groups
    if BIASED:
        zero = T.alloc_local((WIDE, 2, 2), "float32")    # and the numbers that stand for zero
    acc = T.alloc_local((2,), "float32")
    if OUTSIDE:
        ahead = T.alloc_local((WIDE, 2, 2), "uint32")
        S_flat = T.decl_buffer((T.cast(of_s - 1, "int64") * s_row + T.cast(groups, "int64"),), S.dtype, data=S.data, scope="global")
        Z_flat = T.decl_buffer((T.cast(of_s - 1, "int64") * z_row + T.cast(groups, "int64"),), "uint8", data=Z.data, scope="global")
    if FORMAT == "MXFP4":
        table = T.alloc_local((6,), "uint32")
        table[0] = kept(0x3C383430, warps)               # 48 and eight times the number
        table[1] = kept(0x60504840, warps + 1)
        table[2] = kept(0x24282C30, warps + 2)           # 48 less eight times the number
        table[3] = kept(0x00101820, warps + 3)
        table[4] = kept(BITS, warps + 4)
        table[5] = kept(1, warps + 5)
    own: T.int32 = warp - T.truncdiv(warp, warps) * warps
    row_of_lane: T.int32 = T.truncdiv(lane, 4)           # in W, and the column of X in an MMA
    four: T.int32 = lane % 4
    units: T.int32 = T.truncdiv(WARPS, warps)            # of a block at a time
    steps: T.let = T.ceildiv(columns, 256 * WIDE * warps)
    # From byte 2 on: the launcher asks for no more of W than 2 bytes of alignment.
    W_bytes = T.decl_buffer((T.cast(outputs - 1, "int64") * w_row + T.cast(size, "int64"),), "uint8", data=W.ptr_to([0, 2]), scope="global")
    per_group: T.float32 = T.float32(32) / T.cast(of_group, "float32")
    for r in T.unroll(2):
        acc[r] = T.float32(0)

    def first_of(unit):
        """The first of the rows of a unit: the last unit begins before the end of the last but one."""
        return T.min(unit * 16, outputs - 16)

    def place_of(chunk, row):
        """The place of 16 bytes of a row in shared memory. For INT4 and MXFP4 a warp loads the same four chunks of all rows at a time."""
        return T.bitwise_xor(chunk, row % 2 * 4) if FORMAT == "INT4" or FORMAT == "MXFP4" else chunk

    @T.inline
    def copy(unit, number, stage):
        """Copies block `number` of the rows of a unit. What is past the end is the last of its kind again."""
        begin: T.int32 = number * (BYTES * WIDE)
        if aligned == 16:
            for i in T.unroll((CHUNKS + 7) // 8):
                chunk: T.int32 = i * 8 + lane % 8
                if chunk < CHUNKS:
                    from_byte: T.int64 = next_byte + T.cast(T.min(begin + chunk * 16, size - 16), "int64")
                    for j in T.unroll(4):
                        place: T.let = place_of(chunk, T.truncdiv(lane, 8)) * 4
                        T.ptx.cp.async_.cg.shared.global_(ring.ptr_to([warp, stage, j * 4 + T.truncdiv(lane, 8), place]),
                                                          W_bytes.ptr_to([from_byte + T.int64(j * 4) * w_row - T.int64(2)]), 16)
        elif aligned == 4:
            for k in range(WIDE * BYTES // 8):
                index: T.int32 = k * 32 + lane
                n: T.int32 = T.truncdiv(index, WIDE * BYTES // 4)
                at: T.int32 = index - n * (WIDE * BYTES // 4)
                from_byte: T.int64 = T.cast(first_of(unit) + n, "int64") * w_row + T.cast(T.min(begin + at * 4, size - 4), "int64")
                T.ptx.cp.async_.ca.shared.global_(ring.ptr_to([warp, stage, n, place_of(at // 4, n) * 4 + at % 4]),
                                                  W_bytes.ptr_to([from_byte - T.int64(2)]), 4)
        else:
            for k in range(WIDE * BYTES // 4):
                index: T.int32 = k * 32 + lane
                n: T.int32 = T.truncdiv(index, WIDE * BYTES // 2)
                at: T.int32 = index - n * (WIDE * BYTES // 2)
                if n < 16:
                    by2 = T.decl_buffer((T.truncdiv(size, 2),), "uint16", data=W.ptr_to([first_of(unit) + n, 0]), scope="global")
                    to = T.decl_buffer((PITCH * 2,), "uint16", data=ring.ptr_to([warp, stage, n, 0]), scope="shared.dyn")
                    to[place_of(at // 8, n) * 8 + at % 8] = by2[T.min(T.truncdiv(begin, 2) + at, T.truncdiv(size, 2) - 1)]

    # The 32 columns, in 256, of each column of X in an MMA: a lane has neighbors of Q4_K and Q8_0 in the two sets.
    NEIGHBORS = T.meta_var(FORMAT == "Q4_K" or FORMAT == "Q8_0")

    def group_of(n):
        return n % 4 * 2 + n // 4 if NEIGHBORS else n

    @T.inline
    def load_factors(unit, wanted):
        """The factors of a lane in block `wanted`, if they are not in the blocks. Past the end the last ones again."""
        number: T.int32 = T.min(wanted, last)
        n: T.int64 = T.cast(T.max(first_of(unit), 0) + row_of_lane, "int64")
        for b in T.unroll(WIDE):
            for h in T.unroll(1 if FORMAT == "INT4" else 2):
                at: T.int32 = T.min((number * WIDE + b) * 8 + group_of(four * 2 + h), T.truncdiv(columns, 32) - 1)
                # Half a part of 32 columns keeps the quotient away from the next whole number.
                group: T.int32 = at
                if FORMAT != "MXFP4":
                    group = T.min(T.cast((T.cast(at, "float32") + T.float32(0.5)) * per_group, "int32"), groups - 1)
                from_s: T.int64 = n * s_row + T.cast(group, "int64")
                for r in T.unroll(2):
                    if FORMAT == "FP8":
                        ahead[b, r, h] = T.reinterpret("uint32", S_flat[from_s + T.int64(r * 8) * s_row])
                    elif FORMAT == "MXFP4":
                        ahead[b, r, h] = T.cast(S_flat[from_s + T.int64(r * 8) * s_row], "uint32")
                    else:
                        from_z: T.int64 = n * z_row + T.cast(group, "int64")
                        ahead[b, r, 0] = T.cast(T.reinterpret("uint16", S_flat[from_s + T.int64(r * 8) * s_row]), "uint32")
                        ahead[b, r, 1] = T.cast(Z_flat[from_z + T.int64(r * 8) * z_row], "uint32")

    @T.inline
    def decode_outside(b):
        for r in T.unroll(2):
            for h in T.unroll(2):
                if FORMAT == "MXFP4":
                    scaled[b, r, h] = power_of_two(ahead[b, r, h]) * T.float32(UNIT / 8.0)
                    zero[b, r, h] = T.float32(BIAS / UNIT)
                elif FORMAT == "FP8":
                    scaled[b, r, h] = T.reinterpret("float32", ahead[b, r, h]) * T.float32(1.0 if BF16 else 256.0)
                elif FORMAT == "INT4":
                    scaled[b, r, h] = half(ahead[b, r, 0]) * T.float32(UNIT)
                    zero[b, r, h] = (T.cast(ahead[b, r, 1], "float32") + T.float32(BIAS)) * T.float32(1.0 / UNIT)

    @T.inline
    def arrange_x():
        """Stores X in the order of the MMAs, zeros past the end, and the sums of its groups. A thread takes 8 columns, of 4 MMAs."""
        by8 = T.decl_buffer((T.truncdiv(columns, 8),), "uint32x4", data=X.ptr_to([0, 0]), scope="global")
        for turn in range(T.ceildiv((last + 1) * WIDE * 32, WARPS * 32 * 2)):
            for e in T.unroll(2):
                index: T.int32 = (turn * 2 + e) * (WARPS * 32) + warp * 32 + lane
                for w in T.unroll(4):
                    raw[e, w] = T.uint32(0)
                if index * 8 < columns:
                    quads[e, 0] = by8[index]
            for e in T.unroll(2):
                index: T.int32 = (turn * 2 + e) * (WARPS * 32) + warp * 32 + lane
                group: T.int32 = index % 32 // 4
                place: T.int32 = T.truncdiv(index, 32) * 8 + (group % 2 * 4 + group // 2 if NEIGHBORS else group)
                if BIASED:
                    total: T.float32 = 0.0
                    for w in T.unroll(4):
                        if BF16:
                            total += T.reinterpret("float32", raw[e, w] << T.uint32(16)) + T.reinterpret("float32", raw[e, w] & T.uint32(0xFFFF0000))
                        else:
                            total += half(raw[e, w] & T.uint32(0xFFFF)) + half(raw[e, w] >> T.uint32(16))
                    total += T.tvm_warp_shuffle_xor(0xFFFFFFFF, total, 1, 32, 32)
                    total += T.tvm_warp_shuffle_xor(0xFFFFFFFF, total, 2, 32, 32)
                    if lane % 4 == 0 and index < (last + 1) * WIDE * 32:
                        sums[place] = total
                if FORMAT == "INT4":
                    for w in T.unroll(2):
                        bytes_of(raw[e, 4 + w * 2], raw[e, w], raw[e, 2 + w], T.uint32(0x5410))
                        bytes_of(raw[e, 5 + w * 2], raw[e, w], raw[e, 2 + w], T.uint32(0x7632))
                elif FORMAT == "MXFP4":
                    for w in T.unroll(4):
                        raw[e, 4 + w] = raw[e, w]
                else:
                    for w in T.unroll(2):
                        bytes_of(raw[e, 4 + w * 2], raw[e, w * 2], raw[e, w * 2 + 1], T.uint32(0x5410))
                        bytes_of(raw[e, 5 + w * 2], raw[e, w * 2], raw[e, w * 2 + 1], T.uint32(0x7632))
                if index < (last + 1) * WIDE * 32:
                    to = T.decl_buffer((1,), "uint32x4", data=xs.ptr_to([place * 16 + index % 4 * 4]), scope="shared.dyn")
                    to[0] = quads[e, 1]
        if warp == 0 and lane < 16:
            xs[ZEROS + lane] = T.uint32(0)
        T.cuda.cta_sync()

    @T.inline
    def load_x(number, set, j):
        """The numbers of X for MMAs `j` and `j + 1`: of one group, or zeros."""
        from_xs = T.decl_buffer((1,), "uint32x4", data=xs.ptr_to([first_x[set] + number * next_x[set] + j * 2]), scope="shared.dyn")
        pairs_vector[j // 2 % 2] = from_xs[0]

    @T.inline
    def multiply(of, j):
        """Two accumulators, so that an MMA need not wait for the last one."""
        T.ptx["mma.sync.aligned.m16n8k16.row.col.f32." + PTX[dtype] + "." + PTX[dtype] + ".f32"](
            [part.ptr_to([j % 2, e]) for e in range(4)], [of[e] for e in range(4)], [pairs[j // 2 % 2, j % 2 * 2], pairs[j // 2 % 2, j % 2 * 2 + 1]],
            [part[j % 2, e] for e in range(4)])

    @T.inline
    def add(number, b):
        """The factors times the products."""
        for h in T.unroll(2):
            for r in T.unroll(2):
                both: T.float32 = part[0, r * 2 + h] + part[1, r * 2 + h]
                if FORMAT == "Q4_K":
                    if BF16:
                        both = T.fma(T.float32(-BIAS), sums[(number * WIDE + b) * 8 + four * 2 + h], both)
                    acc[r] = T.fma(-zero[b, r, h], sums[(number * WIDE + b) * 8 + four * 2 + h], acc[r])
                elif BIASED:
                    both = T.fma(-zero[b, r, h], sums[(number * WIDE + b) * 8 + four * 2 + h], both)
                factor: T.float32 = scaled[b, r, h]
                if FORMAT == "Q8_0":
                    # The bytes past the end may be of no number.
                    factor = T.if_then_else((number * WIDE + b) * 256 + group_of(four * 2 + h) * 32 < columns, factor, T.float32(0))
                acc[r] = T.fma(factor, both, acc[r])

    @T.inline
    def load_words(stage, b, set):
        """The words of a lane for a set, or both. A load waits some cycles, and none moves over an MMA: so all of them are before."""
        for r in T.unroll(2):
            words = T.decl_buffer((BYTES // 4,), "uint32", data=ring.ptr_to([warp, stage, row_of_lane + r * 8, b * BYTES // 4]), scope="shared.dyn")
            by4_words = T.decl_buffer((BYTES // 16,), "uint32x4", data=ring.ptr_to([warp, stage, row_of_lane + r * 8, b * BYTES // 4]),
                                      scope="shared.dyn")
            if FORMAT == "INT4" or FORMAT == "MXFP4":
                if set == 0:
                    for h in T.unroll(2):
                        quads[r, h] = by4_words[place_of(h * 4 + four, row_of_lane)]
            elif FORMAT == "Q4_K":
                # The factors, then 64 weights in 32 bytes, the low halves first.
                if set == 0:
                    quads[r, 2] = by4_words[0]
                    for h in T.unroll(2):
                        quads[r, h] = by4_words[1 + four * 2 + h]
            elif FORMAT == "FP8":
                for h in T.unroll(2):
                    quads[r, h] = by4_words[set * 8 + four * 2 + h]
            elif set == 0:
                # 68 bytes of two groups: a float16 factor and 32 numbers each. The first begin between words.
                for j in T.unroll(9):
                    raw[r, j] = words[four * 17 + j]
                for j in T.unroll(8):
                    bytes_of(raw[r, j], raw[r, j], raw[r, j + 1], T.uint32(0x5432))
            else:
                for j in T.unroll(8):
                    raw[r, j] = words[four * 17 + 9 + j]

    @T.inline
    def take(set, j, r):
        """The operands of a row for MMA j of a set."""
        if FORMAT == "INT4":
            for h in T.unroll(2):
                each(a[h * 2 + r], raw[r, set * 4 + j // 2] >> T.uint32(j % 2 * 8 + h * 4), 0x000F000F, BITS)
        elif FORMAT == "MXFP4":
            # Bytes of 48 and eight times a number, 0 to 96: one of two tables has the number, the other gives 0.
            number = T.alloc_local((2,), "uint32")
            negative: T.let = T.bitwise_xor(raw[r, set * 4 + j // 2], T.uint32(0x88888888))
            bytes_of(number[0], table[0], table[1], raw[r, set * 4 + j // 2] >> T.uint32(j % 2 * 16))
            bytes_of(number[1], table[2], table[3], negative >> T.uint32(j % 2 * 16))
            # A product and a sum: logic has half the throughput, and limits this loop.
            number[0] = number[0] * table[5] + number[1]
            bytes_of(a[r], number[0], table[4], T.uint32(0x7170))
            bytes_of(a[2 + r], number[0], table[4], T.uint32(0x7372))
        elif FORMAT == "Q4_K":
            for h in T.unroll(2):
                each(a[h * 2 + r], raw[r, j] >> T.uint32(set * 4 + h * 8), 0x000F000F, BITS)
        elif FORMAT == "FP8":
            # The bits of a float8 below a 16-bit float's are its value times 2^-120, or 2^-8 for float16, also for subnormals.
            for h in T.unroll(2):
                a[h * 2 + r] = shifted(raw[r, j], h * 8 - MAGNITUDE) & T.uint32(0x007F007F << MAGNITUDE)
                T.ptx.lop3.b32(a[h * 2 + r], raw[r, j] << T.uint32(8 - h * 8), T.uint32(0x80008000), a[h * 2 + r], 0xEA)
                if BF16:
                    T.ptx.fma.rn.bf16x2(a[h * 2 + r], a[h * 2 + r], T.uint32(0x7B807B80), T.uint32(0x80008000))
        else:
            # A signed byte is its low 7 bits, less 128 times the high bit.
            for h in T.unroll(2):
                each(a[h * 2 + r], raw[r, j] >> T.uint32(h * 8), 0x007F007F, BITS)
                each(second[h * 2 + r], raw[r, j] >> T.uint32(h * 8), 0x00800080, SIGNS)

    @T.inline
    def decode(stage, b):
        """The factors in blocks: of groups 0 and 2, 4 and 6, 1 and 3, 5 and 7 by lane."""
        for r in T.unroll(2):
            if FORMAT == "Q4_K":
                # Two float16 factors, twelve bytes with 8 factors and 8 minima of 6 bits.
                shift: T.uint32 = T.cast(four // 2 * 8, "uint32")
                low: T.uint32 = raw[r, 9] >> shift
                middle: T.uint32 = raw[r, 10] >> shift
                factors: T.uint32 = low
                minima: T.uint32 = middle
                if four % 2 == 1:
                    high: T.uint32 = raw[r, 11] >> shift
                    factors = (high & T.uint32(0x000F000F)) | ((low >> T.uint32(2)) & T.uint32(0x00300030))
                    minima = ((high >> T.uint32(4)) & T.uint32(0x000F000F)) | ((middle >> T.uint32(2)) & T.uint32(0x00300030))
                of_factors: T.float32 = half(raw[r, 8] & T.uint32(0xFFFF)) * T.float32(UNIT)
                of_minima: T.float32 = half(raw[r, 8] >> T.uint32(16))
                for h in T.unroll(2):
                    scaled[b, r, h] = of_factors * T.cast((factors >> T.uint32(h * 16)) & T.uint32(63), "float32")
                    zero[b, r, h] = of_minima * T.cast((minima >> T.uint32(h * 16)) & T.uint32(63), "float32")
            else:
                shorts = T.decl_buffer((BYTES // 2,), "uint16", data=ring.ptr_to([warp, stage, row_of_lane + r * 8, 0]), scope="shared.dyn")
                for h in T.unroll(2):
                    scaled[b, r, h] = half(T.cast(shorts[group_of(four * 2 + h) * 17], "uint32")) * T.float32(UNIT)

    @T.inline
    def end_unit(unit, side):
        """The sum over the warps of a unit. The other side of `parts` may still be read."""
        for r in T.unroll(2):
            for distance in T.unroll(2):
                acc[r] += T.tvm_warp_shuffle_xor(0xFFFFFFFF, acc[r], distance + 1, 32, 32)
            if four == 0:
                parts[side, warp, row_of_lane + r * 8] = acc[r]
            acc[r] = T.float32(0)
        T.cuda.cta_sync()
        # Rows before the unit's first are of the unit before.
        output: T.let = first_of(unit) + lane
        if own == 0 and lane < 16 and output >= unit * 16:
            total: T.float32 = 0.0
            for other in range(warps):
                total += parts[side, warp + other, lane]
            Y[0, output] = T.cast(total, dtype)

    rounds: T.let = T.ceildiv(T.ceildiv(outputs, 16), blocks * units)
    unit: T.int32 = block * units + T.truncdiv(warp, warps)
    # The next step to copy, and the stages of the next copy and of this step.
    next_unit: T.int32 = unit
    next_byte: T.int64 = T.cast(first_of(unit) + T.truncdiv(lane, 8), "int64") * w_row
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
            next_byte = T.cast(first_of(next_unit) + T.truncdiv(lane, 8), "int64") * w_row

    for k in T.unroll(STAGES - 1):
        copy_next()
    if OUTSIDE:
        load_factors(unit, own)
    arrange_x()
    # A lane takes the numbers of X of one group in one of the sets, or zeros.
    first_x = T.alloc_local((2,), "int32")
    next_x = T.alloc_local((2,), "int32")
    for set in T.unroll(2):
        active: T.let = row_of_lane == four + set * 4
        first_x[set] = T.if_then_else(active, row_of_lane * 16, ZEROS)
        next_x[set] = T.if_then_else(active, 128, 0)
    for round in range(rounds):
        for step in range(steps):
            number: T.let = step * warps + own
            T.ptx.cp.async_.wait_group(STAGES - 2)
            # All lanes have copied this stage, and have read the one that is overwritten now.
            T.cuda.warp_sync()
            copy_next()
            here: T.let = unit * 16 < outputs
            if OUTSIDE:
                for b in T.unroll(WIDE):
                    decode_outside(b)
                more: T.let = step + 1 < steps
                load_factors(T.if_then_else(more, unit, unit + blocks * units), T.if_then_else(more, number + warps, own))
            for b in T.unroll(WIDE):
                if here and (number * WIDE + b) * 256 < columns:
                    load_words(stage, b, 0)
                    load_x(number * WIDE + b, 0, 0)
                    if not OUTSIDE:
                        decode(stage, b)
                    for i, e in T.grid(2, 4):
                        part[i, e] = T.float32(0)
                    for set in T.unroll(2):
                        if set == 1:
                            load_words(stage, b, 1)
                        for j in T.unroll(8):
                            if j % 2 == 0 and (set == 0 or j < 6):
                                load_x(number * WIDE + b, set + (j + 2) // 8, (j + 2) % 8)
                            for r in T.unroll(2):
                                take(set, j, r)
                            multiply(a, j)
                            if FORMAT == "Q8_0":
                                multiply(second, j)
                    add(number, b)
            stage = T.if_then_else(stage == STAGES - 1, 0, stage + 1)
        end_unit(unit, round % 2)
        unit += blocks * units
    T.ptx.cp.async_.wait_group(0)
