"""Rotary embedding: turns pairs of a head's elements by angles that grow with the position."""

from __future__ import annotations

from tvm.script import tirx as T

from rows import BY_NVCC, after_previous, load_vector, misaligned, store_row, vector, widen

MAX_PAIRS = 256


@T.inline
def angle(cosines, sines, warp, at, position, frequency):
    """The cosine and the sine of position * frequency, to 1e-7. Positions may be large, so float64 reduces the angle: to at most an eighth of a
    turn from a multiple of a quarter. Behind the addition of 1.5 * 2^52, the last bits are the number of quarters."""
    whole: T.float64 = T.cast(position, "float64") * T.cast(frequency, "float64")
    shifted: T.float64 = whole * T.float64(0.6366197723675814) + T.float64(6755399441055744.0)
    quarter: T.int32 = T.cast(T.bitwise_and(T.reinterpret("int64", shifted), T.int64(3)), "int32")
    x: T.float32 = T.cast(whole - (shifted - T.float64(6755399441055744.0)) * T.float64(1.5707963267948966), "float32")
    z: T.float32 = x * x
    # Minimax polynomials (Cephes, sinf.c).
    of_sine: T.float32 = x + x * z * (((T.float32(-1.9515295891e-4) * z + T.float32(8.3321608736e-3)) * z) - T.float32(1.6666654611e-1))
    of_cosine: T.float32 = T.float32(1) - T.float32(0.5) * z + z * z * (
        (T.float32(2.443315711809948e-5) * z - T.float32(1.388731625493765e-3)) * z + T.float32(4.166664568298827e-2))
    cosines[warp, at] = T.if_then_else(quarter % 2 == 0, of_cosine, of_sine) * T.if_then_else(quarter == 1 or quarter == 2, T.float32(-1), T.float32(1))
    sines[warp, at] = T.if_then_else(quarter % 2 == 0, of_sine, of_cosine) * T.if_then_else(quarter >= 2, T.float32(-1), T.float32(1))


@T.inline
def angles(cosines, sines, warp, position, Frequencies, pairs, lane):
    """The cosines and sines of the pairs of a position, by a warp, in its row of shared memory."""
    for p in range(T.ceildiv(pairs, 32)):
        angle(cosines, sines, warp, p * 32 + lane, position, Frequencies[T.min(p * 32 + lane, pairs - 1)])
    T.cuda.warp_sync()


