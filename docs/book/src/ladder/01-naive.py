from __future__ import annotations

from tvm.script import tirx as T


# sim: naive(M=32, N=32, K=64)
#   A: bfloat16[32x64] = 2 * (j == i % 64) + (j == (i * 5 + 17) % 64)
#   B: bfloat16[32x64] = (i + j * 2) % 5 - 2
#   C: bfloat16[32x32] = 0 -> 2 * B[j][i % 64] + B[j][(i * 5 + 17) % 64]
@T.jit
def naive(A: T.Buffer((M, K), "bfloat16"), B: T.Buffer((N, K), "bfloat16"), C: T.Buffer((M, N), "bfloat16"), *,
          M: T.constexpr, N: T.constexpr, K: T.constexpr):
    """C = A B^T: a thread for each element of C."""
    T.static_assert(M % 16 == 0 and N % 16 == 0, "the blocks must divide the matrices")
    T.device_entry()
    bx, by = T.cta_id([N // 16, M // 16])
    tx, ty = T.thread_id([16, 16])
    row: T.let = by * 16 + ty
    column: T.let = bx * 16 + tx
    total: T.float32 = 0.0
    for k in range(K):
        total += T.cast(A[row, k], "float32") * T.cast(B[column, k], "float32")
    C[row, column] = T.cast(total, "bfloat16")
