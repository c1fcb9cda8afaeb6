"""Mixtures of experts: the choice of experts for each token, the order of tokens by expert, and the weighted sum of results."""

from __future__ import annotations

from tvm.script import tirx as T

from rows import WARPS, after_previous, load_row, misaligned, quotient, store_row, vector

MAX_EXPERTS = 512
VECTORS = 2                                  # vectors of a segment that a thread has in flight
OF_LANE = MAX_EXPERTS // 32
THREADS = 1024


@T.jit
def route(logits: T.handle, bias: T.handle, ids: T.handle, weights: T.handle, sigmoid: T.int32, normalized: T.int32, scale: T.float32,
          after: T.float32, *, dtype: T.constexpr):
    """The `chosen` experts with the greatest score plus bias for each token, greatest first, and their scores without the bias: softmax or
    sigmoid of the logits, times `scale`; if they are normalized, divided by their sum and times `after`. One warp per token."""
    tokens, experts, chosen, of_bias = T.int32(), T.int32(), T.int32(), T.int32()
    l0 = T.int64()
    Logits = T.match_buffer(logits, (tokens, experts), dtype, strides=(l0, 1))
    Bias = T.match_buffer(bias, (of_bias,), "float32")
    Ids = T.match_buffer(ids, (tokens, chosen), "int32")
    Weights = T.match_buffer(weights, (tokens, chosen), "float32")
    T.device_entry()
    after_previous()
    block = T.cta_id([T.ceildiv(tokens, WARPS)])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    score = T.alloc_local((OF_LANE,), "float32")
    rank = T.alloc_local((OF_LANE,), "float32")
    token: T.int32 = block * WARPS + warp
    if token < tokens:
        most: T.float32 = T.min_value("float32")
        for e in T.unroll(OF_LANE):
            score[e] = T.min_value("float32")
            if e * 32 + lane < experts:
                score[e] = T.cast(Logits[token, e * 32 + lane], "float32")
            most = T.max(most, score[e])
        most = T.cuda.warp_max(most)
        total: T.float32 = 0.0
        for e in T.unroll(OF_LANE):
            if sigmoid != 0:
                score[e] = T.ptx.rcp(1.0 + T.exp(0.0 - score[e]))
            else:
                score[e] = T.exp(score[e] - most)
                if e * 32 + lane < experts:
                    total += score[e]
        if sigmoid == 0:
            total = T.cuda.warp_sum(total)
            inverse: T.float32 = 1.0 / total
            for e in T.unroll(OF_LANE):
                score[e] = score[e] * inverse
        for e in T.unroll(OF_LANE):
            rank[e] = 0.0 - T.infinity("float32")
            if e * 32 + lane < experts:
                rank[e] = score[e]
                if of_bias > 0:
                    rank[e] = score[e] + Bias[e * 32 + lane]
                # Above that of no expert, also if it is minus infinity or no number.
                rank[e] = T.max(rank[e], T.min_value("float32"))
        sum: T.float32 = 0.0
        for c in range(chosen):
            best: T.float32 = 0.0 - T.infinity("float32")
            expert: T.int32 = MAX_EXPERTS
            own: T.float32 = 0.0
            for e in T.unroll(OF_LANE):
                if rank[e] > best:
                    best = rank[e]
                    expert = e * 32 + lane
                    own = score[e]
            for step in T.unroll(5):
                its_rank: T.float32 = T.tvm_warp_shuffle_xor(0xFFFFFFFF, best, 16 >> step, 32, 32)
                its_expert: T.int32 = T.tvm_warp_shuffle_xor(0xFFFFFFFF, expert, 16 >> step, 32, 32)
                its_own: T.float32 = T.tvm_warp_shuffle_xor(0xFFFFFFFF, own, 16 >> step, 32, 32)
                if its_rank > best or (its_rank == best and its_expert < expert):
                    best = its_rank
                    expert = its_expert
                    own = its_own
            for e in T.unroll(OF_LANE):
                if e * 32 + lane == expert:
                    rank[e] = 0.0 - T.infinity("float32")
            sum += own
            if lane == 0:
                Ids[token, c] = expert
                Weights[token, c] = own * scale
        T.cuda.warp_sync()
        if normalized != 0:
            for c in range(T.truncdiv(chosen + 31, 32)):
                if c * 32 + lane < chosen:
                    Weights[token, c * 32 + lane] = Weights[token, c * 32 + lane] / sum * after


