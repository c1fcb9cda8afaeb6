"""Image kernels on 8-bit grey pictures of any size."""
from __future__ import annotations
import math
from tvm.script import tirx as T
def clamp(value, low, high):
    return T.max(T.min(value, high), low)
@T.prim_func
def sobel(src: T.handle, dst: T.handle):
    """Length of the Sobel gradient, cut at 255; tiles with a one-pixel halo in shared memory."""
    height = T.int32()
    width = T.int32()
    Src = T.match_buffer(src, (height, width), "uint8")
    Dst = T.match_buffer(dst, (height, width), "uint8")
    T.device_entry()
    bx, by = T.cta_id([T.ceildiv(width, 32), T.ceildiv(height, 8)])
    tx, ty = T.thread_id([32, 8])
    tile = T.alloc_shared((10, 34), "float32")
    for k in range(2):
        i: T.let = k * 256 + ty * 32 + tx
        if i < 340:
            row: T.let = clamp(by * 8 + i // 34 - 1, 0, height - 1)
            column: T.let = clamp(bx * 32 + i % 34 - 1, 0, width - 1)
            tile[i // 34, i % 34] = T.cast(Src[row, column], "float32")
    T.cuda.cta_sync()
    x: T.let = bx * 32 + tx
    y: T.let = by * 8 + ty
    if x < width and y < height:
        gx: T.float32 = (tile[ty, tx + 2] + T.float32(2) * tile[ty + 1, tx + 2] + tile[ty + 2, tx + 2]
                         - tile[ty, tx] - T.float32(2) * tile[ty + 1, tx] - tile[ty + 2, tx])
        gy: T.float32 = (tile[ty + 2, tx] + T.float32(2) * tile[ty + 2, tx + 1] + tile[ty + 2, tx + 2]
                         - tile[ty, tx] - T.float32(2) * tile[ty, tx + 1] - tile[ty, tx + 2])
        Dst[y, x] = T.cast(T.min(T.sqrt(gx * gx + gy * gy), T.float32(255)), "uint8")
