from tvm.tirx.layout import TileLayout, S
"""
@T.prim_func
def scalar(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (32, 4), "float32")
    B = T.match_buffer(b, (32,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    acc: T.float32 = 0.0
    phase: T.int32 = 0
    while phase < 4:
        acc = acc + A[tx, phase]
        phase += 1
    B[tx] = acc
