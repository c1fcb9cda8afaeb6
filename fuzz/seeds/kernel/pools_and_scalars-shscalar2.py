@T.prim_func
def shscalar2(A: T.Buffer((128,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    c = T.alloc_scalar("int32", scope="shared")
    d = T.alloc_scalar("float32", scope="local")
    d = 2.0
    if tx == 0:
        c = 7
    T.cuda.cta_sync()
    A[tx] = c + T.cast(d, "int32")
