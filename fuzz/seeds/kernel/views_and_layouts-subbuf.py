from tvm.tirx.layout import TileLayout, S, laneid
@T.prim_func
def subbuf(A: T.Buffer((16, 16), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    A2 = A.sub[4:12, 8:16]
    B[tx] = A2[tx // 8, tx % 8]
