# test: parse
# test: lower LowerTIRx
# test: cuda sm_90a
# test: compile sm_100a
# The kernels of the documentation's page on buffers and memory.
from tvm.script import tirx as T
from tvm.tirx.layout import TileLayout, S

SRC = r"""
__device__ __forceinline__ float ld(const float* p) { return *p; }
"""

@T.prim_func
def row_major(a: T.handle, p: T.handle):
    A = T.match_buffer(a, (4, 8), "float32")
    B = T.match_buffer(p, (4, 8), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([1])
    for i, j in T.grid(4, 8):
        B[i, j] = A[i, j] + 1

@T.prim_func
def column_major(a: T.handle, p: T.handle):
    A = T.match_buffer(a, (4, 8), "float32")
    B = T.match_buffer(p, (4, 8), "float32", layout=TileLayout(S[(4, 8):(1, 4)]))
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([1])
    for i, j in T.grid(4, 8):
        B[i, j] = A[i, j] + 1

@T.prim_func
def shifted(a: T.handle, p: T.handle):
    A = T.match_buffer(a, (4, 8), "float32")
    B = T.match_buffer(p, (4, 8), "float32", elem_offset=64)
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([1])
    for i, j in T.grid(4, 8):
        B[i, j] = A[i, j] + 1

@T.prim_func
def row_stride(a: T.handle, p: T.handle):
    A = T.match_buffer(a, (4, 8), "float32")
    B = T.match_buffer(p, (4, 8), "float32", layout=TileLayout(S[(4, 8):(16, 1)]))
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([1])
    for i, j in T.grid(4, 8):
        B[i, j] = A[i, j] + 1

@T.prim_func
def registers(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (32, 4), "float32")
    B = T.match_buffer(b, (32,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    r = T.alloc_local((4,), "float32")
    for k in T.unroll(4):
        r[k] = A[tx, k]
    B[tx] = r[0] + r[1] + r[2] + r[3]

@T.prim_func
def explicit_scalar(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (32, 4), "float32")
    B = T.match_buffer(b, (32,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    acc = T.alloc_local((1,), "float32")
    acc[0] = 0.0
    phase = T.alloc_local((1,), "int32")
    phase[0] = 0
    while phase[0] < 4:
        acc[0] = acc[0] + A[tx, phase[0]]
        phase[0] += 1
    B[tx] = acc[0]

@T.prim_func
def scalar(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (32, 4), "float32")
    B = T.match_buffer(b, (32,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    acc: T.float32 = 0.0
    phase: T.int32 = 0
    while phase < 4:
        acc = acc + A[tx, phase]
        phase += 1
    B[tx] = acc

@T.prim_func
def let(b: T.handle, m: T.int32):
    B = T.match_buffer(b, (32,), "int32")
    n: T.let = m * 2
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    half: T.let[T.int32] = m // 2
    B[tx] = half + n

@T.prim_func
def pointers(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (32,), "float32")
    B = T.match_buffer(b, (32,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    B[tx] = T.cuda.func_call("ld", A.ptr_to([tx]), source_code=SRC, return_type="float32")

@T.prim_func
def vectors(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (256,), "float32")
    B = T.match_buffer(b, (256,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    B.vstore([tx * 4], A.vload([tx * 4], dtype="float32x4"))

@T.prim_func
def views(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (16, 16), "float32")
    B = T.match_buffer(b, (32,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    A2 = A.view(64, 4)
    At = A.permute(1, 0)
    B[tx] = A2[tx, 0] + A2[tx, 3] + At[tx % 16, 1]

@T.prim_func
def shared(a: T.handle):
    A = T.match_buffer(a, (64,), "float16")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    As = T.alloc_shared((8, 8), "float16")
    view = T.decl_buffer((64,), "float16", data=As.data)
    As[tx // 8, tx % 8] = A[tx]
    T.cuda.cta_sync()
    A[tx] = view[63 - tx]
