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
    from registers, too. The product of the gradients of scores with K needs those of both warpgroups: they meet in shared memory. A third
    warpgroup computes it if registers suffice; otherwise each of the two computes half of the columns.

    The tensor cores compute while threads do: a product with V during the exponentials, dV during the gradients of scores, and the next scores
    while dQ is stored. The copy engine adds dQ to its sums, in an order that lets threads store four registers at a time without conflicts of banks:
    of 16 columns, 0, 1, 8, 9 are neighbors, then 2, 3, 10, 11 and so on, and in odd rows, neighbors of 16 columns change places. `finish` knows
    this order.

    Masks, offsets and `cap` are those of the forward pass. Tiles have D columns: a smaller head is filled with zeros by the copy engine. Rows of
    the sums have a multiple of 32 columns."""
    BATCH, HEADS, HEADS_OF_K, QUERIES, KEYS, HEAD, HEAD_OF_V, WIDTH = (T.int32() for _ in range(8))
    q_batch, q_head, q_row, k_batch, k_head, k_row = (T.int64() for _ in range(6))
    v_batch, v_head, v_row, o_batch, o_head, o_row = (T.int64() for _ in range(6))
    dk_batch, dk_head, dk_row, dv_batch, dv_head, dv_row = (T.int64() for _ in range(6))
    s_part, s_batch, s_head = (T.int64() for _ in range(3))
    Q = T.match_buffer(q, (BATCH, HEADS, QUERIES, HEAD), dtype, strides=(q_batch, q_head, q_row, 1))
    K = T.match_buffer(k, (BATCH, HEADS_OF_K, KEYS, HEAD), dtype, strides=(k_batch, k_head, k_row, 1))
    V = T.match_buffer(v, (BATCH, HEADS_OF_K, KEYS, HEAD_OF_V), dtype, strides=(v_batch, v_head, v_row, 1))
    DO = T.match_buffer(d_o, (BATCH, HEADS, QUERIES, HEAD_OF_V), dtype, strides=(o_batch, o_head, o_row, 1))
    STATS = T.match_buffer(stats, (2, BATCH, HEADS, QUERIES), "float32", strides=(s_part, s_batch, s_head, 1))
    SUMS = T.match_buffer(dq_sums, (BATCH, HEADS, QUERIES, WIDTH), "float32")
    DK = T.match_buffer(dk, (BATCH, HEADS_OF_K, KEYS, HEAD), dtype, strides=(dk_batch, dk_head, dk_row, 1))
    DV = T.match_buffer(dv, (BATCH, HEADS_OF_K, KEYS, HEAD_OF_V), dtype, strides=(dv_batch, dv_head, dv_row, 1))
    OFFSETS = T.int32()
    STARTS_OF_Q = T.match_buffer(offsets_of_q, (OFFSETS,), "int32")
    STARTS_OF_K = T.match_buffer(offsets_of_k, (OFFSETS,), "int32")
    BM, BN, STAGES = T.meta_var(64), T.meta_var(128), T.meta_var(2)
    # A warpgroup of its own computes dQ.
    APART = T.meta_var(D <= 64)
    # Half of the next logarithms wait in registers: without such loads, exponentials of warpgroups in step wait for shared memory.
    EARLY = T.meta_var(not APART)
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
    T.attr({"tirx.use_programtic_dependent_launch": True})
    T.ptx.griddepcontrol.launch_dependents()
    block = T.cta_id([blocks])
    group = T.warpgroup_id([4 if APART else 3])
    warp = T.warp_id_in_wg([4])
    lane = T.lane_id([32])
    pool = T.SMEMPool()
    Ks = pool.alloc_tcgen05_mma_AB((BN, D), dtype)
    Vs = pool.alloc_tcgen05_mma_AB((BN, D), dtype)
    Qs = pool.alloc_tcgen05_mma_AB((STAGES, BM, D), dtype)
    DOs = pool.alloc_tcgen05_mma_AB((STAGES, BM, D), dtype)
    # Gradients of scores, for two tiles in turn; behind the last tile, 64 columns of dK or dV, twice.
    DSs = pool.alloc_tcgen05_mma_AB((2 * BN, BM), dtype)
    # 64 columns of dQ, twice; 128 bytes of each row are together.
    DQs = pool.alloc((2, 2, BM, 32), "float32", align=1024, layout=mma_shared_layout("float32", SwizzleMode.SWIZZLE_128B_ATOM, (2, 2, BM, 32)))
    # Copies begin at multiples of four numbers: up to three of them belong to queries before the tile.
    logarithms = pool.alloc((STAGES, BM + 32), "float32", align=128)
    deltas = pool.alloc((STAGES, BM + 32), "float32", align=128)
    of_keys = Pipeline(pool, 1, full="tma", empty="mbar", init_empty=1, empty_phase_offset=1)
    # One thread frees what its warpgroup has read, if a barrier is behind the reads; each warp does without a barrier.
    READERS = T.meta_var(8 if APART else 2)
    queries = Pipeline(pool, STAGES, full="tma", empty="mbar", init_empty=READERS, empty_phase_offset=1)
    gradients = Pipeline(pool, STAGES, full="tma", empty="mbar", init_empty=READERS, empty_phase_offset=1)
    # Each warp of the two warpgroups says when its gradients of scores are in shared memory.
    exchange = Pipeline(pool, STAGES, full="mbar", empty="mbar", init_full=8, init_empty=1, empty_phase_offset=1)
    pool.commit()
    T.ptx.fence.mbarrier_init.release.cluster()
    T.cuda.cta_sync()
    T.ptx.griddepcontrol.wait()

    packed: T.let = OFFSETS > 1
    across: T.let = T.if_then_else(packed, T.truncdiv(KEYS, BN) + OFFSETS - 1, T.truncdiv(KEYS + (BN - 1), BN))
    turn: T.let = T.truncmod(block, across)
    head_of_all: T.let = T.truncdiv(block, across)
    batch: T.int32 = T.truncdiv(head_of_all, HEADS_OF_K)
    head_of_k: T.int32 = T.truncmod(head_of_all, HEADS_OF_K)
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
        head: T.int32 = head_of_k * heads_here
        tile: T.int32 = 0
        turns: T.int32 = heads_here * tiles
        acc_q = T.alloc_local((64, 64), "float32", layout=accumulator(64))
        product = acc_q.local(32)
        quad = T.alloc_local((4,), "float32")
        odd: T.let = (first_query + lane // 4) % 2

        @T.inline
        def add_to_sums(buffer, column, copies):
            """The copy engine adds 64 columns of dQ from `column` on; it may still read those of `copies` tiles before. Behind the queries of a sequence
            it adds zeros."""
            if warp == 0 and lane == 0:
                T.ptx["cp.async.bulk.wait_group.read"](copies)
            T.cuda.warpgroup_sync(1 + group)
            T.ptx.wgmma.wait_group.sync.aligned(0 if APART else 1)
            if APART and warp == 0 and lane == 0:
                exchange.empty.arrive(ring.stage)
            for h in T.unroll(2):
                for pair in T.unroll(4):
                    for e in T.unroll(4):
                        quad[e] = product[pair * 8 + e // 2 * 4 + h * 2 + e % 2]
                    for e in T.vectorized(4):
                        DQs[buffer, pair // 2, warp * 16 + h * 8 + lane // 4, T.bitwise_xor(pair % 2, odd) * 16 + lane % 4 * 4 + e] = quad[e]
            T.ptx["fence.proxy.async.shared::cta"]()
            T.cuda.warpgroup_sync(1 + group)
            if warp == 0 and lane == 0:
                query: T.let = first_query + (first + tile) * BM
                for j in T.unroll(2):
                    Tx.copy_async(SUMS[batch, head, query : query + BM, column + j * 32 : column + j * 32 + 32], DQs[buffer, j], use_tma_reduce="add")
                T.ptx["cp.async.bulk.commit_group"]()

        @T.inline
        def end_of_copies():
            if warp == 0 and lane == 0:
                T.ptx["cp.async.bulk.wait_group"](0)

        @T.inline
        def next_tile():
            ring.advance()
            tile += 1
            if tile == tiles:
                tile = 0
                head += 1

        if group == 0:
            T.ptx.setmaxnreg.dec.sync.aligned.u32(24)
            if warp == 0:
                if T.cuda.elect_sync():
                    row_of_k: T.let = first_key + n
                    of_keys.full.arrive(0, BN * D * 4)
                    Tx.copy_async(Ks, K[batch, head_of_k, row_of_k : row_of_k + BN, 0:D], mbar=of_keys.full.ptr_to([0]))
                    Tx.copy_async(Vs, V[batch, head_of_k, row_of_k : row_of_k + BN, 0:D], mbar=of_keys.full.ptr_to([0]))
                    for member in range(heads_here):
                        for step in range(tiles):
                            m: T.let = first_query + (first + step) * BM
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
                        head += 1
        elif APART and group == 3:
            T.ptx.setmaxnreg.dec.sync.aligned.u32(72)
            of_keys.full.wait(0, 0)
            for turn_of_q in range(turns):
                exchange.full.wait(ring.stage, ring.phase)
                Tx.wg.gemm_async(acc_q, DSs[ring.stage * BN : ring.stage * BN + BN, :], Ks, transA=True, transB=True)
                T.ptx.wgmma.commit_group.sync.aligned()
                add_to_sums(ring.stage, 0, 1)
                next_tile()
            end_of_copies()
        else:
            T.ptx.setmaxnreg.inc.sync.aligned.u32(208 if APART else 240)
            row: T.let = (group - 1) * 64
            scores = T.alloc_local((64, BM), "float32", layout=accumulator(BM))
            # Without a warpgroup for it, dQ takes these registers when the gradients of scores are in 16 bits.
            d_probs = T.alloc_local((64, BM), "float32", layout=accumulator(BM)) if APART else acc_q
            probs = T.alloc_local((64, BM), dtype, layout=accumulator(BM))
            d_scores = T.alloc_local((64, BM), dtype, layout=accumulator(BM))
            acc_k = T.alloc_local((64, D), "float32", layout=accumulator(D))
            acc_v = T.alloc_local((64, D), "float32", layout=accumulator(D))
            score = scores.local(BM // 2)
            early = T.alloc_local((BM // 8,), "float32") if EARLY else None
            d_prob = d_probs.local(BM // 2)
            out_k = acc_k.local(D // 2)
            to_log2: T.let = T.if_then_else(cap > T.float32(0), T.float32(LOG2_E), scale * T.float32(LOG2_E))

            @T.inline
            def free(pipeline, stage):
                if lane == 0 and (APART or warp == 0):
                    pipeline.empty.arrive(stage)

            @T.inline
            def multiply_keys(stage):
                Tx.wg.gemm_async(scores, Ks[row : row + 64, :], Qs[stage])
                T.ptx.wgmma.commit_group.sync.aligned()

            @T.inline
            def load_logarithms(stage):
                if EARLY:
                    for j in T.unroll(BM // 16):
                        for e in T.unroll(2):
                            early[j * 2 + e] = logarithms[stage, skew + j * 8 + lane % 4 * 2 + e]

            @T.inline
            def weights(m):
                """The probabilities of the transposed scores of queries from m on."""
                if cap > T.float32(0):
                    # tanh(x) = 1 - 2 / (exp(2 x) + 1)
                    inverse: T.float32
                    T.ptx.rcp.approx.ftz.f32(inverse, cap)
                    double: T.let = scale * inverse * T.float32(2 * LOG2_E)
                    for i in T.unroll(BM // 2):
                        T.ptx.ex2.approx.ftz.f32(score[i], score[i] * double)
                        T.ptx.rcp.approx.ftz.f32(score[i], score[i] + T.float32(1))
                        score[i] = cap - score[i] * (cap + cap)
                for j in T.unroll(BM // 8):
                    for e in T.unroll(2):
                        logarithm: T.let = early[j * 2 + e] if EARLY and j < BM // 16 else logarithms[ring.stage, skew + j * 8 + lane % 4 * 2 + e]
                        for h in T.unroll(2):
                            T.ptx.ex2.approx.ftz.f32(score[j * 4 + h * 2 + e], score[j * 4 + h * 2 + e] * to_log2 - logarithm)
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
                    inverse: T.float32
                    T.ptx.rcp.approx.ftz.f32(inverse, cap * T.float32(LOG2_E))
                    for j in T.unroll(BM // 8):
                        for e in T.unroll(2):
                            logarithm: T.let = logarithms[ring.stage, skew + j * 8 + lane % 4 * 2 + e]
                            for h in T.unroll(2):
                                weight: T.let = score[j * 4 + h * 2 + e]
                                bounded: T.let = (T.log2(T.max(weight, T.float32(1e-37))) + logarithm) * inverse
                                d_prob[j * 4 + h * 2 + e] = T.Select(weight != T.float32(0),
                                                                     d_prob[j * 4 + h * 2 + e] * (T.float32(1) - bounded * bounded),
                                                                     T.float32(0))

            @T.inline
            def store(sums, DX, columns):
                """A warpgroup's rows of dK or dV, by way of its rows of DSs, which hold 64 columns twice."""
                rounded = T.alloc_local((64, D), dtype, layout=accumulator(D))
                Tx.wg.cast(rounded, sums)
                for c in T.unroll(D // 64):
                    Tx.wg.copy(DSs[c * BN + row : c * BN + row + 64, 0:64], rounded[:, c * 64 : c * 64 + 64])
                T.cuda.warpgroup_sync(1 + group)
                chunk: T.let = lane % 8 * 8
                of_tile: T.int32 = row + warp * 4 + lane // 8
                while of_tile < T.min(row + 64, keys_here - n):
                    row_of_x = T.decl_buffer((D,), dtype, data=DX.ptr_to([batch, head_of_k, first_key + n + of_tile, 0]))
                    for c in T.unroll(D // 64):
                        if c * 64 + chunk < columns:
                            for e in T.vectorized(8):
                                row_of_x[c * 64 + chunk + e] = DSs[c * BN + of_tile, chunk + e]
                    of_tile += 16
                T.cuda.warpgroup_sync(1 + group)

            of_keys.full.wait(0, 0)
            if turns > 0:
                ahead = PipelineState(STAGES, 0)

                @T.inline
                def multiply_next_keys(more):
                    """The next scores; behind the last tile, those of the last one again: a product under a condition would be waited for."""
                    if more:
                        ahead.advance()
                    queries.full.wait(ahead.stage, ahead.phase)
                    multiply_keys(ahead.stage)
                    load_logarithms(ahead.stage)

                queries.full.wait(0, 0)
                multiply_keys(0)
                load_logarithms(0)
                T.ptx.wgmma.wait_group.sync.aligned(0)
                for turn_of_q in range(turns):
                    gradients.full.wait(ring.stage, ring.phase)
                    Tx.wg.gemm_async(d_probs, Vs[row : row + 64, :], DOs[ring.stage])
                    T.ptx.wgmma.commit_group.sync.aligned()
                    weights((first + tile) * BM)
                    Tx.wg.cast(probs, scores)
                    Tx.wg.gemm_async(acc_v, probs, DOs[ring.stage], transB=True, accum=turn_of_q > 0)
                    T.ptx.wgmma.commit_group.sync.aligned()
                    T.ptx.wgmma.wait_group.sync.aligned(1)
                    gradients_of_scores()
                    Tx.wg.cast(d_scores, d_probs)
                    Tx.wg.gemm_async(acc_k, d_scores, Qs[ring.stage], transB=True, accum=turn_of_q > 0)
                    T.ptx.wgmma.commit_group.sync.aligned()
                    to: T.let = ring.stage * BN
                    if APART:
                        multiply_next_keys(turn_of_q + 1 < turns)
                        exchange.empty.wait(ring.stage, ring.phase)
                    Tx.wg.copy(DSs[to + row : to + row + 64, :], d_scores)
                    T.ptx["fence.proxy.async.shared::cta"]()
                    if APART:
                        T.cuda.warp_sync()
                        if lane == 0:
                            exchange.full.arrive(ring.stage)
                        T.ptx.wgmma.wait_group.sync.aligned(2)
                        free(gradients, ring.stage)
                        T.ptx.wgmma.wait_group.sync.aligned(1)
                        free(queries, ring.stage)
                    else:
                        T.ptx.bar.sync(1, 256)
                        T.ptx.wgmma.wait_group.sync.aligned(0)
                        free(gradients, ring.stage)
                        free(queries, ring.stage)
                        Tx.wg.gemm_async(acc_q, DSs[to : to + BN, :], Ks[:, row : row + 64], transA=True, transB=True)
                        T.ptx.wgmma.commit_group.sync.aligned()
                        multiply_next_keys(turn_of_q + 1 < turns)
                        add_to_sums(group - 1, row, 0)
                    T.ptx.wgmma.wait_group.sync.aligned(0)
                    next_tile()
                if APART:
                    # The products with K have read the gradients of all scores.
                    exchange.empty.wait(ring.stage, ring.phase)
                    ring.advance()
                    exchange.empty.wait(ring.stage, ring.phase)
                else:
                    end_of_copies()
                    T.ptx.bar.sync(1, 256)
            else:
                Tx.wg.zero(acc_k)
                Tx.wg.zero(acc_v)
            for i in T.unroll(D // 2):
                out_k[i] = out_k[i] * scale
            store(acc_v, DV, HEAD_OF_V)
            store(acc_k, DK, HEAD)
