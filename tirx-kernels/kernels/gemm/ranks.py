"""Matrix products of several GPUs that run at the same time: the ranks of a world. Each rank computes tiles while rows travel between the ranks.

The main loop is that of `hopper.py`. Flags hold the number of the launch, `turn`, or count by it, so a launch resets nothing. A wait for another
thread is a loop of acquires; `turn` may wrap around.
"""

from __future__ import annotations

from tvm.backend.cuda.lang import Pipeline, PipelineState
from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode, mma_shared_layout
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx

from epilogue import BYTES, accumulator
from loop import GROUP, PART, copy_operands, multiply_others, multiply_stage, rows_of, stages, store_tile


@T.inline
def wait_until(flag, value, scope):
    """Waits until a flag has reached a value."""
    while T.cast(value - T.ptx.ld_acquire(flag, "uint32", "u32", scope=scope), "int32") > 0:
        T.cuda.nano_sleep(T.uint64(20))


@T.inline
def tell(flags, peers, ranks, slot, value, lane):
    """The lanes of a warp set the flag `slot` of every rank, after all that the warp has done and seen."""
    T.cuda.warp_sync()
    for step in range(T.truncdiv(ranks + 31, 32)):
        if step * 32 + lane < ranks:
            there = T.decl_buffer((flags,), "uint32", data=T.reinterpret("handle", peers[step * 32 + lane]))
            T.ptx.st_release(there.ptr_to([slot]), value, ptx_type="u32", scope="sys")


@T.inline
def load(to, row, pointer, dtype):
    """Loads 8 elements, which begin at a multiple of 16 bytes, to a row of registers."""
    far = T.decl_buffer((8,), dtype, data=pointer)
    for e in T.vectorized(8):
        to[row, e] = far[e]


@T.inline
def store(pointer, value, row, dtype):
    """Rounds 8 registers and stores them, from a multiple of 16 bytes on."""
    far = T.decl_buffer((8,), dtype, data=pointer)
    for e in T.vectorized(8):
        far[e] = T.cast(value[row, e], dtype)


