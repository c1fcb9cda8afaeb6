//! The text of binary operators.

use super::code::{Code, Width, int_literal, level};
use super::emitter::Emitter;
use super::expr::paren_and;
use super::helpers::Helper;
use super::{defects, types};
use crate::diagnostic::{Diagnostic, Result};
use crate::ir::{BinOp, DType, Expr, ExprKind};
use crate::source::Span;

impl Emitter<'_, '_> {
    /// An operator on two elements of one dtype; integer constants are known as such.
    pub(super) fn binary(
        &mut self,
        op: BinOp,
        dtype: DType,
        (a, a_const): (Code, Option<i128>),
        (b, b_const): (Code, Option<i128>),
        span: Span,
    ) -> Result<Code> {
        let dtype = dtype.element();
        if matches!(op, BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod)
            && dtype.is_integer()
            && b_const == Some(0)
        {
            return Err(Box::new(division_by_zero(span)));
        }
        if dtype.is_small_float() {
            let (x, y) = (a.cast("float"), b.cast("float"));
            let code = self.binary(op, DType::FLOAT32, (x, None), (y, None), span)?;
            return if op.is_comparison() {
                Ok(code)
            } else {
                self.cast(code, DType::FLOAT32, dtype, span)
            };
        }
        if let Some(negated) = match op {
            BinOp::Sub if a_const == Some(0) => Some(&b),
            BinOp::Mul if b_const == Some(-1) => Some(&a),
            _ => None,
        } && let Some(helper) = defects::negation(dtype, &self.facts)
        {
            self.unit.needs.helpers.insert(helper);
            if helper == Helper::NegatedWide {
                let ty = self.spell(dtype, span)?;
                return Ok(Code::primary(format!("tirx_negated_wide({})", negated.text)).cast(&ty));
            }
            let code = Code::primary(format!("tirx_negated({})", negated.text));
            return Ok(if dtype.bits < 32 {
                code.with_width(Width::Dirty)
            } else {
                code
            });
        }
        // C++ computes with bools as `int`; the result is converted back to bool here.
        let narrow = types::is_promoted(dtype) || dtype.is_bool();
        let simple = |sign: &str, at: u8, a: Code, b: Code| {
            let (mut text, right) = (a.at(at), b.at(at + 1));
            text.reserve(sign.len() + right.len() + 2);
            text.push(' ');
            text.push_str(sign);
            text.push(' ');
            text.push_str(&right);
            Code::new(text, at)
        };
        let (a, b) = match op {
            BinOp::Add | BinOp::Sub if !dtype.is_bool() => (a, b),
            // Whether nvcc may recognize the expression as a comparison with zero.
            _ if op.is_comparison() && (matches!(op, BinOp::Eq | BinOp::Ne) || dtype.is_uint()) => {
                if a_const.is_none() {
                    (self.hidden(a, dtype), b.in_range(dtype))
                } else {
                    (a.in_range(dtype), self.hidden(b, dtype))
                }
            }
            _ => (a.in_range(dtype), b.in_range(dtype)),
        };
        let computed = |code: Code, width: Width| match narrow {
            true if dtype.is_bool() => code.with_width(Width::Dirty),
            true => code.with_width(width),
            false => code,
        };
        Ok(match op {
            BinOp::Add => computed(simple("+", level::SUM, a, b), Width::Dirty),
            BinOp::Sub => computed(simple("-", level::SUM, a, b), Width::Dirty),
            BinOp::Mul => computed(simple("*", level::PRODUCT, a, b), Width::Dirty),
            BinOp::Div => computed(simple("/", level::PRODUCT, a, b), Width::Dirty),
            BinOp::Mod if dtype.is_floating() => {
                self.math(crate::intrin::Op::Fmod, dtype, vec![a, b], span)?
            }
            BinOp::Mod => computed(simple("%", level::PRODUCT, a, b), Width::Promoted),
            BinOp::FloorDiv if dtype.is_floating() => {
                let quotient = simple("/", level::PRODUCT, a, b);
                self.math(crate::intrin::Op::Floor, dtype, vec![quotient], span)?
            }
            BinOp::FloorMod if dtype.is_floating() => {
                let a = self.temporary("a", dtype, a, span)?;
                let b = self.temporary("b", dtype, b, span)?;
                let quotient = simple("/", level::PRODUCT, a.clone(), b.clone());
                let floor = self.math(crate::intrin::Op::Floor, dtype, vec![quotient], span)?;
                let product = simple("*", level::PRODUCT, floor, b);
                simple("-", level::SUM, a, product)
            }
            BinOp::FloorDiv | BinOp::FloorMod => {
                let divide = op == BinOp::FloorDiv;
                let power = b_const.filter(|v| *v > 0 && v.count_ones() == 1);
                match power {
                    _ if !dtype.is_int()
                        || a_const.is_some_and(|v| v >= 0) && b_const.is_some_and(|v| v > 0) =>
                    {
                        let sign = if divide { "/" } else { "%" };
                        computed(simple(sign, level::PRODUCT, a, b), Width::Promoted)
                    }
                    Some(p) if divide => {
                        let at = level::UNARY;
                        let text = format!("{} >> {}", a.at(at), p.trailing_zeros());
                        computed(Code::new(text, level::SHIFT), Width::Promoted)
                    }
                    Some(p) => {
                        let mask = int_literal(dtype, p - 1);
                        let text = format!("{} & {}", a.at(level::UNARY), mask.at(level::UNARY));
                        computed(Code::new(text, level::BIT_AND), Width::Promoted)
                    }
                    None => {
                        let positive = b_const.is_some_and(|v| v > 0);
                        let helper = if positive {
                            Helper::FloorDivisionByPositive
                        } else {
                            Helper::FloorDivision
                        };
                        self.unit.needs.helpers.insert(helper);
                        let name = match (divide, positive) {
                            (true, true) => "tirx_floordiv_positive",
                            (true, false) => "tirx_floordiv",
                            (false, true) => "tirx_floormod_positive",
                            (false, false) => "tirx_floormod",
                        };
                        let ty = match dtype.bits {
                            64 => "<int64_t>",
                            32 => "",
                            _ => "<int>",
                        };
                        let code = Code::primary(format!("{name}{ty}({}, {})", a.text, b.text));
                        computed(code, Width::Dirty)
                    }
                }
            }
            BinOp::Min | BinOp::Max if dtype.is_bool() => {
                let (sign, at) = if op == BinOp::Min {
                    ("&", level::BIT_AND)
                } else {
                    ("|", level::BIT_OR)
                };
                let text = format!("{} {sign} {}", a.at(level::UNARY), b.at(level::UNARY));
                Code::new(text, at).cast("bool")
            }
            BinOp::Min | BinOp::Max => {
                let mut name = if op == BinOp::Min { "min" } else { "max" }.to_string();
                if types::is_half(dtype) {
                    let bf16 = dtype.is_bfloat16();
                    self.unit.needs.helpers.insert(if bf16 {
                        Helper::Bf16MinMax
                    } else {
                        Helper::HalfMinMax
                    });
                    name.insert_str(0, "tirx_");
                }
                computed(
                    Code::primary(format!("{name}({}, {})", a.text, b.text)),
                    Width::Promoted,
                )
            }
            BinOp::Eq => simple("==", level::EQUAL, a, b),
            BinOp::Ne => simple("!=", level::EQUAL, a, b),
            BinOp::Lt => simple("<", level::LESS, a, b),
            BinOp::Le => simple("<=", level::LESS, a, b),
            BinOp::Gt => simple(">", level::LESS, a, b),
            BinOp::Ge => simple(">=", level::LESS, a, b),
            BinOp::And => simple("&&", level::AND, a, b),
            BinOp::Or => Code::new(format!("{} || {}", paren_and(a), paren_and(b)), level::OR),
        })
    }

