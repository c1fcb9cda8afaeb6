GM = 3
GN = 5
@T.prim_func
def scope_ids(A: T.Buffer((3, 5, 128), "int32")):
    T.device_entry()
    bx, by = T.cta_id([GM, GN])
    warp_id = T.warp_id([4])
    lane_id = T.lane_id([32])
    tx = T.thread_id([128])
    A[bx, by, tx] = warp_id * 1000 + lane_id
