//! The language that kernels see: the `T` namespace, and operators, attributes and indices on IR values.
//!
//! The evaluator calls these functions for whatever has an IR operand or lies in a namespace of the language.

use ruff_python_ast::{BoolOp, CmpOp, Operator, UnaryOp};

use super::eval::{Args, Interpreter, Value};
use crate::diagnostic::{Result, error};
use crate::ir::{Buffer, DType, Expr};
use crate::source::Span;

/// The value of `path.name`: `("T", "alloc_shared")`, `("T.cuda", "cta_sync")`, `("layout", "TileLayout")`.
/// Roots are `T`, `I`, `Tx` and `layout` (`tvm.tirx.layout`: `TileLayout`, `S`, `R`, axes …).
pub fn attribute(_path: &str, _name: &str) -> Option<Value> {
    None
}

/// The names that `path` has, for suggestions; empty for an unknown path.
pub fn names(_path: &str) -> Vec<String> {
    Vec::new()
}

/// `a op b`, at least one an IR value (or both dtypes, layouts, objects).
pub fn binary(_interp: &mut Interpreter, _op: Operator, a: &Value, b: &Value, span: Span) -> Result<Value> {
    unsupported("operator", a, Some(b), span)
}

/// `a op b`, at least one an IR value. Not for `is`, `in`.
pub fn compare(_interp: &mut Interpreter, _op: CmpOp, a: &Value, b: &Value, span: Span) -> Result<Value> {
    unsupported("comparison", a, Some(b), span)
}

/// `a and b`, `a or b`, at least one an IR value.
pub fn logical(_interp: &mut Interpreter, _op: BoolOp, a: &Value, b: &Value, span: Span) -> Result<Value> {
    unsupported("logical operator", a, Some(b), span)
}

/// `-a`, `not a`, `~a`, `+a` of an IR value.
pub fn unary(_interp: &mut Interpreter, _op: UnaryOp, a: &Value, span: Span) -> Result<Value> {
    unsupported("operator", a, None, span)
}

/// `value.name` of an expression, buffer, region, layout or dtype.
pub fn value_attribute(_interp: &mut Interpreter, value: &Value, name: &str, span: Span) -> Result<Value> {
    error(span, format!("{} has no attribute \"{name}\"", value.type_name()))
}

/// `value[index]` of a buffer (load or region), region, expression, namespace object. A tuple index is a
/// [`Value::Tuple`], slices in it [`Value::Slice`].
pub fn subscript(_interp: &mut Interpreter, value: &Value, _index: &Value, span: Span) -> Result<Value> {
    error(span, format!("{} cannot be subscripted", value.type_name()))
}

/// `target[index] = value`: emits a store.
pub fn store(
    _interp: &mut Interpreter,
    target: &Value,
    _index: &Value,
    _value: &Value,
    span: Span,
) -> Result<()> {
    error(
        span,
        format!("{} cannot be assigned to by index", target.type_name()),
    )
}

/// `dtype(args)`: conversion, or a fresh variable without arguments; `T.handle("float32", "shared")` too.
pub fn call_dtype(_interp: &mut Interpreter, dtype: DType, _args: Args, span: Span) -> Result<Value> {
    error(span, format!("{dtype} cannot be called"))
}

/// A value as an expression: literals get their default dtypes.
pub fn to_expr(value: &Value, span: Span) -> Result<Expr> {
    match value {
        Value::Expr(e) => Ok(e.clone().or_at(span)),
        _ => error(
            span,
            format!("expected an expression, found {}", value.type_name()),
        ),
    }
}

/// A value converted to `dtype` as a store to a buffer of that dtype does.
pub fn to_expr_of(value: &Value, _dtype: DType, span: Span) -> Result<Expr> {
    to_expr(value, span)
}

/// A value as the condition of `if`, `while`, `assert`: a scalar bool expression.
pub fn condition(value: &Value, span: Span) -> Result<Expr> {
    to_expr(value, span)
}

/// A value as an attribute or annotation value (`T.attr`, `T.func_attr`, `annotations=`).
pub fn to_attr(value: &Value, span: Span) -> Result<crate::ir::AttrValue> {
    error(span, format!("{} cannot be an attribute", value.type_name()))
}

/// A fresh one-element buffer in scope `local` with its allocation emitted: what `x: T.int32` makes.
pub fn local_scalar(interp: &mut Interpreter, name: &str, dtype: DType, span: Span) -> Result<Buffer> {
    local_vector(interp, name, dtype, vec![Expr::int32(1)], span)
}

/// A fresh buffer in scope `local` with its allocation emitted: what `x: T.f32[2]` makes.
pub fn local_vector(
    interp: &mut Interpreter,
    name: &str,
    dtype: DType,
    shape: Vec<Expr>,
    span: Span,
) -> Result<Buffer> {
    let buffer = Buffer::fresh(name, shape, dtype, "local", span);
    interp.emit(crate::ir::Stmt::new(
        crate::ir::StmtKind::AllocBuffer(buffer.clone(), Vec::new()),
        span,
    ))?;
    Ok(buffer)
}

fn unsupported(what: &str, a: &Value, b: Option<&Value>, span: Span) -> Result<Value> {
    match b {
        Some(b) => error(
            span,
            format!(
                "unsupported operands of this {what}: {} and {}",
                a.type_name(),
                b.type_name()
            ),
        ),
        None => error(
            span,
            format!("unsupported operand of this {what}: {}", a.type_name()),
        ),
    }
}
