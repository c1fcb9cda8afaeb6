# test: compile sm_90a
# Whole algorithms: sorting, scans over data-dependent ranges, integer hashes, online softmax, the last block's turn.
import math
from tvm.script import tirx as T

@T.prim_func
def bitonic(A: T.Buffer((256,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([256])
    s = T.alloc_shared((256,), "int32")
    s[tx] = A[tx]
    T.cuda.cta_sync()
    k: T.int32 = 2
    while k <= 256:
        j: T.int32 = k // 2
        while j > 0:
            p: T.let = tx ^ j
            if p > tx:
                up: T.let = (tx & k) == 0
                x: T.let = s[tx]
                y: T.let = s[p]
                if (x > y) == up:
                    s[tx] = y
                    s[p] = x
            T.cuda.cta_sync()
            j = j // 2
        k = k * 2
    A[tx] = s[tx]

@T.prim_func
def histogram(a: T.handle, H: T.Buffer((16,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (n,), "uint8")
    T.device_entry(); bx = T.cta_id([4]); tx = T.thread_id([128])
    h = T.alloc_shared((16,), "int32")
    if tx < 16:
        h[tx] = 0
    T.cuda.cta_sync()
    i: T.int32 = bx * 128 + tx
    while i < n:
        T.evaluate(T.cuda.atomic_add(h.ptr_to([T.cast(A[i] >> T.uint8(4), "int32")]), 1))
        i += 512
    T.cuda.cta_sync()
    if tx < 16:
        T.evaluate(T.cuda.atomic_add(H.ptr_to([tx]), h[tx]))

@T.prim_func
def flash(Q: T.Buffer((64, 32), "float32"), K: T.Buffer((64, 32), "float32"), V: T.Buffer((64, 32), "float32"), O: T.Buffer((64, 32), "float32")):
    T.device_entry(); bx = T.cta_id([2]); tx = T.thread_id([32])
    Ks = T.alloc_shared((16, 32), "float32"); Vs = T.alloc_shared((16, 32), "float32")
    q = T.alloc_local((32,), "float32"); o = T.alloc_local((32,), "float32"); p = T.alloc_local((16,), "float32")
    row: T.let = bx * 32 + tx
    m: T.float32 = -T.infinity("float32")
    l: T.float32 = 0.0
    for d in T.serial(32):
        q[d] = Q[row, d] * T.float32(1.0 / math.sqrt(32))
        o[d] = 0.0
    for t in range(4):
        for r in range(16):
            Ks[r, tx] = K[t * 16 + r, tx]
            Vs[r, tx] = V[t * 16 + r, tx]
        T.cuda.cta_sync()
        mn: T.float32 = m
        for j in range(16):
            p[j] = 0.0
            for d in range(32):
                p[j] += q[d] * Ks[j, d]
            if t * 16 + j > row:
                p[j] = -T.infinity("float32")
            mn = T.max(mn, p[j])
        corr: T.let = T.exp(m - mn)
        l = l * corr
        for d in range(32):
            o[d] = o[d] * corr
        for j in range(16):
            e: T.let = T.exp(p[j] - mn)
            l += e
            for d in range(32):
                o[d] += e * Vs[j, d]
        m = mn
        T.cuda.cta_sync()
    for d in range(32):
        O[row, d] = o[d] / l

@T.prim_func
def fft(X: T.Buffer((64, 2), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    s = T.alloc_shared((64, 2), "float32")
    for h in T.unroll(2):
        i: T.int32 = tx + h * 32
        r: T.int32 = 0
        for b in T.unroll(6):
            r = (r << 1) | ((i >> b) & 1)
        s[r, 0] = X[i, 0]
        s[r, 1] = X[i, 1]
    T.cuda.cta_sync()
    for st in T.serial(6):
        half: T.let = 1 << st
        k: T.let = tx % half
        j: T.let = (tx // half) * half * 2 + k
        ang: T.let = T.float32(-math.pi) * T.cast(k, "float32") / T.cast(half, "float32")
        wr: T.let = T.cos(ang)
        wi: T.let = T.sin(ang)
        br: T.let = s[j + half, 0] * wr - s[j + half, 1] * wi
        bi: T.let = s[j + half, 0] * wi + s[j + half, 1] * wr
        ar: T.let = s[j, 0]
        ai: T.let = s[j, 1]
        s[j, 0] = ar + br
        s[j, 1] = ai + bi
        s[j + half, 0] = ar - br
        s[j + half, 1] = ai - bi
        T.cuda.cta_sync()
    for h in T.unroll(2):
        X[tx + h * 32, 0] = s[tx + h * 32, 0]
        X[tx + h * 32, 1] = s[tx + h * 32, 1]

@T.prim_func
def philox(O: T.Buffer((64, 4), "uint32"), k0: T.uint32, k1: T.uint32):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    c0: T.uint32 = T.cast(tx, "uint32"); c1: T.uint32 = T.uint32(0); c2: T.uint32 = T.uint32(0); c3: T.uint32 = T.uint32(0)
    a: T.uint32 = k0; b: T.uint32 = k1
    for r in range(10):
        p0: T.let = T.cast(c0, "uint64") * T.uint64(0xD2511F53)
        p1: T.let = T.cast(c2, "uint64") * T.uint64(0xCD9E8D57)
        n0: T.uint32 = T.cast(p1 >> T.uint64(32), "uint32") ^ c1 ^ a
        n2: T.uint32 = T.cast(p0 >> T.uint64(32), "uint32") ^ c3 ^ b
        c1 = T.cast(p1, "uint32")
        c3 = T.cast(p0, "uint32")
        c0 = n0
        c2 = n2
        a += T.uint32(0x9E3779B9)
        b += T.uint32(0xBB67AE85)
    O[tx, 0] = c0; O[tx, 1] = c1; O[tx, 2] = c2; O[tx, 3] = c3

@T.prim_func
def life(a: T.handle, b: T.handle):
    h = T.int32(); w = T.int32()
    A = T.match_buffer(a, (h, w), "uint8")
    B = T.match_buffer(b, (h, w), "uint8")
    T.device_entry(); bx, by = T.cta_id([T.ceildiv(w, 16), T.ceildiv(h, 8)]); tx, ty = T.thread_id([16, 8])
    x: T.let = bx * 16 + tx
    y: T.let = by * 8 + ty
    if x < w and y < h:
        n: T.int32 = 0
        for dy in T.unroll(3):
            for dx in T.unroll(3):
                if dy != 1 or dx != 1:
                    n += T.cast(A[(y + dy - 1 + h) % h, (x + dx - 1 + w) % w], "int32")
        B[y, x] = T.cast(T.Select(n == 3 or (n == 2 and A[y, x] == T.uint8(1)), 1, 0), "uint8")

@T.prim_func
def csr(ptr: T.handle, idx: T.handle, val: T.handle, x: T.handle, y: T.handle):
    n = T.int32(); nnz = T.int32(); m = T.int32(); n1 = T.int32()
    P = T.match_buffer(ptr, (n1,), "int32"); Ix = T.match_buffer(idx, (nnz,), "int32"); V = T.match_buffer(val, (nnz,), "float32"); X = T.match_buffer(x, (m,), "float32"); Y = T.match_buffer(y, (n,), "float32")
    T.device_entry(); bx = T.cta_id([T.ceildiv(n, 32)]); tx = T.thread_id([32])
    r: T.let = bx * 32 + tx
    if r < n:
        acc: T.float32 = 0.0
        for j in range(P[r], P[r + 1]):
            acc += V[j] * X[Ix[j]]
        Y[r] = acc

@T.prim_func
def crc(S: T.Buffer((16, 32), "uint8"), O: T.Buffer((16,), "uint32"), H: T.Buffer((16,), "uint64")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([16])
    c: T.uint32 = T.uint32(0xFFFFFFFF)
    h: T.uint64 = T.uint64(0xcbf29ce484222325)
    for i in range(32):
        c = c ^ T.cast(S[tx, i], "uint32")
        for b in T.unroll(8):
            c = T.if_then_else((c & T.uint32(1)) != T.uint32(0), (c >> T.uint32(1)) ^ T.uint32(0xEDB88320), c >> T.uint32(1))
        h = (h ^ T.cast(S[tx, i], "uint64")) * T.uint64(0x100000001b3)
    O[tx] = ~c
    H[tx] = h

@T.prim_func
def lastblock(A: T.Buffer((512,), "float32"), W: T.Buffer((4,), "float32"), cnt: T.Buffer((1,), "int32"), O: T.Buffer((1,), "float32")):
    T.device_entry(); bx = T.cta_id([4]); tx = T.thread_id([128])
    sc = T.alloc_shared((4,), "float32")
    last = T.alloc_shared((1,), "int32")
    v: T.float32 = T.cuda.cta_sum(A[bx * 128 + tx], 4, sc.ptr_to([0]))
    if tx == 0:
        W[bx] = v
        T.evaluate(T.cuda.thread_fence())
        last[0] = T.cuda.atomic_add(cnt.ptr_to([0]), 1)
    T.cuda.cta_sync()
    if last[0] == 3 and tx == 0:
        s: T.float32 = 0.0
        for i in range(4):
            s += W[i]
        O[0] = s
