//! Comparisons, minima and quotients that bounds, modular sets and constraints decide.

use super::overflow::is_index;
use super::rewrite::Mode;
use super::rules::INDEX_RULES;
use super::sum::Sum;
use super::{Analyzer, fold};
use crate::ir::{BinOp, Expr, ExprKind};

/// Which orderings of two numbers are possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Orders {
    less: bool,
    equal: bool,
    greater: bool,
}

impl Orders {
    /// Whether one ordering is left.
    fn is_decided(self) -> bool {
        [self.less, self.equal, self.greater]
            .iter()
            .filter(|possible| **possible)
            .count()
            == 1
    }
}

impl Analyzer {
    /// Which orderings of two integer expressions are possible here. Unless `equality` is asked for, equality may be said to
    /// be possible where both others are.
    fn orders(&mut self, a: &Expr, b: &Expr, equality: bool) -> Orders {
        let (x, y) = (self.const_int_bound(a), self.const_int_bound(b));
        let mut orders = Orders {
            less: x.min < y.max,
            equal: x.min <= y.max && y.min <= x.max,
            greater: x.max > y.min,
        };
        if a == b {
            return Orders {
                less: false,
                equal: true,
                greater: false,
            };
        }
        if !is_index(a.dtype) {
            return orders;
        }
        if orders.is_decided() {
            return orders;
        }
        let difference = self.canonical_difference(a, b);
        let bound = self.bound_of_sum(&difference);
        orders.less &= bound.min < 0;
        orders.greater &= bound.max > 0;
        orders.equal &= bound.min <= 0 && bound.max >= 0;
        if orders.is_decided() {
            return orders;
        }
        // A fact f >= 0 shows d >= k if d - f >= k.
        let facts: Vec<&Sum> = self
            .facts
            .iter()
            .filter(|fact| fact.shares_term(&difference))
            .collect();
        if !facts.is_empty() {
            let opposite = difference.negated();
            for fact in facts {
                let above = self.bound_of_sum(&difference.minus(fact)).min;
                let below = self.bound_of_sum(&opposite.minus(fact)).min;
                orders.less &= above < 0;
                orders.equal &= above <= 0 && below <= 0;
                orders.greater &= below < 0;
            }
        }
        // Divisibility says nothing of the other two, and is the dearest to ask for.
        if orders.equal && (equality || !(orders.less && orders.greater)) {
            orders.equal = self.modular_of_sum(&difference).is_multiple_of_zero();
        }
        orders
    }

    pub(super) fn compare_node(&mut self, op: BinOp, a: &Expr, b: &Expr, mode: Mode) -> Option<Expr> {
        let orders = self.orders(a, b, matches!(op, BinOp::Eq | BinOp::Ne));
        let decided = match op {
            BinOp::Lt => (orders.less, orders.equal || orders.greater),
            BinOp::Le => (orders.less || orders.equal, orders.greater),
            BinOp::Eq => (orders.equal, orders.less || orders.greater),
            _ => (orders.less || orders.greater, orders.equal),
        };
        match decided {
            (true, false) => return Some(Expr::bool(true)),
            (false, true) => return Some(Expr::bool(false)),
            _ => {}
        }
        // At an end of the range a simpler comparison is equivalent.
        let sharper = match op {
            BinOp::Le if !orders.less => Some((BinOp::Eq, a, b)),
            BinOp::Ne if !orders.greater => Some((BinOp::Lt, a, b)),
            BinOp::Ne if !orders.less => Some((BinOp::Lt, b, a)),
            _ => None,
        };
        if let Some((op, a, b)) = sharper {
            return Some(self.make_at(op, a.clone(), b.clone(), mode, None));
        }
        match op {
            BinOp::Lt | BinOp::Eq if is_index(a.dtype) => {
                if op == BinOp::Lt
                    && mode == Mode::Canonical
                    && let Some(result) = self.canonical_less(a, b)
                {
                    return Some(result);
                }
                self.try_rules(&INDEX_RULES, op, a, b, mode)
            }
            // The rules have patterns for `<` and `==` only.
            BinOp::Le if is_index(a.dtype) => {
                let less = self.try_rules(&INDEX_RULES, BinOp::Lt, b, a, mode)?;
                Some(self.negate(less, mode))
            }
            BinOp::Ne if is_index(a.dtype) => {
                let equal = self.try_rules(&INDEX_RULES, BinOp::Eq, a, b, mode)?;
                Some(self.negate(equal, mode))
            }
            _ => None,
        }
    }

    pub(super) fn arithmetic_node(&mut self, op: BinOp, a: &Expr, b: &Expr, mode: Mode) -> Option<Expr> {
        use BinOp::*;
        match op {
            Min | Max => {
                let orders = self.orders(a, b, false);
                if !orders.greater {
                    return Some(if op == Min { a.clone() } else { b.clone() });
                }
                if !orders.less {
                    return Some(if op == Min { b.clone() } else { a.clone() });
                }
            }
            FloorDiv | Div | FloorMod | Mod => {
                if let Some(result) = self.divide_by_bounds(op, a, b) {
                    return Some(result);
                }
            }
            _ => {}
        }
        if !is_index(a.dtype) {
            return None;
        }
        // A minimum or maximum is moved to the left of a sum.
        let chosen = |e: &Expr| matches!(&e.kind, ExprKind::Binary(Min | Max, ..));
        let result = self.try_rules(&INDEX_RULES, op, a, b, mode);
        if result.is_none() && op == Add && chosen(b) && !chosen(a) {
            return Some(self.make(op, b.clone(), a.clone(), mode));
        }
        result
    }

    /// A quotient or remainder that the bounds or the modular set of the dividend decide.
    fn divide_by_bounds(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Option<Expr> {
        let x = self.const_int_bound(a);
        let Some(c) = b.as_int() else {
            // 0 <= a < b.
            let inside = x.min >= 0 && is_index(a.dtype) && {
                let orders = self.orders(a, b, false);
                !orders.equal && !orders.greater
            };
            return inside.then(|| match op {
                BinOp::FloorMod | BinOp::Mod => a.clone(),
                _ => Expr::constant(a.dtype, 0),
            });
        };
        if c <= 0 || !x.is_finite() {
            return None;
        }
        let truncating = matches!(op, BinOp::Div | BinOp::Mod);
        if truncating && x.min < 0 {
            return None;
        }
        let (low, high) = (fold::floor_div(x.min, c), fold::floor_div(x.max, c));
        let remainder = matches!(op, BinOp::FloorMod | BinOp::Mod);
        if low == high && !(remainder && low != 0) {
            return Some(match remainder {
                true => a.clone(),
                false => Expr::constant(a.dtype, low),
            });
        }
        if remainder {
            let modular = self.modular_set(a);
            if modular.coeff % c == 0 {
                return Some(Expr::constant(a.dtype, fold::floor_mod(modular.base, c)));
            }
            // Where `low * c` has no such constant, the difference would overflow.
            let fits = a
                .dtype
                .min_int()
                .is_some_and(|least| low.saturating_mul(c) > least);
            if low == high && is_index(a.dtype) && fits {
                return Some(self.make(
                    BinOp::Sub,
                    a.clone(),
                    Expr::constant(a.dtype, low * c),
                    Mode::Rewrite,
                ));
            }
        }
        None
    }
}
