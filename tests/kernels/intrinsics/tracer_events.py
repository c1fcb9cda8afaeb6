# test: compile sm_90a
# Events of the in-kernel tracer change nothing where there is no tracer.
from tvm.script import tirx as T


# sim: events
#   A: uint32[32] = i * 3
#   B: uint32[32] = 0 -> A[i] + 1
@T.prim_func
def events(A: T.Buffer((32,), "uint32"), B: T.Buffer((32,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    T.cuda.iket.mark("begin")
    T.cuda.iket.mark("value", A[tx])
    token: T.uint32 = T.cuda.iket.range_start("load", tx)
    value: T.let = A[tx]
    T.cuda.iket.range_end(token, value)
    T.cuda.iket.range_push("store", 1)
    B[tx] = value + T.uint32(1) + T.cuda.iket.sentinel_token("none")
    T.cuda.iket.range_pop()
