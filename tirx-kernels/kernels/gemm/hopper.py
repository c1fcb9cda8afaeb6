"""Matrix products for Hopper of 16 bits and of e4m3, with float32 accumulators, for any M, N and K: C = A B, or with scales, bias, activation
and residual.

`TRANS_A` and `TRANS_B` describe the memory of the operands. Without them the rows of A and the columns of B are contiguous,
so that a tensor copy fetches 128 bytes of neighbors along K. Tiles at the edges are filled with zeros and stored in part by the copy engine.
"""

from __future__ import annotations

from tvm.backend.cuda.lang import Pipeline, PipelineState, TMABar
from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode, mma_shared_layout
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import S, TileLayout

from epilogue import BYTES, accumulator, activate, finish, optional
from loop import GROUP, clear_rows, copy_operands, copy_part, multiply_others, multiply_stage, stages, store_tile


def operands(a, b, c, dtype, TRANS_A, TRANS_B, out=None):
    """The buffers of one product: extents and strides at run time."""
    BATCH, M, N, K = T.int32(), T.int32(), T.int32(), T.int32()
    a_batch, a_row, b_batch, b_row, c_batch, c_row = T.int64(), T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
    A = T.match_buffer(a, (BATCH, K, M) if TRANS_A else (BATCH, M, K), dtype, strides=(a_batch, a_row, 1))
    B = T.match_buffer(b, (BATCH, K, N) if TRANS_B else (BATCH, N, K), dtype, strides=(b_batch, b_row, 1))
    C = T.match_buffer(c, (BATCH, M, N), out or dtype, strides=(c_batch, c_row, 1))
    return BATCH, M, N, K, A, B, C


