"""The main loop that the Hopper kernels of products share: a ring of stages, from the copies of one warp to the MMAs of two warpgroups."""

from __future__ import annotations

from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx

GROUP = 8                                    # rows of tiles in a band


def stages(columns):
    """The stages of operands that fit beside the rest of the shared memory, for tiles of 128 rows."""
    return {48: 8, 64: 8, 96: 6, 128: 6, 192: 4, 256: 4}[columns]


@T.inline
def copy_operands(pipe, ring, As, Bs, A, of_a, m, B, of_b, n, steps, rows, columns, depth, TRANS_A, TRANS_B):
    """Copies the operands of a tile from row `m` of matrix `of_a` of A and column `n` of matrix `of_b` of B, `depth` elements along K at a
    time."""
    for k in range(steps):
        pipe.empty.wait(ring.stage, ring.phase)
        pipe.full.arrive(ring.stage, (rows + columns) * depth * 2)
        bar: T.let = pipe.full.ptr_to([ring.stage])
        if TRANS_A:
            Tx.copy_async(As[ring.stage], A[of_a, k * depth : k * depth + depth, m : m + rows], mbar=bar)
        else:
            Tx.copy_async(As[ring.stage], A[of_a, m : m + rows, k * depth : k * depth + depth], mbar=bar)
        if TRANS_B:
            Tx.copy_async(Bs[ring.stage], B[of_b, k * depth : k * depth + depth, n : n + columns], mbar=bar)
        else:
            Tx.copy_async(Bs[ring.stage], B[of_b, n : n + columns, k * depth : k * depth + depth], mbar=bar)
        ring.advance()


@T.inline
def multiply(pipe, ring, sums, As, Bs, row, steps, first, STAGES, TRANS_A, TRANS_B):
    """A warpgroup's 64 rows of a tile, from row `row` of As on. Each stage is given back when the next MMA is under way; `first` is the
    thread that gives it back."""
    for k in range(steps):
        pipe.full.wait(ring.stage, ring.phase)
        if TRANS_A:
            Tx.wg.gemm_async(sums, As[ring.stage, :, row : row + 64], Bs[ring.stage], transA=True, transB=TRANS_B, accum=k > 0)
        else:
            Tx.wg.gemm_async(sums, As[ring.stage, row : row + 64, :], Bs[ring.stage], transB=TRANS_B, accum=k > 0)
        T.ptx.wgmma.commit_group()
        T.ptx.wgmma.wait_group(1)
        if k > 0 and first:
            pipe.empty.arrive((ring.stage + STAGES - 1) % STAGES)
        ring.advance()
    T.ptx.wgmma.wait_group(0)
    if first:
        pipe.empty.arrive((ring.stage + STAGES - 1) % STAGES)


@T.inline
def store_tile(sums, rounded, Cs, C, of_c, m, n, columns, chunk, warpgroup, first):
    """Rounds a warpgroup's 64 rows and stores them from row `m` and column `n` of matrix `of_c` of C on, `chunk` columns at a time."""
    Tx.wg.cast(rounded, sums)
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
