@T.prim_func
def pb2(A: T.Buffer((2, 3), "float16"), B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "uint8"), D: T.Buffer((4,), "int64")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    T.print_buffer(A.data, "float16", False, False, 2, (2, 3))
    T.print_buffer(B.data, "float32", False, True, 1, (1,))
    T.print_buffer(C.data, "uint8", False, False, 1, (4,))
    T.print_buffer(D.data, "int64", False, False, 1, (4,))
