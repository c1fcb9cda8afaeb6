//! Intrinsics that are arithmetic alone.

use tirx_ir::intrin::Op;
use tirx_ir::{BinOp, DType, Expr};
use tirx_source::diagnostic::{Result, error};

use super::Compiler;
use super::registers::Val;
use tirx_sim_machine::alu::{Bin, Un};
use tirx_sim_machine::bytecode::{Inst, Operand};
use tirx_sim_machine::numeric::Kind;

impl Compiler<'_> {
    /// A function of the tables below, lane by lane.
    pub(super) fn elementary(&mut self, op: Op, args: &[Expr], lanes: u16) -> Result<Option<Vec<Val>>> {
        if let Some(un) = unary(op) {
            return self
                .lanewise(&[&args[0]], lanes, |c, v| c.math(un, v[0]))
                .map(Some);
        }
        let binary = binary(op);
        let Some(bin) = binary.or(bitwise(op)) else {
            return Ok(None);
        };
        let values = self.lanewise(&[&args[0], &args[1]], lanes, |c, v| {
            if binary.is_none() {
                return c.written_bit_operation(bin, v[0], v[1]);
            }
            let kind = v[0].kind;
            let value = c.bin(bin, kind, kind, v[0], v[1])?;
            c.canonical(value)
        });
        values.map(Some)
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

    /// `(x * y + (1 << (q - s - 1))) >> (q - s)`, TVM's fixed-point product: arguments x, y, q, s.
    pub(super) fn q_multiply_shift(&mut self, args: &[Expr]) -> Result<Val> {
        let mut v = Vec::new();
        for arg in args {
            let value = self.value(arg)?;
            v.push(self.convert(value, Kind::I64)?);
        }
        let [x, y, q, s] = v[..] else {
            return error(self.span, "q_multiply_shift takes four arguments");
        };
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
    pub(super) fn dp4a(&mut self, args: &[Expr], dtype: DType) -> Result<Val> {
        let kind = self.kind(dtype)?;
        let mut sides = Vec::new();
        for arg in &args[..2] {
            let byte = if arg.dtype.is_uint() {
                DType::UINT8
            } else {
                DType::INT8
            };
            sides.push(self.reinterpret(arg, byte.with_lanes(4))?);
        }
        let accumulator = self.value(&args[2])?;
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

fn unary(op: Op) -> Option<Un> {
    Some(match op {
        Op::Exp => Un::Exp,
        Op::Exp2 => Un::Exp2,
        Op::Exp10 => Un::Exp10,
        Op::Erf => Un::Erf,
        Op::Tanh => Un::Tanh,
        Op::Sigmoid => Un::Sigmoid,
        Op::Log => Un::Log,
        Op::Log2 => Un::Log2,
        Op::Log10 => Un::Log10,
        Op::Log1p => Un::Log1p,
        Op::Tan => Un::Tan,
        Op::Cos => Un::Cos,
        Op::Cosh => Un::Cosh,
        Op::Sin => Un::Sin,
        Op::Sinh => Un::Sinh,
        Op::Asin => Un::Asin,
        Op::Acos => Un::Acos,
        Op::Atan => Un::Atan,
        Op::Acosh => Un::Acosh,
        Op::Asinh => Un::Asinh,
        Op::Atanh => Un::Atanh,
        Op::Sqrt => Un::Sqrt,
        Op::Rsqrt => Un::Rsqrt,
        Op::Floor => Un::Floor,
        Op::Ceil => Un::Ceil,
        Op::Trunc => Un::Trunc,
        // To nearest even, as the CUDA text has it.
        Op::Round => Un::Nearbyint,
        Op::Nearbyint => Un::Nearbyint,
        Op::Fabs => Un::Abs,
        _ => return None,
    })
}

fn binary(op: Op) -> Option<Bin> {
    Some(match op {
        Op::Atan2 => Bin::Atan2,
        Op::Pow => Bin::Pow,
        Op::Fmod => Bin::Fmod,
        Op::Hypot => Bin::Hypot,
        Op::Copysign => Bin::Copysign,
        Op::Nextafter => Bin::Nextafter,
        _ => return None,
    })
}

fn bitwise(op: Op) -> Option<Bin> {
    Some(match op {
        Op::BitwiseAnd => Bin::And,
        Op::BitwiseOr => Bin::Or,
        Op::BitwiseXor => Bin::Xor,
        Op::ShiftLeft => Bin::Shl,
        Op::ShiftRight => Bin::ShrS,
        _ => return None,
    })
}
