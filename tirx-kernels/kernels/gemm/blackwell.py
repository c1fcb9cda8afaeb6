"""Matrix products for Blackwell: C = activation(alpha scale_a scale_b A B + bias) + residual in 16 bits, for any M, N and K.

Accumulators are in tensor memory, and descriptors tell the tensor core the width of a tile and the order of its operands. So both are
arguments of the launch: one kernel has tiles of 64 to 256 columns, and operands with contiguous rows or columns. A pair of blocks can share a tile
of twice the rows: each copies half of the tile's columns of B, and the first block's instructions read the shared memory of both.
"""

from __future__ import annotations

from tvm.backend.cuda.lang import Pipeline, PipelineState
from tvm.script import tirx as T

from epilogue import BYTES, activate, by_vectors, optional
from loop import GROUP

BM, BK = 128, 64                             # of a block
WIDEST = 256                                 # columns of a tile, and of one of two accumulators in tensor memory
PART = 32                                    # columns that a thread brings to C at a time
# Descriptors count 16 bytes. A slab is 64 rows of 128 bytes, as the copy engine writes them.
SLAB = 64 * BK * 2 // 16


def encode(tensor_map, matrix, dtype, batch, outer, inner, of_batch, pitch, rows):
    """The tensor map of matrices whose rows have `inner` elements, `pitch` elements apart: copies of `rows` x 64 elements."""
    return T.call_packed("runtime.cuTensorMapEncodeTiled", tensor_map, dtype, 3, matrix.data, inner, outer, batch, pitch * 2, of_batch * 2,
                  BK, rows, 1, 1, 1, 1, 0, 3, 2, 0)


@T.inline
def copy(tile, stage, barrier, tensor_map, batch, first, k, slabs, turned, CTAS):
    """Copies `slabs` slabs of rows of an operand from row `first` on, and its elements along K from `k` on. Without `turned` they are a
    single box. Otherwise the operand's columns are rows in memory, and each slab has 64 of their elements."""
    if turned != 0:
        for slab in range(slabs):
            T.ptx.cp_async.bulk.tensor.g2s_cluster(3, tile.ptr_to([stage, slab * 64, 0]), barrier, tensor_map, 0, CTAS, "",
                                                   first + slab * 64, k, batch)
    else:
        T.ptx.cp_async.bulk.tensor.g2s_cluster(3, tile.ptr_to([stage, 0, 0]), barrier, tensor_map, 0, CTAS, "", k, first,
                                               batch)


