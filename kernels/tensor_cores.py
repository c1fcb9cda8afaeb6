"""Matrix products through cp.async pipelines, on CUDA cores and on tensor cores."""

from __future__ import annotations

from tvm.script import tirx as T


@T.jit
def matmul_cp_async(A: T.Buffer((M, K), "float32"), B: T.Buffer((K, N), "float32"), C: T.Buffer((M, N), "float32"), *,
                    M: T.constexpr, N: T.constexpr, K: T.constexpr, STAGES: T.constexpr = 3):
    """C = A B by 64 x 64 tiles; while one slab of 16 is multiplied, the next ones are copied to shared memory."""
    T.static_assert(M % 64 == 0 and N % 64 == 0 and K % 16 == 0, "the tiles must divide the matrices")
    KT = T.meta_var(K // 16)
    T.device_entry()
    bx, by = T.cta_id([N // 64, M // 64])
    tid = T.thread_id([256])
    tx: T.let = tid % 16
    ty: T.let = tid // 16
    # Rows of A are 20 apart, so that 16 bytes stay aligned and a column is spread over the banks.
    As = T.alloc_shared((STAGES, 64, 20), "float32", align=16)
    Bs = T.alloc_shared((STAGES, 16, 64), "float32", align=16)
    acc = T.alloc_local((4, 4), "float32")
    for i, j in T.grid(4, 4):
        acc[i, j] = 0.0
    for s in T.unroll(STAGES - 1):
        if s < KT:
            T.ptx.cp_async(As.ptr_to([s, tid // 4, tid % 4 * 4]), A.ptr_to([by * 64 + tid // 4, s * 16 + tid % 4 * 4]), 16)
            T.ptx.cp_async(Bs.ptr_to([s, ty, tx * 4]), B.ptr_to([s * 16 + ty, bx * 64 + tx * 4]), 16)
        T.ptx.cp_async.commit_group()
    for k in range(KT):
        T.ptx.cp_async.wait_group(STAGES - 2)
        T.cuda.cta_sync()
        ahead: T.let = k + STAGES - 1
        if ahead < KT:
            T.ptx.cp_async(As.ptr_to([ahead % STAGES, tid // 4, tid % 4 * 4]),
                           A.ptr_to([by * 64 + tid // 4, ahead * 16 + tid % 4 * 4]), 16)
            T.ptx.cp_async(Bs.ptr_to([ahead % STAGES, ty, tx * 4]), B.ptr_to([ahead * 16 + ty, bx * 64 + tx * 4]), 16)
        T.ptx.cp_async.commit_group()
        for kk in range(16):
            for i in T.unroll(4):
                for j in T.unroll(4):
                    acc[i, j] += As[k % STAGES, ty * 4 + i, kk] * Bs[k % STAGES, kk, tx + j * 16]
    for i in T.unroll(4):
        for j in T.unroll(4):
            C[by * 64 + ty * 4 + i, bx * 64 + tx + j * 16] = acc[i, j]


@T.jit
def matmul_mma(A: T.Buffer((M, K), "bfloat16"), B: T.Buffer((N, K), "bfloat16"), C: T.Buffer((M, N), "float32"), *,
               M: T.constexpr, N: T.constexpr, K: T.constexpr, STAGES: T.constexpr = 3):
    """C = A B^T by 128 x 128 tiles and slabs of 32: eight warps multiply 64 x 32 each with mma.sync."""
    T.static_assert(M % 128 == 0 and N % 128 == 0 and K % 32 == 0, "the tiles must divide the matrices")
    KT = T.meta_var(K // 32)
    T.device_entry()
    bx, by = T.cta_id([N // 128, M // 128])
    tid = T.thread_id([256])
    warp: T.let = tid // 32
    lane: T.let = tid % 32
    wm: T.let = warp // 4 * 64
    wn: T.let = warp % 4 * 32
    # Rows of 80 bytes: eight of them, 16 bytes each, are in different banks.
    pool = T.SMEMPool()
    As = pool.alloc((STAGES, 128, 40), "bfloat16", align=16)
    Bs = pool.alloc((STAGES, 128, 40), "bfloat16", align=16)
    pool.commit()
    a = T.alloc_local((4, 4), "uint32")
    b = T.alloc_local((4, 2), "uint32")
    acc = T.alloc_local((4, 4, 4), "float32")
    for i, j, e in T.grid(4, 4, 4):
        acc[i, j, e] = 0.0
    for s in T.unroll(STAGES - 1):
        if s < KT:
            for l in T.unroll(2):
                row: T.let = l * 64 + tid // 4
                col: T.let = tid % 4 * 8
                T.ptx.cp_async(As.ptr_to([s, row, col]), A.ptr_to([by * 128 + row, s * 32 + col]), 16)
                T.ptx.cp_async(Bs.ptr_to([s, row, col]), B.ptr_to([bx * 128 + row, s * 32 + col]), 16)
        T.ptx.cp_async.commit_group()
    for k in range(KT):
        T.ptx.cp_async.wait_group(STAGES - 2)
        T.cuda.cta_sync()
        ahead: T.let = k + STAGES - 1
        if ahead < KT:
            for l in T.unroll(2):
                row: T.let = l * 64 + tid // 4
                col: T.let = tid % 4 * 8
                T.ptx.cp_async(As.ptr_to([ahead % STAGES, row, col]), A.ptr_to([by * 128 + row, ahead * 32 + col]), 16)
                T.ptx.cp_async(Bs.ptr_to([ahead % STAGES, row, col]), B.ptr_to([bx * 128 + row, ahead * 32 + col]), 16)
        T.ptx.cp_async.commit_group()
        for kk in T.unroll(2):
            for i in T.unroll(4):
                T.ptx.ldmatrix(False, 4, ".b16",
                               As.ptr_to([k % STAGES, wm + i * 16 + lane % 16, kk * 16 + lane // 16 * 8]),
                               a.ptr_to([i, 0]), a.ptr_to([i, 1]), a.ptr_to([i, 2]), a.ptr_to([i, 3]))
            for j in T.unroll(2):
                T.ptx.ldmatrix(False, 4, ".b16",
                               Bs.ptr_to([k % STAGES, wn + j * 16 + lane // 16 * 8 + lane % 8, kk * 16 + lane // 8 % 2 * 8]),
                               b.ptr_to([j * 2, 0]), b.ptr_to([j * 2, 1]), b.ptr_to([j * 2 + 1, 0]), b.ptr_to([j * 2 + 1, 1]))
            for i in T.unroll(4):
                for j in T.unroll(4):
                    T.ptx.mma("m16n8k16", "row", "col", "float32", "bfloat16", "bfloat16", "float32",
                              [acc.ptr_to([i, j, e]) for e in range(4)], [a.ptr_to([i, e]) for e in range(4)],
                              [b.ptr_to([j, e]) for e in range(2)], [acc.ptr_to([i, j, e]) for e in range(4)])
    for i in T.unroll(4):
        for j in T.unroll(4):
            for h in T.unroll(2):
                for e in T.vectorized(2):
                    C[by * 128 + wm + i * 16 + h * 8 + lane // 4, bx * 128 + wn + j * 8 + lane % 4 * 2 + e] = acc[i, j, h * 2 + e]
