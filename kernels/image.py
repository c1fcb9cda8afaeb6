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
