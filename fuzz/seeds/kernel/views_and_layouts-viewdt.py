from tvm.tirx.layout import TileLayout, S, laneid
@T.prim_func
def viewdt(A: T.Buffer((64,), "float32"), B: T.Buffer((128,), "float16")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    A2 = A.view("float16")
    B[tx * 2] = A2[tx * 2]
