from tvm.tirx.layout import TileLayout, S, laneid
@T.prim_func
def slices(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), C: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([8])
    V = T.decl_buffer((64,), "float32", data=C.data)
    B[tx, 0:4] = A[tx, 4:8]
    B[tx, 4:8] = A[tx, 0:4]
    V[tx] = 5.0
