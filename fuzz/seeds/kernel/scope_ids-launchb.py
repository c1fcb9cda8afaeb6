@T.prim_func
def launchb(A: T.Buffer((128,), "float32")):
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 2})
    bx = T.cta_id([1]); tx = T.thread_id([128])
    A[tx] = 1.0
