"""Caches of keys and values in pages: tokens are appended, and pages copied."""

from __future__ import annotations

from tvm.script import tirx as T

from quantize import to_8_bits
from rope import MAX_PAIRS, angles, turn
from rows import BY_NVCC, after_previous, load, load_row, load_vector, misaligned, store, store_row, vector, widen

TOKENS = 4                                   # of a block that appends; each has a warp
ROUNDS = 2                                   # of pairs of vectors that a lane appends; a round has two


# sim: append(dtype="bfloat16", of_k=None, of_v=None)
#   q: bfloat16[3x80x32] = 1 + (i + j + k) % 7
#   y: bfloat16[3x80x32] = 0 -> (1 + (i + j + k + 8) % 7 if k < 8 else -1 - (i + j + k - 8) % 7) if k < 16 else 1 + (i + j + k) % 7 +- 1e-5
#   k: bfloat16[3x40x32] = 1 + (i + j + k) % 5
#   v: bfloat16[3x40x32] = 1 + (i + j + k) % 3
#   k_cache: bfloat16[2x4x40x32] = 9 -> 9 if i == 0 or j < 3 else (1 + (k + l + 8) % 5 if l < 8 else -1 - (k + l - 8) % 5) if l < 16 else 1 + (k + l) % 5 +- 1e-5
#   v_cache: bfloat16[2x4x40x32] = 9 -> 9 if i == 0 or j < 3 else 1 + (k + l) % 3
#   table: int32[1x2] = 1 - j
#   sequences: int32[3] = 5 * i
#   positions: int32[3] = 3
#   frequencies: float32[8] = 1.5707964
#   w_q: bfloat16[0] = 0
#   w_k: bfloat16[0] = 0
#   interleaved = 0
#   eps = 0.0
#   vectors = 1
#   rounds = 2
@T.jit
def append(q: T.handle, y: T.handle, k: T.handle, v: T.Optional(T.handle), k_cache: T.handle, v_cache: T.Optional(T.handle), table: T.handle,
           sequences: T.handle, positions: T.handle, frequencies: T.handle, w_q: T.handle, w_k: T.handle, interleaved: T.int32, eps: T.float32,
           vectors: T.int32, rounds: T.int32, of_k: T.Optional(T.float32), of_v: T.Optional(T.float32), *, dtype: T.constexpr):
    """Writes key and value of each token, `[tokens, heads, head]`, to the row of its position in the pages of its sequence. If there are
    frequencies, the keys are turned by their positions first, and with the weights of a norm each key is normalized before. Tokens without a row (a
    negative position, no page) are left out. Queries, if there are any, are normalized and turned as the keys are, and written to Y.

    Without V it writes keys alone. With `of_k` and `of_v` the caches are float8, and these are the factors of their numbers.

    A warp has a part of a token: queries, or keys and values. A lane has two pairs of vectors in each of `rounds` rounds, two of queries, or one of keys
    and the same of values. They are loaded before the position and the page are known, and the angles are computed meanwhile. This takes heads that
    consist of such pairs at multiples of 16 bytes, as `vectors` tells; others are taken by elements."""
    EIGHT = T.meta_var(of_k is not None)
    cache = T.meta_var("float8_e4m3fn" if EIGHT else dtype)
    tokens, heads, head, page, batch, width, pairs = (T.int32(), T.int32(), T.int32(), T.int32(), T.int32(), T.int32(), T.int32())
    pages, heads_of_q, normed = T.int64(), T.int32(), T.int32()
    q0, q1, y0, y1 = T.int64(), T.int64(), T.int64(), T.int64()
    a0, a1, b0, b1, t0 = T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
    k0, k1, k2, v0, v1, v2 = T.int64(), T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
    Q = T.match_buffer(q, (tokens, heads_of_q, head), dtype, strides=(q0, q1, 1))
    Y = T.match_buffer(y, (tokens, heads_of_q, head), dtype, strides=(y0, y1, 1))
    K = T.match_buffer(k, (tokens, heads, head), dtype, strides=(a0, a1, 1))
    if v is not None:
        V = T.match_buffer(v, (tokens, heads, head), dtype, strides=(b0, b1, 1))
    K_cache = T.match_buffer(k_cache, (pages, page, heads, head), cache, strides=(k0, k1, k2, 1))
    if v is not None:
        V_cache = T.match_buffer(v_cache, (pages, page, heads, head), cache, strides=(v0, v1, v2, 1))
    Table = T.match_buffer(table, (batch, width), "int32", strides=(t0, 1))
    Sequences = T.match_buffer(sequences, (tokens,), "int32")
    Positions = T.match_buffer(positions, (tokens,), "int32")
    Frequencies = T.match_buffer(frequencies, (pairs,), "float32")
    Wq = T.match_buffer(w_q, (normed,), dtype)
    Wk = T.match_buffer(w_k, (normed,), dtype)
    VEC = T.meta_var(vector(dtype))
    # Both pairs of a round are of the same tensor.
    SAME = T.meta_var(v is None)
    half: T.let = T.truncdiv(head, 2)
    of_head: T.let = T.truncdiv(head + (2 * VEC - 1), 2 * VEC)          # pairs of vectors
    heads_of_warp: T.let = T.truncdiv(32, of_head)
    of_round: T.let = 64 if v is None else 32                           # lanes, or twice as many if both pairs are of the same tensor
    # The parts of a token that are queries, and those that are keys and values.
    of_q: T.let = T.truncdiv(heads_of_q * of_head + rounds * 64 - 1, rounds * 64)
    of_keys: T.let = T.truncdiv(heads * of_head + rounds * of_round - 1, rounds * of_round)
    parts: T.let = of_q + of_keys
    T.device_entry()
    after_previous()
    # The parts of a token are next to each other.
    block = T.cta_id([T.ceildiv(tokens, TOKENS) * parts])
    thread = T.thread_id([TOKENS * 32])
    warp: T.let = thread // 32
    lane: T.let = thread % 32
    cosines = T.alloc_shared((TOKENS, MAX_PAIRS), "float32")
    sines = T.alloc_shared((TOKENS, MAX_PAIRS), "float32")
    kept = T.alloc_local((ROUNDS * 4 * VEC,), dtype)
    weights = T.alloc_local((2 * VEC,), dtype)
    result = T.alloc_local((2 * VEC,), dtype)
    if EIGHT:
        small = T.alloc_local((VEC,), cache)
    number = T.alloc_local((2 * VEC,), "float32")
    c = T.alloc_local((VEC,), "float32")
    s = T.alloc_local((VEC,), "float32")
    squares = T.alloc_local((1,), "float32")
    scale = T.alloc_local((1,), "float32")
    h = T.alloc_local((1,), "int32")
    lane_of_head = T.alloc_local((1,), "int32")
    column = T.alloc_local((1,), "int32")
    apart = T.alloc_local((1,), "int32")
    its_page = T.alloc_local((1,), "int32")
    its_row = T.alloc_local((1,), "int32")
    position = T.alloc_local((1,), "int32")
    token: T.let = T.truncdiv(block, parts) * TOKENS + warp
    number_of_part: T.let = block - T.truncdiv(block, parts) * parts
    is_q: T.let = number_of_part < of_q
    part: T.let = T.if_then_else(is_q, number_of_part, number_of_part - of_q)
    its_heads: T.let = T.if_then_else(is_q, heads_of_q, heads)
    step: T.let = T.if_then_else(is_q, 64, of_round)
    first: T.let = part * rounds * step + lane
    end: T.let = T.min((part + 1) * rounds * step, its_heads * of_head)

    @T.inline
    def find_row():
        its_page[0] = -1
        its_row[0] = 0
        if not is_q:
            sequence: T.int32 = Sequences[token]
            if sequence >= 0 and sequence < batch and position[0] >= 0:
                if T.truncdiv(position[0], page) < width:
                    its_page[0] = Table[sequence, T.truncdiv(position[0], page)]
                    its_row[0] = position[0] - T.truncdiv(position[0], page) * page
                    if T.cast(its_page[0], "int64") >= pages:
                        its_page[0] = -1

    def source(side):
        """The head of an item: on the first side a query or a key, on the second a query or a value."""
        other = K.ptr_to([token, h[0], 0]) if side == 0 or v is None else V.ptr_to([token, h[0], 0])
        return T.if_then_else(is_q, Q.ptr_to([token, h[0], 0]), other)

    @T.inline
    def store_result(whole, side, count):
        """Writes the `count` vectors of `result`: the first to `column` of a head, the second `apart` behind."""
        if is_q:
            Ys = T.decl_buffer((head,), dtype, data=Y.ptr_to([token, h[0], 0]), scope="global")
            for n in T.unroll(count):
                store_row(whole, Ys, column[0] + n * apart[0], head, result, n * VEC, dtype, VEC)
        elif its_page[0] >= 0:
            There = T.meta_var(K_cache if side == 0 or v is None else V_cache)
            there = T.decl_buffer((head,), cache, data=There.ptr_to([its_page[0], its_row[0], h[0], 0]), scope="global")
            for n in T.unroll(count):
                if EIGHT:
                    to_8_bits(small, result, n * VEC, 1.0 / (of_k if side == 0 else of_v), cache, VEC)
                    store_row(whole, there, column[0] + n * apart[0], head, small, 0, cache, VEC)
                else:
                    store_row(whole, there, column[0] + n * apart[0], head, result, n * VEC, dtype, VEC)

    @T.inline
    def norm_of(count):
        """The factor of a head, from the sums of squares of `count` lanes, a power of two."""
        for power in T.unroll(5):
            if (1 << power) < count:
                squares[0] += T.tvm_warp_shuffle_xor(0xFFFFFFFF, squares[0], 1 << power, 32, 32)
        scale[0] = T.rsqrt(squares[0] / T.cast(head, "float32") + eps)

    @T.inline
    def begin_items():
        item: T.int32 = T.min(first, end - 1)
        h[0] = T.truncdiv(item, of_head)
        lane_of_head[0] = item - h[0] * of_head

    @T.inline
    def next_item(side):
        """The item 32 behind. Key and value are in the same place."""
        if is_q or SAME or side == 1:
            h[0] += heads_of_warp
            lane_of_head[0] += 32 - heads_of_warp * of_head
            if lane_of_head[0] >= of_head:
                h[0] += 1
                lane_of_head[0] -= of_head

    def inside(round, side):
        """Whether the lane has this item; if not, it has a place behind the last one."""
        return first + T.if_then_else(is_q, round * 64 + side * 32, round * of_round + (side * 32 if v is None else 0)) < end

    def is_turned(side):
        return (pairs > 0 or normed > 0) and (side == 0 or v is None or is_q)

    @T.inline
    def find_columns():
        """The columns of the two vectors of an item: `column`, and `apart` behind."""
        column[0] = lane_of_head[0] * VEC
        apart[0] = T.if_then_else(column[0] < pairs, pairs, half - pairs)
        column[0] = T.if_then_else(column[0] < pairs, column[0], column[0] + pairs)

    @T.inline
    def turn_item(at):
        """Normalizes and turns the two vectors of an item, to `result`."""
        widen(number, kept, at, 2 * VEC)
        if normed > 0:
            W = T.decl_buffer((head,), dtype, data=T.if_then_else(is_q, Wq.data, Wk.data), scope="global")
            load_vector(weights, 0, W, column[0], head, dtype, VEC)
            load_vector(weights, VEC, W, column[0] + apart[0], head, dtype, VEC)
            for e in T.unroll(2 * VEC):
                number[e] = number[e] * scale[0] * T.cast(weights[e], "float32")
        if column[0] < pairs:
            turn(number, c, s, cosines, sines, warp, column[0], pairs, interleaved, VEC)
        for e in T.unroll(2 * VEC):
            result[e] = T.cast(number[e], dtype)

    @T.inline
    def in_registers():
        begin_items()
        for round in T.unroll(ROUNDS, annotations=BY_NVCC):
            for side in [0, 1]:
                find_columns()
                # In place of an item behind the last one, the lane loads a part of the first head.
                if not inside(round, side):
                    h[0] = 0
                Xs = T.decl_buffer((head,), dtype, data=source(side), scope="global")
                load_vector(kept, (round * 2 + side) * 2 * VEC, Xs, column[0], head, dtype, VEC)
                load_vector(kept, (round * 2 + side) * 2 * VEC + VEC, Xs, column[0] + apart[0], head, dtype, VEC)
                next_item(side)
        position[0] = Positions[token]
        find_row()
        if pairs > 0:
            angles(cosines, sines, warp, position[0], Frequencies, pairs, lane)
        begin_items()
        for round in T.unroll(ROUNDS, annotations=BY_NVCC):
            for side in [0, 1]:
                at = T.meta_var((round * 2 + side) * 2 * VEC)
                # The norm takes the lanes behind the last item, too.
                if is_turned(side) and normed > 0 and round < rounds:
                    squares[0] = 0.0
                    widen(number, kept, at, 2 * VEC)
                    for e in T.unroll(2 * VEC):
                        squares[0] += number[e] * number[e]
                    norm_of(of_head)
                if inside(round, side):
                    find_columns()
                    if is_turned(side):
                        turn_item(at)
                    else:
                        for e in T.unroll(2 * VEC):
                            result[e] = kept[at + e]
                    store_result(True, side, 2)
                next_item(side)

    @T.inline
    def turn_elements(row, W):
        """Normalizes and turns the vector of a head that is in `result`."""
        for e in T.unroll(VEC, annotations=BY_NVCC):
            at: T.int32 = column[0] + e
            if at < head:
                number[0] = T.cast(result[e], "float32")
                if normed > 0:
                    number[0] = number[0] * scale[0] * T.cast(W[at], "float32")
                if at < 2 * pairs:
                    second: T.int32 = T.if_then_else(interleaved != 0, at % 2, T.cast(at >= pairs, "int32"))
                    distance: T.int32 = T.if_then_else(interleaved != 0, 1, pairs)
                    pair: T.int32 = T.if_then_else(interleaved != 0, T.truncdiv(at, 2), at - second * pairs)
                    other: T.int32 = T.if_then_else(second != 0, at - distance, at + distance)
                    number[1] = T.cast(row[other], "float32")
                    if normed > 0:
                        number[1] = number[1] * scale[0] * T.cast(W[other], "float32")
                    number[0] = number[0] * cosines[warp, pair] + number[1] * T.if_then_else(second != 0, sines[warp, pair], 0.0 - sines[warp, pair])
                result[e] = T.cast(number[0], dtype)

    @T.inline
    def by_elements():
        """Heads of any length at any address, one after the other."""
        position[0] = Positions[token]
        find_row()
        if pairs > 0:
            angles(cosines, sines, warp, position[0], Frequencies, pairs, lane)
        of_part: T.int32 = T.ceildiv(its_heads, T.if_then_else(is_q, of_q, of_keys))
        apart[0] = 0
        for n in range(of_part):
            for side in ([0] if v is None else [0, 1]):
                h[0] = part * of_part + n
                if h[0] < its_heads and ((is_q and side == 0) or its_page[0] >= 0):
                    row = T.decl_buffer((head,), dtype, data=source(side), scope="global")
                    W = T.decl_buffer((head,), dtype, data=T.if_then_else(is_q, Wq.data, Wk.data), scope="global")
                    if is_turned(side) and normed > 0:
                        squares[0] = 0.0
                        for turn in range(T.ceildiv(head, 32)):
                            if turn * 32 + lane < head:
                                squares[0] += T.cast(row[turn * 32 + lane], "float32") * T.cast(row[turn * 32 + lane], "float32")
                        norm_of(32)
                    for turn in range(T.ceildiv(head, 32 * VEC)):
                        column[0] = (turn * 32 + lane) * VEC
                        load_row(False, result, 0, row, column[0], head, dtype, VEC)
                        if is_turned(side):
                            turn_elements(row, W)
                        store_result(False, side, 1)

    if token < tokens:
        if vectors != 0:
            in_registers()
        else:
            by_elements()


