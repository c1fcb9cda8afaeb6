from tvm.tirx.layout import TileLayout, S, laneid
@T.prim_func
def scalars(A: T.Buffer((64,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    s = T.local_scalar("int32")
    s = tx * 3
    s += 1
    total = T.shared_scalar("int32")
    if tx == 0:
        total = 1000
    T.cuda.cta_sync()
    own = T.alloc_scalar("int32", scope="local")
    own = s + total
    A[tx] = own
