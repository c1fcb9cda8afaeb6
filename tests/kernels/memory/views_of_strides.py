# test: parse
# test: cuda sm_90a
# test: sim
# Views of buffers with strides: the strides are their layout.
from tvm.script import tirx as T


@T.prim_func
def views(A: T.Buffer((128,), "int32"), B: T.Buffer((7, 16), "int32")):
    T.device_entry()
    tx = T.thread_id([16])
    V = T.decl_buffer((4, 4), "int32", data=A.data, strides=[16, 2])
    B[0, tx] = V[tx // 4, tx % 4]
    row = V.sub[1]
    B[1, tx] = row[tx % 4]
    turned = V.permute(1, 0)
    B[2, tx] = turned[tx // 4, tx % 4]
    part = V.sub[1:3, 1:4]
    B[3, tx] = part[tx % 2, tx % 3]
    longer = V.view(2, 8)
    B[4, tx] = longer[tx // 8, tx % 8]
    flat = V.view(16)
    B[5, tx] = flat[tx]
    halves = V.view("int16")
    B[6, tx] = T.cast(halves[tx // 4, tx % 4 * 2], "int32")


@T.prim_func
def rows_of_any_width(a: T.handle, b: T.handle):
    s = T.int32()
    A = T.match_buffer(a, (4, 8), "int32", strides=(s, 1))
    B = T.match_buffer(b, (3, 8), "int32")
    T.device_entry()
    tx = T.thread_id([8])
    row = A.sub[2]
    B[0, tx] = row[tx]
    turned = A.permute(1, 0)
    B[1, tx] = turned[tx, 1]
    part = A.sub[1:3, 2:6]
    B[2, tx] = part[tx // 4, tx % 4]
