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
ROWS = 64


@T.jit
def prepare(o: T.handle, d_o: T.handle, lse: T.handle, stats: T.handle, dq_sums: T.handle, *, dtype: T.constexpr):
    """`stats[0]` is the logarithm in base 2, and infinity for a query that sees no keys, so that its weights are 0; `stats[1]` is the sum of
    dO * O. A block takes 64 queries of a head; 16 threads take a query, or 8 if heads have up to 64 elements, and a thread 8 elements of each of two
    queries at a time. Rows of `dq_sums` have a multiple of 8 elements."""
    BATCH, HEADS, QUERIES, WIDTH, HEAD_OF_V = (T.int32() for _ in range(5))
    o_batch, o_head, o_row, d_batch, d_head, d_row = (T.int64() for _ in range(6))
    s_part, s_batch, s_head = (T.int64() for _ in range(3))
    O = T.match_buffer(o, (BATCH, HEADS, QUERIES, HEAD_OF_V), dtype, strides=(o_batch, o_head, o_row, 1))
    DO = T.match_buffer(d_o, (BATCH, HEADS, QUERIES, HEAD_OF_V), dtype, strides=(d_batch, d_head, d_row, 1))
    LSE = T.match_buffer(lse, (BATCH, HEADS, QUERIES), "float32")
    STATS = T.match_buffer(stats, (2, BATCH, HEADS, QUERIES), "float32", strides=(s_part, s_batch, s_head, 1))
    SUMS = T.match_buffer(dq_sums, (BATCH, HEADS, QUERIES, WIDTH), "float32")
    T.device_entry()
    T.attr({"tirx.use_programtic_dependent_launch": True})
    block = T.cta_id([BATCH * HEADS * T.truncdiv(QUERIES + (ROWS - 1), ROWS)])
    tid = T.thread_id([256])
    T.ptx.griddepcontrol.launch_dependents()
    T.ptx.griddepcontrol.wait()
    across: T.let = T.truncdiv(QUERIES + (ROWS - 1), ROWS)
    of_all: T.let = T.truncdiv(block, across)
    batch: T.let = T.truncdiv(of_all, HEADS)
    head: T.let = T.truncmod(of_all, HEADS)
    wide: T.let = T.Or(WIDTH > 64, HEAD_OF_V > 64)
    chunk: T.let = T.if_then_else(wide, tid % 16, tid % 8) * 8
    step: T.let = T.if_then_else(wide, 16, 32)
    query: T.int32 = T.truncmod(block, across) * ROWS + T.if_then_else(wide, tid // 16, tid // 8)
    outputs = T.alloc_local((2, 8), dtype)
    gradients = T.alloc_local((2, 8), dtype)
    sums = T.alloc_local((2,), "float32")
    logarithms = T.alloc_local((2,), "float32")
    for _ in range(T.if_then_else(wide, 2, 1)):
        for i in T.unroll(2):
            row: T.let = T.min(query + i * step, QUERIES - 1)
            column: T.let = T.min(chunk, HEAD_OF_V - 8)
            of_o = T.decl_buffer((8,), dtype, data=O.ptr_to([batch, head, row, column]))
            of_do = T.decl_buffer((8,), dtype, data=DO.ptr_to([batch, head, row, column]))
            for e in T.vectorized(8):
                outputs[i, e] = of_o[e]
            for e in T.vectorized(8):
                gradients[i, e] = of_do[e]
            logarithms[i] = LSE[batch, head, row]
        for i in T.unroll(2):
            row: T.let = query + i * step
            if row < QUERIES and chunk < WIDTH:
                zeros = T.decl_buffer((8,), "float32", data=SUMS.ptr_to([batch, head, row, chunk]))
                for part in T.unroll(2):
                    for e in T.vectorized(4):
                        zeros[part * 4 + e] = T.float32(0)
        for i in T.unroll(2):
            sums[i] = T.float32(0)
            if chunk < HEAD_OF_V:
                for e in T.unroll(8):
                    sums[i] = sums[i] + T.cast(outputs[i, e], "float32") * T.cast(gradients[i, e], "float32")
            for power in T.unroll(3):
                sums[i] = sums[i] + T.tvm_warp_shuffle_xor(0xFFFFFFFF, sums[i], 1 << power, 32, 32)
            # The other half of a wide row; of two narrow rows, each keeps its own.
            other: T.let = T.tvm_warp_shuffle_xor(0xFFFFFFFF, sums[i], 8, 32, 32)
            row: T.let = query + i * step
            if row < QUERIES and chunk == 0:
                STATS[0, batch, head, row] = T.if_then_else(logarithms[i] > T.float32(-1e38), logarithms[i] * T.float32(LOG2_E), T.float32("inf"))
                STATS[1, batch, head, row] = sums[i] + T.if_then_else(wide, other, T.float32(0))
        query += 2 * step


@T.jit
def finish(dq_sums: T.handle, dq: T.handle, scale: T.float32, turned: T.int32, *, dtype: T.constexpr):
    """dQ = scale * sums, by blocks and threads as those of `prepare`. With `turned`, sums are in the order of `hopper_backward.py`: 16 elements
    are its pairs 0, 4, 1, 5, 2, 6, 3, 7, and in each second row, neighbors of 16 elements have changed places."""
    BATCH, HEADS, QUERIES, HEAD, WIDTH = (T.int32() for _ in range(5))
    d_batch, d_head, d_row = (T.int64() for _ in range(3))
    SUMS = T.match_buffer(dq_sums, (BATCH, HEADS, QUERIES, WIDTH), "float32")
    DQ = T.match_buffer(dq, (BATCH, HEADS, QUERIES, HEAD), dtype, strides=(d_batch, d_head, d_row, 1))
    T.device_entry()
    T.attr({"tirx.use_programtic_dependent_launch": True})
    block = T.cta_id([BATCH * HEADS * T.truncdiv(QUERIES + (ROWS - 1), ROWS)])
    tid = T.thread_id([256])
    T.ptx.griddepcontrol.launch_dependents()
    T.ptx.griddepcontrol.wait()
    across: T.let = T.truncdiv(QUERIES + (ROWS - 1), ROWS)
    of_all: T.let = T.truncdiv(block, across)
    batch: T.let = T.truncdiv(of_all, HEADS)
    head: T.let = T.truncmod(of_all, HEADS)
    wide: T.let = WIDTH > 64
    chunk: T.let = T.if_then_else(wide, tid % 16, tid % 8) * 8
    step: T.let = T.if_then_else(wide, 16, 32)
    query: T.int32 = T.truncmod(block, across) * ROWS + T.if_then_else(wide, tid // 16, tid // 8)
    sums = T.alloc_local((2, 8), "float32")
    pairs = T.decl_buffer((8,), "float32x2", data=sums.data, scope="local")
    words = T.alloc_local((4,), "uint32")
    for _ in range(T.if_then_else(wide, 2, 1)):
        for i in T.unroll(2):
            row: T.let = T.min(query + i * step, QUERIES - 1)
            column: T.let = T.min(chunk, WIDTH - 8)
            at: T.let = T.if_then_else(turned != 0, T.bitwise_xor(column // 16, row % 2) * 16 + column // 8 % 2 * 2, column)
            of_sums = T.decl_buffer((WIDTH // 2,), "float32x2", data=SUMS.ptr_to([batch, head, row, 0]))
            for pair in T.unroll(4):
                pairs[i * 4 + pair] = of_sums[at // 2 + pair * T.if_then_else(turned != 0, 2, 1)]
        for i in T.unroll(2):
            row: T.let = query + i * step
            if row < QUERIES and chunk < HEAD:
                of_dq = T.decl_buffer((4,), "uint32", data=DQ.ptr_to([batch, head, row, chunk]))
                for e in T.unroll(4):
                    T.ptx["cvt.rn.bf16x2.f32" if dtype == "bfloat16" else "cvt.rn.f16x2.f32"](words[e], sums[i, e * 2 + 1] * scale, sums[i, e * 2] * scale)
                for e in T.vectorized(4):
                    of_dq[e] = words[e]
        query += 2 * step


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
