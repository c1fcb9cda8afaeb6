//! Integers of launches and checks in 64-bit arithmetic that does not wrap, as a tree that each host language spells.
//!
//! An intermediate value may leave the 32 bits that the kernel computes in. What leaves 64 bits or the driver's limits is an error
//! that names the expression and its values. The functions of both run times have the names of [`Checked::Operation`].

use crate::intrin::Op;
use crate::ir::abi;
use crate::ir::at;
use crate::ir::{BinOp, Expr, ExprKind, Var, print_expr, substitute};

/// See the [module](self).
pub(crate) enum Checked {
    /// A plain value, and its name in messages.
    Value { value: Expr, name: String },
    /// A constant.
    Constant(i64),
    /// A function of two numbers: `add`, `floor_div`, …
    Operation(&'static str, Box<[Checked; 2]>),
    /// One of two numbers, by a condition.
    Choice(Expr, Box<[Checked; 2]>),
}

/// The spelling of checked numbers in a host language.
pub(crate) trait Spelling {
    /// A constant.
    fn constant(&self, value: i64) -> String;
    /// A plain value: its text as a checked number, and whether it is a constant after all, which messages need not give.
    fn value(&mut self, value: &Expr) -> Option<(String, bool)>;
    /// A function of two numbers.
    fn operation(&self, name: &str, a: &str, b: &str) -> String;
    /// One of two numbers.
    fn choice(&mut self, condition: &Expr, then: &str, otherwise: &str) -> Option<String>;
}

/// Nested operations beyond which nothing is checked.
const DEEPEST: usize = 64;
/// Most names that an expression is followed through.
const DEEPEST_BINDINGS: usize = 16;
/// The largest expression, in nodes, that names are replaced in.
pub(crate) const LARGEST: u32 = 256;

/// What names stand for.
pub(crate) type Bound<'a> = &'a dyn Fn(&Var) -> Option<Expr>;

impl Checked {
    /// The tree of an integer expression; `None` where it contains anything but arithmetic.
    pub(crate) fn of(expr: &Expr, bound: Bound<'_>) -> Option<Checked> {
        Checked::at(expr, bound, 0)
    }

    fn at(expr: &Expr, bound: Bound<'_>, depth: usize) -> Option<Checked> {
        if depth > DEEPEST || !(expr.dtype.is_integer() || expr.dtype.is_bool()) {
            return None;
        }
        let at = |expr: &Expr| Checked::at(expr, bound, depth + 1);
        let operation = |name, a, b| Some(Checked::Operation(name, Box::new([a, b])));
        match &expr.kind {
            ExprKind::Binary(op, a, b) => operation(function(*op)?, at(a)?, at(b)?),
            ExprKind::Call {
                op: op @ (Op::ShiftRight | Op::ShiftLeft),
                args,
            } => {
                let count = args.get(at!(ShiftRight | ShiftLeft.y))?.as_int();
                let count = count.filter(|count| (0..62).contains(count))?;
                let name = if *op == Op::ShiftRight { "floor_div" } else { "mul" };
                let moved = at(&args[at!(ShiftRight | ShiftLeft.x)])?;
                operation(name, moved, Checked::Constant(1 << count))
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
                None => Some(Checked::Value {
                    value: expr.clone(),
                    name: var.name().to_string(),
                }),
            },
            _ => {
                let value = abi::descriptor_value(expr).unwrap_or(expr).clone();
                let name = print_expr(&value);
                Some(Checked::Value { value, name })
            }
        }
    }

    /// The text, and in `values` the name and the text of each value in it; `None` where the language has no text for a part.
    pub(crate) fn spell(
        &self,
        language: &mut impl Spelling,
        values: &mut Vec<(String, String)>,
    ) -> Option<String> {
        match self {
            Checked::Constant(value) => Some(language.constant(*value)),
            Checked::Value { value, name } => {
                let (text, constant) = language.value(value)?;
                if !constant && !values.iter().any(|(known, _)| known == name) {
                    values.push((name.clone(), text.clone()));
                }
                Some(text)
            }
            Checked::Operation(name, operands) => {
                let [a, b] = &**operands;
                let (a, b) = (a.spell(language, values)?, b.spell(language, values)?);
                Some(language.operation(name, &a, &b))
            }
            Checked::Choice(condition, operands) => {
                let [a, b] = &**operands;
                let (a, b) = (a.spell(language, values)?, b.spell(language, values)?);
                language.choice(condition, &a, &b)
            }
        }
    }
}

/// The run times' function of an operator.
fn function(op: BinOp) -> Option<&'static str> {
    Some(match op {
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
    })
}

/// An integer without the conversions to integers of 32 and 64 bits around it. They would cut a number that is too large; the
/// range check of the uncut number covers them.
pub(crate) fn unconverted(expr: &Expr) -> &Expr {
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
pub(crate) fn is_followed(value: &Expr) -> bool {
    let converted = matches!(value.kind, ExprKind::Cast(_)) && unconverted(value).as_var().is_some();
    value.dtype.is_integer() && (converted || is_arithmetic(value, &|_| None))
}

/// Whether an extent is computed: a plain value needs no checked arithmetic.
pub(crate) fn is_computed(expr: &Expr) -> bool {
    matches!(
        expr.kind,
        ExprKind::Binary(..) | ExprKind::Cast(_) | ExprKind::Call { .. }
    )
}

/// Whether an expression contains arithmetic.
pub(crate) fn is_arithmetic(expr: &Expr, bound: Bound<'_>) -> bool {
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
pub(crate) fn written_out(value: &Expr, bound: Bound<'_>) -> Expr {
    let mut value = value.clone();
    for _ in 0..DEEPEST_BINDINGS {
        let next = substitute(&value, &bound);
        if next == value || next.size() > LARGEST {
            break;
        }
        value = next;
    }
    value
}
