//! Which argument a condition or value of the host function reads, and what a condition compares.

use super::Field;
use crate::at;
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

/// Whether an expression reads an element of an array of extents or strides.
fn is_number_of_array(e: &Expr) -> bool {
    let field = |args: &[Expr]| args.get(at!(TvmStructGet.field))?.as_int();
    e.as_call(Op::TvmStructGet).and_then(field) == Some(Field::Int64Element.number().into())
}

/// Which element of an array of extents or strides an expression reads.
pub fn element_position(expr: &Expr) -> Option<i128> {
    let get = find(expr, &is_number_of_array)?;
    get.as_call(Op::TvmStructGet)?
        .get(at!(TvmStructGet.index))?
        .as_int()
}

/// The 64-bit field of a descriptor behind an expression that narrows it to 32 bits.
pub fn descriptor_value(expr: &Expr) -> Option<&Expr> {
    match &expr.kind {
        ExprKind::Cast(inner)
            if expr.dtype == DType::INT32 && inner.dtype == DType::INT64 && is_number_of_array(inner) =>
        {
            Some(inner)
        }
        _ => None,
    }
}
