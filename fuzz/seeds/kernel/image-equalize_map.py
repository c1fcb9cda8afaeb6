"""Image kernels on 8-bit grey pictures of any size."""
from __future__ import annotations
import math
from tvm.script import tirx as T
@T.prim_func
def equalize_map(counts: T.handle, table: T.handle, pixels: T.int32):
    """From grey counts to the equalizing table: a scan over the 256 values by one block."""
    Counts = T.match_buffer(counts, (256,), "int32")
    Table = T.match_buffer(table, (256,), "uint8")
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([256])
    sums = T.alloc_shared((2, 256), "int32")
    sums[0, tx] = Counts[tx]
    T.cuda.cta_sync()
    for step in T.unroll(8):
        sums[(step + 1) % 2, tx] = sums[step % 2, tx] + T.if_then_else(
            tx >= (1 << step), sums[step % 2, tx - (1 << step)], 0)
        T.cuda.cta_sync()
    Table[tx] = T.cast((T.cast(sums[0, tx], "int64") * 255 + T.cast(pixels, "int64") // 2)
                       // T.cast(pixels, "int64"), "uint8")
