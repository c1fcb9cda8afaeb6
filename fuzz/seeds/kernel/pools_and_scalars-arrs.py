@T.prim_func
def arrs(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    T.device_entry(); bx = T.cta_id([4]); tx = T.thread_id([256])
    r = T.alloc_local((8,), "float32")
    for i in range(8):
        r[i] = T.float32(i)
    for i in range(n):
        r[i % 8] += A[(i + tx) % 1024]
    s: T.float32 = 0.0
    for i in range(8):
        s += r[i]
    B[bx * 256 + tx] = s
