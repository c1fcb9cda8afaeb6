# test: cuda sm_90a
# Arithmetic of each dtype: promotion, division, classification, fixed point.
from tvm.script import tirx as T

@T.prim_func
def u8ops(A: T.Buffer((32,), "uint8"), B: T.Buffer((32,), "uint8"), C: T.Buffer((32,), "int8")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    x: T.let = A[tx]
    B[tx] = x // T.uint8(3) + x % T.uint8(5) + (x >> T.uint8(1)) + x * x
    C[tx] = C[tx] // T.int8(3) + (C[tx] >> T.int8(1)) + T.cast(x, "int8")

@T.prim_func
def mixed(A: T.Buffer((32,), "int8"), B: T.Buffer((32,), "float16"), C: T.Buffer((32,), "float32"), D: T.Buffer((32,), "int64")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    C[tx] = B[tx] * C[tx] + A[tx]
    D[tx] = A[tx] + D[tx] + tx
    C[tx] += tx * 0.5
    C[tx] = C[tx] / 3 + 1

@T.prim_func
def bools(A: T.Buffer((32,), "bool"), B: T.Buffer((32,), "bool"), C: T.Buffer((32,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    B[tx] = (A[tx] and C[tx] > 0.5) or not A[tx]
    C[tx] = T.Select(B[tx], C[tx], 0.0)

@T.prim_func
def isnan(A: T.Buffer((32,), "float32"), C: T.Buffer((32,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    C[tx] = T.if_then_else(T.isnan(A[tx]), T.infinity("float32"), T.max_value("float32"))
    C[tx] += T.if_then_else(T.isinf(A[tx]) or T.isfinite(A[tx]), 1.0, T.min_value("float32"))

@T.prim_func
def castround(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "int32"), C: T.Buffer((32,), "uint8"), D: T.Buffer((32,), "bool"), E: T.Buffer((32,), "float64")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    B[tx] = T.cast(A[tx], "int32") + T.int32(A[tx] * 2.0)
    C[tx] = T.uint8(A[tx])
    D[tx] = T.bool(A[tx])
    E[tx] = A[tx].astype("float64") if False else T.float64(A[tx])

@T.prim_func
def u64(A: T.Buffer((32,), "uint64"), B: T.Buffer((32,), "uint32"), C: T.Buffer((32,), "uint16"), D: T.Buffer((32,), "int16")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    A[tx] = A[tx] * T.uint64(6364136223846793005) + T.uint64(0xFFFFFFFFFFFFFFFF)
    B[tx] = (B[tx] << T.uint32(3)) ^ (B[tx] >> T.uint32(5)) + T.cast(A[tx] >> T.uint64(32), "uint32")
    C[tx] = C[tx] * C[tx] // T.uint16(7)
    D[tx] = D[tx] % T.int16(7) - T.max(D[tx], T.int16(0))

@T.prim_func
def assignall(A: T.Buffer((64,), "int32")):
    T.device_entry(); b = T.cta_id([1]); tx = T.thread_id([32])
    A[tx] += 3
    A[tx] -= 1
    A[tx] *= 2
    A[tx] //= 3
    A[tx] %= 7
    A[tx] <<= 2
    A[tx] >>= 1
    A[tx] &= 0xFF
    A[tx] |= 1
    A[tx] ^= 2

@T.prim_func
def bf16math(A: T.Buffer((32,), "bfloat16"), B: T.Buffer((32,), "bfloat16")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    x: T.let = A[tx]
    B[tx] = T.exp(x) + T.max(x, T.bfloat16(0)) * x - T.sqrt(x) / x

@T.prim_func
def f16math(A: T.Buffer((32,), "float16"), B: T.Buffer((32,), "float16")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    x: T.let = A[tx]
    B[tx] = T.exp(x) + T.max(x, T.float16(0)) * x - T.sqrt(x) / x + T.tanh(x) + T.sigmoid(x) + T.rsqrt(x) + T.log(x) + T.pow(x, x) + T.floor(x) + T.round(x)

@T.prim_func
def fp8(A: T.Buffer((32,), "float8_e4m3fn"), B: T.Buffer((32,), "float8_e5m2"), C: T.Buffer((32,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    C[tx] = T.cast(A[tx], "float32") + T.cast(B[tx], "float32")
    A[tx] = T.cast(C[tx], "float8_e4m3fn")
    B[tx] = T.cast(C[tx], "float8_e5m2")

@T.prim_func
def fp4(A: T.Buffer((32,), "float4_e2m1fn"), C: T.Buffer((32,), "float16")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    C[tx] = T.cast(A[tx], "float16")

@T.prim_func
def qms1(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    B[tx] = T.q_multiply_shift(A[tx], 1073741824, 31, 2)

@T.prim_func
def qms2(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    B[tx] = T.q_multiply_shift(A[tx], 1073741824, 31, -1)

@T.prim_func
def qms6(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    B[tx] = T.q_multiply_shift(A[tx], 1518500250, 31, -3)

@T.prim_func
def qms7(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), s: T.int32):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    B[tx] = T.q_multiply_shift(A[tx], 1518500250, 31, s)

@T.prim_func
def qpa1(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), s: T.int32):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    B[tx] = T.q_multiply_shift_per_axis(A[tx], B[tx], s, s, 31, True, True)
