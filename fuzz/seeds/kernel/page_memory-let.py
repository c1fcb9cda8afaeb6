from tvm.tirx.layout import TileLayout, S
"""
@T.prim_func
def let(b: T.handle, m: T.int32):
    B = T.match_buffer(b, (32,), "int32")
    n: T.let = m * 2
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    half: T.let[T.int32] = m // 2
    B[tx] = half + n
