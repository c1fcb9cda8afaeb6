# test: parse
# test: lower LowerTIRx
# test: cuda sm_90a
# test: compile sm_100a
# The blocks of the documentation's page on functions about clusters, scope ids and the merged function.
from tvm.script import tirx as T

NUM_CLUSTERS = 4
CLUSTER_SIZE = 2
GM = 3
GN = 5

@T.prim_func
def clusters(A: T.Buffer((8, 32), "int32")):
    T.device_entry()
    cid = T.cluster_id([NUM_CLUSTERS])
    rank = T.cta_id_in_cluster([CLUSTER_SIZE], preferred=[CLUSTER_SIZE])
    tx = T.thread_id([32])
    A[cid * CLUSTER_SIZE + rank, tx] = cid * 100 + rank

@T.prim_func
def scope_ids(A: T.Buffer((3, 5, 128), "int32")):
    T.device_entry()
    bx, by = T.cta_id([GM, GN])
    warp_id = T.warp_id([4])
    lane_id = T.lane_id([32])
    tx = T.thread_id([128])
    A[bx, by, tx] = warp_id * 1000 + lane_id

@T.prim_func
def warpgroups(A: T.Buffer((256,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    wg = T.warpgroup_id([2])
    w = T.warp_id_in_wg([4])
    lane = T.lane_id([32])
    A[wg * 128 + w * 32 + lane] = wg * 10000 + w * 100 + lane

@T.prim_func
def merged(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n,))
    with T.launch_thread("blockIdx.x", 1), T.launch_thread("threadIdx.x", 1):
        for i in range(n):
            B[i] = A[i] * T.float32(2.0)

@T.prim_func
def bounded(A: T.Buffer((256,), "float32")):
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 2})
    bx = T.cta_id([1]); tx = T.thread_id([256])
    A[tx] = A[tx] + T.float32(1.0)
