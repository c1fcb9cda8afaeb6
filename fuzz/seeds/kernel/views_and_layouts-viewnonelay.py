from tvm.tirx.layout import TileLayout, S, laneid
@T.prim_func
def viewnonelay(A: T.Buffer((64,), "float32", layout=None), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    A2 = A.view(8, 8)
    B[tx] = A2[tx // 8, tx % 8]
