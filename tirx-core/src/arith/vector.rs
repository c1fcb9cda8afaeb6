//! Binary nodes of vectors: lane by lane where both are broadcast, ramps where the lanes stay evenly spaced.

use super::rewrite::Mode;
use super::rules::VECTOR_RULES;
use super::{Analyzer, fold};
use crate::ir::{BinOp, Expr, ExprKind};

impl Analyzer {
    pub(super) fn make_vector(&mut self, op: BinOp, a: &Expr, b: &Expr, mode: Mode) -> Option<Expr> {
        use BinOp::*;
        if let (ExprKind::Broadcast { value: x, lanes: l }, ExprKind::Broadcast { value: y, lanes: m }) =
            (&a.kind, &b.kind)
            && l == m
            && x.dtype == y.dtype
        {
            let inner = self.make(op, x.clone(), y.clone(), mode);
            return Some(Expr::broadcast(inner, *l));
        }
        if !a.dtype.is_int() || !matches!(a.dtype.bits, 32 | 64) {
            return None;
        }
        let zero = |e: &Expr| matches!(&e.kind, ExprKind::Broadcast { value, .. } if value.is_int(0));
        let one = |e: &Expr| matches!(&e.kind, ExprKind::Broadcast { value, .. } if value.is_int(1));
        match op {
            Add if zero(a) => return Some(b.clone()),
            Add | Sub if zero(b) => return Some(a.clone()),
            Mul if one(a) => return Some(b.clone()),
            Mul if one(b) => return Some(a.clone()),
            FloorDiv if one(b) => return Some(a.clone()),
            _ => {}
        }
        if let (ExprKind::Ramp { base, stride, lanes }, ExprKind::Broadcast { value, .. }) =
            (&a.kind, &b.kind)
            && matches!(op, FloorDiv | FloorMod)
            && let (Some(s), Some(c)) = (stride.as_int(), value.as_int())
            && base.dtype.is_scalar()
            && c > 0
        {
            return self.divide_ramp(op, base, s, *lanes, value, mode);
        }
        if let (ExprKind::Ramp { base, lanes, .. }, ExprKind::Broadcast { value, .. }) = (&a.kind, &b.kind)
            && op == Lt
            && base.dtype.is_scalar()
        {
            // All lanes alike where the ends agree.
            let (first, limit) = (self.const_int_bound(a), self.const_int_bound(value));
            if first.max < limit.min {
                return Some(Expr::broadcast(Expr::bool(true), *lanes));
            }
            if first.min >= limit.max {
                return Some(Expr::broadcast(Expr::bool(false), *lanes));
            }
        }
        self.try_rules(&VECTOR_RULES, op, a, b, mode)
    }

    /// A ramp divided by `value`: a ramp or a broadcast again where each lane's share is known.
    fn divide_ramp(
        &mut self,
        op: BinOp,
        base: &Expr,
        step: i128,
        lanes: u16,
        value: &Expr,
        mode: Mode,
    ) -> Option<Expr> {
        let c = value.as_int()?;
        let dtype = base.dtype;
        let quotient = op == BinOp::FloorDiv;
        if step % c == 0 {
            let first = self.make(op, base.clone(), value.clone(), mode);
            return Some(match quotient {
                true => Expr::ramp(first, Expr::constant(dtype, step / c), lanes),
                false => Expr::broadcast(first, lanes),
            });
        }
        // The remainder of the base, and how far the ramp goes from there.
        let modular = self.modular_set(base);
        if modular.coeff % c != 0 {
            return None;
        }
        let first = fold::floor_mod(modular.base, c);
        let last = first + step * (lanes as i128 - 1);
        if !(0..c).contains(&last) {
            return None;
        }
        Some(match quotient {
            true => Expr::broadcast(self.make(op, base.clone(), value.clone(), mode), lanes),
            false => Expr::ramp(Expr::constant(dtype, first), Expr::constant(dtype, step), lanes),
        })
    }
}
