from tvm.tirx.layout import TileLayout, S, laneid
@T.prim_func
def permview(A: T.Buffer((4, 8, 16), "float32"), B: T.Buffer((512,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([512])
    A2 = A.permute(2, 0, 1)
    A3 = A.view(32, 16)
    B[tx] = A2[tx // 32, tx // 8 % 4, tx % 8] + A3[tx // 16, tx % 16]
