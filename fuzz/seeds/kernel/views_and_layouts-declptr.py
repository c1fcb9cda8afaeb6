from tvm.tirx.layout import TileLayout, S, laneid
@T.prim_func
def declptr(A: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    p: T.let = A.ptr_to([32])
    B = T.decl_buffer((32,), "float32", data=p)
    B[tx] = B[31 - tx]
