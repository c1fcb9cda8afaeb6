@T.prim_func
def printbuf(A: T.Buffer((64,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    T.print_buffer(A.data, "int32", False, False, 1, (64,))
