# test: cuda sm_90a
# Ids of every level, in one to three dimensions, declared or inferred; clusters; axes bound by hand.
from tvm.script import tirx as T

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

@T.prim_func
def scope3d(A: T.Buffer((2, 3, 4, 8, 4, 2), "int32")):
    T.device_entry()
    bx, by, bz = T.cta_id([2, 3, 4])
    tx, ty, tz = T.thread_id([8, 4, 2])
    A[bx, by, bz, tx, ty, tz] = bx + ty

@T.prim_func
def scopeinfer(A: T.Buffer((128,), "int32")):
    T.device_entry()
    bx = T.cta_id([1]); w = T.warp_id([4]); l = T.lane_id([32])
    A[w * 32 + l] = w

@T.prim_func
def scopeinfer2(A: T.Buffer((128,), "int32")):
    T.device_entry()
    bx = T.cta_id([1]); w = T.warp_id(); l = T.lane_id(); tx = T.thread_id([128])
    A[tx] = w * 100 + l

@T.prim_func
def nocta(A: T.Buffer((128,), "int32")):
    T.device_entry()
    tx = T.thread_id([128])
    A[tx] = tx

@T.prim_func
def clus2d(A: T.Buffer((8, 4, 32), "int32")):
    T.device_entry()
    cx, cy = T.cluster_id([4, 2])
    rx, ry = T.cta_id_in_cluster([2, 2])
    tx = T.thread_id([32])
    A[cx * 2 + rx, cy * 2 + ry, tx] = cx * 100 + rx + ry

@T.prim_func
def pref4(A: T.Buffer((8, 32), "int32")):
    T.device_entry()
    cid = T.cluster_id([4])
    rank = T.cta_id_in_cluster([2], preferred=[4])
    tx = T.thread_id([32])
    A[cid * 2 + rank, tx] = cid * 100 + rank

@T.prim_func
def ctapref(A: T.Buffer((8, 32), "int32")):
    T.device_entry()
    b = T.cta_id([8])
    r = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    A[b, tx] = r

@T.prim_func
def clsync(A: T.Buffer((8, 32), "int32")):
    T.device_entry(); c = T.cluster_id([4]); r = T.cta_id_in_cluster([2]); tx = T.thread_id([32])
    s = T.alloc_shared((32,), "int32")
    s[tx] = tx
    T.cuda.cluster_sync()
    A[c * 2 + r, tx] = s[31 - tx]

@T.prim_func
def launchwith(A: T.Buffer((128,), "int32")):
    with T.launch_thread("blockIdx.x", 4) as bx, T.launch_thread("threadIdx.x", 32) as tx:
        A[bx * 32 + tx] = tx

@T.prim_func
def threadbind(A: T.Buffer((128,), "int32")):
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            A[bx * 32 + tx] = tx

@T.prim_func
def launchb(A: T.Buffer((128,), "float32")):
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 2})
    bx = T.cta_id([1]); tx = T.thread_id([128])
    A[tx] = 1.0

@T.prim_func
def coop(A: T.Buffer((8, 32), "int32")):
    T.func_attr({"tirx.use_cooperative_launch": True})
    T.device_entry(); b = T.cta_id([8]); tx = T.thread_id([32])
    T.attr({"tirx.use_programtic_dependent_launch": 1})
    T.cuda.grid_sync()
    A[b, tx] = 1
