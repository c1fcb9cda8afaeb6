# test: parse
# test: cuda sm_90a
# A tensor map that the caller has encoded.
from tvm.script import tirx as T


@T.prim_func
def map_of_the_caller(A_map: T.TensorMap(), B: T.Buffer((2,), "uint64")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    if tx == 0:
        B[bx] = T.address_of(A_map) % T.uint64(64)
