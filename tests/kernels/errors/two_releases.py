# error: the file is written for two releases of TVM
from tvm.script import tirx as T


@T.prim_func
def mixed(A: T.Buffer((32,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    x: T.uint32
    T.ptx.ld.global_.b32(x, A.ptr_to([tx]))
    T.ptx.fence.proxy_async("shared::cta")
