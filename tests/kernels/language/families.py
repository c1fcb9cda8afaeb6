# test: parse
# test: compile sm_90a
# test: compile sm_100a
# test: sim
# Schedulers that inherit, shared memory of other blocks, scans and sorts, random numbers.
from tvm.script import tirx as T

FULL = 0xFFFFFFFF
PHILOX = (0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85)


@T.meta_class
class Scheduler:
    def __init__(self, name, total, workers):
        self.total = total
        self.workers = workers
        self.linear = T.local_scalar("int32")
        self.row = T.local_scalar("int32")
        self.col = T.local_scalar("int32")

    @T.inline
    def init(self, worker):
        self.linear = worker
        self.update()

    @T.inline
    def next(self):
        self.linear = self.linear + self.workers
        self.update()

    def valid(self):
        return self.linear < self.total

    @T.inline
    def update(self):
        self.row = self.linear
        self.col = 0


@T.meta_class
class Grouped(Scheduler):
    def __init__(self, name, tiles, workers, group=2):
        super().__init__(name, tiles[0] * tiles[1], workers)
        self.tiles = tiles
        self.group = group

    @T.inline
    def update(self):
        per: T.let = self.group * self.tiles[1]
        g: T.let = self.linear // per
        first: T.let = g * self.group
        size: T.let = T.min(self.tiles[0] - first, self.group)
        self.row = first + self.linear % per % size
        self.col = self.linear % per // size


@T.prim_func
def persistent_tiles(A: T.Buffer((20, 24), "int32"), V: T.Buffer((20, 24), "int32")):
    T.device_entry()
    bx = T.cta_id([3])
    tx, ty = T.thread_id([8, 4])
    s = Grouped("sched", (5, 3), 3)
    s.init(bx)
    step: T.int32 = 0
    while s.valid():
        A[s.row * 4 + ty, s.col * 8 + tx] = bx * 100 + step
        V[s.row * 4 + ty, s.col * 8 + tx] += 1
        step += 1
        s.next()


