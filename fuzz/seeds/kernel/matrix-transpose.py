"""Kernels over matrices: transpose and product through shared memory."""
from __future__ import annotations
from tvm.script import tirx as T
@T.prim_func
def transpose(a: T.handle, b: T.handle):
    """B = A^T by 32 x 32 tiles; the pad of one column keeps both sides free of bank conflicts."""
    m = T.int32()
    n = T.int32()
    A = T.match_buffer(a, (m, n), "float32")
    B = T.match_buffer(b, (n, m), "float32")
    T.device_entry()
    bx, by = T.cta_id([T.ceildiv(n, 32), T.ceildiv(m, 32)])
    tx, ty = T.thread_id([32, 8])
    tile = T.alloc_shared((32, 33), "float32")
    for k in T.unroll(4):
        if by * 32 + ty + k * 8 < m and bx * 32 + tx < n:
            tile[ty + k * 8, tx] = A[by * 32 + ty + k * 8, bx * 32 + tx]
    T.cuda.cta_sync()
    for k in T.unroll(4):
        if bx * 32 + ty + k * 8 < n and by * 32 + tx < m:
            B[bx * 32 + ty + k * 8, by * 32 + tx] = tile[tx, ty + k * 8]
