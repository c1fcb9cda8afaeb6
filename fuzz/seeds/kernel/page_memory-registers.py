from tvm.tirx.layout import TileLayout, S
"""
@T.prim_func
def registers(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (32, 4), "float32")
    B = T.match_buffer(b, (32,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    r = T.alloc_local((4,), "float32")
    for k in T.unroll(4):
        r[k] = A[tx, k]
    B[tx] = r[0] + r[1] + r[2] + r[3]