    /// A binary operator on the lanes of `a` and `b`.
    pub(super) fn binary_lanes(
        &mut self,
        op: BinOp,
        (a, xs): (&Expr, Vec<Code>),
        (b, ys): (&Expr, Vec<Code>),
        span: Span,
    ) -> Result<Vec<Code>> {
        let (way, ca, cb) = (self.way_of(op, a, b), constant(a), constant(b));
        xs.into_iter()
            .zip(ys)
            .map(|(x, y)| self.binary_by(way, span, a.dtype, (x, ca), (y, cb)))
            .collect()
    }

    /// How to compute `a op b`. Where the operands' ranges exclude negative values, floor division becomes truncating
    /// division, if necessary after adding a multiple of the divisor to the dividend.
    pub(super) fn way_of(&self, op: BinOp, a: &Expr, b: &Expr) -> Way {
        let dtype = a.dtype.element();
        let divides =
            matches!(op, BinOp::FloorDiv | BinOp::FloorMod) && dtype.is_int() && constant(a).is_none();
        let divisor = constant(b);
        if !divides || divisor.is_some_and(|v| v > 0 && v.count_ones() == 1) {
            return Way::Is(op);
        }
        let bound = self.analyzer.const_int_bound(a);
        if bound.min >= 0 && self.is_nonnegative(b) {
            return Way::Is(if op == BinOp::FloorDiv {
                BinOp::Div
            } else {
                BinOp::Mod
            });
        }
        if let Some(divisor) = divisor
            && divisor > 0
            && dtype.bits >= 32
            && bound.is_finite()
        {
            let turns = (-bound.min + divisor - 1) / divisor;
            let up = turns * divisor;
            if dtype.max_int().is_some_and(|max| bound.max + up <= max) {
                return Way::MovedUp { op, turns, up };
            }
        }
        Way::Is(op)
    }

