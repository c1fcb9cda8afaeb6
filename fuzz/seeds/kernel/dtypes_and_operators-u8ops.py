@T.prim_func
def u8ops(A: T.Buffer((32,), "uint8"), B: T.Buffer((32,), "uint8"), C: T.Buffer((32,), "int8")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    x: T.let = A[tx]
    B[tx] = x // T.uint8(3) + x % T.uint8(5) + (x >> T.uint8(1)) + x * x
    C[tx] = C[tx] // T.int8(3) + (C[tx] >> T.int8(1)) + T.cast(x, "int8")