@T.prim_func
def advance(x: T.handle):
    """Adds 1 to each number that is not negative."""
    count = T.int32()
    step = T.int64()
    X = T.match_buffer(x, (count,), "int32", strides=(step,))
    T.device_entry()
    after_previous()
    block = T.cta_id([T.ceildiv(count, 128)])
    tid = T.thread_id([128])
    i: T.int32 = block * 128 + tid
    if i < count:
        if X[i] >= 0:
            X[i] = X[i] + 1


@T.jit
def copy(source: T.Optional(T.handle), cache: T.handle, pairs: T.handle, *, dtype: T.constexpr):
    """Page `pairs[p, 1]` of `cache` becomes page `pairs[p, 0]` of `source`, which is `cache` if it is not given. Pairs with a page outside are
    left out. A warp has a row of a page to itself, with all of its heads."""
    page, heads, head, count = T.int32(), T.int32(), T.int32(), T.int32()
    pages, of_source = T.int64(), T.int64()
    c0, c1, c2, s0, s1, s2, p0 = T.int64(), T.int64(), T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
    Cache = T.match_buffer(cache, (pages, page, heads, head), dtype, strides=(c0, c1, c2, 1))
    if source is not None:
        Source = T.match_buffer(source, (of_source, page, heads, head), dtype, strides=(s0, s1, s2, 1))
    Pairs = T.match_buffer(pairs, (count, 2), "int32", strides=(p0, 1))
    VEC = T.meta_var(vector(dtype))
    T.device_entry()
    after_previous()
    block, pair = T.cta_id([T.ceildiv(page, 4), count])
    warp = T.warp_id([4])
    lane = T.lane_id([32])
    some = T.alloc_local((VEC,), dtype)
    from_page: T.int32 = Pairs[pair, 0]
    to_page: T.int32 = Pairs[pair, 1]
    row: T.int32 = block * 4 + warp
    of_head: T.int32 = T.truncdiv(head + (VEC - 1), VEC)
    last: T.let = pages if source is None else of_source
    if row < page and from_page >= 0 and T.cast(from_page, "int64") < last and to_page >= 0 and T.cast(to_page, "int64") < pages:
        for c in range(T.truncdiv(heads * of_head + 31, 32)):
            item: T.int32 = c * 32 + lane
            if item < heads * of_head:
                h: T.int32 = T.truncdiv(item, of_head)
                column: T.int32 = (item - h * of_head) * VEC
                There = T.meta_var(Cache if source is None else Source)
                one = T.decl_buffer((head,), dtype, data=There.ptr_to([from_page, row, h, 0]), scope="global")
                two = T.decl_buffer((head,), dtype, data=Cache.ptr_to([to_page, row, h, 0]), scope="global")
                bits: T.uint8 = misaligned(There.ptr_to([from_page, row, h, 0])) | misaligned(Cache.ptr_to([to_page, row, h, 0]))
                load(some, 0, one, column, head, bits == T.uint8(0), dtype, VEC)
                store(two, column, head, some, 0, bits == T.uint8(0), dtype, VEC)
