//! Modular sets: of which form `coeff * k + base` is an integer expression?

use crate::arith::Analyzer;
use crate::arith::const_int_bound::WORTH_REMEMBERING;
use crate::arith::fold::{div_rem, floor_mod};
use crate::intrin::Op;
use crate::ir::at;
use crate::ir::{BinOp, Expr, ExprKind};

/// All values `coeff * k + base` for whole `k`. `coeff` is zero for a constant; else `0 <= base < coeff`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModularSet {
    /// The step.
    pub coeff: i128,
    /// The value nearest zero that is not negative (or the constant).
    pub base: i128,
}

/// Steps larger than this are given up, so that no product of two overflows.
const LARGEST: i128 = 1 << 60;

/// The greatest common divisor; the gcd of zero and `x` is `x`.
pub(super) fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, div_rem(a, b).1);
    }
    a
}

impl ModularSet {
    /// Any integer.
    pub const EVERYTHING: ModularSet = ModularSet { coeff: 1, base: 0 };

    /// `coeff * k + base`, brought to normal form.
    pub fn new(coeff: i128, base: i128) -> ModularSet {
        let coeff = coeff.abs();
        if coeff > LARGEST || base.abs() > 1 << 100 {
            // Still a multiple of the largest power of two in it.
            let power = 1i128 << coeff.trailing_zeros().min(59);
            return if coeff == 0 {
                ModularSet { coeff, base }
            } else {
                ModularSet {
                    coeff: power,
                    base: floor_mod(base, power),
                }
            };
        }
        if coeff == 0 {
            ModularSet { coeff, base }
        } else {
            ModularSet {
                coeff,
                base: floor_mod(base, coeff),
            }
        }
    }

    /// Whether every value is a multiple of `divisor`.
    pub fn is_multiple_of(self, divisor: i128) -> bool {
        divisor != 0 && self.coeff % divisor == 0 && self.base % divisor == 0
    }

    /// The values in either.
    pub fn union(self, other: ModularSet) -> ModularSet {
        ModularSet::new(
            gcd(gcd(self.coeff, other.coeff), self.base - other.base),
            self.base,
        )
    }

    /// A set that holds the values in both.
    pub fn intersect(self, other: ModularSet) -> ModularSet {
        // One is enough to be right; take the finer one. Where the steps divide each other that is the intersection.
        match (self.coeff, other.coeff) {
            (0, _) => self,
            (_, 0) => other,
            (a, b) if a >= b => self,
            _ => other,
        }
    }
}

impl Analyzer {
    /// The modular set of an integer expression; of each lane for a vector.
    pub fn modular_set(&self, expr: &Expr) -> ModularSet {
        if expr.size() < WORTH_REMEMBERING {
            return self.form_of(expr);
        }
        if let Some(known) = self.modular.borrow().get(expr) {
            return *known;
        }
        let set = self.form_of(expr);
        self.modular.borrow_mut().insert(expr, set);
        set
    }

