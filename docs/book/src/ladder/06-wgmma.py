from __future__ import annotations

from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx

BM, BN, BK = 128, 128, 64


# sim: wgmma(M=128, N=128, K=128)
#   A: bfloat16[128x128] = 2 * (j == i % 128) + (j == (i * 5 + 17) % 128)
#   B: bfloat16[128x128] = (i + j * 2) % 5 - 2
#   C: bfloat16[128x128] = 0 -> 2 * B[j][i % 128] + B[j][(i * 5 + 17) % 128]
@T.jit
def wgmma(A: T.Buffer((M, K), "bfloat16"), B: T.Buffer((N, K), "bfloat16"), C: T.Buffer((M, N), "bfloat16"), *,
          M: T.constexpr, N: T.constexpr, K: T.constexpr):
    """C = A B^T: one thread lets the copy engine fetch a tile, and two warpgroups multiply 64 rows each with wgmma."""
    T.static_assert(M % BM == 0 and N % BN == 0 and K % BK == 0, "the tiles must divide the matrices")
    T.device_entry()
    bx, by = T.cta_id([N // BN, M // BM])
    tid = T.thread_id([256])
    group = T.warpgroup_id([2])
    pool = T.SMEMPool()
    As = pool.alloc_tcgen05_mma_AB((BM, BK), "bfloat16")
    Bs = pool.alloc_tcgen05_mma_AB((BN, BK), "bfloat16")
    full = pool.alloc((1,), "uint64", align=8)
    pool.commit()
    if tid == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    row: T.let = group * 64
    sums = T.alloc_tcgen05_ldst_frag("16x256b", (64, BN), "float32")
    rounded = T.alloc_local((64, BN), "bfloat16", layout=sums.layout)
    for k in range(K // BK):
        if tid == 0:
            T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), (BM + BN) * BK * 2)
            Tx.copy_async(As, A[by * BM : by * BM + BM, k * BK : k * BK + BK], mbar=full.ptr_to([0]))
            Tx.copy_async(Bs, B[bx * BN : bx * BN + BN, k * BK : k * BK + BK], mbar=full.ptr_to([0]))
        T.ptx.mbarrier.try_wait(full.ptr_to([0]), k % 2)
        Tx.wg.gemm_async(sums, As[row : row + 64, :], Bs, accum=k > 0)
        T.ptx.wgmma.commit_group()
        T.ptx.wgmma.wait_group(0)
        T.cuda.cta_sync()                            # both warpgroups have read the tiles
    Tx.wg.cast(rounded, sums)
    Tx.wg.copy(C[by * BM + row : by * BM + row + 64, bx * BN : bx * BN + BN], rounded)
