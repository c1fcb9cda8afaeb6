from __future__ import annotations

from tvm.script import tirx as T


# sim: tensor_cores(M=128, N=128, K=64)
#   A: bfloat16[128x64] = 2 * (j == i % 64) + (j == (i * 5 + 17) % 64)
#   B: bfloat16[128x64] = (i + j * 2) % 5 - 2
#   C: bfloat16[128x128] = 0 -> 2 * B[j][i % 64] + B[j][(i * 5 + 17) % 64]
@T.jit
def tensor_cores(A: T.Buffer((M, K), "bfloat16"), B: T.Buffer((N, K), "bfloat16"), C: T.Buffer((M, N), "bfloat16"), *,
                 M: T.constexpr, N: T.constexpr, K: T.constexpr):
    """C = A B^T: eight warps multiply 64 x 32 elements each with mma.sync."""
    T.static_assert(M % 128 == 0 and N % 128 == 0 and K % 32 == 0, "the tiles must divide the matrices")
    T.device_entry()
    bx, by = T.cta_id([N // 128, M // 128])
    tid = T.thread_id([256])
    warp: T.let = tid // 32
    lane: T.let = tid % 32
    wm: T.let = warp // 4 * 64
    wn: T.let = warp % 4 * 32
    # Rows of 80 bytes: eight of them, 16 bytes each, are in different banks.
    As = T.alloc_shared((128, 40), "bfloat16", align=16)
    Bs = T.alloc_shared((128, 40), "bfloat16", align=16)
    a = T.alloc_local((4, 4), "uint32")
    b = T.alloc_local((4, 2), "uint32")
    sums = T.alloc_local((4, 4, 4), "float32")
    for i, j, e in T.grid(4, 4, 4):
        sums[i, j, e] = 0.0
    for k in range(K // 32):
        for step in T.unroll(2):
            row: T.let = step * 64 + tid // 4
            first: T.let = tid % 4 * 8
            for e in T.vectorized(8):
                As[row, first + e] = A[by * 128 + row, k * 32 + first + e]
            for e in T.vectorized(8):
                Bs[row, first + e] = B[bx * 128 + row, k * 32 + first + e]
        T.cuda.cta_sync()
        for kk in T.unroll(2):
            for i in T.unroll(4):
                T.ptx.ldmatrix(False, 4, ".b16", As.ptr_to([wm + i * 16 + lane % 16, kk * 16 + lane // 16 * 8]),
                               *[a.ptr_to([i, e]) for e in range(4)])
            for j in T.unroll(2):
                T.ptx.ldmatrix(False, 4, ".b16",
                               Bs.ptr_to([wn + j * 16 + lane // 16 * 8 + lane % 8, kk * 16 + lane // 8 % 2 * 8]),
                               *[b.ptr_to([j * 2 + e // 2, e % 2]) for e in range(4)])
            for i in T.unroll(4):
                for j in T.unroll(4):
                    T.ptx.mma("m16n8k16", "row", "col", "float32", "bfloat16", "bfloat16", "float32",
                              [sums.ptr_to([i, j, e]) for e in range(4)], [a.ptr_to([i, e]) for e in range(4)],
                              [b.ptr_to([j, e]) for e in range(2)], [sums.ptr_to([i, j, e]) for e in range(4)])
        T.cuda.cta_sync()
    for i in T.unroll(4):
        for j in T.unroll(4):
            for h in T.unroll(2):
                for e in T.vectorized(2):
                    C[by * 128 + wm + i * 16 + h * 8 + lane // 4, bx * 128 + wn + j * 8 + lane % 4 * 2 + e] = T.cast(
                        sums[i, j, h * 2 + e], "bfloat16")
