@T.prim_func
def ternary(A: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    A[tx] = A[tx] if tx < 64 else 0.0
    A[tx] = T.max(A[tx], 0) + T.min(A[tx], T.float32(6))
    if 0 < tx < 5:
        A[tx] = -A[tx]
    elif tx == 7 or tx == 9:
        A[tx] = A[tx]
    else:
        pass
