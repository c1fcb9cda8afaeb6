"""Matrix products for Hopper with more than C = A B: scales, bias, activation, a gate, a residual, operands of 8, 16 and 32 bits, an output
of another type, and groups of rows that each have their own B.

The main loop is that of `hopper.py`. Threads store C, since a group may end within a tile. They pass accumulators through shared memory,
so that each thread has neighbors of a row: it reads bias and residual and writes C by 16 bytes.
"""

from __future__ import annotations

from tvm.backend.cuda.lang import Pipeline, PipelineState
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx

from epilogue import BYTES, accumulator, activate, by_vectors, optional
from loop import GROUP, PART, copy_part, release, rows_of, stages


@T.jit
def general(a: T.handle, b: T.handle, up: T.Optional(T.handle), c: T.handle, bias: T.handle, residual: T.handle, scale_a: T.handle,
            scale_b: T.handle, offsets: T.Optional(T.handle), alpha: T.float32, activation: T.int32, vectors: T.int32, blocks: T.int32,
            *, dtype: T.constexpr, out: T.constexpr = "", BN: T.constexpr = 128, TRANS_B: T.constexpr = False, SCALED: T.constexpr = False,
            WARPGROUPS: T.constexpr = 2, CLUSTER: T.constexpr = 1):
    """C = activation(alpha scale_a scale_b A B + bias) + residual, by tiles of 64 WARPGROUPS x BN elements.

    With `up`, the activation of A B is multiplied by A `up` before the residual; a tile has BN / 2 columns of both. With `offsets`, the rows
    of A and C from `offsets[e]` to `offsets[e + 1]` belong to matrix `e` of B. `bias`, `residual`, `scale_a` and `scale_b` may be
    empty. A scale has one element, or one for each row of A or column of B, in front of them one for each matrix. With SCALED, the scales are
    those of 128 neighbors along K in a row of A, and of 128 x 128 elements of B; accumulators of 128 along K are scaled and
    added in registers. A warpgroup scales while others multiply: three of them keep the tensor cores busier than two. With a CLUSTER of 2, the
    blocks of a cluster take tiles one above the other, and each copies half of B for both.
    `vectors` is 1 if C, `bias` and `residual` allow accesses of 16 bytes."""
    out = T.meta_var(out or dtype)
    GATED, GROUPED = T.meta_var(up is not None), T.meta_var(offsets is not None)
    BM, BK = T.meta_var(64 * WARPGROUPS), T.meta_var(128 // BYTES[dtype])
    DOWN = T.meta_var(BM * CLUSTER)                               # rows of the tiles of a cluster
    ACCUMULATOR = T.meta_var("int32" if dtype == "int8" else "float32")
    VALUE = T.meta_var("int32" if out == "int32" else "float32")  # integers are not scaled
    COLUMNS = T.meta_var(BN // 2 if GATED else BN)                # of C in a tile
    WIDE = T.meta_var(16 // BYTES[out])                           # elements of C in 16 bytes
    STAGES = T.meta_var(stages(BN) if WARPGROUPS == 2 else 4)
    OF_A, BATCH, M, N, K = (T.int32() for _ in range(5))
    a_batch, a_row, b_batch, b_row, c_batch, c_row, c_column = (T.int64() for _ in range(7))
    A = T.match_buffer(a, (OF_A, M, K), dtype, strides=(a_batch, a_row, 1))
    B = T.match_buffer(b, (BATCH, K, N) if TRANS_B else (BATCH, N, K), dtype, strides=(b_batch, b_row, 1))
    C = T.match_buffer(c, (OF_A, M, N), out, strides=(c_batch, c_row, c_column))
    if GATED:
        up_batch, up_row = T.int64(), T.int64()
        Up = T.match_buffer(up, (BATCH, K, N) if TRANS_B else (BATCH, N, K), dtype, strides=(up_batch, up_row, 1))
    Bias, (bias_batch, bias_columns) = optional(bias, 2, out)
    Residual, (r_batch, r_rows, r_columns) = optional(residual, 3, out)
    if SCALED:
        T.static_assert(BN == 128 and BK == 128 and not GATED and CLUSTER == 1, "a tile and a step have one scale of B")
        ScaleA, (sa_batch, sa_rows, sa_steps) = optional(scale_a, 3, "float32")
        ScaleB, (sb_batch, sb_columns, sb_steps) = optional(scale_b, 3, "float32")
    else:
        ScaleA, (sa_batch, sa_rows) = optional(scale_a, 2, "float32")
        ScaleB, (sb_batch, sb_columns) = optional(scale_b, 2, "float32")
    if GROUPED:
        ENDS = T.int32()
        Offsets = T.match_buffer(offsets, (ENDS,), "int32")
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
    T.attr({"tirx.use_programtic_dependent_launch": True})
    T.ptx.griddepcontrol.launch_dependents()
    if CLUSTER > 1:
        rank, turn = T.cta_id([CLUSTER, blocks])
        T.cta_id_in_cluster([CLUSTER, 1])
    else:
        turn = T.cta_id([blocks])
        rank = T.meta_var(0)
    group = T.warpgroup_id([1 + WARPGROUPS])
    warp = T.warp_id_in_wg([4])
    lane = T.lane_id([32])
    pool = T.SMEMPool()
    As = pool.alloc_tcgen05_mma_AB((STAGES, BM, BK), dtype)
    Bs = pool.alloc_tcgen05_mma_AB((STAGES, BK, BN) if TRANS_B else (STAGES, BN, BK), dtype)
    # Rows of 160 bytes: the pairs of a fragment in four rows are in different banks.
    staged = pool.alloc((WARPGROUPS, 64, PART + 8), ACCUMULATOR, align=16)
    if SCALED:
        if BYTES[out] == 2:
            # For C without more than its scales, in the memory of `staged`. Rows of 144 bytes: eight of them are in different banks.
            pool.move_base_to(STAGES * (BM + BN) * 128)
            packed = pool.alloc((WARPGROUPS, 64, 72), out, align=16)
            pool.move_base_to(STAGES * (BM + BN) * 128 + WARPGROUPS * 64 * (PART + 8) * 4)
        scales = pool.alloc((STAGES, BM), "float32", align=16)   # of a row of A and of B
        # Of a tile: its matrix, its first row and column, the row behind its group, and the place of the next tile or -1. The warp that writes is
        # at most as many tiles ahead as there are stages, and has written the next one.
        PLACES = T.meta_var(STAGES + 2)
        places = pool.alloc((PLACES, 8), "int32", align=16)
    # Each thread that writes scales arrives itself, and each thread that reads them: racecheck knows no arrival for other threads.
    pipe = Pipeline(pool, STAGES, full="tma", empty="mbar", init_full=1 + 8 * WARPGROUPS if SCALED else 1,
                    init_empty=128 * WARPGROUPS if SCALED else WARPGROUPS * CLUSTER, empty_phase_offset=1)
    pool.commit()
    T.ptx.fence.mbarrier_init()
    if CLUSTER > 1:
        T.cuda.cluster_sync()
    else:
        T.cuda.cta_sync()
    T.ptx.griddepcontrol.wait()
    ring = PipelineState(STAGES, 0)
    across: T.let = T.truncdiv(N + (COLUMNS - 1), COLUMNS)
    steps: T.let = T.truncdiv(K + (BK - 1), BK)
    # The matrix of B, its first and last row of A and C, and the number of the tile among its tiles.
    matrix: T.int32 = 0
    begin: T.int32 = 0
    end: T.int32 = M
    down: T.int32 = T.truncdiv(M + (DOWN - 1), DOWN)
    tile: T.int32 = turn
    if GROUPED:
        begin = T.max(Offsets[0], 0)
        end = T.min(T.max(Offsets[1], begin), M)
        down = T.truncdiv(end - begin + (DOWN - 1), DOWN)

    @T.inline
    def settle():
        """Goes on to the matrix that the tile belongs to."""
        if GROUPED:
            while matrix < BATCH and tile >= down * across:
                tile = tile - down * across
                matrix = matrix + 1
                if matrix < BATCH:
                    begin = end
                    end = T.min(T.max(Offsets[matrix + 1], begin), M)
                    down = T.truncdiv(end - begin + (DOWN - 1), DOWN)
        else:
            passed: T.let = T.truncdiv(tile, down * across)
            matrix = matrix + passed
            tile = tile - passed * (down * across)

    settle()
    if group == 0:
        T.ptx.setmaxnreg(False, 40 if WARPGROUPS == 2 else 56)
        if warp == 0:
            if T.ptx.elect_sync():
                while matrix < BATCH:
                    # Bands of GROUP rows of tiles, column by column: both operands stay in the L2 cache.
                    band: T.let = T.truncdiv(tile, GROUP * across)
                    rows: T.let = T.min(down - band * GROUP, GROUP)
                    within: T.let = tile - band * (GROUP * across)
                    m: T.let = begin + (band * GROUP + T.truncmod(within, rows)) * DOWN + rank * BM
                    n: T.let = T.truncdiv(within, rows) * COLUMNS
                    of_a: T.let = 0 if GROUPED else matrix
                    for k in range(steps):
                        pipe.empty.wait(ring.stage, ring.phase)
                        pipe.full.arrive(ring.stage, (BM + BN) * 128)
                        bar: T.let = pipe.full.ptr_to([ring.stage])
                        Tx.copy_async(As[ring.stage], A[of_a, m : m + BM, k * BK : k * BK + BK], mbar=bar)
                        if not GATED:
                            copy_part(Bs, ring.stage, B, matrix, n, k * BK, BN, BK, TRANS_B, bar, rank, CLUSTER)
                        elif TRANS_B:
                            Tx.copy_async(Bs[ring.stage, :, 0:COLUMNS], B[matrix, k * BK : k * BK + BK, n : n + COLUMNS], mbar=bar)
                            Tx.copy_async(Bs[ring.stage, :, COLUMNS:BN], Up[matrix, k * BK : k * BK + BK, n : n + COLUMNS], mbar=bar)
                        else:
                            Tx.copy_async(Bs[ring.stage, 0:COLUMNS, :], B[matrix, n : n + COLUMNS, k * BK : k * BK + BK], mbar=bar)
                            Tx.copy_async(Bs[ring.stage, COLUMNS:BN, :], Up[matrix, n : n + COLUMNS, k * BK : k * BK + BK], mbar=bar)
                        ring.advance()
                    tile += blocks
                    settle()
        elif SCALED and warp <= WARPGROUPS:
            # A warp loads the scales of the rows of a warpgroup, and the first one tells where the tiles are.
            own_scale = T.alloc_local((8,), "float32")
            of_warpgroup: T.let = (warp - 1) * 64 + lane // 4
            own_place: T.int32 = 0
            while matrix < BATCH:
                band: T.let = T.truncdiv(tile, GROUP * across)
                rows: T.let = T.min(down - band * GROUP, GROUP)
                within: T.let = tile - band * (GROUP * across)
                m: T.let = begin + (band * GROUP + T.truncmod(within, rows)) * DOWN
                block: T.let = T.truncdiv(within, rows)
                of_b: T.let = matrix
                of_a: T.let = 0 if GROUPED else of_b
                top: T.let = m + of_warpgroup
                behind: T.let = end
                tile += blocks
                settle()
                next_place: T.let = T.if_then_else(own_place + 1 == PLACES, 0, own_place + 1)
                if warp == 1 and lane == 0:
                    places[own_place, 0] = of_b
                    places[own_place, 1] = m
                    places[own_place, 2] = block * BN
                    places[own_place, 3] = behind
                    places[own_place, 4] = T.if_then_else(matrix < BATCH, next_place, -1)
                own_place = next_place
                for k in range(steps):
                    # The lanes of a quad load neighbors along K, for four steps: a row costs the L1 cache one access instead of four.
                    if k % 4 == 0:
                        own_step: T.let = T.min(k + lane % 4, steps - 1)
                        of_block: T.let = ScaleB[of_b, block, own_step]
                        far = T.decl_buffer((T.int64(1 << 40),), "float32", data=ScaleA.ptr_to([of_a, T.min(top, M - 1), own_step]))
                        # One address that moves: nvcc would keep eight of them in registers.
                        at: T.int64 = 0
                        for i in T.unroll(8):
                            own_scale[i] = 0.0
                            if top + i * 8 < M:
                                own_scale[i] = far[at] * of_block
                            at = at + 8 * ScaleA.strides[1]
                    pipe.empty.wait(ring.stage, ring.phase)
                    if lane % 4 == k % 4:
                        for i in T.unroll(8):
                            scales[ring.stage, of_warpgroup + i * 8] = own_scale[i]
                        T.ptx.mbarrier.arrive(pipe.full.ptr_to([ring.stage]))
                    ring.advance()
    else:
        T.ptx.setmaxnreg(True, 232 if WARPGROUPS == 2 else 152)
        half: T.let = (group - 1) * 64
        sums = T.alloc_local((64, BN), ACCUMULATOR, layout=accumulator(BN))
        if SCALED:
            scaled = T.alloc_local((64, BN), "float32", layout=accumulator(BN))
            step_sum, total = sums.local(BN // 2), scaled.local(BN // 2)
            step_scale = T.alloc_local((2,), "float32")
        # Eight neighbors in each of two rows of a part of C.
        value = T.alloc_local((2, 8), VALUE)
        if GATED:
            gate = T.alloc_local((2, 8), VALUE)
        row_of = T.alloc_local((4,), ACCUMULATOR)
        near = T.alloc_local((2, 8), out)
        if not SCALED:
            ahead = T.alloc_local((2, 8), out)
        shift = T.alloc_local((1, 8), out)
        factor = T.alloc_local((2,), "float32")
        if SCALED:
            place: T.int32 = T.if_then_else(matrix < BATCH, 0, -1)
        while place >= 0 if SCALED else matrix < BATCH:
            if SCALED:
                Tx.wg.zero(scaled)
                for k in range(steps):
                    pipe.full.wait(ring.stage, ring.phase)
                    for p in T.unroll(2):
                        step_scale[p] = scales[ring.stage, half + warp * 16 + lane // 4 + p * 8]
                    Tx.wg.gemm_async(sums, As[ring.stage, half : half + 64, :], Bs[ring.stage])
                    T.ptx.wgmma.commit_group()
                    T.ptx.wgmma.wait_group(0)
                    pipe.empty.arrive(ring.stage)
                    ring.advance()
                    for j in T.unroll(BN // 8):
                        for p in T.unroll(2):
                            for e in T.unroll(2):
                                total[j * 4 + p * 2 + e] = total[j * 4 + p * 2 + e] + step_sum[j * 4 + p * 2 + e] * step_scale[p]
                of_b: T.let = places[place, 0]
                m: T.let = places[place, 1]
                n: T.let = places[place, 2]
                behind: T.let = places[place, 3]
                place = places[place, 4]
            else:
                band: T.let = T.truncdiv(tile, GROUP * across)
                rows: T.let = T.min(down - band * GROUP, GROUP)
                within: T.let = tile - band * (GROUP * across)
                m: T.let = begin + (band * GROUP + T.truncmod(within, rows)) * DOWN + rank * BM
                n: T.let = T.truncdiv(within, rows) * COLUMNS
                of_b = T.meta_var(matrix)
                behind = T.meta_var(end)
            of_a: T.let = 0 if GROUPED else of_b
            first: T.let = m + half + warp * 16 + lane // 4

            @T.inline
            def read(to, p, source, index, column):
                """Reads the eight elements of a row from `column` on, as far as there are that many."""
                if by_vectors(vectors, source) and column + 8 <= N:
                    far = T.decl_buffer((8,), out, data=source.ptr_to([*index, column]))
                    for v in T.unroll(8 // WIDE):
                        for e in T.vectorized(WIDE):
                            to[p, v * WIDE + e] = far[v * WIDE + e]
                else:
                    for e in T.unroll(8):
                        to[p, e] = source[(*index, T.min(column + e, N - 1))]

            @T.inline
            def fetch(column):
                if r_columns > 0:
                    for p in T.unroll(2):
                        read(ahead, p, Residual, (of_a, T.min(first + p * 8, M - 1)), column)

            if not SCALED:
                for k in range(steps):
                    pipe.full.wait(ring.stage, ring.phase)
                    Tx.wg.gemm_async(sums, As[ring.stage, half : half + 64, :], Bs[ring.stage], transB=TRANS_B, accum=k > 0)
                    T.ptx.wgmma.commit_group()
                    T.ptx.wgmma.wait_group(1)
                    release(pipe, (ring.stage + STAGES - 1) % STAGES, k > 0, warp, lane, CLUSTER)
                    ring.advance()
                fetch(n + lane % 4 * 8)
                T.ptx.wgmma.wait_group(0)
                release(pipe, (ring.stage + STAGES - 1) % STAGES, True, warp, lane, CLUSTER)
            for p in T.unroll(2):
                factor[p] = alpha
                if not SCALED and sa_rows > 0:
                    factor[p] = factor[p] * ScaleA[T.min(of_a, sa_batch - 1), T.min(first + p * 8, sa_rows - 1)]
                if not SCALED and sb_columns == 1:
                    factor[p] = factor[p] * ScaleB[T.min(of_b, sb_batch - 1), 0]
            if SCALED and BYTES[out] == 2 and bias_columns == 0 and r_columns == 0 and activation == 0 and by_vectors(vectors, C) and N % 8 == 0:
                rounded = T.alloc_local((64, BN), out, layout=accumulator(BN))
                narrow = rounded.local(BN // 2)
                for i in T.unroll(BN // 4):
                    for e in T.vectorized(2):
                        narrow[i * 2 + e] = T.cast(total[i * 2 + e] * alpha, out)
                row: T.let = warp * 16 + lane // 8
                column: T.let = n + lane % 8 * 8
                to = T.decl_buffer((T.int64(1 << 40),), out, data=C.ptr_to([of_a, m + half + row, column]))
                for part in T.unroll(BN // 64):
                    T.cuda.warp_sync()
                    Tx.wg.copy(packed[group - 1, :, 0:64], rounded[:, part * 64 : part * 64 + 64])
                    T.cuda.warp_sync()
                    for v in T.unroll(4):
                        if m + half + row + v * 4 < behind and column + part * 64 < N:
                            for e in T.vectorized(8):
                                to[v * 4 * c_row + part * 64 + e] = packed[group - 1, row + v * 4, lane % 8 * 8 + e]
            else:
                for part in range(COLUMNS // PART):
                    column: T.let = n + part * PART + lane % 4 * 8
                    rows_of(value, row_of, part, scaled if SCALED else sums, BN, staged, group - 1, warp, lane)
                    if VALUE == "float32":
                        for p in T.unroll(2):
                            for e in T.unroll(8):
                                value[p, e] = value[p, e] * factor[p]
                    if not SCALED and r_columns > 0:
                        for p in T.unroll(2):
                            for e in T.unroll(8):
                                near[p, e] = ahead[p, e]
                    if not SCALED and (part + 1) * PART < COLUMNS:
                        fetch(column + PART)
                    if not SCALED and VALUE == "float32" and sb_columns > 1:
                        for e in T.unroll(8):
                            scale: T.let = ScaleB[T.min(of_b, sb_batch - 1), T.min(column + e, sb_columns - 1)]
                            for p in T.unroll(2):
                                value[p, e] = value[p, e] * scale
                    if bias_columns > 0:
                        read(shift, 0, Bias, (T.min(of_b, bias_batch - 1),), column)
                        for p in T.unroll(2):
                            for e in T.unroll(8):
                                value[p, e] = value[p, e] + T.cast(shift[0, e], VALUE)
                    if VALUE == "float32":
                        activate(value, 2, 8, activation)
                    if GATED:
                        rows_of(gate, row_of, part + COLUMNS // PART, scaled if SCALED else sums, BN, staged, group - 1, warp, lane)
                        for p in T.unroll(2):
                            for e in T.unroll(8):
                                value[p, e] = value[p, e] * (gate[p, e] * factor[p])
                    for p in T.unroll(2):
                        if r_columns > 0:
                            if SCALED:
                                read(near, p, Residual, (of_a, T.min(first + p * 8, M - 1)), column)
                            for e in T.unroll(8):
                                value[p, e] = value[p, e] + T.cast(near[p, e], VALUE)
                        if first + p * 8 < behind:
                            if by_vectors(vectors, C) and column + 8 <= N:
                                to = T.decl_buffer((8,), out, data=C.ptr_to([of_a, first + p * 8, column]))
                                for v in T.unroll(8 // WIDE):
                                    for e in T.vectorized(WIDE):
                                        to[v * WIDE + e] = T.cast(value[p, v * WIDE + e], out)
                            else:
                                for e in T.unroll(8):
                                    if column + e < N:
                                        C[of_a, first + p * 8, column + e] = T.cast(value[p, e], out)
            if not SCALED:
                tile += blocks
                settle()
    if CLUSTER > 1:
        # A block's barriers are there until the other has arrived at them.
        T.cuda.cluster_sync()
