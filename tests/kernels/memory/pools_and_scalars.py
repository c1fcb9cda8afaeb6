# test: cuda sm_90a
# Pooled shared memory, shared and local scalars, annotated locals.
from tvm.script import tirx as T

@T.prim_func
def pool(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    pool = T.SMEMPool()
    s = pool.alloc((128,), "float32", align=128)
    h = pool.alloc((128,), "float16")
    pool.commit()
    s[tx] = A[tx]
    h[tx] = T.cast(A[tx], "float16")
    T.cuda.cta_sync()
    B[tx] = s[127 - tx] + T.cast(h[127 - tx], "float32")

@T.prim_func
def pool2(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    pool = T.SMEMPool()
    s = pool.alloc((128,), "float32")
    pool.move_base_to(0)
    h = pool.alloc((128,), "int32")
    pool.move_base_to(65536)
    z = pool.alloc((128,), "float32")
    pool.commit()
    s[tx] = A[tx]
    z[tx] = A[tx]
    T.cuda.cta_sync()
    B[tx] = s[127 - tx] + z[tx ^ 1] + T.cast(h[tx], "float32")

@T.prim_func
def shscalar(A: T.Buffer((128,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    c = T.shared_scalar("int32")
    if tx == 0:
        c = 0
    T.cuda.cta_sync()
    T.cuda.atomic_add(T.address_of(c), A[tx])
    T.cuda.cta_sync()
    A[tx] = c

@T.prim_func
def shscalar2(A: T.Buffer((128,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    c = T.alloc_scalar("int32", scope="shared")
    d = T.alloc_scalar("float32", scope="local")
    d = 2.0
    if tx == 0:
        c = 7
    T.cuda.cta_sync()
    A[tx] = c + T.cast(d, "int32")

@T.prim_func
def annlocal(A: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    x: T.f32[4]
    y: T.float32[2, 2]
    z: T.i32
    z = 3
    for i in T.unroll(4):
        x[i] = A[tx * 4 + i]
        y[i // 2, i % 2] = x[i]
    for i in T.unroll(4):
        A[tx * 4 + i] = x[i] + y[i % 2, i // 2] + z

@T.prim_func
def arrs(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    T.device_entry(); bx = T.cta_id([4]); tx = T.thread_id([256])
    r = T.alloc_local((8,), "float32")
    for i in range(8):
        r[i] = T.float32(i)
    for i in range(n):
        r[i % 8] += A[(i + tx) % 1024]
    s: T.float32 = 0.0
    for i in range(8):
        s += r[i]
    B[bx * 256 + tx] = s

@T.prim_func
def declnone(A: T.Buffer((64,), "float32")):
    T.device_entry(); b = T.cta_id([1]); tx = T.thread_id([32])
    r = T.decl_buffer((4,), "float32", scope="local")
    for i in T.unroll(4):
        r[i] = A[tx + i]
    A[tx] = r[0] + r[3]

# Behind an odd number of bytes the next elements begin where a pointer to them can be.
# sim: after_odd_bytes
#   A: uint32[64] = i
#   B: uint32[64] = 0 -> 63 - i + 7
@T.prim_func
def after_odd_bytes(A: T.Buffer((64,), "uint32"), B: T.Buffer((64,), "uint32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    pool = T.SMEMPool()
    s = pool.alloc((33,), "uint16", align=16)
    w = pool.alloc((64,), "uint32")
    pool.commit()
    w[tx] = A[tx]
    T.cuda.cta_sync()
    if tx == 0:
        s[32] = T.uint16(7)
    T.cuda.cta_sync()
    B[tx] = w[63 - tx] + T.cast(s[32], "uint32")
