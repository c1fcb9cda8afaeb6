//! Launch extents in checked 64-bit arithmetic: an intermediate value may leave the 32 bits that the kernel computes in,
//! and what leaves 64 bits or the driver's limits is an error that names the expression and its values.

use super::expr::{Printer, Value};
use crate::ir::{BinOp, DType, Expr, ExprKind, Var, print_expr};

/// An extent to compute: the Rust text of a `::tirx_rt::host::Wide`, and the values it is computed from.
pub(super) struct Checked {
    /// The Rust expression.
    text: String,
    /// Name in the kernel and Rust text of each value.
    values: Vec<(String, String)>,
}

impl Checked {
    /// The call that gives the extent as the driver takes it.
    pub(super) fn extent(&self, tag: &str, value: &Expr) -> String {
        let values: Vec<String> = self
            .values
            .iter()
            .map(|(name, text)| format!("({name:?}, {text})"))
            .collect();
        format!(
            "::tirx_rt::host::launch_extent(KERNEL, {tag:?}, {}, {:?}, &[{}])?",
            self.text,
            print_expr(value),
            values.join(", ")
        )
    }
}

/// The checked form of an integer expression; `None` where it holds something else than arithmetic.
pub(super) fn checked(
    printer: &mut Printer<'_>,
    expr: &Expr,
    bound: &dyn Fn(&Var) -> Option<Expr>,
) -> Option<Checked> {
    let mut values = Vec::new();
    let text = text(printer, expr, bound, &mut values, 0)?;
    Some(Checked { text, values })
}

const DEEPEST: usize = 64;

fn text(
    printer: &mut Printer<'_>,
    expr: &Expr,
    bound: &dyn Fn(&Var) -> Option<Expr>,
    values: &mut Vec<(String, String)>,
    depth: usize,
) -> Option<String> {
    if depth > DEEPEST || !(expr.dtype.is_integer() || expr.dtype.is_bool()) {
        return None;
    }
    match &expr.kind {
        ExprKind::Binary(op, a, b) => {
            let method = match op {
                BinOp::Add => "add",
                BinOp::Sub => "sub",
                BinOp::Mul => "mul",
                BinOp::Div => "div",
                BinOp::Mod => "rem",
                BinOp::FloorDiv => "floor_div",
                BinOp::FloorMod => "floor_mod",
                BinOp::Min => "min",
                BinOp::Max => "max",
                _ => return None,
            };
            let a = text(printer, a, bound, values, depth + 1)?;
            let b = text(printer, b, bound, values, depth + 1)?;
            Some(format!("{a}.{method}({b})"))
        }
        // What is computed is the number itself, which must fit in the end.
        ExprKind::Cast(inner) if inner.dtype.is_integer() && is_arithmetic(inner, bound) => {
            text(printer, inner, bound, values, depth + 1)
        }
        ExprKind::Var(var) => match bound(var).filter(|value| is_arithmetic(value, bound)) {
            Some(value) => text(printer, &value, bound, values, depth + 1),
            None => leaf(printer, expr, Some(var.name()), values),
        },
        _ => leaf(printer, expr, None, values),
    }
}

/// Whether an expression computes something.
fn is_arithmetic(expr: &Expr, bound: &dyn Fn(&Var) -> Option<Expr>) -> bool {
    match &expr.kind {
        ExprKind::Binary(op, ..) => !op.is_comparison() && !op.is_logical(),
        ExprKind::Cast(inner) => is_arithmetic(inner, bound),
        ExprKind::Var(var) => bound(var).is_some_and(|value| is_arithmetic(&value, &|_| None)),
        _ => false,
    }
}

/// A value that is there already.
fn leaf(
    printer: &mut Printer<'_>,
    expr: &Expr,
    name: Option<&str>,
    values: &mut Vec<(String, String)>,
) -> Option<String> {
    let text = match printer.value(expr).ok()? {
        Value::Int(v) => {
            return i64::try_from(v)
                .ok()
                .map(|v| format!("::tirx_rt::host::Wide::from({v}_i64)"));
        }
        Value::Handle(_) => return None,
        Value::Code(code) => code.text,
    };
    let wide = match expr.dtype {
        DType::UINT64 => format!("::tirx_rt::host::Wide::unsigned({text})"),
        _ => format!("::tirx_rt::host::Wide::from(i64::from({text}))"),
    };
    let name = name.map_or_else(|| print_expr(expr), str::to_string);
    if !values.iter().any(|(known, _)| *known == name) {
        values.push((name, wide.clone()));
    }
    Some(wide)
}
