"""Parts that the kernels share: the layout of accumulators, optional operands and activations."""

from __future__ import annotations

from tvm.script import tirx as T
from tvm.tirx.layout import S, TileLayout, laneid, wid_in_wg

LOG2_E = 1.4426950408889634
BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float8_e4m3fn": 1, "float8_e5m2": 1, "int8": 1, "int32": 4}


def accumulator(columns):
    """The registers of a warpgroup that hold 64 rows of an accumulator of wgmma."""
    return TileLayout(S[(4, 2, 8, columns // 8, 4, 2) : (1 @ wid_in_wg, 2, 4 @ laneid, 4, 1 @ laneid, 1)])


def optional(handle, rank, dtype):
    """A tensor of any strides that is empty if it is not given: the buffer and its extents."""
    extents, strides = [T.int32() for _ in range(rank)], [T.int64() for _ in range(rank)]
    return T.match_buffer(handle, extents, dtype, strides=strides), extents


@T.inline
def activate(x, rows, columns, activation):
    """Applies an activation to registers of float32: 1 is ReLU, 2 GELU, 3 GELU by the hyperbolic tangent, 4 SiLU, 0 none."""
    if activation == 1:
        for p, e in T.grid(rows, columns):
            x[p, e] = T.max(x[p, e], T.float32(0))
    elif activation == 2:
        for p, e in T.grid(rows, columns):
            x[p, e] = T.float32(0.5) * x[p, e] * (T.float32(1) + T.erf(x[p, e] * T.float32(0.7071067811865476)))
    elif activation >= 3:
        # x / (1 + exp(-y)), where y is x for SiLU. (1 + tanh(z)) / 2 is 1 / (1 + exp(-2z)).
        for p, e in T.grid(rows, columns):
            cubic: T.let = x[p, e] * (T.float32(1.5957691216057308) + T.float32(0.07135481282558182) * x[p, e] * x[p, e])
            y: T.let = T.if_then_else(activation == 3, cubic, x[p, e])
            x[p, e] = x[p, e] * T.ptx.rcp(T.float32(1) + T.ptx.exp2(y * T.float32(-LOG2_E)))
