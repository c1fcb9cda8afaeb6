"""The kernels before and after the backward pass of attention, for every GPU from sm_80 on.

| kernel | computes |
|---|---|
| `prepare` | the sum of dO * O of each query, its logarithm in base 2, and zeros in the sums of dQ |
| `finish` | dQ in 16 bits from its sums |
| `clear` | zeros, if there are no queries |
"""

from __future__ import annotations

from tvm.script import tirx as T

LOG2_E = 1.4426950408889634


@T.jit
def prepare(o: T.handle, d_o: T.handle, lse: T.handle, stats: T.handle, dq_sums: T.handle, *, dtype: T.constexpr):
    """`stats[0]` is the logarithm in base 2, and infinity for a query that sees no keys, so that its weights are 0; `stats[1]` is the sum of
    dO * O. 16 threads take a query, 8 elements each."""
    BATCH, HEADS, QUERIES, HEAD, HEAD_OF_V = (T.int32() for _ in range(5))
    o_batch, o_head, o_row, d_batch, d_head, d_row = (T.int64() for _ in range(6))
    s_part, s_batch, s_head = (T.int64() for _ in range(3))
    O = T.match_buffer(o, (BATCH, HEADS, QUERIES, HEAD_OF_V), dtype, strides=(o_batch, o_head, o_row, 1))
    DO = T.match_buffer(d_o, (BATCH, HEADS, QUERIES, HEAD_OF_V), dtype, strides=(d_batch, d_head, d_row, 1))
    LSE = T.match_buffer(lse, (BATCH, HEADS, QUERIES), "float32")
    STATS = T.match_buffer(stats, (2, BATCH, HEADS, QUERIES), "float32", strides=(s_part, s_batch, s_head, 1))
    SUMS = T.match_buffer(dq_sums, (BATCH, HEADS, QUERIES, HEAD), "float32")
    T.device_entry()
    block = T.cta_id([T.truncdiv(BATCH * HEADS * QUERIES + 15, 16)])
    tid = T.thread_id([256])
    row: T.let = block * 16 + tid // 16
    chunk: T.let = tid % 16 * 8
    if row < BATCH * HEADS * QUERIES:
        query: T.let = T.truncmod(row, QUERIES)
        head: T.let = T.truncmod(T.truncdiv(row, QUERIES), HEADS)
        batch: T.let = T.truncdiv(row, QUERIES * HEADS)
        sum: T.float32 = 0
        if chunk < HEAD_OF_V:
            outputs = T.alloc_local((8,), dtype)
            gradients = T.alloc_local((8,), dtype)
            for e in T.vectorized(8):
                outputs[e] = O[batch, head, query, chunk + e]
            for e in T.vectorized(8):
                gradients[e] = DO[batch, head, query, chunk + e]
            for e in T.unroll(8):
                sum = sum + T.cast(outputs[e], "float32") * T.cast(gradients[e], "float32")
        mask: T.let = T.if_then_else(tid % 32 < 16, T.uint32(0xFFFF), T.uint32(0xFFFF0000))
        for step in T.unroll(4):
            sum = sum + T.tvm_warp_shuffle_xor(mask, sum, 8 >> step, 32, 32)
        if tid % 16 == 0:
            logarithm: T.let = LSE[batch, head, query]
            STATS[0, batch, head, query] = T.if_then_else(logarithm > T.float32(-1e38), logarithm * T.float32(LOG2_E), T.float32("inf"))
            STATS[1, batch, head, query] = sum
        if chunk < HEAD:
            for half in T.unroll(2):
                for e in T.vectorized(4):
                    SUMS[batch, head, query, chunk + half * 4 + e] = T.float32(0)


@T.jit
def finish(dq_sums: T.handle, dq: T.handle, scale: T.float32, *, dtype: T.constexpr):
    """dQ = scale * sums, 8 elements in each thread."""
    BATCH, HEADS, QUERIES, HEAD = (T.int32() for _ in range(4))
    d_batch, d_head, d_row = (T.int64() for _ in range(3))
    SUMS = T.match_buffer(dq_sums, (BATCH, HEADS, QUERIES, HEAD), "float32")
    DQ = T.match_buffer(dq, (BATCH, HEADS, QUERIES, HEAD), dtype, strides=(d_batch, d_head, d_row, 1))
    T.device_entry()
    block = T.cta_id([T.truncdiv(BATCH * HEADS * QUERIES + 15, 16)])
    tid = T.thread_id([256])
    row: T.let = block * 16 + tid // 16
    chunk: T.let = tid % 16 * 8
    if row < BATCH * HEADS * QUERIES and chunk < HEAD:
        query: T.let = T.truncmod(row, QUERIES)
        head: T.let = T.truncmod(T.truncdiv(row, QUERIES), HEADS)
        batch: T.let = T.truncdiv(row, QUERIES * HEADS)
        sums = T.alloc_local((8,), "float32")
        rounded = T.alloc_local((8,), dtype)
        for half in T.unroll(2):
            for e in T.vectorized(4):
                sums[half * 4 + e] = SUMS[batch, head, query, chunk + half * 4 + e]
        for e in T.unroll(8):
            rounded[e] = T.cast(sums[e] * scale, dtype)
        for e in T.vectorized(8):
            DQ[batch, head, query, chunk + e] = rounded[e]


@T.jit
def clear(gradient: T.handle, *, dtype: T.constexpr):
    """Zeros, 8 in each thread."""
    BATCH, HEADS, ROWS, HEAD = (T.int32() for _ in range(4))
    g_batch, g_head, g_row = (T.int64() for _ in range(3))
    G = T.match_buffer(gradient, (BATCH, HEADS, ROWS, HEAD), dtype, strides=(g_batch, g_head, g_row, 1))
    T.device_entry()
    block = T.cta_id([T.truncdiv(BATCH * HEADS * ROWS + 15, 16)])
    tid = T.thread_id([256])
    row: T.let = block * 16 + tid // 16
    chunk: T.let = tid % 16 * 8
    if row < BATCH * HEADS * ROWS and chunk < HEAD:
        for e in T.vectorized(8):
            G[T.truncdiv(row, ROWS * HEADS), T.truncmod(T.truncdiv(row, ROWS), HEADS), T.truncmod(row, ROWS), chunk + e] = T.cast(0, dtype)
