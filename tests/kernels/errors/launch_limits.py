# test: messages
# Launches that no GPU can make.
from tvm.script import tirx as T

@T.prim_func
def threads_along_x(A: T.Buffer((2048,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([2048])
    A[tx] = 1.0

@T.prim_func
def threads_along_z(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx, ty, tz = T.thread_id([1, 1, 128])
    A[tz] = 1.0

@T.prim_func
def threads_of_a_block(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx, ty = T.thread_id([64, 32])
    A[tx] = 1.0

@T.prim_func
def threads_of_warps(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    warp = T.warp_id([48])
    lane = T.lane_id([32])
    A[warp] = 1.0

@T.prim_func
def legacy_threads(A: T.Buffer((256,), "float32")):
    with T.launch_thread("blockIdx.x", 1) as bx, T.launch_thread("threadIdx.x", 1025) as tx:
        A[tx] = 1.0

@T.prim_func
def blocks_along_y(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx, by = T.cta_id([4, 65536])
    tx = T.thread_id([64])
    A[tx] = 1.0

@T.prim_func
def blocks_along_x(A: T.Buffer((256,), "float32")):
    with T.launch_thread("blockIdx.x", T.int64(2147483648)) as bx, T.launch_thread("threadIdx.x", 64) as tx:
        A[tx] = 1.0

@T.prim_func
def cluster(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([64])
    rank = T.cta_id_in_cluster([32])
    tx = T.thread_id([64])
    A[tx] = 1.0

@T.prim_func
def broken_clusters(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx, by = T.cta_id([8, 3])
    rx, ry = T.cta_id_in_cluster([2, 2])
    tx = T.thread_id([64])
    A[tx] = 1.0

@T.prim_func
def broken_preferred_clusters(A: T.Buffer((256,), "float32")):
    T.device_entry()
    cid = T.cluster_id([4])
    rank = T.cta_id_in_cluster([4], preferred=[6])
    tx = T.thread_id([64])
    A[tx] = 1.0

@T.prim_func
def static_shared(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_shared((8192,), "float32")
    R = T.alloc_shared((64, 65), "float32")
    S[tx] = 1.0
    R[tx, 0] = S[tx]
    A[tx] = R[tx, 0]

@T.prim_func
def dynamic_shared(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    S = T.alloc_buffer((65536,), "float32", scope="shared.dyn")
    S[tx] = 1.0
    A[tx] = S[tx]

@T.prim_func
def shared_together(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    R = T.alloc_shared((4096,), "float32")
    S = T.alloc_buffer((56000,), "float32", scope="shared.dyn")
    R[tx] = 2.0
    S[tx] = 1.0
    A[tx] = S[tx] + R[tx]

@T.prim_func
def pool(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    smem = T.SMEMPool()
    S = smem.alloc((65536,), "float32")
    smem.commit()
    S[tx] = 1.0
    A[tx] = S[tx]

@T.prim_func
def bounds(A: T.Buffer((256,), "float32"), n: T.int32):
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": n})
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    A[tx] = 1.0

@T.prim_func
def unknown_launch_parameter(A: T.Buffer((256,), "float32")):
    T.func_attr({"tirx.kernel_launch_params": ["blockIdx.x", "tirx.use_cooperative"]})
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    A[tx] = 1.0

@T.prim_func
def local_memory(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    table = T.alloc_local((1 << 18,), "float32")
    for i in range(1 << 18):
        table[i] = 1.0
    A[tx] = table[tx]
