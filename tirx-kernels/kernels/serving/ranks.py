"""Rows that all GPUs of a world sum, and norms of the sums: one pass, in which each rank reads the rows of all."""

from __future__ import annotations

from tvm.script import tirx as T

from rows import CACHED, THREADS, WARPS, load, misaligned, row_sum, store, vector

MAX_RANKS = 64
AT_ONCE = 4                                  # ranks whose rows a thread loads before it adds them


# sim: all_reduce_norm(dtype="bfloat16")
#   ranks: 2
#   seeds: 2
#   X: bfloat16[3x16] = i + j + 4 * rank
#   R: bfloat16[3x16] = 1 -> 1 + 2 * (i + j) + 4
#   W: bfloat16[16] = 2
#   Y: bfloat16[3x16] = 0 -> 2 * (2 * (i + j) + 5) / (sum([(2 * (i + c) + 5) ** 2 for c in range(16)]) / 16) ** 0.5 +- 4e-3
#   Shared: bfloat16[2x3x16] = 0 -> 0 if i == 0 else j + k + 4 * rank
#   F: uint32[2x2] = 0 -> 1
#   Rows: uint64[2] = "Shared@" + str(i)
#   Flags: uint64[2] = "F@" + str(i)
#   me = rank
#   turn = 1
#   eps = 0.0
#   blocks = 2
@T.jit
def all_reduce_norm(x: T.handle, r: T.handle, w: T.handle, y: T.handle, shared: T.handle, flags: T.handle, rows_of_ranks: T.handle,
                    flags_of_ranks: T.handle, me: T.int32, turn: T.uint32, eps: T.float32, blocks: T.int32, *, dtype: T.constexpr):
    """R = R + the sum of X over all ranks, and Y = R / sqrt(mean(R^2) + eps) * W, on every rank.

    A block copies its rows of X to `shared`, tells the same block of all ranks, and waits for it; so all blocks must be resident. Even and odd
    launches have `shared` memory of their own: a rank is at most one launch ahead of the ranks that still read its rows. Flags are
    [block, rank], and hold the launch whose rows the rank's block has copied."""
    M, N, MOST, BLOCKS, RANKS = (T.int32() for _ in range(5))
    x_row, y_row, r_row = (T.int64() for _ in range(3))
    VEC = T.meta_var(vector(dtype))
    X = T.match_buffer(x, (M, N), dtype, strides=(x_row, 1))
    R = T.match_buffer(r, (M, N), dtype, strides=(r_row, 1))
    W = T.match_buffer(w, (N,), dtype)
    Y = T.match_buffer(y, (M, N), dtype, strides=(y_row, 1))
    Shared = T.match_buffer(shared, (2, MOST, N), dtype)
    F = T.match_buffer(flags, (BLOCKS, RANKS), "uint32")
    Rows = T.match_buffer(rows_of_ranks, (RANKS,), "uint64")
    Flags = T.match_buffer(flags_of_ranks, (RANKS,), "uint64")
    T.device_entry()
    block = T.cta_id([blocks])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    parts = T.alloc_shared((WARPS,), "float32")
    kept = T.alloc_local((CACHED * VEC,), dtype)
    near = T.alloc_local((VEC,), dtype)
    scale = T.alloc_local((VEC,), dtype)
    far = T.alloc_local((AT_ONCE * CACHED * VEC,), dtype)
    sums = T.alloc_local((CACHED * VEC,), "float32")
    addresses = T.alloc_shared((MAX_RANKS,), "uint64")
    total = T.alloc_local((1,), "float32")
    here: T.let = T.cast(turn % T.uint32(2), "int32")
    step: T.let = WARPS * 32 * VEC
    begin: T.let = (warp * 32 + lane) * VEC
    thread: T.let = warp * 32 + lane
    aligned: T.let = N % VEC == 0
    row: T.int32 = block
    if thread < RANKS:
        addresses[thread] = Rows[thread]
    while row < M:
        to = T.decl_buffer((N,), dtype, data=Shared.ptr_to([here, row, 0]), scope="global")
        source = T.decl_buffer((N,), dtype, data=X.ptr_to([row, 0]), scope="global")
        bits: T.let = misaligned(X.ptr_to([row, 0]))
        for c in range(T.ceildiv(N, step)):
            load(near, 0, source, c * step + begin, N, aligned and bits == T.uint8(0), dtype, VEC)
            store(to, c * step + begin, N, near, 0, aligned and bits == T.uint8(0), dtype, VEC)
        row += blocks
    T.cuda.cta_sync()
    if thread < RANKS:
        there = T.decl_buffer((BLOCKS, RANKS), "uint32", data=T.reinterpret("handle", Flags[thread]))
        T.ptx.st_release(there.ptr_to([block, me]), turn, ptx_type="u32", scope="sys")
        while T.cast(turn - T.ptx.ld_acquire(F.ptr_to([block, thread]), "uint32", "u32", scope="sys"), "int32") > 0:
            T.cuda.nano_sleep(T.uint64(20))
    T.cuda.cta_sync()
    row = block
    while row < M:
        bits: T.let = misaligned(R.ptr_to([row, 0])) | misaligned(Y.ptr_to([row, 0])) | misaligned(W.ptr_to([0]))
        fits: T.let = aligned and bits == T.uint8(0)
        Rs = T.decl_buffer((N,), dtype, data=R.ptr_to([row, 0]), scope="global")
        Ys = T.decl_buffer((N,), dtype, data=Y.ptr_to([row, 0]), scope="global")

        @T.inline
        def reduce(to, column, vectors):
            """Sums `vectors` vectors of the row, those at `column` and then each `step` further. Loads of several ranks are under way at a time."""
            for v in T.unroll(vectors * VEC):
                sums[v] = 0.0
            for others in range(T.ceildiv(RANKS, AT_ONCE)):
                for u in T.unroll(AT_ONCE):
                    if others * AT_ONCE + u < RANKS:
                        base = T.decl_buffer((2, MOST, N), dtype, data=T.reinterpret("handle", addresses[others * AT_ONCE + u]))
                        theirs = T.decl_buffer((N,), dtype, data=base.ptr_to([here, row, 0]), scope="global")
                        for c in T.unroll(vectors):
                            load(far, (u * CACHED + c) * VEC, theirs, column + c * step, N, aligned, dtype, VEC)
                for u in T.unroll(AT_ONCE):
                    if others * AT_ONCE + u < RANKS:
                        for v in T.unroll(vectors * VEC):
                            sums[v] += T.cast(far[u * CACHED * VEC + v], "float32")
            for c in T.unroll(vectors):
                load(near, 0, Rs, column + c * step, N, fits, dtype, VEC)
                for v in T.unroll(VEC):
                    to[c * VEC + v] = T.cast(T.cast(near[v], "float32") + sums[c * VEC + v], dtype)
                    total[0] += T.cast(to[c * VEC + v], "float32") * T.cast(to[c * VEC + v], "float32")
                store(Rs, column + c * step, N, to, c * VEC, fits, dtype, VEC)

        @T.inline
        def finish(of, at, column, factor):
            load(scale, 0, W, column, N, fits, dtype, VEC)
            for v in T.unroll(VEC):
                of[at + v] = T.cast(T.cast(of[at + v], "float32") * factor * T.cast(scale[v], "float32"), dtype)
            store(Ys, column, N, of, at, fits, dtype, VEC)

        total[0] = 0.0
        reduce(kept, begin, CACHED)
        for c in range(CACHED, T.ceildiv(N, step)):
            reduce(scale, c * step + begin, 1)
        row_sum(total, parts, thread, THREADS)
        factor: T.let = T.rsqrt(total[0] / T.cast(N, "float32") + eps)
        for c in T.unroll(CACHED):
            if c * step < N:
                finish(kept, c * VEC, c * step + begin, factor)
        for c in range(CACHED, T.ceildiv(N, step)):
            load(near, 0, Rs, c * step + begin, N, fits, dtype, VEC)
            finish(near, 0, c * step + begin, factor)
        T.cuda.cta_sync()                                      # all have read `parts`
        row += blocks
