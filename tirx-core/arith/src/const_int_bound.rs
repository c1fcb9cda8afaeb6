//! Constant bounds: between which two numbers does an integer expression lie?
//!
//! Bounds are exact numbers or infinite. `int32` and `int64` arithmetic is taken not to overflow, as index arithmetic
//! does not; an unsigned or narrow result that may leave its dtype's range gets the whole range, because it wraps.

use crate::arith::Analyzer;
use crate::arith::fold::{floor_div, floor_mod};
use crate::intrin::Op;
use crate::ir::at;
use crate::ir::{BinOp, DType, Expr, ExprKind};

/// Larger than any integer of any dtype.
const INFINITE: i128 = 1 << 100;

/// The least and the greatest value, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstIntBound {
    /// The least value; [`ConstIntBound::NEG_INF`] or less where there is none.
    pub min: i128,
    /// The greatest value; [`ConstIntBound::POS_INF`] or more where there is none.
    pub max: i128,
}

impl ConstIntBound {
    /// No lower bound.
    pub const NEG_INF: i128 = -INFINITE;
    /// No upper bound.
    pub const POS_INF: i128 = INFINITE;
    /// Any integer.
    pub const EVERYTHING: ConstIntBound = ConstIntBound {
        min: Self::NEG_INF,
        max: Self::POS_INF,
    };

    /// From `min` to `max`.
    pub fn new(min: i128, max: i128) -> ConstIntBound {
        ConstIntBound {
            min: min.clamp(Self::NEG_INF, Self::POS_INF),
            max: max.clamp(Self::NEG_INF, Self::POS_INF),
        }
    }

    /// One number.
    pub fn exactly(value: i128) -> ConstIntBound {
        ConstIntBound::new(value, value)
    }

    /// The values of a dtype.
    pub fn of_dtype(dtype: DType) -> ConstIntBound {
        match (dtype.min_int(), dtype.max_int()) {
            (Some(min), Some(max)) => ConstIntBound::new(min, max),
            _ => ConstIntBound::EVERYTHING,
        }
    }

    /// Whether every value of `self` is one of `other`.
    pub fn is_within(self, other: ConstIntBound) -> bool {
        self.min >= other.min && self.max <= other.max
    }

    /// The values in both; `self` if there are none (unreachable code).
    pub fn intersect(self, other: ConstIntBound) -> ConstIntBound {
        let both = ConstIntBound::new(self.min.max(other.min), self.max.min(other.max));
        if both.min > both.max { self } else { both }
    }

    /// The values in either, and those between.
    pub fn union(self, other: ConstIntBound) -> ConstIntBound {
        ConstIntBound::new(self.min.min(other.min), self.max.max(other.max))
    }

    /// Whether both ends are finite.
    pub fn is_finite(self) -> bool {
        self.min > Self::NEG_INF && self.max < Self::POS_INF
    }

    fn corners(self, other: ConstIntBound, f: impl Fn(i128, i128) -> i128) -> ConstIntBound {
        let all = [
            f(self.min, other.min),
            f(self.min, other.max),
            f(self.max, other.min),
            f(self.max, other.max),
        ];
        let min = all.iter().copied().min().unwrap_or(Self::NEG_INF);
        let max = all.iter().copied().max().unwrap_or(Self::POS_INF);
        ConstIntBound::new(min, max)
    }

    pub(super) fn add(self, other: ConstIntBound) -> ConstIntBound {
        ConstIntBound {
            min: add_end(self.min, other.min, Self::NEG_INF),
            max: add_end(self.max, other.max, Self::POS_INF),
        }
    }

    fn negate(self) -> ConstIntBound {
        ConstIntBound::new(-self.max, -self.min)
    }

    pub(super) fn mul(self, other: ConstIntBound) -> ConstIntBound {
        self.corners(other, i128::saturating_mul)
    }

    /// The bounds of the exact result of an operator, even outside the dtype.
    pub(super) fn of_binary(op: BinOp, x: ConstIntBound, y: ConstIntBound) -> ConstIntBound {
        use BinOp::*;
        match op {
            Add => x.add(y),
            Sub => x.add(y.negate()),
            Mul => x.mul(y),
            Min => ConstIntBound::new(x.min.min(y.min), x.max.min(y.max)),
            Max => ConstIntBound::new(x.min.max(y.min), x.max.max(y.max)),
            FloorDiv => quotient(x, y, floor_div),
            Div => quotient(x, y, |a, b| a / b),
            FloorMod => floor_remainder(x, y),
            Mod => truncated_remainder(x, y),
            Eq | Ne | Lt | Le | Gt | Ge | And | Or => ConstIntBound::new(0, 1),
        }
    }
}

