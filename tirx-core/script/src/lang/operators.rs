//! Python's operators on IR values.

use std::rc::Rc;

use tirx_python::{BoolOp, CmpOp, Operator, UnaryOp};

use super::super::eval::{Interpreter, Value};
use super::super::typing::{self, Arithmetic, Operand};
use super::convert;
use crate::diagnostic::{Diagnostic, Result};
use crate::ir::BinOp;
use crate::source::Span;

/// `a op b`.
pub(super) fn binary(
    interp: &mut Interpreter,
    op: Operator,
    a: &Value,
    b: &Value,
    span: Span,
) -> Result<Value> {
    if let Value::Object(o) = a
        && let Some(v) = o.clone().binary(interp, op, b, false, span)?
    {
        return Ok(v);
    }
    if let Value::Object(o) = b
        && let Some(v) = o.clone().binary(interp, op, a, true, span)?
    {
        return Ok(v);
    }
    let arithmetic = match op {
        Operator::Add => Arithmetic::Add,
        Operator::Sub => Arithmetic::Sub,
        Operator::Mult => Arithmetic::Mul,
        Operator::Div => Arithmetic::TrueDiv,
        Operator::FloorDiv => Arithmetic::FloorDiv,
        Operator::Mod => Arithmetic::FloorMod,
        Operator::LShift => Arithmetic::ShiftLeft,
        Operator::RShift => Arithmetic::ShiftRight,
        Operator::BitAnd => Arithmetic::BitwiseAnd,
        Operator::BitOr => Arithmetic::BitwiseOr,
        Operator::BitXor => Arithmetic::BitwiseXor,
        Operator::Pow => return refused(op.as_str(), a, b, "write T.pow(x, y)", span),
        Operator::MatMult => {
            let help = match (a, b) {
                (Value::Buffer(_) | Value::Region(_), _) | (_, Value::Buffer(_) | Value::Region(_)) => {
                    "write loops over the elements: acc += A[i, k] * B[k, j]"
                }
                _ => "`@` puts a stride on a layout axis: 4 @ laneid",
            };
            return refused(op.as_str(), a, b, help, span);
        }
    };
    let (x, y) = operands(op.as_str(), a, b, span)?;
    typing::binary(arithmetic, x, y, span).map(Value::Expr)
}

fn refused(symbol: &str, a: &Value, b: &Value, help: &str, span: Span) -> Result<Value> {
    let message = format!(
        "unsupported operands for `{symbol}`: {} and {}",
        convert::describe(a),
        convert::describe(b)
    );
    Err(Box::new(Diagnostic::new(span, message).help(help)))
}

fn operands(symbol: &str, a: &Value, b: &Value, span: Span) -> Result<(Operand, Operand)> {
    match (convert::operand(a, span), convert::operand(b, span)) {
        (Some(x), Some(y)) => Ok((x?, y?)),
        (x, _) => {
            let bad = if x.is_none() { a } else { b };
            let help = match bad {
                Value::Buffer(buffer) => format!("read an element: {}[…]", buffer.name),
                _ => format!("{} is no operand of an expression", convert::describe(bad)),
            };
            let message = format!(
                "unsupported operands for `{symbol}`: {} and {}",
                convert::describe(a),
                convert::describe(b)
            );
            Err(Box::new(Diagnostic::new(span, message).help(help)))
        }
    }
}

/// `a op b` for `==` and the like.
pub(super) fn compare(
    interp: &mut Interpreter,
    op: CmpOp,
    a: &Value,
    b: &Value,
    span: Span,
) -> Result<Value> {
    let bin = match op {
        CmpOp::Eq => BinOp::Eq,
        CmpOp::NotEq => BinOp::Ne,
        CmpOp::Lt => BinOp::Lt,
        CmpOp::LtE => BinOp::Le,
        CmpOp::Gt => BinOp::Gt,
        CmpOp::GtE => BinOp::Ge,
        CmpOp::Is | CmpOp::IsNot | CmpOp::In | CmpOp::NotIn => {
            return refused(op.as_str(), a, b, "compare values with `==`", span);
        }
    };
    for (value, other) in [(a, b), (b, a)] {
        if let Value::Unavailable(why) = value
            && is_operand(other, span)
        {
            return interp.unavailable(why, span);
        }
    }
    // Values that are not numbers are compared at compile time. Statements of a kernel compare the elements of two buffers
    // with one element each; functions around the kernel ask whether the buffers are the same.
    let elements = interp.is_kernel_code()
        && [a, b]
            .iter()
            .all(|v| matches!(v, Value::Buffer(x) if convert::is_single(x)));
    if !elements
        && matches!(op, CmpOp::Eq | CmpOp::NotEq)
        && let Some(equal) = same(a, b, span)
    {
        for (value, other) in [(a, b), (b, a)] {
            if let Value::Buffer(buffer) = value
                && is_operand(other, span)
            {
                let name = &buffer.name;
                let message =
                    format!("the buffer `{name}` is never equal to a number: this is known at compile time");
                interp.lint(
                    "compared-buffer",
                    span,
                    message,
                    &format!("read an element: {name}[…]"),
                );
            }
        }
        return Ok(Value::Bool(equal == (op == CmpOp::Eq)));
    }
    let (x, y) = operands(op.as_str(), a, b, span)?;
    typing::compare(bin, x, y, span).map(Value::Expr)
}

fn same(a: &Value, b: &Value, span: Span) -> Option<bool> {
    Some(match (a, b) {
        (Value::DType(x), y) | (y, Value::DType(x)) => {
            convert::dtype(y, span).ok().flatten().is_some_and(|y| y == *x)
        }
        (Value::Layout(x), Value::Layout(y)) => x == y,
        (Value::Buffer(x), Value::Buffer(y)) => x == y,
        (Value::Object(x), Value::Object(y)) if !is_operand(a, span) && !is_operand(b, span) => {
            Rc::ptr_eq(x, y) || x.equals(&**y)
        }
        // A number never equals a layout, a string, None ….
        (x, y) if !is_operand(x, span) || !is_operand(y, span) => false,
        _ => return None,
    })
}

fn is_operand(value: &Value, span: Span) -> bool {
    convert::operand(value, span).is_some()
}

/// `a and b`, `a or b`.
pub(super) fn logical(
    _interp: &mut Interpreter,
    op: BoolOp,
    a: &Value,
    b: &Value,
    span: Span,
) -> Result<Value> {
    let (bin, symbol) = match op {
        BoolOp::And => (BinOp::And, "and"),
        BoolOp::Or => (BinOp::Or, "or"),
    };
    let (x, y) = operands(symbol, a, b, span)?;
    typing::logical(bin, x, y, span).map(Value::Expr)
}

/// `-a`, `not a`, `~a`, `+a`.
pub(super) fn unary(_interp: &mut Interpreter, op: UnaryOp, a: &Value, span: Span) -> Result<Value> {
    let Some(x) = convert::operand(a, span) else {
        let message = format!(
            "unsupported operand for `{}`: {}",
            op.as_str(),
            convert::describe(a)
        );
        return Err(Box::new(Diagnostic::new(span, message)));
    };
    let x = x?;
    match op {
        UnaryOp::USub => typing::neg(x, span),
        UnaryOp::Not => typing::not(x, span),
        UnaryOp::Invert => typing::invert(x, span),
        UnaryOp::UAdd => typing::literal(x, span),
    }
    .map(Value::Expr)
}
