# test: target sm_100a
# test: cuda sm_100a
# Instructions by their mnemonics that are operations with a row: packed products into a register, matrix products whose sum starts at
# zero and has no registers, a copy with the size of its prefetch.
from tvm.script import tirx as T


# sim: products_of_pairs
#   A: float32[64] = i * 0.5
#   B: float32[64] = 0 -> A[i] * 3.0
@T.prim_func
def products_of_pairs(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    product: T.uint64
    low: T.float32
    high: T.float32
    T.ptx.mul.rz.ftz.f32x2(
        product,
        T.cuda.make_float2(A[tx * 2], A[tx * 2 + 1]),
        T.cuda.make_float2(T.float32(3), T.float32(3)),
    )
    T.ptx.mov.b64(low, high, product)
    B[tx * 2] = low
    B[tx * 2 + 1] = high


# sim: product_from_zero
#   D: float32[16x8] = 5 -> 16
@T.prim_func
def product_from_zero(D: T.Buffer((16, 8), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    a = T.alloc_local((4,), "uint32")
    b = T.alloc_local((2,), "uint32")
    d = T.alloc_local((4,), "float32")
    for i in T.unroll(4):
        a[i] = T.uint32(0x3F803F80)
    for i in T.unroll(2):
        b[i] = T.uint32(0x3F803F80)
    zeros = (T.float32(0), T.float32(0), T.float32(0), T.float32(0))
    T.ptx.mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32(
        d[0], d[1], d[2], d[3], a[0], a[1], a[2], a[3], b[0], b[1], *zeros
    )
    for i in T.unroll(4):
        D[tx // 4 + i // 2 * 8, tx % 4 * 2 + i % 2] = d[i]


# sim: prefetched_copy
#   A: float32[64] = i
#   B: float32[64] = 0 -> i
@T.prim_func
def prefetched_copy(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((64,), "float32", align=16)
    T.ptx["cp.async.ca.shared.global.L2::128B"](S.ptr_to([tx * 2]), A.ptr_to([tx * 2]), 8)
    T.ptx.cp.async_.commit_group()
    T.ptx.cp.async_.wait_group(0)
    for i in range(2):
        B[tx * 2 + i] = S[tx * 2 + i]