/// A sum of two ends of one side: infinite if either is.
fn add_end(a: i128, b: i128, infinite: i128) -> i128 {
    if a.abs() >= INFINITE || b.abs() >= INFINITE {
        return infinite;
    }
    (a + b).clamp(-INFINITE, INFINITE)
}

/// An end divided; infinity stays.
fn divide_end(a: i128, b: i128, divide: fn(i128, i128) -> i128) -> i128 {
    if a.abs() >= INFINITE {
        if b > 0 { a } else { -a }
    } else {
        divide(a, b)
    }
}

/// The known bounds of a compound expression.
#[derive(Clone, Debug)]
pub(super) struct KnownBound {
    pub(super) expr: Expr,
    pub(super) bound: ConstIntBound,
}

/// Number of nodes from which on a cached result is cheaper than computing it again.
pub(super) const WORTH_REMEMBERING: u32 = 16;

impl Analyzer {
    /// The bounds of an integer expression. For a vector they hold for each lane; for a non-integer expression they are
    /// infinite.
    pub fn const_int_bound(&self, expr: &Expr) -> ConstIntBound {
        if expr.size() < WORTH_REMEMBERING {
            return self.bound_of_node(expr);
        }
        if let Some(known) = self.bounds.borrow().get(expr) {
            return *known;
        }
        let bound = self.bound_of_node(expr);
        self.bounds.borrow_mut().insert(expr, bound);
        bound
    }

    fn bound_of_node(&self, expr: &Expr) -> ConstIntBound {
        let element = expr.dtype.element();
        if !element.is_integer() && !element.is_bool() {
            return ConstIntBound::EVERYTHING;
        }
        let range = ConstIntBound::of_dtype(element);
        let found = self.bound_of_kind(expr, range);
        // Signed 32- and 64-bit arithmetic does not overflow; other results wrap.
        let wraps = !(element.is_int() && matches!(element.bits, 32 | 64));
        let mut bound = if found.is_within(range) {
            found
        } else if wraps {
            range
        } else {
            found.intersect(range)
        };
        if !self.known_bounds.is_empty() && !matches!(expr.kind, ExprKind::Int(_) | ExprKind::Var(_)) {
            for known in &self.known_bounds {
                if known.expr == *expr {
                    bound = bound.intersect(known.bound);
                }
            }
        }
        bound
    }

    fn bound_of_kind(&self, expr: &Expr, range: ConstIntBound) -> ConstIntBound {
        match &expr.kind {
            ExprKind::Int(v) => ConstIntBound::exactly(*v),
            ExprKind::Var(v) => self.var_bounds.get(v).copied().unwrap_or(range),
            ExprKind::Cast(a) => {
                if a.dtype.element().is_floating() || a.dtype.is_handle() {
                    return range;
                }
                if range == ConstIntBound::of_dtype(DType::BOOL) && expr.dtype.is_bool() {
                    return range;
                }
                let inner = self.const_int_bound(a);
                if inner.is_within(range) { inner } else { range }
            }
            ExprKind::Broadcast { value, .. } => self.const_int_bound(value),
            ExprKind::Ramp { base, stride, lanes } => {
                let steps = self
                    .const_int_bound(stride)
                    .mul(ConstIntBound::new(0, *lanes as i128 - 1));
                self.const_int_bound(base).add(steps)
            }
            ExprKind::Select(_, a, b) => self.const_int_bound(a).union(self.const_int_bound(b)),
            ExprKind::Binary(op, a, b) => {
                ConstIntBound::of_binary(*op, self.const_int_bound(a), self.const_int_bound(b))
            }
            ExprKind::Call { op, args } => self.bound_of_call(*op, args, range),
            ExprKind::Let(var, value, body) if !self.var_bounds.contains_key(var) => {
                // The value's bounds cannot be bound through `&self`: they are used only where the body is just the
                // variable.
                if body.as_var() == Some(var) {
                    self.const_int_bound(value)
                } else {
                    self.const_int_bound(body)
                }
            }
            ExprKind::Let(_, _, body) => self.const_int_bound(body),
            _ => range,
        }
    }

