@T.prim_func
def environment(A: T.Buffer((256,4), "float32")):
    tx = T.env_thread("threadIdx.x")
    with T.launch_thread(tx, 4):
        A[tx, 0] = 1.0
    with T.launch_thread(tx, 4):
        A[tx, 0] = 2.0
