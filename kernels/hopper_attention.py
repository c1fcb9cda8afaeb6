"""FlashAttention forward for Hopper: O = softmax(Q K^T / sqrt(D)) V in bfloat16, D = 128, without a mask."""
from __future__ import annotations
import math
from tvm.script import tirx as T

BM, BN, D = 128, 128, 128
HALF = 64
STAGES = 2
SCALE = math.log2(math.e) / math.sqrt(D)


@T.jit
def hopper_attention(Q: T.Buffer((H * S, D), "bfloat16"), K: T.Buffer((H * S, D), "bfloat16"), V: T.Buffer((H * S, D), "bfloat16"),
                     O: T.Buffer((H * S, D), "bfloat16"), *, H: T.constexpr, S: T.constexpr):
    Q_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    K_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    V_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", Q_map, "bfloat16", 2, Q.data, D, H * S, D * 2, HALF, BM, 1, 1, 0, 3, 2, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", K_map, "bfloat16", 2, K.data, D, H * S, D * 2, HALF, BN, 1, 1, 0, 3, 2, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", V_map, "bfloat16", 2, V.data, D, H * S, D * 2, HALF, BN, 1, 1, 0, 3, 2, 0)

    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
    block, head = T.cta_id([S // BM, H])
    wg = T.warpgroup_id([3])
    warp = T.warp_id_in_wg([4])
    lane = T.lane_id([32])

    pool = T.SMEMPool()
    Qs = pool.alloc((2, BM, HALF), "bfloat16", align=1024)
    Ks = pool.alloc((STAGES, 2, BN, HALF), "bfloat16", align=1024)
    Vs = pool.alloc((STAGES, 2, BN, HALF), "bfloat16", align=1024)
    q_full = pool.alloc((1,), "uint64", align=8)
    k_full = pool.alloc((STAGES,), "uint64", align=8)
    k_empty = pool.alloc((STAGES,), "uint64", align=8)
    v_full = pool.alloc((STAGES,), "uint64", align=8)
    v_empty = pool.alloc((STAGES,), "uint64", align=8)
    pool.commit()

    if wg == 0 and warp == 0:
        if T.ptx.elect_sync():
            T.ptx.mbarrier.init(q_full.ptr_to([0]), 1)
            for s in T.unroll(STAGES):
                T.ptx.mbarrier.init(k_full.ptr_to([s]), 1)
                T.ptx.mbarrier.init(v_full.ptr_to([s]), 1)
                T.ptx.mbarrier.init(k_empty.ptr_to([s]), 2)
                T.ptx.mbarrier.init(v_empty.ptr_to([s]), 2)
            T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()

    if wg == 0:
        T.ptx.setmaxnreg(False, 24)
        if warp == 0:
            if T.ptx.elect_sync():
                T.ptx.mbarrier.arrive.expect_tx(q_full.ptr_to([0]), BM * D * 2)
                for h in T.unroll(2):
                    T.ptx.cp_async.bulk.tensor.g2s_cluster(2, Qs.ptr_to([h, 0, 0]), q_full.ptr_to([0]), T.address_of(Q_map), 0, 1, "",
                                                           h * HALF, head * S + block * BM)
                for j in T.serial(S // BN):
                    s: T.let = j % STAGES
                    p: T.let = j // STAGES % 2
                    T.ptx.mbarrier.try_wait(k_empty.ptr_to([s]), p ^ 1)
                    T.ptx.mbarrier.arrive.expect_tx(k_full.ptr_to([s]), BN * D * 2)
                    for h in T.unroll(2):
                        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, Ks.ptr_to([s, h, 0, 0]), k_full.ptr_to([s]), T.address_of(K_map), 0, 1, "",
                                                               h * HALF, head * S + j * BN)
                    T.ptx.mbarrier.try_wait(v_empty.ptr_to([s]), p ^ 1)
                    T.ptx.mbarrier.arrive.expect_tx(v_full.ptr_to([s]), BN * D * 2)
                    for h in T.unroll(2):
                        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, Vs.ptr_to([s, h, 0, 0]), v_full.ptr_to([s]), T.address_of(V_map), 0, 1, "",
                                                               h * HALF, head * S + j * BN)
    else:
        T.ptx.setmaxnreg(True, 240)
        scores = T.alloc_local((BN // 2,), "float32")
        acc = T.alloc_local((D // 2,), "float32")
        probs = T.alloc_local((BN // 4,), "uint32")
        row_max = T.alloc_local((2,), "float32")
        row_sum = T.alloc_local((2,), "float32")
        scale = T.alloc_local((2,), "float32")
        q_desc = T.alloc_local((1,), "uint64")
        k_desc = T.alloc_local((1,), "uint64")
        v_desc = T.alloc_local((1,), "uint64")
        T.ptx.wgmma.encode_matrix_descriptor(T.address_of(q_desc[0]), Qs.ptr_to([0, (wg - 1) * 64, 0]), 1, 64, 3)
        T.ptx.wgmma.encode_matrix_descriptor(T.address_of(k_desc[0]), Ks.ptr_to([0, 0, 0, 0]), 1, 64, 3)
        T.ptx.wgmma.encode_matrix_descriptor(T.address_of(v_desc[0]), Vs.ptr_to([0, 0, 0, 0]), BN * HALF * 2 // 16, 64, 3)

        @T.inline
        def multiply_scores(s):
            T.ptx.wgmma.fence()
            for kk in T.unroll(D // 16):
                T.ptx.wgmma.mma_async.ss(
                    q_desc[0] + T.cast(kk // 4 * (BM * HALF * 2 // 16) + kk % 4 * 2, "uint64"),
                    k_desc[0] + T.cast(s * (BN * D * 2 // 16) + kk // 4 * (BN * HALF * 2 // 16) + kk % 4 * 2, "uint64"),
                    *[scores[i] for i in range(BN // 2)],
                    M=64, N=BN, K=16, in_dtype="bfloat16", out_dtype="float32", transA=False, transB=False, scaleA=1.0, scaleB=1.0,
                    scaleD=T.if_then_else(T.bool(kk == 0), 0, 1))
            T.ptx.wgmma.commit_group()

        @T.inline
        def multiply_values(s, keep):
            T.ptx.wgmma.fence()
            for kk in T.unroll(BN // 16):
                T.ptx.wgmma.mma_async.rs(
                    v_desc[0] + T.cast(s * (BN * D * 2 // 16) + kk * 128, "uint64"),
                    *[probs[kk * 4 + i] for i in range(4)], *[acc[i] for i in range(D // 2)],
                    M=64, N=D, K=16, in_dtype="bfloat16", out_dtype="float32", transA=False, transB=True, scaleA=1.0, scaleB=1.0,
                    scaleD=T.if_then_else(T.bool(kk == 0), keep, 1))
            T.ptx.wgmma.commit_group()

        @T.inline
        def softmax():
            for h in T.unroll(2):
                top: T.float32 = row_max[h]
                for j in T.unroll(BN // 8):
                    for e in T.unroll(2):
                        top = T.max(top, scores[j * 4 + h * 2 + e])
                top = T.max(top, T.tvm_warp_shuffle_xor(0xFFFFFFFF, top, 1, 32, 32))
                top = T.max(top, T.tvm_warp_shuffle_xor(0xFFFFFFFF, top, 2, 32, 32))
                scale[h] = T.ptx.exp2((row_max[h] - top) * T.float32(SCALE))
                row_max[h] = top
                shift: T.let = top * T.float32(SCALE)
                row_sum[h] = row_sum[h] * scale[h]
                for j in T.unroll(BN // 8):
                    for e in T.unroll(2):
                        scores[j * 4 + h * 2 + e] = T.ptx.exp2(scores[j * 4 + h * 2 + e] * T.float32(SCALE) - shift)
                        row_sum[h] = row_sum[h] + scores[j * 4 + h * 2 + e]

        @T.inline
        def pack():
            for j in T.unroll(BN // 8):
                for h in T.unroll(2):
                    probs[j * 2 + h] = T.cuda.float22bfloat162_rn(scores[j * 4 + h * 2], scores[j * 4 + h * 2 + 1])

        for h in T.unroll(2):
            row_max[h] = T.float32(-1e30)
            row_sum[h] = T.float32(0)
        for i in T.unroll(D // 2):
            acc[i] = T.float32(0)

        T.ptx.mbarrier.try_wait(q_full.ptr_to([0]), 0)
        T.ptx.mbarrier.try_wait(k_full.ptr_to([0]), 0)
        multiply_scores(0)
        T.ptx.wgmma.wait_group(0)
        if warp == 0 and lane == 0:
            T.ptx.mbarrier.arrive(k_empty.ptr_to([0]))
        softmax()
        pack()
        for j in T.serial(S // BN - 1):
            s: T.let = j % STAGES
            p: T.let = j // STAGES % 2
            s1: T.let = (j + 1) % STAGES
            p1: T.let = (j + 1) // STAGES % 2
            T.ptx.mbarrier.try_wait(k_full.ptr_to([s1]), p1)
            multiply_scores(s1)
            T.ptx.mbarrier.try_wait(v_full.ptr_to([s]), p)
            multiply_values(s, 1)
            T.ptx.wgmma.wait_group(1)
            if warp == 0 and lane == 0:
                T.ptx.mbarrier.arrive(k_empty.ptr_to([s1]))
            softmax()
            T.ptx.wgmma.wait_group(0)
            if warp == 0 and lane == 0:
                T.ptx.mbarrier.arrive(v_empty.ptr_to([s]))
            for j2 in T.unroll(D // 8):
                for h in T.unroll(2):
                    for e in T.unroll(2):
                        acc[j2 * 4 + h * 2 + e] = acc[j2 * 4 + h * 2 + e] * scale[h]
            pack()
        last: T.let = S // BN - 1
        T.ptx.mbarrier.try_wait(v_full.ptr_to([last % STAGES]), last // STAGES % 2)
        multiply_values(last % STAGES, 1)
        T.ptx.wgmma.wait_group(0)
        row: T.let = head * S + block * BM + (wg - 1) * 64 + warp * 16 + lane // 4
        for h in T.unroll(2):
            total: T.float32 = row_sum[h]
            total = total + T.tvm_warp_shuffle_xor(0xFFFFFFFF, total, 1, 32, 32)
            total = total + T.tvm_warp_shuffle_xor(0xFFFFFFFF, total, 2, 32, 32)
            inverse: T.let = T.float32(1) / total
            for j in T.unroll(D // 8):
                for e in T.vectorized(2):
                    O[row + h * 8, j * 8 + lane % 4 * 2 + e] = T.cast(acc[j * 4 + h * 2 + e] * inverse, "bfloat16")