    /// The operator on one lane.
    pub(super) fn binary_by(
        &mut self,
        way: Way,
        span: Span,
        dtype: DType,
        x: (Code, Option<i128>),
        y: (Code, Option<i128>),
    ) -> Result<Code> {
        let (op, turns, up) = match way {
            Way::Is(op) => return self.binary(op, dtype, x, y, span),
            Way::MovedUp { op, turns, up } => (op, turns, up),
        };
        let element = dtype.element();
        let moved = (int_literal(element, up), Some(up));
        let x = self.binary(BinOp::Add, element, (x.0, None), moved, span)?;
        if op == BinOp::FloorMod {
            return self.binary(BinOp::Mod, element, (x, None), y, span);
        }
        let quotient = self.binary(BinOp::Div, element, (x, None), y, span)?;
        let back = (int_literal(element, turns), Some(turns));
        self.binary(BinOp::Sub, element, (quotient, None), back, span)
    }

    /// Whether `e` is an integer that cannot be negative.
    pub(super) fn is_nonnegative(&self, e: &Expr) -> bool {
        e.dtype.is_integer() && self.analyzer.const_int_bound(e).min >= 0
    }
}

/// A division whose divisor lowering found to be zero.
pub(super) fn division_by_zero(span: Span) -> Diagnostic {
    let help = "lowering made the divisor the constant 0, as it does of an unrolled loop's variable in its first iteration and \
                of an index of extent 1; leave this case out with an `if`, or divide by another value";
    Diagnostic::new(span, "division by zero").help(help)
}

/// A way to compute a binary operator.
#[derive(Clone, Copy)]
pub(super) enum Way {
    /// As this operator.
    Is(BinOp),
    /// Truncating division or its remainder, after adding `up`, which is `turns` times the divisor.
    MovedUp { op: BinOp, turns: i128, up: i128 },
}

/// The constant that an expression, or each of its lanes, equals.
pub(super) fn constant(e: &Expr) -> Option<i128> {
    match &e.kind {
        ExprKind::Broadcast { value, .. } => value.as_int(),
        _ => e.as_int(),
    }
}
