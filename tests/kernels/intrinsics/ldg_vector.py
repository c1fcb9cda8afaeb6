# test: parse
# test: cuda sm_90a

@T.prim_func
def vectors(A: T.Buffer((32, 4), "float32"), B: T.Buffer((32, 4), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    r = T.alloc_local((4,), "float32")
    T.cuda.ldg(A.ptr_to([tx, 0]), "float32", dst=[r.ptr_to([0]), r.ptr_to([1]), r.ptr_to([2]), r.ptr_to([3])], vec="v4")
    for i in T.unroll(4):
        B[tx, i] = r[i]
