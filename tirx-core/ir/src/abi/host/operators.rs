//! The operators of host code: one row for each operator and kind of operand.
//!
//! A row states the spelling in both host languages and the value. Host code is defined for all inputs:
//!
//! | operation | result |
//! |---|---|
//! | integer arithmetic | wraps to the dtype |
//! | division | an error if the divisor is zero or the quotient does not fit 64 bits; `//` and `%` round to minus infinity, `T.truncdiv` and `T.truncmod` to zero |
//! | shift | the count is taken modulo the width; a right shift of a signed number copies the sign |
//! | minimum, maximum of floats | `a < b ? a : b`, as in TVM's C: the second operand if one of them is NaN, or if they are equal |
//! | float to integer | truncates; out of range gives the nearest integer of the dtype, NaN gives zero |
//! | number to bool | whether it differs from zero |
//! | `float16`, `bfloat16` | computed in `float64`, rounded once |
//! | `~` of a bool | logical negation |
//! | `T.exp`, `T.log` and other functions of [`Meaning::Library`] | the last bits depend on the platform's library |

use crate::fold::{div_rem, floor_div, floor_mod};
use crate::intrin::Op;
use crate::ir::{BinOp, DType, Expr, odd_f32};

/// An operation of the IR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostOperation {
    /// An operator on two operands.
    Binary(BinOp),
    /// Logical negation.
    Not,
    /// A call.
    Call(Op),
}

/// The operands that a row is for. All operands of an operation have one dtype, except for the count of a shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandClass {
    /// Integers, bools and addresses.
    Integers,
    /// Signed integers.
    Signed,
    /// Unsigned integers.
    Unsigned,
    /// Bools.
    Bools,
    /// `float32` and `float64`. Halves are widened before the row is looked up.
    Floats,
}

impl OperandClass {
    fn has(self, dtype: DType) -> bool {
        match self {
            OperandClass::Integers => !dtype.is_floating(),
            OperandClass::Signed => dtype.is_int(),
            OperandClass::Unsigned => dtype.is_uint(),
            OperandClass::Bools => dtype.is_bool(),
            OperandClass::Floats => dtype.is_float() && matches!(dtype.bits, 32 | 64),
        }
    }
}

