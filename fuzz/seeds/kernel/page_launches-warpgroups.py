@T.prim_func
def warpgroups(A: T.Buffer((256,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    wg = T.warpgroup_id([2])
    w = T.warp_id_in_wg([4])
    lane = T.lane_id([32])
    A[wg * 128 + w * 32 + lane] = wg * 10000 + w * 100 + lane
