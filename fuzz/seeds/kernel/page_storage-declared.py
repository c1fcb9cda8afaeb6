from tvm.tirx.layout import TileLayout, S, laneid
M, K, BM, BK = 16, 16, 16, 16
@T.prim_func
def declared(A_ptr: T.handle, C_ptr: T.handle):
    A = T.match_buffer(A_ptr, (M, K), "float16", align=16)
    C = T.match_buffer(C_ptr, (M, K), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([256])
    As = T.alloc_shared((BM, BK), "float16")
    acc = T.alloc_local((4,), "float32")
    view = T.decl_buffer((BM, BK), "float16", data=As.data)
    As[tx // 16, tx % 16] = A[tx // 16, tx % 16]
    T.cuda.cta_sync()
    for k in T.unroll(4):
        acc[k] = T.cast(view[tx % 16, k], "float32")
    C[tx // 16, tx % 16] = acc[0] + acc[1] + acc[2] + acc[3]
