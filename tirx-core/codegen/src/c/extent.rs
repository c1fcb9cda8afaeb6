//! Launch extents in C: computed in checked 64-bit arithmetic, as those of the Rust launchers are. An intermediate value
//! may leave the 32 bits that the kernel computes in; what leaves 64 bits or the driver's limits is an error that names
//! the expression and its values.

use rustc_hash::FxHashMap;

use super::Result;
use super::expr::Printer;
use crate::ir::{BinOp, DType, Expr, ExprKind, Var, print_expr, substitute};

/// Most names that an extent is followed through.
const DEEPEST_BINDINGS: usize = 16;
/// The largest extent, in nodes, that is written as one expression.
const LARGEST: u32 = 256;

/// The statements that compute the extent `place` of a launch configuration.
pub(super) fn print(
    printer: &mut Printer,
    arithmetic: &FxHashMap<Var, Expr>,
    tag: &str,
    place: &str,
    value: &Expr,
) -> Result<Vec<String>> {
    let exact = written_out(value, arithmetic);
    let mut values = Vec::new();
    let computed = matches!(exact.kind, ExprKind::Binary(..) | ExprKind::Cast(_));
    // A plain value needs no checked arithmetic.
    let text = match computed && exact.size() <= LARGEST {
        true => wide(printer, &exact, &mut values)?,
        false => None,
    };
    let Some(text) = text else {
        let value = printer.expr(value)?;
        return Ok(vec![format!(
            "TIRX_TRY(tirx_extent(kernel, {tag:?}, (int64_t){value}, &config.{place}));"
        )]);
    };
    let count = values.len();
    let (names, numbers) = match count {
        0 => ("NULL".to_string(), "NULL".to_string()),
        _ => ("names".to_string(), "values".to_string()),
    };
    let mut lines = vec!["{".to_string()];
    if count > 0 {
        let list = |items: Vec<String>| items.join(", ");
        lines.push(format!(
            "  static const char* const names[] = {{{}}};",
            list(values.iter().map(|(name, _)| format!("{name:?}")).collect())
        ));
        lines.push(format!(
            "  const tirx_wide values[] = {{{}}};",
            list(values.iter().map(|(_, text)| text.clone()).collect())
        ));
    }
    lines.push(format!(
        "  TIRX_TRY(tirx_launch_extent(kernel, {tag:?}, {text}, {:?}, {names}, {numbers}, {count}, &config.{place}));",
        print_expr(&exact)
    ));
    lines.push("}".to_string());
    Ok(lines)
}

/// The extent with names of arithmetic values expanded.
pub(super) fn written_out(value: &Expr, arithmetic: &FxHashMap<Var, Expr>) -> Expr {
    let mut value = value.clone();
    for _ in 0..DEEPEST_BINDINGS {
        let next = substitute(&value, &|var| arithmetic.get(var).cloned());
        if next == value || next.size() > LARGEST {
            break;
        }
        value = next;
    }
    value
}

/// The text of a `tirx_wide`; `None` where the expression contains anything but integer arithmetic.
pub(super) fn wide(
    printer: &mut Printer,
    expr: &Expr,
    values: &mut Vec<(String, String)>,
) -> Result<Option<String>> {
    if !(expr.dtype.is_integer() || expr.dtype.is_bool()) {
        return Ok(None);
    }
    match &expr.kind {
        ExprKind::Binary(op, a, b) => {
            let function = match op {
                BinOp::Add => "add",
                BinOp::Sub => "sub",
                BinOp::Mul => "mul",
                BinOp::Div => "div",
                BinOp::Mod => "rem",
                BinOp::FloorDiv => "floor_div",
                BinOp::FloorMod => "floor_mod",
                BinOp::Min => "min",
                BinOp::Max => "max",
                _ => return Ok(None),
            };
            let (Some(a), Some(b)) = (wide(printer, a, values)?, wide(printer, b, values)?) else {
                return Ok(None);
            };
            Ok(Some(format!("tirx_wide_{function}({a}, {b})")))
        }
        // The uncast number is computed; the range check at the end covers the cast.
        ExprKind::Cast(inner) if inner.dtype.is_integer() && is_arithmetic(inner) => {
            wide(printer, inner, values)
        }
        ExprKind::Int(value) => {
            let number = i64::try_from(*value).ok();
            Ok(number.map(|value| match value {
                i64::MIN => "tirx_wide_of(INT64_MIN)".to_string(),
                value => format!("tirx_wide_of(INT64_C({value}))"),
            }))
        }
        _ => {
            let text = printer.expr(expr)?;
            let text = match expr.dtype {
                DType::UINT64 => format!("tirx_wide_unsigned({text})"),
                _ => format!("tirx_wide_of((int64_t){text})"),
            };
            let name = match &expr.kind {
                ExprKind::Var(var) => var.name().to_string(),
                _ => print_expr(expr),
            };
            if !values.iter().any(|(known, _)| *known == name) {
                values.push((name, text.clone()));
            }
            Ok(Some(text))
        }
    }
}

/// Whether an expression contains arithmetic.
pub(super) fn is_arithmetic(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Binary(op, ..) => !op.is_comparison() && !op.is_logical(),
        ExprKind::Cast(inner) => is_arithmetic(inner),
        _ => false,
    }
}
