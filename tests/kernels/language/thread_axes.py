# test: parse only
# Hardware indices in the legacy form: launch_thread, env_thread, virtual threads.

@T.prim_func
def launched(A: T.Buffer((256,4), "float32")):
    bx = T.launch_thread("blockIdx.x", 4)
    with T.launch_thread("threadIdx.x", 64) as tx:
        A[tx, 0] = 1.0
    A[0,1] = 2.0
    with T.launch_thread("threadIdx.x", 64) as tx, T.launch_thread("threadIdx.y", 64) as ty:
        A[tx, ty] = 1.0

@T.prim_func
def environment(A: T.Buffer((256,4), "float32")):
    tx = T.env_thread("threadIdx.x")
    with T.launch_thread(tx, 4):
        A[tx, 0] = 1.0
    with T.launch_thread(tx, 4):
        A[tx, 0] = 2.0

@T.prim_func
def virtual(A: T.Buffer((256,4), "float32")):
    vx = T.env_thread("vthread.x")
    T.launch_thread(vx, 4)
    A[vx, 0] = 1.0
    with T.attr(vx, "virtual_thread", 3):
        A[vx, 1] = 2.0
