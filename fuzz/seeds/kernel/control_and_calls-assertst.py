@T.prim_func
def assertst(A: T.Buffer((128,), "float32"), n: T.int32):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    assert n > 0, "positive"
    A[tx] = 1.0
