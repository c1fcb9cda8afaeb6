"""Parts that the kernels share: the layout of accumulators, optional operands and activations."""

from __future__ import annotations

from tvm.script import tirx as T
from tvm.tirx.layout import S, TileLayout, laneid, wid_in_wg

LOG2_E = 1.4426950408889634
# The loop is unrolled by nvcc, so that the kernel's text stays short.
BY_NVCC = {"pragma_unroll_explicit": False}
BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float8_e4m3fn": 1, "float8_e5m2": 1, "int8": 1, "int32": 4}


def accumulator(columns):
    """The registers of a warpgroup that hold 64 rows of an accumulator of wgmma."""
    return TileLayout(S[(4, 2, 8, columns // 8, 4, 2) : (1 @ wid_in_wg, 2, 4 @ laneid, 4, 1 @ laneid, 1)])


def optional(handle, rank, dtype):
    """A tensor of any strides that is empty if it is not given: the buffer and its extents."""
    extents, strides = [T.int32() for _ in range(rank)], [T.int64() for _ in range(rank)]
    return T.match_buffer(handle, extents, dtype, strides=strides), extents


def by_vectors(vectors, buffer):
    """Whether `vectors` is 1 and a buffer, which may be empty, begins at a multiple of 16 bytes. A launch takes it at any address, since the kernel
    looks at the address."""
    return T.And(vectors != 0, T.bitwise_and(T.reinterpret("uint64", buffer.ptr_to([0] * len(buffer.shape))), T.uint64(15)) == T.uint64(0))


@T.inline
def activate(x, rows, columns, activation):
    """Applies an activation to registers of float32: 1 is ReLU, 2 GELU, 3 GELU by the hyperbolic tangent, 4 SiLU, 0 none."""
    if activation == 1:
        for p, e in T.grid(rows, columns):
            x[p, e] = T.ptx.max_f32(x[p, e], T.float32(0), nan=True)
    elif activation == 2:
        for p, e in T.grid(rows, columns):
            x[p, e] = T.float32(0.5) * x[p, e] * (T.float32(1) + T.erf(x[p, e] * T.float32(0.7071067811865476)))
    elif activation >= 3:
        # x / (1 + exp(-y)), where y is x for SiLU. (1 + tanh(z)) / 2 is 1 / (1 + exp(-2z)). Two elements share a reciprocal, since the unit of
        # special functions is slow; so that their product is finite, the power of two ends at 63. Elements end at -64, where both functions are 0 up to
        # rounding: a large one times 2^-63 would not be.
        total = T.alloc_local((2,), "float32")
        for p in T.unroll(rows):
            for i in T.unroll(columns // 2):
                for e in T.unroll(2):
                    x[p, i * 2 + e] = T.ptx.max_f32(x[p, i * 2 + e], T.float32(-64), nan=True)
                    own: T.let = x[p, i * 2 + e]
                    cubic: T.let = own * (T.float32(-1.5957691216057308 * LOG2_E) + T.float32(-0.07135481282558182 * LOG2_E) * own * own)
                    power: T.let = T.if_then_else(activation == 3, cubic, own * T.float32(-LOG2_E))
                    total[e] = T.float32(1) + T.ptx.exp2(T.min(power, T.float32(63)))
                both: T.let = T.ptx.rcp(total[0] * total[1])
                for e in T.unroll(2):
                    x[p, i * 2 + e] = x[p, i * 2 + e] * (both * total[1 - e])


@T.inline
def finish(sums, of_columns, of_rows, has_row_scales, Residual, r_columns, matrix, row, column, rows, columns, own, activation, BN, out):
    """Scales, bias, activation and residual of a warpgroup's accumulators of a tile from column `column` of C on, in place. The thread has
    elements `own` and `own + 1` of each 8 columns in two rows, `row` and 8 below it. `of_columns` has the scales of two columns and their bias,
    then those of the next two; `of_rows` has the scales of the rows if `has_row_scales`."""
    value = sums.local(BN // 2)
    x = T.alloc_local((1, 8), "float32")
    four = T.alloc_local((4,), "float32")
    near = T.alloc_local((8,), out)
    ahead = T.alloc_local((8,), out)

    @T.inline
    def fetch(j):
        """The residual of 16 columns."""
        for q in T.unroll(2):
            at: T.let = column + own + (j * 2 + q) * 8
            for p in T.unroll(2):
                far = T.decl_buffer((2,), out, data=Residual.ptr_to([matrix, T.min(row + p * 8, rows - 1), at]))
                if at + 2 <= columns:
                    for e in T.vectorized(2):
                        ahead[q * 4 + p * 2 + e] = far[e]
                elif at < columns:
                    ahead[q * 4 + p * 2] = far[0]

    @T.inline
    def finish_by(function):
        """With one activation in all columns: the code that runs is one piece, which the instruction cache fetches in order."""
        for j in T.unroll(BN // 16, annotations=BY_NVCC):
            if r_columns > 0:
                for e in T.unroll(8):
                    near[e] = ahead[e]
                if j + 1 < BN // 16:
                    fetch(j + 1)
            for q in T.unroll(2):
                for e in T.vectorized(4):
                    four[e] = of_columns[((j * 2 + q) * 8 + own) * 2 + e]
                for p in T.unroll(2):
                    for e in T.unroll(2):
                        x[0, q * 4 + p * 2 + e] = T.fma(value[j * 8 + q * 4 + p * 2 + e], four[e], four[2 + e])
            activate(x, 1, 8, function)
            if r_columns > 0:
                for e in T.unroll(8):
                    x[0, e] = x[0, e] + T.cast(near[e], "float32")
            for e in T.unroll(8):
                value[j * 8 + e] = x[0, e]

    if r_columns > 0:
        for e in T.unroll(8):
            ahead[e] = 0.0                         # for columns that C does not have
        fetch(0)
    if has_row_scales:
        for i in T.unroll(BN // 2, annotations=BY_NVCC):
            value[i] = value[i] * of_rows[i // 2 % 2]
    if activation == 0:
        finish_by(0)
    elif activation == 1:
        finish_by(1)
    elif activation == 2:
        finish_by(2)
    elif activation == 3:
        finish_by(3)
    else:
        finish_by(4)
