"""Attention for Hopper: O = softmax(scale Q K^T) V in 16 bits, without a matrix of scores in memory.

A block takes 64 queries for each of its warpgroups, of one head after the other, and goes through their keys in tiles; blocks of one
head read the same tiles at nearly the same time. One warp copies tiles, also those of the next queries. The product of the next scores
runs on the tensor cores while a warpgroup computes the exponentials of the present ones. If shared memory holds the next queries, too,
the product of their first scores runs while the output is stored.
Tiles have DQ columns of Q and K, and DV of V: a smaller head is filled with zeros by the copy engine.
"""

from __future__ import annotations

from tvm.backend.cuda.lang import Pipeline, PipelineState
from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode, mma_shared_layout
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import S, TileLayout, laneid, wid_in_wg

LOG2_E = 1.4426950408889634
SHARED = 227 * 1024


def accumulator(columns):
    """The registers of a warpgroup that hold 64 rows of an accumulator of wgmma, or of its operand A."""
    return TileLayout(S[(4, 2, 8, columns // 8, 4, 2) : (1 @ wid_in_wg, 2, 4 @ laneid, 4, 1 @ laneid, 1)])


@T.jit
def forward(q: T.handle, k: T.handle, v: T.handle, o: T.handle, lse: T.handle, offsets_of_q: T.handle, offsets_of_k: T.handle,
            scale: T.float32, causal: T.int32, window: T.int32, cap: T.float32, near: T.int32, blocks: T.int32, *, dtype: T.constexpr,
            DQ: T.constexpr, DV: T.constexpr = 0, WARPGROUPS: T.constexpr = 2, BN: T.constexpr = 0, ORDERED: T.constexpr = True,
            PLAIN: T.constexpr = False):
    """Q is `[batch, heads, queries, head]`, K and V have `heads / group` heads. With `causal` the last query sees all keys,
    and each query before one key less. `window` above 0 limits each query to its last `window` keys. With `cap` above 0, scores are
    `cap * tanh(scores / cap)`. `lse` is the logarithm of the sum of exponentials, unless it is empty. If the offsets are not
    empty, the batch is 1, and sequence i has the queries from `offsets_of_q[i]` to `offsets_of_q[i + 1]`, and its keys likewise.
    `near` heads are in work at a time, so that their keys stay in the L2 cache. DV is DQ if it is not given; BN is the keys of a tile.
    With ORDERED the warpgroups take turns on the tensor cores. A PLAIN kernel takes no window, no cap and no offsets: what they need in each
    step costs a tenth of the time."""
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
    DV = T.meta_var(DV if DV > 0 else DQ)
    BM = T.meta_var(64 * WARPGROUPS)
    BN = T.meta_var(BN if BN > 0 else 64 if DQ > 128 else 128)
    STAGES = T.meta_var(2)
    # The copy engine stores the output from shared memory; narrow heads are faster without it.
    STAGED = T.meta_var(DV > 64)
    # Shared memory for the next queries, and for the output. Without it the output takes the place of its queries.
    TILES = T.meta_var(STAGES * BN * (DQ + DV) * 2)
    AHEAD = T.meta_var(TILES + 2 * BM * DQ * 2 + (BM * DV * 2 if STAGED else 0) <= SHARED - 1024)
    ROUNDS = T.meta_var(2 if AHEAD else 1)
    # Without room for the next queries, each warpgroup hands back its own as early as it can.
    PARTS = T.meta_var(1 if AHEAD else WARPGROUPS)
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
    T.attr({"tirx.use_programtic_dependent_launch": True})
    T.ptx.griddepcontrol.launch_dependents()
    block = T.cta_id([blocks])
    group = T.warpgroup_id([WARPGROUPS + 1])
    warp = T.warp_id_in_wg([4])
    lane = T.lane_id([32])
    pool = T.SMEMPool()
    Qs = pool.alloc_tcgen05_mma_AB((ROUNDS * BM, DQ), dtype)
    Ks = pool.alloc_tcgen05_mma_AB((STAGES, BN, DQ), dtype)
    Vs = pool.alloc_tcgen05_mma_AB((STAGES, BN, DV), dtype)
    if STAGED and AHEAD:
        shape = (WARPGROUPS, DV // 64, 64, 64)
        Os = pool.alloc(shape, dtype, layout=mma_shared_layout(dtype, SwizzleMode.SWIZZLE_128B_ATOM, shape), align=1024)
    queries = Pipeline(pool, ROUNDS * PARTS, full="tma", empty="mbar", init_empty=WARPGROUPS // PARTS, empty_phase_offset=1)
    keys = Pipeline(pool, STAGES, full="tma", empty="mbar", init_empty=WARPGROUPS, empty_phase_offset=1)
    values = Pipeline(pool, STAGES, full="tma", empty="mbar", init_empty=WARPGROUPS, empty_phase_offset=1)
    pool.commit()
    T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    T.ptx.griddepcontrol.wait()
    packed: T.let = T.And(not PLAIN, OFFSETS > 1)
    windowed: T.let = T.And(not PLAIN, window > 0)
    down: T.let = T.if_then_else(packed, T.truncdiv(QUERIES, BM) + OFFSETS - 1, T.truncdiv(QUERIES + (BM - 1), BM))
    total: T.let = BATCH * HEADS * down
    ring = PipelineState(STAGES, 0)
    round = PipelineState(ROUNDS, 0)
    work: T.int32 = block
    m: T.int32 = 0
    batch: T.int32 = 0
    head: T.int32 = 0
    first: T.int32 = 0
    tiles: T.int32 = 0
    # Rows of this turn's sequence, and how many of them there are.
    first_query: T.int32 = 0
    queries_here: T.int32 = QUERIES
    first_key: T.int32 = 0
    keys_here: T.int32 = KEYS

    @T.inline
    def locate():
        """The queries of this turn. `near` heads come first, of these the last queries, which have the most keys under a causal mask.
        Each other bundle of heads goes the other way, so that a block's turns are long and short ones, and the last one ends with the short ones."""
        bundle: T.let = T.truncdiv(work, near * down)
        heads_here: T.let = T.min(near, BATCH * HEADS - bundle * near)
        within: T.let = work - bundle * (near * down)
        head_of_all: T.let = bundle * near + T.truncmod(within, heads_here)
        level: T.let = T.truncdiv(within, heads_here)
        upwards: T.let = T.truncmod(T.truncdiv(BATCH * HEADS - 1, near) - bundle, 2) == 1
        turn: T.let = T.if_then_else(upwards, level, down - 1 - level)
        m = turn * BM
        batch = T.truncdiv(head_of_all, HEADS)
        head = T.truncmod(head_of_all, HEADS)
        if packed:
            # Sequence i has the tiles from `offsets_of_q[i] / BM + i` on: never fewer than it needs, without a sum over the sequences before.
            low: T.int32 = 0
            high: T.int32 = OFFSETS - 1
            while low + 1 < high:
                middle: T.let = T.truncdiv(low + high, 2)
                if T.truncdiv(STARTS_OF_Q[middle], BM) + middle <= turn:
                    low = middle
                else:
                    high = middle
            m = (turn - low - T.truncdiv(STARTS_OF_Q[low], BM)) * BM
            first_query = T.min(T.max(STARTS_OF_Q[low], 0), QUERIES)
            queries_here = T.min(T.max(STARTS_OF_Q[low + 1], first_query), QUERIES) - first_query
            first_key = T.min(T.max(STARTS_OF_K[low], 0), KEYS)
            keys_here = T.min(T.max(STARTS_OF_K[low + 1], first_key), KEYS) - first_key
        behind: T.let = keys_here - queries_here
        first = T.if_then_else(windowed, T.truncdiv(T.max(m + behind + 1 - window, 0), BN), 0)
        most: T.let = T.if_then_else(causal != 0, T.max(T.min(keys_here, m + (BM + behind)), 0), keys_here)
        # At least one tile, if only of keys that nobody sees.
        tiles = T.max(T.truncdiv(most + (BN - 1), BN) - first, 1)

    @T.inline
    def seek():
        """The next turn with queries, from `work` on: a sequence may leave its last tile empty."""
        empty: T.bool = True
        while empty and work < total:
            locate()
            empty = T.Or(m < 0, m >= queries_here)
            if empty:
                work += blocks

    seek()
    if group == 0:
        T.ptx.setmaxnreg(False, 24 if WARPGROUPS == 2 else 32)
        if warp == 0:
            if T.ptx.elect_sync():
                while work < total:
                    head_of_k: T.let = T.truncdiv(head, T.truncdiv(HEADS, HEADS_OF_K))
                    row_of_q: T.let = first_query + m
                    for tile in range(tiles):
                        n: T.let = first_key + (first + tile) * BN
                        keys.empty.wait(ring.stage, ring.phase)
                        keys.full.arrive(ring.stage, BN * DQ * 2)
                        Tx.copy_async(Ks[ring.stage], K[batch, head_of_k, n : n + BN, 0:DQ], mbar=keys.full.ptr_to([ring.stage]))
                        if tile == 0:
                            # Behind the first keys, which do not wait for the warpgroups to be done with the queries before.
                            for part in T.unroll(PARTS):
                                slot: T.let = round.stage * PARTS + part
                                begin: T.let = part * (BM // PARTS)
                                to: T.let = round.stage * BM + begin
                                queries.empty.wait(slot, round.phase)
                                queries.full.arrive(slot, BM // PARTS * DQ * 2)
                                Tx.copy_async(Qs[to : to + BM // PARTS, :],
                                              Q[batch, head, row_of_q + begin : row_of_q + begin + BM // PARTS, 0:DQ],
                                              mbar=queries.full.ptr_to([slot]))
                        values.empty.wait(ring.stage, ring.phase)
                        values.full.arrive(ring.stage, BN * DV * 2)
                        Tx.copy_async(Vs[ring.stage], V[batch, head_of_k, n : n + BN, 0:DV], mbar=values.full.ptr_to([ring.stage]))
                        ring.advance()
                    round.advance()
                    work += blocks
                    seek()
    else:
        T.ptx.setmaxnreg(True, 240 if WARPGROUPS == 2 else 160)
        row: T.let = (group - 1) * 64
        after: T.let = T.truncmod(group, WARPGROUPS) + 1
        scores = T.alloc_local((64, BN), "float32", layout=accumulator(BN))
        probs = T.alloc_local((64, BN), dtype, layout=accumulator(BN))
        acc = T.alloc_local((64, DV), "float32", layout=accumulator(DV))
        score = scores.local(BN // 2)
        out = acc.local(DV // 2)
        row_max = T.alloc_local((2,), "float32")
        row_sum = T.alloc_local((2,), "float32")
        factor = T.alloc_local((2,), "float32")
        before = PipelineState(STAGES, 0)
        to_log2: T.let = T.if_then_else(T.And(not PLAIN, cap > T.float32(0)), T.float32(LOG2_E), scale * T.float32(LOG2_E))

        @T.inline
        def softmax(n, masked):
            """Exponentials of the scores of keys from n on. Scores of keys that a query does not see are far below all others."""
            if not PLAIN:
                if cap > T.float32(0):
                    # tanh(x) = 1 - 2 / (exp(2 x) + 1)
                    double: T.let = scale / cap * T.float32(2 * LOG2_E)
                    for i in T.unroll(BN // 2):
                        score[i] = cap - T.ptx.rcp(T.ptx.exp2(score[i] * double) + T.float32(1)) * (cap + cap)
            for h in T.unroll(2):
                if masked:
                    query: T.let = m + row + warp * 16 + lane // 4 + h * 8 + keys_here - queries_here
                    end: T.let = T.if_then_else(causal != 0, T.min(keys_here, query + 1), keys_here) - n - lane % 4 * 2
                    begin: T.let = T.if_then_else(windowed, query + 1 - window, 0) - n - lane % 4 * 2
                    for j in T.unroll(BN // 8):
                        for e in T.unroll(2):
                            score[j * 4 + h * 2 + e] = T.Select(T.And(j * 8 + e < end, j * 8 + e >= begin),
                                                                score[j * 4 + h * 2 + e], T.float32(-1e38))
                top: T.float32 = row_max[h]
                for j in T.unroll(BN // 8):
                    for e in T.unroll(2):
                        top = T.max(top, score[j * 4 + h * 2 + e])
                top = T.max(top, T.tvm_warp_shuffle_xor(0xFFFFFFFF, top, 1, 32, 32))
                top = T.max(top, T.tvm_warp_shuffle_xor(0xFFFFFFFF, top, 2, 32, 32))
                factor[h] = T.ptx.exp2((row_max[h] - top) * to_log2)
                row_max[h] = top
                shift: T.let = top * to_log2
                row_sum[h] = row_sum[h] * factor[h]
                for j in T.unroll(BN // 8):
                    for e in T.unroll(2):
                        score[j * 4 + h * 2 + e] = T.ptx.exp2(score[j * 4 + h * 2 + e] * to_log2 - shift)
                        row_sum[h] = row_sum[h] + score[j * 4 + h * 2 + e]

        @T.inline
        def multiply_stages(of_queries, of_keys):
            Tx.wg.gemm_async(scores, Qs[of_queries * BM + row : of_queries * BM + row + 64, :], Ks[of_keys])

        @T.inline
        def multiply_keys():
            multiply_stages(round.stage, ring.stage)
            T.ptx.wgmma.commit_group()

        @T.inline
        def multiply_values():
            Tx.wg.gemm_async(acc, probs, Vs[before.stage], transB=True, accum=True)
            T.ptx.wgmma.commit_group()

        @T.inline
        def begin_turn():
            if ORDERED:
                T.ptx.bar.sync(group, 256)

        @T.inline
        def end_turn():
            if ORDERED:
                T.ptx.bar.arrive(after, 256)

        @T.inline
        def free(pipeline, stage):
            if warp == 0 and lane == 0:
                pipeline.empty.arrive(stage)

        @T.inline
        def begin_queries():
            """The first scores of the next queries, when it is this warpgroup's turn."""
            queries.full.wait(round.stage * PARTS + (group - 1 if PARTS > 1 else 0), round.phase)
            keys.full.wait(ring.stage, ring.phase)
            begin_turn()
            multiply_keys()
            end_turn()

        @T.inline
        def step(tile, masked):
            keys.full.wait(ring.stage, ring.phase)
            begin_turn()
            multiply_keys()
            values.full.wait(before.stage, before.phase)
            multiply_values()
            end_turn()
            T.ptx.wgmma.wait_group(1)
            free(keys, ring.stage)
            ring.advance()
            softmax((first + tile) * BN, masked)
            T.ptx.wgmma.wait_group(0)
            free(values, before.stage)
            before.advance()
            for j in T.unroll(DV // 8):
                for h in T.unroll(2):
                    for e in T.unroll(2):
                        out[j * 4 + h * 2 + e] = out[j * 4 + h * 2 + e] * factor[h]
            Tx.wg.cast(probs, scores)

        @T.inline
        def store_by_threads(batch, head, query_of_warp, end, first_query):
            for h in T.unroll(2):
                query: T.let = query_of_warp + lane // 4 + h * 8
                if query < end:
                    for j in T.unroll(DV // 8):
                        if j * 8 < HEAD_OF_V:
                            for e in T.vectorized(2):
                                O[batch, head, first_query + query, j * 8 + lane % 4 * 2 + e] = T.cast(out[j * 4 + h * 2 + e], dtype)

        if ORDERED and group == WARPGROUPS:
            T.ptx.bar.arrive(1, 256)
        if work < total:
            if AHEAD:
                begin_queries()
            while work < total:
                for h in T.unroll(2):
                    # Above the score of a key that a query does not see: the exponential of such a score is 0.
                    row_max[h] = T.float32(-1e37)
                    row_sum[h] = T.float32(0)
                if not AHEAD:
                    begin_queries()
                # Tiles that all queries of the warpgroup see as a whole need no mask.
                lowest: T.let = m + row + keys_here - queries_here
                all_see: T.let = T.if_then_else(causal != 0, T.max(T.min(keys_here, lowest + 1), 0), keys_here)
                hidden: T.let = T.if_then_else(windowed, T.max(lowest + 64 - window, 0), 0)
                part: T.let = T.min(T.max(T.truncdiv(hidden + (BN - 1), BN) - first, 1), tiles)
                seen: T.let = T.min(T.max(T.truncdiv(all_see, BN) - first, part), tiles)
                T.ptx.wgmma.wait_group(0)
                free(keys, ring.stage)
                ring.advance()
                if T.And(all_see >= first * BN + BN, hidden <= first * BN):
                    softmax(first * BN, False)
                else:
                    softmax(first * BN, True)
                Tx.wg.zero(acc)
                Tx.wg.cast(probs, scores)
                for tile in range(1, part):
                    step(tile, True)
                for tile in range(part, seen):
                    step(tile, False)
                for tile in range(seen, tiles):
                    step(tile, True)
                batch_now: T.let = batch
                head_now: T.let = head
                query_of_warp: T.let = m + row + warp * 16
                whole: T.let = T.Or(T.Not(packed), m + row + 64 <= queries_here)
                query_of_all: T.let = first_query + m + row
                end: T.let = queries_here
                first_query_now: T.let = first_query
                queries_before: T.let = round.stage
                if AHEAD:
                    free(queries, round.stage)
                    round.advance()
                work += blocks
                seek()
                values.full.wait(before.stage, before.phase)
                if AHEAD:
                    more: T.let = work < total
                    if more:
                        queries.full.wait(round.stage, round.phase)
                        keys.full.wait(ring.stage, ring.phase)
                        begin_turn()
                    multiply_values()
                    # nvcc would wait for the values if this product had a condition. Behind the last queries, scores are computed again.
                    multiply_stages(T.if_then_else(more, round.stage, queries_before),
                                    T.if_then_else(more, ring.stage, STAGES - 1 - ring.stage))
                    if more:
                        end_turn()
                    T.ptx.wgmma.commit_group()
                    T.ptx.wgmma.wait_group(1)
                else:
                    multiply_values()
                    T.ptx.wgmma.wait_group(0)
                free(values, before.stage)
                before.advance()
                for h in T.unroll(2):
                    sum: T.float32 = row_sum[h]
                    sum = sum + T.tvm_warp_shuffle_xor(0xFFFFFFFF, sum, 1, 32, 32)
                    sum = sum + T.tvm_warp_shuffle_xor(0xFFFFFFFF, sum, 2, 32, 32)
                    factor[h] = T.if_then_else(sum == T.float32(0), T.float32(0), T.float32(1) / sum)
                    query: T.let = query_of_warp + lane // 4 + h * 8
                    if query < end and lane % 4 == 0 and lse_queries > 0:
                        LSE[batch_now, head_now, first_query_now + query] = T.if_then_else(
                            sum == T.float32(0), T.float32("-inf"), row_max[h] * (to_log2 * T.float32(1 / LOG2_E)) + T.log(sum))
                    for j in T.unroll(DV // 8):
                        for e in T.unroll(2):
                            out[j * 4 + h * 2 + e] = out[j * 4 + h * 2 + e] * factor[h]
                if STAGED:
                    if AHEAD:
                        if warp == 0 and lane == 0:
                            T.ptx.cp_async.bulk.wait_group(0, True)
                        T.cuda.warpgroup_sync(8 + group)
                    if whole:
                        rounded = T.alloc_local((64, DV), dtype, layout=accumulator(DV))
                        Tx.wg.cast(rounded, acc)
                        for j in T.unroll(DV // 64):
                            if AHEAD:
                                Tx.wg.copy(Os[group - 1, j], rounded[:, j * 64 : j * 64 + 64])
                            else:
                                Tx.wg.copy(Qs[row : row + 64, j * 64 : j * 64 + 64], rounded[:, j * 64 : j * 64 + 64])
                        T.ptx.fence.proxy_async("shared::cta")
                        T.cuda.warpgroup_sync(8 + group)
                        if warp == 0 and lane == 0:
                            for j in T.unroll(DV // 64):
                                if AHEAD:
                                    Tx.copy_async(O[batch_now, head_now, query_of_all : query_of_all + 64, j * 64 : j * 64 + 64], Os[group - 1, j])
                                else:
                                    Tx.copy_async(O[batch_now, head_now, query_of_all : query_of_all + 64, j * 64 : j * 64 + 64],
                                                  Qs[row : row + 64, j * 64 : j * 64 + 64])
                            T.ptx.cp_async.bulk.commit_group()
                            if not AHEAD:
                                T.ptx.cp_async.bulk.wait_group(0, True)
                    else:
                        store_by_threads(batch_now, head_now, query_of_warp, end, first_query_now)
                else:
                    store_by_threads(batch_now, head_now, query_of_warp, end, first_query_now)
                if not AHEAD:
                    free(queries, group - 1)
                    round.advance()
            T.ptx.wgmma.wait_group(0)
        if ORDERED and group == 1:
            T.ptx.bar.sync(1, 256)
        if STAGED and warp == 0 and lane == 0:
            T.ptx.cp_async.bulk.wait_group(0, False)
