from tvm.tirx.layout import TileLayout, S
"""
@T.prim_func
def row_major(a: T.handle, p: T.handle):
    A = T.match_buffer(a, (4, 8), "float32")
    B = T.match_buffer(p, (4, 8), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([1])
    for i, j in T.grid(4, 8):
        B[i, j] = A[i, j] + 1