    fn bound_of_call(&self, op: Op, args: &[Expr], range: ConstIntBound) -> ConstIntBound {
        let arg = |i: usize| args.get(i).map_or(range, |a| self.const_int_bound(a));
        match op {
            Op::IfThenElse => arg(at!(IfThenElse.t)).union(arg(at!(IfThenElse.f))),
            Op::Likely => arg(at!(Likely.cond)),
            Op::ShiftRight => {
                // Shifts outside the width have no meaning in C++.
                let bits = args[at!(ShiftRight.x)].dtype.bits;
                let by = arg(at!(ShiftRight.y)).intersect(ConstIntBound::new(0, i128::from(bits) - 1));
                arg(at!(ShiftRight.x)).corners(by, |a, b| {
                    if a.abs() >= INFINITE {
                        a
                    } else {
                        a >> b.clamp(0, 63)
                    }
                })
            }
            Op::ShiftLeft => {
                let (x, by) = (arg(at!(ShiftLeft.x)), arg(at!(ShiftLeft.y)));
                if by.min < 0 || by.max > 63 {
                    return range;
                }
                x.corners(by, |a, b| a.saturating_mul(1 << b))
            }
            Op::BitwiseAnd => {
                let (x, y) = (arg(at!(BitwiseAnd.x)), arg(at!(BitwiseAnd.y)));
                match (x.min >= 0, y.min >= 0) {
                    (true, true) => ConstIntBound::new(0, x.max.min(y.max)),
                    (true, false) => ConstIntBound::new(0, x.max),
                    (false, true) => ConstIntBound::new(0, y.max),
                    _ => range,
                }
            }
            Op::BitwiseOr | Op::BitwiseXor => {
                let x = arg(at!(BitwiseOr | BitwiseXor.x));
                let y = arg(at!(BitwiseOr | BitwiseXor.y));
                let or = op == Op::BitwiseOr;
                let most = match x.max >= INFINITE || y.max >= INFINITE {
                    true => range.max,
                    false => (1i128 << (128 - x.max.max(y.max).max(0).leading_zeros())) - 1,
                };
                let least = match (x.min >= 0, y.min >= 0) {
                    (true, true) if or => x.min.max(y.min),
                    (true, true) => 0,
                    // Bits that are set in a negative value bring it nearer to zero.
                    (true, false) if or => y.min.max(range.min + x.min),
                    (false, true) if or => x.min.max(range.min + y.min),
                    // Of two negative values the greater counts; beside one that is not negative, zero for one, the other.
                    (false, false) if or => match (x.max >= 0, y.max >= 0) {
                        (true, true) => x.min.min(y.min),
                        (true, false) => y.min,
                        (false, true) => x.min,
                        (false, false) => x.min.max(y.min),
                    },
                    _ => return range,
                };
                ConstIntBound::new(least, most)
            }
            // The opposite and one less, whether or not the dtype has a sign.
            Op::BitwiseNot => {
                let x = arg(at!(BitwiseNot.x));
                let all = range.min + range.max;
                match x.is_within(range) {
                    true => ConstIntBound::new(all - x.max, all - x.min),
                    false => range,
                }
            }
            Op::Popcount | Op::Clz => ConstIntBound::new(0, args[at!(Popcount | Clz.x)].dtype.bits.into()),
            // A shuffle gives another lane's value: bounds that hold for every thread apply to it. Bounds that hold
            // only under the current condition do not, but constraints bound variables for the threads that satisfy
            // them.
            _ => match (op.row().range, op.traits().passes_on) {
                (Some((least, most)), _) => ConstIntBound::new(least.into(), most.into()),
                (None, Some(argument)) if self.constraint_depth == 0 => arg(argument.into()),
                _ => range,
            },
        }
    }
}

fn quotient(x: ConstIntBound, y: ConstIntBound, divide: fn(i128, i128) -> i128) -> ConstIntBound {
    // A divisor of zero is an error of the program, so it is left out of the divisor's range.
    let y = match (y.min, y.max) {
        (0, 0) => return ConstIntBound::EVERYTHING,
        (0, max) => ConstIntBound::new(1, max),
        (min, 0) => ConstIntBound::new(min, -1),
        _ => y,
    };
    if y.min < 0 && y.max > 0 {
        let most = x.min.saturating_abs().max(x.max.saturating_abs());
        return ConstIntBound::new(-most, most);
    }
    x.corners(y, |a, b| divide_end(a, b, divide))
}

fn floor_remainder(x: ConstIntBound, y: ConstIntBound) -> ConstIntBound {
    if y.min > 0 {
        if x.min >= 0 && x.max < y.min {
            return x;
        }
        // With one divisor and no multiple of it in between, the remainder moves with the value.
        if y.min == y.max
            && x.is_finite()
            && y.max < INFINITE
            && floor_div(x.min, y.min) == floor_div(x.max, y.min)
        {
            return ConstIntBound::new(floor_mod(x.min, y.min), floor_mod(x.max, y.min));
        }
        let max = if x.min >= 0 {
            (y.max - 1).min(x.max)
        } else {
            y.max - 1
        };
        return ConstIntBound::new(0, max);
    }
    let max = y.max.max(1) - 1;
    let min = y.min.min(-1) + 1;
    ConstIntBound::new(min, max)
}

fn truncated_remainder(x: ConstIntBound, y: ConstIntBound) -> ConstIntBound {
    let most = y.min.saturating_abs().max(y.max.saturating_abs()).max(1) - 1;
    let min = if x.min >= 0 { 0 } else { (-most).max(x.min) };
    let max = if x.max <= 0 { 0 } else { most.min(x.max) };
    ConstIntBound::new(min, max)
}
