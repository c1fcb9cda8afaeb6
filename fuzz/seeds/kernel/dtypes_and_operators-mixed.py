@T.prim_func
def mixed(A: T.Buffer((32,), "int8"), B: T.Buffer((32,), "float16"), C: T.Buffer((32,), "float32"), D: T.Buffer((32,), "int64")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    C[tx] = B[tx] * C[tx] + A[tx]
    D[tx] = A[tx] + D[tx] + tx
    C[tx] += tx * 0.5
    C[tx] = C[tx] / 3 + 1
