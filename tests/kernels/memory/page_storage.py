# test: parse
# test: lower LowerTIRx
# test: cuda sm_90a
# test: compile sm_100a
# The blocks of the documentation's page on buffers about declarations, scalars, lets, slices, pools and registers.
from tvm.script import tirx as T
from tvm.tirx.layout import TileLayout, S, laneid

M, K, BM, BK = 16, 16, 16, 16

@T.prim_func
def declared(A_ptr: T.handle, C_ptr: T.handle):
    A = T.match_buffer(A_ptr, (M, K), "float16", align=16)
    C = T.match_buffer(C_ptr, (M, K), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([256])
    As = T.alloc_shared((BM, BK), "float16")
    acc = T.alloc_local((4,), "float32")
    view = T.decl_buffer((BM, BK), "float16", data=As.data)
    As[tx // 16, tx % 16] = A[tx // 16, tx % 16]
    T.cuda.cta_sync()
    for k in T.unroll(4):
        acc[k] = T.cast(view[tx % 16, k], "float32")
    C[tx // 16, tx % 16] = acc[0] + acc[1] + acc[2] + acc[3]

@T.prim_func
def lets(a: T.handle, b: T.handle, m: T.int32):
    k = T.int32()
    A = T.match_buffer(a, (k,), "int32")
    B = T.match_buffer(b, (k,), "int32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    n: T.let = m * k
    half: T.let[T.int32] = n // 2
    if tx < k:
        B[tx] = A[tx] + half * 3 + half

@T.prim_func
def scalars(A: T.Buffer((64,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    s = T.local_scalar("int32")
    s = tx * 3
    s += 1
    total = T.shared_scalar("int32")
    if tx == 0:
        total = 1000
    T.cuda.cta_sync()
    own = T.alloc_scalar("int32", scope="local")
    own = s + total
    A[tx] = own

@T.prim_func
def slices(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), C: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([8])
    V = T.decl_buffer((64,), "float32", data=C.data)
    B[tx, 0:4] = A[tx, 4:8]
    B[tx, 4:8] = A[tx, 0:4]
    V[tx] = 5.0

@T.prim_func
def permuted(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8, 4), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    At = A.permute(1, 0); z = At[tx // 4, tx % 4]
    B[tx // 4, tx % 4] = z

@T.prim_func
def lane_registers(B: T.Buffer((32, 8), "float32")):
    T.device_entry(); bx = T.cta_id([1]); w = T.warp_id([1]); lane = T.lane_id([32])
    R = T.alloc_buffer((32, 8), "float32", scope="local", layout=TileLayout(S[(32, 8) : (1 @ laneid, 1)]))
    Rl = R.local(8)
    for k in T.unroll(8):
        Rl[k] = T.cast(lane * 8 + k, "float32")
    for k in T.unroll(8):
        B[lane, k] = Rl[k]

@T.prim_func
def pooled(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([256])
    pool = T.SMEMPool()
    flags = pool.alloc((3,), "uint8")
    tile = pool.alloc((256,), "float32", align=128)
    pool.commit()
    tile[tx] = A[tx]
    if tx < 3:
        flags[tx] = T.uint8(tx)
    T.cuda.cta_sync()
    B[tx] = tile[255 - tx] + T.cast(flags[tx % 3], "float32")
