@T.prim_func
def u64(A: T.Buffer((32,), "uint64"), B: T.Buffer((32,), "uint32"), C: T.Buffer((32,), "uint16"), D: T.Buffer((32,), "int16")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    A[tx] = A[tx] * T.uint64(6364136223846793005) + T.uint64(0xFFFFFFFFFFFFFFFF)
    B[tx] = (B[tx] << T.uint32(3)) ^ (B[tx] >> T.uint32(5)) + T.cast(A[tx] >> T.uint64(32), "uint32")
    C[tx] = C[tx] * C[tx] // T.uint16(7)
    D[tx] = D[tx] % T.int16(7) - T.max(D[tx], T.int16(0))
