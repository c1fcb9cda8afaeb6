@T.prim_func
def ctapref(A: T.Buffer((8, 32), "int32")):
    T.device_entry()
    b = T.cta_id([8])
    r = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    A[b, tx] = r
