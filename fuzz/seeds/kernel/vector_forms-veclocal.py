@T.prim_func
def veclocal(A: T.Buffer((256,), "float16"), B: T.Buffer((256,), "float16")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    r = T.alloc_local((8,), "float16")
    r.vstore([0], A.vload([tx * 8], dtype="float16x8"))
    for i in T.unroll(8):
        r[i] = r[i] * T.float16(2)
    B.vstore([tx * 8], r.vload([0], dtype="float16x8"))
