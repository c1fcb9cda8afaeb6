@T.prim_func
def shscalar(A: T.Buffer((128,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    c = T.shared_scalar("int32")
    if tx == 0:
        c = 0
    T.cuda.cta_sync()
    T.cuda.atomic_add(T.address_of(c), A[tx])
    T.cuda.cta_sync()
    A[tx] = c
