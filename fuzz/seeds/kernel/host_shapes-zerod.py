@T.prim_func
def zerod(A: T.Buffer((), "float32"), B: T.Buffer((1,), "float32")):
    T.device_entry(); b = T.cta_id([1]); tx = T.thread_id([1])
    B[0] = A[()]
