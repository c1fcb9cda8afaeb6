# test: parse
# test: cuda sm_100a
# test: sim
# Floats of 4 and 6 bits in memory: two float4 a byte, the even one in the low half; a float6 in a byte of its own.
from tvm.script import tirx as T

@T.prim_func
def fours(A: T.Buffer((15,), "float4_e2m1fn"), B: T.Buffer((15,), "float4_e2m1fn"), C: T.Buffer((15,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([15])
    C[tx] = T.cast(A[tx], "float32") * 2.0
    B[14 - tx] = A[tx]

@T.prim_func
def rows(A: T.Buffer((3, 5), "float4_e2m1fn"), C: T.Buffer((3, 5), "float16")):
    T.device_entry(); bx = T.cta_id([3]); tx = T.thread_id([5])
    C[bx, tx] = T.cast(A[bx, tx], "float16")
    A[bx, tx] = T.cast(C[bx, tx] + T.float16(1), "float4_e2m1fn")

@T.prim_func
def pairs(A: T.Buffer((4,), "float4_e2m1fnx2"), H: T.Buffer((4,), "float16x2"), F: T.Buffer((4,), "float32x2"),
          B: T.Buffer((4,), "bfloat16x2")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([4])
    H[tx] = T.cast(A[tx], "float16x2")
    F[tx] = T.cast(A[tx], "float32x2")
    B[tx] = T.cast(A[tx], "bfloat16x2")

@T.prim_func
def rounded(F: T.Buffer((4,), "float32x4"), H: T.Buffer((4,), "float16x2"), B: T.Buffer((4,), "bfloat16x2"),
            Q: T.Buffer((4,), "float4_e2m1fnx4"), P: T.Buffer((4,), "float4_e2m1fnx2"), R: T.Buffer((4,), "float4_e2m1fnx2")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([4])
    Q[tx] = T.cast(F[tx], "float4_e2m1fnx4")
    P[tx] = T.cast(H[tx], "float4_e2m1fnx2")
    R[tx] = T.cast(B[tx], "float4_e2m1fnx2")

@T.prim_func
def eights(A: T.Buffer((2,), "float4_e2m1fnx8"), B: T.Buffer((2,), "float4_e2m1fnx8")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([2])
    B[tx] = A[1 - tx] + A[1 - tx]

@T.prim_func
def bits(A: T.Buffer((4,), "float4_e2m1fnx2"), B: T.Buffer((4,), "uint8"), C: T.Buffer((2,), "float4_e2m1fnx8"),
         D: T.Buffer((2,), "uint32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([2])
    for i in T.serial(2):
        B[tx * 2 + i] = T.reinterpret("uint8", A[tx * 2 + i])
    C[tx] = T.reinterpret("float4_e2m1fnx8", D[tx])

@T.prim_func
def spread(A: T.Buffer((16,), "float4_e2m1fn"), H: T.Buffer((16,), "float16")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([4])
    for i in T.vectorized(4):
        H[tx * 4 + i] = T.cast(A[tx * 4 + i], "float16")

@T.prim_func
def staged(A: T.Buffer((64,), "float4_e2m1fn"), B: T.Buffer((64,), "float4_e2m1fn")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    S = T.alloc_buffer((64,), "float4_e2m1fn", scope="shared")
    L = T.alloc_buffer((5,), "float4_e2m1fn", scope="local")
    S[tx] = A[tx]
    T.cuda.cta_sync()
    for i in T.serial(5):
        L[i] = S[(tx + i) % 64]
    B[tx] = L[tx % 5]

@T.prim_func
def viewed(A: T.Buffer((32,), "uint8"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    S = T.alloc_buffer((32,), "uint8", scope="shared.dyn")
    V = T.decl_buffer((64,), "float4_e2m1fn", data=S.data, scope="shared.dyn")
    S[tx] = A[tx]
    T.cuda.cta_sync()
    B[tx] = T.cast(V[tx], "float32")
    B[tx + 32] = T.cast(V[63 - tx], "float32")

@T.prim_func
def sixes(A: T.Buffer((4,), "float6_e2m3fnx2"), B: T.Buffer((4,), "float6_e3m2fnx4"), C: T.Buffer((4,), "float16x2"),
          D: T.Buffer((4,), "float32x4"), E: T.Buffer((4,), "float6_e2m3fnx4"), F: T.Buffer((4,), "uint32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([4])
    C[tx] = T.cast(A[tx], "float16x2")
    D[tx] = T.cast(B[tx], "float32x4")
    E[tx] = T.cast(D[tx], "float6_e2m3fnx4")
    F[tx] = T.reinterpret("uint32", B[tx])

@T.prim_func
def outside(A: T.Buffer((15,), "float4_e2m1fn"), C: T.Buffer((1,), "float32"), n: T.int32):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([1])
    S = T.alloc_buffer((7,), "float4_e2m1fn", scope="shared")
    S[n] = A[0]
    C[0] = T.cast(S[n], "float32")

@T.prim_func
def unwritten(A: T.Buffer((8,), "float4_e2m1fn"), C: T.Buffer((8,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([8])
    L = T.alloc_buffer((8,), "float4_e2m1fn", scope="local")
    L[tx] = A[tx]
    C[tx] = T.cast(L[tx ^ 1], "float32")

@T.prim_func
def raced(A: T.Buffer((64,), "float4_e2m1fn"), B: T.Buffer((64,), "float4_e2m1fn")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    S = T.alloc_buffer((64,), "float4_e2m1fn", scope="shared")
    S[tx] = A[tx]
    T.cuda.cta_sync()
    S[63 - tx] = A[tx]
    B[tx] = S[tx]

@T.prim_func
def named(B: T.Buffer((8,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([8])
    v: T.let[T.float8_e4m3fn] = T.float8_e4m3fn(1.75) + T.cast(T.cast(tx, "float32"), "float8_e4m3fn")
    B[tx] = T.cast(T.cast(v, "float32") * T.float32(100), "int32")

@T.prim_func
def chained(B: T.Buffer((8,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([8])
    B[tx] = T.cast(T.cast((T.float8_e4m3fn(3.0) - T.float8_e4m3fn(-2.0)) * T.cast(T.bfloat16(-7.25), "float8_e4m3fn"), "float32"), "int32") + tx
