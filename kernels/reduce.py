"""Reductions: over a warp, a block, and the rows of a matrix."""

from __future__ import annotations

from tvm.script import tirx as T

FULL = 0xFFFFFFFF


@T.inline
def warp_sum(value):
    """Adds a one-element local buffer over the 32 lanes; every lane ends with the sum."""
    for step in T.unroll(5):
        value[0] += T.tvm_warp_shuffle_xor(FULL, value[0], 16 >> step, 32, 32)


@T.inline
def warp_max(value):
    """The maximum of a one-element local buffer over the 32 lanes."""
    for step in T.unroll(5):
        value[0] = T.max(value[0], T.tvm_warp_shuffle_xor(FULL, value[0], 16 >> step, 32, 32))


@T.prim_func
def warp_reduce(A_ptr: T.handle):
    """A[i] = sum of 31 - lane over the warp, by halving exchanges."""
    A = T.match_buffer(A_ptr, (32,), "float32", align=16)
    T.device_entry()
    cta_id = T.cta_id([1]); warp_id = T.warp_id([1]); lane_id = T.lane_id([32])
    v = T.alloc_local((1,), "float32"); i = T.alloc_local((1,), "int32")
    v[0] = T.float32(31 - lane_id)
    i[0] = 16
    while i[0] >= 1:
        v[0] += T.tvm_warp_shuffle_xor(0xFFFFFFFF, v[0], i[0], 32, 32)
        i[0] = i[0] // 2
    A[lane_id] = v[0]


@T.prim_func
def block_sum(a: T.handle, out: T.handle):
    """Out[b] = sum of A[256 b .. 256 (b + 1)], through shared memory."""
    n = T.int32()
    blocks = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    Out = T.match_buffer(out, (blocks,), "float32")
    T.device_entry()
    bx = T.cta_id([blocks]); tx = T.thread_id([256])
    partial = T.alloc_shared((256,), "float32")
    i: T.let = bx * 256 + tx
    partial[tx] = T.if_then_else(i < n, A[i], T.float32(0))
    T.cuda.cta_sync()
    stride: T.int32 = 128
    while stride > 0:
        if tx < stride:
            partial[tx] += partial[tx + stride]
        T.cuda.cta_sync()
        stride = stride // 2
    if tx == 0:
        Out[bx] = partial[0]


@T.jit
def row_sums(a: T.handle, out: T.handle, *, ROWS: T.constexpr, WARPS: T.constexpr):
    """Out[i] = sum of row i of A: WARPS warps add a row, a block has ROWS rows. Few long rows need many warps each, many short rows one."""
    rows = T.int32()
    columns = T.int32()
    A = T.match_buffer(a, (rows, columns), "float32")
    Out = T.match_buffer(out, (rows,), "float32")
    T.device_entry()
    bx = T.cta_id([T.ceildiv(rows, ROWS)]); warp = T.warp_id([ROWS * WARPS]); lane = T.lane_id([32])
    total = T.alloc_local((1,), "float32")
    row: T.let = bx * ROWS + warp // WARPS
    part: T.let = warp % WARPS
    total[0] = 0.0
    if row < rows:
        for k in T.serial(part * 32 + lane, columns, step=WARPS * 32):
            total[0] += A[row, k]
    warp_sum(total)
    if WARPS > 1:
        parts = T.alloc_shared((ROWS * WARPS,), "float32")
        if lane == 0:
            parts[warp] = total[0]
        T.cuda.cta_sync()
        if part == 0:
            for w in T.unroll(1, WARPS):
                total[0] += parts[warp + w]
    if part == 0 and lane == 0 and row < rows:
        Out[row] = total[0]


