# test: compile sm_90a
# test: compile sm_100a
# Sums and products of float32 and float64 with each rounding, in shared memory and in registers. The expected results are
# computed in integers: element k of A is a multiple of 2**-10 of either sign, the other operands add bits that do not fit
# in a float.
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.layout import S, TileLayout, laneid


def rounded(mode, units, unit):
    """`units` rounded to a multiple of `unit`: to the nearest (ties to even), to zero, down, up."""
    down = units // unit * unit
    up = down if down == units else down + unit
    if mode == 0:
        nearer = 2 * units - down - up
        return up if nearer > 0 or nearer == 0 and down // unit % 2 != 0 else down
    if mode == 1:
        return up if units < 0 else down
    return down if mode == 2 else up


def value(k):
    return (1025 + k) * (-1 if k % 2 else 1)


def expected(op, mode, k, bits):
    """A[k] + 91 units, A[k] - 91 units, A[k] * (1 + 5 units) and that plus 3 units, rounded to a mantissa of `bits`."""
    if op < 2:
        # In units of 2**-(bits + 7): 128 of them are the last bit.
        exact = value(k) * 2 ** (bits - 3) + (91 if op == 0 else -91)
        return rounded(mode, exact, 128) * 2.0 ** -(bits + 7)
    exact = value(k) * (2 ** (bits - 2) + 5) + (3 if op == 3 else 0)
    return rounded(mode, exact, 256) * 2.0 ** -(bits + 8)


@T.inline
def in_shared_memory(d, s, addend, factor, rest):
    Tx.warp.add(d[0, 0, 0:32], s, addend, rounding_mode="rn")
    Tx.warp.add(d[0, 1, 0:32], s, addend, rounding_mode="rz")
    Tx.warp.add(d[0, 2, 0:32], s, addend, rounding_mode="rm")
    Tx.warp.add(d[0, 3, 0:32], s, addend, rounding_mode="rp")
    Tx.warp.sub(d[1, 0, 0:32], s, addend, rounding_mode="rn")
    Tx.warp.sub(d[1, 1, 0:32], s, addend, rounding_mode="rz")
    Tx.warp.sub(d[1, 2, 0:32], s, addend, rounding_mode="rm")
    Tx.warp.sub(d[1, 3, 0:32], s, addend, rounding_mode="rp")
    Tx.warp.mul(d[2, 0, 0:32], s, factor, rounding_mode="rn")
    Tx.warp.mul(d[2, 1, 0:32], s, factor, rounding_mode="rz")
    Tx.warp.mul(d[2, 2, 0:32], s, factor, rounding_mode="rm")
    Tx.warp.mul(d[2, 3, 0:32], s, factor, rounding_mode="rp")
    Tx.warp.fma(d[3, 0, 0:32], s, factor, rest, rounding_mode="rn")
    Tx.warp.fma(d[3, 1, 0:32], s, factor, rest, rounding_mode="rz")
    Tx.warp.fma(d[3, 2, 0:32], s, factor, rest, rounding_mode="rm")
    Tx.warp.fma(d[3, 3, 0:32], s, factor, rest, rounding_mode="rp")


