# test: parse
# test: lower LowerTIRx
# test: lower SplitHostDevice
# Buffers of the signature and buffers matched in the body: views stand in the order of the parameters, offsets have one
# name each; a target is completed with what its kind says.
from tvm.script import tirx as T

@T.prim_func
def matched_first(a: T.handle, B: T.Buffer((8,), "float32", align=8, offset_factor=1)):
    A = T.match_buffer(a, (8,), "float32", align=16, offset_factor=4)
    T.device_entry()
    tx = T.thread_id([8])
    b = T.cta_id([1])
    A[tx] = B[tx]

@T.prim_func
def on_target(A: T.Buffer((8,), "float32"), b: T.handle):
    T.func_attr({"target": T.target({"kind": "cuda", "arch": "sm_90a"})})
    B = T.match_buffer(b, (8,), "float32")
    T.device_entry()
    tx = T.thread_id([8])
    bx = T.cta_id([1])
    A[tx] = B[tx]

@T.prim_func
def with_host(A: T.Buffer((8,), "float32")):
    T.func_attr({"target": T.target({"kind": "cuda", "arch": "sm_100a"}, host="llvm")})
    T.device_entry()
    tx = T.thread_id([8])
    bx = T.cta_id([1])
    A[tx] = T.float32(1)
