@T.prim_func
def scalars(B: T.Buffer((32,), "float64"), a: T.int8, b: T.uint8, c: T.int16, d: T.uint16, e: T.int64, f: T.uint64, g: T.float64, h: T.bool, i: T.uint32):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    B[tx] = T.cast(a, "float64") + T.cast(b, "float64") + T.cast(c, "float64") + T.cast(d, "float64") + T.cast(e, "float64") + T.cast(f, "float64") + g + T.if_then_else(h, T.float64(1), T.float64(2)) + T.cast(i, "float64")
