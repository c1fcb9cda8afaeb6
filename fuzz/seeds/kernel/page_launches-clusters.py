NUM_CLUSTERS = 4
CLUSTER_SIZE = 2
@T.prim_func
def clusters(A: T.Buffer((8, 32), "int32")):
    T.device_entry()
    cid = T.cluster_id([NUM_CLUSTERS])
    rank = T.cta_id_in_cluster([CLUSTER_SIZE], preferred=[CLUSTER_SIZE])
    tx = T.thread_id([32])
    A[cid * CLUSTER_SIZE + rank, tx] = cid * 100 + rank
