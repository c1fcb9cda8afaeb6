# test: parse
# test: lower SplitHostDevice
# test: compile sm_90a
# test: compile sm_100a
# Each launch attribute in every position where it can be given, and more than 48 KB of dynamic shared memory.
from tvm.script import tirx as T

@T.prim_func
def programmatic_listed(A: T.Buffer((256,), "float32")):
    T.func_attr({"tirx.kernel_launch_params": ["blockIdx.x", "threadIdx.x", "tirx.use_programtic_dependent_launch", "tirx.use_dyn_shared_memory"]})
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    A[bx * 64 + tx] = 1.0

@T.prim_func
def both_listed(A: T.Buffer((256,), "float32")):
    T.func_attr({"tirx.kernel_launch_params": ["tirx.use_cooperative_launch", "tirx.use_programtic_dependent_launch"]})
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    A[bx * 64 + tx] = 1.0

@T.prim_func
def programmatic_of_the_function(A: T.Buffer((256,), "float32")):
    T.func_attr({"tirx.use_programtic_dependent_launch": True, "tirx.use_cooperative_launch": False})
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    A[bx * 64 + tx] = 1.0

@T.prim_func
def cooperative_inside(A: T.Buffer((256,), "float32")):
    T.device_entry()
    T.attr({"tirx.use_cooperative_launch": True})
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    A[bx * 64 + tx] = 1.0

@T.prim_func
def programmatic_around_one_of_two(A: T.Buffer((256,), "float32")):
    with T.attr({"tirx.use_programtic_dependent_launch": 1}):
        with T.launch_thread("blockIdx.x", 4) as bx, T.launch_thread("threadIdx.x", 64) as tx:
            A[bx * 64 + tx] = 1.0
    with T.launch_thread("blockIdx.x", 4) as bx, T.launch_thread("threadIdx.x", 64) as tx:
        A[bx * 64 + tx] = A[bx * 64 + tx] + 1.0

@T.prim_func
def grid_sync_is_cooperative(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([64])
    A[bx * 64 + tx] = 1.0
    T.cuda.grid_sync()
    B[bx * 64 + tx] = A[255 - bx * 64 - tx]

@T.prim_func
def clusters(A: T.Buffer((256,), "float32"), n: T.int32):
    T.device_entry()
    c = T.cluster_id([n])
    rank = T.cta_id_in_cluster([2], preferred=[4])
    tx = T.thread_id([64])
    A[rank * 64 + tx] = T.cast(c, "float32")

@T.prim_func
def clusters_of_two_dimensions(A: T.Buffer((1024,), "float32")):
    T.device_entry()
    bx, by = T.cta_id([8, 2])
    rx, ry = T.cta_id_in_cluster([2, 2], preferred=[4, 2])
    tx = T.thread_id([64])
    A[(by * 8 + bx) * 64 + tx] = T.cast(ry * 2 + rx, "float32")

@T.prim_func
def preferred_of_the_grid(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([4], preferred=[2])
    tx = T.thread_id([64])
    A[bx * 64 + tx] = 1.0

@T.prim_func
def bounds_of_clusters(A: T.Buffer((256,), "float32")):
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 2, "tirx.launch_bounds_max_blocks_per_cluster": 4})
    bx = T.cta_id([4])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([64])
    A[bx * 64 + tx] = T.cast(rank, "float32")

@T.prim_func
def dynamic_shared(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    S = T.alloc_buffer((20000,), "float32", scope="shared.dyn")
    S[tx * 64] = A[tx]
    T.cuda.cta_sync()
    A[tx] = S[(255 - tx) * 64]

@T.prim_func
def dynamic_shared_symbolic(A: T.Buffer((256,), "float32"), n: T.int32):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    S = T.alloc_buffer((n,), "float32", scope="shared.dyn")
    S[tx] = A[tx]
    T.cuda.cta_sync()
    A[tx] = S[255 - tx]

@T.prim_func
def largest_launch(A: T.Buffer((256,), "float32")):
    T.device_entry()
    bx, by, bz = T.cta_id([2147483647, 65535, 65535])
    tx, ty, tz = T.thread_id([4, 4, 64])
    S = T.alloc_shared((12288,), "float32")
    unused = T.alloc_shared((4096,), "float32")
    S[tx] = 1.0
    A[tx] = S[tx]
