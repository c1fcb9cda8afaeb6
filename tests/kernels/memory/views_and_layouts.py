# test: cuda sm_90a
# Views of the same storage.
from tvm.script import tirx as T
from tvm.tirx.layout import TileLayout, S, laneid

@T.prim_func
def viewdt(A: T.Buffer((64,), "float32"), B: T.Buffer((128,), "float16")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    A2 = A.view("float16")
    B[tx * 2] = A2[tx * 2]

@T.prim_func
def viewsh(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    As = T.alloc_shared((64,), "float32")
    As16 = As.view("float16")
    As[tx] = A[tx]
    T.cuda.cta_sync()
    B[tx] = T.cast(As16[tx * 2 + 1], "float32")

@T.prim_func
def viewnonelay(A: T.Buffer((64,), "float32", layout=None), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    A2 = A.view(8, 8)
    B[tx] = A2[tx // 8, tx % 8]

@T.prim_func
def declptr(A: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    p: T.let = A.ptr_to([32])
    B = T.decl_buffer((32,), "float32", data=p)
    B[tx] = B[31 - tx]

@T.prim_func
def declcast(A: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    B = T.decl_buffer((128,), "int32", data=A.data)
    B[tx] = B[tx] & 0x7FFFFFFF

@T.prim_func
def declsh(A: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    S_ = T.alloc_shared((128,), "float32")
    B = T.decl_buffer((8, 8), "float32", data=S_.data, elem_offset=64, scope="shared")
    S_[tx] = A[tx]
    B[tx // 8, tx % 8] = A[tx]
    T.cuda.cta_sync()
    A[tx] = S_[tx + 64] + S_[tx]

@T.prim_func
def subbuf(A: T.Buffer((16, 16), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    A2 = A.sub[4:12, 8:16]
    B[tx] = A2[tx // 8, tx % 8]

@T.prim_func
def permview(A: T.Buffer((4, 8, 16), "float32"), B: T.Buffer((512,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([512])
    A2 = A.permute(2, 0, 1)
    A3 = A.view(32, 16)
    B[tx] = A2[tx // 32, tx // 8 % 4, tx % 8] + A3[tx // 16, tx % 16]

@T.prim_func
def rearr(A: T.Buffer((64, 8), "float32"), B: T.Buffer((512,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([512])
    A2 = A.rearrange("(a b) c -> b a c", a=8)
    B[tx] = A2[tx // 64, tx // 8 % 8, tx % 8]

@T.prim_func
def locallay(A: T.Buffer((32, 8), "float32"), B: T.Buffer((32, 8), "float32")):
    T.device_entry(); bx = T.cta_id([1]); lane = T.lane_id([32]); w = T.warp_id([1])
    R = T.alloc_buffer((32, 8), "float32", scope="local", layout=TileLayout(S[(32, 8) : (1 @ laneid, 1)]))
    Rl = R.local(8)
    for i in T.unroll(8):
        Rl[i] = A[lane, i]
    for i in T.unroll(8):
        B[lane, i] = Rl[7 - i]

@T.prim_func
def laysh(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    s = T.alloc_shared((32, 32), "float32", layout=TileLayout(S[(32, 32) : (33, 1)]))
    for i in range(32):
        s[i, tx] = A[i, tx]
    T.cuda.cta_sync()
    for i in range(32):
        B[i, tx] = s[tx, i]

@T.prim_func
def laysplit(A: T.Buffer((64, 64), "float32", layout=TileLayout(S[(8, 8, 8, 8) : (512, 8, 64, 1)]))):
    T.device_entry(); bx = T.cta_id([64]); tx = T.thread_id([64])
    A[bx, tx] = A[bx, tx] + 1.0

@T.prim_func
def reinterp(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "int32"), C: T.Buffer((64,), "float16x2")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    B[tx] = T.reinterpret("int32", A[tx])
    C[tx] = T.reinterpret("float16x2", A[tx + 64])
    A[tx] = T.reinterpret("float32", T.reinterpret("uint32", C[tx]) ^ T.uint32(0x80008000))
