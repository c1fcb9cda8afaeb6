# test: parse
# test: cuda sm_90a
# test: sim
# Views whose offset or extents are read from memory; shared memory whose size is a value bound in the launch.
from tvm.script import tirx as T


@T.prim_func
def groups(starts: T.Buffer((4,), "int32"), A: T.Buffer((64,), "int32"), B: T.Buffer((4, 8), "int32")):
    T.device_entry()
    bx = T.cta_id([4])
    tx = T.thread_id([8])
    group = T.decl_buffer((4, 2), "int32", data=A.data, elem_offset=starts[bx])
    B[bx, tx] = group[tx // 2, tx % 2] * 10 + bx


@T.prim_func
def rows(widths: T.Buffer((2,), "int32"), A: T.Buffer((64,), "int32"), B: T.Buffer((2, 8), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([8])
    table = T.decl_buffer((4, widths[bx]), "int32", data=A.data)
    B[bx, tx] = table[tx // 2, tx % 2]
    seen = A.view(4, widths[bx])
    B[bx, tx] = B[bx, tx] + seen[tx // 2, 0] * 100


@T.prim_func
def shared_size(B: T.Buffer((2, 8), "int32"), n: T.int32):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([8])
    rows: T.let = n + 1
    size: T.let = rows * 2
    S = T.alloc_buffer((size,), "int32", scope="shared.dyn")
    S[tx] = tx + bx
    T.cuda.cta_sync()
    B[bx, tx] = S[7 - tx]


@T.prim_func
def read_by_the_description_alone(heights: T.Buffer((2,), "int32"), A: T.Buffer((64,), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    table = T.decl_buffer((heights[0], 8), "int32", data=A.data)
    table[tx // 4, tx % 4] = tx
