from __future__ import annotations

from tvm.backend.cuda.lang import ClusterPersistentScheduler2D, Pipeline, PipelineState
from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode, mma_shared_layout
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx

BM, BN, BK, CHUNK = 128, 256, 64, 64


# sim: stores(M=128, N=512, K=64, STAGES=2, CTAS=1)
#   A: bfloat16[128x64] = 2 * (j == i % 64) + (j == (i * 5 + 17) % 64)
#   B: bfloat16[512x64] = (i + j * 2) % 5 - 2
#   C: bfloat16[128x512] = 0 -> 2 * B[j][i % 64] + B[j][(i * 5 + 17) % 64]
@T.jit
def stores(A: T.Buffer((M, K), "bfloat16"), B: T.Buffer((N, K), "bfloat16"), C: T.Buffer((M, N), "bfloat16"), *,
           M: T.constexpr, N: T.constexpr, K: T.constexpr, STAGES: T.constexpr = 4, CTAS: T.constexpr = 132):
    """C = A B^T: chunks of the result go through shared memory, and the copy engine stores them meanwhile."""
    T.static_assert(M % BM == 0 and N % BN == 0 and K % BK == 0, "the tiles must divide the matrices")
    T.device_entry()
    tid = T.thread_id([384])
    group = T.warpgroup_id([3])
    pool = T.SMEMPool()
    As = pool.alloc_tcgen05_mma_AB((STAGES, BM, BK), "bfloat16")
    Bs = pool.alloc_tcgen05_mma_AB((STAGES, BN, BK), "bfloat16")
    layout = T.meta_var(mma_shared_layout("bfloat16", SwizzleMode.SWIZZLE_128B_ATOM, (2, 2, 64, CHUNK)))
    Cs = pool.alloc((2, 2, 64, CHUNK), "bfloat16", layout=layout, align=1024)
    pipe = Pipeline(pool, STAGES, full="tma", empty="mbar", init_empty=8, empty_phase_offset=1)
    pool.commit()
    T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    ring = PipelineState(STAGES, 0)
    tile = ClusterPersistentScheduler2D("tile", M // BM, N // BN, CTAS, l2_group_size=16)
    tile.init(T.cta_id([min(CTAS, M // BM * (N // BN))]))
    if group == 0:
        T.ptx.setmaxnreg(False, 40)
        while tid == 0 and tile.valid():
            m: T.let = tile.m_idx * BM
            n: T.let = tile.n_idx * BN
            for k in range(0, K, BK):
                pipe.empty.wait(ring.stage, ring.phase)
                pipe.full.arrive(ring.stage, (BM + BN) * BK * 2)
                bar: T.let = pipe.full.ptr_to([ring.stage])
                Tx.copy_async(As[ring.stage], A[m : m + BM, k : k + BK], mbar=bar)
                Tx.copy_async(Bs[ring.stage], B[n : n + BN, k : k + BK], mbar=bar)
                ring.advance()
            tile.next_tile()
    else:
        T.ptx.setmaxnreg(True, 232)
        row: T.let = (group - 1) * 64
        sums = T.alloc_tcgen05_ldst_frag("16x256b", (64, BN), "float32")
        rounded = T.alloc_local((64, BN), "bfloat16", layout=sums.layout)
        while tile.valid():
            m: T.let = tile.m_idx * BM + row
            n: T.let = tile.n_idx * BN
            for k in range(0, K, BK):
                pipe.full.wait(ring.stage, ring.phase)
                Tx.wg.gemm_async(sums, As[ring.stage, row : row + 64, :], Bs[ring.stage], accum=k > 0)
                T.ptx.wgmma.commit_group()
                T.ptx.wgmma.wait_group(1)
                if k > 0 and tid % 32 == 0:
                    pipe.empty.arrive((ring.stage + STAGES - 1) % STAGES)
                ring.advance()
            T.ptx.wgmma.wait_group(0)
            if tid % 32 == 0:
                pipe.empty.arrive((ring.stage + STAGES - 1) % STAGES)
            Tx.wg.cast(rounded, sums)
            for j in T.unroll(BN // CHUNK):
                if tid % 128 == 0:                   # the store of two chunks ago has read its buffer
                    T.ptx.cp_async.bulk.wait_group(1, True)
                T.cuda.warpgroup_sync(8 + group)
                Tx.wg.copy(Cs[group - 1, j % 2], rounded[:, j * CHUNK : j * CHUNK + CHUNK])
                T.ptx.fence.proxy_async("shared::cta")
                T.cuda.warpgroup_sync(8 + group)
                if tid % 128 == 0:
                    Tx.copy_async(C[m : m + 64, n + j * CHUNK : n + j * CHUNK + CHUNK], Cs[group - 1, j % 2])
                    T.ptx.cp_async.bulk.commit_group()
            tile.next_tile()
        if tid % 128 == 0:
            T.ptx.cp_async.bulk.wait_group(0, False)
