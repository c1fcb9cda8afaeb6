//! Sums and differences of index expressions, with equal terms cancelled: the extent of `m0 : m0 + BM` is `BM`.

use super::super::typing::{self, Arithmetic};
use crate::diagnostic::Result;
use crate::ir::{BinOp, Expr};
use crate::source::Span;

/// `a - b`, simplified where terms cancel.
pub(super) fn difference(a: &Expr, b: &Expr, span: Span) -> Result<Expr> {
    let plain = || typing::binary(Arithmetic::Sub, a.clone().into(), b.clone().into(), span);
    if !a.dtype.is_scalar() || !b.dtype.is_scalar() {
        return plain();
    }
    // `b + x` is how a range is printed: `x` is recovered exactly.
    if let Some((start, length)) = a.as_binary(BinOp::Add)
        && start == b
    {
        return Ok(length.clone());
    }
    let (mut terms, mut constant) = (Vec::new(), 0);
    collect(a, 1, &mut terms, &mut constant);
    let before = terms.len();
    collect(b, -1, &mut terms, &mut constant);
    let kept: Vec<(Expr, i128)> = terms.iter().filter(|(_, c)| *c != 0).cloned().collect();
    if kept.len() == terms.len() && before > 0 && kept.len() > before {
        return plain();
    }
    let dtype = typing::common_dtype(a.dtype, b.dtype).unwrap_or(a.dtype);
    let mut sum: Option<Expr> = None;
    for (term, factor) in kept {
        let factor_expr = Expr::constant(dtype, factor.saturating_abs()).at(span);
        let scaled = typing::binary(Arithmetic::Mul, term.into(), factor_expr.into(), span)?;
        sum = Some(match sum {
            None if factor > 0 => scaled,
            None => typing::neg(scaled.into(), span)?,
            Some(s) => {
                let op = if factor > 0 {
                    Arithmetic::Add
                } else {
                    Arithmetic::Sub
                };
                typing::binary(op, s.into(), scaled.into(), span)?
            }
        });
    }
    let op = if constant < 0 {
        Arithmetic::Sub
    } else {
        Arithmetic::Add
    };
    match sum {
        None => typing::constant(dtype, constant, span),
        Some(s) => typing::binary(
            op,
            s.into(),
            Expr::constant(dtype, constant.saturating_abs()).at(span).into(),
            span,
        ),
    }
}

/// `a + b`.
pub(super) fn sum(a: &Expr, b: &Expr, span: Span) -> Result<Expr> {
    typing::binary(Arithmetic::Add, a.clone().into(), b.clone().into(), span)
}

/// `e` as terms times constants, plus a constant.
fn collect(e: &Expr, factor: i128, terms: &mut Vec<(Expr, i128)>, constant: &mut i128) {
    if let Some(v) = e.as_int() {
        *constant = constant.saturating_add(factor.saturating_mul(v));
    } else if let Some((a, b)) = e.as_binary(BinOp::Add) {
        collect(a, factor, terms, constant);
        collect(b, factor, terms, constant);
    } else if let Some((a, b)) = e.as_binary(BinOp::Sub) {
        collect(a, factor, terms, constant);
        collect(b, factor.saturating_neg(), terms, constant);
    } else if let Some((a, c)) = e.as_binary(BinOp::Mul).and_then(|(a, b)| Some((a, b.as_int()?))) {
        collect(a, factor.saturating_mul(c), terms, constant);
    } else {
        match terms.iter_mut().find(|(t, _)| t == e) {
            Some((_, c)) => *c = c.saturating_add(factor),
            None => terms.push((e.clone(), factor)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{DType, Var};

    #[test]
    fn equal_terms_cancel() {
        let x = Expr::var(&Var::new("x", DType::INT32));
        let y = Expr::var(&Var::new("y", DType::INT32));
        let add = |a: &Expr, b: &Expr| sum(a, b, Span::NONE).unwrap();
        let diff = |a: &Expr, b: &Expr| difference(a, b, Span::NONE).unwrap();
        assert!(diff(&add(&x, &Expr::int32(4)), &x).is_int(4));
        assert_eq!(diff(&add(&x, &y), &x), y);
        assert_eq!(diff(&y, &Expr::int32(0)), y);
        let plain = diff(&y, &x);
        assert_eq!(plain.as_binary(BinOp::Sub), Some((&y, &x)));
        // (x + 1) * 8 - x * 8 is not expanded; equal products cancel.
        let eight = |e: &Expr| {
            typing::binary(
                Arithmetic::Mul,
                e.clone().into(),
                Expr::int32(8).into(),
                Span::NONE,
            )
            .unwrap()
        };
        assert!(diff(&eight(&add(&x, &Expr::int32(1))), &eight(&x)).is_int(8));
    }
}
