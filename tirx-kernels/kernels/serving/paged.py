"""Attention of few queries per sequence to keys and values in pages."""

from __future__ import annotations

from tvm.script import tirx as T

from rows import BY_NVCC, BYTES, after_previous, vector

LOG2_E = 1.4426950408889634
KEYS = 16                                    # keys of a warp's tile
AT_A_TIME = 16                               # parts that are combined at a time
SLACK = 8                                    # powers of two by which a score may exceed the maximum that weights are relative to
HIDDEN = -3e38                               # the score of a key that a query does not see: its weight is 0


def swizzled(chunk, row, places):
    """The place of a chunk of 16 bytes in its row of `places`: the same chunk of eight rows is in different banks."""
    return chunk ^ (row % 8 if places >= 8 else row // 2 % 4)


def even(word):
    """Bytes 0 and 2 as float16: the bits of a float8 (e4m3) below a float16's are its value times 2^-8, also for subnormals."""
    return ((word << T.uint32(7)) & T.uint32(0x3F803F80)) | ((word << T.uint32(8)) & T.uint32(0x80008000))


def odd(word):
    """Bytes 1 and 3 as float16 times 2^-8."""
    return ((word >> T.uint32(1)) & T.uint32(0x3F803F80)) | (word & T.uint32(0x80008000))


def chunk(first, step):
    """The place of the chunk that is 2 `step` behind that of place `first`, in the same row."""
    return (first ^ step * 2 % 8) + step // 4 * 8


@T.inline
def find_page(slot, Table, b, key, end, page, pages):
    """The page of a key of sequence b, and the row in it; page -1 if the key is not before `end`, or the cache has no such page."""
    slot[0] = -1
    slot[1] = 0
    if key < end:
        slot[0] = Table[b, T.truncdiv(key, page)]
        slot[1] = key - T.truncdiv(key, page) * page
        if T.cast(slot[0], "int64") >= pages:
            slot[0] = -1


@T.inline
def write(O, value, result, b, hk, group, row, column, weight, factor, dtype):
    """Four elements of the result for a row of queries and heads: their sum over its weight, times a factor."""
    n: T.int32 = T.truncdiv(row, group)
    for e in T.unroll(4):
        result[e] = T.cast(T.if_then_else(weight == T.float32(0), T.float32(0), value[e] / weight * factor), dtype)
    for e in T.unroll(4):
        O[b, n, hk * group + row - n * group, column + e] = result[e]


@T.inline
def combine(O, Partial, Counters, arrived, value, result, number, first_part, splits, b, hk, group, first_row, rows, tid, THREADS, factor, ROWS, D,
            dtype):
    """The block that ends last among those of the ranges of a tile combines their parts. Several parts are loaded at a time: their latency
    would be most of the time otherwise."""
    PART = T.meta_var(ROWS * (D + 2))
    T.cuda.cta_sync()
    if tid == 0:
        arrived[0] = T.ptx.atom_scalar(Counters.ptr_to([number]), T.int32(1), sem="acq_rel", scope="gpu", op="add", ptx_type="s32")
    T.cuda.cta_sync()
    if arrived[0] == splits - 1:
        if tid == 0:
            T.evaluate(T.cuda.atomic_add(Counters.ptr_to([number]), 0 - splits))
        # The maximum and the total of a part's row.
        tops = T.alloc_local((AT_A_TIME, 2), "float32")
        top = T.decl_buffer((AT_A_TIME,), "float32x2", data=tops.data, scope="local")
        its_values = T.alloc_local((AT_A_TIME, 4), "float32")
        its_value = T.decl_buffer((AT_A_TIME,), "float32x4", data=its_values.data, scope="local")
        for k in range(T.ceildiv(ROWS * D, THREADS * 4)):
            row: T.int32 = T.truncdiv((k * THREADS + tid) * 4, D)
            column: T.int32 = (k * THREADS + tid) * 4 - row * D
            if row < rows:
                peak: T.float32 = T.float32(-1e30)
                weight: T.float32 = 0.0
                for e in T.unroll(4):
                    value[e] = T.float32(0)
                for turn in range(T.truncdiv(splits + (AT_A_TIME - 1), AT_A_TIME)):
                    # Behind the last part, the last one is loaded again; its weight is 0.
                    for j in T.unroll(AT_A_TIME):
                        at: T.int64 = first_part + T.cast(T.min(turn * AT_A_TIME + j, splits - 1) * PART, "int64")
                        pair = T.decl_buffer((1,), "float32x2", data=Partial.ptr_to([at + T.cast(ROWS * D + row * 2, "int64")]), scope="global")
                        four = T.decl_buffer((1,), "float32x4", data=Partial.ptr_to([at + T.cast(row * D + column, "int64")]), scope="global")
                        top[j] = pair[0]
                        its_value[j] = four[0]
                    higher: T.float32 = peak
                    for j in T.unroll(AT_A_TIME):
                        higher = T.max(higher, tops[j, 0])
                    keep: T.float32 = T.ptx.exp2(peak - higher)
                    weight = weight * keep
                    for e in T.unroll(4):
                        value[e] = value[e] * keep
                    for j in T.unroll(AT_A_TIME):
                        share: T.float32 = T.ptx.exp2(tops[j, 0] - higher)
                        if turn * AT_A_TIME + j >= splits:
                            share = 0.0
                        weight += tops[j, 1] * share
                        for e in T.unroll(4):
                            value[e] += its_values[j, e] * share
                    peak = higher
                write(O, value, result, b, hk, group, first_row + row, column, weight, factor, dtype)


@T.jit
def decode(q: T.handle, k: T.handle, v: T.handle, table: T.handle, lengths: T.handle, o: T.handle, partial: T.handle, counters: T.handle,
           scale: T.float32, of_v: T.Optional(T.float32), cap: T.float32, window: T.int32, tiles: T.int32, splits: T.int32, *,
           dtype: T.constexpr, D: T.constexpr, ROWS: T.constexpr, STAGES: T.constexpr = 3):
    """O = softmax(scale Q K^T) V for Q `[batch, queries, heads, D]` and caches `[pages, page, heads of K, D]`.

    The rows of a tile are the queries of the heads that share a head of K: row r is query r / group and head r % group, so a key is loaded
    once for ROWS of them. A warp has tiles of 16 keys to itself: it copies the next ones while it multiplies one (`mma.sync`), and no
    barrier of the block is needed before the end. Blocks divide the keys of a sequence into `splits` ranges. The block that ends last
    combines the ranges; the counter that tells it so is 0 again afterwards.

    Both products are transposed, K Q^T and V^T P^T: keys and columns of V are the 16 rows of an MMA, and eight rows of Q its columns, so a tile
    with up to eight rows leaves no part of an MMA empty. Weights are relative to a maximum that follows the scores only when one exceeds
    it by more than `SLACK`, so most tiles need no reduction and no new factor of the sums.

    With `of_v` the caches are float8, and `of_v` is the factor of their values; `scale` has that of the keys. Their MMAs are of float16. A lane
    takes neighbors of a row, so the columns of an MMA are those of its operand in another order. `ldmatrix` loads two neighbors as if they were one number.

    Query n of N sees the keys up to length - N + n, and the last `window` of them unless it is 0. `cap` bounds scores unless it is 0."""
    EIGHT = T.meta_var(of_v is not None)
    cache = T.meta_var("float8_e4m3fn" if EIGHT else dtype)
    # The element type of the MMAs.
    of_mma = T.meta_var("float16" if EIGHT else dtype)
    batch, queries, heads, page, heads_of_k = T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
    pages = T.int64()                            # a cache may have more than 2^31 elements
    width, of_partial, of_counters = T.int32(), T.int32(), T.int32()
    q0, q1, q2, o0, o1, o2 = T.int64(), T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
    k0, k1, k2, v0, v1, v2, t0, l0 = T.int64(), T.int64(), T.int64(), T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
    Q = T.match_buffer(q, (batch, queries, heads, D), dtype, strides=(q0, q1, q2, 1))
    K = T.match_buffer(k, (pages, page, heads_of_k, D), cache, strides=(k0, k1, k2, 1), align=16)
    V = T.match_buffer(v, (pages, page, heads_of_k, D), cache, strides=(v0, v1, v2, 1), align=16)
    Table = T.match_buffer(table, (batch, width), "int32", strides=(t0, 1))
    Lengths = T.match_buffer(lengths, (batch,), "int32", strides=(l0,))
    O = T.match_buffer(o, (batch, queries, heads, D), dtype, strides=(o0, o1, o2, 1))
    Partial = T.match_buffer(partial, (of_partial,), "float32", align=16)
    Counters = T.match_buffer(counters, (of_counters,), "int32")
    OF_CHUNK = T.meta_var(vector(cache))
    CHUNKS = T.meta_var(D // OF_CHUNK)       # of 16 bytes, in a row
    # The places for chunks in a row of shared memory: eight of them are in all banks.
    PLACES = T.meta_var((CHUNKS + 7) // 8 * 8 if CHUNKS > 4 else CHUNKS)
    LANES_OF_ROW = T.meta_var(8 if CHUNKS % 8 == 0 else 4 if CHUNKS % 4 == 0 else 2)       # that copy a row together
    WARPS = T.meta_var(2 if D > 128 else 4)
    NEVER = T.meta_var(-1e30)
    PADDED = T.meta_var(D + 4)               # the rows of sums begin in different banks
    UNIT = T.meta_var(BYTES[cache])
    # The L2 cache fetches a row of 256 bytes at once, although it is asked for lines of 128 bytes: up to 0.15 more of a copy's speed.
    PREFETCH = T.meta_var(256 if D * UNIT % 256 == 0 else 128)
    T.device_entry()
    T.attr({"tirx.use_programtic_dependent_launch": True})
    split, tile, b = T.cta_id([splits, tiles * heads_of_k, batch])
    tid = T.thread_id([WARPS * 32])
    warp: T.int32 = T.tvm_warp_shuffle(0xFFFFFFFF, tid // 32, 0, 32, 32)
    lane: T.int32 = tid % 32
    pool = T.SMEMPool()
    Ks = pool.alloc((WARPS, STAGES, KEYS, PLACES * OF_CHUNK), cache, align=128)
    Vs = pool.alloc((WARPS, STAGES, KEYS, PLACES * OF_CHUNK), cache, align=128)
    pool.move_base_to(0)
    sums = pool.alloc((WARPS, ROWS, PADDED), "float32", align=16)
    tops = pool.alloc((WARPS, ROWS, 2), "float32", align=16)
    pool.commit()
    arrived = T.alloc_shared((1,), "int32")
    group: T.int32 = T.truncdiv(heads, heads_of_k)
    hk: T.int32 = T.truncdiv(tile, tiles)
    first_row: T.int32 = (tile - hk * tiles) * ROWS
    rows: T.int32 = T.min(queries * group - first_row, ROWS)
    # The previous kernel may still run; the condition, which is true, keeps the divisions above before the wait.
    if rows > 0:
        T.ptx.griddepcontrol.wait()
    length: T.int32 = T.max(T.min(Lengths[b], width * page), 0)
    # The keys that some query of the tile sees.
    low: T.int32 = 0
    if window > 0:
        low = T.max(length - queries + T.truncdiv(first_row, group) + 1 - window, 0)
    high: T.int32 = T.max(T.min(length - queries + T.truncdiv(first_row + rows - 1, group) + 1, length), 0)
    share: T.int32 = T.truncdiv(T.truncdiv(T.max(high - low, 0) + (WARPS * KEYS - 1), WARPS * KEYS) + splits - 1, splits) * (WARPS * KEYS)
    begin: T.int32 = low + split * share
    end: T.int32 = T.min(begin + share, high)
    count: T.int32 = T.truncdiv(T.max(end - begin, 0) - warp * KEYS + (WARPS * KEYS - 1), WARPS * KEYS)
    # The keys that all queries of the tile see.
    seen_from: T.int32 = 0
    if window > 0:
        seen_from = length - queries + T.truncdiv(first_row + rows - 1, group) + 1 - window
    seen_to: T.int32 = T.min(end, length - queries + T.truncdiv(first_row, group) + 1)

    N = T.meta_var(ROWS // 8)                # MMAs side by side
    query = T.alloc_local((D // 16, N, 4), of_mma)
    query_words = T.decl_buffer((D // 16, N, 2), "uint32", data=query.data, scope="local")
    operand = T.alloc_local((4,), "uint32")
    scores = T.alloc_local((N, 4), "float32")
    if EIGHT:
        raw = T.alloc_local((4,), "uint32")
    weights = T.alloc_local((N, 4), of_mma)
    weight_words = T.decl_buffer((N, 2), "uint32", data=weights.data, scope="local")
    acc = T.alloc_local((D // 16, N, 4), "float32")
    most = T.alloc_local((N, 2), "float32")
    total = T.alloc_local((N, 2), "float32")
    limit = T.alloc_local((N, 2), "int32")
    slot = T.alloc_local((2,), "int32")
    place = T.alloc_local((1,), "int64")
    present = T.alloc_local((1,), "uint32")
    # Lanes 0 to 15 find the keys of a tile, lanes 16 to 31 its values; distances are in bytes.
    of_page: T.int64 = T.if_then_else(lane < 16, k0, v0) * T.int64(UNIT)
    of_row: T.int64 = T.if_then_else(lane < 16, k1, v1) * T.int64(UNIT)
    of_head: T.int64 = T.cast(hk, "int64") * T.if_then_else(lane < 16, k2, v2) * T.int64(UNIT)
    from_k = T.decl_buffer((1,), "uint8", data=K.ptr_to([0, 0, 0, lane % LANES_OF_ROW * OF_CHUNK]), scope="global")
    from_v = T.decl_buffer((1,), "uint8", data=V.ptr_to([0, 0, 0, lane % LANES_OF_ROW * OF_CHUNK]), scope="global")
    # The place of chunk `lane % LANES_OF_ROW` in row lane / LANES_OF_ROW of shared memory.
    own_place: T.int32 = swizzled(lane % LANES_OF_ROW, lane // LANES_OF_ROW, PLACES)

    @T.inline
    def locate(i):
        """The place of key `lane % KEYS` of this warp's tile i, and of its value; `present` has a bit for each of them that exists."""
        find_page(slot, Table, b, begin + (i * WARPS + warp) * KEYS + lane % KEYS, end, page, pages)
        place[0] = T.int64(0)
        if slot[0] >= 0:
            place[0] = T.cast(slot[0], "int64") * of_page + T.cast(slot[1], "int64") * of_row + of_head
        present[0] = T.cuda.ballot_sync(T.uint32(0xFFFFFFFF), slot[0] >= 0) >> T.cast(lane // LANES_OF_ROW, "uint32")

    @T.inline
    def fetch(stage):
        for c in T.unroll(KEYS * LANES_OF_ROW // 32):
            row: T.int32 = c * (32 // LANES_OF_ROW) + lane // LANES_OF_ROW
            here: T.uint32 = T.bitwise_and(present[0] >> T.uint32(c * (32 // LANES_OF_ROW)), T.uint32(1))
            for side in [0, 1]:
                its: T.int64 = T.tvm_warp_shuffle(0xFFFFFFFF, place[0], row + side * 16, 32, 32)
                for g in T.unroll(CHUNKS // LANES_OF_ROW):
                    # The lower bits of chunk and row that are not the lane's.
                    rest: T.int32 = (g * LANES_OF_ROW % 8 ^ c * (32 // LANES_OF_ROW) % 8) if PLACES >= 8 else 0
                    there: T.int32 = ((own_place ^ rest) + g * LANES_OF_ROW // 8 * 8) * OF_CHUNK
                    if side == 0:
                        T.ptx.cp_async(Ks.ptr_to([warp, stage, row, there]), from_k.ptr_to([its + T.int64(g * LANES_OF_ROW * 16)]), 16,
                                       predicate=here, fill_mode="zero", prefetch_size=PREFETCH)
                    else:
                        T.ptx.cp_async(Vs.ptr_to([warp, stage, row, there]), from_v.ptr_to([its + T.int64(g * LANES_OF_ROW * 16)]), 16,
                                       predicate=here, fill_mode="zero", prefetch_size=PREFETCH)

    # The places of the first chunks that a lane's `ldmatrix` reads.
    of_keys: T.int32 = swizzled(lane // 16, lane % 8, PLACES)
    of_values: T.int32 = swizzled(lane // 8 % 2, lane % 8, PLACES)

    @T.inline
    def load_float8(transposed, Cache, stage, pair):
        """Float8: two chunks of 16 keys. A lane has four neighbors of a key, or two of each of two keys."""
        T.ptx.ldmatrix(transposed, 4, ".b16", Cache.ptr_to([warp, stage, lane % 16, chunk(of_keys, pair) * OF_CHUNK]),
                       *[raw.ptr_to([e]) for e in range(4)])

    @T.inline
    def score(step):
        for n in T.unroll(N):
            T.ptx.mma("m16n8k16", "row", "col", "float32", of_mma, of_mma, "float32",
                      [scores.ptr_to([n, e]) for e in range(4)], [operand.ptr_to([e]) for e in range(4)],
                      [query_words.ptr_to([step, n, e]) for e in range(2)], [scores.ptr_to([n, e]) for e in range(4)])

    @T.inline
    def add(step):
        for n in T.unroll(N):
            T.ptx.mma("m16n8k16", "row", "col", "float32", of_mma, of_mma, "float32",
                      [acc.ptr_to([step, n, e]) for e in range(4)], [operand.ptr_to([e]) for e in range(4)],
                      [weight_words.ptr_to([n, e]) for e in range(2)], [acc.ptr_to([step, n, e]) for e in range(4)])

    if count > 0:
        locate(0)
    # With heads of 256 elements, the loop that nvcc unrolls spills.
    OF_QUERY = T.meta_var({} if D == 256 else BY_NVCC)
    # The operand of Q: a thread has row lane / 4 of eight, and four columns of 16. Of the scores it has keys lane / 4 and lane / 4 + 8, and
    # rows 2 (lane % 4) and the next one.
    for n in T.unroll(N):
        row: T.int32 = n * 8 + lane // 4
        of_query: T.int32 = T.truncdiv(first_row + row, group)
        for step in T.unroll(D // 16, annotations=OF_QUERY):
            for e in T.unroll(4):
                column: T.int32 = step * 16 + (lane % 4 * 4 + e // 2 + e % 2 * 2 if EIGHT else e // 2 * 8 + lane % 4 * 2 + e % 2)
                query[step, n, e] = T.if_then_else(
                    row < rows, T.cast(Q[b, of_query, hk * group + first_row + row - of_query * group, column], of_mma), T.cast(0, of_mma))
        for e in T.unroll(2):
            limit[n, e] = length - queries + T.truncdiv(first_row + n * 8 + lane % 4 * 2 + e, group) + 1
            most[n, e] = T.float32(NEVER)
            total[n, e] = 0.0
    for j, n, e in T.grid(D // 16, N, 4):
        acc[j, n, e] = T.float32(0)

    scale_of_mma: T.float32 = scale * T.float32(256) if EIGHT else scale
    factor: T.float32 = scale_of_mma * T.float32(LOG2_E)
    if cap > T.float32(0):
        factor = scale_of_mma / cap
    for turn in range(count + (STAGES - 1)):
        if turn < count:
            fetch(turn % STAGES)
        T.ptx.cp_async.commit_group()
        if turn + 1 < count:
            locate(turn + 1)
        if turn >= STAGES - 1:
            i: T.int32 = turn - (STAGES - 1)
            stage: T.int32 = i % STAGES
            T.ptx.cp_async.wait_group(STAGES - 1)
            T.cuda.warp_sync()
            for n, e in T.grid(N, 4):
                scores[n, e] = T.float32(0)
            if EIGHT:
                for pair in T.unroll(D // 32, annotations=BY_NVCC):
                    load_float8(False, Ks, stage, pair)
                    for half in T.unroll(2):
                        for h in T.unroll(2):
                            operand[h] = even(raw[half * 2 + h])
                            operand[h + 2] = odd(raw[half * 2 + h])
                        score(pair * 2 + half)
            else:
                for step in T.unroll(D // 16, annotations=BY_NVCC):
                    T.ptx.ldmatrix(False, 4, ".b16", Ks.ptr_to([warp, stage, lane % 16, chunk(of_keys, step) * OF_CHUNK]),
                                   *[operand.ptr_to([e]) for e in range(4)])
                    score(step)
            first_key: T.int32 = begin + (i * WARPS + warp) * KEYS
            for n, e in T.grid(N, 4):
                scores[n, e] = scores[n, e] * factor
            if cap > T.float32(0):
                for n, e in T.grid(N, 4):
                    scores[n, e] = T.tanh(scores[n, e]) * (cap * T.float32(LOG2_E))
            if first_key < seen_from or first_key + KEYS > seen_to:
                for n, h, e in T.grid(N, 2, 2):
                    key: T.int32 = first_key + lane // 4 + h * 8
                    if key >= T.min(end, limit[n, e]) or (window > 0 and key < limit[n, e] - window):
                        scores[n, h * 2 + e] = T.float32(HIDDEN)
            over: T.float32 = T.float32(NEVER)
            for n, e in T.grid(N, 2):
                over = T.max(over, T.max(scores[n, e], scores[n, 2 + e]) - most[n, e])
            if T.ptx.any_sync(T.uint32(0xFFFFFFFF), over > T.float32(SLACK)) != 0:
                for n, e in T.grid(N, 2):
                    peak: T.float32 = T.max(most[n, e], T.max(scores[n, e], scores[n, 2 + e]))
                    for power in T.unroll(3):
                        peak = T.max(peak, T.tvm_warp_shuffle_xor(0xFFFFFFFF, peak, 4 << power, 32, 32))
                    keep: T.float32 = T.ptx.exp2(most[n, e] - peak)
                    total[n, e] = total[n, e] * keep
                    for step in T.unroll(D // 16, annotations=BY_NVCC):
                        for h in T.unroll(2):
                            acc[step, n, h * 2 + e] = acc[step, n, h * 2 + e] * keep
                    most[n, e] = peak
            for n, h, e in T.grid(N, 2, 2):
                weight: T.float32 = T.ptx.exp2(scores[n, h * 2 + e] - most[n, e])
                total[n, e] += weight
                weights[n, h * 2 + e] = T.cast(weight, of_mma)
            # The next product's operand is the transposed one: lane 4 r + c has row r and keys 2 c and 2 c + 1 of eight.
            for n, h in T.grid(N, 2):
                one: T.uint32 = T.tvm_warp_shuffle(0xFFFFFFFF, weight_words[n, h], lane % 4 * 8 + lane // 8, 32, 32)
                two: T.uint32 = T.tvm_warp_shuffle(0xFFFFFFFF, weight_words[n, h], lane % 4 * 8 + 4 + lane // 8, 32, 32)
                weight_words[n, h] = T.if_then_else(lane // 4 % 2 == 0, T.bitwise_and(one, T.uint32(0xFFFF)) | (two << T.uint32(16)),
                                                    (one >> T.uint32(16)) | T.bitwise_and(two, T.uint32(0xFFFF0000)))
            if EIGHT:
                for pair in T.unroll(D // 32, annotations=BY_NVCC):
                    # Two neighbors of each of two keys.
                    load_float8(True, Vs, stage, pair)
                    for half in T.unroll(2):
                        for h in T.unroll(2):
                            operand[h * 2] = even(raw[half * 2 + h])
                            operand[h * 2 + 1] = odd(raw[half * 2 + h])
                        add(pair * 2 + half)
            else:
                for step in T.unroll(D // 16, annotations=BY_NVCC):
                    T.ptx.ldmatrix(True, 4, ".b16", Vs.ptr_to([warp, stage, lane // 16 * 8 + lane % 8, chunk(of_values, step) * OF_CHUNK]),
                                   *[operand.ptr_to([e]) for e in range(4)])
                    add(step)
        T.cuda.warp_sync()

    T.ptx.griddepcontrol.launch_dependents()
    # The warps together: the stages are free for their sums.
    T.ptx.cp_async.wait_group(0)
    T.cuda.cta_sync()
    value = T.alloc_local((4,), "float32")
    value_vector = T.decl_buffer((1,), "float32x4", data=value.data, scope="local")
    for n, e in T.grid(N, 2):
        for power in T.unroll(3):
            total[n, e] += T.tvm_warp_shuffle_xor(0xFFFFFFFF, total[n, e], 4 << power, 32, 32)
        row: T.int32 = n * 8 + lane % 4 * 2 + e
        if lane < 4:
            tops[warp, row, 0] = most[n, e]
            tops[warp, row, 1] = total[n, e]
        for step in T.unroll(D // 16, annotations=BY_NVCC):
            for h in T.unroll(2):
                column: T.int32 = step * 16 + lane // 4 * 2 + h if EIGHT else step * 16 + h * 8 + lane // 4
                sums[warp, row, column] = acc[step, n, h * 2 + e]
    T.cuda.cta_sync()
    # A part has the sums of ROWS rows, then the maximum and the total of each. A thread has four columns.
    PART = T.meta_var(ROWS * (D + 2))
    number: T.int32 = b * (tiles * heads_of_k) + tile
    first_part: T.int64 = T.cast(number, "int64") * T.cast(splits, "int64") * T.int64(PART)
    result = T.alloc_local((4,), dtype)
    factor_of_v: T.let = of_v * T.float32(256) if EIGHT else T.float32(1)
    for k in range(T.ceildiv(ROWS * D, WARPS * 128)):
        row: T.int32 = T.truncdiv((k * (WARPS * 32) + tid) * 4, D)
        column: T.int32 = (k * (WARPS * 32) + tid) * 4 - row * D
        if row < rows:
            peak: T.float32 = tops[0, row, 0]
            for w in T.unroll(WARPS - 1):
                peak = T.max(peak, tops[w + 1, row, 0])
            weight: T.float32 = 0.0
            for e in T.unroll(4):
                value[e] = T.float32(0)
            for w in T.unroll(WARPS):
                its_factor: T.float32 = T.ptx.exp2(tops[w, row, 0] - peak)
                weight += tops[w, row, 1] * its_factor
                for e in T.unroll(4):
                    value[e] += sums[w, row, column + e] * its_factor
            if splits == 1:
                write(O, value, result, b, hk, group, first_row + row, column, weight, factor_of_v, dtype)
            else:
                part: T.int64 = first_part + T.cast(split * PART, "int64")
                there = T.decl_buffer((1,), "float32x4", data=Partial.ptr_to([part + T.cast(row * D + column, "int64")]), scope="global")
                there[0] = value_vector[0]
                if column == 0:
                    Partial[part + T.cast(ROWS * D + row * 2, "int64")] = peak
                    Partial[part + T.cast(ROWS * D + row * 2 + 1, "int64")] = weight
    if splits > 1:
        combine(O, Partial, Counters, arrived, value, result, number, first_part, splits, b, hk, group, first_row, rows, tid, WARPS * 32, factor_of_v,
                ROWS, D, dtype)


LATENT = 512                                 # elements of a key that are its value
OF_KEY = 576
LATENT_KEYS = 32                             # keys of a block's tile
LATENT_WARPS = 8


@T.jit
def latent(q: T.handle, kv: T.handle, table: T.handle, lengths: T.handle, o: T.handle, partial: T.handle, counters: T.handle, scale: T.float32,
           tiles: T.int32, splits: T.int32, *, dtype: T.constexpr, ROWS: T.constexpr, STAGES: T.constexpr):
    """Multi-head latent attention: O = softmax(scale Q K^T) V for Q `[batch, queries, heads, 576]` and a cache `[pages, page, 576]` of keys that
    all heads share; V is the first 512 elements of K.

    The warps of a block share its tiles of 32 keys: for scores, a warp has 16 rows of Q and 16 keys; for the output, it has 64 of the columns
    and all rows. The weights between go through shared memory. Rows, ranges of keys and their combination are those of `decode`."""
    batch, queries, heads, page, width = T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
    pages = T.int64()
    of_partial, of_counters = T.int32(), T.int32()
    q0, q1, q2, o0, o1, o2 = T.int64(), T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
    k0, k1, t0, l0 = T.int64(), T.int64(), T.int64(), T.int64()
    Q = T.match_buffer(q, (batch, queries, heads, OF_KEY), dtype, strides=(q0, q1, q2, 1))
    KV = T.match_buffer(kv, (pages, page, OF_KEY), dtype, strides=(k0, k1, 1), align=16)
    Table = T.match_buffer(table, (batch, width), "int32", strides=(t0, 1))
    Lengths = T.match_buffer(lengths, (batch,), "int32", strides=(l0,))
    O = T.match_buffer(o, (batch, queries, heads, LATENT), dtype, strides=(o0, o1, o2, 1))
    Partial = T.match_buffer(partial, (of_partial,), "float32", align=16)
    Counters = T.match_buffer(counters, (of_counters,), "int32")
    CHUNKS = T.meta_var(OF_KEY // 8)
    OWN = T.meta_var(LATENT_KEYS // LATENT_WARPS)                # keys that a warp loads
    MS = T.meta_var(ROWS // 16)
    COLUMNS = T.meta_var(LATENT // LATENT_WARPS)                 # of a warp
    NEVER = T.meta_var(-1e30)
    T.device_entry()
    after_previous(False)
    split, tile, b = T.cta_id([splits, tiles, batch])
    tid = T.thread_id([LATENT_WARPS * 32])
    warp: T.int32 = T.tvm_warp_shuffle(0xFFFFFFFF, tid // 32, 0, 32, 32)
    lane: T.int32 = tid % 32
    pool = T.SMEMPool()
    Qs = pool.alloc((ROWS, OF_KEY), dtype, align=128)
    Ks = pool.alloc((STAGES, LATENT_KEYS, OF_KEY), dtype, align=128)
    Ws = pool.alloc((ROWS, LATENT_KEYS), dtype, align=128)
    tops = pool.alloc((2, ROWS), "float32", align=16)
    sums = pool.alloc((2, ROWS), "float32", align=16)
    pool.commit()
    arrived = T.alloc_shared((1,), "int32")
    first_row: T.int32 = tile * ROWS
    rows: T.int32 = T.min(queries * heads - first_row, ROWS)
    length: T.int32 = T.max(T.min(Lengths[b], width * page), 0)
    high: T.int32 = T.max(T.min(length - queries + T.truncdiv(first_row + rows - 1, heads) + 1, length), 0)
    share: T.int32 = T.truncdiv(T.truncdiv(high + (LATENT_KEYS - 1), LATENT_KEYS) + splits - 1, splits) * LATENT_KEYS
    begin: T.int32 = split * share
    end: T.int32 = T.min(begin + share, high)
    count: T.int32 = T.truncdiv(T.max(end - begin, 0) + (LATENT_KEYS - 1), LATENT_KEYS)
    # Of scores: the rows and the keys of a warp. The last warps have none if there are few rows.
    m_of_warp: T.int32 = T.truncdiv(warp, 2)
    side: T.int32 = warp % 2
    scoring: T.let = warp < MS * 2

    a = T.alloc_local((4,), "uint32")
    keys = T.alloc_local((4,), "uint32")
    scores = T.alloc_local((2, 4), "float32")
    acc = T.alloc_local((MS, COLUMNS // 8, 4), "float32")
    most = T.alloc_local((MS, 2), "float32")                     # of rows 16 m + lane / 4 and the eighth behind, the same in all warps
    keep = T.alloc_local((MS, 2), "float32")
    total = T.alloc_local((2,), "float32")                       # over the keys of this warp's side
    limit = T.alloc_local((2,), "int32")
    slot = T.alloc_local((2,), "int32")
    value = T.alloc_local((4,), "float32")
    result = T.alloc_local((4,), dtype)

    @T.inline
    def locate(i):
        """`find_page` for key `lane % OWN` of this warp in tile i."""
        find_page(slot, Table, b, begin + i * LATENT_KEYS + warp * OWN + lane % OWN, end, page, pages)

    @T.inline
    def fetch(stage):
        for c in T.unroll(OWN * CHUNKS // 32):
            row: T.int32 = T.truncdiv(c * 32 + lane, CHUNKS)
            chunk: T.int32 = c * 32 + lane - row * CHUNKS
            its_page: T.int32 = T.tvm_warp_shuffle(0xFFFFFFFF, slot[0], row, 32, 32)
            its_row: T.int32 = T.tvm_warp_shuffle(0xFFFFFFFF, slot[1], row, 32, 32)
            here: T.int32 = T.if_then_else(its_page >= 0, 1, 0)
            T.ptx.cp_async(Ks.ptr_to([stage, warp * OWN + row, swizzled(chunk, warp * OWN + row, CHUNKS) * 8]),
                           KV.ptr_to([T.max(its_page, 0), its_row, chunk * 8]), 16, predicate=here, fill_mode="zero")

    for i in T.unroll(STAGES - 1):
        if i < count:
            locate(i)
            fetch(i)
        T.ptx.cp_async.commit_group()
    if STAGES - 1 < count:
        locate(STAGES - 1)
    for c in range(T.ceildiv(ROWS * CHUNKS, LATENT_WARPS * 32)):
        row: T.int32 = T.truncdiv(c * (LATENT_WARPS * 32) + tid, CHUNKS)
        chunk: T.int32 = c * (LATENT_WARPS * 32) + tid - row * CHUNKS
        n: T.int32 = T.truncdiv(first_row + row, heads)
        if row < ROWS:
            for e in T.unroll(8):
                Qs[row, swizzled(chunk, row, CHUNKS) * 8 + e] = T.if_then_else(
                    row < rows, Q[b, n, first_row + row - n * heads, chunk * 8 + e], T.cast(0, dtype))
    for h in T.unroll(2):
        limit[h] = length - queries + T.truncdiv(first_row + m_of_warp * 16 + lane // 4 + h * 8, heads) + 1
        total[h] = 0.0
    for m, h in T.grid(MS, 2):
        most[m, h] = T.float32(NEVER)
    for m, j, e in T.grid(MS, COLUMNS // 8, 4):
        acc[m, j, e] = T.float32(0)

    for i in range(count):
        stage: T.int32 = i % STAGES
        T.ptx.cp_async.wait_group(STAGES - 2)
        # All keys of the tile are there, and the tile before has been read.
        T.cuda.cta_sync()
        if i + (STAGES - 1) < count:
            fetch((i + (STAGES - 1)) % STAGES)
        T.ptx.cp_async.commit_group()
        if i + STAGES < count:
            locate(i + STAGES)
        if scoring:
            for j, e in T.grid(2, 4):
                scores[j, e] = T.float32(0)
            for step in range(OF_KEY // 16):
                T.ptx.ldmatrix(False, 4, ".b16", Qs.ptr_to([m_of_warp * 16 + lane % 16, swizzled(step * 2 + lane // 16, lane % 8, CHUNKS) * 8]),
                               *[a.ptr_to([e]) for e in range(4)])
                T.ptx.ldmatrix(False, 4, ".b16", Ks.ptr_to([stage, side * 16 + lane // 16 * 8 + lane % 8,
                                                            swizzled(step * 2 + lane // 8 % 2, lane % 8, CHUNKS) * 8]),
                               *[keys.ptr_to([e]) for e in range(4)])
                for j in T.unroll(2):
                    T.ptx.mma("m16n8k16", "row", "col", "float32", dtype, dtype, "float32",
                              [scores.ptr_to([j, e]) for e in range(4)], [a.ptr_to([e]) for e in range(4)],
                              [keys.ptr_to([j * 2 + e]) for e in range(2)], [scores.ptr_to([j, e]) for e in range(4)])
            first_key: T.int32 = begin + i * LATENT_KEYS + side * 16 + lane % 4 * 2
            for h in T.unroll(2):
                peak: T.float32 = NEVER
                for j, e in T.grid(2, 2):
                    score: T.float32 = scores[j, h * 2 + e] * scale * T.float32(LOG2_E)
                    if first_key + j * 8 + e >= T.min(end, limit[h]):
                        score = T.float32(NEVER)
                    scores[j, h * 2 + e] = score
                    peak = T.max(peak, score)
                peak = T.max(peak, T.tvm_warp_shuffle_xor(0xFFFFFFFF, peak, 1, 32, 32))
                peak = T.max(peak, T.tvm_warp_shuffle_xor(0xFFFFFFFF, peak, 2, 32, 32))
                if lane % 4 == 0:
                    tops[side, m_of_warp * 16 + h * 8 + lane // 4] = peak
        T.cuda.cta_sync()
        for m, h in T.grid(MS, 2):
            row: T.int32 = m * 16 + h * 8 + lane // 4
            peak: T.float32 = T.max(most[m, h], T.max(tops[0, row], tops[1, row]))
            keep[m, h] = T.ptx.exp2(most[m, h] - peak)
            most[m, h] = peak
            for j, e in T.grid(COLUMNS // 8, 2):
                acc[m, j, h * 2 + e] = acc[m, j, h * 2 + e] * keep[m, h]
            if m == m_of_warp and scoring:
                total[h] = total[h] * keep[m, h]
                for j, e in T.grid(2, 2):
                    weight: T.float32 = T.ptx.exp2(scores[j, h * 2 + e] - peak)
                    # A row that has seen no key has no maximum: its weights are 0, not exp2(0).
                    if scores[j, h * 2 + e] <= T.float32(NEVER):
                        weight = 0.0
                    total[h] += weight
                    column: T.int32 = side * 16 + j * 8 + lane % 4 * 2 + e
                    Ws[row, swizzled(column // 8, row, 4) * 8 + column % 8] = T.cast(weight, dtype)
        T.cuda.cta_sync()
        for step in T.unroll(LATENT_KEYS // 16):
            for m in T.unroll(MS):
                T.ptx.ldmatrix(False, 4, ".b16", Ws.ptr_to([m * 16 + lane % 16, swizzled(step * 2 + lane // 16, lane % 16, 4) * 8]),
                               *[a.ptr_to([e]) for e in range(4)])
                for j in T.unroll(COLUMNS // 16):
                    T.ptx.ldmatrix(True, 4, ".b16", Ks.ptr_to([stage, step * 16 + lane % 16,
                                                               swizzled(warp * (COLUMNS // 8) + j * 2 + lane // 16, lane % 8, CHUNKS) * 8]),
                                   *[keys.ptr_to([e]) for e in range(4)])
                    for p in T.unroll(2):
                        T.ptx.mma("m16n8k16", "row", "col", "float32", dtype, dtype, "float32",
                                  [acc.ptr_to([m, j * 2 + p, e]) for e in range(4)], [a.ptr_to([e]) for e in range(4)],
                                  [keys.ptr_to([p * 2 + e]) for e in range(2)], [acc.ptr_to([m, j * 2 + p, e]) for e in range(4)])

    T.ptx.griddepcontrol.launch_dependents()
    T.ptx.cp_async.wait_group(0)
    if scoring:
        for h in T.unroll(2):
            total[h] += T.tvm_warp_shuffle_xor(0xFFFFFFFF, total[h], 1, 32, 32)
            total[h] += T.tvm_warp_shuffle_xor(0xFFFFFFFF, total[h], 2, 32, 32)
            if lane % 4 == 0:
                sums[side, m_of_warp * 16 + h * 8 + lane // 4] = total[h]
    T.cuda.cta_sync()
    PART = T.meta_var(ROWS * (LATENT + 2))
    number: T.int32 = b * tiles + tile
    first_part: T.int64 = T.cast(number, "int64") * T.cast(splits, "int64") * T.int64(PART)
    part: T.int64 = first_part + T.cast(split * PART, "int64")
    for m, h in T.grid(MS, 2):
        row: T.int32 = m * 16 + h * 8 + lane // 4
        weight: T.float32 = sums[0, row] + sums[1, row]
        if row < rows:
            n: T.int32 = T.truncdiv(first_row + row, heads)
            for j, e in T.grid(COLUMNS // 8, 2):
                column: T.int32 = warp * COLUMNS + j * 8 + lane % 4 * 2 + e
                if splits == 1:
                    O[b, n, first_row + row - n * heads, column] = T.cast(
                        T.if_then_else(weight == T.float32(0), T.float32(0), acc[m, j, h * 2 + e] / weight), dtype)
                else:
                    Partial[part + T.cast(row * LATENT + column, "int64")] = acc[m, j, h * 2 + e]
            if splits > 1 and warp == 0 and lane % 4 == 0:
                Partial[part + T.cast(ROWS * LATENT + row * 2, "int64")] = most[m, h]
                Partial[part + T.cast(ROWS * LATENT + row * 2 + 1, "int64")] = weight
    if splits > 1:
        combine(O, Partial, Counters, arrived, value, result, number, first_part, splits, b, 0, heads, first_row, rows, tid, LATENT_WARPS * 32,
                T.float32(1), ROWS, LATENT, dtype)
