"""Attention by `mma.sync` for every GPU from sm_80 on: O = softmax(scale Q K^T) V in 16 bits, without a matrix of scores in memory."""

from __future__ import annotations

from tvm.script import tirx as T

LOG2_E = 1.4426950408889634


@T.jit
def forward(q: T.handle, k: T.handle, v: T.handle, o: T.handle, lse: T.handle, offsets_of_q: T.handle, offsets_of_k: T.handle,
            scale: T.float32, causal: T.int32, window: T.int32, cap: T.float32, blocks: T.int32, *, dtype: T.constexpr, D: T.constexpr):
    """A block of 4 warps takes 64 or 128 queries of a head and goes through their keys in tiles of 64. Keys are copied behind the
    product with the values before them, and values behind the product with their keys.

    Q is `[batch, heads, queries, head]`, K and V have `heads / group` heads. With `causal` the last query sees all keys,
    and each query before one key less. `window` above 0 limits each query to its last `window` keys. With `cap` above 0, scores are
    `cap * tanh(scores / cap)`. `lse` is the logarithm of the sum of exponentials, unless it is empty. If the offsets are not
    empty, the batch is 1, and sequence i has the queries from `offsets_of_q[i]` to `offsets_of_q[i + 1]`, and its keys likewise.
    Tiles have D columns: a smaller head is filled with zeros."""
    BATCH, HEADS, HEADS_OF_K, QUERIES, KEYS, HEAD, HEAD_OF_V = (T.int32() for _ in range(7))
    q_batch, q_head, q_row, k_batch, k_head, k_row = (T.int64() for _ in range(6))
    v_batch, v_head, v_row, o_batch, o_head, o_row = (T.int64() for _ in range(6))
    Q = T.match_buffer(q, (BATCH, HEADS, QUERIES, HEAD), dtype, strides=(q_batch, q_head, q_row, 1))
    K = T.match_buffer(k, (BATCH, HEADS_OF_K, KEYS, HEAD), dtype, strides=(k_batch, k_head, k_row, 1))
    V = T.match_buffer(v, (BATCH, HEADS_OF_K, KEYS, HEAD_OF_V), dtype, strides=(v_batch, v_head, v_row, 1))
    O = T.match_buffer(o, (BATCH, HEADS, QUERIES, HEAD_OF_V), dtype, strides=(o_batch, o_head, o_row, 1))
    lse_batch, lse_heads, lse_queries, OFFSETS = (T.int32() for _ in range(4))
    LSE = T.match_buffer(lse, (lse_batch, lse_heads, lse_queries), "float32")
    STARTS_OF_Q = T.match_buffer(offsets_of_q, (OFFSETS,), "int32")
    STARTS_OF_K = T.match_buffer(offsets_of_k, (OFFSETS,), "int32")
    # Two tiles of 16 rows in a warp halve its reads of keys and values; heads of 256 elements leave no registers for them.
    PARTS = T.meta_var(1 if D > 128 else 2)
    BM, BN, CHUNKS = T.meta_var(64 * PARTS), T.meta_var(64), T.meta_var(D // 8)
    T.device_entry()
    block = T.cta_id([blocks])
    tid = T.thread_id([128])
    warp: T.let = tid // 32
    lane: T.let = tid % 32
    pool = T.SMEMPool()
    Qs = pool.alloc((BM, D), dtype, align=16)
    Ks = pool.alloc((BN, D), dtype, align=16)
    Vs = pool.alloc((BN, D), dtype, align=16)
    pool.commit()

    # Tiles of one head follow each other, the last queries first: under a causal mask they have the most keys.
    packed: T.let = OFFSETS > 1
    down: T.let = T.if_then_else(packed, T.truncdiv(QUERIES, BM) + OFFSETS - 1, T.truncdiv(QUERIES + (BM - 1), BM))
    level: T.let = down - 1 - T.truncmod(block, down)
    head_of_all: T.let = T.truncdiv(block, down)
    batch: T.let = T.truncdiv(head_of_all, HEADS)
    head: T.let = T.truncmod(head_of_all, HEADS)
    head_of_k: T.let = T.truncdiv(head, T.truncdiv(HEADS, HEADS_OF_K))
    m: T.int32 = level * BM
    first_query: T.int32 = 0
    queries: T.int32 = QUERIES
    first_key: T.int32 = 0
    keys: T.int32 = KEYS
    if packed:
        # Sequence i has the tiles from `offsets_of_q[i] / BM + i` on: never fewer than it needs, without a sum over the sequences before.
        low: T.int32 = 0
        high: T.int32 = OFFSETS - 1
        while low + 1 < high:
            middle: T.let = T.truncdiv(low + high, 2)
            if T.truncdiv(STARTS_OF_Q[middle], BM) + middle <= level:
                low = middle
            else:
                high = middle
        m = (level - low - T.truncdiv(STARTS_OF_Q[low], BM)) * BM
        first_query = T.min(T.max(STARTS_OF_Q[low], 0), QUERIES)
        queries = T.min(T.max(STARTS_OF_Q[low + 1], first_query), QUERIES) - first_query
        first_key = T.min(T.max(STARTS_OF_K[low], 0), KEYS)
        keys = T.min(T.max(STARTS_OF_K[low + 1], first_key), KEYS) - first_key
    behind: T.let = keys - queries
    first: T.let = T.if_then_else(window > 0, T.truncdiv(T.max(m + behind + 1 - window, 0), BN), 0)
    most: T.let = T.if_then_else(causal != 0, T.max(T.min(keys, m + (BM + behind)), 0), keys)
    tiles: T.let = T.max(T.truncdiv(most + (BN - 1), BN) - first, 0)

    def at(row, chunk):
        """The first element of 8 in a row of shared memory: eight rows have the same chunk in different banks."""
        return T.bitwise_xor(chunk, row % 8) * 8

    @T.inline
    def load(to, source, head_of_source, rows, begin, row_of_tile, limit, width):
        for step in T.unroll(rows * CHUNKS // 128):
            row: T.let = step * (128 // CHUNKS) + tid // CHUNKS
            chunk: T.let = tid % CHUNKS
            inside: T.let = row_of_tile + row < limit and chunk * 8 < width
            T.ptx.cp_async(to.ptr_to([row, at(row, chunk)]),
                           source.ptr_to([batch, head_of_source, T.if_then_else(inside, begin + row_of_tile + row, 0),
                                          T.if_then_else(inside, chunk * 8, 0)]),
                           16, predicate=T.cast(inside, "int32"), fill_mode="zero")

    if m >= 0 and m < queries:
        scores = T.alloc_local((PARTS, BN // 8, 4), "float32")
        out = T.alloc_local((PARTS, D // 8, 4), "float32")
        probs = T.alloc_local((PARTS, BN // 8, 4), dtype)
        rows_of_q = T.alloc_local((PARTS, 4), "uint32")
        columns = T.alloc_local((2, 2), "uint32")
        row_max = T.alloc_local((PARTS, 2), "float32")
        row_sum = T.alloc_local((PARTS, 2), "float32")
        row_of_warp: T.let = warp * (16 * PARTS)
        to_log2: T.let = T.if_then_else(cap > T.float32(0), T.float32(LOG2_E), scale * T.float32(LOG2_E))
        for i, j, e in T.grid(PARTS, D // 8, 4):
            out[i, j, e] = T.float32(0)
        for i in T.unroll(PARTS):
            for h in T.unroll(2):
                # Above the score of a key that a query does not see: the exponential of such a score is 0.
                row_max[i, h] = T.float32(-1e37)
                row_sum[i, h] = T.float32(0)

        @T.inline
        def multiply_keys():
            for i, j, e in T.grid(PARTS, BN // 8, 4):
                scores[i, j, e] = T.float32(0)
            for step in T.unroll(D // 16):
                for i in T.unroll(PARTS):
                    row: T.let = row_of_warp + i * 16 + lane % 16
                    T.ptx.ldmatrix(False, 4, ".b16", Qs.ptr_to([row, at(row, step * 2 + lane // 16)]),
                                   *[rows_of_q.ptr_to([i, e]) for e in range(4)])
                for j in T.unroll(BN // 16):
                    key: T.let = j * 16 + lane // 16 * 8 + lane % 8
                    T.ptx.ldmatrix(False, 4, ".b16", Ks.ptr_to([key, at(key, step * 2 + lane // 8 % 2)]),
                                   *[columns.ptr_to([e // 2, e % 2]) for e in range(4)])
                    for i in T.unroll(PARTS):
                        for half in T.unroll(2):
                            T.ptx.mma("m16n8k16", "row", "col", "float32", dtype, dtype, "float32",
                                      [scores.ptr_to([i, j * 2 + half, e]) for e in range(4)], [rows_of_q.ptr_to([i, e]) for e in range(4)],
                                      [columns.ptr_to([half, e]) for e in range(2)],
                                      [scores.ptr_to([i, j * 2 + half, e]) for e in range(4)])

        @T.inline
        def multiply_values():
            for step in T.unroll(BN // 16):
                for j in T.unroll(D // 16):
                    key: T.let = step * 16 + lane % 16
                    T.ptx.ldmatrix(True, 4, ".b16", Vs.ptr_to([key, at(key, j * 2 + lane // 16)]),
                                   *[columns.ptr_to([e // 2, e % 2]) for e in range(4)])
                    for i in T.unroll(PARTS):
                        for half in T.unroll(2):
                            T.ptx.mma("m16n8k16", "row", "col", "float32", dtype, dtype, "float32",
                                      [out.ptr_to([i, j * 2 + half, e]) for e in range(4)],
                                      [probs.ptr_to([i, step * 2 + e // 2, e % 2 * 2]) for e in range(4)],
                                      [columns.ptr_to([half, e]) for e in range(2)],
                                      [out.ptr_to([i, j * 2 + half, e]) for e in range(4)])

        @T.inline
        def softmax(n):
            """Exponentials of the scores of keys from n on. Scores of keys that a query does not see are far below all others."""
            if cap > T.float32(0):
                # tanh(x) = 1 - 2 / (exp(2 x) + 1)
                double: T.let = scale / cap * T.float32(2 * LOG2_E)
                for i, j, e in T.grid(PARTS, BN // 8, 4):
                    scores[i, j, e] = cap - T.ptx.rcp(T.ptx.exp2(scores[i, j, e] * double) + T.float32(1)) * (cap + cap)
            lowest: T.let = m + row_of_warp + behind
            see_first: T.let = T.if_then_else(window > 0, lowest + (16 * PARTS - window), 0)
            see_last: T.let = T.if_then_else(causal != 0, T.min(keys, lowest + 1), keys)
            if n < see_first or n + BN > see_last:
                for i in T.unroll(PARTS):
                    for h in T.unroll(2):
                        query: T.let = lowest + i * 16 + h * 8 + lane // 4
                        end: T.let = T.if_then_else(causal != 0, T.min(keys, query + 1), keys) - n - lane % 4 * 2
                        begin: T.let = T.if_then_else(window > 0, query + 1 - window, 0) - n - lane % 4 * 2
                        for j in T.unroll(BN // 8):
                            for e in T.unroll(2):
                                scores[i, j, h * 2 + e] = T.Select(T.And(j * 8 + e < end, j * 8 + e >= begin),
                                                                   scores[i, j, h * 2 + e], T.float32(-1e38))
            for i in T.unroll(PARTS):
                for h in T.unroll(2):
                    top: T.float32 = row_max[i, h]
                    for j in T.unroll(BN // 8):
                        for e in T.unroll(2):
                            top = T.max(top, scores[i, j, h * 2 + e])
                    top = T.max(top, T.tvm_warp_shuffle_xor(0xFFFFFFFF, top, 1, 32, 32))
                    top = T.max(top, T.tvm_warp_shuffle_xor(0xFFFFFFFF, top, 2, 32, 32))
                    factor: T.let = T.ptx.exp2((row_max[i, h] - top) * to_log2)
                    shift: T.let = top * to_log2
                    row_max[i, h] = top
                    row_sum[i, h] = row_sum[i, h] * factor
                    for j in T.unroll(D // 8):
                        for e in T.unroll(2):
                            out[i, j, h * 2 + e] = out[i, j, h * 2 + e] * factor
                    for j in T.unroll(BN // 8):
                        for e in T.unroll(2):
                            scores[i, j, h * 2 + e] = T.ptx.exp2(scores[i, j, h * 2 + e] * to_log2 - shift)
                            row_sum[i, h] = row_sum[i, h] + scores[i, j, h * 2 + e]
                        for e in T.vectorized(2):
                            probs[i, j, h * 2 + e] = T.cast(scores[i, j, h * 2 + e], dtype)

        load(Qs, Q, head, BM, first_query, m, queries, HEAD)
        if tiles > 0:
            load(Ks, K, head_of_k, BN, first_key, first * BN, keys, HEAD)
        T.ptx.cp_async.commit_group()
        for tile in range(tiles):
            n: T.let = (first + tile) * BN
            T.ptx.cp_async.wait_group(0)
            T.cuda.cta_sync()
            load(Vs, V, head_of_k, BN, first_key, n, keys, HEAD_OF_V)
            T.ptx.cp_async.commit_group()
            multiply_keys()
            T.ptx.cp_async.wait_group(0)
            T.cuda.cta_sync()
            if tile + 1 < tiles:
                load(Ks, K, head_of_k, BN, first_key, n + BN, keys, HEAD)
            T.ptx.cp_async.commit_group()
            softmax(n)
            multiply_values()
        T.ptx.cp_async.wait_group(0)
        T.cuda.cta_sync()

        for i in T.unroll(PARTS):
            for h in T.unroll(2):
                sum: T.float32 = row_sum[i, h]
                sum = sum + T.tvm_warp_shuffle_xor(0xFFFFFFFF, sum, 1, 32, 32)
                sum = sum + T.tvm_warp_shuffle_xor(0xFFFFFFFF, sum, 2, 32, 32)
                part: T.let = T.if_then_else(sum == T.float32(0), T.float32(0), T.float32(1) / sum)
                row: T.let = row_of_warp + i * 16 + h * 8 + lane // 4
                if m + row < queries and lane % 4 == 0 and lse_queries > 0:
                    LSE[batch, head, first_query + m + row] = T.if_then_else(
                        sum == T.float32(0), T.float32("-inf"), row_max[i, h] * to_log2 / T.float32(LOG2_E) + T.log(sum))
                # The queries of a warp are its own: their shared memory takes its output.
                for j in T.unroll(CHUNKS):
                    for e in T.vectorized(2):
                        Qs[row, at(row, j) + lane % 4 * 2 + e] = T.cast(out[i, j, h * 2 + e] * part, dtype)
        T.cuda.warp_sync()
        for step in T.unroll(16 * PARTS * CHUNKS // 32):
            row: T.let = row_of_warp + step * 32 // CHUNKS + lane // CHUNKS
            chunk: T.let = lane % CHUNKS
            if m + row < queries and chunk * 8 < HEAD_OF_V:
                for e in T.vectorized(8):
                    O[batch, head, first_query + m + row, chunk * 8 + e] = Qs[row, at(row, chunk) + e]
