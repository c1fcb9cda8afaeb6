"""Gradients of attention for Hopper: dK and dV, and the sums of dQ."""

from __future__ import annotations

from tvm.backend.cuda.lang import Pipeline, PipelineState
from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode, mma_shared_layout
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import S, TileLayout, laneid, wid_in_wg

LOG2_E = 1.4426950408889634


def accumulator(columns):
    """The registers of a warpgroup that hold 64 rows of an accumulator of wgmma, or of its operand A."""
    return TileLayout(S[(4, 2, 8, columns // 8, 4, 2) : (1 @ wid_in_wg, 2, 4 @ laneid, 4, 1 @ laneid, 1)])


@T.jit
def backward(q: T.handle, k: T.handle, v: T.handle, d_o: T.handle, stats: T.handle, dq_sums: T.handle, dk: T.handle, dv: T.handle,
             offsets_of_q: T.handle, offsets_of_k: T.handle, scale: T.float32, causal: T.int32, window: T.int32, cap: T.float32,
             blocks: T.int32, *, dtype: T.constexpr, D: T.constexpr):
    """A block takes 128 keys of one head of K, 64 for each of two warpgroups, and goes through the queries of all heads of its group. With
    the transposes of the scores, a warpgroup holds its rows of dK and dV in registers, and weights and gradients of scores are operands
    from registers, too. The product of the gradients of scores with K needs those of both warpgroups: they meet in shared memory.

    Masks, offsets and `cap` are those of the forward pass. Tiles have D columns: a smaller head is filled with zeros by the copy engine."""
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
    # More queries in a tile would leave no registers for the next scores.
    BM, BN, STAGES = T.meta_var(64), T.meta_var(128), T.meta_var(2)
    # The part of dQ that a warpgroup computes: its half of the columns.
    COLUMNS = T.meta_var(D // 2)
    # Registers for the next scores while the last products run.
    EARLY = T.meta_var(D <= 64)
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
    block = T.cta_id([blocks])
    group = T.warpgroup_id([3])
    warp = T.warp_id_in_wg([4])
    lane = T.lane_id([32])
    pool = T.SMEMPool()
    Ks = pool.alloc_tcgen05_mma_AB((BN, D), dtype)
    Vs = pool.alloc_tcgen05_mma_AB((BN, D), dtype)
    Qs = pool.alloc_tcgen05_mma_AB((STAGES, BM, D), dtype)
    DOs = pool.alloc_tcgen05_mma_AB((STAGES, BM, D), dtype)
    # Gradients of scores, for two tiles in turn: a warpgroup may still read those of the tile before.
    DSs = pool.alloc_tcgen05_mma_AB((2 * BN, BM), dtype)
    # A warpgroup's part of dQ, 128 bytes of each row at a time.
    CHUNK = T.meta_var(32)
    DQs = pool.alloc((2, COLUMNS // CHUNK, BM, CHUNK), "float32", align=1024,
                     layout=mma_shared_layout("float32", SwizzleMode.SWIZZLE_128B_ATOM, (2, COLUMNS // CHUNK, BM, CHUNK)))
    # Copies begin at multiples of four numbers: up to three of them belong to queries before the tile.
    logarithms = pool.alloc((STAGES, BM + 32), "float32", align=128)
    deltas = pool.alloc((STAGES, BM + 32), "float32", align=128)
    of_keys = Pipeline(pool, 1, full="tma", empty="mbar", init_empty=1, empty_phase_offset=1)
    queries = Pipeline(pool, STAGES, full="tma", empty="mbar", init_empty=2, empty_phase_offset=1)
    gradients = Pipeline(pool, STAGES, full="tma", empty="mbar", init_empty=2, empty_phase_offset=1)
    pool.commit()
    T.ptx.fence.mbarrier_init.release.cluster()
    T.cuda.cta_sync()

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
    skew: T.let = first_query % 4
    # The queries that see one of these keys.
    begin_of_q: T.let = T.if_then_else(causal != 0, T.max(n - behind, 0), 0)
    end_of_q: T.let = T.if_then_else(window > 0, T.min(n + (BN - 1) - behind + window, queries_here), queries_here)
    first: T.let = T.truncdiv(begin_of_q, BM)
    tiles: T.let = T.max(T.truncdiv(end_of_q + (BM - 1), BM) - first, 0)

    if n >= 0 and n < keys_here:
        ring = PipelineState(STAGES, 0)
        if group == 0:
            T.ptx.setmaxnreg.dec.sync.aligned.u32(24)
            if warp == 0:
                if T.cuda.elect_sync():
                    row_of_k: T.let = first_key + n
                    of_keys.full.arrive(0, BN * D * 4)
                    Tx.copy_async(Ks, K[batch, head_of_k, row_of_k : row_of_k + BN, 0:D], mbar=of_keys.full.ptr_to([0]))
                    Tx.copy_async(Vs, V[batch, head_of_k, row_of_k : row_of_k + BN, 0:D], mbar=of_keys.full.ptr_to([0]))
                    for member in range(heads_here):
                        head: T.let = head_of_k * heads_here + member
                        for tile in range(tiles):
                            m: T.let = first_query + (first + tile) * BM
                            queries.empty.wait(ring.stage, ring.phase)
                            queries.full.arrive(ring.stage, BM * D * 2 + (BM + 4) * 4)
                            Tx.copy_async(Qs[ring.stage], Q[batch, head, m : m + BM, 0:D], mbar=queries.full.ptr_to([ring.stage]))
                            Tx.copy_async(logarithms[ring.stage, 0 : BM + 4], STATS[0, batch, head, m - skew : m - skew + BM + 4],
                                          mbar=queries.full.ptr_to([ring.stage]))
                            gradients.empty.wait(ring.stage, ring.phase)
                            gradients.full.arrive(ring.stage, BM * D * 2 + (BM + 4) * 4)
                            Tx.copy_async(DOs[ring.stage], DO[batch, head, m : m + BM, 0:D], mbar=gradients.full.ptr_to([ring.stage]))
                            Tx.copy_async(deltas[ring.stage, 0 : BM + 4], STATS[1, batch, head, m - skew : m - skew + BM + 4],
                                          mbar=gradients.full.ptr_to([ring.stage]))
                            ring.advance()
        else:
            T.ptx.setmaxnreg.inc.sync.aligned.u32(240)
            row: T.let = (group - 1) * 64
            column: T.let = (group - 1) * COLUMNS
            buffer: T.int32 = 0
            scores = T.alloc_local((64, BM), "float32", layout=accumulator(BM))
            d_probs = T.alloc_local((64, BM), "float32", layout=accumulator(BM))
            probs = T.alloc_local((64, BM), dtype, layout=accumulator(BM))
            d_scores = T.alloc_local((64, BM), dtype, layout=accumulator(BM))
            acc_k = T.alloc_local((64, D), "float32", layout=accumulator(D))
            acc_v = T.alloc_local((64, D), "float32", layout=accumulator(D))
            acc_q = T.alloc_local((64, COLUMNS), "float32", layout=accumulator(COLUMNS))
            score = scores.local(BM // 2)
            d_prob = d_probs.local(BM // 2)
            out_k = acc_k.local(D // 2)
            out_v = acc_v.local(D // 2)
            to_log2: T.let = scale * T.float32(LOG2_E)

            @T.inline
            def free(pipeline, stage):
                if warp == 0 and lane == 0:
                    pipeline.empty.arrive(stage)

            @T.inline
            def weights(m):
                """The probabilities of the transposed scores of queries from m on."""
                if cap > T.float32(0):
                    # tanh(x) = 1 - 2 / (exp(2 x) + 1)
                    double: T.let = scale / cap * T.float32(2 * LOG2_E)
                    for i in T.unroll(BM // 2):
                        T.ptx.ex2.approx.ftz.f32(score[i], score[i] * double)
                        T.ptx.rcp.approx.ftz.f32(score[i], score[i] + T.float32(1))
                        score[i] = (cap - score[i] * (cap + cap)) * T.float32(LOG2_E)
                else:
                    for i in T.unroll(BM // 2):
                        score[i] = score[i] * to_log2
                for j in T.unroll(BM // 8):
                    for e in T.unroll(2):
                        logarithm: T.let = logarithms[ring.stage, skew + j * 8 + lane % 4 * 2 + e]
                        for h in T.unroll(2):
                            T.ptx.ex2.approx.ftz.f32(score[j * 4 + h * 2 + e], score[j * 4 + h * 2 + e] - logarithm)
                lowest: T.let = n + row
                if lowest + 64 > keys_here or m + BM > queries_here or (causal != 0 and lowest + 63 > m + behind) or (
                        window > 0 and lowest + window < m + BM + behind):
                    for h in T.unroll(2):
                        key: T.let = lowest + warp * 16 + lane // 4 + h * 8
                        begin: T.let = T.if_then_else(causal != 0, key - behind, 0) - m - lane % 4 * 2
                        last: T.let = T.if_then_else(window > 0, T.min(key - behind + window, queries_here), queries_here)
                        end: T.let = T.if_then_else(key < keys_here, last, 0) - m - lane % 4 * 2
                        for j in T.unroll(BM // 8):
                            for e in T.unroll(2):
                                score[j * 4 + h * 2 + e] = T.Select(T.And(j * 8 + e < end, j * 8 + e >= begin), score[j * 4 + h * 2 + e],
                                                                    T.float32(0))

            @T.inline
            def gradients_of_scores():
                for j in T.unroll(BM // 8):
                    for e in T.unroll(2):
                        delta: T.let = deltas[ring.stage, skew + j * 8 + lane % 4 * 2 + e]
                        for h in T.unroll(2):
                            d_prob[j * 4 + h * 2 + e] = score[j * 4 + h * 2 + e] * (d_prob[j * 4 + h * 2 + e] - delta)
                if cap > T.float32(0):
                    # The derivative of tanh is 1 - tanh^2, and the logarithm of a weight gives its tanh back.
                    for j in T.unroll(BM // 8):
                        for e in T.unroll(2):
                            logarithm: T.let = logarithms[ring.stage, skew + j * 8 + lane % 4 * 2 + e]
                            for h in T.unroll(2):
                                weight: T.let = score[j * 4 + h * 2 + e]
                                bounded: T.let = (T.log2(T.max(weight, T.float32(1e-37))) + logarithm) / (cap * T.float32(LOG2_E))
                                d_prob[j * 4 + h * 2 + e] = T.Select(weight > T.float32(0),
                                                                     d_prob[j * 4 + h * 2 + e] * (T.float32(1) - bounded * bounded),
                                                                     T.float32(0))

            of_keys.full.wait(0, 0)
            head: T.int32 = head_of_k * heads_here
            tile: T.int32 = 0
            turns: T.let = heads_here * tiles
            if turns > 0:
                if EARLY:
                    ahead = PipelineState(STAGES, 0)
                    queries.full.wait(0, 0)
                    Tx.wg.gemm_async(scores, Ks[row : row + 64, :], Qs[0])
                    T.ptx.wgmma.commit_group.sync.aligned()
                    T.ptx.wgmma.wait_group.sync.aligned(0)
                for turn_of_q in range(turns):
                    m: T.let = (first + tile) * BM
                    if not EARLY:
                        queries.full.wait(ring.stage, ring.phase)
                        Tx.wg.gemm_async(scores, Ks[row : row + 64, :], Qs[ring.stage])
                        T.ptx.wgmma.commit_group.sync.aligned()
                    gradients.full.wait(ring.stage, ring.phase)
                    Tx.wg.gemm_async(d_probs, Vs[row : row + 64, :], DOs[ring.stage])
                    T.ptx.wgmma.commit_group.sync.aligned()
                    if not EARLY:
                        T.ptx.wgmma.wait_group.sync.aligned(1)
                    weights(m)
                    Tx.wg.cast(probs, scores)
                    Tx.wg.gemm_async(acc_v, probs, DOs[ring.stage], transB=True, accum=turn_of_q > 0)
                    T.ptx.wgmma.commit_group.sync.aligned()
                    T.ptx.wgmma.wait_group.sync.aligned(1)
                    gradients_of_scores()
                    Tx.wg.cast(d_scores, d_probs)
                    Tx.wg.gemm_async(acc_k, d_scores, Qs[ring.stage], transB=True, accum=turn_of_q > 0)
                    T.ptx.wgmma.commit_group.sync.aligned()
                    Tx.wg.copy(DSs[buffer + row : buffer + row + 64, :], d_scores)
                    T.ptx["fence.proxy.async.shared::cta"]()
                    T.ptx.bar.sync(1, 256)
                    Tx.wg.gemm_async(acc_q, DSs[buffer : buffer + BN, :], Ks[:, column : column + COLUMNS], transA=True, transB=True)
                    T.ptx.wgmma.commit_group.sync.aligned()
                    if EARLY:
                        # The next scores; behind the last tile, those of the last one again: a product under a condition would be waited for.
                        if turn_of_q + 1 < turns:
                            ahead.advance()
                        queries.full.wait(ahead.stage, ahead.phase)
                        Tx.wg.gemm_async(scores, Ks[row : row + 64, :], Qs[ahead.stage])
                        T.ptx.wgmma.commit_group.sync.aligned()
                        T.ptx.wgmma.wait_group.sync.aligned(2)
                    else:
                        T.ptx.wgmma.wait_group.sync.aligned(1)
                    free(gradients, ring.stage)
                    T.ptx.wgmma.wait_group.sync.aligned(1 if EARLY else 0)
                    free(queries, ring.stage)
                    # The copy engine adds. Behind the queries of a sequence it adds zeros.
                    if warp == 0 and lane == 0:
                        T.ptx["cp.async.bulk.wait_group.read"](0)
                    T.cuda.warpgroup_sync(1 + group)
                    for j in T.unroll(COLUMNS // CHUNK):
                        Tx.wg.copy(DQs[group - 1, j], acc_q[:, j * CHUNK : j * CHUNK + CHUNK])
                    T.ptx["fence.proxy.async.shared::cta"]()
                    T.cuda.warpgroup_sync(1 + group)
                    if warp == 0 and lane == 0:
                        query: T.let = first_query + m
                        for j in T.unroll(COLUMNS // CHUNK):
                            Tx.copy_async(SUMS[batch, head, query : query + BM, column + j * CHUNK : column + j * CHUNK + CHUNK], DQs[group - 1, j],
                                          use_tma_reduce="add")
                        T.ptx["cp.async.bulk.commit_group"]()
                    T.ptx.wgmma.wait_group.sync.aligned(0)
                    ring.advance()
                    buffer = BN - buffer
                    tile += 1
                    if tile == tiles:
                        tile = 0
                        head += 1
                if warp == 0 and lane == 0:
                    T.ptx["cp.async.bulk.wait_group"](0)
            else:
                Tx.wg.zero(acc_k)
                Tx.wg.zero(acc_v)
            for h in T.unroll(2):
                key: T.let = n + row + warp * 16 + lane // 4 + h * 8
                if key < keys_here:
                    for j in T.unroll(D // 8):
                        if j * 8 < HEAD:
                            for e in T.vectorized(2):
                                DK[batch, head_of_k, first_key + key, j * 8 + lane % 4 * 2 + e] = T.cast(
                                    out_k[j * 4 + h * 2 + e] * scale, dtype)
                        if j * 8 < HEAD_OF_V:
                            for e in T.vectorized(2):
                                DV[batch, head_of_k, first_key + key, j * 8 + lane % 4 * 2 + e] = T.cast(out_v[j * 4 + h * 2 + e], dtype)
