//! Which argument a condition or value of the host function reads, and what a condition compares.

use crate::intrin::Op;
use crate::ir::{BinOp, DType, Expr, ExprKind};

/// The first subexpression, outside in, that `pred` accepts.
pub fn find<'e>(expr: &'e Expr, pred: &dyn Fn(&Expr) -> bool) -> Option<&'e Expr> {
    if pred(expr) {
        return Some(expr);
    }
    expr.operands().find_map(|e| find(e, pred))
}

/// The equality of a condition that compares with an argument: `n == 1 or 1 == stride` has it on the right.
pub fn compared(condition: &Expr) -> Option<(&Expr, &Expr)> {
    let equal = |e: &Expr| e.as_binary(BinOp::Eq).is_some();
    find(condition, &|e| equal(e) && reads_argument(e))
        .or_else(|| find(condition, &equal))
        .and_then(|e| e.as_binary(BinOp::Eq))
}

/// Whether a value reads an argument.
pub fn reads_argument(expr: &Expr) -> bool {
    find(expr, &|e| e.as_call(Op::TvmStructGet).is_some()).is_some()
}

/// Which element of an array of extents or strides an expression reads.
pub fn element_position(expr: &Expr) -> Option<i128> {
    let get = find(
        expr,
        &|e| matches!(e.as_call(Op::TvmStructGet), Some([_, _, field]) if field.is_int(17)),
    )?;
    get.as_call(Op::TvmStructGet)?.get(1)?.as_int()
}

/// The 64-bit field of a descriptor behind an expression that narrows it to 32 bits.
pub fn descriptor_value(expr: &Expr) -> Option<&Expr> {
    match &expr.kind {
        ExprKind::Cast(inner)
            if expr.dtype == DType::INT32
                && inner.dtype == DType::INT64
                && inner
                    .as_call(Op::TvmStructGet)
                    .is_some_and(|args| args.last().is_some_and(|f| f.is_int(17))) =>
        {
            Some(inner)
        }
        _ => None,
    }
}
