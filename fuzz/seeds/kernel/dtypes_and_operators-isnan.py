@T.prim_func
def isnan(A: T.Buffer((32,), "float32"), C: T.Buffer((32,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    C[tx] = T.if_then_else(T.isnan(A[tx]), T.infinity("float32"), T.max_value("float32"))
    C[tx] += T.if_then_else(T.isinf(A[tx]) or T.isfinite(A[tx]), 1.0, T.min_value("float32"))