/// The template of an operation in a host language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostTemplate {
    /// `a + b`
    Infix(&'static str),
    /// `!a`
    Prefix(&'static str),
    /// `a.min(b)`
    Method(&'static str),
    /// `f(a, b)`
    Function(&'static str),
    /// `a < b ? a : b`
    Select(&'static str),
    /// A function of 64-bit integers that reports a zero divisor, and a shorter form for positive constant divisors.
    Division(&'static str, Option<&'static HostTemplate>),
    /// A shift whose count is reduced modulo the width.
    Shift(&'static str),
    /// A function of the bits of an integer.
    Bits(&'static str),
    /// A function of the bits of an integer and of their number.
    BitsOfWidth(&'static str),
    /// A function of `math.h`: its name for `double`.
    Math(&'static str),
}

/// The value of an operation.
#[derive(Clone, Copy, Debug)]
pub enum Meaning {
    /// Of integers, before it wraps; the dtype is the operands'. The second operand of a unary operation is zero.
    Integer(fn(DType, i128, i128) -> i128),
    /// Of floats, before it is rounded. 64 bits are enough: the result of each of these is rounded to `float32` as if computed once.
    Float(fn(f64, f64) -> f64),
    /// A comparison of floats.
    Truth(fn(f64, f64) -> bool),
    /// A function of the platform's mathematical library.
    Library,
}

/// A row of the table.
#[derive(Debug)]
pub struct HostOperator {
    /// The operation.
    pub operation: HostOperation,
    /// The operands that the row is for.
    pub operands: OperandClass,
    /// Rust's template.
    pub rust: HostTemplate,
    /// C's template.
    pub c: HostTemplate,
    /// The value.
    pub meaning: Meaning,
    /// The name of the operation in checked arithmetic, which launch extents and conditions are computed in: `tirx_rt::host::Wide::add`,
    /// `tirx_wide_add`.
    pub checked: Option<&'static str>,
}

/// A value of host code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// An integer, a bool or an address.
    Int(i128),
    /// A float.
    Float(f64),
}

/// The reason that an operation has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trap {
    /// The divisor is zero, or the quotient does not fit 64 bits.
    Division,
    /// An operand has another kind than its dtype states.
    Kind,
}

use BinOp::{Add, And, Div, Eq, FloorDiv, FloorMod, Ge, Gt, Le, Lt, Max, Min, Mod, Mul, Ne, Or, Sub};
use HostOperation::{Binary, Call, Not};
use HostTemplate::{Bits, BitsOfWidth, Division, Function, Infix, Math, Method, Prefix, Select, Shift};
use Meaning::{Float, Integer, Library, Truth};
use OperandClass::{Bools, Floats, Integers, Signed, Unsigned};

const fn row(
    operation: HostOperation,
    operands: OperandClass,
    rust: HostTemplate,
    c: HostTemplate,
    meaning: Meaning,
) -> HostOperator {
    HostOperator {
        operation,
        operands,
        rust,
        c,
        meaning,
        checked: None,
    }
}

/// A row with a name in checked arithmetic.
const fn checked(
    checked: &'static str,
    op: BinOp,
    operands: OperandClass,
    rust: HostTemplate,
    c: HostTemplate,
    meaning: fn(DType, i128, i128) -> i128,
) -> HostOperator {
    HostOperator {
        checked: Some(checked),
        ..row(Binary(op), operands, rust, c, Integer(meaning))
    }
}

/// A function of the mathematical library, in Rust a method.
const fn math(op: Op, rust: &'static str, c: &'static str, meaning: Meaning) -> HostOperator {
    row(Call(op), Floats, Method(rust), Math(c), meaning)
}

/// A comparison has one sign in both languages.
const fn comparison(op: BinOp, sign: &'static str, operands: OperandClass, meaning: Meaning) -> HostOperator {
    row(Binary(op), operands, Infix(sign), Infix(sign), meaning)
}

/// All rows.
#[rustfmt::skip]
pub static HOST_OPERATORS: &[HostOperator] = &[
    checked("add", Add, Integers, Method("wrapping_add"), Infix("+"), |_, a, b| a.wrapping_add(b)),
    checked("sub", Sub, Integers, Method("wrapping_sub"), Infix("-"), |_, a, b| a.wrapping_sub(b)),
    checked("mul", Mul, Integers, Method("wrapping_mul"), Infix("*"), |_, a, b| a.wrapping_mul(b)),
    checked("min", Min, Integers, Method("min"), Select("<"), |_, a, b| a.min(b)),
    checked("max", Max, Integers, Method("max"), Select(">"), |_, a, b| a.max(b)),
    checked("div", Div, Signed, Division("trunc_div", Some(&Infix("/"))), Division("tirx_truncdiv", Some(&Infix("/"))), |_, a, b| div_rem(a, b).0),
    checked("rem", Mod, Signed, Division("trunc_mod", Some(&Infix("%"))), Division("tirx_truncmod", Some(&Infix("%"))), |_, a, b| div_rem(a, b).1),
    checked("floor_div", FloorDiv, Signed, Division("floor_div", Some(&Method("div_euclid"))), Division("tirx_floordiv", None), |_, a, b| floor_div(a, b)),
    checked("floor_mod", FloorMod, Signed, Division("floor_mod", Some(&Method("rem_euclid"))), Division("tirx_floormod", None), |_, a, b| floor_mod(a, b)),
    checked("div", Div, Unsigned, Division("unsigned_div", Some(&Infix("/"))), Division("tirx_udiv", Some(&Infix("/"))), |_, a, b| a / b),
    checked("rem", Mod, Unsigned, Division("unsigned_mod", Some(&Infix("%"))), Division("tirx_umod", Some(&Infix("%"))), |_, a, b| a % b),
    checked("floor_div", FloorDiv, Unsigned, Division("unsigned_div", Some(&Infix("/"))), Division("tirx_udiv", Some(&Infix("/"))), |_, a, b| a / b),
    checked("floor_mod", FloorMod, Unsigned, Division("unsigned_mod", Some(&Infix("%"))), Division("tirx_umod", Some(&Infix("%"))), |_, a, b| a % b),

    row(Binary(Add), Floats, Infix("+"), Infix("+"), Float(|a, b| a + b)),
    row(Binary(Sub), Floats, Infix("-"), Infix("-"), Float(|a, b| a - b)),
    row(Binary(Mul), Floats, Infix("*"), Infix("*"), Float(|a, b| a * b)),
    row(Binary(Div), Floats, Infix("/"), Infix("/"), Float(|a, b| a / b)),
    row(Binary(Min), Floats, Function("::tirx_rt::host::min"), Select("<"), Float(|a, b| if a < b { a } else { b })),
    row(Binary(Max), Floats, Function("::tirx_rt::host::max"), Select(">"), Float(|a, b| if a > b { a } else { b })),

    comparison(Eq, "==", Integers, Integer(|_, a, b| (a == b).into())),
    comparison(Ne, "!=", Integers, Integer(|_, a, b| (a != b).into())),
    comparison(Lt, "<", Integers, Integer(|_, a, b| (a < b).into())),
    comparison(Le, "<=", Integers, Integer(|_, a, b| (a <= b).into())),
    comparison(Gt, ">", Integers, Integer(|_, a, b| (a > b).into())),
    comparison(Ge, ">=", Integers, Integer(|_, a, b| (a >= b).into())),
    comparison(Eq, "==", Floats, Truth(|a, b| a == b)),
    comparison(Ne, "!=", Floats, Truth(|a, b| a != b)),
    comparison(Lt, "<", Floats, Truth(|a, b| a < b)),
    comparison(Le, "<=", Floats, Truth(|a, b| a <= b)),
    comparison(Gt, ">", Floats, Truth(|a, b| a > b)),
    comparison(Ge, ">=", Floats, Truth(|a, b| a >= b)),

    row(Binary(And), Bools, Infix("&&"), Infix("&&"), Integer(|_, a, b| (a != 0 && b != 0).into())),
    row(Binary(Or), Bools, Infix("||"), Infix("||"), Integer(|_, a, b| (a != 0 || b != 0).into())),
    row(Not, Bools, Prefix("!"), Prefix("!"), Integer(|_, a, _| (a == 0).into())),

    row(Call(Op::BitwiseAnd), Integers, Infix("&"), Infix("&"), Integer(|_, a, b| a & b)),
    row(Call(Op::BitwiseOr), Integers, Infix("|"), Infix("|"), Integer(|_, a, b| a | b)),
    row(Call(Op::BitwiseXor), Integers, Infix("^"), Infix("^"), Integer(|_, a, b| a ^ b)),
    row(Call(Op::BitwiseNot), Bools, Prefix("!"), Prefix("!"), Integer(|_, a, _| (a == 0).into())),
    row(Call(Op::BitwiseNot), Integers, Prefix("!"), Prefix("~"), Integer(|_, a, _| !a)),
    row(Call(Op::ShiftLeft), Integers, Shift("wrapping_shl"), Shift("<<"), Integer(|t, a, b| a << count(t, b))),
    row(Call(Op::ShiftRight), Integers, Shift("wrapping_shr"), Shift(">>"), Integer(|t, a, b| a >> count(t, b))),
    row(Call(Op::Popcount), Integers, Bits("count_ones"), Bits("tirx_popcount"), Integer(|t, a, _| unsigned(t, a).count_ones().into())),
    row(Call(Op::Clz), Integers, Bits("leading_zeros"), BitsOfWidth("tirx_clz"), Integer(|t, a, _| i128::from(unsigned(t, a).leading_zeros()) + i128::from(t.bits) - 128)),

    math(Op::Ceil, "ceil", "ceil", Float(|a, _| a.ceil())),
    math(Op::Floor, "floor", "floor", Float(|a, _| a.floor())),
    math(Op::Trunc, "trunc", "trunc", Float(|a, _| a.trunc())),
    // To nearest, ties to even: C's `nearbyint` in the default mode.
    math(Op::Round, "round_ties_even", "nearbyint", Float(|a, _| a.round_ties_even())),
    math(Op::Nearbyint, "round_ties_even", "nearbyint", Float(|a, _| a.round_ties_even())),
    math(Op::Fabs, "abs", "fabs", Float(|a, _| a.abs())),
    math(Op::Sqrt, "sqrt", "sqrt", Float(|a, _| a.sqrt())),
    math(Op::Exp, "exp", "exp", Library),
    math(Op::Exp2, "exp2", "exp2", Library),
    math(Op::Log, "ln", "log", Library),
    math(Op::Log2, "log2", "log2", Library),
    math(Op::Log10, "log10", "log10", Library),
    math(Op::Pow, "powf", "pow", Library),
];

/// The count of a shift, modulo the width.
fn count(dtype: DType, count: i128) -> u32 {
    count.rem_euclid(i128::from(dtype.bits)) as u32
}

/// The bits of an integer without its sign.
fn unsigned(dtype: DType, value: i128) -> i128 {
    value & ((1 << dtype.bits) - 1)
}

impl HostOperator {
    /// The row of an operation on operands of a dtype; `None` if host code has no such operation.
    pub fn find(operation: HostOperation, dtype: DType) -> Option<&'static HostOperator> {
        (HOST_OPERATORS.iter()).find(|row| row.operation == operation && row.operands.has(dtype))
    }

    /// The row's operator on two operands, if it is one.
    pub fn binary(&self) -> Option<BinOp> {
        match self.operation {
            Binary(op) => Some(op),
            _ => None,
        }
    }

    /// Whether the operation has no value for these operands.
    fn traps(&self, a: i128, b: i128) -> bool {
        matches!(self.rust, Division(..)) && (b == 0 || (b == -1 && a == i128::from(i64::MIN)))
    }

    /// The value for operands of dtype `operand`, as a value of dtype `result`. `library` computes the functions of
    /// [`Meaning::Library`].
    ///
    /// # Errors
    /// See [`Trap`].
    pub fn evaluate(
        &self,
        operand: DType,
        result: DType,
        operands: &[Scalar],
        library: fn(Op, f64, f64) -> f64,
    ) -> Result<Scalar, Trap> {
        let float = |value| Ok(Scalar::Float(round(result, value)));
        match (self.meaning, operands) {
            (Integer(meaning), [Scalar::Int(a), rest @ ..]) => {
                let b = match rest {
                    [] => 0,
                    [Scalar::Int(b)] => *b,
                    _ => return Err(Trap::Kind),
                };
                if self.traps(*a, b) {
                    return Err(Trap::Division);
                }
                Ok(Scalar::Int(result.wrap(meaning(operand, *a, b))))
            }
            (Truth(meaning), [Scalar::Float(a), Scalar::Float(b)]) => Ok(Scalar::Int(meaning(*a, *b).into())),
            (Float(meaning), [Scalar::Float(a)]) => float(meaning(*a, 0.0)),
            (Float(meaning), [Scalar::Float(a), Scalar::Float(b)]) => float(meaning(*a, *b)),
            (Library, [Scalar::Float(a), rest @ ..]) => match (self.operation, rest) {
                (Call(op), []) => float(library(op, *a, 0.0)),
                (Call(op), [Scalar::Float(b)]) => float(library(op, *a, *b)),
                _ => Err(Trap::Kind),
            },
            _ => Err(Trap::Kind),
        }
    }

    /// The value of two 64-bit integers in checked arithmetic; `None` if it does not fit 64 bits or does not exist.
    pub fn evaluate_checked(&self, a: i64, b: i64) -> Option<i64> {
        let (a, b) = (i128::from(a), i128::from(b));
        match self.meaning {
            Integer(meaning) if !self.traps(a, b) => meaning(DType::INT64, a, b).try_into().ok(),
            _ => None,
        }
    }
}

impl Scalar {
    /// The value converted to a dtype; `from` is the dtype that it has.
    pub fn convert(self, to: DType) -> Scalar {
        match self {
            Scalar::Int(v) if to.is_floating() => Scalar::Float(match to.bits {
                32 => f64::from(v as f32),
                _ => round(to, v as f64),
            }),
            Scalar::Int(v) => Scalar::Int(to.wrap(v)),
            Scalar::Float(v) if to.is_floating() => Scalar::Float(round(to, v)),
            Scalar::Float(v) if to.is_bool() => Scalar::Int((v != 0.0).into()),
            Scalar::Float(v) => {
                let (min, max) = (
                    to.min_int().unwrap_or(i128::MIN),
                    to.max_int().unwrap_or(i128::MAX),
                );
                Scalar::Int((v as i128).clamp(min, max))
            }
        }
    }

    /// The bits of a value of a dtype.
    pub fn to_bits(self, dtype: DType) -> u64 {
        match self {
            Scalar::Int(v) if dtype.is_handle() || dtype.bits == 64 => v as u64,
            Scalar::Int(v) => unsigned(dtype, v) as u64,
            Scalar::Float(v) => match (dtype.is_bfloat16(), dtype.bits) {
                (_, 64) => v.to_bits(),
                (_, 32) => u64::from((v as f32).to_bits()),
                (true, _) => u64::from(crate::ir::bf16::from_f32(odd_f32(v)).to_bits()),
                (false, _) => u64::from(crate::ir::f16::from_f32(odd_f32(v)).to_bits()),
            },
        }
    }

    /// The value of a dtype that has these bits.
    pub fn from_bits(dtype: DType, bits: u64) -> Scalar {
        if !dtype.is_floating() {
            return Scalar::Int(dtype.wrap(bits.into()));
        }
        Scalar::Float(match (dtype.is_bfloat16(), dtype.bits) {
            (_, 64) => f64::from_bits(bits),
            (_, 32) => f64::from(f32::from_bits(bits as u32)),
            (true, _) => crate::ir::bf16::from_bits(bits as u16).to_f64(),
            (false, _) => crate::ir::f16::from_bits(bits as u16).to_f64(),
        })
    }
}

/// A number rounded to a floating dtype.
fn round(dtype: DType, value: f64) -> f64 {
    Expr::float(dtype, value).as_float().unwrap_or(value)
}
