# test: parse
# test: cuda sm_90a
# Instructions of PTX by their mnemonics: destinations first, operands in PTX's order.
from tvm.script import tirx as T


# sim: moves
#   A: uint32[64] = i
#   B: uint32[64] = 0 -> A[i] + 5
@T.prim_func
def moves(A: T.Buffer((64,), "uint32"), B: T.Buffer((64,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    x: T.uint32
    y: T.uint32
    T.ptx.ld.global_.b32(x, A.ptr_to([tx]))
    T.ptx.add.u32(y, x, 5)
    T.ptx["st.global.b32"](B.ptr_to([tx]), y)


# sim: order
#   A: float32[64] = i
#   B: float32[64] = 0 -> A[i] * 2.0
@T.prim_func
def order(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    v = T.alloc_buffer((4,), "float32", scope="local")
    w: T.float32
    if tx < 16:
        T.ptx.ld.acquire.gpu.global_.v4.f32(v[0], v[1], v[2], v[3], A.ptr_to([tx * 4]))
        for i in T.unroll(4):
            T.ptx.mul.rn.f32(v[i], v[i], 2.0)
        T.ptx.st.global_.v4.f32(T.ptx.addr(B.ptr_to([0]), 0), v[0], v[1], v[2], v[3], pred=tx == 0)
        T.ptx.st.global_.v4.f32(B.ptr_to([tx * 4]), [v[0], v[1], v[2], v[3]], pred=T.ptx.pred(tx))


# sim: barriers
#   A: int32[128] = i
#   B: int32[128] = 0 -> 127 - i
@T.prim_func
def barriers(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    buf = T.alloc_buffer((128,), "int32", scope="shared")
    bar = T.alloc_buffer((1,), "uint64", scope="shared")
    done: T.uint32
    x: T.int32
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(128))
        T.ptx.fence.mbarrier_init.release.cluster()
    T.ptx.bar.sync(0, 128)
    T.ptx.ld.global_.s32(x, A.ptr_to([tx]))
    T.ptx.st.shared.s32(buf.ptr_to([127 - tx]), x)
    T.ptx.mbarrier.arrive.release.cta.shared__cta.b64(bar.ptr_to([0]))
    T.ptx.mbarrier.try_wait.parity.shared__cta.b64(done, bar.ptr_to([0]), T.uint32(0))
    while done == T.uint32(0):
        T.ptx.mbarrier.try_wait.parity.shared__cta.b64(done, bar.ptr_to([0]), T.uint32(0))
    T.ptx.ld.shared.s32(x, buf.ptr_to([tx]))
    T.ptx.st.global_.s32(B.ptr_to([tx]), x)


# sim: values
#   A: uint32[32] = i * 37 + 3
#   F: float32[32] = i - 15.5
#   B: uint32[32] = 0 -> (A[i] * 3 + 1) ^ (A[i] >> 2)
#   C: float32[32] = 0 -> max(F[i], -F[i]) * 2.0 + 1.0
#   D: uint32[32] = 0 -> (1 if F[i] > 0 else 0) + 32
@T.prim_func
def values(
    A: T.Buffer((32,), "uint32"),
    F: T.Buffer((32,), "float32"),
    B: T.Buffer((32,), "uint32"),
    C: T.Buffer((32,), "float32"),
    D: T.Buffer((32,), "uint32"),
):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    x: T.uint32
    y: T.uint32
    f: T.float32
    h: T.uint32
    lo: T.uint32
    hi: T.uint32
    w: T.uint64
    p: T.uint32
    T.ptx.mad.lo.u32(x, A[tx], 3, 1)
    T.ptx.shr.b32(y, A[tx], 2)
    T.ptx.xor.b32(x, x, y)
    # Through a packed pair and back.
    T.ptx.mov.b64(w, x, y)
    T.ptx.mov.b64(lo, hi, w)
    B[tx] = lo
    T.ptx.abs.f32(f, F[tx])
    T.ptx.fma.rn.f32(f, f, 2.0, 1.0)
    T.ptx.cvt.rn.bf16x2.f32(h, f, f)
    T.ptx.mov.b32(C[tx], f)
    T.ptx.setp.gt.f32(p, F[tx], 0.0)
    T.ptx.selp.u32(y, 33, 32, T.ptx.pred(p))
    D[tx] = y


# sim: lanes
#   A: uint32[32] = i * i
#   B: uint32[32] = 0 -> A[(i + 1) % 32]
#   C: uint32[32] = 0 -> 0xAAAAAAAA
@T.prim_func
def lanes(A: T.Buffer((32,), "uint32"), B: T.Buffer((32,), "uint32"), C: T.Buffer((32,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    T.ptx.shfl_sync.idx.b32(B[tx], A[tx], T.uint32((tx + 1) % 32), 31, T.uint32(0xFFFFFFFF))
    T.ptx.vote_sync.ballot.b32(C[tx], tx % 2 == 1, T.uint32(0xFFFFFFFF))
