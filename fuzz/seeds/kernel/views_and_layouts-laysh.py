from tvm.tirx.layout import TileLayout, S, laneid
@T.prim_func
def laysh(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    s = T.alloc_shared((32, 32), "float32", layout=TileLayout(S[(32, 32) : (33, 1)]))
    for i in range(32):
        s[i, tx] = A[i, tx]
    T.cuda.cta_sync()
    for i in range(32):
        B[i, tx] = s[tx, i]
