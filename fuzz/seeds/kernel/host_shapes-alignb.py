@T.prim_func
def alignb(a: T.handle, B: T.Buffer((8,), "float32", align=8, offset_factor=1)):
    A = T.match_buffer(a, (8,), "float32", align=16, offset_factor=4)
    T.device_entry(); b = T.cta_id([1]); tx = T.thread_id([8])
    A[tx] = B[tx]
