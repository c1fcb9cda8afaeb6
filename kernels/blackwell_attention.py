"""FlashAttention forward for Blackwell: O = softmax(Q K^T / sqrt(D)) V in bfloat16, D = 128, without a mask.

A block has two tiles of 128 queries. While the tensor core multiplies for one of them, a warpgroup computes the weights of the
other. Tensor memory holds, for each tile, the scores S (128 columns), whose first half the weights P replace, and the sums O
(128 columns). The warpgroups are: two of softmax, one for each tile; one that rescales O where the maximum of a row has grown, and
stores it in the end; one of which a warp copies and another multiplies.
"""
from __future__ import annotations
import math
from tvm.backend.cuda.lang import MBarrier, Pipeline, PipelineState, TCGen05Bar, TMABar
from tvm.script import tirx as T

BM, BN, D = 128, 128, 128
HALF = 64
STAGES = 2
SCALE = math.log2(math.e) / math.sqrt(D)
# The first column of the sums in tensor memory, after the scores of both tiles.
SUMS = 2 * BN


@T.jit
def blackwell_attention(Q: T.Buffer((H * S, D), "bfloat16"), K: T.Buffer((H * S, D), "bfloat16"),
                        V: T.Buffer((H * S, D), "bfloat16"), O: T.Buffer((H * S, D), "bfloat16"), *,
                        H: T.constexpr, S: T.constexpr):
    T.static_assert(S % (2 * BM) == 0, "whole blocks of queries")
    BLOCKS = T.meta_var(S // BN)
    Q_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    K_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    V_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", Q_map, "bfloat16", 2, Q.data, D, H * S, D * 2, HALF, BM, 1, 1, 0, 3, 2, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", K_map, "bfloat16", 2, K.data, D, H * S, D * 2, HALF, BN, 1, 1, 0, 3, 2, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", V_map, "bfloat16", 2, V.data, D, H * S, D * 2, HALF, BN, 1, 1, 0, 3, 2, 0)
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
    block, head = T.cta_id([S // (2 * BM), H])
    wg = T.warpgroup_id([4])
    warp = T.warp_id_in_wg([4])
    lane = T.lane_id([32])
    row: T.let = warp * 32 + lane
    pool = T.SMEMPool()
    Qs = pool.alloc((2, 2, BM, HALF), "bfloat16", align=1024)
    Ks = pool.alloc((STAGES, 2, BN, HALF), "bfloat16", align=1024)
    Vs = pool.alloc((STAGES, 2, BN, HALF), "bfloat16", align=1024)
    scales = pool.alloc((2, BM), "float32", align=16)
    totals = pool.alloc((2, BM), "float32", align=16)
    keys = Pipeline(pool, STAGES, full="tma", empty="tcgen05")
    values = Pipeline(pool, STAGES, full="tma", empty="tcgen05")
    queries = TMABar(pool, 2)
    scores_ready = TCGen05Bar(pool, 2)
    sums_ready = TCGen05Bar(pool, 2)
    # The weights are in tensor memory, and the sums are rescaled.
    weights_ready = MBarrier(pool, 2)
    # Shared memory holds the factor for the sums of a row and, at the end, the row's total.
    factor_ready = MBarrier(pool, 2)
    total_ready = MBarrier(pool, 2)
    where = pool.alloc((1,), "uint32", align=8)
    pool.commit()
    queries.init(1)
    scores_ready.init(1)
    sums_ready.init(1)
    weights_ready.init(2 * BM)
    factor_ready.init(BM)
    total_ready.init(BM)
    T.ptx.fence.mbarrier_init()
    if wg == 3 and warp == 0:
        T.ptx.tcgen05.alloc(where.ptr_to([0]), n_cols=512, cta_group=1)
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    base: T.let = where[0]

    @T.inline
    def copy_rows(tiles, barrier, tensor_map, first):
        for h in T.unroll(2):
            T.ptx.cp_async.bulk.tensor.g2s_cluster(2, tiles(h), barrier, T.address_of(tensor_map), 0, 1, "", h * HALF, first)

    if wg == 3:
        T.ptx.setmaxnreg(False, 56)
        if warp == 0:
            if T.ptx.elect_sync():
                for t in T.unroll(2):
                    queries.arrive(t, BM * D * 2)
                    copy_rows(lambda h: Qs.ptr_to([t, h, 0, 0]), queries.ptr_to([t]), Q_map, head * S + block * (2 * BM) + t * BM)
                free = PipelineState(STAGES, 1)
                for j in T.serial(BLOCKS):
                    keys.empty.wait(free.stage, free.phase)
                    keys.full.arrive(free.stage, BN * D * 2)
                    copy_rows(lambda h: Ks.ptr_to([free.stage, h, 0, 0]), keys.full.ptr_to([free.stage]), K_map, head * S + j * BN)
                    values.empty.wait(free.stage, free.phase)
                    values.full.arrive(free.stage, BN * D * 2)
                    copy_rows(lambda h: Vs.ptr_to([free.stage, h, 0, 0]), values.full.ptr_to([free.stage]), V_map, head * S + j * BN)
                    free.advance()
        if warp == 1:
            if T.ptx.elect_sync():
                q_desc = T.alloc_local((1,), "uint64")
                k_desc = T.alloc_local((1,), "uint64")
                v_desc = T.alloc_local((1,), "uint64")
                s_desc = T.alloc_local((1,), "uint32")
                o_desc = T.alloc_local((1,), "uint32")
                T.ptx.tcgen05.encode_matrix_descriptor(q_desc.data, Qs.ptr_to([0, 0, 0, 0]), 1, 64, 3)
                T.ptx.tcgen05.encode_matrix_descriptor(k_desc.data, Ks.ptr_to([0, 0, 0, 0]), 1, 64, 3)
                # V is read by columns: 64 of them per tile, the next tile 16 KiB on.
                T.ptx.tcgen05.encode_matrix_descriptor(v_desc.data, Vs.ptr_to([0, 0, 0, 0]), BN * HALF * 2 // 16, 64, 3)
                T.ptx.tcgen05.encode_instr_descriptor(s_desc.data, d_dtype="float32", a_dtype="bfloat16", b_dtype="bfloat16",
                                                      M=BM, N=BN, K=16, trans_a=False, trans_b=False)
                T.ptx.tcgen05.encode_instr_descriptor(o_desc.data, d_dtype="float32", a_dtype="bfloat16", b_dtype="bfloat16",
                                                      M=BM, N=D, K=16, trans_a=False, trans_b=True)

                @T.inline
                def multiply_scores(t, stage):
                    for kk in T.unroll(D // 16):
                        step: T.let = kk // 4 * (BN * HALF * 2 // 16) + kk % 4 * 2
                        T.ptx.tcgen05.mma(
                            base + T.cast(t * BN, "uint32"), q_desc[0] + T.cast(t * (BM * D * 2 // 16) + step, "uint64"),
                            k_desc[0] + T.cast(stage * (BN * D * 2 // 16) + step, "uint64"), s_desc[0],
                            d_dtype="float32", a_dtype="bfloat16", b_dtype="bfloat16", use_a_tmem=False, cta_group=1,
                            enable_input_d=0 if kk == 0 else 1)
                    scores_ready.arrive(t)

                @T.inline
                def multiply_values(t, stage, keep):
                    for kk in T.unroll(BN // 16):
                        T.ptx.tcgen05.mma(
                            base + T.cast(SUMS + t * D, "uint32"), base + T.cast(t * BN + kk * 8, "uint32"),
                            v_desc[0] + T.cast(stage * (BN * D * 2 // 16) + kk * 128, "uint64"), o_desc[0],
                            d_dtype="float32", a_dtype="bfloat16", b_dtype="bfloat16", use_a_tmem=True, cta_group=1,
                            enable_input_d=keep if kk == 0 else 1)

                key = PipelineState(STAGES, 0)
                value = PipelineState(STAGES, 0)
                keys.full.wait(key.stage, key.phase)
                for t in T.unroll(2):
                    queries.wait(t, 0)
                    multiply_scores(t, key.stage)
                keys.empty.arrive(key.stage)
                key.advance()
                for j in T.serial(BLOCKS):
                    values.full.wait(value.stage, value.phase)
                    for t in T.unroll(2):
                        weights_ready.wait(t, j % 2)
                        T.ptx.tcgen05.fence.after_thread_sync()
                        multiply_values(t, value.stage, T.if_then_else(j > 0, 1, 0))
                        if j + 1 < BLOCKS:
                            if t == 0:
                                keys.full.wait(key.stage, key.phase)
                            # These scores overwrite weights that the earlier products have read.
                            multiply_scores(t, key.stage)
                        else:
                            sums_ready.arrive(t)
                    values.empty.arrive(value.stage)
                    value.advance()
                    if j + 1 < BLOCKS:
                        keys.empty.arrive(key.stage)
                        key.advance()
    elif wg == 2:
        T.ptx.setmaxnreg(False, 80)
        part = T.alloc_local((32,), "float32")
        for t in T.unroll(2):
            weights_ready.arrive(t)
        for j in T.serial(1, BLOCKS):
            for t in T.unroll(2):
                factor_ready.wait(t, (j - 1) % 2)
                factor: T.let = scales[t, row]
                # The scores behind this factor were computed after the earlier products: none is in flight.
                T.ptx.tcgen05.fence.after_thread_sync()
                for c in T.unroll(D // 32):
                    T.ptx.tcgen05.ld(base, *[part[i] for i in range(32)], shape="32x32b", num=32, row=warp * 32,
                                     col=SUMS + t * D + c * 32)
                    T.ptx.tcgen05.wait.ld()
                    for i in T.unroll(32):
                        part[i] = part[i] * factor
                    T.ptx.tcgen05.st(base, *[part[i] for i in range(32)], shape="32x32b", num=32, row=warp * 32,
                                     col=SUMS + t * D + c * 32)
                T.ptx.tcgen05.wait.st()
                T.ptx.tcgen05.fence.before_thread_sync()
                weights_ready.arrive(t)
        for t in T.unroll(2):
            total_ready.wait(t, 0)
            inverse: T.let = T.float32(1) / totals[t, row]
            sums_ready.wait(t, 0)
            T.ptx.tcgen05.fence.after_thread_sync()
            for c in T.unroll(D // 32):
                T.ptx.tcgen05.ld(base, *[part[i] for i in range(32)], shape="32x32b", num=32, row=warp * 32,
                                 col=SUMS + t * D + c * 32)
                T.ptx.tcgen05.wait.ld()
                for i in T.unroll(32):
                    part[i] = part[i] * inverse
                for i in T.unroll(8):
                    for e in T.vectorized(4):
                        O[head * S + block * (2 * BM) + t * BM + row, c * 32 + i * 4 + e] = T.cast(part[i * 4 + e], "bfloat16")
    else:
        T.ptx.setmaxnreg(True, 184)
        scores = T.alloc_local((BN,), "float32")
        weights = T.alloc_local((BN // 2,), "uint32")
        most: T.float32 = -1e30
        total: T.float32 = 0.0
        for j in T.serial(BLOCKS):
            scores_ready.wait(wg, j % 2)
            T.ptx.tcgen05.fence.after_thread_sync()
            for c in T.unroll(BN // 32):
                T.ptx.tcgen05.ld(base, *[scores[c * 32 + i] for i in range(32)], shape="32x32b", num=32, row=warp * 32,
                                 col=wg * BN + c * 32)
            T.ptx.tcgen05.wait.ld()
            top: T.float32 = most
            for i in T.unroll(BN):
                top = T.max(top, scores[i])
            if j > 0:
                scales[wg, row] = T.ptx.exp2((most - top) * T.float32(SCALE))
                factor_ready.arrive(wg)
            total = total * T.ptx.exp2((most - top) * T.float32(SCALE))
            most = top
            for i in T.unroll(BN):
                scores[i] = T.ptx.exp2(scores[i] * T.float32(SCALE) - top * T.float32(SCALE))
                total = total + scores[i]
            for i in T.unroll(BN // 2):
                weights[i] = T.cuda.float22bfloat162_rn(scores[i * 2], scores[i * 2 + 1])
            for c in T.unroll(2):
                T.ptx.tcgen05.st(base, *[weights[c * 32 + i] for i in range(32)], shape="32x32b", num=32, row=warp * 32,
                                 col=wg * BN + c * 32)
            T.ptx.tcgen05.wait.st()
            T.ptx.tcgen05.fence.before_thread_sync()
            weights_ready.arrive(wg)
        totals[wg, row] = total
        total_ready.arrive(wg)
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    if wg == 3 and warp == 0:
        T.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
        T.ptx.tcgen05.dealloc(base, n_cols=512, cta_group=1)
