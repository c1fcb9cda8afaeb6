from tvm.tirx.layout import TileLayout, S, laneid
@T.prim_func
def pooled(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([256])
    pool = T.SMEMPool()
    flags = pool.alloc((3,), "uint8")
    tile = pool.alloc((256,), "float32", align=128)
    pool.commit()
    tile[tx] = A[tx]
    if tx < 3:
        flags[tx] = T.uint8(tx)
    T.cuda.cta_sync()
    B[tx] = tile[255 - tx] + T.cast(flags[tx % 3], "float32")
