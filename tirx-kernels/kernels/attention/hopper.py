"""Attention for Hopper: O = softmax(scale Q K^T) V in 16 bits, without a matrix of scores in memory.

A block takes 128 queries of one head after the other and goes through their keys in tiles; blocks of one head read the same tiles
at nearly the same time. One warp copies tiles, also those of the next queries; two warpgroups compute 64 queries each. The product of
the next scores runs on the tensor cores while a warpgroup computes the exponentials of the present ones, and the warpgroups take
turns on the tensor cores.
Tiles have DQ columns of Q and K, and DV of V: a smaller head is filled with zeros by the copy engine.
"""

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
def forward(q: T.handle, k: T.handle, v: T.handle, o: T.handle, lse: T.handle, scale: T.float32, causal: T.int32,
            window: T.int32, cap: T.float32, near: T.int32, blocks: T.int32, *, dtype: T.constexpr, DQ: T.constexpr,
            DV: T.constexpr = 0, CAP: T.constexpr = False):
    """Q is `[batch, heads, queries, head]`, K and V have `heads / group` heads. With `causal` the last query sees all keys,
    and each query before one key less. `window` above 0 limits each query to its last `window` keys. With CAP, scores are
    `cap * tanh(scores / cap)`. `lse` is the logarithm of the sum of exponentials, unless it is empty. `near` heads are in
    work at a time, so that their keys stay in the L2 cache. DV is DQ if it is not given."""
    BATCH, HEADS, HEADS_OF_K, QUERIES, KEYS, HEAD, HEAD_OF_V = (T.int32() for _ in range(7))
    q_batch, q_head, q_row, k_batch, k_head, k_row = (T.int64() for _ in range(6))
    v_batch, v_head, v_row, o_batch, o_head, o_row = (T.int64() for _ in range(6))
    Q = T.match_buffer(q, (BATCH, HEADS, QUERIES, HEAD), dtype, strides=(q_batch, q_head, q_row, 1))
    K = T.match_buffer(k, (BATCH, HEADS_OF_K, KEYS, HEAD), dtype, strides=(k_batch, k_head, k_row, 1))
    V = T.match_buffer(v, (BATCH, HEADS_OF_K, KEYS, HEAD_OF_V), dtype, strides=(v_batch, v_head, v_row, 1))
    O = T.match_buffer(o, (BATCH, HEADS, QUERIES, HEAD_OF_V), dtype, strides=(o_batch, o_head, o_row, 1))
    lse_batch, lse_heads, lse_queries = T.int32(), T.int32(), T.int32()
    LSE = T.match_buffer(lse, (lse_batch, lse_heads, lse_queries), "float32")
    DV = T.meta_var(DV if DV > 0 else DQ)
    BM, BN = T.meta_var(128), T.meta_var(64 if DQ > 128 else 128)
    STAGES = T.meta_var(2)
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
    T.attr({"tirx.use_programtic_dependent_launch": True})
    T.ptx.griddepcontrol.launch_dependents()
    block = T.cta_id([blocks])
    group = T.warpgroup_id([3])
    warp = T.warp_id_in_wg([4])
    lane = T.lane_id([32])
    pool = T.SMEMPool()
    Qs = pool.alloc_tcgen05_mma_AB((BM, DQ), dtype)
    Ks = pool.alloc_tcgen05_mma_AB((STAGES, BN, DQ), dtype)
    Vs = pool.alloc_tcgen05_mma_AB((STAGES, BN, DV), dtype)
    # The copy engine stores the output from here; wide heads leave no room for it, narrow ones are faster without it.
    STAGED = T.meta_var(64 < DV <= 128)
    if STAGED:
        shape = (2, DV // 64, 64, 64)
        Os = pool.alloc(shape, dtype, layout=mma_shared_layout(dtype, SwizzleMode.SWIZZLE_128B_ATOM, shape), align=1024)
    queries = Pipeline(pool, 1, full="tma", empty="mbar", init_empty=2, empty_phase_offset=1)
    keys = Pipeline(pool, STAGES, full="tma", empty="mbar", init_empty=2, empty_phase_offset=1)
    values = Pipeline(pool, STAGES, full="tma", empty="mbar", init_empty=2, empty_phase_offset=1)
    pool.commit()
    T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    T.ptx.griddepcontrol.wait()
    down: T.let = T.truncdiv(QUERIES + (BM - 1), BM)
    total: T.let = BATCH * HEADS * down
    behind: T.let = KEYS - QUERIES
    ring = PipelineState(STAGES, 0)
    round = PipelineState(1, 0)
    work: T.int32 = block
    m: T.int32 = 0
    batch: T.int32 = 0
    head: T.int32 = 0
    first: T.int32 = 0
    tiles: T.int32 = 0

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
        m = T.if_then_else(upwards, level, down - 1 - level) * BM
        batch = T.truncdiv(head_of_all, HEADS)
        head = T.truncmod(head_of_all, HEADS)
        first = T.if_then_else(window > 0, T.truncdiv(T.max(m + behind + 1 - window, 0), BN), 0)
        most: T.let = T.if_then_else(causal != 0, T.max(T.min(KEYS, m + (BM + behind)), 0), KEYS)
        tiles = T.max(T.truncdiv(most + (BN - 1), BN) - first, 0)

    if group == 0:
        T.ptx.setmaxnreg(False, 24)
        if warp == 0:
            if T.ptx.elect_sync():
                while work < total:
                    locate()
                    head_of_k: T.let = T.truncdiv(head, T.truncdiv(HEADS, HEADS_OF_K))
                    queries.empty.wait(0, round.phase)
                    queries.full.arrive(0, BM * DQ * 2)
                    Tx.copy_async(Qs, Q[batch, head, m : m + BM, 0:DQ], mbar=queries.full.ptr_to([0]))
                    for tile in range(tiles):
                        n: T.let = (first + tile) * BN
                        keys.empty.wait(ring.stage, ring.phase)
                        keys.full.arrive(ring.stage, BN * DQ * 2)
                        Tx.copy_async(Ks[ring.stage], K[batch, head_of_k, n : n + BN, 0:DQ], mbar=keys.full.ptr_to([ring.stage]))
                        values.empty.wait(ring.stage, ring.phase)
                        values.full.arrive(ring.stage, BN * DV * 2)
                        Tx.copy_async(Vs[ring.stage], V[batch, head_of_k, n : n + BN, 0:DV], mbar=values.full.ptr_to([ring.stage]))
                        ring.advance()
                    round.advance()
                    work += blocks
    else:
        T.ptx.setmaxnreg(True, 240)
        row: T.let = (group - 1) * 64
        scores = T.alloc_local((64, BN), "float32", layout=accumulator(BN))
        probs = T.alloc_local((64, BN), dtype, layout=accumulator(BN))
        acc = T.alloc_local((64, DV), "float32", layout=accumulator(DV))
        score = scores.local(BN // 2)
        out = acc.local(DV // 2)
        row_max = T.alloc_local((2,), "float32")
        row_sum = T.alloc_local((2,), "float32")
        factor = T.alloc_local((2,), "float32")
        before = PipelineState(STAGES, 0)
        to_log2: T.let = T.float32(LOG2_E) if CAP else scale * T.float32(LOG2_E)

        @T.inline
        def softmax(n, masked):
            """Exponentials of the scores of keys from n on. Scores of keys that a query does not see are far below all others."""
            if CAP:
                for i in T.unroll(BN // 2):
                    score[i] = T.tanh(score[i] * (scale / cap)) * cap
            for h in T.unroll(2):
                if masked:
                    query: T.let = m + row + warp * 16 + lane // 4 + h * 8 + behind
                    end: T.let = T.if_then_else(causal != 0, T.min(KEYS, query + 1), KEYS) - n - lane % 4 * 2
                    begin: T.let = T.if_then_else(window > 0, query + 1 - window, 0) - n - lane % 4 * 2
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
        def multiply_keys():
            """The scores of the next tile, when it is this warpgroup's turn."""
            keys.full.wait(ring.stage, ring.phase)
            T.ptx.bar.sync(group, 256)
            Tx.wg.gemm_async(scores, Qs[row : row + 64, :], Ks[ring.stage])
            T.ptx.wgmma.commit_group()

        @T.inline
        def step(tile, masked):
            multiply_keys()
            values.full.wait(before.stage, before.phase)
            Tx.wg.gemm_async(acc, probs, Vs[before.stage], transB=True, accum=True)
            T.ptx.wgmma.commit_group()
            T.ptx.bar.arrive(3 - group, 256)
            T.ptx.wgmma.wait_group(1)
            if warp == 0 and lane == 0:
                keys.empty.arrive(ring.stage)
            ring.advance()
            softmax((first + tile) * BN, masked)
            T.ptx.wgmma.wait_group(0)
            if warp == 0 and lane == 0:
                values.empty.arrive(before.stage)
            before.advance()
            for j in T.unroll(DV // 8):
                for h in T.unroll(2):
                    for e in T.unroll(2):
                        out[j * 4 + h * 2 + e] = out[j * 4 + h * 2 + e] * factor[h]
            Tx.wg.cast(probs, scores)

        if group == 2:
            T.ptx.bar.arrive(1, 256)
        while work < total:
            locate()
            for h in T.unroll(2):
                # Above the score of a key that a query does not see: the exponential of such a score is 0.
                row_max[h] = T.float32(-1e37)
                row_sum[h] = T.float32(0)
            Tx.wg.zero(acc)
            queries.full.wait(0, round.phase)
            if tiles > 0:
                # Tiles that all queries of the warpgroup see as a whole need no mask.
                all_see: T.let = T.if_then_else(causal != 0, T.max(T.min(KEYS, m + row + behind + 1), 0), KEYS)
                hidden: T.let = T.if_then_else(window > 0, T.max(m + row + 64 + behind - window, 0), 0)
                part: T.let = T.min(T.max(T.truncdiv(hidden + (BN - 1), BN) - first, 1), tiles)
                seen: T.let = T.min(T.max(T.truncdiv(all_see, BN) - first, part), tiles)
                multiply_keys()
                T.ptx.bar.arrive(3 - group, 256)
                T.ptx.wgmma.wait_group(0)
                if warp == 0 and lane == 0:
                    keys.empty.arrive(ring.stage)
                ring.advance()
                softmax(first * BN, True)
                Tx.wg.cast(probs, scores)
                for tile in range(1, part):
                    step(tile, True)
                for tile in range(part, seen):
                    step(tile, False)
                for tile in range(seen, tiles):
                    step(tile, True)
            if warp == 0 and lane == 0:
                queries.empty.arrive(0)
            round.advance()
            if tiles > 0:
                values.full.wait(before.stage, before.phase)
                Tx.wg.gemm_async(acc, probs, Vs[before.stage], transB=True, accum=True)
                T.ptx.wgmma.commit_group()
                T.ptx.wgmma.wait_group(0)
                if warp == 0 and lane == 0:
                    values.empty.arrive(before.stage)
                before.advance()
            for h in T.unroll(2):
                sum: T.float32 = row_sum[h]
                sum = sum + T.tvm_warp_shuffle_xor(0xFFFFFFFF, sum, 1, 32, 32)
                sum = sum + T.tvm_warp_shuffle_xor(0xFFFFFFFF, sum, 2, 32, 32)
                factor[h] = T.if_then_else(sum > T.float32(0), T.float32(1) / sum, T.float32(0))
                query: T.let = m + row + warp * 16 + lane // 4 + h * 8
                if query < QUERIES and lane % 4 == 0 and lse_queries > 0:
                    LSE[batch, head, query] = T.if_then_else(
                        sum > T.float32(0), row_max[h] * (T.float32(1) if CAP else scale) + T.log(sum), T.float32("-inf"))
                for j in T.unroll(DV // 8):
                    for e in T.unroll(2):
                        out[j * 4 + h * 2 + e] = out[j * 4 + h * 2 + e] * factor[h]
            if STAGED:
                rounded = T.alloc_local((64, DV), dtype, layout=accumulator(DV))
                Tx.wg.cast(rounded, acc)
                if warp == 0 and lane == 0:
                    T.ptx.cp_async.bulk.wait_group(0, True)
                T.cuda.warpgroup_sync(8 + group)
                for j in T.unroll(DV // 64):
                    Tx.wg.copy(Os[group - 1, j], rounded[:, j * 64 : j * 64 + 64])
                T.ptx.fence.proxy_async("shared::cta")
                T.cuda.warpgroup_sync(8 + group)
                if warp == 0 and lane == 0:
                    for j in T.unroll(DV // 64):
                        Tx.copy_async(O[batch, head, m + row : m + row + 64, j * 64 : j * 64 + 64], Os[group - 1, j])
                    T.ptx.cp_async.bulk.commit_group()
            else:
                for h in T.unroll(2):
                    query: T.let = m + row + warp * 16 + lane // 4 + h * 8
                    if query < QUERIES:
                        for j in T.unroll(DV // 8):
                            if j * 8 < HEAD_OF_V:
                                for e in T.vectorized(2):
                                    O[batch, head, query, j * 8 + lane % 4 * 2 + e] = T.cast(out[j * 4 + h * 2 + e], dtype)
            work += blocks
        if group == 1:
            T.ptx.bar.sync(1, 256)
        if STAGED and warp == 0 and lane == 0:
            T.ptx.cp_async.bulk.wait_group(0, False)
