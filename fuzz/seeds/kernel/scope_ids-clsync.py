@T.prim_func
def clsync(A: T.Buffer((8, 32), "int32")):
    T.device_entry(); c = T.cluster_id([4]); r = T.cta_id_in_cluster([2]); tx = T.thread_id([32])
    s = T.alloc_shared((32,), "int32")
    s[tx] = tx
    T.cuda.cluster_sync()
    A[c * 2 + r, tx] = s[31 - tx]
