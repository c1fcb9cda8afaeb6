@T.prim_func
def matmulf(A: T.Buffer((128, 64), "float16"), B: T.Buffer((64, 128), "float16"), C: T.Buffer((128, 128), "float32")):
    T.device_entry()
    by, bx = T.cta_id([8, 8]); tx = T.thread_id([256])
    As = T.alloc_shared((16, 16), "float16")
    Bs = T.alloc_shared((16, 16), "float16")
    acc: T.float32 = 0.0
    ty: T.let = tx // 16
    tc: T.let = tx % 16
    for k in range(4):
        As[ty, tc] = A[by * 16 + ty, k * 16 + tc]
        Bs[ty, tc] = B[k * 16 + ty, bx * 16 + tc]
        T.cuda.cta_sync()
        for kk in T.unroll(16):
            acc += T.cast(As[ty, kk], "float32") * T.cast(Bs[kk, tc], "float32")
        T.cuda.cta_sync()
    C[by * 16 + ty, bx * 16 + tc] = acc
