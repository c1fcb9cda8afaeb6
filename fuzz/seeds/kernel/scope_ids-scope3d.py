@T.prim_func
def scope3d(A: T.Buffer((2, 3, 4, 8, 4, 2), "int32")):
    T.device_entry()
    bx, by, bz = T.cta_id([2, 3, 4])
    tx, ty, tz = T.thread_id([8, 4, 2])
    A[bx, by, bz, tx, ty, tz] = bx + ty
