from tvm.tirx.layout import TileLayout, S, laneid
@T.prim_func
def laysplit(A: T.Buffer((64, 64), "float32", layout=TileLayout(S[(8, 8, 8, 8) : (512, 8, 64, 1)]))):
    T.device_entry(); bx = T.cta_id([64]); tx = T.thread_id([64])
    A[bx, tx] = A[bx, tx] + 1.0
