@T.prim_func
def pref4(A: T.Buffer((8, 32), "int32")):
    T.device_entry()
    cid = T.cluster_id([4])
    rank = T.cta_id_in_cluster([2], preferred=[4])
    tx = T.thread_id([32])
    A[cid * 2 + rank, tx] = cid * 100 + rank
