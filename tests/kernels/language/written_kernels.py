# test: parse
# test: cuda sm_90a
# test: sim
# Kernels as written by users who know the language from its documentation.
import enum
from dataclasses import dataclass
from functools import partial
from tvm.tirx.layout import TileLayout, S

from tvm.script import tirx as T


@T.prim_func
def bitonic(A: T.Buffer((256,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([256])
    S = T.alloc_shared((256,), "int32")
    S[tx] = A[tx]
    T.cuda.cta_sync()
    for kk in T.serial(8):
        k: T.let = 2 << kk
        j: T.int32 = k >> 1
        while j > 0:
            p: T.let = tx ^ j
            if p > tx:
                x: T.let = S[tx]
                y: T.let = S[p]
                up: T.let = (tx & k) == 0
                if (x > y) == up:
                    S[tx] = y
                    S[p] = x
            T.cuda.cta_sync()
            j = j >> 1
    A[tx] = S[tx]


M, N, KK = 48, 40, 56
BM, BN, BK = 16, 16, 8
@T.prim_func
def gemm_ragged(A: T.Buffer((48, 56), "float32"), B: T.Buffer((56, 40), "float32"), C: T.Buffer((48, 40), "float32")):
    T.device_entry(); by, bx = T.cta_id([T.ceildiv(M, BM), T.ceildiv(N, BN)]); ty, tx = T.thread_id([BM, BN])
    As = T.alloc_shared((BM, BK + 1), "float32"); Bs = T.alloc_shared((BK, BN), "float32")
    acc: T.float32 = 0.0
    for k0 in range(T.ceildiv(KK, BK)):
        if tx < BK:
            As[ty, tx] = T.if_then_else(T.And(by * BM + ty < M, k0 * BK + tx < KK), A[by * BM + ty, k0 * BK + tx], T.float32(0))
        if ty < BK:
            Bs[ty, tx] = T.if_then_else(T.And(bx * BN + tx < N, k0 * BK + ty < KK), B[k0 * BK + ty, bx * BN + tx], T.float32(0))
        T.cuda.cta_sync()
        for k in T.unroll(BK):
            acc += As[ty, k] * Bs[k, tx]
        T.cuda.cta_sync()
    if by * BM + ty < M and bx * BN + tx < N:
        C[by * BM + ty, bx * BN + tx] = acc


class Act(enum.IntEnum):
    RELU = 0
    SQUARE = 1
    NEG = 2
@dataclass
class Cfg:
    width: int
    acts: tuple
    scale: float = 2.0
    @property
    def total(self):
        return self.width * len(self.acts)
class Base:
    def __init__(self, cfg):
        self.cfg = cfg
    def apply(self, x, a):
        raise NotImplementedError
    def chain(self, x):
        for a in self.cfg.acts:
            x = self.apply(x, a)
        return x * T.float32(self.cfg.scale)
class Impl(Base):
    def apply(self, x, a):
        if a == Act.RELU: return T.max(x, T.float32(0))
        elif a == Act.SQUARE: return x * x
        return -x
cfg = Cfg(32, (Act.NEG, Act.RELU, Act.SQUARE))
@T.prim_func
def classes(A: T.Buffer((cfg.total,), "float32"), B: T.Buffer((cfg.total,), "float32")):
    T.static_assert(cfg.total == 96, f"total {cfg.total}")
    T.device_entry(); bx = T.cta_id([len(cfg.acts)]); tx = T.thread_id([cfg.width])
    m = T.meta_var(Impl(cfg))
    B[bx * cfg.width + tx] = m.chain(A[bx * cfg.width + tx])


def weighted(*terms, bias=0, **named):
    total = T.int32(bias)
    for i, t in enumerate(terms):
        total = total + t * (i + 1)
    for key in sorted(named):
        total = total - named[key]
    return total
w10 = partial(weighted, bias=10)
@T.prim_func
def varargs(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    xs = T.meta_var([A[(tx + d) % 32] for d in range(4) if d != 2])
    B[tx] = w10(*xs, z=tx, a=A[tx] * 2)


@T.prim_func
def int4pack(A: T.Buffer((64, 8), "int32"), B: T.Buffer((64,), "uint32"), C: T.Buffer((64, 8), "int32")):
    T.device_entry(); bx = T.cta_id([2]); tx = T.thread_id([32])
    i: T.let = bx * 32 + tx
    w: T.uint32 = T.uint32(0)
    for j in T.unroll(8):
        w = w | (T.cast(A[i, j] & 15, "uint32") << T.uint32(4 * j))
    B[i] = w
    for j in range(8):
        C[i, j] = (T.cast(w << T.cast(28 - 4 * j, "uint32"), "int32")) >> 28


@T.prim_func
def persistent(A: T.Buffer((1000,), "int32"), Q: T.Buffer((1,), "int32"), B: T.Buffer((1000,), "int32")):
    T.device_entry(); bx = T.cta_id([3]); tx = T.thread_id([32])
    S = T.alloc_shared((1,), "int32")
    while True:
        if tx == 0:
            S[0] = T.cuda.atomic_add(Q.ptr_to([0]), 1)
        T.cuda.cta_sync()
        t: T.let = S[0]
        T.cuda.cta_sync()
        if t * 32 >= 1000:
            break
        if t * 32 + tx < 1000:
            B[t * 32 + tx] = A[t * 32 + tx] * t


@T.prim_func
def continue_loops(A: T.Buffer((64, 20), "int32"), B: T.Buffer((64,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    s: T.int32 = 0
    for i in range(20):
        if A[tx, i] < 0:
            continue
        for j in T.serial(i, 20, step=3):
            if A[tx, j] > 40:
                break
            if j == i + 6:
                continue
            s += A[tx, j]
        if s > 500:
            break
    B[tx] = s


@T.prim_func
def divmod(A: T.Buffer((64,), "int32"), D: T.Buffer((64,), "int32"), R: T.Buffer((6, 64), "int32"), L: T.Buffer((2, 64), "int64")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    R[0, tx] = A[tx] // D[tx]
    R[1, tx] = A[tx] % D[tx]
    R[2, tx] = T.truncdiv(A[tx], D[tx])
    R[3, tx] = T.truncmod(A[tx], D[tx])
    R[4, tx] = A[tx] // 8 * 8 + A[tx] % 8
    R[5, tx] = T.floordiv(A[tx] - tx, -3)
    L[0, tx] = T.cast(A[tx], "int64") * T.int64(4294967296) // T.cast(D[tx], "int64")
    L[1, tx] = T.shift_right(T.cast(A[tx], "int64"), T.int64(2)) - (T.int64(1) << T.cast(tx % 40, "int64"))


@T.prim_func
def narrow(A: T.Buffer((64,), "uint8"), B: T.Buffer((4, 64), "uint8"), I: T.Buffer((3, 64), "int8"), W: T.Buffer((64,), "uint16")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    x: T.let = A[tx]
    B[0, tx] = x + T.uint8(200)
    B[1, tx] = (x - T.uint8(100)) // T.uint8(3)
    B[2, tx] = (x << T.uint8(3)) >> T.uint8(2)
    B[3, tx] = T.max(x * x, T.uint8(17)) ^ ~x
    I[0, tx] = T.cast(x, "int8")
    I[1, tx] = T.cast(x, "int8") * T.int8(3) >> T.int8(1)
    I[2, tx] = -T.cast(x, "int8") // T.int8(7)
    W[tx] = T.cast(x, "uint16") * T.uint16(513) + T.uint16(x > T.uint8(100))


@T.prim_func
def radix_pass(A: T.Buffer((256,), "uint32"), B: T.Buffer((256,), "uint32"), shift: T.uint32):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([256])
    pool = T.SMEMPool()
    keys = pool.alloc((256,), "uint32", align=16)
    pos = pool.alloc((256,), "int32")
    tot = pool.alloc((1,), "int32")
    pool.commit()
    keys[tx] = A[tx]
    T.cuda.cta_sync()
    for bit in T.serial(4):
        b: T.let = T.cast((keys[tx] >> (shift + T.cast(bit, "uint32"))) & T.uint32(1), "int32")
        zero: T.let = 1 - b
        pos[tx] = zero
        T.cuda.cta_sync()
        off = T.alloc_local((1,), "int32")
        off[0] = 1
        while off[0] < 256:
            add: T.int32 = 0
            if tx >= off[0]:
                add = pos[tx - off[0]]
            T.cuda.cta_sync()
            pos[tx] = pos[tx] + add
            T.cuda.cta_sync()
            off[0] = off[0] * 2
        zeros: T.let = pos[255]
        mine: T.let = keys[tx]
        dst: T.let = T.Select(b == 0, pos[tx] - 1, zeros + tx - pos[tx])
        T.cuda.cta_sync()
        keys[dst] = mine
        T.cuda.cta_sync()
    B[tx] = keys[tx]


@T.prim_func
def mandel(B: T.Buffer((16, 32), "int32"), cx: T.float32, cy: T.float32):
    T.device_entry(); by = T.cta_id([16]); tx = T.thread_id([32])
    x0: T.let = cx + (T.cast(tx, "float32") - 16.0) * T.float32(0.0625)
    y0: T.let = cy + (T.cast(by, "float32") - 8.0) * T.float32(0.125)
    x: T.float32 = 0.0
    y: T.float32 = 0.0
    it: T.int32 = 0
    while it < 50 and x * x + y * y < T.float32(4):
        t: T.let = x * x - y * y + x0
        y = x * y * T.float32(2) + y0
        x = t
        it += 1
    B[by, tx] = it


@T.prim_func
def shuffles(A: T.Buffer((64,), "float32"), B: T.Buffer((4, 64), "float32"), D: T.Buffer((64,), "float64")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    m = T.meta_var(T.uint32(0xFFFFFFFF))
    v: T.float32 = A[tx]
    B[0, tx] = T.tvm_warp_shuffle_up(m, v, 3, 16, 32)
    B[1, tx] = T.tvm_warp_shuffle_down(m, v, 1, 32, 32)
    B[2, tx] = T.tvm_warp_shuffle_xor(m, v, 5, 8, 32)
    B[3, tx] = T.tvm_warp_shuffle(m, v, tx % 7, 32, 32)
    s: T.float64 = T.cast(v, "float64")
    for i in T.unroll(5):
        s = s + T.tvm_warp_shuffle_xor(m, s, 16 >> i, 32, 32)
    D[tx] = s


@T.prim_func
def cluster2d(A: T.Buffer((8, 8), "int32"), B: T.Buffer((8, 8), "int32")):
    T.device_entry()
    cy, cx = T.cluster_id([2, 2]); ry, rx = T.cta_id_in_cluster([2, 2]); ty, tx = T.thread_id([2, 2])
    y: T.let = (cy * 2 + ry) * 2 + ty
    x: T.let = (cx * 2 + rx) * 2 + tx
    B[y, x] = A[x, y] + ry * 100 + rx * 1000


@T.prim_func
def layout_param(A: T.Buffer((8, 8), "int32"), B: T.Buffer((64,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    X = T.alloc_shared((8, 8), "int32", layout=TileLayout(S[(8, 2, 4) : (4, 32, 1)]))
    X[tx // 8, tx % 8] = A[tx // 8, tx % 8]
    T.cuda.cta_sync()
    F = X.view(64, layout=TileLayout(S[64 : 1]))
    B[tx] = F[tx]


@T.prim_func
def swap_shadow(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    x: T.int32 = A[tx]
    y: T.int32 = A[31 - tx]
    for i in range(3):
        t: T.int32 = x
        x = y
        y = t + i
        for j in range(2):
            t: T.int32 = x * 2
            x = t - y + j
    tmp = x
    x = y
    y = tmp
    B[tx] = x * 1000 + y


@T.meta_class
class Acc:
    def __init__(self, n):
        self.n = n
        self.buf = T.alloc_local((n,), "int32")
        for i in range(n):
            self.buf[i] = 0
    @T.inline
    def add(self, i, v):
        self.buf[i] = self.buf[i] + v
    def total(self):
        t = self.buf[0]
        for i in range(1, self.n):
            t = t + self.buf[i]
        return t

@T.prim_func
def metaclass(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    acc = Acc(3)
    acc.add(0, tx)
    acc.add(2, A[tx] * 2)
    acc.add(2, 7)
    B[tx] = A[tx] + (acc.total())


@T.prim_func
def between_halves(A: T.Buffer((8,), "int32"), B: T.Buffer((2, 8), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    B[0, tx] = T.cast(T.cast(T.cast(A[tx], "bfloat16"), "float16"), "int32")
    B[1, tx] = T.cast(T.cast(T.cast(A[tx], "float16"), "bfloat16"), "int32")
