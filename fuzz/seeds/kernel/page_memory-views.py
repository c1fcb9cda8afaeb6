from tvm.tirx.layout import TileLayout, S
"""
@T.prim_func
def views(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (16, 16), "float32")
    B = T.match_buffer(b, (32,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    A2 = A.view(64, 4)
    At = A.permute(1, 0)
    B[tx] = A2[tx, 0] + A2[tx, 3] + At[tx % 16, 1]
