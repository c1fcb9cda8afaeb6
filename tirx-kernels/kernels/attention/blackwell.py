"""Attention for Blackwell: O = softmax(scale Q K^T) V in 16 bits, without a matrix of scores in memory.

A block has two tiles of 128 queries of a head. While the tensor core multiplies for one of them, a warpgroup computes the exponentials of
the other: each of its threads has a row. Tensor memory holds, for each tile, the scores, whose place the weights take, and the sums of the
output. A third warpgroup rescales these sums when the maximum of a row has grown, and stores them in the end. Of the fourth, one warp copies
and another one multiplies. Tiles have D columns: a smaller head is filled with zeros by the copy engine.
"""

from __future__ import annotations

from tvm.backend.cuda.lang import MBarrier, Pipeline, PipelineState, TCGen05Bar, TMABar
from tvm.script import tirx as T

LOG2_E = 1.4426950408889634
BM, BN, STAGES = 128, 128, 2
HALF = 64                                    # elements in 128 bytes, the rows of a copy
PART = 32                                    # columns of the sums that a thread holds at a time


def encode(tensor_map, tensor, dtype, extents, strides):
    """The tensor map of `[batch, heads, rows, head]`: copies of 128 rows x 64 elements."""
    batch, heads, rows, head = extents
    of_batch, of_head, of_row = strides
    return T.call_packed("runtime.cuTensorMapEncodeTiled", tensor_map, dtype, 4, tensor.data, head, rows, heads, batch,
                         of_row * 2, of_head * 2, of_batch * 2, HALF, BM, 1, 1, 1, 1, 1, 1, 0, 3, 2, 0)


