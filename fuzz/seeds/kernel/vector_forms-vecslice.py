@T.prim_func
def vecslice(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    B[tx * 4 : tx * 4 + 4] = A[tx * 4 : tx * 4 + 4]
