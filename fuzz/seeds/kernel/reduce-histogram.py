"""Reductions: over a warp, a block, and the rows of a matrix."""
from __future__ import annotations
from tvm.script import tirx as T
@T.prim_func
def histogram(values: T.handle, counts: T.handle):
    """Counts[v] += occurrences of v among 256 byte values: block counts in shared memory, then global atomics."""
    n = T.int32()
    V = T.match_buffer(values, (n,), "uint8")
    Counts = T.match_buffer(counts, (256,), "int32")
    T.device_entry()
    bx = T.cta_id([T.ceildiv(n, 4096)]); tx = T.thread_id([256])
    local = T.alloc_shared((256,), "int32")
    local[tx] = 0
    T.cuda.cta_sync()
    for k in range(16):
        i: T.let = bx * 4096 + k * 256 + tx
        if i < n:
            T.cuda.atomic_add(local.ptr_to([T.cast(V[i], "int32")]), T.int32(1))
    T.cuda.cta_sync()
    if local[tx] > 0:
        T.cuda.atomic_add(Counts.ptr_to([tx]), local[tx])
