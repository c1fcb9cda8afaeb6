//! Integers of launches and checks in 64-bit arithmetic that does not wrap, as a tree that each host language spells.
//!
//! An intermediate value may leave the 32 bits that the kernel computes in. What leaves 64 bits or the driver's limits is an error
//! that names the expression and its values. The functions of both runtimes have the names of
//! [`checked`](HostOperator::checked) in the operators' rows.

use super::operators::{HostOperation, HostOperator};
use crate::intrin::Op;
use crate::ir::{BinOp, DType, Expr, ExprKind, Var};
use crate::{abi, at, substitute};

/// See the [module](self).
pub enum Checked {
    /// A plain value.
    Value(Expr),
    /// A constant.
    Constant(i64),
    /// An operation on two numbers.
    Operation(&'static HostOperator, Box<[Checked; 2]>),
    /// One of two numbers, by a condition.
    Choice(Expr, Box<[Checked; 2]>),
}

/// The spelling of checked numbers in a host language.
pub trait CheckedSpelling {
    /// A constant.
    fn constant(&self, value: i64) -> String;
    /// A plain value: its text as a checked number, and whether it is a constant after all, which messages need not give.
    fn value(&mut self, value: &Expr) -> Option<(String, bool)>;
    /// The name of a plain value in messages.
    fn name(&self, value: &Expr) -> String;
    /// A function of two numbers.
    fn operation(&self, name: &str, a: &str, b: &str) -> String;
    /// One of two numbers.
    fn choice(&mut self, condition: &Expr, then: &str, otherwise: &str) -> Option<String>;
}

/// Nested operations beyond which nothing is checked.
const MAX_DEPTH: usize = 64;
/// Most names that an expression is followed through.
const MAX_BINDING_DEPTH: usize = 16;
/// The largest expression, in nodes, that names are replaced in.
pub const MAX_SIZE: u32 = 256;

/// The values that names stand for.
pub type Bound<'a> = &'a dyn Fn(&Var) -> Option<Expr>;

impl Checked {
    /// The tree of an integer expression; `None` where it contains anything but arithmetic.
    pub fn from_expr(expr: &Expr, bound: Bound<'_>) -> Option<Checked> {
        Checked::at(expr, bound, 0)
    }

    fn at(expr: &Expr, bound: Bound<'_>, depth: usize) -> Option<Checked> {
        if depth > MAX_DEPTH || !(expr.dtype.is_integer() || expr.dtype.is_bool()) {
            return None;
        }
        let at = |expr: &Expr| Checked::at(expr, bound, depth + 1);
        let operation = |row, a, b| Some(Checked::Operation(row, Box::new([a, b])));
        match &expr.kind {
            ExprKind::Binary(op, a, b) => operation(row(*op)?, at(a)?, at(b)?),
            ExprKind::Call {
                op: op @ (Op::ShiftRight | Op::ShiftLeft),
                args,
            } => {
                let count = args.get(at!(ShiftRight | ShiftLeft.y))?.as_int();
                let count = count.filter(|count| (0..62).contains(count))?;
                let by = if *op == Op::ShiftRight {
                    BinOp::FloorDiv
                } else {
                    BinOp::Mul
                };
                let moved = at(&args[at!(ShiftRight | ShiftLeft.x)])?;
                operation(row(by)?, moved, Checked::Constant(1 << count))
            }
            ExprKind::Call {
                op: Op::IfThenElse,
                args,
            } => {
                let both = Box::new([at(&args[at!(IfThenElse.t)])?, at(&args[at!(IfThenElse.f)])?]);
                Some(Checked::Choice(args[at!(IfThenElse.cond)].clone(), both))
            }
            ExprKind::Cast(_) if !std::ptr::eq(unconverted(expr), expr) => at(unconverted(expr)),
            ExprKind::Int(value) => i64::try_from(*value).ok().map(Checked::Constant),
            ExprKind::Var(var) => match bound(var).filter(is_followed) {
                Some(value) => at(&value),
                None => Some(Checked::Value(expr.clone())),
            },
            _ => Some(Checked::Value(
                abi::descriptor_value(expr).unwrap_or(expr).clone(),
            )),
        }
    }

    /// The text, and in `values` the name and the text of each value in it; `None` where the language has no text for a part.
    pub fn spell(
        &self,
        language: &mut impl CheckedSpelling,
        values: &mut Vec<(String, String)>,
    ) -> Option<String> {
        match self {
            Checked::Constant(value) => Some(language.constant(*value)),
            Checked::Value(value) => {
                let (text, constant) = language.value(value)?;
                let name =
                    (value.as_var()).map_or_else(|| language.name(value), |var| var.name().to_string());
                if !constant && !values.iter().any(|(known, _)| *known == name) {
                    values.push((name, text.clone()));
                }
                Some(text)
            }
            Checked::Operation(row, operands) => {
                let [a, b] = &**operands;
                let (a, b) = (a.spell(language, values)?, b.spell(language, values)?);
                Some(language.operation(row.checked?, &a, &b))
            }
            Checked::Choice(condition, operands) => {
                let [a, b] = &**operands;
                let (a, b) = (a.spell(language, values)?, b.spell(language, values)?);
                language.choice(condition, &a, &b)
            }
        }
    }
}

/// The row of an operator, if checked arithmetic has it.
fn row(op: BinOp) -> Option<&'static HostOperator> {
    HostOperator::find(HostOperation::Binary(op), DType::INT64).filter(|row| row.checked.is_some())
}

/// An integer without the conversions to integers of 32 and 64 bits around it. They would cut a number that is too large; the
/// range check of the uncut number covers them.
pub fn unconverted(expr: &Expr) -> &Expr {
    match &expr.kind {
        ExprKind::Cast(inner)
            if expr.dtype.is_integer() && expr.dtype.bits >= 32 && inner.dtype.is_integer() =>
        {
            unconverted(inner)
        }
        _ => expr,
    }
}

/// Whether extents compute with the value of a name in place of the name: arithmetic, and names that are converted.
pub fn is_followed(value: &Expr) -> bool {
    let converted = matches!(value.kind, ExprKind::Cast(_)) && unconverted(value).as_var().is_some();
    value.dtype.is_integer() && (converted || is_arithmetic(value, &|_| None))
}

/// Whether an extent is computed: a plain value needs no checked arithmetic.
pub fn is_computed(expr: &Expr) -> bool {
    matches!(
        expr.kind,
        ExprKind::Binary(..) | ExprKind::Cast(_) | ExprKind::Call { .. }
    )
}

/// Whether the value of an expression is a result of arithmetic, which may overflow: it is an operator's result, or a cast, an arm of
/// `if_then_else` or a name of such a value. `bound` gives the value that a name is bound to. Comparisons and logic give bools, so the
/// arithmetic in their operands does not count.
pub fn is_arithmetic(expr: &Expr, bound: Bound<'_>) -> bool {
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
        } => args[at!(IfThenElse.t)..]
            .iter()
            .any(|arm| is_arithmetic(arm, bound)),
        ExprKind::Var(var) => bound(var).is_some_and(|value| is_arithmetic(&value, &|_| None)),
        _ => false,
    }
}

/// An expression with names replaced by what they stand for, as far as it stays of a size that can be read.
pub fn written_out(value: &Expr, bound: Bound<'_>) -> Expr {
    let mut value = value.clone();
    for _ in 0..MAX_BINDING_DEPTH {
        let next = substitute(&value, &bound);
        if next == value || next.size() > MAX_SIZE {
            break;
        }
        value = next;
    }
    value
}
