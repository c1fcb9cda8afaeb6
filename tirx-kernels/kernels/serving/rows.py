"""Rows of a tensor, read and written in vectors of 16 bytes: the parts that the memory-bound kernels share.

A block has 8 warps, and `warps` of them work on a row together: 1 for short rows, 8 for long ones. A row may begin at any address.
Its vectors are accesses of 16 bytes if all rows that belong together begin at multiples of 16 bytes, and single elements otherwise."""

from __future__ import annotations

from tvm.script import tirx as T

WARPS = 8
CACHED = 4                                   # vectors of a row that a thread keeps in registers
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "int8": 1, "float8_e4m3fn": 1}


def vector(dtype):
    """The elements of 16 bytes."""
    return 16 // BYTES[dtype]


def misaligned(pointer):
    """The bytes between an address and the multiple of 16 before it."""
    return T.cast(T.bitwise_and(T.reinterpret("uint64", pointer), T.uint64(15)), "uint8")


@T.inline
def load(to, at, row, column, columns, aligned, dtype, count):
    """`count` elements of a row from `column` on, to `to[at]` and the elements behind; zeros behind the row's end."""
    if aligned and column + count <= columns:
        here = T.decl_buffer((columns // count,), dtype + "x" + str(count), data=row.data, scope="global")
        there = T.decl_buffer((at // count + 1,), dtype + "x" + str(count), data=to.data, scope="local")
        there[at // count] = here[T.truncdiv(column, count)]
    else:
        for v in T.unroll(count):
            to[at + v] = T.if_then_else(column + v < columns, row[column + v], T.cast(0, dtype))


@T.inline
def store(row, column, columns, source, at, aligned, dtype, count):
    """The inverse of `load`; writes nothing behind the row's end."""
    if aligned and column + count <= columns:
        here = T.decl_buffer((at // count + 1,), dtype + "x" + str(count), data=source.data, scope="local")
        there = T.decl_buffer((columns // count,), dtype + "x" + str(count), data=row.data, scope="global")
        there[T.truncdiv(column, count)] = here[at // count]
    else:
        for v in T.unroll(count):
            if column + v < columns:
                row[column + v] = source[at + v]


@T.inline
def row_sum(value, parts, warp, lane, first, warps):
    """The sum of a value over the warps of a row, from warp `first` on; each thread gets it."""
    value[0] = T.cuda.warp_sum(value[0])
    T.cuda.cta_sync()
    if lane == 0:
        parts[warp] = value[0]
    T.cuda.cta_sync()
    value[0] = 0.0
    for k in range(warps):
        value[0] += parts[first + k]


@T.inline
def row_max(value, parts, warp, lane, first, warps):
    """The maximum of a value over the warps of a row, from warp `first` on; each thread gets it."""
    value[0] = T.cuda.warp_max(value[0])
    T.cuda.cta_sync()
    if lane == 0:
        parts[warp] = value[0]
    T.cuda.cta_sync()
    for k in range(warps):
        value[0] = T.max(value[0], parts[first + k])
