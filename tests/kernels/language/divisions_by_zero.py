# test: parse
# test: compile sm_90a
# test: sim
# Unrolling makes zero divisors in branches that no thread takes: they are removed with the branch.
from tvm.script import tirx as T


@T.prim_func
def chosen(B: T.Buffer((4, 8), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    for i in T.unroll(4):
        B[i, tx] = T.if_then_else(i > 0, tx % i, 7)


@T.prim_func
def guarded(B: T.Buffer((4, 8), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    for i in T.unroll(4):
        if i > 0 and tx // i == 1:
            B[i, tx] = T.Select(i > 0, tx // i, 7) + tx % i
