# test: parse
# test: cuda sm_90a
# test: compile sm_100a

@T.prim_func
def store(A_ptr: T.handle, D_ptr: T.handle):
    A = T.match_buffer(A_ptr, (32, 4), "uint32")
    D = T.match_buffer(D_ptr, (32, 4), "uint32")
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    S = T.alloc_shared((32, 4), "uint32")
    a = T.alloc_local((4,), "uint32")
    for i in T.serial(4):
        a[i] = A[tx, i]
    T.ptx.stmatrix(False, 4, ".b16", S.ptr_to([tx, 0]), a.ptr_to([0]), a.ptr_to([1]), a.ptr_to([2]), a.ptr_to([3]))
    T.ptx.stmatrix(True, 1, "b16", S.ptr_to([tx, 0]), a.ptr_to([0]), space="shared::cta")
    T.cuda.cta_sync()
    for i in T.serial(4):
        D[tx, i] = S[tx, i]
