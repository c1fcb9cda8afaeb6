@T.prim_func
def scopeinfer(A: T.Buffer((128,), "int32")):
    T.device_entry()
    bx = T.cta_id([1]); w = T.warp_id([4]); l = T.lane_id([32])
    A[w * 32 + l] = w
