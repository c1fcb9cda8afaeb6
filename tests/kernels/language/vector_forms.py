# test: cuda sm_90a
# Vectorized loops, vector buffers, slices, vload and vstore.
from tvm.script import tirx as T

@T.prim_func
def vec4(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    v: T.let = A.vload([tx * 4], dtype="float32x4")
    B.vstore([tx * 4], v * v + T.broadcast(T.float32(1), 4))

@T.prim_func
def vecbuf(A: T.Buffer((64,), "float32x4"), B: T.Buffer((64,), "float32x4")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    B[tx] = A[tx] + A[63 - tx]

@T.prim_func
def vecslice(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    B[tx * 4 : tx * 4 + 4] = A[tx * 4 : tx * 4 + 4]

@T.prim_func
def veclocal(A: T.Buffer((256,), "float16"), B: T.Buffer((256,), "float16")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    r = T.alloc_local((8,), "float16")
    r.vstore([0], A.vload([tx * 8], dtype="float16x8"))
    for i in T.unroll(8):
        r[i] = r[i] * T.float16(2)
    B.vstore([tx * 8], r.vload([0], dtype="float16x8"))

@T.prim_func
def vecif(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    for i in T.vectorized(4):
        B[tx * 4 + i] = T.if_then_else(A[tx * 4 + i] > 0.0, A[tx * 4 + i], 0.0)

@T.prim_func
def vecsel(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    for i in T.vectorized(4):
        B[tx * 4 + i] = T.Select(A[tx * 4 + i] > 0.0, A[tx * 4 + i], T.float32(0.0)) + T.cast(i, "float32")

@T.prim_func
def vecmix(A: T.Buffer((256,), "int8"), B: T.Buffer((256,), "int32"), C: T.Buffer((256,), "bfloat16"), D: T.Buffer((256,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    for i in T.vectorized(4):
        B[tx * 4 + i] = T.cast(A[tx * 4 + i], "int32") * 3 + 1
    for i in T.vectorized(4):
        D[tx * 4 + i] = T.cast(C[tx * 4 + i], "float32") + D[tx * 4 + i]
    for i in T.vectorized(2):
        C[tx * 4 + i] = C[tx * 4 + i] + C[tx * 4 + 2 + i]

@T.prim_func
def vec2d(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([16])
    for j in range(4):
        for i in T.vectorized(4):
            B[tx, j * 4 + i] = A[tx, j * 4 + i] + A[j * 4 + i, tx]

@T.prim_func
def vecodd(A: T.Buffer((96,), "float32"), B: T.Buffer((96,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    for i in T.vectorized(3):
        B[tx * 3 + i] = A[tx * 3 + i] * 2.0

@T.prim_func
def vecred(A: T.Buffer((128,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    v: T.let = A.vload([tx * 4], dtype="float32x4")
    B[tx] = T.vectorcombine(v, v) if False else T.Shuffle([v], [0]) + T.Shuffle([v], [3])
