@T.prim_func
def clus2d(A: T.Buffer((8, 4, 32), "int32")):
    T.device_entry()
    cx, cy = T.cluster_id([4, 2])
    rx, ry = T.cta_id_in_cluster([2, 2])
    tx = T.thread_id([32])
    A[cx * 2 + rx, cy * 2 + ry, tx] = cx * 100 + rx + ry
