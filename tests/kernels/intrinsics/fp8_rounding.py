# test: cuda sm_90a
# An explicit conversion rounds; intermediate results of float8 operations do not.
from tvm.script import tirx as T

@T.prim_func
def rounded(A: T.Buffer((64,), "float32"), B: T.Buffer((4, 64), "float32"), D: T.Buffer((64,), "float64")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    B[0, tx] = T.cast(T.cast(A[tx], "float8_e4m3fn"), "float32")
    B[1, tx] = T.cast(T.cast(A[tx], "float8_e5m2"), "float32") * 2.0
    B[2, tx] = T.max(T.cast(T.cast(A[tx], "float8_e8m0fnu"), "float32"), 1.0)
    B[3, tx] = T.cast(T.cast(A[tx], "float4_e2m1fn"), "float32")
    D[tx] = T.cast(T.cast(T.cast(D[tx], "float8_e5m2"), "float8_e4m3fn"), "float64")

@T.prim_func
def computed(A: T.Buffer((64,), "float8_e4m3fn"), B: T.Buffer((64,), "float32"), C: T.Buffer((64,), "bool")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    A[tx] = A[tx] * A[tx] + T.cast(B[tx], "float8_e4m3fn")
    C[tx] = T.cast(B[tx], "float8_e4m3fn") < T.max(A[tx], A[tx])
