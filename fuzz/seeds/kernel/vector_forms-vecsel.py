@T.prim_func
def vecsel(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    for i in T.vectorized(4):
        B[tx * 4 + i] = T.Select(A[tx * 4 + i] > 0.0, A[tx * 4 + i], T.float32(0.0)) + T.cast(i, "float32")
