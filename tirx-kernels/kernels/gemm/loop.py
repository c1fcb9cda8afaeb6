"""The main loop that the Hopper kernels of products share: a ring of stages, from the copies of one warp to the MMAs of two warpgroups."""

from __future__ import annotations

from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx

from epilogue import BYTES

GROUP = 8                                    # rows of tiles in a band


def stages(columns):
    """The stages of operands that fit beside the rest of the shared memory, for tiles of 128 rows."""
    return {48: 8, 64: 8, 96: 6, 128: 6, 192: 4, 256: 4}[columns]


@T.inline
def copy_part(to, stage, source, matrix, first, k, extent, depth, turned, bar, rank=0, sharing=1, hint=""):
    """Copies `extent` rows of a matrix, or columns if it is `turned`, into a stage. `sharing` blocks copy a part each, for all of them. `hint` is for
    the L2 cache."""
    PART = T.meta_var(extent // sharing)
    if sharing == 1:
        if turned:
            Tx.copy_async(to[stage], source[matrix, k : k + depth, first : first + extent], mbar=bar, cache_hint=hint)
        else:
            Tx.copy_async(to[stage], source[matrix, first : first + extent, k : k + depth], mbar=bar, cache_hint=hint)
    else:
        begin: T.let = rank * PART
        if turned:
            Tx.copy_async(to[stage, :, begin : begin + PART], source[matrix, k : k + depth, first + begin : first + begin + PART], mbar=bar,
                          cta_mask=(1 << sharing) - 1)
        else:
            Tx.copy_async(to[stage, begin : begin + PART, :], source[matrix, first + begin : first + begin + PART, k : k + depth], mbar=bar,
                          cta_mask=(1 << sharing) - 1)


@T.inline
def clear_rows(As, first, thread, threads):
    """Zeros in the rows of each stage from `first` on, for rows that no copy fills: C does not have them."""
    OF_STAGE = T.meta_var(As.shape[1] * As.shape[2] * BYTES[As.dtype] // 4)         # words
    words = T.decl_buffer((As.shape[0] * OF_STAGE,), "uint32", data=As.ptr_to([0, 0, 0]), scope="shared.dyn")
    for stage in range(As.shape[0]):
        at: T.int32 = first * (OF_STAGE // As.shape[1]) + thread * 4
        while at < OF_STAGE:
            for e in T.vectorized(4):
                words[stage * OF_STAGE + at + e] = T.uint32(0)
            at += threads * 4
    T.ptx.fence.proxy_async("shared::cta")


@T.inline
def copy_operands(pipe, ring, As, Bs, A, of_a, m, B, of_b, n, steps, rows, columns, depth, TRANS_A, TRANS_B):
    """Copies the operands of a tile from row `m` of matrix `of_a` of A and column `n` of matrix `of_b` of B, `depth` elements along K at a
    time."""
    for k in range(steps):
        pipe.empty.wait(ring.stage, ring.phase)
        pipe.full.arrive(ring.stage, (rows + columns) * depth * BYTES[A.dtype])
        bar: T.let = pipe.full.ptr_to([ring.stage])
        copy_part(As, ring.stage, A, of_a, m, k * depth, rows, depth, TRANS_A, bar)
        copy_part(Bs, ring.stage, B, of_b, n, k * depth, columns, depth, TRANS_B, bar)
        ring.advance()


@T.inline
def release(pipe, stage, has_read, warp, lane, CLUSTER=1):
    """If the warpgroup has read a stage, gives it back to each block of the cluster, since all of them copy into it. An arrival under a
    predicate is no branch: a branch between MMAs can make nvcc wait for each of them."""
    if CLUSTER > 1:
        pipe.empty.arrive(stage, remote=lane, pred=has_read and warp == 0 and lane < CLUSTER)
    else:
        T.ptx.mbarrier.arrive(pipe.empty.ptr_to([stage]), pred=has_read and warp == 0 and lane == 0)


@T.inline
def multiply_stage(pipe, ring, sums, As, Bs, row, accum, TRANS_A, TRANS_B):
    """A stage's part of a warpgroup's 64 rows of a tile, from row `row` of As on."""
    pipe.full.wait(ring.stage, ring.phase)
    if TRANS_A:
        Tx.wg.gemm_async(sums, As[ring.stage, :, row : row + 64], Bs[ring.stage], transA=True, transB=TRANS_B, accum=accum)
    else:
        Tx.wg.gemm_async(sums, As[ring.stage, row : row + 64, :], Bs[ring.stage], transB=TRANS_B, accum=accum)
    T.ptx.wgmma.commit_group()
    ring.advance()


@T.inline
def multiply_others(pipe, ring, sums, As, Bs, row, steps, warp, lane, STAGES, TRANS_A, TRANS_B):
    """The stages behind the first one. Each stage is given back when the next MMA is under way."""
    for k in range(1, steps):
        multiply_stage(pipe, ring, sums, As, Bs, row, True, TRANS_A, TRANS_B)
        T.ptx.wgmma.wait_group(1)
        release(pipe, (ring.stage + STAGES - 2) % STAGES, True, warp, lane)
    T.ptx.wgmma.wait_group(0)
    release(pipe, (ring.stage + STAGES - 1) % STAGES, True, warp, lane)


@T.inline
def store_tile(sums, rounded, Cs, C, of_c, m, n, columns, chunk, warpgroup, first):
    """Rounds a warpgroup's 64 rows and stores them from row `m` and column `n` of matrix `of_c` of C on, `chunk` columns at a time."""
    # Pair by pair: nvcc may move the rounding of single accumulators in front of the wait for their MMAs, and then waits for each MMA.
    narrow, wide = rounded.local(columns // 2), sums.local(columns // 2)
    for i in T.unroll(columns // 4):
        for e in T.vectorized(2):
            narrow[i * 2 + e] = T.cast(wide[i * 2 + e], narrow.dtype)
    for j in T.unroll(columns // chunk):
        # One chunk is on its way to C while the next is written. An odd number of chunks ends in the buffer of the first.
        if first:
            T.ptx.cp_async.bulk.wait_group(0 if j == 0 and columns // chunk % 2 == 1 else 1, True)
        T.cuda.warpgroup_sync(9 + warpgroup)
        Tx.wg.copy(Cs[warpgroup, j % 2], rounded[:, j * chunk : j * chunk + chunk])
        T.ptx.fence.proxy_async("shared::cta")
        T.cuda.warpgroup_sync(9 + warpgroup)
        if first:
            Tx.copy_async(C[of_c, m : m + 64, n + j * chunk : n + j * chunk + chunk], Cs[warpgroup, j % 2])
            T.ptx.cp_async.bulk.commit_group()


PART = 32                                    # columns that `rows_of` brings into rows at a time


@T.inline
def rows_of(to, four, part, sums, columns, staged, warpgroup, warp, lane):
    """Brings `PART` columns of accumulators into rows: each thread gets eight neighbors in each of two rows, 8 apart. `staged` has 64 rows of
    160 bytes for each warpgroup, so that the pairs of a fragment in four rows are in different banks; `four` is four registers."""
    T.cuda.warp_sync()
    for other in T.unroll(columns // PART):
        if part == other:
            Tx.wg.copy(staged[warpgroup, :, 0:PART], sums[:, other * PART : other * PART + PART])
    T.cuda.warp_sync()
    for p in T.unroll(2):
        for v in T.unroll(2):
            for e in T.vectorized(4):
                four[e] = staged[warpgroup, warp * 16 + p * 8 + lane // 4, lane % 4 * 8 + v * 4 + e]
            for e in T.unroll(4):
                to[p, v * 4 + e] = T.cast(four[e], to.dtype)
