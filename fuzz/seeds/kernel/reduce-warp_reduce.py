"""Reductions: over a warp, a block, and the rows of a matrix."""
from __future__ import annotations
from tvm.script import tirx as T
@T.prim_func
def warp_reduce(A_ptr: T.handle):
    """A[i] = sum of 31 - lane over the warp, by halving exchanges."""
    A = T.match_buffer(A_ptr, (32,), "float32", align=16)
    T.device_entry()
    cta_id = T.cta_id([1]); warp_id = T.warp_id([1]); lane_id = T.lane_id([32])
    v = T.alloc_local((1,), "float32"); i = T.alloc_local((1,), "int32")
    v[0] = T.float32(31 - lane_id)
    i[0] = 16
    while i[0] >= 1:
        v[0] += T.tvm_warp_shuffle_xor(0xFFFFFFFF, v[0], i[0], 32, 32)
        i[0] = i[0] // 2
    A[lane_id] = v[0]
