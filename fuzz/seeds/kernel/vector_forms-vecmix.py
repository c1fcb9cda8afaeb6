@T.prim_func
def vecmix(A: T.Buffer((256,), "int8"), B: T.Buffer((256,), "int32"), C: T.Buffer((256,), "bfloat16"), D: T.Buffer((256,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    for i in T.vectorized(4):
        B[tx * 4 + i] = T.cast(A[tx * 4 + i], "int32") * 3 + 1
    for i in T.vectorized(4):
        D[tx * 4 + i] = T.cast(C[tx * 4 + i], "float32") + D[tx * 4 + i]
    for i in T.vectorized(2):
        C[tx * 4 + i] = C[tx * 4 + i] + C[tx * 4 + 2 + i]
