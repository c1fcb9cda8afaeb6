//! Literals and casts: the constant that a number becomes, range checks, and folding of casts.

use super::Operand;
use crate::diagnostic::{Diagnostic, Result, error};
use crate::ir::{DType, ElementType, Expr, ExprKind, Minifloat};
use crate::source::Span;

/// A number as an expression of its default dtype: `int32` (`int64` where it does not fit), `float32`, `bool`.
pub fn literal(operand: Operand, span: Span) -> Result<Expr> {
    let dtype = operand.dtype();
    match operand {
        Operand::Expr(e) => Ok(e),
        Operand::Bool(v) => Ok(Expr::bool(v).at(span)),
        Operand::Int(v) => constant(dtype, v, span),
        Operand::Float(v) => float_constant(dtype, v, span),
    }
}

/// An integer as a constant of a scalar dtype; an error where it does not fit.
pub fn constant(dtype: DType, value: i128, span: Span) -> Result<Expr> {
    if dtype.is_floating() {
        float_constant(dtype, value as f64, span)?;
        return Ok(Expr::float_of(dtype, value).at(span));
    }
    let (Some(min), Some(max)) = (dtype.min_int(), dtype.max_int()) else {
        return error(span, format!("{value} is no {dtype}"));
    };
    if (min..=max).contains(&value) {
        return Ok(Expr::constant(dtype, value).at(span));
    }
    let diagnostic = Diagnostic::new(span, format!("{value} does not fit {dtype}"));
    let diagnostic = diagnostic.label(format!("{dtype} holds {min} to {max}"));
    let help = if dtype.is_bool() {
        "compare instead: x != 0".to_string()
    } else if dtype.is_uint() && value < 0 {
        let wrapped = dtype.wrap(value);
        format!("write the bits as an unsigned number: T.{dtype}({wrapped:#x})")
    } else {
        let wider = if value > i64::MAX as i128 {
            "uint64"
        } else {
            "int64"
        };
        format!("use a wider dtype: T.{wider}({value}), or cast the other operand: T.cast(x, \"{wider}\")")
    };
    Err(Box::new(diagnostic.help(help)))
}

/// A number as a constant of a scalar floating dtype; an error where a finite number exceeds its range.
pub fn float_constant(dtype: DType, value: f64, span: Span) -> Result<Expr> {
    if let Some(max) = max_finite(dtype)
        && value.is_finite()
        && value.abs() > max
        && !rounds_to_finite(dtype, value)
    {
        let diagnostic = Diagnostic::new(span, format!("{value:e} exceeds the range of {dtype}"));
        let diagnostic = diagnostic.label(format!("{dtype} holds {} to {max}", -max));
        return Err(Box::new(diagnostic.help(format!(
            "use a wider dtype, or T.{dtype}(\"inf\") if it has an infinity"
        ))));
    }
    Ok(Expr::float(dtype, value).at(span))
}

/// Whether a number just above the largest value is that value written with fewer digits.
fn rounds_to_finite(dtype: DType, value: f64) -> bool {
    match dtype.element() {
        DType::FLOAT32 => (value as f32).is_finite(),
        DType::BFLOAT16 => tirx_dtype::bf16::from_f64(value).is_finite(),
        _ => false,
    }
}

/// The largest finite value of a floating dtype, as in TVM.
fn max_finite(dtype: DType) -> Option<f64> {
    ElementType::from_dtype(dtype)?.largest
}

/// `T.max_value(dtype)`: the largest (finite) value.
pub fn max_value(dtype: DType, span: Span) -> Result<Expr> {
    extreme("T.max_value", dtype, span, DType::max_int, |m| m)
}

/// `T.min_value(dtype)`: the smallest (finite) value.
pub fn min_value(dtype: DType, span: Span) -> Result<Expr> {
    let lowest = |m: f64| {
        let format = ElementType::from_dtype(dtype).and_then(|row| row.format);
        match format.is_none_or(Minifloat::is_signed) {
            true => -m,
            false => 0.0,
        }
    };
    extreme("T.min_value", dtype, span, DType::min_int, lowest)
}

