# error: a e4m3x2 is a value of uint16, found handle: give the element, not its address
# error: --> error_ptx_cvt_address.py:11:
from tvm.script import tirx as T


@T.prim_func
def address(Q: T.Buffer((16,), "uint16"), U: T.Buffer((16,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([16])
    U[tx] = T.ptx.cvt("f16x2", Q.ptr_to([tx]), atype="e4m3x2", rounding="rn")
