from tvm.tirx.layout import TileLayout, S, laneid
@T.prim_func
def permuted(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8, 4), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    At = A.permute(1, 0); z = At[tx // 4, tx % 4]
    B[tx // 4, tx % 4] = z
