//! Checked integers in Rust, and the conditions that are computed of them.

use super::code::{Binds, Code, logical};
use super::expr::{Printer, Value};
use super::stmt::Result;
use crate::ir::abi;
use crate::ir::abi::host::checked::{Bound, Checked, CheckedSpelling, is_arithmetic};
use crate::ir::{BinOp, DType, Expr, ExprKind, print_expr};

/// An integer that the launcher computes without wrapping.
pub(super) struct Wide {
    /// The Rust expression of a `::tirx_rt::host::Wide`.
    pub(super) text: String,
    /// Name in the kernel and Rust text of each value.
    values: Vec<(String, String)>,
    /// The Rust variables that it reads.
    reads: Vec<String>,
}

impl Wide {
    /// The Rust call that checks this integer as the launch extent `tag` (`blockIdx.x`) and converts it to `u32`. On an error the call
    /// shows `expr`, the kernel's expression of the extent, and the values in it.
    pub(super) fn launch_extent_call(&self, tag: &str, expr: &Expr) -> String {
        let values: Vec<String> = (self.values.iter())
            .map(|(name, text)| format!("({name:?}, {text})"))
            .collect();
        format!(
            "::tirx_rt::host::launch_extent(KERNEL, {tag:?}, {}, {:?}, &[{}])?",
            self.text,
            print_expr(expr),
            values.join(", ")
        )
    }

    /// The text with the variables that it reads.
    pub(super) fn code(self) -> Code {
        Code {
            text: self.text,
            binds: Binds::Tight,
            reads: self.reads,
        }
    }
}

/// The checked form of an integer expression; `None` where it contains anything but arithmetic.
pub(super) fn checked(printer: &mut Printer<'_>, expr: &Expr, bound: Bound<'_>) -> Option<Wide> {
    let (mut values, reads) = (Vec::new(), Vec::new());
    let mut rust = Rust { printer, reads };
    let text = Checked::from_expr(expr, bound)?.spell(&mut rust, &mut values)?;
    let reads = rust.reads;
    Some(Wide { text, values, reads })
}

/// The condition under which a check fails, computed without wrapping; `None` where the condition contains no
/// arithmetic or narrowing.
pub(super) fn failed(printer: &mut Printer<'_>, condition: &Expr, bound: Bound<'_>) -> Result<Option<Code>> {
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
    if !a.dtype.is_int() {
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

/// Checked numbers in Rust: `::tirx_rt::host::Wide`.
struct Rust<'p, 'a> {
    printer: &'p mut Printer<'a>,
    /// The Rust variables that are read.
    reads: Vec<String>,
}

impl CheckedSpelling for Rust<'_, '_> {
    fn constant(&self, value: i64) -> String {
        format!("::tirx_rt::host::Wide::from({value}_i64)")
    }

    fn value(&mut self, value: &Expr) -> Option<(String, bool)> {
        let text = match self.printer.value(value).ok()? {
            Value::Int(v) => return Some((self.constant(i64::try_from(v).ok()?), true)),
            Value::Handle(_) => return None,
            Value::Code(code) => {
                self.reads.extend(code.reads);
                code.text
            }
        };
        let wide = match value.dtype {
            DType::INT64 => format!("::tirx_rt::host::Wide::from({text})"),
            DType::UINT64 => format!("::tirx_rt::host::Wide::unsigned({text})"),
            _ => format!("::tirx_rt::host::Wide::from(i64::from({text}))"),
        };
        Some((wide, false))
    }

    fn name(&self, value: &Expr) -> String {
        print_expr(value)
    }

    fn operation(&self, name: &str, a: &str, b: &str) -> String {
        format!("{a}.{name}({b})")
    }

    fn choice(&mut self, condition: &Expr, then: &str, otherwise: &str) -> Option<String> {
        let condition = self.printer.code(condition).ok()?;
        self.reads.extend(condition.reads);
        Some(format!(
            "::tirx_rt::host::Wide::choose({}, {then}, {otherwise})",
            condition.text
        ))
    }
}
