//! Operations on bits and on integers in fixed point.

use super::kinds::*;
use crate::intrin::row::*;
use crate::intrin::{Effect::Pure, ResultRule};
use crate::ir::DType;

const EACH_LANE: Traits = Traits::PLAIN.elementwise();

rows! { $ bits {
    /// `x & y`.
    BitwiseAnd = Row::new("tirx.bitwise_and", "bitwise_and", special()).args(&[arg("x", ANY), arg("y", ANY)])
        .value(ResultRule::Arg(0)).effect(Pure).traits(EACH_LANE);
    /// `x | y`.
    BitwiseOr = Row::new("tirx.bitwise_or", "bitwise_or", special()).args(&[arg("x", ANY), arg("y", ANY)])
        .value(ResultRule::Arg(0)).effect(Pure).traits(EACH_LANE);
    /// `x ^ y`.
    BitwiseXor = Row::new("tirx.bitwise_xor", "bitwise_xor", special()).args(&[arg("x", ANY), arg("y", ANY)])
        .value(ResultRule::Arg(0)).effect(Pure).traits(EACH_LANE);
    /// `x << y`.
    ShiftLeft = Row::new("tirx.shift_left", "shift_left", special()).args(&[arg("x", ANY), arg("y", ANY)])
        .value(ResultRule::Arg(0)).effect(Pure).traits(EACH_LANE);
    /// `x >> y`, arithmetic for signed `x`.
    ShiftRight = Row::new("tirx.shift_right", "shift_right", special()).args(&[arg("x", ANY), arg("y", ANY)])
        .value(ResultRule::Arg(0)).effect(Pure).traits(EACH_LANE);
    /// `~x`.
    BitwiseNot = Row::new("tirx.bitwise_not", "bitwise_not", special()).args(&[arg("x", ANY)])
        .value(ResultRule::Arg(0)).effect(Pure).traits(EACH_LANE);
    /// Number of one bits.
    Popcount = Row::new("tirx.popcount", "popcount", special()).args(&[arg("x", ANY)]).value(ResultRule::Arg(0))
        .effect(Pure).traits(EACH_LANE);
    /// Number of leading zero bits.
    Clz = Row::new("tirx.clz", "clz", special()).args(&[arg("x", ANY)]).gives(DType::INT32).effect(Pure)
        .traits(EACH_LANE);
    /// Position of the lowest one bit, from 1; 0 for none.
    CudaFfsU32 = Row::new("tirx.cuda.ffs_u32", "cuda.ffs_u32", expression("(unsigned int)__ffs($value$)"))
        .args(&[arg("value", U32)]).gives(DType::INT32).effect(Pure).range(0, 32)
        .section("CUDA Math API: integer intrinsics");
    /// A function of three bits, for each bit of `a`, `b` and `c`: bit `4 * a + 2 * b + c` of `lut` is its value, so that
    /// `a & b | c` is `0xF0 & 0xCC | 0xAA`.
    PtxLop3B32 = Row::new("tirx.ptx.lop3_b32", "ptx.lop3.b32", pure_ptx("lop3.b32 {result}, {a}, {b}, {c}, {lut};"))
        .args(&[arg("a", U32), arg("b", U32), arg("c", U32), arg("lut", ArgKind::Immediate(0, 255))])
        .gives(DType::UINT32).effect(Pure).section("lop3");
    /// Position of the n-th set bit from a base: mask, base, offset.
    PtxFnsB32 = Row::new("tirx.ptx.fns_b32", "ptx.fns_b32", pure_ptx("fns.b32 {result}, {mask}, {base}, {offset};"))
        .args(&[arg("mask", U32), arg("base", U32), arg("offset", I32)]).gives(DType::UINT32).effect(Pure)
        .section("fns");
    /// A `uint64` constant from its low and high 32 bits.
    LargeUintImm = Row::new("tirx.large_uint_imm", "large_uint_imm", special())
        .args(&[arg("low", ANY), arg("high", ANY)]).value(ResultRule::Given).effect(Pure);
    /// Fixed-point multiply, round, shift.
    QMultiplyShift = Row::new("tirx.q_multiply_shift", "q_multiply_shift", lowered())
        .args(&[arg("x", ANY), arg("y", ANY), arg("q", ANY), arg("s", ANY)]).gives(DType::INT32).effect(Pure);
    /// Fixed-point multiply, round, shift, with the shifts of a channel.
    QMultiplyShiftPerAxis = Row::new("tirx.q_multiply_shift_per_axis", "q_multiply_shift_per_axis", lowered())
        .args(&[arg("x", ANY), arg("y", ANY), arg("ls", ANY), arg("rs", ANY), arg("q", ANY), arg("is_lshift_required", ANY), arg("is_rshift_required", ANY)])
        .gives(DType::INT32).effect(Pure);
    /// Dot product of four bytes plus an accumulator.
    Dp4a = Row::new("tirx.dp4a", "dp4a", special()).args(&[arg("vec1", ANY), arg("vec2", ANY), arg("acc", ANY)])
        .value(ResultRule::Given).effect(Pure);
} }