@T.prim_func
def softmax(x: T.handle, y: T.handle):
    """Y = softmax of each row of X, one warp per row, four rows per block."""
    rows = T.int32()
    columns = T.int32()
    X = T.match_buffer(x, (rows, columns), "float32")
    Y = T.match_buffer(y, (rows, columns), "float32")
    T.device_entry()
    bx = T.cta_id([T.ceildiv(rows, 4)]); warp = T.warp_id([4]); lane = T.lane_id([32])
    row: T.let = bx * 4 + warp
    if row < rows:
        peak = T.alloc_local((1,), "float32")
        total = T.alloc_local((1,), "float32")
        peak[0] = T.min_value("float32")
        for k in range(T.ceildiv(columns, 32)):
            if k * 32 + lane < columns:
                peak[0] = T.max(peak[0], X[row, k * 32 + lane])
        warp_max(peak)
        total[0] = 0.0
        for k in range(T.ceildiv(columns, 32)):
            if k * 32 + lane < columns:
                total[0] += T.exp(X[row, k * 32 + lane] - peak[0])
        warp_sum(total)
        for k in range(T.ceildiv(columns, 32)):
            if k * 32 + lane < columns:
                Y[row, k * 32 + lane] = T.exp(X[row, k * 32 + lane] - peak[0]) / total[0]


@T.jit
def rmsnorm(X: T.Buffer((ROWS, D), "float16"), W: T.Buffer((D,), "float16"),
            Y: T.Buffer((ROWS, D), "float16"), eps: T.float32, *, ROWS: T.constexpr, D: T.constexpr):
    """Y = X / sqrt(mean(X^2) + eps) * W for each row: one block of 128 threads per row, 8-byte loads."""
    VEC = T.meta_var(4)  # elements of an 8-byte access
    T.static_assert(D % (128 * VEC) == 0, "D must be a multiple of 512")
    T.device_entry()
    row = T.cta_id([ROWS]); warp = T.warp_id([4]); lane = T.lane_id([32]); tx = T.thread_id([128])
    parts = T.alloc_shared((4,), "float32")
    x = T.alloc_local((D // 128,), "float16")
    total = T.alloc_local((1,), "float32")
    total[0] = 0.0
    for k in T.unroll(D // (128 * VEC)):
        for v in T.vectorized(VEC):
            x[k * VEC + v] = X[row, k * 128 * VEC + tx * VEC + v]
    for k in T.unroll(D // 128):
        total[0] += T.cast(x[k], "float32") * T.cast(x[k], "float32")
    warp_sum(total)
    if lane == 0:
        parts[warp] = total[0]
    T.cuda.cta_sync()
    factor: T.let = T.rsqrt((parts[0] + parts[1] + parts[2] + parts[3]) / T.float32(D) + eps)
    for k in T.unroll(D // (128 * VEC)):
        y = T.alloc_local((VEC,), "float16")
        for v in T.unroll(VEC):
            y[v] = T.cast(T.cast(x[k * VEC + v], "float32") * factor
                          * T.cast(W[k * 128 * VEC + tx * VEC + v], "float32"), "float16")
        for v in T.vectorized(VEC):
            Y[row, k * 128 * VEC + tx * VEC + v] = y[v]


@T.prim_func
def histogram(values: T.handle, counts: T.handle):
    """Counts[v] += occurrences of v among 256 byte values: block counts in shared memory, then global atomics."""
    n = T.int32()
    V = T.match_buffer(values, (n,), "uint8")
    Counts = T.match_buffer(counts, (256,), "int32")
    T.device_entry()
    bx = T.cta_id([T.ceildiv(n, 4096)]); tx = T.thread_id([256])
    local = T.alloc_shared((256,), "int32")
    local[tx] = 0
    T.cuda.cta_sync()
    for k in range(16):
        i: T.let = bx * 4096 + k * 256 + tx
        if i < n:
            T.cuda.atomic_add(local.ptr_to([T.cast(V[i], "int32")]), T.int32(1))
    T.cuda.cta_sync()
    if local[tx] > 0:
        T.cuda.atomic_add(Counts.ptr_to([tx]), local[tx])
