@T.prim_func
def vecbuf(A: T.Buffer((64,), "float32x4"), B: T.Buffer((64,), "float32x4")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    B[tx] = A[tx] + A[63 - tx]
