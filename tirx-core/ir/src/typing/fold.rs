//! Folding of arithmetic when an expression is made: two constants, and neutral elements.
//!
//! Operands have one dtype already. Bit operations fold on `int32` and `int64` alone (the dtypes of indices), float
//! arithmetic on `float32` and `float64`, `min`/`max` on all.

use super::{Arithmetic, constant};
use crate::diagnostic::{Diagnostic, Result};
use crate::fold::{floor_div, floor_mod};
use crate::ir::{DType, Expr};
use crate::source::Span;

/// The folded `a op b`, if it folds. A division by the constant zero is an error.
pub(super) fn arithmetic(op: Arithmetic, a: &Expr, b: &Expr, span: Span) -> Result<Option<Expr>> {
    use Arithmetic::*;
    match op {
        ShiftLeft | ShiftRight | BitwiseAnd | BitwiseOr | BitwiseXor => bits(op, a, b, span),
        Pow => Ok(None),
        Min | Max if a.same_node(b) || a.as_var().is_some_and(|v| b.as_var() == Some(v)) => {
            Ok(Some(a.clone()))
        }
        _ => match (a.as_int(), b.as_int(), a.as_float(), b.as_float()) {
            (Some(x), Some(y), ..) => integers(op, a.dtype, x, y, span).map(Some),
            (.., Some(x), Some(y)) => floats(op, a.dtype, x, y, span),
            (x, y, f, g) => {
                let left = x.map(|v| v as f64).or(f);
                let right = y.map(|v| v as f64).or(g);
                neutral(op, a, b, left, right, span)
            }
        },
    }
}

fn division_by_zero<T>(op: Arithmetic, span: Span) -> Result<T> {
    let diagnostic = Diagnostic::new(span, format!("division by zero in `{}`", op.symbol()));
    Err(Box::new(diagnostic.help("the divisor is the constant 0")))
}

fn integers(op: Arithmetic, dtype: DType, x: i128, y: i128, span: Span) -> Result<Expr> {
    use Arithmetic::*;
    let value = match op {
        Add => x + y,
        Sub => x - y,
        Mul => x.wrapping_mul(y),
        TrueDiv | TruncDiv | FloorDiv | TruncMod | FloorMod if y == 0 => return division_by_zero(op, span),
        TrueDiv | TruncDiv => x / y,
        TruncMod => x % y,
        FloorDiv => floor_div(x, y),
        FloorMod => floor_mod(x, y),
        Min => x.min(y),
        _ => x.max(y),
    };
    if dtype.is_bool() {
        return constant(dtype, value, span);
    }
    Ok(Expr::constant(dtype, value).at(span))
}

fn floats(op: Arithmetic, dtype: DType, x: f64, y: f64, span: Span) -> Result<Option<Expr>> {
    use Arithmetic::*;
    let wide = dtype.is_float() && dtype.bits >= 32;
    let value = match op {
        TrueDiv if y == 0.0 => return division_by_zero(op, span),
        Min => x.min(y),
        Max => x.max(y),
        // On float32 the operation in f64 rounded once more equals the one in f32.
        Add if wide => x + y,
        Sub if wide => x - y,
        Mul if wide => x * y,
        TrueDiv if wide => x / y,
        Add | Sub | Mul | TrueDiv => {
            let (a, b) = (Expr::float(dtype, x), Expr::float(dtype, y));
            return neutral(op, &a, &b, Some(x), Some(y), span);
        }
        _ => return Ok(None),
    };
    Ok(Some(Expr::float(dtype, value).at(span)))
}

/// `left` and `right` are the operands' values where they are constant.
fn neutral(
    op: Arithmetic,
    a: &Expr,
    b: &Expr,
    left: Option<f64>,
    right: Option<f64>,
    span: Span,
) -> Result<Option<Expr>> {
    use Arithmetic::*;
    let (zero, one) = (Some(0.0), Some(1.0));
    Ok(match op {
        Add if left == zero => Some(b.clone()),
        Add | Sub if right == zero => Some(a.clone()),
        Mul if left == one => Some(b.clone()),
        Mul if left == zero => Some(a.clone()),
        Mul if right == one => Some(a.clone()),
        Mul if right == zero => Some(b.clone()),
        TrueDiv | TruncDiv | FloorDiv | TruncMod | FloorMod if right == zero => {
            return division_by_zero(op, span);
        }
        TrueDiv | TruncDiv | FloorDiv | TruncMod | FloorMod if left == zero => Some(a.clone()),
        TrueDiv | TruncDiv | FloorDiv if right == one => Some(a.clone()),
        TruncMod | FloorMod if right == one => Some(Expr::constant(a.dtype, 0).at(span)),
        _ => None,
    })
}

fn bits(op: Arithmetic, a: &Expr, b: &Expr, span: Span) -> Result<Option<Expr>> {
    use Arithmetic::*;
    let dtype = a.dtype;
    if dtype != DType::INT32 && dtype != DType::INT64 {
        return Ok(None);
    }
    if matches!(op, ShiftLeft | ShiftRight)
        && let Some(y) = b.as_int()
    {
        if !(0..dtype.bits as i128).contains(&y) {
            let message = format!("shift by {y} of {dtype}");
            let diagnostic = Diagnostic::new(span, message)
                .label(format!("the amount must be from 0 to {}", dtype.bits - 1));
            return Err(Box::new(diagnostic));
        }
        if y == 0 {
            return Ok(Some(a.clone()));
        }
    }
    let (Some(x), Some(y)) = (a.as_int(), b.as_int()) else {
        return Ok(None);
    };
    let value = match op {
        ShiftLeft => x << y,
        ShiftRight => x >> y,
        BitwiseAnd => x & y,
        BitwiseOr => x | y,
        _ => x ^ y,
    };
    constant(dtype, value, span).map(Some)
}
