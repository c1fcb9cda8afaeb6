from tvm.tirx.layout import TileLayout, S
"""
@T.prim_func
def vectors(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (256,), "float32")
    B = T.match_buffer(b, (256,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    B.vstore([tx * 4], A.vload([tx * 4], dtype="float32x4"))
