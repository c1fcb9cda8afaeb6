# test: compile sm_90a
# test: compile sm_100a
# Kernels of many families, compared with TVM after every pass and in machine code: reductions, quantization,
# padded transposes, scans, symbolic extents of three dimensions, gathers of vectors.
from tvm.script import tirx as T


@T.prim_func
def layernorm(A: T.Buffer((64, 256), "float16"), G: T.Buffer((256,), "float16"), B: T.Buffer((64, 256), "float16")):
    T.device_entry()
    bx = T.cta_id([64])
    tx = T.thread_id([32])
    x = T.alloc_local((8,), "float32")
    mean: T.float32 = 0.0
    for v in range(8):
        x[v] = T.cast(A[bx, v * 32 + tx], "float32")
        mean = mean + x[v]
    for s in T.unroll(5):
        mean = mean + T.tvm_warp_shuffle_xor(T.uint32(0xFFFFFFFF), mean, 16 >> s, 32, 32)
    mean = mean * T.float32(1 / 256)
    var: T.float32 = 0.0
    for v in range(8):
        var = var + (x[v] - mean) * (x[v] - mean)
    for s in T.unroll(5):
        var = var + T.tvm_warp_shuffle_xor(T.uint32(0xFFFFFFFF), var, 16 >> s, 32, 32)
    for v in range(8):
        B[bx, v * 32 + tx] = T.cast((x[v] - mean) * T.rsqrt(var * T.float32(1 / 256) + T.float32(1e-5)), "float16") * G[v * 32 + tx]


@T.prim_func
def gemm_tiled(a: T.handle, b: T.handle, c: T.handle):
    m = T.int32()
    n = T.int32()
    k = T.int32()
    A = T.match_buffer(a, (m, k), "float32")
    B = T.match_buffer(b, (k, n), "float32")
    C = T.match_buffer(c, (m, n), "float32")
    T.device_entry()
    bx, by = T.cta_id([T.ceildiv(n, 16), T.ceildiv(m, 16)])
    tx, ty = T.thread_id([16, 16])
    As = T.alloc_shared((16, 17), "float32")
    Bs = T.alloc_shared((16, 16), "float32")
    acc: T.float32 = 0.0
    for t in T.serial(T.ceildiv(k, 16)):
        As[ty, tx] = T.if_then_else(by * 16 + ty < m and t * 16 + tx < k, A[by * 16 + ty, t * 16 + tx], T.float32(0))
        Bs[ty, tx] = T.if_then_else(t * 16 + ty < k and bx * 16 + tx < n, B[t * 16 + ty, bx * 16 + tx], T.float32(0))
        T.cuda.cta_sync()
        for i in T.unroll(16):
            acc = acc + As[ty, i] * Bs[i, tx]
        T.cuda.cta_sync()
    if by * 16 + ty < m and bx * 16 + tx < n:
        C[by * 16 + ty, bx * 16 + tx] = acc


@T.prim_func
def transpose_padded(A: T.Buffer((512, 256), "float16"), B: T.Buffer((256, 512), "float16")):
    T.device_entry()
    bx, by = T.cta_id([8, 16])
    tx, ty = T.thread_id([32, 8])
    S = T.alloc_shared((32, 33), "float16")
    for r in T.unroll(4):
        S[ty + r * 8, tx] = A[by * 32 + ty + r * 8, bx * 32 + tx]
    T.cuda.cta_sync()
    for r in T.unroll(4):
        B[bx * 32 + ty + r * 8, by * 32 + tx] = S[tx, ty + r * 8]


