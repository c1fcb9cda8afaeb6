"""Image kernels on 8-bit grey pictures of any size."""
from __future__ import annotations
import math
from tvm.script import tirx as T
@T.prim_func
def mandelbrot(image: T.handle, left: T.float32, top: T.float32, pixel: T.float32, limit: T.int32):
    """Escape times of z^2 + c as grey values; c starts at (left, top) and steps by `pixel`; black inside the set."""
    height = T.int32()
    width = T.int32()
    Image = T.match_buffer(image, (height, width), "uint8")
    T.device_entry()
    bx, by = T.cta_id([T.ceildiv(width, 32), T.ceildiv(height, 8)])
    tx, ty = T.thread_id([32, 8])
    x: T.let = bx * 32 + tx
    y: T.let = by * 8 + ty
    if x < width and y < height:
        cr: T.float32 = left + T.cast(x, "float32") * pixel
        ci: T.float32 = top + T.cast(y, "float32") * pixel
        zr: T.float32 = 0.0
        zi: T.float32 = 0.0
        step: T.int32 = 0
        while step < limit and zr * zr + zi * zi <= T.float32(4.0):
            next_zr: T.float32 = zr * zr - zi * zi + cr
            zi = T.float32(2.0) * zr * zi + ci
            zr = next_zr
            step += 1
        Image[y, x] = T.if_then_else(step == limit, T.uint8(0), T.cast(255 - step * 255 // limit, "uint8"))