# Rank `r` has row `p` of its matrix: 1 at column `p` and 2 at column `r`. So C has the row of B for column `p` and twice that for column `r`.
# sim: gather(dtype="bfloat16", BN=128)
#   ranks: 2
#   seeds: 2
#   A: bfloat16[2x3x16] = ((1 if k == j else 0) + (2 if k == i else 0)) if i == rank else 0 -> (1 if k == j else 0) + (2 if k == i else 0)
#   B: bfloat16[1x24x16] = k + j % 3 + 16 * rank
#   C: bfloat16[2x3x24] = 0 -> j + 2 * i + 3 * (k % 3 + 16 * rank)
#   F: uint32[6] = 0 -> [1, 1, 1, 1, rank, 1 - rank][i]
#   Rows: uint64[2] = "A@" + str(i)
#   Flags: uint64[2] = "F@" + str(i)
#   me = rank
#   turn = 1
#   blocks = 1
#   copiers = 1
@T.jit
def gather(a: T.handle, b: T.handle, c: T.handle, flags: T.handle, rows_of_ranks: T.handle, flags_of_ranks: T.handle, me: T.int32,
           turn: T.uint32, blocks: T.int32, copiers: T.int32, *, dtype: T.constexpr, BN: T.constexpr = 256):
    """C = A B, where rank `r` has matrix `r` of A. All other matrices are copied from their ranks into A, and multiplied as they arrive.

    The warps of the first `copiers` blocks copy, one thread of each: bulk copies through a part of the shared memory, in the order in which the rows are
    multiplied. The other `blocks` multiply, and wait for rows only. All copiers must be resident. The kernel ends on a rank when no other rank reads the
    rank's rows any more.

    | flags | |
    |---|---|
    | 0 to RANKS - 1 | the launch in which the rank has begun: its rows are complete |
    | RANKS to 2 RANKS - 1 | the launch in which the rank has read the rows of this rank |
    | from 2 RANKS on | the pieces that have arrived, for each matrix and each 128 rows |
    """
    BM, BK = T.meta_var(128), T.meta_var(64)
    # A piece has 16 KB; each warp of a block copies one at a time.
    PIECE, WARPS = T.meta_var(8192), T.meta_var(12)
    CHUNK = T.meta_var(64)
    STAGES = T.meta_var(stages(BN))
    RANKS, M, N, K, FLAGS = (T.int32() for _ in range(5))
    b_batch, b_row, c_rank, c_row = (T.int64() for _ in range(4))
    A = T.match_buffer(a, (RANKS, M, K), dtype)
    B = T.match_buffer(b, (1, N, K), dtype, strides=(b_batch, b_row, 1))
    C = T.match_buffer(c, (RANKS, M, N), dtype, strides=(c_rank, c_row, 1))
    F = T.match_buffer(flags, (FLAGS,), "uint32")
    Rows = T.match_buffer(rows_of_ranks, (RANKS,), "uint64")
    Flags = T.match_buffer(flags_of_ranks, (RANKS,), "uint64")
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
    number = T.cta_id([copiers + blocks])
    group = T.warpgroup_id([3])
    warp = T.warp_id_in_wg([4])
    lane = T.lane_id([32])
    pool = T.SMEMPool()
    As = pool.alloc_tcgen05_mma_AB((STAGES, BM, BK), dtype)
    Bs = pool.alloc_tcgen05_mma_AB((STAGES, BN, BK), dtype)
    Cs = pool.alloc((2, 2, 64, CHUNK), dtype, layout=mma_shared_layout(dtype, SwizzleMode.SWIZZLE_128B_ATOM, (2, 2, 64, CHUNK)), align=1024)
    pipe = Pipeline(pool, STAGES, full="tma", empty="mbar", init_empty=2, empty_phase_offset=1)
    copies = Pipeline(pool, WARPS, full="tma", empty="mbar", init_empty=1)
    pool.move_base_to(0)
    pieces = pool.alloc((WARPS, PIECE), dtype, align=1024)
    pool.commit()
    T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    ring = PipelineState(STAGES, 0)
    ARRIVED: T.let = 2 * RANKS
    # Pieces of 128 rows. The last rows may have fewer; those without elements arrive, too.
    of_part: T.let = T.truncdiv(BM * K + (PIECE - 1), PIECE)
    across: T.let = T.truncdiv(N + (BN - 1), BN)
    down: T.let = T.truncdiv(M + (BM - 1), BM)
    steps: T.let = T.truncdiv(K + (BK - 1), BK)
    tile: T.int32 = number - copiers

    @T.inline
    def place():
        """The matrix of A and C that the tile belongs to, from the rank's own on, and its first row and column."""
        turned: T.let = T.truncdiv(tile, down * across)
        here: T.let = tile - turned * (down * across)
        band: T.let = T.truncdiv(here, GROUP * across)
        rows: T.let = T.min(down - band * GROUP, GROUP)
        within: T.let = here - band * (GROUP * across)
        matrix = T.truncmod(me + turned, RANKS)
        m = (band * GROUP + T.truncmod(within, rows)) * BM
        n = T.truncdiv(within, rows) * BN

    matrix: T.int32 = 0
    m: T.int32 = 0
    n: T.int32 = 0
    if number < copiers:
        slot: T.let = group * 4 + warp
        if number == 0 and slot == 0:
            tell(FLAGS, Flags, RANKS, me, turn, lane)
        if T.ptx.elect_sync():
            here = T.decl_buffer((RANKS * M * K,), dtype, data=A.data)
            all: T.let = (RANKS - 1) * down * of_part
            first: T.let = number * WARPS + slot
            step: T.let = copiers * WARPS
            full: T.let = copies.full.ptr_to([slot])
            for i in range(T.truncdiv(all - first + (step - 1), step)):
                # The matrix and the 128 rows of the piece, its first element in A and its elements.
                turned: T.let = T.truncdiv(first + i * step, down * of_part)
                rest: T.let = first + i * step - turned * (down * of_part)
                other: T.let = T.truncmod(me + 1 + turned, RANKS)
                part: T.let = T.truncdiv(rest, of_part)
                within: T.let = part * (BM * K) + (rest - part * of_part) * PIECE
                count: T.let = T.max(T.min(T.min((part + 1) * BM, M) * K - within, PIECE), 0)
                wait_until(F.ptr_to([other]), turn, "sys")
                copies.full.arrive(slot, count * BYTES[dtype])
                if count > 0:
                    there = T.decl_buffer((RANKS * M * K,), dtype, data=T.reinterpret("handle", Rows[other]))
                    T.ptx.cp_async_bulk_g2s_cluster(pieces.ptr_to([slot, 0]), there.ptr_to([other * (M * K) + within]), count * BYTES[dtype], full)
                copies.full.wait(slot, i % 2)
                if count > 0:
                    T.ptx.cp_async_bulk_s2g(here.ptr_to([other * (M * K) + within]), pieces.ptr_to([slot, 0]), count * BYTES[dtype])
                T.ptx.cp_async.bulk.commit_group()
                T.ptx.cp_async.bulk.wait_group(0, False)
                T.ptx.fence.proxy_async("global")
                T.ptx.red_scalar(F.ptr_to([ARRIVED + other * down + part]), T.uint32(1), sem="release", scope="gpu", op="add", ptx_type="u32")
        if number == 0 and slot == 0:
            # It waits for the copies, and then for the other ranks.
            for other in range(1, RANKS):
                for step in range(T.truncdiv(down + 31, 32)):
                    part: T.let = step * 32 + lane
                    if part < down:
                        wait_until(F.ptr_to([ARRIVED + T.truncmod(me + other, RANKS) * down + part]), turn * T.cast(of_part, "uint32"), "gpu")
            tell(FLAGS, Flags, RANKS, RANKS + me, turn, lane)
            for step in range(T.truncdiv(RANKS + 31, 32)):
                if step * 32 + lane < RANKS:
                    wait_until(F.ptr_to([RANKS + step * 32 + lane]), turn, "sys")
    elif group == 0:
        T.ptx.setmaxnreg(False, 40)
        if warp == 0:
            if T.ptx.elect_sync():
                while tile < RANKS * down * across:
                    place()
                    if matrix != me:
                        wait_until(F.ptr_to([ARRIVED + matrix * down + T.truncdiv(m, BM)]), turn * T.cast(of_part, "uint32"), "gpu")
                        # The copy engine has written the rows, and it reads them.
                        T.ptx.fence.proxy_async("global")
                    copy_operands(pipe, ring, As, Bs, A, matrix, m, B, 0, n, steps, BM, BN, BK, False, False)
                    tile += blocks
    else:
        T.ptx.setmaxnreg(True, 232)
        half: T.let = (group - 1) * 64
        sums = T.alloc_local((64, BN), "float32", layout=accumulator(BN))
        rounded = T.alloc_local((64, BN), dtype, layout=accumulator(BN))
        while tile < RANKS * down * across:
            place()
            multiply_stage(pipe, ring, sums, As, Bs, half, False, False, False)
            multiply_others(pipe, ring, sums, As, Bs, half, steps, warp, lane, STAGES, False, False)
            store_tile(sums, rounded, Cs, C, matrix, m + half, n, BN, CHUNK, group - 1, warp == 0 and lane == 0)
            tile += blocks
        if warp == 0 and lane == 0:
            T.ptx.cp_async.bulk.wait_group(0, False)


