@T.prim_func
def castround(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "int32"), C: T.Buffer((32,), "uint8"), D: T.Buffer((32,), "bool"), E: T.Buffer((32,), "float64")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    B[tx] = T.cast(A[tx], "int32") + T.int32(A[tx] * 2.0)
    C[tx] = T.uint8(A[tx])
    D[tx] = T.bool(A[tx])
    E[tx] = A[tx].astype("float64") if False else T.float64(A[tx])
