@T.prim_func
def grid(A_ptr: T.handle):
    A = T.match_buffer(A_ptr, (6, 128), "int32")
    T.device_entry()
    bx, by = T.cta_id([2, 3])
    warp_id = T.warp_id([4])
    lane_id = T.lane_id([32])
    tx = T.thread_id([128])
    A[bx * 3 + by, tx] = warp_id * 32 + lane_id