@T.prim_func
def dsmem_histogram(X: T.Buffer((2, 256), "uint8"), H: T.Buffer((64,), "int32")):
    T.device_entry()
    cid = T.cluster_id([1])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([64])
    bins = T.alloc_shared((32,), "int32")
    if tx < 32:
        bins[tx] = 0
    T.cuda.cluster_sync()
    for i in range(4):
        v: T.let = T.cast(X[rank, i * 64 + tx] >> T.uint8(2), "int32")
        p: T.let = T.reinterpret("handle", T.ptx.map_shared_rank(bins.ptr_to([v % 32]), v // 32))
        T.cuda.atomic_add(p, 1)
    T.cuda.cluster_sync()
    if tx < 32:
        H[rank * 32 + tx] = bins[tx]


@T.prim_func
def segmented_scan(A: T.Buffer((64,), "int32"), Fl: T.Buffer((64,), "bool"), B: T.Buffer((64,), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    lane = T.thread_id([32])
    v: T.int32 = A[bx * 32 + lane]
    f: T.int32 = T.cast(Fl[bx * 32 + lane], "int32")
    for s in T.unroll(5):
        pv: T.let = T.tvm_warp_shuffle_up(FULL, v, 1 << s, 32, 32)
        pf: T.let = T.tvm_warp_shuffle_up(FULL, f, 1 << s, 32, 32)
        if lane >= (1 << s):
            if f == 0:
                v += pv
            f |= pf
    B[bx * 32 + lane] = v


@T.prim_func
def radix_sort(A: T.Buffer((128,), "uint32"), B: T.Buffer((128,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    key = T.alloc_shared((2, 128), "uint32")
    cnt = T.alloc_shared((128,), "int32")
    key[0, tx] = A[tx]
    for bit in range(8):
        cur: T.let = bit % 2
        T.cuda.cta_sync()
        k: T.let = key[cur, tx]
        b: T.let = T.cast((k >> T.cast(bit, "uint32")) & T.uint32(1), "int32")
        cnt[tx] = 1 - b
        T.cuda.cta_sync()
        step: T.int32 = 1
        while step < 128:
            add: T.int32 = 0
            if tx >= step:
                add = cnt[tx - step]
            T.cuda.cta_sync()
            cnt[tx] += add
            T.cuda.cta_sync()
            step <<= 1
        zeros: T.let = cnt[127]
        dst: T.let = T.Select(b == 0, cnt[tx] - 1, zeros + tx - cnt[tx])
        key[1 - cur, dst] = k
    T.cuda.cta_sync()
    B[tx] = key[0, tx]


@T.prim_func
def histogram_private(x: T.handle, H: T.Buffer((32,), "uint32")):
    n = T.int64()
    X = T.match_buffer(x, (n,), "uint8")
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    h = T.alloc_shared((2, 32), "uint32")
    h[tx // 32, tx % 32] = T.uint32(0)
    T.cuda.cta_sync()
    for i in range(T.ceildiv(n, T.int64(256))):
        at: T.let = i * T.int64(256) + T.cast(bx * 64 + tx, "int64")
        if at < n:
            T.cuda.atomic_add(h.ptr_to([tx // 32, T.cast(X[at] >> T.uint8(3), "int32")]), T.uint32(1))
    T.cuda.cta_sync()
    if tx < 32:
        T.cuda.atomic_add(T.address_of(H[tx]), h[0, tx] + h[1, tx])


@T.inline
def philox_round(c, k0, k1):
    p0: T.let = T.cast(c[0], "uint64") * T.uint64(PHILOX[0])
    p1: T.let = T.cast(c[2], "uint64") * T.uint64(PHILOX[1])
    a: T.uint32 = T.cast(p1 >> T.uint64(32), "uint32") ^ c[1] ^ k0
    b: T.uint32 = T.cast(p0 >> T.uint64(32), "uint32") ^ c[3] ^ k1
    c[1] = T.cast(p1, "uint32")
    c[3] = T.cast(p0, "uint32")
    c[0] = a
    c[2] = b


@T.prim_func
def dropout(X: T.Buffer((128,), "float32"), Y: T.Buffer((128,), "float32"), M: T.Buffer((128,), "bool"), seed: T.uint64, p: T.float32):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    c: T.uint32[4]
    c[0] = T.cast(tx, "uint32")
    c[1] = T.uint32(0)
    c[2] = T.uint32(0)
    c[3] = T.uint32(0)
    k0: T.uint32 = T.cast(seed, "uint32")
    k1: T.uint32 = T.cast(seed >> T.uint64(32), "uint32")
    for r in range(10):
        philox_round(c, k0, k1)
        k0 += T.uint32(PHILOX[2])
        k1 += T.uint32(PHILOX[3])
    for i in T.unroll(4):
        u: T.let = T.cast(c[i] >> T.uint32(8), "float32") * T.float32(2.0**-24)
        keep: T.let = u >= p
        M[tx * 4 + i] = keep
        Y[tx * 4 + i] = T.if_then_else(keep, X[tx * 4 + i] / (1.0 - p), 0.0)


@T.prim_func
def pack_int4(X: T.Buffer((64, 8), "int8"), P: T.Buffer((64,), "uint32"), Y: T.Buffer((64, 8), "int8")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    r: T.let = bx * 32 + tx
    w: T.uint32 = 0
    for i in T.unroll(8):
        w |= (T.cast(X[r, i], "uint32") & T.uint32(15)) << T.uint32(4 * i)
    P[r] = w
    for i in T.unroll(8):
        n: T.let = T.cast((P[r] >> T.uint32(4 * i)) & T.uint32(15), "int32")
        Y[r, i] = T.cast(T.if_then_else(n >= 8, n - 16, n), "int8")


@T.prim_func
def bits(A: T.Buffer((64,), "uint32"), B: T.Buffer((8, 64), "uint32")):
    T.device_entry()
    tx = T.thread_id([64])
    x: T.let = A[tx]
    B[0, tx] = T.cast(T.popcount(T.reinterpret("int32", x)), "uint32")
    B[1, tx] = T.cast(T.clz(T.reinterpret("int32", x | T.uint32(1))), "uint32")
    r: T.uint32 = x
    r = ((r >> T.uint32(1)) & T.uint32(0x55555555)) | ((r & T.uint32(0x55555555)) << T.uint32(1))
    r = ((r >> T.uint32(2)) & T.uint32(0x33333333)) | ((r & T.uint32(0x33333333)) << T.uint32(2))
    r = ((r >> T.uint32(4)) & T.uint32(0x0F0F0F0F)) | ((r & T.uint32(0x0F0F0F0F)) << T.uint32(4))
    r = ((r >> T.uint32(8)) & T.uint32(0x00FF00FF)) | ((r & T.uint32(0x00FF00FF)) << T.uint32(8))
    r = (r >> T.uint32(16)) | (r << T.uint32(16))
    B[2, tx] = r
    B[3, tx] = x & (~x + T.uint32(1))
    h: T.uint32 = x
    h ^= h >> T.uint32(16)
    h *= T.uint32(0x85EBCA6B)
    h ^= h >> T.uint32(13)
    h *= T.uint32(0xC2B2AE35)
    h ^= h >> T.uint32(16)
    B[4, tx] = h
    B[5, tx] = (x << T.uint32(7)) | (x >> T.uint32(25))
    B[6, tx] = T.cast(x, "uint64") * T.cast(A[63 - tx], "uint64") >> T.uint64(32)
    B[7, tx] = x ^ (x >> T.uint32(1))