@T.jit
def tiles(a: T.handle, b: T.handle, c: T.handle, bias: T.Optional(T.handle), residual: T.Optional(T.handle), scale_a: T.Optional(T.handle),
          scale_b: T.Optional(T.handle), alpha: T.Optional(T.float32), activation: T.Optional(T.int32), blocks: T.int32, *, dtype: T.constexpr,
          out: T.constexpr = "", BN: T.constexpr = 256, TRANS_A: T.constexpr = False, TRANS_B: T.constexpr = False):
    """Tiles of 128 x BN elements. One warp copies operands into a ring of stages, two warpgroups multiply 64 rows each, and
    the copy engine stores a tile while the next one is computed. With `alpha`, C is that of `general` in `general.py`, of type `out`; the other
    optional parameters belong to it."""
    BM, BK = T.meta_var(128), T.meta_var(128 // BYTES[dtype])
    CHUNK = T.meta_var(64 if BN % 64 == 0 else 32 if BN % 32 == 0 else 16)
    STAGES = T.meta_var(stages(BN))
    out = T.meta_var(out or dtype)
    BATCH, M, N, K, A, B, C = operands(a, b, c, dtype, TRANS_A, TRANS_B, out)
    if alpha is not None:
        Bias, (bias_batch, bias_columns) = optional(bias, 2, out)
        Residual, (r_batch, r_rows, r_columns) = optional(residual, 3, out)
        ScaleA, (sa_batch, sa_rows) = optional(scale_a, 2, "float32")
        ScaleB, (sb_batch, sb_columns) = optional(scale_b, 2, "float32")
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
    T.attr({"tirx.use_programtic_dependent_launch": True})
    T.ptx.griddepcontrol.launch_dependents()
    block = T.cta_id([blocks])
    group = T.warpgroup_id([3])
    warp = T.warp_id_in_wg([4])
    lane = T.lane_id([32])
    pool = T.SMEMPool()
    As = pool.alloc_tcgen05_mma_AB((STAGES, BK, BM) if TRANS_A else (STAGES, BM, BK), dtype)
    Bs = pool.alloc_tcgen05_mma_AB((STAGES, BK, BN) if TRANS_B else (STAGES, BN, BK), dtype)
    mode = {64: SwizzleMode.SWIZZLE_128B_ATOM, 32: SwizzleMode.SWIZZLE_64B_ATOM, 16: SwizzleMode.SWIZZLE_32B_ATOM}[CHUNK]
    Cs = pool.alloc((2, 2, 64, CHUNK), out, layout=mma_shared_layout(out, mode, (2, 2, 64, CHUNK)), align=1024)
    if alpha is not None:
        # The scales of two columns of a tile and their bias, then those of the next two, in the second half of a warpgroup's part of Cs.
        pool.move_base_to(STAGES * (BM + BN) * 128)
        of_columns = pool.alloc((2, 2, 32 * CHUNK), "float32", align=1024)
    pipe = Pipeline(pool, STAGES, full="tma", empty="mbar", init_empty=2, empty_phase_offset=1)
    pool.commit()
    T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    T.ptx.griddepcontrol.wait()
    ring = PipelineState(STAGES, 0)
    across: T.let = T.truncdiv(N + (BN - 1), BN)
    down: T.let = T.truncdiv(M + (BM - 1), BM)
    steps: T.let = T.truncdiv(K + (BK - 1), BK)
    tile: T.int32 = block
    if group == 0:
        T.ptx.setmaxnreg(False, 40)
        if warp == 0:
            if T.ptx.elect_sync():
                while tile < BATCH * down * across:
                    # Bands of GROUP rows of tiles, column by column: both operands stay in the L2 cache.
                    batch: T.let = T.truncdiv(tile, down * across)
                    here: T.let = tile - batch * (down * across)
                    band: T.let = T.truncdiv(here, GROUP * across)
                    rows: T.let = T.min(down - band * GROUP, GROUP)
                    within: T.let = here - band * (GROUP * across)
                    m: T.let = (band * GROUP + T.truncmod(within, rows)) * BM
                    n: T.let = T.truncdiv(within, rows) * BN
                    copy_operands(pipe, ring, As, Bs, A, batch, m, B, batch, n, steps, BM, BN, BK, TRANS_A, TRANS_B)
                    tile += blocks
    else:
        T.ptx.setmaxnreg(True, 232)
        half: T.let = (group - 1) * 64
        sums = T.alloc_local((64, BN), "float32", layout=accumulator(BN))
        rounded = T.alloc_local((64, BN), out, layout=accumulator(BN))
        starts: T.let = warp == 0 and lane == 0
        while tile < BATCH * down * across:
            multiply_stage(pipe, ring, sums, As, Bs, half, False, TRANS_A, TRANS_B)
            # While the first MMAs are under way: the divisions, and loads that nothing waits for before the last MMA.
            batch: T.let = T.truncdiv(tile, down * across)
            here: T.let = tile - batch * (down * across)
            band: T.let = T.truncdiv(here, GROUP * across)
            rows: T.let = T.min(down - band * GROUP, GROUP)
            within: T.let = here - band * (GROUP * across)
            m: T.let = (band * GROUP + T.truncmod(within, rows)) * BM + half
            n: T.let = T.truncdiv(within, rows) * BN
            if alpha is not None:
                # The scale and the bias of a column or two for each thread, the scales of A and of two of its rows.
                OWN = T.meta_var((BN + 127) // 128)
                first: T.let = m + warp * 16 + lane // 4
                column: T.let = warp * 32 + lane
                of_rows = T.alloc_local((2,), "float32")
                scale = T.alloc_local((OWN,), "float32")
                shift = T.alloc_local((OWN,), out)
                of_rows[0] = 1.0
                if sa_rows > 0:
                    for p in T.unroll(2):
                        of_rows[p] = ScaleA[T.min(batch, sa_batch - 1), T.min(first + p * 8, sa_rows - 1)]
                for i in T.unroll(OWN):
                    scale[i] = 1.0
                    shift[i] = 0.0
                    if sb_columns > 0:
                        scale[i] = ScaleB[T.min(batch, sb_batch - 1), T.min(n + column + i * 128, sb_columns - 1)]
                    if bias_columns > 0:
                        shift[i] = Bias[T.min(batch, bias_batch - 1), T.min(n + column + i * 128, bias_columns - 1)]
            multiply_others(pipe, ring, sums, As, Bs, half, steps, warp, lane, STAGES, TRANS_A, TRANS_B)
            if alpha is not None:
                if starts:
                    T.ptx.cp_async.bulk.wait_group(0, True)
                T.cuda.warpgroup_sync(8 + group)
                alpha_of_a: T.float32 = alpha
                if sa_rows == 1:
                    alpha_of_a = alpha * of_rows[0]
                for i in T.unroll(OWN):
                    if column + i * 128 < BN:
                        at: T.let = (column + i * 128) // 2 * 4 + column % 2
                        of_columns[group - 1, 1, at] = alpha_of_a * scale[i]
                        of_columns[group - 1, 1, at + 2] = T.cast(shift[i], "float32")
                T.cuda.warpgroup_sync(8 + group)
                columns_here = T.decl_buffer((BN * 2,), "float32", data=of_columns.ptr_to([group - 1, 1, 0]), scope="shared.dyn")
                finish(sums, columns_here, of_rows, sa_rows > 1, Residual, r_columns, batch, first, n, M, N, lane % 4 * 2, activation, BN, out)
            store_tile(sums, rounded, Cs, C, batch, m, n, BN, CHUNK, group - 1, starts)
            tile += blocks
        if starts:
            T.ptx.cp_async.bulk.wait_group(0, False)


@T.jit
def columns(a: T.handle, b: T.handle, c: T.handle, bias: T.Optional(T.handle), residual: T.Optional(T.handle),
            scale_a: T.Optional(T.handle), scale_b: T.Optional(T.handle), alpha: T.Optional(T.float32), activation: T.Optional(T.int32), early: T.int32, *,
            dtype: T.constexpr, BN: T.constexpr = 64, SPLIT: T.constexpr = 2, TRANS_B: T.constexpr = False, out: T.constexpr = ""):
    """For few rows of A. The instruction's rows are 64 columns of B, so that 8 rows of A fill an instruction.

    The SPLIT blocks of a cluster share a tile of C. Each block takes a part of K, and they add their parts through
    distributed shared memory. With `alpha`, C is that of `general` in `general.py`, of type `out`; the other optional parameters belong to it.

    If B is constant, the ring fills while the previous kernel ends, with `early` stages under way at a time. More of them would slow down the loads of
    the previous kernel, which then takes as much longer as this one becomes shorter. `early` is 0 if the previous kernel may write B."""
    BM = T.meta_var(64)
    # Few long copies keep as many bytes under way as many short ones, with fewer barriers.
    LENGTH, STAGES = T.meta_var({16: (256, 5), 64: (128, 6), 128: (128, 8)}[BN])      # in bytes
    BK = T.meta_var(LENGTH // BYTES[dtype])
    # One row of tiles reads B once. Otherwise B would evict the instructions of the kernels between the products of a model, and the little that they
    # load, from the L2 cache.
    HINT = T.meta_var("evict_first" if BN < 128 else "")
    out = T.meta_var(out or dtype)
    BATCH, M, N, K, A, B, C = operands(a, b, c, dtype, False, TRANS_B, out)
    if alpha is not None:
        Bias, (bias_batch, bias_columns) = optional(bias, 2, out)
        Residual, (r_batch, r_rows, r_columns) = optional(residual, 3, out)
        ScaleA, (sa_batch, sa_rows) = optional(scale_a, 2, "float32")
        ScaleB, (sb_batch, sb_columns) = optional(scale_b, 2, "float32")
    THREADS = T.meta_var(256)
    T.device_entry()
    T.attr({"tirx.use_programtic_dependent_launch": True})
    part, across, rows = T.cta_id([SPLIT, T.truncdiv(N + (BM - 1), BM), T.truncdiv(M + (BN - 1), BN) * BATCH])
    T.cta_id_in_cluster([SPLIT, 1, 1])
    group = T.warpgroup_id([2])
    warp = T.warp_id_in_wg([4])
    lane = T.lane_id([32])
    tid = T.thread_id([THREADS])
    pool = T.SMEMPool()
    Bs = pool.alloc_tcgen05_mma_AB((STAGES, BK, BM) if TRANS_B else (STAGES, BM, BK), dtype)
    As = pool.alloc_tcgen05_mma_AB((STAGES, BN, BK), dtype)
    pipe = Pipeline(pool, STAGES, full="tma", empty="mbar", init_empty=1, empty_phase_offset=1)
    of_a = TMABar(pool, STAGES)              # the bytes of A in a stage; `pipe.full` counts those of B
    of_a.init(1)
    pool.move_base_to(0)
    parts = pool.alloc((BN, BM + 4), "float32", align=1024)
    pool.commit()
    T.ptx.fence.mbarrier_init()
    steps: T.let = T.truncdiv(K + (BK - 1), BK)
    first: T.int32 = T.truncdiv(steps * part, SPLIT)
    last: T.int32 = T.truncdiv(steps * (part + 1), SPLIT)
    batch: T.int32 = T.truncmod(rows, BATCH)
    n: T.int32 = across * BM
    m: T.int32 = T.truncdiv(rows, BATCH) * BN
    # Copies of A. Without all rows of a tile it comes by pieces: rows that A does not have are slow if all multiprocessors ask for them.
    PIECE = T.meta_var(16)
    pieces: T.int32 = T.truncdiv(T.min(M - m, BN) + (PIECE - 1), PIECE)
    if BN > PIECE:
        if pieces < BN // PIECE:
            clear_rows(As, pieces * PIECE, tid, THREADS)
    T.cuda.cta_sync()
    ring = PipelineState(STAGES, 0)
    if group == 1 and warp == 0:
        if early == 0:
            T.ptx.griddepcontrol.wait()
        if T.ptx.elect_sync():
            # Not unrolled, as the loop for A below: the first copies wait for the fetch of fewer instructions.
            for k in T.serial(first, last, unroll=False):
                pipe.empty.wait(ring.stage, ring.phase)
                if 0 < early and early <= k - first and k - first < STAGES:
                    pipe.full.wait(k - first - early, 0)
                pipe.full.arrive(ring.stage, BM * LENGTH)
                copy_part(Bs, ring.stage, B, batch, n, k * BK, BM, BK, TRANS_B, pipe.full.ptr_to([ring.stage]), hint=HINT)
                ring.advance()
            # Not before: blocks of the next kernels would take the room of others, and gather on few multiprocessors.
            T.ptx.griddepcontrol.launch_dependents()
        # Not the other lanes first: a wait may stop the whole warp.
        T.cuda.warp_sync()
    T.ptx.griddepcontrol.wait()
    if alpha is not None:
        # Loaded here and used behind the loop, the scales of tensors arrive while the operands do.
        scale_of_a: T.float32 = 1.0
        scale_of_b: T.float32 = 1.0
        if sa_rows == 1:
            scale_of_a = ScaleA[T.min(batch, sa_batch - 1), 0]
        if sb_columns == 1:
            scale_of_b = ScaleB[T.min(batch, sb_batch - 1), 0]
    sums = T.alloc_local((64, BN), "float32", layout=accumulator(BN))
    if group == 1:
        if warp == 1:
            if T.ptx.elect_sync():
                for k in T.serial(first, last, unroll=False):
                    pipe.empty.wait(ring.stage, ring.phase)
                    of_a.arrive(ring.stage, pieces * (PIECE * LENGTH))
                    bar: T.let = of_a.ptr_to([ring.stage])
                    if pieces == BN // PIECE:
                        Tx.copy_async(As[ring.stage], A[batch, m : m + BN, k * BK : k * BK + BK], mbar=bar, prefetch_tensormap=True)
                    else:
                        for piece in T.unroll(BN // PIECE - 1):
                            if piece < pieces:
                                at: T.let = m + piece * PIECE
                                Tx.copy_async(As[ring.stage, piece * PIECE : piece * PIECE + PIECE, :],
                                              A[batch, at : at + PIECE, k * BK : k * BK + BK], mbar=bar, prefetch_tensormap=True)
                    ring.advance()
    else:
        for step in range(last - first):
            pipe.full.wait(ring.stage, ring.phase)
            of_a.wait(ring.stage, ring.phase)
            Tx.wg.gemm_async(sums, Bs[ring.stage], As[ring.stage], transA=TRANS_B, accum=step > 0)
            T.ptx.wgmma.commit_group()
            T.ptx.wgmma.wait_group(1)
            if step > 0 and warp == 0 and lane == 0:
                pipe.empty.arrive((ring.stage + STAGES - 1) % STAGES)
            ring.advance()
        T.ptx.wgmma.wait_group(0)
        # Zeros before the loop, or a use of the registers outside of this branch, would make nvcc wait for each instruction.
        if first == last:
            Tx.wg.zero(sums)
        # The ring is done, and its memory holds this block's part of the sums, by rows of C.
        T.cuda.warpgroup_sync(1)
        turned = T.decl_buffer((BM, BN), "float32", data=parts.data, elem_offset=parts.elem_offset, scope="shared.dyn",
                               layout=TileLayout(S[(BM, BN) : (1, BM + 4)]))
        Tx.wg.copy(turned, sums)
    # The barrier of the cluster orders the parts alone; racecheck knows that of the block.
    T.cuda.cta_sync()
    if SPLIT > 1:
        T.cuda.cluster_sync()
    VECTORS = T.meta_var((BM * BN // 4 + SPLIT - 1) // SPLIT)     # of four elements, for each block
    for step in range((VECTORS + THREADS - 1) // THREADS):
        index: T.let = part * VECTORS + step * THREADS + tid
        i: T.let = index // (BM // 4)
        j: T.let = index % (BM // 4) * 4
        if step * THREADS + tid < VECTORS and m + i < M and i < BN and n + j < N:
            total = T.alloc_local((1, 4), "float32")
            for e in T.vectorized(4):
                total[0, e] = parts[i, j + e]
            for other in T.unroll(SPLIT - 1):
                there: T.let = T.reinterpret("handle", T.ptx.map_shared_rank(parts.ptr_to([i, j]), (part + other + 1) % SPLIT))
                far = T.decl_buffer((4,), "float32", data=there)
                near = T.alloc_local((4,), "float32")
                for e in T.vectorized(4):
                    near[e] = far[e]
                for e in T.unroll(4):
                    total[0, e] += near[e]
            if alpha is not None:
                for e in T.unroll(4):
                    total[0, e] = total[0, e] * (alpha * scale_of_a * scale_of_b)
                    if sa_rows > 1:
                        total[0, e] = total[0, e] * ScaleA[T.min(batch, sa_batch - 1), T.min(m + i, sa_rows - 1)]
                    if sb_columns > 1:
                        total[0, e] = total[0, e] * ScaleB[T.min(batch, sb_batch - 1), T.min(n + j + e, sb_columns - 1)]
                    if bias_columns > 0:
                        total[0, e] = total[0, e] + T.cast(Bias[T.min(batch, bias_batch - 1), n + j + e], "float32")
                activate(total, 1, 4, activation)
                if r_columns > 0:
                    for e in T.unroll(4):
                        total[0, e] = total[0, e] + T.cast(Residual[batch, m + i, n + j + e], "float32")
            for e in T.vectorized(4):
                C[batch, m + i, n + j + e] = T.cast(total[0, e], out)
    if SPLIT > 1:
        T.cuda.cluster_sync()
