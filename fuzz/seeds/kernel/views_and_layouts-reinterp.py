from tvm.tirx.layout import TileLayout, S, laneid
@T.prim_func
def reinterp(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "int32"), C: T.Buffer((64,), "float16x2")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    B[tx] = T.reinterpret("int32", A[tx])
    C[tx] = T.reinterpret("float16x2", A[tx + 64])
    A[tx] = T.reinterpret("float32", T.reinterpret("uint32", C[tx]) ^ T.uint32(0x80008000))
