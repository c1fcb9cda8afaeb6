@T.prim_func
def assignall(A: T.Buffer((64,), "int32")):
    T.device_entry(); b = T.cta_id([1]); tx = T.thread_id([32])
    A[tx] += 3
    A[tx] -= 1
    A[tx] *= 2
    A[tx] //= 3
    A[tx] %= 7
    A[tx] <<= 2
    A[tx] >>= 1
    A[tx] &= 0xFF
    A[tx] |= 1
    A[tx] ^= 2
