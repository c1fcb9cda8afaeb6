@T.prim_func
def loops(A: T.Buffer((128,), "float32"), n: T.int32):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    for i in T.serial(2, n, step=3):
        A[tx] += T.cast(i, "float32")
    for i in range(0, n, 2):
        if i == 10:
            break
        if i % 3 == 0:
            continue
        A[tx + 32] += 1.0
    for i, j in T.grid(2, n):
        A[tx + i * 32] *= 2.0
    while True:
        A[tx] -= 1.0
        if A[tx] < 0.0:
            break