fn extreme(
    name: &str,
    dtype: DType,
    span: Span,
    int: fn(DType) -> Option<i128>,
    float: impl Fn(f64) -> f64,
) -> Result<Expr> {
    if !dtype.is_scalar() || dtype.is_bool() {
        return error(span, format!("{name} needs a scalar number dtype, got {dtype}"));
    }
    match (int(dtype), max_finite(dtype)) {
        // TVM's constants are signed 64-bit; larger ones are built from two halves.
        (Some(v), _) if v > i64::MAX as i128 => {
            let half = |v: i128| Expr::constant(DType::UINT32, v & 0xFFFF_FFFF).at(span);
            let args = vec![half(v), half(v >> 32)];
            Ok(Expr::call(crate::intrin::Op::LargeUintImm, dtype, args).at(span))
        }
        (Some(v), _) => constant(dtype, v, span),
        (None, Some(m)) => Ok(Expr::float(dtype, float(m)).at(span)),
        _ => error(span, format!("{name} needs a number dtype, got {dtype}")),
    }
}

/// Why values of one dtype have no cast to another: their numbers of lanes differ, or one of the two is a pointer.
pub fn no_cast(from: DType, to: DType, span: Span) -> Diagnostic {
    let diagnostic = Diagnostic::new(span, format!("cannot cast {from} to {to}"));
    match from.is_handle() || to.is_handle() || from.is_void() || to.is_void() {
        true => diagnostic.help(format!("a pointer's bits: T.reinterpret(\"{to}\", x)")),
        false => diagnostic.label("the number of lanes differs"),
    }
}

/// `T.cast(a, dtype)`: constants are converted at once (and must fit), a scalar becomes a vector by broadcast.
pub fn cast(a: Operand, dtype: DType, span: Span) -> Result<Expr> {
    let from = a.dtype();
    match a {
        Operand::Bool(v) => constant_vector(dtype, span, |d| constant(d, v as i128, span)),
        Operand::Int(v) => constant_vector(dtype, span, |d| constant(d, v, span)),
        Operand::Float(v) => constant_vector(dtype, span, |d| from_float(d, v, span)),
        Operand::Expr(e) if from == dtype => Ok(e),
        Operand::Expr(_) if from.is_handle() || dtype.is_handle() || from.is_void() || dtype.is_void() => {
            Err(Box::new(no_cast(from, dtype, span)))
        }
        Operand::Expr(e) if dtype.is_vector() && from.is_scalar() => {
            let lane = cast(e.into(), dtype.element(), span)?;
            Ok(Expr::broadcast(lane, dtype.lanes).at(span))
        }
        Operand::Expr(_) if from.lanes != dtype.lanes => Err(Box::new(no_cast(from, dtype, span))),
        Operand::Expr(e) => {
            let element = dtype.element();
            match &e.kind {
                ExprKind::Int(v) => constant(dtype, *v, span),
                ExprKind::Float(v) => from_float(dtype, *v, span),
                ExprKind::Broadcast { value, lanes } => {
                    let lane = cast(value.clone().into(), element, span)?;
                    Ok(Expr::broadcast(lane, *lanes).at(span))
                }
                // Index vectors stay ramps, so that accesses through them stay contiguous.
                ExprKind::Ramp { base, stride, lanes } if dtype.is_integer() => {
                    let base = cast(base.clone().into(), element, span)?;
                    let stride = cast(stride.clone().into(), element, span)?;
                    Ok(Expr::ramp(base, stride, *lanes).at(span))
                }
                _ => Ok(e.cast(dtype).at(span)),
            }
        }
    }
}

fn constant_vector(dtype: DType, span: Span, make: impl Fn(DType) -> Result<Expr>) -> Result<Expr> {
    let lane = make(dtype.element())?;
    Ok(if dtype.is_vector() {
        Expr::broadcast(lane, dtype.lanes).at(span)
    } else {
        lane
    })
}

fn from_float(dtype: DType, value: f64, span: Span) -> Result<Expr> {
    if dtype.is_floating() {
        return float_constant(dtype, value, span);
    }
    let whole = value.trunc();
    if !whole.is_finite() || whole.abs() > 2f64.powi(64) {
        return error(span, format!("{value:e} does not fit {dtype}"));
    }
    constant(dtype, whole as i128, span)
}