@T.prim_func
def quantize_rows(A: T.Buffer((64, 128), "float32"), Q: T.Buffer((64, 128), "int8"), S: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([64])
    tx = T.thread_id([32])
    top: T.float32 = 0.0
    for v in T.unroll(4):
        top = T.max(top, T.abs(A[bx, tx * 4 + v]))
    for s in T.unroll(5):
        top = T.max(top, T.tvm_warp_shuffle_xor(T.uint32(0xFFFFFFFF), top, 16 >> s, 32, 32))
    for v in T.vectorized(4):
        Q[bx, tx * 4 + v] = T.cast(T.round(A[bx, tx * 4 + v] * (T.float32(127) / top)), "int8")
    if tx == 0:
        S[bx] = top / T.float32(127)


@T.prim_func
def dequantize(Q: T.Buffer((1024,), "uint8"), S: T.Buffer((32,), "float16"), A: T.Buffer((2048,), "float16")):
    T.device_entry()
    bx = T.cta_id([8])
    tx = T.thread_id([128])
    q: T.let = Q[bx * 128 + tx]
    for h in T.unroll(2):
        A[(bx * 128 + tx) * 2 + h] = (T.cast(T.bitwise_and(T.shift_right(q, T.uint8(4 * h)), T.uint8(15)), "float16") - T.float16(8)) * S[(bx * 128 + tx) // 32]


@T.prim_func
def scan_block(A: T.Buffer((4, 256), "int32"), B: T.Buffer((4, 256), "int32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([256])
    S = T.alloc_shared((2, 256), "int32")
    S[0, tx] = A[bx, tx]
    T.cuda.cta_sync()
    for s in T.unroll(8):
        if tx >= (1 << s):
            S[(s + 1) % 2, tx] = S[s % 2, tx] + S[s % 2, tx - (1 << s)]
        else:
            S[(s + 1) % 2, tx] = S[s % 2, tx]
        T.cuda.cta_sync()
    B[bx, tx] = S[0, tx]


@T.prim_func
def scan_warp(A: T.Buffer((128, 32), "int64"), B: T.Buffer((128, 32), "int64")):
    T.device_entry()
    bx = T.cta_id([32])
    tx = T.thread_id([128])
    w: T.let = tx // 32
    l: T.let = tx % 32
    x: T.int64 = A[bx * 4 + w, l]
    for s in T.unroll(5):
        y: T.int64 = T.tvm_warp_shuffle_up(T.uint32(0xFFFFFFFF), x, 1 << s, 32, 32)
        if l >= (1 << s):
            x = x + y
    B[bx * 4 + w, l] = x


@T.prim_func
def nchw_to_nhwc(A: T.Buffer((4, 24, 14, 14), "bfloat16"), B: T.Buffer((4, 14, 14, 24), "bfloat16")):
    T.device_entry()
    bx = T.cta_id([147])
    tx = T.thread_id([128])
    i: T.let = bx * 128 + tx
    B[i // 4704, i // 336 % 14, i // 24 % 14, i % 24] = A[i // 4704, i % 24, i // 336 % 14, i // 24 % 14]


@T.prim_func
def maxpool(A: T.Buffer((8, 30, 30), "float16"), B: T.Buffer((8, 15, 15), "float16")):
    T.device_entry()
    bx = T.cta_id([8])
    tx = T.thread_id([225])
    m: T.float16 = T.min_value("float16")
    for dy, dx in T.grid(2, 2):
        m = T.max(m, A[bx, tx // 15 * 2 + dy, tx % 15 * 2 + dx])
    B[bx, tx // 15, tx % 15] = m


@T.prim_func
def dyn_pool(A: T.Buffer((64, 128), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([64])
    tx = T.thread_id([128])
    pool = T.SMEMPool()
    S = pool.alloc((128,), "float32", align=128)
    C = pool.alloc((4,), "int32", align=16)
    pool.commit()
    S[tx] = A[bx, tx]
    if tx < 4:
        C[tx] = 0
    T.cuda.cta_sync()
    if S[tx] > T.float32(0):
        T.evaluate(T.cuda.atomic_add(C.ptr_to([tx // 32]), 1))
    T.cuda.cta_sync()
    if tx == 0:
        B[bx] = T.cast(C[0] + C[1] + C[2] + C[3], "float32")


@T.prim_func
def bf16_axpy(a: T.handle, b: T.handle, s: T.float32):
    n = T.int32()
    A = T.match_buffer(a, (n,), "bfloat16")
    B = T.match_buffer(b, (n,), "bfloat16")
    T.device_entry()
    bx = T.cta_id([T.ceildiv(n, 1024)])
    tx = T.thread_id([128])
    for v in T.serial(8):
        if bx * 1024 + v * 128 + tx < n:
            B[bx * 1024 + v * 128 + tx] = B[bx * 1024 + v * 128 + tx] + A[bx * 1024 + v * 128 + tx] * T.cast(s, "bfloat16")


@T.prim_func
def half_poly(A: T.Buffer((1024,), "float16"), B: T.Buffer((1024,), "float16")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([128])
    for v in T.vectorized(2):
        B[(bx * 128 + tx) * 2 + v] = (A[(bx * 128 + tx) * 2 + v] * T.float16(0.5) + T.float16(1)) * A[(bx * 128 + tx) * 2 + v] - T.float16(2)


@T.prim_func
def nested_symbolic(a: T.handle, p: T.int32, q: T.int32):
    A = T.match_buffer(a, (p, q, p + q), "int32")
    T.device_entry()
    bx = T.cta_id([p])
    tx = T.thread_id([32])
    for i in T.serial(T.ceildiv(q, 32)):
        for j in range(p + q):
            if i * 32 + tx < q:
                if j < bx:
                    A[bx, i * 32 + tx, j] = j * q + i
                else:
                    A[bx, i * 32 + tx, j] = T.max(j - bx, 0) % (q + 1)


@T.prim_func
def rotary(Q: T.Buffer((16, 64), "float16"), C: T.Buffer((16, 32), "float32"), S: T.Buffer((16, 32), "float32"), O: T.Buffer((16, 64), "float16")):
    T.device_entry()
    bx = T.cta_id([16])
    tx = T.thread_id([32])
    a: T.let = T.cast(Q[bx, tx], "float32")
    b: T.let = T.cast(Q[bx, tx + 32], "float32")
    O[bx, tx] = T.cast(a * C[bx, tx] - b * S[bx, tx], "float16")
    O[bx, tx + 32] = T.cast(b * C[bx, tx] + a * S[bx, tx], "float16")


@T.prim_func
def gelu(A: T.Buffer((2048,), "float32"), B: T.Buffer((2048,), "float32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([128])
    for v in T.vectorized(4):
        B[bx * 512 + tx * 4 + v] = A[bx * 512 + tx * 4 + v] * T.float32(0.5) * (T.float32(1) + T.erf(A[bx * 512 + tx * 4 + v] * T.float32(0.70710678)))


@T.prim_func
def silu_mul(A: T.Buffer((64, 256), "bfloat16"), B: T.Buffer((64, 128), "bfloat16")):
    T.device_entry()
    bx = T.cta_id([64])
    tx = T.thread_id([128])
    g: T.let = T.cast(A[bx, tx], "float32")
    B[bx, tx] = T.cast(g / (T.float32(1) + T.exp(-g)) * T.cast(A[bx, tx + 128], "float32"), "bfloat16")


@T.prim_func
def embedding(W: T.Buffer((1000, 96), "float16"), I: T.Buffer((64,), "int64"), O: T.Buffer((64, 96), "float16")):
    T.device_entry()
    bx = T.cta_id([64])
    tx = T.thread_id([12])
    for v in T.vectorized(8):
        O[bx, tx * 8 + v] = W[I[bx], tx * 8 + v]


@T.prim_func
def int64_index(a: T.handle, b: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    T.device_entry()
    bx = T.cta_id([T.ceildiv(n, T.int64(256))])
    tx = T.thread_id([256])
    i: T.let = T.cast(bx, "int64") * T.int64(256) + T.cast(tx, "int64")
    if i < n:
        B[n - T.int64(1) - i] = A[i]


@T.prim_func
def unsigned_mix(A: T.Buffer((256,), "uint32"), B: T.Buffer((256,), "uint32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([128])
    x: T.uint32 = A[bx * 128 + tx]
    for i in T.serial(4):
        x = T.bitwise_xor(x, T.shift_left(x, T.uint32(13)))
        x = T.bitwise_xor(x, T.shift_right(x, T.uint32(17)))
        x = x * T.uint32(2654435761) + T.cast(i, "uint32")
    B[bx * 128 + tx] = x % T.uint32(1000) + x // T.uint32(7)


@T.prim_func
def double_sum(A: T.Buffer((512,), "float64"), B: T.Buffer((1,), "float64")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    S = T.alloc_shared((128,), "float64")
    s: T.float64 = 0.0
    for i in T.serial(4):
        s = s + A[i * 128 + tx]
    S[tx] = s
    T.cuda.cta_sync()
    for k in range(7):
        if tx < T.shift_right(64, k):
            S[tx] = S[tx] + S[tx + T.shift_right(64, k)]
        T.cuda.cta_sync()
    if tx == 0:
        B[0] = S[0]
