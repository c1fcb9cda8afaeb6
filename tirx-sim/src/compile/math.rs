//! Intrinsics that are arithmetic alone.

use tirx_ir::intrin::Op;
use tirx_ir::{BinOp, DType, Expr, at};
use tirx_source::diagnostic::{Result, error};

use super::Compiler;
use super::call::Call;
use super::registers::Val;
use tirx_sim_machine::alu::{Bin, Un};
use tirx_sim_machine::bytecode::{Inst, Operand};
use tirx_sim_machine::numeric::Kind;

impl Compiler<'_> {
    /// A function of the arguments, lane by lane.
    pub(super) fn each_lane(
        &mut self,
        call: &Call<'_>,
        each: impl FnMut(&mut Self, &[Val]) -> Result<Val>,
    ) -> Result<Vec<Val>> {
        let args: Vec<&Expr> = call.args.iter().collect();
        self.lanewise(&args, call.dtype.lanes, each)
    }

    pub(super) fn unary(&mut self, call: &Call<'_>, un: Un) -> Result<Vec<Val>> {
        self.each_lane(call, |c, v| c.math(un, v[0]))
    }

    pub(super) fn function_of_two(&mut self, call: &Call<'_>, bin: Bin) -> Result<Vec<Val>> {
        self.each_lane(call, |c, v| {
            let kind = v[0].kind;
            let value = c.bin(bin, kind, kind, v[0], v[1])?;
            c.canonical(value)
        })
    }

    pub(super) fn bitwise(&mut self, call: &Call<'_>, bin: Bin) -> Result<Vec<Val>> {
        self.each_lane(call, |c, v| c.written_bit_operation(bin, v[0], v[1]))
    }

    /// `ldexp`: the second one is an integer.
    pub(super) fn ldexp(&mut self, v: &[Val]) -> Result<Val> {
        let kind = v[0].kind;
        let exponent = self.convert(v[1], if kind.wide() { Kind::I64 } else { Kind::I32 })?;
        let value = self.bin(Bin::Ldexp, kind, kind, v[0], exponent.with_kind(kind))?;
        self.canonical(value)
    }

    pub(super) fn bit_not(&mut self, v: Val) -> Result<Val> {
        let value = self.un(Un::BitNot, v.kind, v)?;
        self.canonical(value)
    }

    pub(super) fn popcount(&mut self, v: Val) -> Result<Val> {
        let bits = self.bits_in_memory(v)?;
        let value = self.un(Un::Popcount, bits.kind, bits)?;
        Ok(value.with_kind(v.kind))
    }

    pub(super) fn leading_zeros(&mut self, v: Val) -> Result<Val> {
        let value = self.un(Un::Clz, v.kind, v)?;
        Ok(value.with_kind(v.kind))
    }

    /// The number of the first set bit, from 1 on; 0 where there is none.
    pub(super) fn first_set(&mut self, v: Val) -> Result<Val> {
        let value = self.convert(v, Kind::U32)?;
        self.un(Un::Ffs, Kind::U32, value)
    }

    /// A function of one float (or `fabs` of an integer).
    fn math(&mut self, op: Un, v: Val) -> Result<Val> {
        let op = if op == Un::Abs && !v.kind.is_float() {
            if !v.kind.is_signed() {
                return Ok(v);
            }
            Un::AbsS
        } else if !v.kind.is_float() {
            return error(self.span, format!("{op:?} of a value that is no float"));
        } else {
            op
        };
        let value = self.un(op, v.kind, v)?;
        self.canonical(value)
    }

    /// A bit operation of the kernel, whose shifts are checked where overflow is.
    fn written_bit_operation(&mut self, op: Bin, a: Val, b: Val) -> Result<Val> {
        let shift = matches!(op, Bin::Shl | Bin::ShrS);
        self.bits_of(op, a, b, shift && self.options.check_overflow)
    }

    pub(super) fn bit_operation(&mut self, op: Bin, a: Val, b: Val) -> Result<Val> {
        self.bits_of(op, a, b, false)
    }

    fn bits_of(&mut self, op: Bin, a: Val, b: Val, checked: bool) -> Result<Val> {
        let kind = a.kind;
        let b = self.convert(b, kind)?;
        let op = if op == Bin::ShrS && !kind.is_signed() {
            Bin::ShrU
        } else {
            op
        };
        let inst = if checked { op.checked() } else { op };
        let value = self.bin(inst, kind, kind, a, b)?;
        if op == Bin::Shl {
            self.canonical(value)
        } else {
            Ok(value)
        }
    }

    pub(super) fn fma(&mut self, a: Val, b: Val, c: Val) -> Result<Val> {
        let kind = a.kind;
        if let (Operand::S(a), Operand::S(b), Operand::S(c)) = (a.at, b.at, c.at) {
            let d = self.temp_scalar()?;
            self.emit(Inst::FmaS { kind, d, a, b, c });
            return Ok(Val::scalar(kind, d));
        }
        let (a, b, c) = (self.vector(a)?, self.vector(b)?, self.vector(c)?);
        let d = self.temp(kind)?;
        self.emit(Inst::Fma { kind, d, a, b, c });
        Ok(Val::vector(kind, d))
    }

    pub(super) fn classify(&mut self, op: Op, v: Val) -> Result<Val> {
        let kind = v.kind;
        if !kind.is_float() {
            return self.bits(Kind::Bool, (op == Op::Isfinite) as u64);
        }
        if op == Op::Isnan {
            return self.bin(Bin::NeF, kind, Kind::Bool, v, v);
        }
        let magnitude = self.un(Un::Abs, kind, v)?;
        let infinity = if kind == Kind::F64 {
            self.bits(kind, f64::INFINITY.to_bits())?
        } else {
            self.bits(kind, f32::INFINITY.to_bits() as u64)?
        };
        let op = if op == Op::Isinf { Bin::EqF } else { Bin::LtF };
        self.bin(op, kind, Kind::Bool, magnitude, infinity)
    }

    /// `(x * y + (1 << (q - s - 1))) >> (q - s)`, TVM's fixed-point product.
    pub(super) fn q_multiply_shift(&mut self, call: &Call<'_>) -> Result<Val> {
        let mut wide = |at: usize| -> Result<Val> {
            let value = self.value(&call.args[at])?;
            self.convert(value, Kind::I64)
        };
        let (x, y) = (wide(at!(QMultiplyShift.x))?, wide(at!(QMultiplyShift.y))?);
        let (q, s) = (wide(at!(QMultiplyShift.q))?, wide(at!(QMultiplyShift.s))?);
        self.count(5);
        let total = self.binary(BinOp::Sub, q, s)?;
        let one = self.integer(Kind::I64, 1)?;
        let half = self.binary(BinOp::Sub, total, one)?;
        let half = self.bit_operation(Bin::Shl, one, half)?;
        let product = self.binary(BinOp::Mul, x, y)?;
        let sum = self.binary(BinOp::Add, product, half)?;
        let shifted = self.bit_operation(Bin::ShrS, sum, total)?;
        self.convert(shifted, Kind::I32)
    }

    /// Dot product of four bytes (of vectors or packed) plus an accumulator.
    pub(super) fn dp4a(&mut self, call: &Call<'_>) -> Result<Val> {
        let kind = self.kind(call.dtype)?;
        let mut sides = Vec::new();
        for side in ["vec1", "vec2"] {
            let arg = self.argument(call, side)?;
            let byte = if arg.dtype.is_uint() {
                DType::UINT8
            } else {
                DType::INT8
            };
            sides.push(self.reinterpret(arg, byte.with_lanes(4))?);
        }
        let accumulator = self.value(self.argument(call, "acc")?)?;
        let mut sum = self.convert(accumulator, kind)?;
        self.count(8);
        for (a, b) in sides[0].iter().zip(&sides[1]) {
            let a = self.convert(*a, kind)?;
            let b = self.convert(*b, kind)?;
            let product = self.binary(BinOp::Mul, a, b)?;
            sum = self.binary(BinOp::Add, sum, product)?;
        }
        Ok(sum)
    }
}
