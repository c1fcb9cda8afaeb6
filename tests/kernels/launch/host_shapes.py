# test: cuda sm_90a
# Symbolic extents in shapes, launches and host expressions; scalars of every dtype.
from tvm.script import tirx as T

@T.prim_func
def symm(a: T.handle, b: T.handle, c: T.handle):
    m = T.int32(); n = T.int32(); k = T.int32()
    A = T.match_buffer(a, (m, k), "float32")
    B = T.match_buffer(b, (k, n), "float32")
    C = T.match_buffer(c, (m, n), "float32")
    T.device_entry()
    by, bx = T.cta_id([T.ceildiv(m, 16), T.ceildiv(n, 16)])
    tx = T.thread_id([256])
    r: T.let = by * 16 + tx // 16
    s: T.let = bx * 16 + tx % 16
    if r < m and s < n:
        acc: T.float32 = 0.0
        for i in range(k):
            acc += A[r, i] * B[i, s]
        C[r, s] = acc

@T.prim_func
def symexpr(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n * 2,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    T.device_entry()
    bx = T.cta_id([n]); tx = T.thread_id([1])
    B[bx] = A[bx * 2] + A[bx * 2 + 1]

@T.prim_func
def symoff(a: T.handle, b: T.handle):
    n = T.int32(); o = T.int32()
    A = T.match_buffer(a, (n,), "float32", elem_offset=o)
    B = T.match_buffer(b, (n,), "float32")
    T.device_entry()
    bx = T.cta_id([n]); tx = T.thread_id([1])
    B[bx] = A[bx]

@T.prim_func
def hostlet(a: T.handle, b: T.handle, k: T.int32):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    blocks: T.let = T.min(T.ceildiv(n, 128), k)
    T.device_entry()
    bx = T.cta_id([blocks]); tx = T.thread_id([128])
    for it in range(T.ceildiv(n, blocks * 128)):
        i: T.let = (it * blocks + bx) * 128 + tx
        if i < n:
            B[i] = T.max(A[i], T.float32(0))

@T.prim_func
def scalars(B: T.Buffer((32,), "float64"), a: T.int8, b: T.uint8, c: T.int16, d: T.uint16, e: T.int64, f: T.uint64, g: T.float64, h: T.bool, i: T.uint32):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    B[tx] = T.cast(a, "float64") + T.cast(b, "float64") + T.cast(c, "float64") + T.cast(d, "float64") + T.cast(e, "float64") + T.cast(f, "float64") + g + T.if_then_else(h, T.float64(1), T.float64(2)) + T.cast(i, "float64")

@T.prim_func
def scalarh(B: T.Buffer((32,), "float16"), a: T.float16, c: T.Buffer((32,), "bfloat16"), d: T.bfloat16):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    B[tx] = B[tx] * a
    c[tx] = c[tx] * d

@T.prim_func
def dynshared(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([n])
    s = T.alloc_buffer((n,), "float32", scope="shared.dyn")
    s[tx] = A[tx]
    T.cuda.cta_sync()
    A[tx] = s[n - 1 - tx]

@T.prim_func
def softm(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 256), "float32")
    B = T.match_buffer(b, (n, 256), "float32")
    T.device_entry()
    row = T.cta_id([n]); w = T.warp_id([1]); lane = T.lane_id([32])
    v = T.alloc_local((8,), "float32")
    m: T.float32 = T.min_value("float32")
    for i in T.unroll(8):
        v[i] = A[row, lane + i * 32]
        m = T.max(m, v[i])
    off: T.int32 = 16
    while off >= 1:
        m = T.max(m, T.tvm_warp_shuffle_xor(0xFFFFFFFF, m, off, 32, 32))
        off = off // 2
    s: T.float32 = 0.0
    for i in T.unroll(8):
        v[i] = T.exp(v[i] - m)
        s += v[i]
    for o in T.unroll(5):
        s += T.tvm_warp_shuffle_xor(0xFFFFFFFF, s, 1 << o, 32, 32)
    for i in T.unroll(8):
        B[row, lane + i * 32] = v[i] / s

@T.prim_func
def transp(a: T.handle, b: T.handle):
    m = T.int32(); n = T.int32()
    A = T.match_buffer(a, (m, n), "float32")
    B = T.match_buffer(b, (n, m), "float32")
    T.device_entry()
    bx, by = T.cta_id([T.ceildiv(n, 32), T.ceildiv(m, 32)]); tx, ty = T.thread_id([32, 8])
    t = T.alloc_shared((32, 33), "float32")
    for i in T.unroll(4):
        if by * 32 + ty + i * 8 < m and bx * 32 + tx < n:
            t[ty + i * 8, tx] = A[by * 32 + ty + i * 8, bx * 32 + tx]
    T.cuda.cta_sync()
    for i in T.unroll(4):
        if bx * 32 + ty + i * 8 < n and by * 32 + tx < m:
            B[bx * 32 + ty + i * 8, by * 32 + tx] = t[tx, ty + i * 8]

@T.prim_func
def alignb(a: T.handle, B: T.Buffer((8,), "float32", align=8, offset_factor=1)):
    A = T.match_buffer(a, (8,), "float32", align=16, offset_factor=4)
    T.device_entry(); b = T.cta_id([1]); tx = T.thread_id([8])
    A[tx] = B[tx]

@T.prim_func
def zerod(A: T.Buffer((), "float32"), B: T.Buffer((1,), "float32")):
    T.device_entry(); b = T.cta_id([1]); tx = T.thread_id([1])
    B[0] = A[()]
