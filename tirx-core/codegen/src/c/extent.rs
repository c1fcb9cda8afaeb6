//! Launch extents in C, in checked arithmetic.

use super::Result;
use super::expr::Printer;
use crate::ir::abi::host::checked::{
    Bound, Checked, CheckedSpelling, MAX_SIZE, is_computed, unconverted, written_out,
};
use crate::ir::{DType, Expr, print_expr};

/// The statements that compute the extent `place` of a launch configuration.
pub(super) fn print(
    printer: &mut Printer,
    bound: Bound<'_>,
    tag: &str,
    place: &str,
    value: &Expr,
) -> Result<Vec<String>> {
    let exact = written_out(value, bound);
    let exact = unconverted(&exact);
    let checked = match is_computed(exact) && exact.size() <= MAX_SIZE {
        true => wide(printer, exact),
        false => None,
    };
    let Some((text, values)) = checked else {
        // A name stands for more than itself only where its value is short.
        let value = printer.expr(if exact.size() <= MAX_SIZE {
            exact
        } else {
            unconverted(value)
        })?;
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
        print_expr(exact)
    ));
    lines.push("}".to_string());
    Ok(lines)
}

/// The text of a `tirx_wide`, and the names and texts of the values in it; `None` where the expression contains anything but
/// integer arithmetic.
pub(super) fn wide(printer: &mut Printer, expr: &Expr) -> Option<(String, Vec<(String, String)>)> {
    let mut values = Vec::new();
    let text = Checked::from_expr(expr, &|_| None)?.spell(&mut C(printer), &mut values)?;
    Some((text, values))
}

/// Checked numbers in C: `tirx_wide`.
struct C<'p>(&'p mut Printer);

impl CheckedSpelling for C<'_> {
    fn constant(&self, value: i64) -> String {
        match value {
            i64::MIN => "tirx_wide_of(INT64_MIN)".to_string(),
            value => format!("tirx_wide_of(INT64_C({value}))"),
        }
    }

    fn value(&mut self, value: &Expr) -> Option<(String, bool)> {
        let text = self.0.expr(value).ok()?;
        let text = match value.dtype {
            DType::UINT64 => format!("tirx_wide_unsigned({text})"),
            _ => format!("tirx_wide_of((int64_t){text})"),
        };
        Some((text, false))
    }

    fn name(&self, value: &Expr) -> String {
        print_expr(value)
    }

    fn operation(&self, name: &str, a: &str, b: &str) -> String {
        format!("tirx_wide_{name}({a}, {b})")
    }

    fn choice(&mut self, condition: &Expr, then: &str, otherwise: &str) -> Option<String> {
        let condition = self.0.expr(condition).ok()?;
        Some(format!("({condition} ? {then} : {otherwise})"))
    }
}
