"""Kernels over matrices: transpose and product through shared memory."""
from __future__ import annotations
from tvm.script import tirx as T
@T.jit
def matmul(A: T.Buffer((M, K), "float32"), B: T.Buffer((K, N), "float32"), C: T.Buffer((M, N), "float32"), *,
           M: T.constexpr, N: T.constexpr, K: T.constexpr, BM: T.constexpr = 64, BN: T.constexpr = 64,
           BK: T.constexpr = 16):
    """C = A B by BM x BN tiles: 256 threads hold (BM / 16) x (BN / 16) sums each, operands pass through shared memory."""
    TM = T.meta_var(BM // 16)
    TN = T.meta_var(BN // 16)
    T.static_assert(M % BM == 0 and N % BN == 0 and K % BK == 0, "the tiles must divide the matrices")
    T.device_entry()
    bx, by = T.cta_id([N // BN, M // BM])
    tid = T.thread_id([256])
    tx: T.let = tid % 16
    ty: T.let = tid // 16
    As = T.alloc_shared((BM, BK + 1), "float32")
    Bs = T.alloc_shared((BK, BN), "float32")
    acc = T.alloc_local((TM, TN), "float32")
    a = T.alloc_local((TM,), "float32")
    b = T.alloc_local((TN,), "float32")
    for i, j in T.grid(TM, TN):
        acc[i, j] = 0.0
    for k in range(K // BK):
        for l in T.unroll(BM * BK // 256):
            As[(l * 256 + tid) // BK, (l * 256 + tid) % BK] = A[by * BM + (l * 256 + tid) // BK, k * BK + (l * 256 + tid) % BK]
        for l in T.unroll(BK * BN // 256):
            Bs[(l * 256 + tid) // BN, (l * 256 + tid) % BN] = B[k * BK + (l * 256 + tid) // BN, bx * BN + (l * 256 + tid) % BN]
        T.cuda.cta_sync()
        for kk in range(BK):
            for i in T.unroll(TM):
                a[i] = As[ty * TM + i, kk]
            for j in T.unroll(TN):
                b[j] = Bs[kk, tx + j * 16]
            for i in T.unroll(TM):
                for j in T.unroll(TN):
                    acc[i, j] += a[i] * b[j]
        T.cuda.cta_sync()
    for i in T.unroll(TM):
        for j in T.unroll(TN):
            C[by * BM + ty * TM + i, bx * BN + tx + j * 16] = acc[i, j]
