# test: parse
# test: compile sm_90a
# test: compile sm_100a
# test: sim
# Launches of every kind, each with a result that depends on it.
from tvm.script import tirx as T


@T.prim_func
def grid_sync_exchanges(A: T.Buffer((512,), "int32"), B: T.Buffer((512,), "int32")):
    T.device_entry()
    bx = T.cta_id([8])
    tx = T.thread_id([64])
    A[bx * 64 + tx] = bx * 64 + tx
    T.cuda.grid_sync()
    B[bx * 64 + tx] = A[511 - bx * 64 - tx]


@T.prim_func
def programmatic_after_another(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
    with T.launch_thread("blockIdx.x", 4) as bx, T.launch_thread("threadIdx.x", 64) as tx:
        A[bx * 64 + tx] = bx * 64 + tx
        T.ptx.griddepcontrol.launch_dependents()
    with T.attr({"tirx.use_programtic_dependent_launch": 1}):
        with T.launch_thread("blockIdx.x", 4) as bx, T.launch_thread("threadIdx.x", 64) as tx:
            T.ptx.griddepcontrol.wait()
            B[bx * 64 + tx] = A[255 - bx * 64 - tx] + 1


@T.prim_func
def ranks_of_clusters(A: T.Buffer((4, 2, 64), "int32")):
    T.device_entry()
    c = T.cluster_id([4])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([64])
    A[c, rank, tx] = c * 10 + rank


@T.prim_func
def clusters_of_sixteen(A: T.Buffer((16,), "int32")):
    T.device_entry()
    bx = T.cta_id([16])
    rank = T.cta_id_in_cluster([16])
    tx = T.thread_id([32])
    if tx == 0:
        A[bx] = rank


@T.prim_func
def preferred_clusters(A: T.Buffer((1024,), "int32")):
    T.device_entry()
    bx, by = T.cta_id([8, 2])
    rx, ry = T.cta_id_in_cluster([2, 1], preferred=[4, 1])
    tx = T.thread_id([64])
    A[(by * 8 + bx) * 64 + tx] = T.if_then_else(rx % 2 == bx % 2, by * 8 + bx, -1)


@T.prim_func
def shared_memory_of_200_kilobytes(A: T.Buffer((1024,), "int32"), B: T.Buffer((1024,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([1024])
    S = T.alloc_buffer((51200,), "int32", scope="shared.dyn")
    S[tx * 50] = A[tx]
    T.cuda.cta_sync()
    B[tx] = S[(1023 - tx) * 50]


@T.prim_func
def shared_memory_as_large_as_asked(B: T.Buffer((256,), "int32"), n: T.int32):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    S = T.alloc_buffer((n,), "int32", scope="shared.dyn")
    S[tx + n - 256] = tx
    T.cuda.cta_sync()
    B[tx] = S[n - 1 - tx]


@T.prim_func
def blocks_of_three_dimensions(A: T.Buffer((3, 2, 4, 5, 2, 3), "int32")):
    T.device_entry()
    bx, by, bz = T.cta_id([4, 2, 3])
    tx, ty, tz = T.thread_id([3, 2, 5])
    A[bz, by, bx, tz, ty, tx] = ((((bz * 2 + by) * 4 + bx) * 5 + tz) * 2 + ty) * 3 + tx
