"""Image kernels on 8-bit grey pictures of any size."""
from __future__ import annotations
import math
from tvm.script import tirx as T
@T.prim_func
def apply_map(src: T.handle, table: T.handle, dst: T.handle):
    """Dst = Table[Src], pixel by pixel."""
    n = T.int32()
    Src = T.match_buffer(src, (n,), "uint8")
    Table = T.match_buffer(table, (256,), "uint8")
    Dst = T.match_buffer(dst, (n,), "uint8")
    T.device_entry()
    bx = T.cta_id([T.ceildiv(n, 256)]); tx = T.thread_id([256])
    i: T.let = bx * 256 + tx
    if i < n:
        Dst[i] = Table[T.cast(Src[i], "int32")]
