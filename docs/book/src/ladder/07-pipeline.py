from __future__ import annotations

from tvm.backend.cuda.lang import Pipeline, PipelineState
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx

BM, BN, BK = 128, 128, 64


# sim: pipeline(M=128, N=128, K=192, STAGES=2)
#   A: bfloat16[128x192] = 2 * (j == i % 192) + (j == (i * 5 + 17) % 192)
#   B: bfloat16[128x192] = (i + j * 2) % 5 - 2
#   C: bfloat16[128x128] = 0 -> 2 * B[j][i % 192] + B[j][(i * 5 + 17) % 192]
@T.jit
def pipeline(A: T.Buffer((M, K), "bfloat16"), B: T.Buffer((N, K), "bfloat16"), C: T.Buffer((M, N), "bfloat16"), *,
             M: T.constexpr, N: T.constexpr, K: T.constexpr, STAGES: T.constexpr = 4):
    """C = A B^T: one thread fills a ring of stages; two warpgroups only wait and multiply."""
    T.static_assert(M % BM == 0 and N % BN == 0 and K % BK == 0, "the tiles must divide the matrices")
    T.device_entry()
    bx, by = T.cta_id([N // BN, M // BM])
    tid = T.thread_id([384])
    group = T.warpgroup_id([3])
    pool = T.SMEMPool()
    As = pool.alloc_tcgen05_mma_AB((STAGES, BM, BK), "bfloat16")
    Bs = pool.alloc_tcgen05_mma_AB((STAGES, BN, BK), "bfloat16")
    pipe = Pipeline(pool, STAGES, full="tma", empty="mbar", init_empty=8, empty_phase_offset=1)
    pool.commit()
    T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    ring = PipelineState(STAGES, 0)
    if group == 0:
        if tid == 0:
            for k in range(K // BK):
                pipe.empty.wait(ring.stage, ring.phase)
                pipe.full.arrive(ring.stage, (BM + BN) * BK * 2)
                bar: T.let = pipe.full.ptr_to([ring.stage])
                Tx.copy_async(As[ring.stage], A[by * BM : by * BM + BM, k * BK : k * BK + BK], mbar=bar)
                Tx.copy_async(Bs[ring.stage], B[bx * BN : bx * BN + BN, k * BK : k * BK + BK], mbar=bar)
                ring.advance()
    else:
        row: T.let = (group - 1) * 64
        sums = T.alloc_tcgen05_ldst_frag("16x256b", (64, BN), "float32")
        rounded = T.alloc_local((64, BN), "bfloat16", layout=sums.layout)
        for k in range(K // BK):
            pipe.full.wait(ring.stage, ring.phase)
            Tx.wg.gemm_async(sums, As[ring.stage, row : row + 64, :], Bs[ring.stage], accum=k > 0)
            T.ptx.wgmma.commit_group()
            T.ptx.wgmma.wait_group(0)
            if tid % 32 == 0:
                pipe.empty.arrive(ring.stage)        # this warp has read the stage
            ring.advance()
        Tx.wg.cast(rounded, sums)
        Tx.wg.copy(C[by * BM + row : by * BM + row + 64, bx * BN : bx * BN + BN], rounded)
