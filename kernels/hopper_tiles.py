"""A matrix product for Hopper by tile primitives: tensor maps, boxes, swizzles and matrix descriptors follow from layouts."""

from __future__ import annotations

from tvm.backend.cuda.lang import ClusterPersistentScheduler2D, MBarrier, PipelineState, TMABar
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
    FRAGMENT = T.meta_var(TileLayout(S[(4, 2, 8, BN // 8, 4, 2):(1 @ wid_in_wg, 2, 4 @ laneid, 4, 1 @ laneid, 1)]))
    T.device_entry()
    cta = T.cta_id([min(CTAS, M // BM * (N // BN))])
    tid = T.thread_id([384])
    group = T.warpgroup_id([3])
    pool = T.SMEMPool()
    As = pool.alloc_tcgen05_mma_AB((STAGES, BM, BK), "bfloat16")
    Bs = pool.alloc_tcgen05_mma_AB((STAGES, BN, BK), "bfloat16")
    full = TMABar(pool, STAGES, leader=tid == 0)
    empty = MBarrier(pool, STAGES, phase_offset=1, leader=tid == 0)
    pool.commit()
    full.init(1)
    empty.init(8)
    T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    ring = PipelineState(STAGES, 0)
    tile = ClusterPersistentScheduler2D("tile", M // BM, N // BN, CTAS, l2_group_size=GROUP)
    tile.init(cta)
    if group == 0:
        T.ptx.setmaxnreg(False, 40)
        if tid == 0:
            while tile.valid():
                for k in range(K // BK):
                    empty.wait(ring.stage, ring.phase)
                    full.arrive(ring.stage, (BM + BN) * BK * 2)
                    Tx.copy_async(As[ring.stage], A[tile.m_idx * BM : tile.m_idx * BM + BM, k * BK : k * BK + BK],
                                  mbar=full.ptr_to([ring.stage]))
                    Tx.copy_async(Bs[ring.stage], B[tile.n_idx * BN : tile.n_idx * BN + BN, k * BK : k * BK + BK],
                                  mbar=full.ptr_to([ring.stage]))
                    ring.advance()
                tile.next_tile()
    else:
        T.ptx.setmaxnreg(True, 232)
        row: T.let = (group - 1) * 64
        sums = T.alloc_buffer((64, BN), "float32", scope="local", layout=FRAGMENT)
        rounded = T.alloc_buffer((64, BN), "bfloat16", scope="local", layout=FRAGMENT)
        while tile.valid():
            for k in range(K // BK):
                full.wait(ring.stage, ring.phase)
                Tx.wg.gemm_async(sums, As[ring.stage, row : row + 64, :], Bs[ring.stage], accum=k > 0)
                T.ptx.wgmma.commit_group()
                T.ptx.wgmma.wait_group(1)
                if k > 0 and tid % 32 == 0:
                    empty.arrive((ring.stage + STAGES - 1) % STAGES)
                ring.advance()
            T.ptx.wgmma.wait_group(0)
            if tid % 32 == 0:
                empty.arrive((ring.stage + STAGES - 1) % STAGES)
            Tx.wg.cast(rounded, sums)
            Tx.wg.copy(C[tile.m_idx * BM + row : tile.m_idx * BM + row + 64, tile.n_idx * BN : tile.n_idx * BN + BN], rounded)
            tile.next_tile()
