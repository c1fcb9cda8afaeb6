# test: cuda sm_90a
# Vectorized loops at the edges of what has a vector form.
from tvm.script import tirx as T
from tvm.tirx.layout import TileLayout, S


@T.prim_func
def leading_zeros(A: T.Buffer((4,), "int32")):
    T.device_entry()
    tx = T.thread_id([1])
    for v in T.vectorized(4):
        A[v] = T.clz(A[v])


@T.prim_func
def unaligned_row(A: T.Buffer((3, 32, 3), "int8"), B: T.Buffer((16,), "int8")):
    T.device_entry()
    tx = T.thread_id([8])
    shared = T.alloc_shared((8, 4), "int8", layout=TileLayout(S[(8, 4):(7, 1)]))
    for v in T.vectorized(2):
        shared[tx, v] = A[tx % 3, 31, v]
    for v in T.vectorized(2):
        B[tx * 2 + v] = shared[tx, v]


@T.prim_func
def wide_lanes(A: T.Buffer((64,), "int64"), B: T.Buffer((64,), "int64"), C: T.Buffer((64,), "uint64"), s: T.int64):
    T.device_entry()
    tx = T.thread_id([32])
    for v in T.vectorized(2):
        B[tx * 2 + v] = T.min(s, T.Select(A[tx * 2 + v] < B[tx * 2 + v], A[tx * 2 + v], T.int64(0)))
    for v in T.vectorized(2):
        C[tx * 2 + v] = T.max(T.Select(A[tx * 2 + v] < s, C[tx * 2 + v], T.uint64(7)), T.cast(s, "uint64"))
