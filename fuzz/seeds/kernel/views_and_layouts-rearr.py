from tvm.tirx.layout import TileLayout, S, laneid
@T.prim_func
def rearr(A: T.Buffer((64, 8), "float32"), B: T.Buffer((512,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([512])
    A2 = A.rearrange("(a b) c -> b a c", a=8)
    B[tx] = A2[tx // 64, tx // 8 % 8, tx % 8]