# Row `p` of each matrix `d` has 1 at column `p % 16` and 2 at column `d`.
# sim: scatter(dtype="bfloat16", BN=128)
#   ranks: 2
#   seeds: 2
#   A: bfloat16[2x20x16] = (1 if k == j % 16 else 0) + (2 if k == i else 0)
#   B: bfloat16[1x24x16] = k + j % 3 + 16 * rank
#   C: bfloat16[20x24] = 0 -> 2 * (i % 16 + 2 * rank + 3 * (j % 3)) + 48
#   P: bfloat16[2x20x24] = 0 -> 0 if i == rank else j % 16 + 2 * rank + 3 * (k % 3 + 16 * i)
#   F: uint32[6] = 0 -> [1, 1, rank, 1 - rank, rank, 1 - rank][i]
#   Partials: uint64[2] = "P@" + str(i)
#   Flags: uint64[2] = "F@" + str(i)
#   me = rank
#   turn = 1
#   blocks = 1
@T.jit
def scatter(a: T.handle, b: T.handle, c: T.handle, partial: T.handle, flags: T.handle, partials_of_ranks: T.handle, flags_of_ranks: T.handle,
            me: T.int32, turn: T.uint32, blocks: T.int32, *, dtype: T.constexpr, BN: T.constexpr = 256):
    """C = the sum over all ranks of matrix `me` of A times B: each rank computes the product for every rank, and the others store
    theirs, rounded, to `partial` of the rank that sums them, matrix by matrix.

    A rank begins with the tiles of the next rank and ends with its own, for which the others have then been on their way for long. Only tiles of the
    rank itself wait for other ranks' tiles, after all tiles for other ranks in every block; so blocks must be at most as many as can be resident.

    | flags | |
    |---|---|
    | 0 to RANKS - 1 | the launch in which the rank has begun: it has read all products of the launch before |
    | from RANKS on | for each 64 rows of a tile, and each rank, the launch whose rows the rank has stored |
    """
    BM, BK = T.meta_var(128), T.meta_var(64)
    STAGES = T.meta_var(stages(BN))
    RANKS, M, N, K, FLAGS = (T.int32() for _ in range(5))
    a_rank, a_row, b_batch, b_row, c_row = (T.int64() for _ in range(5))
    A = T.match_buffer(a, (RANKS, M, K), dtype, strides=(a_rank, a_row, 1))
    B = T.match_buffer(b, (1, N, K), dtype, strides=(b_batch, b_row, 1))
    C = T.match_buffer(c, (M, N), dtype, strides=(c_row, 1))
    P = T.match_buffer(partial, (RANKS, M, N), dtype)
    F = T.match_buffer(flags, (FLAGS,), "uint32")
    Partials = T.match_buffer(partials_of_ranks, (RANKS,), "uint64")
    Flags = T.match_buffer(flags_of_ranks, (RANKS,), "uint64")
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
    block = T.cta_id([blocks])
    group = T.warpgroup_id([3])
    warp = T.warp_id_in_wg([4])
    lane = T.lane_id([32])
    pool = T.SMEMPool()
    As = pool.alloc_tcgen05_mma_AB((STAGES, BM, BK), dtype)
    Bs = pool.alloc_tcgen05_mma_AB((STAGES, BN, BK), dtype)
    staged = pool.alloc((2, 64, PART + 8), "float32", align=16)
    pipe = Pipeline(pool, STAGES, full="tma", empty="mbar", init_empty=2, empty_phase_offset=1)
    pool.commit()
    T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    ring = PipelineState(STAGES, 0)
    across: T.let = T.truncdiv(N + (BN - 1), BN)
    down: T.let = T.truncdiv(M + (BM - 1), BM)
    steps: T.let = T.truncdiv(K + (BK - 1), BK)
    tile: T.int32 = block
    matrix: T.int32 = 0
    m: T.int32 = 0
    n: T.int32 = 0

    @T.inline
    def place():
        """The matrix of A that the tile belongs to, from the next rank's on, and its first row and column."""
        turned: T.let = T.truncdiv(tile, down * across)
        here: T.let = tile - turned * (down * across)
        band: T.let = T.truncdiv(here, GROUP * across)
        rows: T.let = T.min(down - band * GROUP, GROUP)
        within: T.let = here - band * (GROUP * across)
        matrix = T.truncmod(me + 1 + turned, RANKS)
        m = (band * GROUP + T.truncmod(within, rows)) * BM
        n = T.truncdiv(within, rows) * BN

    if group == 0:
        T.ptx.setmaxnreg(False, 40)
        if warp == 0:
            if T.ptx.elect_sync():
                while tile < RANKS * down * across:
                    place()
                    copy_operands(pipe, ring, As, Bs, A, matrix, m, B, 0, n, steps, BM, BN, BK, False, False)
                    tile += blocks
        elif warp == 1 and block == 0:
            tell(FLAGS, Flags, RANKS, me, turn, lane)
    else:
        T.ptx.setmaxnreg(True, 232)
        half: T.let = group - 1
        sums = T.alloc_local((64, BN), "float32", layout=accumulator(BN))
        value = T.alloc_local((2, 8), "float32")
        four = T.alloc_local((4,), "float32")
        near = T.alloc_local((2, 8), dtype)
        ahead = T.alloc_local((2, 8), dtype)
        while tile < RANKS * down * across:
            place()
            first: T.let = m + half * 64 + warp * 16 + lane // 4
            flag: T.let = RANKS + ((T.truncdiv(m, BM) * 2 + half) * across + T.truncdiv(n, BN)) * RANKS
            multiply_stage(pipe, ring, sums, As, Bs, half * 64, False, False, False)
            multiply_others(pipe, ring, sums, As, Bs, half * 64, steps, warp, lane, STAGES, False, False)

            @T.inline
            def fetch(number):
                """The rows of the others for a part of the tile: all of one part, then those of the next."""
                source: T.let = T.truncmod(me + 1 + T.truncmod(number, RANKS - 1), RANKS)
                column: T.let = n + T.truncdiv(number, RANKS - 1) * PART + lane % 4 * 8
                for p in T.unroll(2):
                    if first + p * 8 < M and column < N:
                        load(ahead, p, P.ptr_to([source, first + p * 8, column]), dtype)
                    else:
                        for e in T.vectorized(8):
                            ahead[p, e] = T.cast(0, dtype)

            if matrix == me:
                for step in range(T.truncdiv(RANKS + 31, 32)):
                    if step * 32 + lane < RANKS and step * 32 + lane != me:
                        wait_until(F.ptr_to([flag + step * 32 + lane]), turn, "sys")
                T.cuda.warp_sync()
                if RANKS > 1:
                    fetch(0)
            else:
                if lane == 0:
                    wait_until(F.ptr_to([matrix]), turn, "sys")
                T.cuda.warp_sync()
            for part in range(BN // PART):
                column: T.let = n + part * PART + lane % 4 * 8
                rows_of(value, four, part, sums, BN, staged, half, warp, lane)
                if matrix == me:
                    for other in range(RANKS - 1):
                        for p in T.unroll(2):
                            for e in T.unroll(8):
                                near[p, e] = ahead[p, e]
                        if part * (RANKS - 1) + other + 1 < (RANKS - 1) * (BN // PART):
                            fetch(part * (RANKS - 1) + other + 1)
                        for p in T.unroll(2):
                            for e in T.unroll(8):
                                value[p, e] = value[p, e] + T.cast(near[p, e], "float32")
                    for p in T.unroll(2):
                        if first + p * 8 < M and column < N:
                            store(C.ptr_to([first + p * 8, column]), value, p, dtype)
                else:
                    there = T.decl_buffer((RANKS, M, N), dtype, data=T.reinterpret("handle", Partials[matrix]))
                    for p in T.unroll(2):
                        if first + p * 8 < M and column < N:
                            store(there.ptr_to([me, first + p * 8, column]), value, p, dtype)
            if matrix != me:
                T.cuda.warpgroup_sync(8 + group)
                if warp == 0 and lane == 0:
                    far = T.decl_buffer((FLAGS,), "uint32", data=T.reinterpret("handle", Flags[matrix]))
                    T.ptx.st_release(far.ptr_to([flag + me]), turn, ptx_type="u32", scope="sys")
            tile += blocks
