@T.prim_func
def memops(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    T.cuda.thread_fence()
    T.cuda.warp_sync()
    T.tvm_storage_sync("shared")
    T.cuda.syncthreads_and(1)
    B[tx] = T.cuda.ldg(A.ptr_to([tx]), "float32")
