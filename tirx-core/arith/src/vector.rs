//! Binary nodes of vectors: lane by lane where both are broadcast, ramps where the lanes stay evenly spaced.

use super::modular_set::gcd;
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
            // All lanes are equal where both ends are.
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
        // What is known of the base's remainder: where it is within a block of `block` numbers, which divides `c`. A ramp
        // that stays within the block does not come to another multiple of `c`.
        let modular = self.modular_set(base);
        let block = gcd(modular.coeff, c);
        let first = fold::floor_mod(modular.base, block);
        let last = first + step * (lanes as i128 - 1);
        let constant = |v: i128| Expr::constant(dtype, v);
        if !(0..block).contains(&last) {
            let shorter = !quotient && block == c && !base.is_int(first);
            return shorter.then(|| {
                let ramp = Expr::ramp(constant(first), constant(step), lanes);
                Expr::binary(op, ramp, Expr::broadcast(value.clone(), lanes))
            });
        }
        Some(match quotient {
            true => Expr::broadcast(self.make(op, base.clone(), value.clone(), mode), lanes),
            false if block == c => Expr::ramp(constant(first), constant(step), lanes),
            false => {
                let first = self.make(op, base.clone(), value.clone(), mode);
                Expr::ramp(first, constant(step), lanes)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arith::ConstIntBound;
    use crate::ir::{DType, Var};

    /// `(a % 8 * 4 + [0, 1, 2, 3]) op c` and its like.
    fn divided(op: BinOp, factor: i32, step: i32, c: i32) -> String {
        let a = Var::new("a", DType::INT32);
        let mut analyzer = Analyzer::new();
        analyzer.set_bound(&a, ConstIntBound::new(0, 7));
        let ramp = Expr::ramp(Expr::var(&a) * Expr::int32(factor), Expr::int32(step), 4);
        let e = Expr::binary(op, ramp, Expr::broadcast(Expr::int32(c), 4));
        crate::ir::print_expr(&analyzer.simplify(&e))
    }

    #[test]
    fn a_ramp_within_a_block_has_one_quotient() {
        assert_eq!(divided(BinOp::FloorDiv, 4, 1, 16), "T.Broadcast(a // 4, 4)");
        assert_eq!(divided(BinOp::FloorMod, 4, 1, 16), "T.Ramp(a % 4 * 4, 1, 4)");
        assert_eq!(divided(BinOp::FloorDiv, 8, 2, 8), "T.Broadcast(a, 4)");
        assert_eq!(divided(BinOp::FloorMod, 8, 2, 8), "T.Ramp(0, 2, 4)");
        // These ramps may reach the next multiple.
        let open = divided(BinOp::FloorDiv, 2, 1, 16);
        assert!(open.contains("//"), "{open}");
        assert_eq!(
            divided(BinOp::FloorMod, 4, 2, 4),
            "T.Ramp(0, 2, 4) % T.Broadcast(4, 4)"
        );
    }
}
