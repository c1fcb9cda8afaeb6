@T.prim_func
def declnone(A: T.Buffer((64,), "float32")):
    T.device_entry(); b = T.cta_id([1]); tx = T.thread_id([32])
    r = T.decl_buffer((4,), "float32", scope="local")
    for i in T.unroll(4):
        r[i] = A[tx + i]
    A[tx] = r[0] + r[3]
