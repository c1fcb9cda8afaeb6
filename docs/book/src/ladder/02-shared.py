from __future__ import annotations

from tvm.script import tirx as T


# sim: shared(M=32, N=64, K=64)
#   A: bfloat16[32x64] = 2 * (j == i % 64) + (j == (i * 5 + 17) % 64)
#   B: bfloat16[64x64] = (i + j * 2) % 5 - 2
#   C: bfloat16[32x64] = 0 -> 2 * B[j][i % 64] + B[j][(i * 5 + 17) % 64]
@T.jit
def shared(A: T.Buffer((M, K), "bfloat16"), B: T.Buffer((N, K), "bfloat16"), C: T.Buffer((M, N), "bfloat16"), *,
           M: T.constexpr, N: T.constexpr, K: T.constexpr):
    """C = A B^T: a block loads tiles of 32 x 32 once, and each element serves 32 threads."""
    T.static_assert(M % 32 == 0 and N % 32 == 0 and K % 32 == 0, "the tiles must divide the matrices")
    T.device_entry()
    bx, by = T.cta_id([N // 32, M // 32])
    tx, ty = T.thread_id([32, 32])
    As = T.alloc_shared((32, 33), "float32")         # the pad avoids bank conflicts
    Bs = T.alloc_shared((32, 33), "float32")
    total: T.float32 = 0.0
    for k in range(K // 32):
        As[ty, tx] = T.cast(A[by * 32 + ty, k * 32 + tx], "float32")
        Bs[ty, tx] = T.cast(B[bx * 32 + ty, k * 32 + tx], "float32")
        T.cuda.cta_sync()                            # the tiles are written
        for kk in T.unroll(32):
            total += As[ty, kk] * Bs[tx, kk]
        T.cuda.cta_sync()                            # the tiles are read
    C[by * 32 + ty, bx * 32 + tx] = T.cast(total, "bfloat16")
