# test: cuda sm_90a
# Functions, dtypes and statements that TVM 0.27 has and 0.26 has not.
from tvm.script import tirx as T


# sim: flag
#   F: uint32[2] = 0 -> 7 if i == 0 else 1
#   D: float32[64] = 0 -> i * 2.0
@T.prim_func
def flag(F: T.Buffer((2,), "uint32"), D: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([2], dtype="uint32")
    tx = T.thread_id([32], dtype="uint32")
    seen: T.uint32
    if bx == 0:
        D[tx] = T.float32(tx) * 2.0
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.st.release.gpu.global_.u32(F.ptr_to([0]), T.uint32(7))
    else:
        T.cuda.wait_until(seen, F.ptr_to([0]), lambda value: value >= 5, backoff_ns=20)
        D[tx + 32] = D[tx] + 64.0
        if tx == 0:
            F[1] = T.Select(seen == T.uint32(7), T.uint32(1), T.uint32(0))


# sim: wide
#   A: uint64[4] = i + 1 -> i + 1 if i < 2 else 4 - i
#   D: uint32[4] = 0 -> 4 - i if i < 2 else 0
@T.prim_func
def wide(A: T.Buffer((4,), "uint64"), D: T.Buffer((4,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    value = T.local_scalar("uint128")
    low: T.uint64
    high: T.uint64
    words = T.alloc_local((4,), "uint32")
    if tx == 0:
        T.ptx.ld.relaxed.gpu.global_.b128(value, A.ptr_to([0]))
        T.ptx.mov.b128(low, high, value)
        T.ptx.mov.b128(value, high, low)
        T.ptx.st.global_.b128(A.ptr_to([2]), value)
        words[0] = T.uint32(4)
        words[1] = T.uint32(3)
        words[2] = T.uint32(0)
        words[3] = T.uint32(0)
        T.ptx.mov.b128(value, words[0], words[1], words[2], words[3])
        T.ptx.mov.b128(words[3], words[2], T.ptx.SINK, T.ptx.SINK, value)
        D[0] = words[3]
        D[1] = words[2]


# sim: kept
#   B: uint32[32] = i -> (i if i < 5 else 7) * 2 + 1
@T.prim_func
def kept(B: T.Buffer((32,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    value: T.uint32 = 7
    T.ptx.ld.global_.b32(value, B.ptr_to([tx]), pred=tx < 5, preserve_dst=True)
    for i in T.serial(1, dtype="uint32"):
        value = T.BitwiseOr(T.LShift(value, T.uint32(1)), i + T.uint32(1))
    B[tx] = T.BitwiseNot(T.BitwiseXor(T.BitwiseNot(value), T.RShift(T.BitwiseAnd(value, T.uint32(0)), T.uint32(2))))


@T.prim_func
def matrices(D: T.Buffer((32, 4), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((64, 16), "float16")
    a = T.alloc_local((8,), "float16")
    b = T.alloc_local((4,), "float16")
    c = T.alloc_local((4,), "float32")
    for i in T.unroll(4):
        c[i] = 0.0
    T.ptx_legacy.ldmatrix(False, 4, ".b16", a.data, 0, S.data, tx * 16)
    T.ptx_legacy.ldmatrix(False, 2, ".b16", b.data, 0, S.data, tx * 16)
    T.ptx_legacy.mma("m16n8k16", "row", "col", "fp16", "fp16", "fp32", a.data, 0, b.data, 0, c.data, 0, False)
    for i in T.unroll(4):
        D[tx, i] = c[i]
