# test: parse
# test: lower LowerTIRx
# test: cuda sm_90a
# test: sim
# Offsets of elements in their buffers: elem_offset_of and byte_offset_of, of parameters, views and shared memory.
from tvm.script import tirx as T
from tvm.tirx.layout import laneid, warpid


@T.prim_func
def elements(A: T.Buffer((8, 16), "float32"), B: T.Buffer((4, 32), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    B[0, tx] = A.elem_offset_of([2, tx % 16])
    B[1, tx] = A.byte_offset_of([tx // 16, tx % 16])
    o: T.let = A.elem_offset_of([7, tx % 16])
    B[2, tx] = o + A.elem_offset_of([0, 0])
    if A.elem_offset_of([tx // 4, 0]) < 32:
        B[3, tx] = A[tx // 8, A.elem_offset_of([0, tx % 16])]


@T.prim_func
def views(A: T.Buffer((8, 16), "float32"), B: T.Buffer((6, 16), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([16])
    flat = A.view(128)
    halves = A.view("float16")
    turned = A.permute(1, 0)
    part = T.decl_buffer((4, 16), "float32", data=A.data, elem_offset=32)
    B[0, tx] = flat.elem_offset_of([tx * 2])
    B[1, tx] = halves.elem_offset_of([tx % 8, 3]) + 1000 * halves.byte_offset_of([0, tx])
    B[2, tx] = turned.elem_offset_of([tx, 1])
    B[3, tx] = part.elem_offset_of([1, tx])
    B[4, tx] = part.elem_offset_of([1, tx], inner=False)
    B[5, tx] = part.byte_offset_of([1, tx], inner=False)


@T.prim_func
def wide(A: T.Buffer((T.int64(8), T.int64(16)), "float16"), B: T.Buffer((16,), "int64"), i: T.int64):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([16])
    B[tx] = A.elem_offset_of([i, tx]) + A.byte_offset_of([i, 0])


@T.prim_func
def pointers(A: T.Buffer((8, 16), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([16])
    S = T.alloc_buffer((16, 4), "float32", scope="shared", layout=T.TileLayout(T.S[(16, 4) : (5, 1)]))
    for i in range(4):
        S[tx, i] = T.cast(S.elem_offset_of([tx, i]), "float32")
    row = T.decl_buffer((16,), "float32", data=A.access_ptr("rw", ptr_type="float32", offset=A.elem_offset_of([5, 0])))
    row[tx] = S[tx, 3]


@T.prim_func
def flattened(A: T.Buffer((4, 8), "int32"), B: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    F = A.get_flattened_buffer()
    part = T.decl_buffer((2, 8), "int32", data=A.data, elem_offset=16)
    G = part.get_flattened_buffer()
    S = T.alloc_buffer((4, 8), "int32", scope="shared")
    H = S.get_flattened_buffer()
    S[tx // 8, tx % 8] = F[tx]
    T.cuda.cta_sync()
    same = B.get_flattened_buffer()
    same[tx] = G[tx % 16] + 1000 * H[tx] + 100000 * (F.shape[0] + G.shape[0] + H.shape[0])


@T.prim_func
def places(B: T.Buffer((7, 32), "int32"), i: T.int64):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    rows = T.TileLayout(T.S[(8, 16) : (16, 1)])
    columns = T.TileLayout(T.S[(8, 16) : (1, 8)])
    lanes = T.TileLayout(T.S[(8, 4, 2, 2) : (4 @ laneid, 1 @ laneid, 2, 1)] + T.R[4 : 1 @ warpid] + 3 @ laneid + 5)
    B[0, tx] = rows.apply(tx % 8, 3)["m"]
    B[1, tx] = columns.apply(tx)["m"]
    B[2, tx] = columns.apply(tx % 16, tx % 8, shape=[16, 8])["m"]
    where = T.meta_var(lanes.apply(tx % 16, tx % 8, shape=[16, 8]))
    B[3, tx] = where["m"] + 100 * where["laneid"]
    B[4, tx] = B.layout.apply(1, 2)["m"]
    B[5, tx] = lanes.apply(37)["m"]
    B[6, tx] = lanes.apply(37)["laneid"]
    B[6, 0] = T.cast(rows.apply(i, T.int64(3))["m"], "int32")
