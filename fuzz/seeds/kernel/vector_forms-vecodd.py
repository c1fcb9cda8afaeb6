@T.prim_func
def vecodd(A: T.Buffer((96,), "float32"), B: T.Buffer((96,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    for i in T.vectorized(3):
        B[tx * 3 + i] = A[tx * 3 + i] * 2.0
