"""Matrix products by `mma.sync` for every GPU from sm_80 on: C = A B in 16 bits with float32 accumulators."""

from __future__ import annotations

from tvm.script import tirx as T

from epilogue import BYTES, activate, optional


@T.jit
def blocks(a: T.handle, b: T.handle, c: T.handle, bias: T.Optional(T.handle), residual: T.Optional(T.handle), scale_a: T.Optional(T.handle),
           scale_b: T.Optional(T.handle), alpha: T.Optional(T.float32), activation: T.Optional(T.int32), *, dtype: T.constexpr,
           ALIGNED: T.constexpr, BM: T.constexpr = 128, BN: T.constexpr = 128, STAGES: T.constexpr = 3, out: T.constexpr = ""):
    """A block of 8 warps computes BM x BN elements in slabs of 32 along K; a warp has BM / 2 x BN / 4 of them.

    With ALIGNED the rows of A and the columns of B are contiguous along K and begin at multiples of 16 bytes: `cp.async` copies
    the next slabs while one is multiplied. Without it, operands may have any strides, and each thread loads single elements.
    With `alpha`, C is that of `general` in `general.py`, of type `out`; the other optional parameters belong to it."""
    BATCH, M, N, K = T.int32(), T.int32(), T.int32(), T.int32()
    a_batch, a_row, a_k, b_batch, b_row, b_k = T.int64(), T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
    c_batch, c_row, c_column = T.int64(), T.int64(), T.int64()
    A = T.match_buffer(a, (BATCH, M, K), dtype, strides=(a_batch, a_row, 1 if ALIGNED else a_k))
    B = T.match_buffer(b, (BATCH, N, K), dtype, strides=(b_batch, b_row, 1 if ALIGNED else b_k))
    out = T.meta_var(out or dtype)
    C = T.match_buffer(c, (BATCH, M, N), out, strides=(c_batch, c_row, c_column))
    if alpha is not None:
        Bias, (bias_batch, bias_columns) = optional(bias, 2, out)
        Residual, (r_batch, r_rows, r_columns) = optional(residual, 3, out)
        ScaleA, (sa_batch, sa_rows) = optional(scale_a, 2, "float32")
        ScaleB, (sb_batch, sb_columns) = optional(scale_b, 2, "float32")
    UNIT = T.meta_var(16 // BYTES[dtype])                         # elements in 16 bytes
    BK = T.meta_var(4 * UNIT)
    MULTIPLIED = T.meta_var("tf32" if dtype == "float32" else dtype)
    ROWS, COLUMNS = T.meta_var(BM // 2), T.meta_var(BN // 4)      # of one warp
    T.device_entry()
    # Other dimensions of a grid than the first end at 65535.
    of_row: T.let = T.truncdiv(N + (BN - 1), BN)
    of_matrix: T.let = of_row * T.truncdiv(M + (BM - 1), BM)
    block = T.cta_id([T.truncdiv(N + (BN - 1), BN) * T.truncdiv(M + (BM - 1), BM) * BATCH])
    batch: T.let = T.truncdiv(block, of_matrix)
    down: T.let = T.truncdiv(block - batch * of_matrix, of_row)
    across: T.let = block - batch * of_matrix - down * of_row
    tid = T.thread_id([256])
    warp: T.let = tid // 32
    lane: T.let = tid % 32
    m: T.let = down * BM
    n: T.let = across * BN
    # Rows of 80 bytes: eight of them, 16 bytes each, are in different banks.
    pool = T.SMEMPool()
    As = pool.alloc((STAGES, BM, BK + UNIT), dtype, align=16)
    Bs = pool.alloc((STAGES, BN, BK + UNIT), dtype, align=16)
    pool.commit()

    @T.inline
    def load(to, source, rows, first, limit, slab, stage):
        if ALIGNED:
            for step in T.unroll(rows * BK // UNIT // 256):
                row: T.let = step * 64 + tid // 4
                k: T.let = slab * BK + tid % 4 * UNIT
                inside: T.let = first + row < limit and k < K
                T.ptx.cp_async(to.ptr_to([stage, row, tid % 4 * UNIT]),
                               source.ptr_to([batch, T.if_then_else(inside, first + row, 0), T.if_then_else(inside, k, 0)]), 16,
                               predicate=T.cast(inside, "int32"), fill_mode="zero")
        else:
            for step in T.unroll(rows * BK // 256):
                row: T.let = step * (256 // BK) + tid // BK
                k: T.let = slab * BK + tid % BK
                to[stage, row, tid % BK] = T.if_then_else(first + row < limit and k < K, source[batch, first + row, k], T.cast(0, dtype))

    acc = T.alloc_local((ROWS // 16, COLUMNS // 8, 4), "float32")
    fragment_a = T.alloc_local((ROWS // 16, 4), "uint32")
    fragment_b = T.alloc_local((COLUMNS // 8, 2), "uint32")
    for i, j, e in T.grid(ROWS // 16, COLUMNS // 8, 4):
        acc[i, j, e] = T.float32(0)
    slabs: T.let = T.truncdiv(K + (BK - 1), BK)
    row_of_warp: T.let = warp // 4 * ROWS
    column_of_warp: T.let = warp % 4 * COLUMNS
    for slab in T.unroll(STAGES - 1):
        if slab < slabs:
            load(As, A, BM, m, M, slab, slab)
            load(Bs, B, BN, n, N, slab, slab)
        if ALIGNED:
            T.ptx.cp_async.commit_group()
    for slab in range(slabs):
        if ALIGNED:
            T.ptx.cp_async.wait_group(STAGES - 2)
        T.cuda.cta_sync()
        ahead: T.let = slab + (STAGES - 1)
        if ahead < slabs:
            load(As, A, BM, m, M, ahead, ahead % STAGES)
            load(Bs, B, BN, n, N, ahead, ahead % STAGES)
        if ALIGNED:
            T.ptx.cp_async.commit_group()
        stage: T.let = slab % STAGES
        for step in T.unroll(2):
            for i in T.unroll(ROWS // 16):
                T.ptx.ldmatrix(False, 4, ".b16", As.ptr_to([stage, row_of_warp + i * 16 + lane % 16, step * 2 * UNIT + lane // 16 * UNIT]),
                               *[fragment_a.ptr_to([i, e]) for e in range(4)])
            for j in T.unroll(COLUMNS // 16):
                T.ptx.ldmatrix(False, 4, ".b16",
                               Bs.ptr_to([stage, column_of_warp + j * 16 + lane // 16 * 8 + lane % 8, step * 2 * UNIT + lane // 8 % 2 * UNIT]),
                               *[fragment_b.ptr_to([j * 2 + e // 2, e % 2]) for e in range(4)])
            for i in T.unroll(ROWS // 16):
                for j in T.unroll(COLUMNS // 8):
                    T.ptx.mma("m16n8k16" if UNIT == 8 else "m16n8k8", "row", "col", "float32", MULTIPLIED, MULTIPLIED, "float32",
                              [acc.ptr_to([i, j, e]) for e in range(4)], [fragment_a.ptr_to([i, e]) for e in range(4)],
                              [fragment_b.ptr_to([j, e]) for e in range(2)], [acc.ptr_to([i, j, e]) for e in range(4)])

    @T.inline
    def store(i, j, e, value):
        row: T.let = m + row_of_warp + i * 16 + e // 2 * 8 + lane // 4
        column: T.let = n + column_of_warp + j * 8 + lane % 4 * 2 + e % 2
        if row < M and column < N:
            C[batch, row, column] = T.cast(value, out)

    if alpha is None:
        for i in T.unroll(ROWS // 16):
            for j in T.unroll(COLUMNS // 8):
                for e in T.unroll(4):
                    store(i, j, e, acc[i, j, e])
    else:
        x = T.alloc_local((1, 4), "float32")
        for i in T.unroll(ROWS // 16):
            for j in T.unroll(COLUMNS // 8):
                for e in T.unroll(4):
                    row: T.let = T.min(m + row_of_warp + i * 16 + e // 2 * 8 + lane // 4, M - 1)
                    column: T.let = T.min(n + column_of_warp + j * 8 + lane % 4 * 2 + e % 2, N - 1)
                    x[0, e] = acc[i, j, e] * alpha
                    if sa_rows > 0:
                        x[0, e] = x[0, e] * ScaleA[T.min(batch, sa_batch - 1), T.min(row, sa_rows - 1)]
                    if sb_columns > 0:
                        x[0, e] = x[0, e] * ScaleB[T.min(batch, sb_batch - 1), T.min(column, sb_columns - 1)]
                    if bias_columns > 0:
                        x[0, e] = x[0, e] + T.cast(Bias[T.min(batch, bias_batch - 1), column], "float32")
                activate(x, 1, 4, activation)
                for e in T.unroll(4):
                    if r_columns > 0:
                        row: T.let = T.min(m + row_of_warp + i * 16 + e // 2 * 8 + lane // 4, M - 1)
                        column: T.let = T.min(n + column_of_warp + j * 8 + lane % 4 * 2 + e % 2, N - 1)
                        x[0, e] = x[0, e] + T.cast(Residual[batch, row, column], "float32")
                    store(i, j, e, x[0, e])
