"""Gradients of attention by `mma.sync` for every GPU from sm_80 on: dK and dV, and the sums of dQ."""

from __future__ import annotations

from tvm.script import tirx as T

LOG2_E = 1.4426950408889634


@T.jit
def backward(q: T.handle, k: T.handle, v: T.handle, d_o: T.handle, stats: T.handle, dq_sums: T.handle, dk: T.handle, dv: T.handle,
             offsets_of_q: T.handle, offsets_of_k: T.handle, scale: T.float32, causal: T.int32, window: T.int32, cap: T.float32,
             blocks: T.int32, *, dtype: T.constexpr, D: T.constexpr):
    """A block of 4 warps takes 64 keys of one head of K, 16 for each warp, and goes through the queries of all heads of its group in tiles
    of 64. With the transposes of the scores, a warp holds its rows of dK and dV in registers, and weights and gradients of scores are
    operands from registers, too. For dQ the gradients of scores of all warps meet in shared memory.

    Masks, offsets and `cap` are those of the forward pass. Tiles have D columns: a smaller head is filled with zeros."""
    BATCH, HEADS, HEADS_OF_K, QUERIES, KEYS, HEAD, HEAD_OF_V = (T.int32() for _ in range(7))
    q_batch, q_head, q_row, k_batch, k_head, k_row = (T.int64() for _ in range(6))
    v_batch, v_head, v_row, o_batch, o_head, o_row = (T.int64() for _ in range(6))
    dk_batch, dk_head, dk_row, dv_batch, dv_head, dv_row = (T.int64() for _ in range(6))
    s_part, s_batch, s_head = (T.int64() for _ in range(3))
    Q = T.match_buffer(q, (BATCH, HEADS, QUERIES, HEAD), dtype, strides=(q_batch, q_head, q_row, 1))
    K = T.match_buffer(k, (BATCH, HEADS_OF_K, KEYS, HEAD), dtype, strides=(k_batch, k_head, k_row, 1))
    V = T.match_buffer(v, (BATCH, HEADS_OF_K, KEYS, HEAD_OF_V), dtype, strides=(v_batch, v_head, v_row, 1))
    DO = T.match_buffer(d_o, (BATCH, HEADS, QUERIES, HEAD_OF_V), dtype, strides=(o_batch, o_head, o_row, 1))
    STATS = T.match_buffer(stats, (2, BATCH, HEADS, QUERIES), "float32", strides=(s_part, s_batch, s_head, 1))
    SUMS = T.match_buffer(dq_sums, (BATCH, HEADS, QUERIES, HEAD), "float32")
    DK = T.match_buffer(dk, (BATCH, HEADS_OF_K, KEYS, HEAD), dtype, strides=(dk_batch, dk_head, dk_row, 1))
    DV = T.match_buffer(dv, (BATCH, HEADS_OF_K, KEYS, HEAD_OF_V), dtype, strides=(dv_batch, dv_head, dv_row, 1))
    OFFSETS = T.int32()
    STARTS_OF_Q = T.match_buffer(offsets_of_q, (OFFSETS,), "int32")
    STARTS_OF_K = T.match_buffer(offsets_of_k, (OFFSETS,), "int32")
    BM, BN, CHUNKS = T.meta_var(64), T.meta_var(64), T.meta_var(D // 8)
    T.device_entry()
    block = T.cta_id([blocks])
    tid = T.thread_id([128])
    warp: T.let = tid // 32
    lane: T.let = tid % 32
    pool = T.SMEMPool()
    Ks = pool.alloc((BN, D), dtype, align=16)
    Vs = pool.alloc((BN, D), dtype, align=16)
    Qs = pool.alloc((BM, D), dtype, align=16)
    DOs = pool.alloc((BM, D), dtype, align=16)
    DSs = pool.alloc((BN, BM), dtype, align=16)
    logarithms = pool.alloc((BM,), "float32", align=16)
    deltas = pool.alloc((BM,), "float32", align=16)
    pool.commit()

    packed: T.let = OFFSETS > 1
    across: T.let = T.if_then_else(packed, T.truncdiv(KEYS, BN) + OFFSETS - 1, T.truncdiv(KEYS + (BN - 1), BN))
    turn: T.let = T.truncmod(block, across)
    head_of_all: T.let = T.truncdiv(block, across)
    batch: T.let = T.truncdiv(head_of_all, HEADS_OF_K)
    head_of_k: T.let = T.truncmod(head_of_all, HEADS_OF_K)
    heads_here: T.let = T.truncdiv(HEADS, HEADS_OF_K)
    n: T.int32 = turn * BN
    first_query: T.int32 = 0
    queries_here: T.int32 = QUERIES
    first_key: T.int32 = 0
    keys_here: T.int32 = KEYS
    if packed:
        # Sequence i has the tiles from `offsets_of_k[i] / BN + i` on: never fewer than it needs, without a sum over the sequences before.
        low: T.int32 = 0
        high: T.int32 = OFFSETS - 1
        while low + 1 < high:
            middle: T.let = T.truncdiv(low + high, 2)
            if T.truncdiv(STARTS_OF_K[middle], BN) + middle <= turn:
                low = middle
            else:
                high = middle
        n = (turn - low - T.truncdiv(STARTS_OF_K[low], BN)) * BN
        first_query = T.min(T.max(STARTS_OF_Q[low], 0), QUERIES)
        queries_here = T.min(T.max(STARTS_OF_Q[low + 1], first_query), QUERIES) - first_query
        first_key = T.min(T.max(STARTS_OF_K[low], 0), KEYS)
        keys_here = T.min(T.max(STARTS_OF_K[low + 1], first_key), KEYS) - first_key
    behind: T.let = keys_here - queries_here
    # The queries that see one of these keys.
    begin_of_q: T.let = T.if_then_else(causal != 0, T.max(n - behind, 0), 0)
    end_of_q: T.let = T.if_then_else(window > 0, T.min(n + (BN - 1) - behind + window, queries_here), queries_here)
    first: T.let = T.truncdiv(begin_of_q, BM)
    tiles: T.let = T.max(T.truncdiv(end_of_q + (BM - 1), BM) - first, 0)

    def at(row, chunk):
        """The first element of 8 in a row of shared memory: eight rows have the same chunk in different banks."""
        return T.bitwise_xor(chunk, row % 8) * 8

    @T.inline
    def load(to, source, head_of_source, begin, row_of_tile, limit, width):
        for step in T.unroll(64 * CHUNKS // 128):
            row: T.let = step * (128 // CHUNKS) + tid // CHUNKS
            chunk: T.let = tid % CHUNKS
            inside: T.let = row_of_tile + row < limit and chunk * 8 < width
            T.ptx.cp_async(to.ptr_to([row, at(row, chunk)]),
                           source.ptr_to([batch, head_of_source, T.if_then_else(inside, begin + row_of_tile + row, 0),
                                          T.if_then_else(inside, chunk * 8, 0)]),
                           16, predicate=T.cast(inside, "int32"), fill_mode="zero")

    if n >= 0 and n < keys_here:
        scores = T.alloc_local((BM // 8, 4), "float32")
        d_probs = T.alloc_local((BM // 8, 4), "float32")
        probs = T.alloc_local((BM // 8, 4), dtype)
        out_k = T.alloc_local((D // 8, 4), "float32")
        out_v = T.alloc_local((D // 8, 4), "float32")
        out_q = T.alloc_local((D // 8, 4), "float32")
        rows = T.alloc_local((4,), "uint32")
        columns = T.alloc_local((2, 2), "uint32")
        row_of_warp: T.let = warp * 16
        to_log2: T.let = scale * T.float32(LOG2_E)
        for j, e in T.grid(D // 8, 4):
            out_k[j, e] = T.float32(0)
            out_v[j, e] = T.float32(0)

        @T.inline
        def multiply(to, j, half, a):
            T.ptx.mma("m16n8k16", "row", "col", "float32", dtype, dtype, "float32", [to.ptr_to([j * 2 + half, e]) for e in range(4)], a,
                      [columns.ptr_to([half, e]) for e in range(2)], [to.ptr_to([j * 2 + half, e]) for e in range(4)])

        @T.inline
        def multiply_rows(to, A, B):
            """`to` = A B^T for the rows of this warp in A, and all rows of B: both are contiguous along their columns."""
            for j, e in T.grid(BM // 8, 4):
                to[j, e] = T.float32(0)
            for step in T.unroll(D // 16):
                key: T.let = row_of_warp + lane % 16
                T.ptx.ldmatrix(False, 4, ".b16", A.ptr_to([key, at(key, step * 2 + lane // 16)]), *[rows.ptr_to([e]) for e in range(4)])
                for j in T.unroll(BM // 16):
                    row: T.let = j * 16 + lane // 16 * 8 + lane % 8
                    T.ptx.ldmatrix(False, 4, ".b16", B.ptr_to([row, at(row, step * 2 + lane // 8 % 2)]),
                                   *[columns.ptr_to([e // 2, e % 2]) for e in range(4)])
                    for half in T.unroll(2):
                        multiply(to, j, half, [rows.ptr_to([e]) for e in range(4)])

        @T.inline
        def add_products(to, B):
            """`to` += probs B: the columns of the weights are the rows of B."""
            for step in T.unroll(BM // 16):
                for j in T.unroll(D // 16):
                    row: T.let = step * 16 + lane % 16
                    T.ptx.ldmatrix(True, 4, ".b16", B.ptr_to([row, at(row, j * 2 + lane // 16)]),
                                   *[columns.ptr_to([e // 2, e % 2]) for e in range(4)])
                    for half in T.unroll(2):
                        multiply(to, j, half, [probs.ptr_to([step * 2 + e // 2, e % 2 * 2]) for e in range(4)])

        @T.inline
        def weights(m):
            """The probabilities of the transposed scores of queries from m on."""
            if cap > T.float32(0):
                # tanh(x) = 1 - 2 / (exp(2 x) + 1)
                double: T.let = scale / cap * T.float32(2 * LOG2_E)
                for j, e in T.grid(BM // 8, 4):
                    scores[j, e] = (cap - T.ptx.rcp(T.ptx.exp2(scores[j, e] * double) + T.float32(1)) * (cap + cap)) * T.float32(LOG2_E)
            else:
                for j, e in T.grid(BM // 8, 4):
                    scores[j, e] = scores[j, e] * to_log2
            for j in T.unroll(BM // 8):
                for e in T.unroll(2):
                    logarithm: T.let = logarithms[j * 8 + lane % 4 * 2 + e]
                    for h in T.unroll(2):
                        scores[j, h * 2 + e] = T.ptx.exp2(scores[j, h * 2 + e] - logarithm)
            lowest: T.let = n + row_of_warp
            if lowest + 16 > keys_here or m + BM > queries_here or (causal != 0 and lowest + 15 > m + behind) or (
                    window > 0 and lowest + window < m + BM + behind):
                for h in T.unroll(2):
                    key: T.let = lowest + lane // 4 + h * 8
                    begin: T.let = T.if_then_else(causal != 0, key - behind, 0) - m - lane % 4 * 2
                    last: T.let = T.if_then_else(window > 0, T.min(key - behind + window, queries_here), queries_here)
                    end: T.let = T.if_then_else(key < keys_here, last, 0) - m - lane % 4 * 2
                    for j in T.unroll(BM // 8):
                        for e in T.unroll(2):
                            scores[j, h * 2 + e] = T.Select(T.And(j * 8 + e < end, j * 8 + e >= begin), scores[j, h * 2 + e], T.float32(0))
            for j in T.unroll(BM // 8):
                for h in T.unroll(2):
                    for e in T.vectorized(2):
                        probs[j, h * 2 + e] = T.cast(scores[j, h * 2 + e], dtype)

        @T.inline
        def gradients_of_scores():
            for j in T.unroll(BM // 8):
                for e in T.unroll(2):
                    delta: T.let = deltas[j * 8 + lane % 4 * 2 + e]
                    logarithm: T.let = logarithms[j * 8 + lane % 4 * 2 + e]
                    for h in T.unroll(2):
                        weight: T.let = scores[j, h * 2 + e]
                        d_probs[j, h * 2 + e] = weight * (d_probs[j, h * 2 + e] - delta)
                        if cap > T.float32(0):
                            # The derivative of tanh is 1 - tanh^2, and the logarithm of a weight gives its tanh back.
                            bounded: T.let = (T.log2(T.max(weight, T.float32(1e-37))) + logarithm) / (cap * T.float32(LOG2_E))
                            d_probs[j, h * 2 + e] = T.Select(weight != T.float32(0),
                                                             d_probs[j, h * 2 + e] * (T.float32(1) - bounded * bounded), T.float32(0))
            for j in T.unroll(BM // 8):
                for h in T.unroll(2):
                    row: T.let = row_of_warp + lane // 4 + h * 8
                    for e in T.vectorized(2):
                        probs[j, h * 2 + e] = T.cast(d_probs[j, h * 2 + e], dtype)
                    for e in T.vectorized(2):
                        DSs[row, at(row, j) + lane % 4 * 2 + e] = probs[j, h * 2 + e]

        @T.inline
        def multiply_gradients():
            """dQ of 16 queries for each warp: gradients of scores, transposed back, times K."""
            for j, e in T.grid(D // 8, 4):
                out_q[j, e] = T.float32(0)
            for step in T.unroll(BN // 16):
                key: T.let = step * 16 + lane // 16 * 8 + lane % 8
                T.ptx.ldmatrix(True, 4, ".b16", DSs.ptr_to([key, at(key, warp * 2 + lane // 8 % 2)]), *[rows.ptr_to([e]) for e in range(4)])
                for j in T.unroll(D // 16):
                    row: T.let = step * 16 + lane % 16
                    T.ptx.ldmatrix(True, 4, ".b16", Ks.ptr_to([row, at(row, j * 2 + lane // 16)]),
                                   *[columns.ptr_to([e // 2, e % 2]) for e in range(4)])
                    for half in T.unroll(2):
                        multiply(out_q, j, half, [rows.ptr_to([e]) for e in range(4)])

        load(Ks, K, head_of_k, first_key, n, keys_here, HEAD)
        load(Vs, V, head_of_k, first_key, n, keys_here, HEAD_OF_V)
        T.ptx.cp_async.commit_group()
        for turn_of_q in range(heads_here * tiles):
            head: T.let = head_of_k * heads_here + T.truncdiv(turn_of_q, tiles)
            m: T.let = (first + T.truncmod(turn_of_q, tiles)) * BM
            load(Qs, Q, head, first_query, m, queries_here, HEAD)
            T.ptx.cp_async.commit_group()
            load(DOs, DO, head, first_query, m, queries_here, HEAD_OF_V)
            T.ptx.cp_async.commit_group()
            if tid < BM:
                inside: T.let = m + tid < queries_here
                row: T.let = T.if_then_else(inside, first_query + m + tid, 0)
                logarithms[tid] = T.if_then_else(inside, STATS[0, batch, head, row], T.float32(0))
                deltas[tid] = T.if_then_else(inside, STATS[1, batch, head, row], T.float32(0))
            T.ptx.cp_async.wait_group(1)
            T.cuda.cta_sync()
            multiply_rows(scores, Ks, Qs)
            weights(m)
            T.ptx.cp_async.wait_group(0)
            T.cuda.cta_sync()
            add_products(out_v, DOs)
            multiply_rows(d_probs, Vs, DOs)
            gradients_of_scores()
            add_products(out_k, Qs)
            T.cuda.cta_sync()
            multiply_gradients()
            for h in T.unroll(2):
                query: T.let = m + row_of_warp + lane // 4 + h * 8
                if query < queries_here:
                    for j in T.unroll(D // 8):
                        if j * 8 < HEAD:
                            for e in T.unroll(2):
                                T.cuda.atomic_add(SUMS.ptr_to([batch, head, first_query + query, j * 8 + lane % 4 * 2 + e]), out_q[j, h * 2 + e])
            # Behind the last reads of the tile: the next one takes its place.
            T.cuda.cta_sync()
        T.ptx.cp_async.wait_group(0)

        for h in T.unroll(2):
            key: T.let = n + row_of_warp + lane // 4 + h * 8
            if key < keys_here:
                for j in T.unroll(D // 8):
                    if j * 8 < HEAD:
                        for e in T.vectorized(2):
                            DK[batch, head_of_k, first_key + key, j * 8 + lane % 4 * 2 + e] = T.cast(out_k[j, h * 2 + e] * scale, dtype)
                    if j * 8 < HEAD_OF_V:
                        for e in T.vectorized(2):
                            DV[batch, head_of_k, first_key + key, j * 8 + lane % 4 * 2 + e] = T.cast(out_v[j, h * 2 + e], dtype)
