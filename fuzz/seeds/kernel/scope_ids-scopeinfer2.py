@T.prim_func
def scopeinfer2(A: T.Buffer((128,), "int32")):
    T.device_entry()
    bx = T.cta_id([1]); w = T.warp_id(); l = T.lane_id(); tx = T.thread_id([128])
    A[tx] = w * 100 + l
