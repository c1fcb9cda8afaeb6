//! Multiples: is an expression one, as far as is known, and what is it divided by the divisor?

use crate::arith::Analyzer;
use crate::ir::{BinOp, Expr};
use crate::layout::apply::binary;

/// `op` of an expression and a constant, in simple form.
fn applied(op: BinOp, e: &Expr, by: i128, facts: &mut Analyzer) -> Expr {
    let by = Expr::constant(e.dtype.element(), by);
    facts.simplify(&binary(op, e.clone(), by))
}

/// The remainder of a division.
pub(super) fn remainder(e: &Expr, by: i128, facts: &mut Analyzer) -> Expr {
    applied(BinOp::FloorMod, e, by, facts)
}

/// The quotient, rounded down.
pub(super) fn quotient(e: &Expr, by: i128, facts: &mut Analyzer) -> Expr {
    applied(BinOp::FloorDiv, e, by, facts)
}

/// Whether an expression is a multiple for sure.
pub(super) fn is_multiple(e: &Expr, of: i128, facts: &mut Analyzer) -> bool {
    match e.as_int() {
        Some(value) => value % of == 0,
        None => of == 1 || remainder(e, of, facts).is_int(0),
    }
}

/// Whether nothing is known against an expression being a multiple.
pub(super) fn may_be_multiple(e: &Expr, of: i128, facts: &mut Analyzer) -> bool {
    remainder(e, of, facts).as_int().is_none_or(|rest| rest == 0)
}

/// The quotient of an expression that is a multiple for sure.
pub(super) fn divided(e: &Expr, by: i128, facts: &mut Analyzer) -> Option<Expr> {
    match by {
        1 => Some(e.clone()),
        by => is_multiple(e, by, facts).then(|| quotient(e, by, facts)),
    }
}
