@T.prim_func
def hist(A: T.Buffer((4096,), "uint8"), H: T.Buffer((256,), "int32")):
    T.device_entry(); bx = T.cta_id([4]); tx = T.thread_id([256])
    s = T.alloc_shared((256,), "int32")
    s[tx] = 0
    T.cuda.cta_sync()
    for i in range(4):
        T.cuda.atomic_add(s.ptr_to([T.cast(A[bx * 1024 + i * 256 + tx], "int32")]), 1)
    T.cuda.cta_sync()
    T.cuda.atomic_add(H.ptr_to([tx]), s[tx])
