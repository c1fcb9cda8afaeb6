from tvm.tirx.layout import TileLayout, S
SRC = r"""
"""
@T.prim_func
def pointers(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (32,), "float32")
    B = T.match_buffer(b, (32,), "float32")
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    B[tx] = T.cuda.func_call("ld", A.ptr_to([tx]), source_code=SRC, return_type="float32")
