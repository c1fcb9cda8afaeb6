@T.prim_func
def nocta(A: T.Buffer((128,), "int32")):
    T.device_entry()
    tx = T.thread_id([128])
    A[tx] = tx
