@T.prim_func
def scopeall(A: T.Buffer((2, 256, 6), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    wg = T.warpgroup_id([2]); w = T.warp_id([8]); wi = T.warp_id_in_wg([4]); l = T.lane_id([32]); tx = T.thread_id([256]); tw = T.thread_id_in_wg([128])
    A[bx, tx, 0] = wg
    A[bx, tx, 1] = w
    A[bx, tx, 2] = wi
    A[bx, tx, 3] = l
    A[bx, tx, 4] = tw
