@T.prim_func
def vec2d(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([16])
    for j in range(4):
        for i in T.vectorized(4):
            B[tx, j * 4 + i] = A[tx, j * 4 + i] + A[j * 4 + i, tx]
