@T.prim_func
def pool(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    pool = T.SMEMPool()
    s = pool.alloc((128,), "float32", align=128)
    h = pool.alloc((128,), "float16")
    pool.commit()
    s[tx] = A[tx]
    h[tx] = T.cast(A[tx], "float16")
    T.cuda.cta_sync()
    B[tx] = s[127 - tx] + T.cast(h[127 - tx], "float32")
