@T.prim_func
def virtual(A: T.Buffer((256,4), "float32")):
    vx = T.env_thread("vthread.x")
    T.launch_thread(vx, 4)
    A[vx, 0] = 1.0
    with T.attr(vx, "virtual_thread", 3):
        A[vx, 1] = 2.0
