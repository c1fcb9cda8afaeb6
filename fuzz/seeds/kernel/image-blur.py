"""Image kernels on 8-bit grey pictures of any size."""
from __future__ import annotations
import math
from tvm.script import tirx as T
def gaussian(radius, sigma):
    """Weights of a Gaussian of `2 * radius + 1` taps; they add up to one."""
    taps = [math.exp(-(i * i) / (2.0 * sigma * sigma)) for i in range(-radius, radius + 1)]
    return [t / sum(taps) for t in taps]
def weighted_sum(weights, sample):
    """`weights[0] * sample(0) + weights[1] * sample(1) + …` as one expression."""
    total = T.float32(0.0)
    for tap, weight in enumerate(weights):
        total = total + T.cast(sample(tap), "float32") * T.float32(weight)
    return total
def clamp(value, low, high):
    return T.max(T.min(value, high), low)
@T.jit
def blur(src: T.handle, dst: T.handle, *, RADIUS: T.constexpr, SIGMA: T.constexpr, VERTICAL: T.constexpr):
    """One pass of a separable Gaussian blur, along rows or columns; the border repeats the last pixel."""
    height = T.int32()
    width = T.int32()
    Src = T.match_buffer(src, (height, width), "uint8")
    Dst = T.match_buffer(dst, (height, width), "uint8")
    weights = T.meta_var(gaussian(RADIUS, SIGMA))
    T.device_entry()
    bx, by = T.cta_id([T.ceildiv(width, 32), T.ceildiv(height, 8)])
    tx, ty = T.thread_id([32, 8])
    x: T.let = bx * 32 + tx
    y: T.let = by * 8 + ty
    if x < width and y < height:
        total: T.float32 = 0.0
        if VERTICAL:
            total = weighted_sum(weights, lambda tap: Src[clamp(y + (tap - RADIUS), 0, height - 1), x])
        else:
            total = weighted_sum(weights, lambda tap: Src[y, clamp(x + (tap - RADIUS), 0, width - 1)])
        Dst[y, x] = T.cast(clamp(total + T.float32(0.5), T.float32(0), T.float32(255)), "uint8")
