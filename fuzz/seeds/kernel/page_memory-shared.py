from tvm.tirx.layout import TileLayout, S
"""
@T.prim_func
def shared(a: T.handle):
    A = T.match_buffer(a, (64,), "float16")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    As = T.alloc_shared((8, 8), "float16")
    view = T.decl_buffer((64,), "float16", data=As.data)
    As[tx // 8, tx % 8] = A[tx]
    T.cuda.cta_sync()
    A[tx] = view[63 - tx]
