//! TIR's two fixed-point products in plain arithmetic.
//!
//! | operator | meaning |
//! |---|---|
//! | `q_multiply_shift(x, y, q, s)` | `x * y * 2^(s - q)`, rounded half up |
//! | `q_multiply_shift_per_axis(x, y, l, r, q, left, right)` | `x * 2^l * y * 2^-(r + q)`, rounded half up; no `l` where not `left` |
//!
//! The product is one of 64 bits. A multiplier of one half (`2^30` of 31 bits) with a constant `s` only shifts.

use crate::intrin::Op;
use crate::ir::at;
use crate::ir::{BinOp, DType, Expr, ExprKind};

/// `q_multiply_shift` of lowered operands; `None` unless all are integers.
pub(super) fn multiply_shift(args: &[Expr]) -> Option<Expr> {
    let (x, y) = (&args[at!(QMultiplyShift.x)], &args[at!(QMultiplyShift.y)]);
    let (q, s) = (&args[at!(QMultiplyShift.q)], &args[at!(QMultiplyShift.s)]);
    if !are_integers(args) {
        return None;
    }
    let dtype = x.dtype;
    let (mut left, mut right) = (None, q.clone());
    match s.as_int() {
        Some(s) if y.is_int(1 << 30) && q.is_int(31) && (-30..=31).contains(&s) => {
            return Some(match s - 1 {
                0 => x.clone(),
                n if n > 0 => Expr::call(Op::ShiftLeft, dtype, vec![x.clone(), Expr::constant(dtype, n)]),
                n => {
                    let half = Expr::constant(dtype, 1 << (-n - 1));
                    let sum = Expr::binary(BinOp::Add, x.clone(), half);
                    Expr::call(Op::ShiftRight, dtype, vec![sum, Expr::constant(dtype, -n)])
                }
            });
        }
        Some(n) if n > 0 => left = Some(s.clone()),
        Some(n) => right = sum(right, Expr::constant(s.dtype, -n)),
        None => {
            let zero = || Expr::constant(s.dtype, 0);
            let positive = Expr::binary(BinOp::Gt, s.clone(), zero());
            left = Some(Expr::select(positive.clone(), s.clone(), zero()));
            let negated = Expr::binary(BinOp::Sub, zero(), s.clone());
            right = sum(right, Expr::select(positive, zero(), negated));
        }
    }
    Some(product(x, y, left.as_ref(), &right))
}

fn are_integers(args: &[Expr]) -> bool {
    args.iter().all(|a| a.dtype.is_integer())
}

/// `q_multiply_shift_per_axis` of lowered operands; `None` unless all but the flags are integers.
pub(super) fn multiply_shift_per_axis(args: &[Expr]) -> Option<Expr> {
    if !are_integers(&args[..at!(QMultiplyShiftPerAxis.is_lshift_required)]) {
        return None;
    }
    let x = &args[at!(QMultiplyShiftPerAxis.x)];
    let y = &args[at!(QMultiplyShiftPerAxis.y)];
    let left = &args[at!(QMultiplyShiftPerAxis.ls)];
    let right = &args[at!(QMultiplyShiftPerAxis.rs)];
    let q = &args[at!(QMultiplyShiftPerAxis.q)];
    let has_left = &args[at!(QMultiplyShiftPerAxis.is_lshift_required)];
    let left = (!has_left.is_int(0)).then_some(left);
    Some(product(x, y, left, &sum(right.clone(), q.clone())))
}

/// `(x << left) * y >> right`, rounded, in 64 bits.
fn product(x: &Expr, y: &Expr, left: Option<&Expr>, right: &Expr) -> Expr {
    let wide = DType::INT64.with_lanes(x.dtype.lanes);
    let spread = |e: &Expr| -> Expr {
        match e.as_int() {
            Some(value) => Expr::constant(wide, value),
            None => e.clone().cast(wide),
        }
    };
    let mut value = x.clone().cast(wide);
    if let Some(left) = left {
        let shifted = Expr::call(Op::ShiftLeft, wide, vec![value.clone(), spread(left)]);
        value = match left.as_int() {
            Some(_) => shifted,
            // The same value, in the form for which nvcc generates less code.
            None if !matches!(left.kind, ExprKind::Select(..)) => shifted,
            None => {
                let zero = Expr::constant(left.dtype, 0);
                Expr::select(Expr::binary(BinOp::Ne, left.clone(), zero), shifted, value)
            }
        };
    }
    value = Expr::binary(BinOp::Mul, value, spread(y));
    let half = match right.as_int() {
        Some(n @ 1..=62) => Expr::constant(wide, 1 << (n - 1)),
        _ => {
            let one_less = Expr::binary(BinOp::Sub, right.clone(), Expr::constant(right.dtype, 1));
            Expr::call(
                Op::ShiftLeft,
                wide,
                vec![Expr::constant(wide, 1), spread(&one_less)],
            )
        }
    };
    value = Expr::binary(BinOp::Add, value, half);
    Expr::call(Op::ShiftRight, wide, vec![value, spread(right)]).cast(x.dtype)
}

fn sum(a: Expr, b: Expr) -> Expr {
    match (a.as_int(), b.as_int()) {
        (Some(x), Some(y)) => Expr::constant(a.dtype, x + y),
        _ => Expr::binary(BinOp::Add, a, b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Var;
    use crate::ir::print_expr;

    fn shown(y: i128, s: i128) -> String {
        let int = |v| Expr::constant(DType::INT32, v);
        let x = Expr::var(&Var::new("x", DType::INT32));
        print_expr(&multiply_shift(&[x, int(y), int(31), int(s)]).unwrap())
    }

    #[test]
    fn a_multiplier_of_one_half_only_shifts() {
        assert_eq!(shown(1 << 30, 1), "x");
        assert_eq!(shown(1 << 30, 3), "T.shift_left(x, 2)");
        assert_eq!(shown(1 << 30, -1), "T.shift_right(x + 2, 2)");
    }

    #[test]
    fn other_multipliers_round_a_wide_product() {
        let text = shown(1518500250, -3);
        assert!(text.contains("T.int64(8589934592)"), "half of 2^34: {text}");
        assert!(text.starts_with("T.Cast(\"int32\", T.shift_right("), "{text}");
    }
}