@T.jit
def tiles(a: T.handle, b: T.handle, c: T.handle, bias: T.handle, residual: T.handle, scale_a: T.handle, scale_b: T.handle, alpha: T.float32,
          activation: T.int32, turned_a: T.int32, turned_b: T.int32, columns: T.int32, vectors: T.int32, blocks: T.int32, *, dtype: T.constexpr,
          out: T.constexpr = "", CTAS: T.constexpr = 1):
    """Tiles of 128 CTAS x `columns` elements, each of a cluster of CTAS blocks; `columns` is a multiple of 64 CTAS up to 256. One warp copies operands
    to a ring of stages, one multiplies, and a warpgroup stores a tile while the next is computed in the other half of tensor memory.

    A is `[batch, M, K]`, or `[batch, K, M]` if it is `turned_a`; B is `[batch, N, K]`, or `[batch, K, N]` if it is `turned_b`. `bias`, `residual`,
    `scale_a` and `scale_b` may be empty; they are those of `general.py`. `vectors` is 1 if C, `bias` and `residual` allow accesses of
    16 bytes."""
    out = T.meta_var(out or dtype)
    WIDE = T.meta_var(16 // BYTES[out])                           # elements of C in 16 bytes
    DOWN = T.meta_var(BM * CTAS)                                  # rows of a tile
    STAGES = T.meta_var(4 if CTAS == 1 else 6)
    BATCH, M, N, rows_of_a, columns_of_a, rows_of_b, columns_of_b = (T.int32() for _ in range(7))
    a_batch, a_row, b_batch, b_row, c_batch, c_row, c_column = (T.int64() for _ in range(7))
    A = T.match_buffer(a, (BATCH, rows_of_a, columns_of_a), dtype, strides=(a_batch, a_row, 1))
    B = T.match_buffer(b, (BATCH, rows_of_b, columns_of_b), dtype, strides=(b_batch, b_row, 1))
    C = T.match_buffer(c, (BATCH, M, N), out, strides=(c_batch, c_row, c_column))
    Bias, (bias_batch, bias_columns) = optional(bias, 2, out)
    Residual, (r_batch, r_rows, r_columns) = optional(residual, 3, out)
    ScaleA, (sa_batch, sa_rows) = optional(scale_a, 2, "float32")
    ScaleB, (sb_batch, sb_columns) = optional(scale_b, 2, "float32")
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    encode(A_map, A, dtype, BATCH, rows_of_a, columns_of_a, a_batch, a_row, T.if_then_else(turned_a != 0, 64, BM))
    encode(B_map, B, dtype, BATCH, rows_of_b, columns_of_b, b_batch, b_row, T.if_then_else(turned_b != 0, 64, T.truncdiv(columns, CTAS)))
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
    T.attr({"tirx.use_programtic_dependent_launch": True})
    T.ptx.griddepcontrol.launch_dependents()
    if CTAS > 1:
        rank, turn = T.cta_id([CTAS, blocks])
        T.cta_id_in_cluster([CTAS, 1])
    else:
        turn = T.cta_id([blocks])
        rank = T.meta_var(0)
    group = T.warpgroup_id([2])
    warp = T.warp_id_in_wg([4])
    lane = T.lane_id([32])
    pool = T.SMEMPool()
    As = pool.alloc((STAGES, BM, BK), dtype, align=1024)
    Bs = pool.alloc((STAGES, WIDEST // CTAS, BK), dtype, align=1024)
    pipe = Pipeline(pool, STAGES, full="tma", empty="tcgen05", empty_phase_offset=1)
    sums = Pipeline(pool, 2, full="tcgen05", empty="mbar", init_empty=128 * CTAS, empty_phase_offset=1)
    where = pool.alloc((1,), "uint32", align=8)
    pool.commit()
    # The bytes of both blocks of a pair count at the barriers of the first.
    full = pipe.full.remote_view(0) if CTAS > 1 else pipe.full
    T.ptx.fence.mbarrier_init()
    if group == 0 and warp == 2:
        T.ptx.tcgen05.alloc(where.ptr_to([0]), n_cols=2 * WIDEST, cta_group=CTAS)
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    if CTAS > 1:
        T.cuda.cluster_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    T.ptx.griddepcontrol.wait()
    base: T.let = where[0]
    across: T.let = T.truncdiv(N + (columns - 1), columns)
    down: T.let = T.truncdiv(M + (DOWN - 1), DOWN)
    steps: T.let = T.truncdiv(T.if_then_else(turned_a != 0, rows_of_a, columns_of_a) + (BK - 1), BK)
    total: T.let = BATCH * down * across
    ring = PipelineState(STAGES, 0)
    half = PipelineState(2, 0)
    tile: T.int32 = turn
    batch: T.int32 = 0
    m: T.int32 = 0
    n: T.int32 = 0

    @T.inline
    def locate():
        """The matrix, the first row of the block and the first column of a tile. Bands of GROUP rows of tiles, column by column: both operands stay in the
        L2 cache."""
        batch = T.truncdiv(tile, down * across)
        here: T.let = tile - batch * (down * across)
        band: T.let = T.truncdiv(here, GROUP * across)
        rows: T.let = T.min(down - band * GROUP, GROUP)
        within: T.let = here - band * (GROUP * across)
        m = (band * GROUP + T.truncmod(within, rows)) * DOWN + rank * BM
        n = T.truncdiv(within, rows) * columns

    @T.inline
    def commit(barriers, stage):
        """Tells each block of the cluster when the instructions are done."""
        if CTAS > 1:
            barriers.arrive(stage, cta_group=CTAS, cta_mask=3)
        else:
            barriers.arrive(stage)

    if group == 0:
        if warp == 0:
            if T.ptx.elect_sync():
                while tile < total:
                    locate()
                    for k in range(steps):
                        pipe.empty.wait(ring.stage, ring.phase)
                        if rank == 0:
                            pipe.full.arrive(ring.stage, (DOWN + columns) * BK * 2)
                        bar: T.let = full.ptr_to([ring.stage])
                        copy(As, ring.stage, bar, T.address_of(A_map), batch, m, k * BK, BM // 64, turned_a, CTAS)
                        copy(Bs, ring.stage, bar, T.address_of(B_map), batch, n + rank * T.truncdiv(columns, CTAS), k * BK,
                             T.truncdiv(columns, 64 * CTAS), turned_b, CTAS)
                        ring.advance()
                    tile += blocks
        if warp == 1 and rank == 0:
            if T.ptx.elect_sync():
                a_desc = T.alloc_local((1,), "uint64")
                b_desc = T.alloc_local((1,), "uint64")
                i_desc = T.alloc_local((1,), "uint32")
                # The next 64 rows of an operand are in the next slab; only operands that are turned use this distance.
                T.ptx.tcgen05.encode_matrix_descriptor(a_desc.data, As.ptr_to([0, 0, 0]), SLAB, 64, 3)
                T.ptx.tcgen05.encode_matrix_descriptor(b_desc.data, Bs.ptr_to([0, 0, 0]), SLAB, 64, 3)
                T.ptx.tcgen05.encode_instr_descriptor(i_desc.data, d_dtype="float32", a_dtype=dtype, b_dtype=dtype, M=DOWN, N=WIDEST, K=16,
                                                      trans_a=False, trans_b=False, n_cta_groups=CTAS)
                # Bits 15 and 16 are the orders of the operands; those from 17 on count eight columns.
                instruction: T.let = i_desc[0] - T.cast(T.truncdiv(WIDEST - columns, 8) * 131072 - turned_a * 32768 - turned_b * 65536, "uint32")
                # An instruction takes 16 elements along K: 32 bytes of each row, or 16 rows.
                next_a: T.let = T.if_then_else(turned_a != 0, 128, 2)
                next_b: T.let = T.if_then_else(turned_b != 0, 128, 2)
                while tile < total:
                    sums.empty.wait(half.stage, half.phase)
                    T.ptx.tcgen05.fence.after_thread_sync()
                    for k in range(steps):
                        pipe.full.wait(ring.stage, ring.phase)
                        for kk in T.unroll(BK // 16):
                            T.ptx.tcgen05.mma(base + T.cast(half.stage * WIDEST, "uint32"),
                                              a_desc[0] + T.cast(ring.stage * (BM // 64 * SLAB) + kk * next_a, "uint64"),
                                              b_desc[0] + T.cast(ring.stage * (WIDEST // CTAS // 64 * SLAB) + kk * next_b, "uint64"), instruction,
                                              d_dtype="float32", a_dtype=dtype, b_dtype=dtype, use_a_tmem=False, cta_group=CTAS,
                                              enable_input_d=T.if_then_else(k + kk > 0, 1, 0))
                        commit(pipe.empty, ring.stage)
                        ring.advance()
                    commit(sums.full, half.stage)
                    half.advance()
                    tile += blocks
    else:
        # Each thread has a lane of tensor memory, which is a row of the tile; a warp reaches a quarter of the lanes.
        value = T.alloc_local((PART // 8, 8), "float32")
        near = T.alloc_local((PART // 8, 8), out)
        while tile < total:
            locate()
            row: T.let = m + warp * 32 + lane
            row_inside: T.let = T.min(row, M - 1)
            factor: T.float32 = alpha
            if sa_rows > 0:
                factor = factor * ScaleA[T.min(batch, sa_batch - 1), T.min(row, sa_rows - 1)]
            if sb_columns == 1:
                factor = factor * ScaleB[T.min(batch, sb_batch - 1), 0]

            @T.inline
            def read(source, index, column):
                """Reads the elements of a row from `column` on, as far as there are that many."""
                for p in T.unroll(PART // 8):
                    if by_vectors(vectors, source) and column + p * 8 + 8 <= N:
                        far = T.decl_buffer((8,), out, data=source.ptr_to([*index, column + p * 8]))
                        for v in T.unroll(8 // WIDE):
                            for e in T.vectorized(WIDE):
                                near[p, v * WIDE + e] = far[v * WIDE + e]
                    else:
                        for e in T.unroll(8):
                            near[p, e] = source[(*index, T.min(column + p * 8 + e, N - 1))]
                for p in T.unroll(PART // 8):
                    for e in T.unroll(8):
                        value[p, e] = value[p, e] + T.cast(near[p, e], "float32")

            sums.full.wait(half.stage, half.phase)
            T.ptx.tcgen05.fence.after_thread_sync()
            for part in range(T.truncdiv(columns, PART)):
                column: T.let = n + part * PART
                T.ptx.tcgen05.ld(base + T.cast(half.stage * WIDEST + part * PART, "uint32"), *[value[i // 8, i % 8] for i in range(PART)],
                                 shape="32x32b", num=PART, row=warp * 32)
                T.ptx.tcgen05.wait.ld()
                for p in T.unroll(PART // 8):
                    for e in T.unroll(8):
                        value[p, e] = value[p, e] * factor
                        if sb_columns > 1:
                            value[p, e] = value[p, e] * ScaleB[T.min(batch, sb_batch - 1), T.min(column + p * 8 + e, sb_columns - 1)]
                if bias_columns > 0:
                    read(Bias, (T.min(batch, bias_batch - 1),), column)
                activate(value, PART // 8, 8, activation)
                if r_columns > 0:
                    read(Residual, (batch, row_inside), column)
                if row < M:
                    for p in T.unroll(PART // 8):
                        if by_vectors(vectors, C) and column + p * 8 + 8 <= N:
                            to = T.decl_buffer((8,), out, data=C.ptr_to([batch, row, column + p * 8]))
                            for v in T.unroll(8 // WIDE):
                                for e in T.vectorized(WIDE):
                                    to[v * WIDE + e] = T.cast(value[p, v * WIDE + e], out)
                        else:
                            for e in T.unroll(8):
                                if column + p * 8 + e < N:
                                    C[batch, row, column + p * 8 + e] = T.cast(value[p, e], out)
                # All threads of a warp load the next part together.
                T.cuda.warp_sync()
            T.ptx.tcgen05.fence.before_thread_sync()
            if CTAS > 1:
                sums.empty.arrive(half.stage, remote=0)
            else:
                sums.empty.arrive(half.stage)
            half.advance()
            tile += blocks
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    if CTAS > 1:
        T.cuda.cluster_sync()
    if group == 0 and warp == 2:
        T.ptx.tcgen05.relinquish_alloc_permit(cta_group=CTAS)
        T.ptx.tcgen05.dealloc(base, n_cols=2 * WIDEST, cta_group=CTAS)