@T.jit
def forward(q: T.handle, k: T.handle, v: T.handle, o: T.handle, lse: T.handle, offsets_of_q: T.handle, offsets_of_k: T.handle,
            scale: T.float32, causal: T.int32, window: T.int32, cap: T.float32, blocks: T.int32, *, dtype: T.constexpr, D: T.constexpr):
    """Q is `[batch, heads, queries, head]`, K and V have `heads / group` heads. With `causal` the last query sees all keys,
    and each query before one key less. `window` above 0 limits each query to its last `window` keys. With `cap` above 0, scores are
    `cap * tanh(scores / cap)`. `lse` is the logarithm of the sum of exponentials, unless it is empty. If the offsets are not
    empty, the batch is 1, and sequence i has the queries from `offsets_of_q[i]` to `offsets_of_q[i + 1]`, and its keys likewise."""
    BATCH, HEADS, HEADS_OF_K, QUERIES, KEYS, HEAD, HEAD_OF_V = (T.int32() for _ in range(7))
    q_batch, q_head, q_row, k_batch, k_head, k_row = (T.int64() for _ in range(6))
    v_batch, v_head, v_row, o_batch, o_head, o_row = (T.int64() for _ in range(6))
    Q = T.match_buffer(q, (BATCH, HEADS, QUERIES, HEAD), dtype, strides=(q_batch, q_head, q_row, 1))
    K = T.match_buffer(k, (BATCH, HEADS_OF_K, KEYS, HEAD), dtype, strides=(k_batch, k_head, k_row, 1))
    V = T.match_buffer(v, (BATCH, HEADS_OF_K, KEYS, HEAD_OF_V), dtype, strides=(v_batch, v_head, v_row, 1))
    O = T.match_buffer(o, (BATCH, HEADS, QUERIES, HEAD_OF_V), dtype, strides=(o_batch, o_head, o_row, 1))
    lse_batch, lse_heads, lse_queries, OFFSETS = (T.int32() for _ in range(4))
    LSE = T.match_buffer(lse, (lse_batch, lse_heads, lse_queries), "float32")
    STARTS_OF_Q = T.match_buffer(offsets_of_q, (OFFSETS,), "int32")
    STARTS_OF_K = T.match_buffer(offsets_of_k, (OFFSETS,), "int32")
    HALVES = T.meta_var(D // HALF)
    TILE = T.meta_var(BN * D * 2 // 16)                           # of Q, K or V, in the unit of descriptors
    SUMS = T.meta_var(2 * BN)                                     # the first column of the sums in tensor memory
    Q_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    K_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    V_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    encode(Q_map, Q, dtype, (BATCH, HEADS, QUERIES, HEAD), (q_batch, q_head, q_row))
    encode(K_map, K, dtype, (BATCH, HEADS_OF_K, KEYS, HEAD), (k_batch, k_head, k_row))
    encode(V_map, V, dtype, (BATCH, HEADS_OF_K, KEYS, HEAD_OF_V), (v_batch, v_head, v_row))
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})
    T.attr({"tirx.use_programtic_dependent_launch": True})
    T.ptx.griddepcontrol.launch_dependents()
    block = T.cta_id([blocks])
    group = T.warpgroup_id([4])
    warp = T.warp_id_in_wg([4])
    lane = T.lane_id([32])
    row: T.let = warp * 32 + lane
    pool = T.SMEMPool()
    Qs = pool.alloc((2, HALVES, BM, HALF), dtype, align=1024)
    Ks = pool.alloc((STAGES, HALVES, BN, HALF), dtype, align=1024)
    Vs = pool.alloc((STAGES, HALVES, BN, HALF), dtype, align=1024)
    factors = pool.alloc((2, BM), "float32", align=16)
    totals = pool.alloc((2, BM), "float32", align=16)
    keys = Pipeline(pool, STAGES, full="tma", empty="tcgen05", empty_phase_offset=1)
    values = Pipeline(pool, STAGES, full="tma", empty="tcgen05", empty_phase_offset=1)
    queries = TMABar(pool, 2)
    scores_ready = TCGen05Bar(pool, 2)
    sums_ready = TCGen05Bar(pool, 2)
    # The weights are in tensor memory, and the sums are rescaled.
    weights_ready = MBarrier(pool, 2)
    # Shared memory holds the factor of a row's sums and, in the end, the total of its weights.
    factor_ready = MBarrier(pool, 2)
    total_ready = MBarrier(pool, 2)
    where = pool.alloc((1,), "uint32", align=8)
    pool.commit()
    queries.init(1)
    scores_ready.init(1)
    sums_ready.init(1)
    weights_ready.init(2 * BM)
    factor_ready.init(BM)
    total_ready.init(BM)
    T.ptx.fence.mbarrier_init()
    if group == 3 and warp == 0:
        T.ptx.tcgen05.alloc(where.ptr_to([0]), n_cols=512, cta_group=1)
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence.after_thread_sync()
    T.ptx.griddepcontrol.wait()
    base: T.let = where[0]

    # Blocks of one head follow each other, the last queries first: under a causal mask they have the most keys.
    packed: T.let = OFFSETS > 1
    down: T.let = T.if_then_else(packed, T.truncdiv(QUERIES, 2 * BM) + OFFSETS - 1, T.truncdiv(QUERIES + (2 * BM - 1), 2 * BM))
    level: T.let = down - 1 - T.truncmod(block, down)
    head_of_all: T.let = T.truncdiv(block, down)
    batch: T.let = T.truncdiv(head_of_all, HEADS)
    head: T.let = T.truncmod(head_of_all, HEADS)
    m: T.int32 = level * (2 * BM)
    first_query: T.int32 = 0
    queries_here: T.int32 = QUERIES
    first_key: T.int32 = 0
    keys_here: T.int32 = KEYS
    if packed:
        # Sequence i has the blocks from `offsets_of_q[i] / (2 BM) + i` on: never fewer than it needs, without a sum over the sequences before.
        low: T.int32 = 0
        high: T.int32 = OFFSETS - 1
        while low + 1 < high:
            middle: T.let = T.truncdiv(low + high, 2)
            if T.truncdiv(STARTS_OF_Q[middle], 2 * BM) + middle <= level:
                low = middle
            else:
                high = middle
        m = (level - low - T.truncdiv(STARTS_OF_Q[low], 2 * BM)) * (2 * BM)
        first_query = T.min(T.max(STARTS_OF_Q[low], 0), QUERIES)
        queries_here = T.min(T.max(STARTS_OF_Q[low + 1], first_query), QUERIES) - first_query
        first_key = T.min(T.max(STARTS_OF_K[low], 0), KEYS)
        keys_here = T.min(T.max(STARTS_OF_K[low + 1], first_key), KEYS) - first_key
    behind: T.let = keys_here - queries_here
    first: T.let = T.if_then_else(window > 0, T.truncdiv(T.max(m + behind + 1 - window, 0), BN), 0)
    most: T.let = T.if_then_else(causal != 0, T.max(T.min(keys_here, m + (2 * BM + behind)), 0), keys_here)
    # At least one tile, if only of keys that nobody sees.
    tiles: T.let = T.max(T.truncdiv(most + (BN - 1), BN) - first, 1)
    both: T.let = m + BM < queries_here

    @T.inline
    def copy(to, barrier, tensor_map, first_row, of_head):
        for h in T.unroll(HALVES):
            T.ptx.cp_async.bulk.tensor.g2s_cluster(4, to(h), barrier, tensor_map, 0, 1, "", h * HALF, first_row, of_head, batch)

    if m >= 0 and m < queries_here:
        if group == 3:
            T.ptx.setmaxnreg(False, 64)
            if warp == 0:
                if T.ptx.elect_sync():
                    head_of_k: T.let = T.truncdiv(head, T.truncdiv(HEADS, HEADS_OF_K))
                    ring = PipelineState(STAGES, 0)
                    for t in T.unroll(2):
                        if t == 0 or both:
                            queries.arrive(t, BM * D * 2)
                            copy(lambda h: Qs.ptr_to([t, h, 0, 0]), queries.ptr_to([t]), T.address_of(Q_map), first_query + m + t * BM, head)
                    for j in range(tiles):
                        n: T.let = first_key + (first + j) * BN
                        keys.empty.wait(ring.stage, ring.phase)
                        keys.full.arrive(ring.stage, BN * D * 2)
                        copy(lambda h: Ks.ptr_to([ring.stage, h, 0, 0]), keys.full.ptr_to([ring.stage]), T.address_of(K_map), n, head_of_k)
                        values.empty.wait(ring.stage, ring.phase)
                        values.full.arrive(ring.stage, BN * D * 2)
                        copy(lambda h: Vs.ptr_to([ring.stage, h, 0, 0]), values.full.ptr_to([ring.stage]), T.address_of(V_map), n, head_of_k)
                        ring.advance()
            if warp == 1:
                if T.ptx.elect_sync():
                    q_desc = T.alloc_local((1,), "uint64")
                    k_desc = T.alloc_local((1,), "uint64")
                    v_desc = T.alloc_local((1,), "uint64")
                    s_desc = T.alloc_local((1,), "uint32")
                    o_desc = T.alloc_local((1,), "uint32")
                    T.ptx.tcgen05.encode_matrix_descriptor(q_desc.data, Qs.ptr_to([0, 0, 0, 0]), 1, 64, 3)
                    T.ptx.tcgen05.encode_matrix_descriptor(k_desc.data, Ks.ptr_to([0, 0, 0, 0]), 1, 64, 3)
                    # V is read by columns: the next 64 of them are behind all rows of the first.
                    T.ptx.tcgen05.encode_matrix_descriptor(v_desc.data, Vs.ptr_to([0, 0, 0, 0]), BN * HALF * 2 // 16, 64, 3)
                    T.ptx.tcgen05.encode_instr_descriptor(s_desc.data, d_dtype="float32", a_dtype=dtype, b_dtype=dtype,
                                                          M=BM, N=BN, K=16, trans_a=False, trans_b=False)
                    T.ptx.tcgen05.encode_instr_descriptor(o_desc.data, d_dtype="float32", a_dtype=dtype, b_dtype=dtype,
                                                          M=BM, N=D, K=16, trans_a=False, trans_b=True)

                    @T.inline
                    def multiply_keys(t, stage):
                        for kk in T.unroll(D // 16):
                            step: T.let = kk // 4 * (BN * HALF * 2 // 16) + kk % 4 * 2
                            T.ptx.tcgen05.mma(base + T.cast(t * BN, "uint32"), q_desc[0] + T.cast(t * TILE + step, "uint64"),
                                              k_desc[0] + T.cast(stage * TILE + step, "uint64"), s_desc[0], d_dtype="float32", a_dtype=dtype,
                                              b_dtype=dtype, use_a_tmem=False, cta_group=1, enable_input_d=0 if kk == 0 else 1)
                        scores_ready.arrive(t)

                    @T.inline
                    def multiply_values(t, stage, keep):
                        for kk in T.unroll(BN // 16):
                            T.ptx.tcgen05.mma(base + T.cast(SUMS + t * D, "uint32"), base + T.cast(t * BN + kk * 8, "uint32"),
                                              v_desc[0] + T.cast(stage * TILE + kk * 128, "uint64"), o_desc[0], d_dtype="float32", a_dtype=dtype,
                                              b_dtype=dtype, use_a_tmem=True, cta_group=1, enable_input_d=keep if kk == 0 else 1)

                    key = PipelineState(STAGES, 0)
                    value = PipelineState(STAGES, 0)
                    keys.full.wait(key.stage, key.phase)
                    for t in T.unroll(2):
                        if t == 0 or both:
                            queries.wait(t, 0)
                            multiply_keys(t, key.stage)
                    keys.empty.arrive(key.stage)
                    key.advance()
                    for j in range(tiles):
                        values.full.wait(value.stage, value.phase)
                        if j + 1 < tiles:
                            keys.full.wait(key.stage, key.phase)
                        for t in T.unroll(2):
                            if t == 0 or both:
                                weights_ready.wait(t, j % 2)
                                T.ptx.tcgen05.fence.after_thread_sync()
                                multiply_values(t, value.stage, T.if_then_else(j > 0, 1, 0))
                                if j + 1 < tiles:
                                    # These scores overwrite weights that the products before have read.
                                    multiply_keys(t, key.stage)
                                else:
                                    sums_ready.arrive(t)
                        values.empty.arrive(value.stage)
                        value.advance()
                        if j + 1 < tiles:
                            keys.empty.arrive(key.stage)
                            key.advance()
        elif group == 2:
            T.ptx.setmaxnreg(False, 80)
            part = T.alloc_local((PART,), "float32")

            @T.inline
            def load(t, c):
                T.ptx.tcgen05.ld(base, *[part[i] for i in range(PART)], shape="32x32b", num=PART, row=warp * 32, col=SUMS + t * D + c * PART)
                T.ptx.tcgen05.wait.ld()

            for t in T.unroll(2):
                if t == 0 or both:
                    weights_ready.arrive(t)
            for j in range(1, tiles):
                for t in T.unroll(2):
                    if t == 0 or both:
                        factor_ready.wait(t, (j - 1) % 2)
                        factor: T.let = factors[t, row]
                        # The scores behind this factor were computed after the products before: none is in flight.
                        T.ptx.tcgen05.fence.after_thread_sync()
                        for c in T.unroll(D // PART):
                            load(t, c)
                            for i in T.unroll(PART):
                                part[i] = part[i] * factor
                            T.ptx.tcgen05.st(base, *[part[i] for i in range(PART)], shape="32x32b", num=PART, row=warp * 32,
                                             col=SUMS + t * D + c * PART)
                        T.ptx.tcgen05.wait.st()
                        T.ptx.tcgen05.fence.before_thread_sync()
                        weights_ready.arrive(t)
            for t in T.unroll(2):
                if t == 0 or both:
                    total_ready.wait(t, 0)
                    total: T.let = totals[t, row]
                    inverse: T.let = T.if_then_else(total == T.float32(0), T.float32(0), T.float32(1) / total)
                    sums_ready.wait(t, 0)
                    T.ptx.tcgen05.fence.after_thread_sync()
                    query: T.let = m + t * BM + row
                    row_of_o = T.decl_buffer((D,), dtype, data=O.ptr_to([batch, head, first_query + T.min(query, queries_here - 1), 0]))
                    for c in T.unroll(D // PART):
                        load(t, c)
                        for p in T.unroll(PART // 8):
                            if query < queries_here and c * PART + p * 8 < HEAD_OF_V:
                                for e in T.vectorized(8):
                                    row_of_o[c * PART + p * 8 + e] = T.cast(part[p * 8 + e] * inverse, dtype)
                        # All threads of a warp load the next part together.
                        T.cuda.warp_sync()
        elif group == 0 or both:
            T.ptx.setmaxnreg(True, 184)
            scores = T.alloc_local((BN,), "float32")
            weights = T.alloc_local((BN // 2,), "uint32")
            rounded = T.decl_buffer((BN,), dtype, data=weights.data)
            row_max: T.float32 = -1e37               # above the score of a key that the query does not see: its exponential is 0
            total: T.float32 = 0.0
            query: T.let = m + group * BM + row
            # The keys that the query sees. All queries of the tile see those from `hidden` to `seen`.
            last: T.let = query + behind + 1
            end: T.let = T.if_then_else(causal != 0, T.min(keys_here, last), keys_here)
            begin: T.let = T.if_then_else(window > 0, last - window, 0)
            seen: T.let = T.if_then_else(causal != 0, T.min(keys_here, last - row), keys_here)
            hidden: T.let = T.if_then_else(window > 0, last - row + BM - window, 0)
            to_log2: T.let = T.if_then_else(cap > T.float32(0), T.float32(LOG2_E), scale * T.float32(LOG2_E))
            for j in range(tiles):
                n: T.let = (first + j) * BN
                scores_ready.wait(group, j % 2)
                T.ptx.tcgen05.fence.after_thread_sync()
                for c in T.unroll(BN // PART):
                    T.ptx.tcgen05.ld(base, *[scores[c * PART + i] for i in range(PART)], shape="32x32b", num=PART, row=warp * 32,
                                     col=group * BN + c * PART)
                T.ptx.tcgen05.wait.ld()
                if cap > T.float32(0):
                    # tanh(x) = 1 - 2 / (exp(2 x) + 1)
                    double: T.let = scale / cap * T.float32(2 * LOG2_E)
                    for i in T.unroll(BN):
                        scores[i] = cap - T.ptx.rcp(T.ptx.exp2(scores[i] * double) + T.float32(1)) * (cap + cap)
                if n < hidden or n + BN > seen:
                    for i in T.unroll(BN):
                        scores[i] = T.Select(T.And(n + i >= begin, n + i < end), scores[i], T.float32(-1e38))
                top: T.float32 = row_max
                for i in T.unroll(BN):
                    top = T.max(top, scores[i])
                factor: T.let = T.ptx.exp2((row_max - top) * to_log2)
                if j > 0:
                    factors[group, row] = factor
                    factor_ready.arrive(group)
                row_max = top
                total = total * factor
                for i in T.unroll(BN):
                    scores[i] = T.ptx.exp2(scores[i] * to_log2 - top * to_log2)
                    total = total + scores[i]
                for i in T.unroll(BN // 2):
                    for e in T.vectorized(2):
                        rounded[i * 2 + e] = T.cast(scores[i * 2 + e], dtype)
                for c in T.unroll(BN // 2 // PART):
                    T.ptx.tcgen05.st(base, *[weights[c * PART + i] for i in range(PART)], shape="32x32b", num=PART, row=warp * 32,
                                     col=group * BN + c * PART)
                T.ptx.tcgen05.wait.st()
                T.ptx.tcgen05.fence.before_thread_sync()
                weights_ready.arrive(group)
            totals[group, row] = total
            total_ready.arrive(group)
            if query < queries_here and lse_queries > 0:
                LSE[batch, head, first_query + query] = T.if_then_else(
                    total == T.float32(0), T.float32("-inf"), row_max * (to_log2 * T.float32(1 / LOG2_E)) + T.log(total))
    T.ptx.tcgen05.fence.before_thread_sync()
    T.cuda.cta_sync()
    if group == 3 and warp == 0:
        T.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
        T.ptx.tcgen05.dealloc(base, n_cols=512, cta_group=1)
