"""A matrix product for Hopper whose tiles are copied by tile primitives: the tensor maps, boxes and swizzles follow from layouts."""

from __future__ import annotations

from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode, mma_shared_layout
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx


@T.jit
def gemm_tiles(A: T.Buffer((M, K), "bfloat16"), B: T.Buffer((N, K), "bfloat16"), C: T.Buffer((M, N), "bfloat16"), *,
               M: T.constexpr, N: T.constexpr, K: T.constexpr, BM: T.constexpr = 128, BN: T.constexpr = 256,
               STAGES: T.constexpr = 4, CTAS: T.constexpr = 132, GROUP: T.constexpr = 16):
    """C = A B^T: one thread loads tiles of A and B into a ring of stages, two warpgroups multiply 64 rows each.
    Each block continues with the next tile until all are done."""
    BK = T.meta_var(64)
    T.static_assert(M % BM == 0 and N % BN == 0 and K % BK == 0, "the tiles must divide the matrices")
    MT, NT, KT = T.meta_var(M // BM), T.meta_var(N // BN), T.meta_var(K // BK)
    TILES = T.meta_var(MT * NT)
    GM = T.meta_var(GROUP if MT % GROUP == 0 else MT)
    T.device_entry()
    cta = T.cta_id([min(CTAS, TILES)])
    tid = T.thread_id([384])
    pool = T.SMEMPool()
    As = pool.alloc((STAGES, BM, BK), "bfloat16", align=1024,
                    layout=mma_shared_layout("bfloat16", SwizzleMode.SWIZZLE_128B_ATOM, (STAGES, BM, BK)))
    Bs = pool.alloc((STAGES, BN, BK), "bfloat16", align=1024,
                    layout=mma_shared_layout("bfloat16", SwizzleMode.SWIZZLE_128B_ATOM, (STAGES, BN, BK)))
    full = pool.alloc((STAGES,), "uint64", align=8)
    empty = pool.alloc((STAGES,), "uint64", align=8)
    pool.commit()
    if tid == 0:
        for s in T.unroll(STAGES):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(empty.ptr_to([s]), 8)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    stage: T.int32 = 0
    phase: T.int32 = 0
    tile: T.int32 = cta
    if tid < 128:
        T.ptx.setmaxnreg(False, 40)
        if tid == 0:
            while tile < TILES:
                m: T.let = tile // (GM * NT) * GM + tile % (GM * NT) % GM
                n: T.let = tile % (GM * NT) // GM
                for k in range(KT):
                    T.ptx.mbarrier.try_wait(empty.ptr_to([stage]), phase ^ 1)
                    T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([stage]), (BM + BN) * BK * 2)
                    Tx.copy_async(As[stage], A[m * BM : m * BM + BM, k * BK : k * BK + BK], mbar=full.ptr_to([stage]))
                    Tx.copy_async(Bs[stage], B[n * BN : n * BN + BN, k * BK : k * BK + BK], mbar=full.ptr_to([stage]))
                    stage = stage + 1
                    if stage == STAGES:
                        stage = 0
                        phase = phase ^ 1
                tile = tile + CTAS
    else:
        T.ptx.setmaxnreg(True, 232)
        group: T.let = tid // 128 - 1
        warp: T.let = tid // 32 % 4
        lane: T.let = tid % 32
        acc = T.alloc_local((BN // 2,), "float32")
        a_desc = T.alloc_local((1,), "uint64")
        b_desc = T.alloc_local((1,), "uint64")
        T.ptx.wgmma.encode_matrix_descriptor(a_desc.data, As.ptr_to([0, group * 64, 0]), 1, 64, 3)
        T.ptx.wgmma.encode_matrix_descriptor(b_desc.data, Bs.ptr_to([0, 0, 0]), 1, 64, 3)
        previous: T.int32 = 0
        while tile < TILES:
            m: T.let = tile // (GM * NT) * GM + tile % (GM * NT) % GM
            n: T.let = tile % (GM * NT) // GM
            for k in range(KT):
                T.ptx.mbarrier.try_wait(full.ptr_to([stage]), phase)
                T.ptx.wgmma.fence()
                for kk in T.unroll(BK // 16):
                    T.ptx.wgmma.mma_async.ss(
                        a_desc[0] + T.cast(stage * (BM * BK * 2 // 16) + kk * 2, "uint64"),
                        b_desc[0] + T.cast(stage * (BN * BK * 2 // 16) + kk * 2, "uint64"),
                        *[acc[i] for i in range(BN // 2)],
                        M=64, N=BN, K=16, in_dtype="bfloat16", out_dtype="float32", transA=False, transB=False,
                        scaleA=1.0, scaleB=1.0, scaleD=T.if_then_else(k + kk > 0, 1, 0))
                T.ptx.wgmma.commit_group()
                T.ptx.wgmma.wait_group(1)
                if k > 0 and lane == 0:
                    T.ptx.mbarrier.arrive(empty.ptr_to([previous]))
                previous = stage
                stage = stage + 1
                if stage == STAGES:
                    stage = 0
                    phase = phase ^ 1
            T.ptx.wgmma.wait_group(0)
            if lane == 0:
                T.ptx.mbarrier.arrive(empty.ptr_to([previous]))
            for j in T.unroll(BN // 8):
                for h in T.unroll(2):
                    for e in T.vectorized(2):
                        C[m * BM + group * 64 + warp * 16 + lane // 4 + h * 8, n * BN + j * 8 + lane % 4 * 2 + e] = T.cast(
                            acc[j * 4 + h * 2 + e], "bfloat16")
            tile = tile + CTAS
