@T.prim_func
def vec4(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    v: T.let = A.vload([tx * 4], dtype="float32x4")
    B.vstore([tx * 4], v * v + T.broadcast(T.float32(1), 4))
