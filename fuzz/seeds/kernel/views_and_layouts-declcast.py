from tvm.tirx.layout import TileLayout, S, laneid
@T.prim_func
def declcast(A: T.Buffer((128,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    B = T.decl_buffer((128,), "int32", data=A.data)
    B[tx] = B[tx] & 0x7FFFFFFF