@T.inline
def turn(number, c, s, cosines, sines, warp, column, pairs, interleaved, count):
    """Turns two vectors of `count` numbers, those at `column` and at `column + pairs` of a head. If pairs are interleaved, each vector consists of pairs."""
    half = T.meta_var("float32x" + str(count // 2))
    # Pairs of the first half of the numbers, and of the second.
    first: T.int32 = T.if_then_else(interleaved != 0, column // 2, column) // (count // 2)
    second: T.int32 = T.if_then_else(interleaved != 0, (column + pairs) // 2, column + count // 2) // (count // 2)
    for to, table in [(c, cosines), (s, sines)]:
        there = T.decl_buffer((2,), half, data=to.data, scope="local")
        here = T.decl_buffer((MAX_PAIRS // (count // 2),), half, data=table.ptr_to([warp, 0]), scope="shared")
        there[0] = here[first]
        there[1] = here[second]
    if interleaved != 0:
        turn_pairs(number, c, s, 1, count)
    else:
        turn_pairs(number, c, s, count, count)


@T.inline
def turn_pairs(number, c, s, apart, count):
    """Turns `count` pairs of numbers, which are `apart` from each other."""
    for e in T.unroll(count):
        at = T.meta_var(2 * e if apart == 1 else e)
        x: T.float32 = number[at]
        number[at] = x * c[e] - number[at + apart] * s[e]
        number[at + apart] = number[at + apart] * c[e] + x * s[e]


WARPS = 4                                    # of a block; each has heads of one token
ITEMS = 4                                    # pairs of vectors that a lane has at most


# sim: rope(dtype="float32")
#   x: float32[2x20x20] = 1 + i + j + k -> (0 - (9 + i + j + k) if k < 8 else i + j + k - 7) if k < 16 else 1 + i + j + k +- 1e-5
#   positions: int32[2] = 1
#   frequencies: float32[8] = 1.5707964
#   interleaved = 0
#   items = 2
# sim: rope(dtype="float32")
#   x: float32[2x20x19] = 1 + i + j + k -> (0 - (2 + i + j + k) if k % 2 == 0 else i + j + k) if k < 18 else 1 + i + j + k +- 1e-5
#   positions: int32[2] = 1
#   frequencies: float32[9] = 1.5707964
#   interleaved = 1
#   items = 2
@T.jit
def rope(x: T.handle, positions: T.handle, frequencies: T.handle, interleaved: T.int32, items: T.int32, *, dtype: T.constexpr):
    """Turns X `[tokens, heads, head]` in place: pair p is the elements 2 p and 2 p + 1 if `interleaved`, else p and p + pairs. Elements
    behind the pairs keep their values.

    A lane has `items` pairs of vectors, and loads them before the position of its token is known. If pairs are not whole vectors at multiples of
    16 bytes, a lane has a pair of numbers at a time."""
    tokens, heads, head, pairs = T.int32(), T.int32(), T.int32(), T.int32()
    x_token, x_head, p_step = T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (tokens, heads, head), dtype, strides=(x_token, x_head, 1))
    Positions = T.match_buffer(positions, (tokens,), "int32", strides=(p_step,))
    Frequencies = T.match_buffer(frequencies, (pairs,), "float32")
    VEC = T.meta_var(vector(dtype))
    of_head: T.let = T.truncdiv(pairs + (VEC - 1), VEC)                 # lanes
    total: T.let = heads * of_head
    parts: T.let = T.truncdiv(total + items * 32 - 1, items * 32)
    T.device_entry()
    after_previous()
    # The parts of a token are next to each other.
    block = T.cta_id([T.ceildiv(tokens, WARPS) * parts])
    thread = T.thread_id([WARPS * 32])
    warp: T.let = thread // 32
    lane: T.let = thread % 32
    cosines = T.alloc_shared((WARPS, MAX_PAIRS), "float32")
    sines = T.alloc_shared((WARPS, MAX_PAIRS), "float32")
    kept = T.alloc_local((ITEMS * 2 * VEC,), dtype)
    result = T.alloc_local((2 * VEC,), dtype)
    number = T.alloc_local((2 * VEC,), "float32")
    c = T.alloc_local((VEC,), "float32")
    s = T.alloc_local((VEC,), "float32")
    h = T.alloc_local((1,), "int32")
    column = T.alloc_local((1,), "int32")
    token: T.let = T.truncdiv(block, parts) * WARPS + warp
    part: T.let = block - T.truncdiv(block, parts) * parts
    first: T.let = part * items * 32 + lane
    end: T.let = T.min((part + 1) * items * 32, total)

    @T.inline
    def find(u):
        """The head and the column of an item; those behind the last one are that one, which is loaded again and not stored."""
        item: T.int32 = T.min(first + u * 32, end - 1)
        h[0] = T.truncdiv(item, of_head)
        column[0] = (item - h[0] * of_head) * VEC

    @T.inline
    def in_registers():
        for u in T.unroll(ITEMS, annotations=BY_NVCC):
            find(u)
            Xs = T.decl_buffer((head,), dtype, data=X.ptr_to([token, h[0], 0]), scope="global")
            load_vector(kept, u * 2 * VEC, Xs, column[0], head, dtype, VEC)
            load_vector(kept, u * 2 * VEC + VEC, Xs, column[0] + pairs, head, dtype, VEC)
        angles(cosines, sines, warp, Positions[token], Frequencies, pairs, lane)
        for u in T.unroll(ITEMS, annotations=BY_NVCC):
            if first + u * 32 < end:
                find(u)
                Xs = T.decl_buffer((head,), dtype, data=X.ptr_to([token, h[0], 0]), scope="global")
                widen(number, kept, u * 2 * VEC, 2 * VEC)
                turn(number, c, s, cosines, sines, warp, column[0], pairs, interleaved, VEC)
                for e in T.unroll(2 * VEC):
                    result[e] = T.cast(number[e], dtype)
                store_row(True, Xs, column[0], head, result, 0, dtype, VEC)
                store_row(True, Xs, column[0] + pairs, head, result, VEC, dtype, VEC)

    @T.inline
    def by_pairs():
        angles(cosines, sines, warp, Positions[token], Frequencies, pairs, lane)
        begin: T.let = part * items * (32 * VEC)
        for n in range(items * VEC):
            item: T.int32 = begin + n * 32 + lane
            if item < heads * pairs:
                its_head: T.int32 = T.truncdiv(item, pairs)
                p: T.int32 = item - its_head * pairs
                at: T.int32 = T.if_then_else(interleaved != 0, 2 * p, p)
                apart: T.int32 = T.if_then_else(interleaved != 0, 1, pairs)
                one: T.float32 = T.cast(X[token, its_head, at], "float32")
                two: T.float32 = T.cast(X[token, its_head, at + apart], "float32")
                X[token, its_head, at] = T.cast(one * cosines[warp, p] - two * sines[warp, p], dtype)
                X[token, its_head, at + apart] = T.cast(two * cosines[warp, p] + one * sines[warp, p], dtype)

    if token < tokens:
        if misaligned(X.ptr_to([0, 0, 0])) == T.uint8(0) and (x_token | x_head | T.cast(pairs, "int64")) % VEC == 0:
            in_registers()
        else:
            by_pairs()
