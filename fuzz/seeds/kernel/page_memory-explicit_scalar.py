from tvm.tirx.layout import TileLayout, S
"""
@T.prim_func
def explicit_scalar(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (32, 4), "float32")
    B = T.match_buffer(b, (32,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    acc = T.alloc_local((1,), "float32")
    acc[0] = 0.0
    phase = T.alloc_local((1,), "int32")
    phase[0] = 0
    while phase[0] < 4:
        acc[0] = acc[0] + A[tx, phase[0]]
        phase[0] += 1
    B[tx] = acc[0]