    fn form_of(&self, expr: &Expr) -> ModularSet {
        use BinOp::*;
        let element = expr.dtype.element();
        if !element.is_integer() {
            return ModularSet::EVERYTHING;
        }
        // Wrapping preserves only the factor that divides the modulus of the dtype, a power of two.
        let wraps = !(element.is_int() && matches!(element.bits, 32 | 64));
        let limit = |set: ModularSet| {
            let fits = element.min_int().is_some_and(|m| set.base >= m)
                && element.max_int().is_some_and(|m| set.base <= m);
            if !wraps || (set.coeff == 0 && fits) {
                return set;
            }
            ModularSet::new(gcd(set.coeff, 1i128 << element.bits.min(59)), set.base)
        };
        match &expr.kind {
            ExprKind::Int(v) => ModularSet::new(0, *v),
            ExprKind::Var(v) => self.var_modular.get(v).copied().unwrap_or(ModularSet::EVERYTHING),
            ExprKind::Cast(a) if a.dtype.element().is_integer() => {
                let inner = self.modular_set(a);
                let keeps = element.bits >= a.dtype.bits && (element.is_int() || a.dtype.is_uint());
                if keeps && element.is_int() == a.dtype.is_int() || self.fits(a, element) {
                    inner
                } else if inner.coeff == 0 {
                    ModularSet::new(0, element.wrap(inner.base))
                } else {
                    ModularSet::new(gcd(inner.coeff, 1i128 << element.bits.min(59)), inner.base)
                }
            }
            ExprKind::Broadcast { value, .. } => self.modular_set(value),
            ExprKind::Ramp { base, stride, .. } => {
                let (b, s) = (self.modular_set(base), self.modular_set(stride));
                limit(ModularSet::new(gcd(b.coeff, gcd(s.coeff, s.base)), b.base))
            }
            ExprKind::Select(_, a, b) => self.modular_set(a).union(self.modular_set(b)),
            ExprKind::Call {
                op: Op::IfThenElse,
                args,
            } => {
                let otherwise = self.modular_set(&args[at!(IfThenElse.f)]);
                self.modular_set(&args[at!(IfThenElse.t)]).union(otherwise)
            }
            ExprKind::Call {
                op: Op::ShiftRight,
                args,
            } if !wraps => match args[at!(ShiftRight.y)].as_int() {
                Some(by @ 0..=62) => {
                    let x = self.modular_set(&args[at!(ShiftRight.x)]);
                    divide(x, 1 << by).unwrap_or(ModularSet::EVERYTHING)
                }
                _ => ModularSet::EVERYTHING,
            },
            ExprKind::Call {
                op: Op::ShiftLeft,
                args,
            } => match args[at!(ShiftLeft.y)].as_int() {
                Some(by @ 0..=62) => {
                    let x = self.modular_set(&args[at!(ShiftLeft.x)]);
                    limit(multiply(x, ModularSet::new(0, 1 << by)))
                }
                _ => ModularSet::EVERYTHING,
            },
            ExprKind::Call {
                op: Op::BitwiseAnd,
                args,
            } => match args[at!(BitwiseAnd.y)].as_int() {
                // A mask makes the result a multiple of the power of two that its low zero bits give.
                Some(mask) if mask > 0 => {
                    let low = 1i128 << mask.trailing_zeros();
                    let x = self.modular_set(&args[at!(BitwiseAnd.x)]);
                    let full = 1i128 << (128 - mask.leading_zeros());
                    if mask + 1 == full {
                        remainder(x, full)
                    } else {
                        ModularSet::new(low, 0)
                    }
                }
                _ => ModularSet::EVERYTHING,
            },
            ExprKind::Binary(op, a, b) => {
                let (x, y) = (self.modular_set(a), self.modular_set(b));
                let constant = |set: ModularSet| (set.coeff == 0 && set.base != 0).then_some(set.base);
                match op {
                    Add => limit(ModularSet::new(gcd(x.coeff, y.coeff), x.base + y.base)),
                    Sub => limit(ModularSet::new(gcd(x.coeff, y.coeff), x.base - y.base)),
                    Mul => limit(multiply(x, y)),
                    Min | Max => x.union(y),
                    FloorDiv | Div => constant(y)
                        .and_then(|c| {
                            // Truncation and flooring agree only where nothing is lost or nothing is negative.
                            let exact = x.is_multiple_of(c);
                            let positive = c > 0 && self.const_int_bound(a).min >= 0;
                            (exact || *op == FloorDiv || positive)
                                .then(|| divide(x, c))
                                .flatten()
                        })
                        .unwrap_or(ModularSet::EVERYTHING),
                    FloorMod => constant(y).map_or(ModularSet::EVERYTHING, |c| remainder(x, c)),
                    Mod => match constant(y) {
                        Some(c) if x.is_multiple_of(c) => ModularSet::new(0, 0),
                        Some(c) => ModularSet::new(gcd(x.coeff, c), x.base),
                        None => ModularSet::EVERYTHING,
                    },
                    _ => ModularSet::EVERYTHING,
                }
            }
            _ => ModularSet::EVERYTHING,
        }
    }

    fn fits(&self, expr: &Expr, dtype: crate::ir::DType) -> bool {
        self.const_int_bound(expr)
            .is_within(super::ConstIntBound::of_dtype(dtype))
    }
}

/// `(p k + q)(r l + s) = p r k l + p s k + q r l + q s`.
fn multiply(x: ModularSet, y: ModularSet) -> ModularSet {
    let coeff = gcd(
        x.coeff.saturating_mul(y.coeff),
        gcd(x.coeff.saturating_mul(y.base), x.base.saturating_mul(y.coeff)),
    );
    match x.base.checked_mul(y.base) {
        Some(base) => ModularSet::new(coeff, base),
        None => ModularSet::EVERYTHING,
    }
}

/// A floored quotient by a constant: `(p k + q) // c` is `(p / c) k + q // c` where `c` divides `p`.
fn divide(x: ModularSet, c: i128) -> Option<ModularSet> {
    (x.coeff % c == 0).then(|| ModularSet::new(x.coeff / c, crate::arith::fold::floor_div(x.base, c)))
}

/// A floored remainder by a constant.
fn remainder(x: ModularSet, c: i128) -> ModularSet {
    if div_rem(x.coeff, c).1 == 0 {
        return ModularSet::new(0, floor_mod(x.base, c));
    }
    ModularSet::new(gcd(x.coeff, c), x.base)
}
