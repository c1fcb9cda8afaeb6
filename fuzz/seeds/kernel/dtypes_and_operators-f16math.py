@T.prim_func
def f16math(A: T.Buffer((32,), "float16"), B: T.Buffer((32,), "float16")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    x: T.let = A[tx]
    B[tx] = T.exp(x) + T.max(x, T.float16(0)) * x - T.sqrt(x) / x + T.tanh(x) + T.sigmoid(x) + T.rsqrt(x) + T.log(x) + T.pow(x, x) + T.floor(x) + T.round(x)
