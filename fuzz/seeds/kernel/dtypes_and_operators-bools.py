@T.prim_func
def bools(A: T.Buffer((32,), "bool"), B: T.Buffer((32,), "bool"), C: T.Buffer((32,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    B[tx] = (A[tx] and C[tx] > 0.5) or not A[tx]
    C[tx] = T.Select(B[tx], C[tx], 0.0)
