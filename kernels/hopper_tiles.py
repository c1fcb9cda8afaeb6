"""A matrix product for Hopper by tile primitives: tensor maps, boxes, swizzles and matrix descriptors follow from layouts."""

from __future__ import annotations

from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import S, TileLayout, laneid, wid_in_wg


@T.jit
def gemm_tiles(A: T.Buffer((M, K), "bfloat16"), B: T.Buffer((N, K), "bfloat16"), C: T.Buffer((M, N), "bfloat16"), *,
               M: T.constexpr, N: T.constexpr, K: T.constexpr, BM: T.constexpr = 128, BN: T.constexpr = 256,
               BK: T.constexpr = 64, STAGES: T.constexpr = 4, CTAS: T.constexpr = 132, GROUP: T.constexpr = 16):
    """C = A B^T: one thread loads tiles of A and B into a ring of stages, two warpgroups multiply 64 rows each.
    Each block continues with the next tile until all are done."""
    T.static_assert(M % BM == 0 and N % BN == 0 and K % BK == 0, "the tiles must divide the matrices")
    TILES, NT, GM = T.meta_var(M // BM * (N // BN)), T.meta_var(N // BN), T.meta_var(GROUP if M // BM % GROUP == 0 else M // BM)
    FRAGMENT = T.meta_var(TileLayout(S[(4, 2, 8, BN // 8, 4, 2):(1 @ wid_in_wg, 2, 4 @ laneid, 4, 1 @ laneid, 1)]))
    T.device_entry()
    cta = T.cta_id([min(CTAS, TILES)])
    tid = T.thread_id([384])
    group = T.warpgroup_id([3])
    pool = T.SMEMPool()
    As = pool.alloc_tcgen05_mma_AB((STAGES, BM, BK), "bfloat16")
    Bs = pool.alloc_tcgen05_mma_AB((STAGES, BN, BK), "bfloat16")
    full = pool.alloc((STAGES,), "uint64", align=8)
    empty = pool.alloc((STAGES,), "uint64", align=8)
    pool.commit()
    if tid == 0:
        for s in T.unroll(STAGES):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(empty.ptr_to([s]), 8)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    turn: T.int32 = 0
    tile: T.int32 = cta
    if group == 0:
        T.ptx.setmaxnreg(False, 40)
        if tid == 0:
            while tile < TILES:
                m: T.let = tile // (GM * NT) * GM + tile % (GM * NT) % GM
                n: T.let = tile % (GM * NT) // GM
                for k in range(K // BK):
                    s: T.let = turn % STAGES
                    T.ptx.mbarrier.try_wait(empty.ptr_to([s]), turn // STAGES % 2 ^ 1)
                    T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([s]), (BM + BN) * BK * 2)
                    Tx.copy_async(As[s], A[m * BM : m * BM + BM, k * BK : k * BK + BK], mbar=full.ptr_to([s]))
                    Tx.copy_async(Bs[s], B[n * BN : n * BN + BN, k * BK : k * BK + BK], mbar=full.ptr_to([s]))
                    turn = turn + 1
                tile = tile + CTAS
    else:
        T.ptx.setmaxnreg(True, 232)
        row: T.let = (group - 1) * 64
        sums = T.alloc_buffer((64, BN), "float32", scope="local", layout=FRAGMENT)
        rounded = T.alloc_buffer((64, BN), "bfloat16", scope="local", layout=FRAGMENT)
        while tile < TILES:
            m: T.let = tile // (GM * NT) * GM + tile % (GM * NT) % GM
            n: T.let = tile % (GM * NT) // GM
            for k in range(K // BK):
                s: T.let = turn % STAGES
                T.ptx.mbarrier.try_wait(full.ptr_to([s]), turn // STAGES % 2)
                Tx.wg.gemm_async(sums, As[s, row : row + 64, :], Bs[s], accum=k > 0)
                T.ptx.wgmma.commit_group()
                T.ptx.wgmma.wait_group(1)
                if k > 0 and tid % 32 == 0:
                    T.ptx.mbarrier.arrive(empty.ptr_to([(turn - 1) % STAGES]))
                turn = turn + 1
            T.ptx.wgmma.wait_group(0)
            if tid % 32 == 0:
                T.ptx.mbarrier.arrive(empty.ptr_to([(turn - 1) % STAGES]))
            Tx.wg.cast(rounded, sums)
            Tx.wg.copy(C[m * BM + row : m * BM + row + 64, n * BN : n * BN + BN], rounded)
            tile = tile + CTAS