# sim: float32_shared
#   A: float32[32] = value(i) * 2.0**-10
#   B: float32[4x4x32] = 0 -> expected(i, j, k, 23)
@T.prim_func
def float32_shared(A: T.Buffer((32,), "float32"), B: T.Buffer((4, 4, 32), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.lane_id([32])
    T.thread_id([32])
    s = T.alloc_buffer((32,), "float32", scope="shared")
    d = T.alloc_buffer((4, 4, 32), "float32", scope="shared")
    Tx.warp.copy(s, A)
    in_shared_memory(d, s, T.float32(91.0 * 2.0**-30), T.float32(1.0 + 5.0 * 2.0**-21), T.float32(3.0 * 2.0**-31))
    Tx.warp.copy(B, d)


# sim: float64_shared
#   A: float64[32] = value(i) * 2.0**-10
#   B: float64[4x4x32] = 0 -> expected(i, j, k, 52)
@T.prim_func
def float64_shared(A: T.Buffer((32,), "float64"), B: T.Buffer((4, 4, 32), "float64")):
    T.device_entry()
    T.cta_id([1])
    T.lane_id([32])
    T.thread_id([32])
    s = T.alloc_buffer((32,), "float64", scope="shared")
    d = T.alloc_buffer((4, 4, 32), "float64", scope="shared")
    Tx.warp.copy(s, A)
    in_shared_memory(d, s, T.float64(91.0 * 2.0**-59), T.float64(1.0 + 5.0 * 2.0**-50), T.float64(3.0 * 2.0**-60))
    Tx.warp.copy(B, d)


@T.inline
def in_registers(B, d, s, addend, factor, rest):
    Tx.warp.add(d, s, addend, rounding_mode="rn")
    Tx.warp.copy(B[0, 0, 0:64], d)
    Tx.warp.add(d, s, addend, rounding_mode="rz")
    Tx.warp.copy(B[0, 1, 0:64], d)
    Tx.warp.add(d, s, addend, rounding_mode="rm")
    Tx.warp.copy(B[0, 2, 0:64], d)
    Tx.warp.add(d, s, addend, rounding_mode="rp")
    Tx.warp.copy(B[0, 3, 0:64], d)
    Tx.warp.sub(d, s, addend, rounding_mode="rn")
    Tx.warp.copy(B[1, 0, 0:64], d)
    Tx.warp.sub(d, s, addend, rounding_mode="rz")
    Tx.warp.copy(B[1, 1, 0:64], d)
    Tx.warp.sub(d, s, addend, rounding_mode="rm")
    Tx.warp.copy(B[1, 2, 0:64], d)
    Tx.warp.sub(d, s, addend, rounding_mode="rp")
    Tx.warp.copy(B[1, 3, 0:64], d)
    Tx.warp.mul(d, s, factor, rounding_mode="rn")
    Tx.warp.copy(B[2, 0, 0:64], d)
    Tx.warp.mul(d, s, factor, rounding_mode="rz")
    Tx.warp.copy(B[2, 1, 0:64], d)
    Tx.warp.mul(d, s, factor, rounding_mode="rm")
    Tx.warp.copy(B[2, 2, 0:64], d)
    Tx.warp.mul(d, s, factor, rounding_mode="rp")
    Tx.warp.copy(B[2, 3, 0:64], d)
    Tx.warp.fma(d, s, factor, rest, rounding_mode="rn")
    Tx.warp.copy(B[3, 0, 0:64], d)
    Tx.warp.fma(d, s, factor, rest, rounding_mode="rz")
    Tx.warp.copy(B[3, 1, 0:64], d)
    Tx.warp.fma(d, s, factor, rest, rounding_mode="rm")
    Tx.warp.copy(B[3, 2, 0:64], d)
    Tx.warp.fma(d, s, factor, rest, rounding_mode="rp")
    Tx.warp.copy(B[3, 3, 0:64], d)


# Each lane has two neighbours, which sm_100 computes by one instruction.
# sim: float32_registers
#   A: float32[64] = value(i) * 2.0**-10
#   B: float32[4x4x64] = 0 -> expected(i, j, k, 23)
@T.prim_func
def float32_registers(A: T.Buffer((64,), "float32"), B: T.Buffer((4, 4, 64), "float32")):
    T.device_entry()
    T.cta_id([1])
    T.lane_id([32])
    T.thread_id([32])
    s = T.alloc_buffer((64,), "float32", scope="local", layout=TileLayout(S[(32, 2) : (1 @ laneid, 1)]))
    d = T.alloc_buffer((64,), "float32", scope="local", layout=TileLayout(S[(32, 2) : (1 @ laneid, 1)]))
    Tx.warp.copy(s, A)
    in_registers(B, d, s, T.float32(91.0 * 2.0**-30), T.float32(1.0 + 5.0 * 2.0**-21), T.float32(3.0 * 2.0**-31))
