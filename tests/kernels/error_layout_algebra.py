# error: TileLayout.to_psum is not supported yet (layout algebra)
# Methods of layouts that are not there say so.
from tvm.script import tirx as T

@T.prim_func
def kernel(A: T.Buffer((8, 4), "float32")):
    T.device_entry()
    tx = T.thread_id([4])
    V = A.layout.to_psum()
    A[0, tx] = 0.0
