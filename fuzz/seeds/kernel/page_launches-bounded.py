@T.prim_func
def bounded(A: T.Buffer((256,), "float32")):
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 2})
    bx = T.cta_id([1]); tx = T.thread_id([256])
    A[tx] = A[tx] + T.float32(1.0)
