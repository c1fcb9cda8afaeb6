//! Integers of launches and checks in 64-bit arithmetic that does not wrap: an intermediate value may leave the 32 bits that
//! the kernel computes in, and what leaves 64 bits or the driver's limits is an error that names the expression and its values.

use super::code::{Binds, Code, logical};
use super::expr::{Printer, Value};
use super::stmt::Result;
use crate::intrin::Op;
use crate::ir::abi;
use crate::ir::{BinOp, DType, Expr, ExprKind, TypeCode, Var, print_expr};

/// An integer that is computed.
pub(super) struct Checked {
    /// The Rust expression of a `::tirx_rt::host::Wide`.
    pub(super) text: String,
    found: Found,
}

/// The variables of a checked expression.
#[derive(Default)]
struct Found {
    /// Name in the kernel and Rust text of each value.
    values: Vec<(String, String)>,
    /// The Rust variables.
    reads: Vec<String>,
}

impl Checked {
    /// The call that gives the extent in the driver's type.
    pub(super) fn extent(&self, tag: &str, value: &Expr) -> String {
        let values: Vec<String> = (self.found.values.iter())
            .map(|(name, text)| format!("({name:?}, {text})"))
            .collect();
        format!(
            "::tirx_rt::host::launch_extent(KERNEL, {tag:?}, {}, {:?}, &[{}])?",
            self.text,
            print_expr(value),
            values.join(", ")
        )
    }

    /// The text with the variables that it reads.
    pub(super) fn code(self) -> Code {
        Code {
            text: self.text,
            binds: Binds::Tight,
            reads: self.found.reads,
        }
    }
}

/// The checked form of an integer expression; `None` where it contains anything but arithmetic.
pub(super) fn checked(
    printer: &mut Printer<'_>,
    expr: &Expr,
    bound: &dyn Fn(&Var) -> Option<Expr>,
) -> Option<Checked> {
    let mut found = Found::default();
    let text = text(printer, expr, bound, &mut found, 0)?;
    Some(Checked { text, found })
}

/// The condition under which a check fails, computed without wrapping; `None` where the condition contains no
/// arithmetic or narrowing.
pub(super) fn failed(
    printer: &mut Printer<'_>,
    condition: &Expr,
    bound: &dyn Fn(&Var) -> Option<Expr>,
) -> Result<Option<Code>> {
    let ExprKind::Binary(op, a, b) = &condition.kind else {
        return Ok(None);
    };
    if *op == BinOp::Or {
        // A side that is known to be false is left out.
        if matches!(printer.value(a)?, Value::Int(0)) {
            return failed(printer, b, bound);
        }
        if matches!(printer.value(b)?, Value::Int(0)) {
            return failed(printer, a, bound);
        }
        let (first, second) = (failed(printer, a, bound)?, failed(printer, b, bound)?);
        if first.is_none() && second.is_none() {
            return Ok(None);
        }
        let mut or_negated = |code: Option<Code>, expr| code.map_or_else(|| printer.negated(expr), Ok);
        let (first, second) = (or_negated(first, a)?, or_negated(second, b)?);
        return Ok(Some(logical(BinOp::And, &first, &second)));
    }
    let (method, a, b) = match op {
        BinOp::Eq => ("equals", a, b),
        BinOp::Le => ("at_most", a, b),
        BinOp::Lt => ("below", a, b),
        BinOp::Ge => ("at_most", b, a),
        BinOp::Gt => ("below", b, a),
        _ => return Ok(None),
    };
    // Unsigned arithmetic wraps on purpose.
    if a.dtype.code != TypeCode::Int {
        return Ok(None);
    }
    if is_arithmetic(a, bound) || is_arithmetic(b, bound) {
        let (Some(a), Some(b)) = (checked(printer, a, bound), checked(printer, b, bound)) else {
            return Ok(None);
        };
        let (a, b) = (a.code(), b.code());
        let reads = a.reads.into_iter().chain(b.reads).collect();
        return Ok(Some(Code {
            text: format!("!{}.{method}({})", a.text, b.text),
            binds: Binds::Unary,
            reads,
        }));
    }
    // A field of a descriptor has 64 bits, the name that it is compared with as many or fewer.
    if *op == BinOp::Eq && (abi::descriptor_value(a).is_some() || abi::descriptor_value(b).is_some()) {
        let (Some(a), Some(b)) = (signed(printer, a)?, signed(printer, b)?) else {
            return Ok(None);
        };
        let reads = [&a, &b].iter().flat_map(|code| code.reads.clone()).collect();
        return Ok(Some(Code {
            text: format!("{} != {}", a.operand(Binds::Compare), b.operand(Binds::Compare)),
            binds: Binds::Compare,
            reads,
        }));
    }
    Ok(None)
}

