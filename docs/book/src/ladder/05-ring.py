from __future__ import annotations

from tvm.script import tirx as T


# sim: ring(M=128, N=128, K=128)
#   A: bfloat16[128x128] = 2 * (j == i % 128) + (j == (i * 5 + 17) % 128)
#   B: bfloat16[128x128] = (i + j * 2) % 5 - 2
#   C: bfloat16[128x128] = 0 -> 2 * B[j][i % 128] + B[j][(i * 5 + 17) % 128]
@T.jit
def ring(A: T.Buffer((M, K), "bfloat16"), B: T.Buffer((N, K), "bfloat16"), C: T.Buffer((M, N), "bfloat16"), *,
         M: T.constexpr, N: T.constexpr, K: T.constexpr, STAGES: T.constexpr = 3):
    """C = A B^T: while one slab of K is multiplied, cp.async copies the next slabs into a ring of stages."""
    T.static_assert(M % 128 == 0 and N % 128 == 0 and K % 32 == 0, "the tiles must divide the matrices")
    SLABS = T.meta_var(K // 32)
    T.device_entry()
    bx, by = T.cta_id([N // 128, M // 128])
    tid = T.thread_id([256])
    warp: T.let = tid // 32
    lane: T.let = tid % 32
    wm: T.let = warp // 4 * 64
    wn: T.let = warp % 4 * 32
    pool = T.SMEMPool()
    As = pool.alloc((STAGES, 128, 40), "bfloat16", align=16)
    Bs = pool.alloc((STAGES, 128, 40), "bfloat16", align=16)
    pool.commit()

    @T.inline
    def load(slab, stage):
        for step in T.unroll(2):
            row: T.let = step * 64 + tid // 4
            first: T.let = tid % 4 * 8
            T.ptx.cp_async(As.ptr_to([stage, row, first]), A.ptr_to([by * 128 + row, slab * 32 + first]), 16)
            T.ptx.cp_async(Bs.ptr_to([stage, row, first]), B.ptr_to([bx * 128 + row, slab * 32 + first]), 16)

    a = T.alloc_local((4, 4), "uint32")
    b = T.alloc_local((4, 2), "uint32")
    sums = T.alloc_local((4, 4, 4), "float32")
    for i, j, e in T.grid(4, 4, 4):
        sums[i, j, e] = 0.0
    for slab in T.unroll(STAGES - 1):
        if slab < SLABS:
            load(slab, slab)
        T.ptx.cp_async.commit_group()
    for k in range(SLABS):
        T.ptx.cp_async.wait_group(STAGES - 2)        # my copies of slab k have arrived
        T.cuda.cta_sync()                            # all copies of slab k; and slab k - 1 is read
        ahead: T.let = k + STAGES - 1
        if ahead < SLABS:
            load(ahead, ahead % STAGES)
        T.ptx.cp_async.commit_group()
        stage: T.let = k % STAGES
        for kk in T.unroll(2):
            for i in T.unroll(4):
                T.ptx.ldmatrix(False, 4, ".b16", As.ptr_to([stage, wm + i * 16 + lane % 16, kk * 16 + lane // 16 * 8]),
                               *[a.ptr_to([i, e]) for e in range(4)])
            for j in T.unroll(2):
                T.ptx.ldmatrix(False, 4, ".b16",
                               Bs.ptr_to([stage, wn + j * 16 + lane // 16 * 8 + lane % 8, kk * 16 + lane // 8 % 2 * 8]),
                               *[b.ptr_to([j * 2 + e // 2, e % 2]) for e in range(4)])
            for i in T.unroll(4):
                for j in T.unroll(4):
                    T.ptx.mma("m16n8k16", "row", "col", "float32", "bfloat16", "bfloat16", "float32",
                              [sums.ptr_to([i, j, e]) for e in range(4)], [a.ptr_to([i, e]) for e in range(4)],
                              [b.ptr_to([j, e]) for e in range(2)], [sums.ptr_to([i, j, e]) for e in range(4)])
    for i in T.unroll(4):
        for j in T.unroll(4):
            for h in T.unroll(2):
                for e in T.vectorized(2):
                    C[by * 128 + wm + i * 16 + h * 8 + lane // 4, bx * 128 + wn + j * 8 + lane % 4 * 2 + e] = T.cast(
                        sums[i, j, h * 2 + e], "bfloat16")
