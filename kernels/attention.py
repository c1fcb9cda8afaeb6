"""Attention for Hopper: softmax(Q K^T) V with warpgroup matrix operations, one pass over the keys."""

from __future__ import annotations

from tvm.script import tirx as T


@T.jit
def attention(Q: T.Buffer((H * S, 128), "bfloat16"), K: T.Buffer((H * S, 128), "bfloat16"),
              V: T.Buffer((H * S, 128), "bfloat16"), O: T.Buffer((H * S, 128), "bfloat16"), *,
              H: T.constexpr, S: T.constexpr, STAGES: T.constexpr = 2):
    """O = softmax(Q K^T / sqrt(128)) V for each of H heads: 128 queries per block, 64 for each of two warpgroups."""
    T.static_assert(S % 128 == 0, "whole blocks of keys")
    BLOCKS = T.meta_var(S // 128)
    SCALE = T.meta_var(1.4426950408889634 / 128 ** 0.5)
    Q_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    K_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    V_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", Q_map, "bfloat16", 2, Q.data, 128, H * S, 256, 64, 128, 1, 1, 0, 3, 2, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", K_map, "bfloat16", 2, K.data, 128, H * S, 256, 64, 128, 1, 1, 0, 3, 2, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", V_map, "bfloat16", 2, V.data, 128, H * S, 256, 64, 128, 1, 1, 0, 3, 2, 0)
    T.device_entry()
    block, head = T.cta_id([BLOCKS, H])
    tid = T.thread_id([384])
    # Tiles of 128 rows and 64 columns: a row is one line of the swizzle.
    pool = T.SMEMPool()
    Qs = pool.alloc((2, 128, 64), "bfloat16", align=1024)
    Ks = pool.alloc((STAGES, 2, 128, 64), "bfloat16", align=1024)
    Vs = pool.alloc((STAGES, 2, 128, 64), "bfloat16", align=1024)
    q_full = pool.alloc((1,), "uint64", align=8)
    k_full = pool.alloc((STAGES,), "uint64", align=8)
    k_empty = pool.alloc((STAGES,), "uint64", align=8)
    v_full = pool.alloc((STAGES,), "uint64", align=8)
    v_empty = pool.alloc((STAGES,), "uint64", align=8)
    pool.commit()
    if tid == 0:
        T.ptx.mbarrier.init(q_full.ptr_to([0]), 1)
        for s in T.unroll(STAGES):
            T.ptx.mbarrier.init(k_full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(k_empty.ptr_to([s]), 8)
            T.ptx.mbarrier.init(v_full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(v_empty.ptr_to([s]), 8)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tid < 128:
        T.ptx.setmaxnreg(False, 40)
        if tid == 0:
            T.ptx.mbarrier.arrive.expect_tx(q_full.ptr_to([0]), 128 * 128 * 2)
            for c in T.unroll(2):
                T.ptx.cp_async.bulk.tensor.g2s_cluster(2, Qs.ptr_to([c, 0, 0]), q_full.ptr_to([0]), T.address_of(Q_map), 0, 1,
                                                       "", c * 64, head * S + block * 128)
            for b in range(BLOCKS):
                stage: T.let = b % STAGES
                phase: T.let = b // STAGES % 2
                T.ptx.mbarrier.try_wait(k_empty.ptr_to([stage]), phase ^ 1)
                T.ptx.mbarrier.arrive.expect_tx(k_full.ptr_to([stage]), 128 * 128 * 2)
                for c in T.unroll(2):
                    T.ptx.cp_async.bulk.tensor.g2s_cluster(2, Ks.ptr_to([stage, c, 0, 0]), k_full.ptr_to([stage]),
                                                           T.address_of(K_map), 0, 1, "", c * 64, head * S + b * 128)
                T.ptx.mbarrier.try_wait(v_empty.ptr_to([stage]), phase ^ 1)
                T.ptx.mbarrier.arrive.expect_tx(v_full.ptr_to([stage]), 128 * 128 * 2)
                for c in T.unroll(2):
                    T.ptx.cp_async.bulk.tensor.g2s_cluster(2, Vs.ptr_to([stage, c, 0, 0]), v_full.ptr_to([stage]),
                                                           T.address_of(V_map), 0, 1, "", c * 64, head * S + b * 128)
    else:
        T.ptx.setmaxnreg(True, 232)
        group: T.let = tid // 128 - 1
        warp: T.let = tid // 32 % 4
        lane: T.let = tid % 32
        scores = T.alloc_local((64,), "float32")
        out = T.alloc_local((64,), "float32")
        weights = T.alloc_local((32,), "uint32")
        most = T.alloc_local((2,), "float32")
        total = T.alloc_local((2,), "float32")
        high = T.alloc_local((2,), "float32")
        keep = T.alloc_local((2,), "float32")
        desc = T.alloc_local((3,), "uint64")
        T.ptx.wgmma.encode_matrix_descriptor(desc.ptr_to([0]), Qs.ptr_to([0, group * 64, 0]), 1, 64, 3)
        T.ptx.wgmma.encode_matrix_descriptor(desc.ptr_to([1]), Ks.ptr_to([0, 0, 0, 0]), 1, 64, 3)
        # V is read by columns: 64 of them per tile, the next tile 16 KiB on.
        T.ptx.wgmma.encode_matrix_descriptor(desc.ptr_to([2]), Vs.ptr_to([0, 0, 0, 0]), 1024, 64, 3)
        for i in T.unroll(64):
            out[i] = 0.0
        for h in T.unroll(2):
            most[h] = -1e30
            total[h] = 0.0
        T.ptx.mbarrier.try_wait(q_full.ptr_to([0]), 0)
        for b in range(BLOCKS):
            stage: T.let = b % STAGES
            phase: T.let = b // STAGES % 2
            T.ptx.mbarrier.try_wait(k_full.ptr_to([stage]), phase)
            T.ptx.wgmma.fence()
            for kk in T.unroll(8):
                T.ptx.wgmma.mma_async.ss(
                    desc[0] + T.cast(kk // 4 * 1024 + kk % 4 * 2, "uint64"),
                    desc[1] + T.cast(stage * 2048 + kk // 4 * 1024 + kk % 4 * 2, "uint64"),
                    *[scores[i] for i in range(64)], M=64, N=128, K=16, in_dtype="bfloat16", out_dtype="float32",
                    transA=False, transB=False, scaleA=1.0, scaleB=1.0, scaleD=T.if_then_else(kk > 0, 1, 0))
            T.ptx.wgmma.commit_group()
            T.ptx.wgmma.wait_group(0)
            if lane == 0:
                T.ptx.mbarrier.arrive(k_empty.ptr_to([stage]))
            # A thread has half of the columns of 4 of two rows; the other three lanes of four have the rest.
            for h in T.unroll(2):
                high[h] = most[h]
                for j in T.unroll(16):
                    high[h] = T.max(high[h], T.max(scores[j * 4 + h * 2], scores[j * 4 + h * 2 + 1]))
                high[h] = T.max(high[h], T.tvm_warp_shuffle_xor(0xFFFFFFFF, high[h], 1, 32, 32))
                high[h] = T.max(high[h], T.tvm_warp_shuffle_xor(0xFFFFFFFF, high[h], 2, 32, 32))
                keep[h] = T.ptx.exp2((most[h] - high[h]) * T.float32(SCALE))
                most[h] = high[h]
                total[h] = total[h] * keep[h]
                for j in T.unroll(16):
                    for e in T.unroll(2):
                        scores[j * 4 + h * 2 + e] = T.ptx.exp2(scores[j * 4 + h * 2 + e] * T.float32(SCALE) - high[h] * T.float32(SCALE))
                        total[h] = total[h] + scores[j * 4 + h * 2 + e]
                for j in T.unroll(16):
                    weights[j * 2 + h] = T.cuda.float22bfloat162_rn(scores[j * 4 + h * 2], scores[j * 4 + h * 2 + 1])
                    for e in T.unroll(2):
                        out[j * 4 + h * 2 + e] = out[j * 4 + h * 2 + e] * keep[h]
            T.ptx.mbarrier.try_wait(v_full.ptr_to([stage]), phase)
            T.ptx.wgmma.fence()
            for kk in T.unroll(8):
                T.ptx.wgmma.mma_async.rs(
                    desc[2] + T.cast(stage * 2048 + kk * 128, "uint64"),
                    *[weights[kk * 4 + i] for i in range(4)], *[out[i] for i in range(64)],
                    M=64, N=128, K=16, in_dtype="bfloat16", out_dtype="float32", transA=False, transB=True,
                    scaleA=1.0, scaleB=1.0, scaleD=1)
            T.ptx.wgmma.commit_group()
            T.ptx.wgmma.wait_group(0)
            if lane == 0:
                T.ptx.mbarrier.arrive(v_empty.ptr_to([stage]))
        for h in T.unroll(2):
            total[h] = total[h] + T.tvm_warp_shuffle_xor(0xFFFFFFFF, total[h], 1, 32, 32)
            total[h] = total[h] + T.tvm_warp_shuffle_xor(0xFFFFFFFF, total[h], 2, 32, 32)
            for j in T.unroll(16):
                for e in T.vectorized(2):
                    O[head * S + block * 128 + group * 64 + warp * 16 + lane // 4 + h * 8, j * 8 + lane % 4 * 2 + e] = T.cast(
                        out[j * 4 + h * 2 + e] / total[h], "bfloat16")
