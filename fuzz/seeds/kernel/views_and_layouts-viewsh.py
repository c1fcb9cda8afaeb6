from tvm.tirx.layout import TileLayout, S, laneid
@T.prim_func
def viewsh(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    As = T.alloc_shared((64,), "float32")
    As16 = As.view("float16")
    As[tx] = A[tx]
    T.cuda.cta_sync()
    B[tx] = T.cast(As16[tx * 2 + 1], "float32")