/// A plain integer value as an `i64`; `None` for a constant and for expressions without such a form.
fn signed(printer: &mut Printer<'_>, expr: &Expr) -> Result<Option<Code>> {
    let expr = abi::descriptor_value(expr).unwrap_or(expr);
    Ok(match printer.value(expr)? {
        Value::Code(code) if expr.dtype == DType::INT64 => Some(code),
        Value::Code(code) if expr.dtype.is_integer() && expr.dtype.bits <= 32 => Some(Code {
            text: format!("i64::from({})", code.text),
            binds: Binds::Tight,
            reads: code.reads,
        }),
        _ => None,
    })
}

const DEEPEST: usize = 64;

fn text(
    printer: &mut Printer<'_>,
    expr: &Expr,
    bound: &dyn Fn(&Var) -> Option<Expr>,
    found: &mut Found,
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
            let a = text(printer, a, bound, found, depth + 1)?;
            let b = text(printer, b, bound, found, depth + 1)?;
            Some(format!("{a}.{method}({b})"))
        }
        ExprKind::Call {
            op: op @ (Op::ShiftRight | Op::ShiftLeft),
            args,
        } => {
            let [a, count] = &args[..] else {
                return None;
            };
            let count = count.as_int().filter(|count| (0..62).contains(count))?;
            let method = if *op == Op::ShiftRight { "floor_div" } else { "mul" };
            let a = text(printer, a, bound, found, depth + 1)?;
            Some(format!(
                "{a}.{method}(::tirx_rt::host::Wide::from({}_i64))",
                1_i64 << count
            ))
        }
        ExprKind::Call {
            op: Op::IfThenElse,
            args,
        } => {
            let [condition, then, otherwise] = &args[..] else {
                return None;
            };
            let condition = printer.code(condition).ok()?;
            found.reads.extend(condition.reads.iter().cloned());
            let then = text(printer, then, bound, found, depth + 1)?;
            let otherwise = text(printer, otherwise, bound, found, depth + 1)?;
            Some(format!(
                "::tirx_rt::host::Wide::choose({}, {then}, {otherwise})",
                condition.text
            ))
        }
        // The uncast number is computed; the range check at the end covers the cast.
        ExprKind::Cast(inner) if inner.dtype.is_integer() && is_arithmetic(inner, bound) => {
            text(printer, inner, bound, found, depth + 1)
        }
        ExprKind::Var(var) => match bound(var).filter(|value| is_arithmetic(value, bound)) {
            Some(value) => text(printer, &value, bound, found, depth + 1),
            None => leaf(printer, expr, Some(var.name()), found),
        },
        _ => leaf(printer, expr, None, found),
    }
}

/// Whether an expression contains arithmetic.
fn is_arithmetic(expr: &Expr, bound: &dyn Fn(&Var) -> Option<Expr>) -> bool {
    match &expr.kind {
        ExprKind::Binary(op, ..) => !op.is_comparison() && !op.is_logical(),
        ExprKind::Cast(inner) => is_arithmetic(inner, bound),
        ExprKind::Call {
            op: Op::ShiftRight | Op::ShiftLeft,
            ..
        } => true,
        ExprKind::Call {
            op: Op::IfThenElse,
            args,
        } => args[1..].iter().any(|arg| is_arithmetic(arg, bound)),
        ExprKind::Var(var) => bound(var).is_some_and(|value| is_arithmetic(&value, &|_| None)),
        _ => false,
    }
}

/// A plain value.
fn leaf(printer: &mut Printer<'_>, expr: &Expr, name: Option<&str>, found: &mut Found) -> Option<String> {
    let expr = abi::descriptor_value(expr).unwrap_or(expr);
    let text = match printer.value(expr).ok()? {
        Value::Int(v) => {
            return i64::try_from(v)
                .ok()
                .map(|v| format!("::tirx_rt::host::Wide::from({v}_i64)"));
        }
        Value::Handle(_) => return None,
        Value::Code(code) => {
            found.reads.extend(code.reads);
            code.text
        }
    };
    let wide = match expr.dtype {
        DType::INT64 => format!("::tirx_rt::host::Wide::from({text})"),
        DType::UINT64 => format!("::tirx_rt::host::Wide::unsigned({text})"),
        _ => format!("::tirx_rt::host::Wide::from(i64::from({text}))"),
    };
    let name = name.map_or_else(|| print_expr(expr), str::to_string);
    if !found.values.iter().any(|(known, _)| *known == name) {
        found.values.push((name, wide.clone()));
    }
    Some(wide)
}
