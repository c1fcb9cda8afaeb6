from __future__ import annotations

from tvm.script import tirx as T


# sim: registers(M=128, N=128, K=32)
#   A: bfloat16[128x32] = 2 * (j == i % 32) + (j == (i * 5 + 17) % 32)
#   B: bfloat16[128x32] = (i + j * 2) % 5 - 2
#   C: bfloat16[128x128] = 0 -> 2 * B[j][i % 32] + B[j][(i * 5 + 17) % 32]
@T.jit
def registers(A: T.Buffer((M, K), "bfloat16"), B: T.Buffer((N, K), "bfloat16"), C: T.Buffer((M, N), "bfloat16"), *,
              M: T.constexpr, N: T.constexpr, K: T.constexpr):
    """C = A B^T: a thread holds 8 x 8 sums, so 16 loads from shared memory feed 64 multiplications."""
    T.static_assert(M % 128 == 0 and N % 128 == 0 and K % 16 == 0, "the tiles must divide the matrices")
    T.device_entry()
    bx, by = T.cta_id([N // 128, M // 128])
    tid = T.thread_id([256])
    tx: T.let = tid % 16
    ty: T.let = tid // 16
    # K is the row of both tiles: a thread's neighbors are contiguous.
    As = T.alloc_shared((16, 132), "float32", align=16)
    Bs = T.alloc_shared((16, 132), "float32", align=16)
    a = T.alloc_local((8,), "float32")
    b = T.alloc_local((8,), "float32")
    sums = T.alloc_local((8, 8), "float32")
    for i, j in T.grid(8, 8):
        sums[i, j] = 0.0
    row: T.let = tid // 2
    first: T.let = tid % 2 * 8
    wide_a = T.alloc_local((8,), "bfloat16")
    wide_b = T.alloc_local((8,), "bfloat16")
    for k in range(K // 16):
        for e in T.vectorized(8):                    # 16 bytes of a row
            wide_a[e] = A[by * 128 + row, k * 16 + first + e]
        for e in T.vectorized(8):
            wide_b[e] = B[bx * 128 + row, k * 16 + first + e]
        for e in T.unroll(8):
            As[first + e, row] = T.cast(wide_a[e], "float32")
            Bs[first + e, row] = T.cast(wide_b[e], "float32")
        T.cuda.cta_sync()
        for kk in T.unroll(16):
            for half in T.unroll(2):                 # two groups of four neighbors, 64 apart: no bank conflicts
                for e in T.vectorized(4):
                    a[half * 4 + e] = As[kk, half * 64 + ty * 4 + e]
                for e in T.vectorized(4):
                    b[half * 4 + e] = Bs[kk, half * 64 + tx * 4 + e]
            for i in T.unroll(8):
                for j in T.unroll(8):
                    sums[i, j] += a[i] * b[j]
        T.cuda.cta_sync()
    for i in T.unroll(8):
        for half in T.unroll(2):
            for e in T.vectorized(4):
                C[by * 128 + i // 4 * 64 + ty * 4 + i % 4, bx * 128 + half * 64 + tx * 4 + e] = T.cast(
                    sums[i, half * 4 + e], "bfloat16")
