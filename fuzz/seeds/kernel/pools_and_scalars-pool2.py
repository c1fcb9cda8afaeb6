@T.prim_func
def pool2(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    pool = T.SMEMPool()
    s = pool.alloc((128,), "float32")
    pool.move_base_to(0)
    h = pool.alloc((128,), "int32")
    pool.move_base_to(65536)
    z = pool.alloc((128,), "float32")
    pool.commit()
    s[tx] = A[tx]
    z[tx] = A[tx]
    T.cuda.cta_sync()
    B[tx] = s[127 - tx] + z[tx ^ 1] + T.cast(h[tx], "float32")
