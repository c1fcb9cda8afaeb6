@T.prim_func
def atomics(A: T.Buffer((128,), "float32"), B: T.Buffer((4,), "int32"), C: T.Buffer((4,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    T.cuda.atomic_add(C.ptr_to([tx % 4]), A[tx])
    o: T.let = T.cuda.atomic_add(B.ptr_to([tx % 4]), 1)
    T.cuda.atomic_cas(B.ptr_to([0]), o, 3)
