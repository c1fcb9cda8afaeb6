@T.prim_func
def launched(A: T.Buffer((256,4), "float32")):
    bx = T.launch_thread("blockIdx.x", 4)
    with T.launch_thread("threadIdx.x", 64) as tx:
        A[tx, 0] = 1.0
    A[0,1] = 2.0
    with T.launch_thread("threadIdx.x", 64) as tx, T.launch_thread("threadIdx.y", 64) as ty:
        A[tx, ty] = 1.0
