NUM_WARPS = 4
@T.prim_func
def block_sum(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    scratch = T.alloc_shared((NUM_WARPS,), "float32")
    val = A[tx]
    total = T.cuda.cta_sum(val, NUM_WARPS, scratch.ptr_to([0]))
    B[tx] = total
