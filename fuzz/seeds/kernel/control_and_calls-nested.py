@T.prim_func
def nested(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), n: T.int32):
    T.device_entry(); bx = T.cta_id([4]); tx = T.thread_id([256])
    i: T.let = bx * 256 + tx
    x: T.float32 = A[i]
    cnt: T.int32 = 0
    while x > 1.0 and cnt < n:
        if cnt % 2 == 0:
            x = x * 0.5
        else:
            x = x - 0.25
        cnt += 1
    B[i] = x + T.cast(cnt, "float32")
