@T.prim_func
def launchwith(A: T.Buffer((128,), "int32")):
    with T.launch_thread("blockIdx.x", 4) as bx, T.launch_thread("threadIdx.x", 32) as tx:
        A[bx * 32 + tx] = tx
