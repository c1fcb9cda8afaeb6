from tvm.tirx.layout import TileLayout, S, laneid
@T.prim_func
def declsh(A: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    S_ = T.alloc_shared((128,), "float32")
    B = T.decl_buffer((8, 8), "float32", data=S_.data, elem_offset=64, scope="shared")
    S_[tx] = A[tx]
    B[tx // 8, tx % 8] = A[tx]
    T.cuda.cta_sync()
    A[tx] = S_[tx + 64] + S_[tx]