@T.prim_func
def align(ids: T.handle, begins: T.handle, tokens: T.handle, places: T.handle, multiple: T.int32):
    """Orders the choices by expert. The rows of expert e begin at `begins[e]`, a multiple of `multiple`; `tokens` has the token of each
    row, -1 for padding, and `places` the row of each choice. One block."""
    count, chosen, experts, capacity = T.int32(), T.int32(), T.int32(), T.int32()
    Ids = T.match_buffer(ids, (count, chosen), "int32")
    Begins = T.match_buffer(begins, (experts,), "int32")
    Tokens = T.match_buffer(tokens, (capacity,), "int32")
    Places = T.match_buffer(places, (count, chosen), "int32")
    T.device_entry()
    after_previous()
    block = T.cta_id([1])
    tid = T.thread_id([THREADS])
    counts = T.alloc_shared((MAX_EXPERTS + 1,), "int32")
    next_row = T.alloc_shared((MAX_EXPERTS,), "int32")
    if tid <= MAX_EXPERTS:
        counts[tid] = 0
    for k in range(T.ceildiv(capacity, THREADS)):
        if k * THREADS + tid < capacity:
            Tokens[k * THREADS + tid] = -1
    T.cuda.cta_sync()
    for k in range(T.ceildiv(count * chosen, THREADS)):
        i: T.int32 = k * THREADS + tid
        if i < count * chosen:
            expert: T.int32 = Ids[T.truncdiv(i, chosen), i - T.truncdiv(i, chosen) * chosen]
            if expert >= 0 and expert < experts - 1:
                T.evaluate(T.cuda.atomic_add(counts.ptr_to([expert]), 1))
    T.cuda.cta_sync()
    if tid < 32:
        # Each lane has 16 neighbors, and the warp the sums before them.
        own: T.int32 = 0
        for e in range(OF_LANE):
            own += T.truncdiv(counts[tid * OF_LANE + e] + (multiple - 1), multiple) * multiple
        before: T.int32 = own
        for step in T.unroll(5):
            other: T.int32 = T.tvm_warp_shuffle_up(0xFFFFFFFF, before, 1 << step, 32, 32)
            if tid >= 1 << step:
                before += other
        before -= own
        for e in range(OF_LANE):
            expert: T.int32 = tid * OF_LANE + e
            next_row[expert] = before
            if expert < experts:
                Begins[expert] = before
            before += T.truncdiv(counts[expert] + (multiple - 1), multiple) * multiple
        if tid == 31 and experts > MAX_EXPERTS:
            Begins[MAX_EXPERTS] = before
    T.cuda.cta_sync()
    for k in range(T.ceildiv(count * chosen, THREADS)):
        i: T.int32 = k * THREADS + tid
        if i < count * chosen:
            token: T.int32 = T.truncdiv(i, chosen)
            expert: T.int32 = Ids[token, i - token * chosen]
            row: T.int32 = -1
            if expert >= 0 and expert < experts - 1:
                row = T.cuda.atomic_add(next_row.ptr_to([expert]), 1)
                if row < capacity:
                    Tokens[row] = token
            Places[token, i - token * chosen] = row


@T.jit
def combine(x: T.handle, places: T.handle, weights: T.handle, y: T.handle, warps: T.int32, segments: T.int32, *, dtype: T.constexpr):
    """Y[t] = the sum of weights[t, c] X[places[t, c]] over the choices c, in float32 and in their order. A place that is no row adds nothing."""
    tokens, chosen, rows, columns = T.int32(), T.int32(), T.int32(), T.int32()
    x_row, y_row = T.int64(), T.int64()
    X = T.match_buffer(x, (rows, columns), dtype, strides=(x_row, 1))
    Places = T.match_buffer(places, (tokens, chosen), "int32")
    Weights = T.match_buffer(weights, (tokens, chosen), "float32")
    Y = T.match_buffer(y, (tokens, columns), dtype, strides=(y_row, 1))
    VEC = T.meta_var(vector(dtype))
    T.device_entry()
    after_previous()
    block = T.cta_id([T.ceildiv(tokens * segments * warps, WARPS)])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    values = T.alloc_local((VECTORS * VEC,), dtype)
    sums = T.alloc_local((VECTORS * VEC,), "float32")
    unit: T.int32 = block * quotient(WARPS, warps) + quotient(warp, warps)
    token: T.int32 = T.truncdiv(unit, segments)

    @T.inline
    def segment(whole):
        step: T.int32 = warps * 32 * VEC
        begin: T.int32 = (unit - token * segments) * step * VECTORS + (T.bitwise_and(warp, warps - 1) * 32 + lane) * VEC
        Ys = T.decl_buffer((columns,), dtype, data=Y.ptr_to([token, 0]), scope="global")
        for v in T.unroll(VECTORS * VEC):
            sums[v] = T.float32(0)
        for c in range(chosen):
            row: T.int32 = Places[token, c]
            if row >= 0 and row < rows:
                weight: T.float32 = Weights[token, c]
                Xs = T.decl_buffer((columns,), dtype, data=X.ptr_to([row, 0]), scope="global")
                for k in T.unroll(VECTORS):
                    load_row(whole, values, k * VEC, Xs, begin + k * step, columns, dtype, VEC)
                for v in T.unroll(VECTORS * VEC):
                    sums[v] += weight * T.cast(values[v], "float32")
        for v in T.unroll(VECTORS * VEC):
            values[v] = T.cast(sums[v], dtype)
        for k in T.unroll(VECTORS):
            store_row(whole, Ys, begin + k * step, columns, values, k * VEC, dtype, VEC)

    if token < tokens:
        if (misaligned(X.ptr_to([0, 0])) | misaligned(Y.ptr_to([0, 0]))) == T.uint8(0) and (x_row | y_row | T.cast(columns, "int64")) % VEC == 0:
            segment(True)
        else:
            segment(False)
