@T.prim_func
def vecred(A: T.Buffer((128,), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    v: T.let = A.vload([tx * 4], dtype="float32x4")
    B[tx] = T.vectorcombine(v, v) if False else T.Shuffle([v], [0]) + T.Shuffle([v], [3])
