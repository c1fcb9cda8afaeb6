//! Typing of TIR's operators: the common dtype of two operands, immediate folding, and what is rejected.
//!
//! The rules are those of TVM 0.26 at the moment a kernel is parsed, so that a kernel builds the same expression in
//! both:
//!
//! - **Literals.** A Python int is `int32`, or `int64` where it does not fit; a float is `float32`; a bool is `bool`.
//!   Then they are promoted as any other operand, so `int64_value + 1` stays `int64` (the literal is converted at
//!   once) while `float16_value * 2.5` is `float32`. In *comparisons* a literal takes the other operand's dtype.
//! - **Promotion** (arithmetic, `min`, `max`, bit operations, `if_then_else`). Of two IEEE floats the wider wins; an
//!   IEEE float wins over everything else, then bfloat16, float8, float6, float4, then integers: the wider wins, at one
//!   width unsigned wins; bool loses to all. Two different 8-bit (or 6-bit) floats have no common dtype. A scalar is
//!   broadcast to the lanes of a vector.
//! - **Comparisons** and `and`/`or`/`not` convert nothing: operands must have one dtype (bool for logic).
//! - `T.truncmod` takes all numbers: of floats it is C's `fmod`. The other integer divisions take integers alone.
//! - **Folding.** Arithmetic on two constants and the neutral elements (`x + 0`, `x * 1`, `x * 0`, …) fold;
//!   comparisons and logic never do.

mod convert;
mod fold;

pub use convert::{cast, constant, float_constant, literal, max_value, min_value, no_cast};

use crate::diagnostic::{Diagnostic, Result, error};
use crate::intrin::Op;
use crate::ir::{BinOp, DType, Expr};
use crate::source::Span;

/// An operand as the evaluator has it: an expression or a Python number.
#[derive(Clone, Debug)]
pub enum Operand {
    /// An expression of the IR.
    Expr(Expr),
    /// `True` or `False`.
    Bool(bool),
    /// An int.
    Int(i128),
    /// A float.
    Float(f64),
}

impl From<Expr> for Operand {
    fn from(e: Expr) -> Operand {
        Operand::Expr(e)
    }
}

impl Operand {
    /// The dtype of a number where nothing else determines one.
    pub fn dtype(&self) -> DType {
        match self {
            Operand::Expr(e) => e.dtype,
            Operand::Bool(_) => DType::BOOL,
            Operand::Int(v) if (i32::MIN as i128..=i32::MAX as i128).contains(v) => DType::INT32,
            Operand::Int(_) => DType::INT64,
            Operand::Float(_) => DType::FLOAT32,
        }
    }

    fn is_expr(&self) -> bool {
        matches!(self, Operand::Expr(_))
    }

    /// The operand as an expression of `dtype`; literals are converted exactly.
    fn convert(self, dtype: DType, span: Span) -> Result<Expr> {
        match self {
            Operand::Expr(e) => cast(e.into(), dtype, span),
            literal => cast(literal, dtype, span),
        }
    }
}

/// A binary operator that promotes its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Arithmetic {
    Add,
    Sub,
    Mul,
    /// Python's `/`.
    TrueDiv,
    FloorDiv,
    FloorMod,
    TruncDiv,
    TruncMod,
    Min,
    Max,
    Pow,
    ShiftLeft,
    ShiftRight,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
}

impl Arithmetic {
    /// How kernel text writes it.
    pub fn symbol(self) -> &'static str {
        use Arithmetic::*;
        match self {
            Add => "+",
            Sub => "-",
            Mul => "*",
            TrueDiv => "/",
            FloorDiv => "//",
            FloorMod => "%",
            TruncDiv => "T.truncdiv",
            TruncMod => "T.truncmod",
            Min => "T.min",
            Max => "T.max",
            Pow => "T.pow",
            ShiftLeft => "<<",
            ShiftRight => ">>",
            BitwiseAnd => "&",
            BitwiseOr => "|",
            BitwiseXor => "^",
        }
    }

    fn bin_op(self) -> Option<BinOp> {
        use Arithmetic::*;
        Some(match self {
            Add => BinOp::Add,
            Sub => BinOp::Sub,
            Mul => BinOp::Mul,
            TrueDiv | TruncDiv => BinOp::Div,
            FloorDiv => BinOp::FloorDiv,
            FloorMod => BinOp::FloorMod,
            TruncMod => BinOp::Mod,
            Min => BinOp::Min,
            Max => BinOp::Max,
            Pow | ShiftLeft | ShiftRight | BitwiseAnd | BitwiseOr | BitwiseXor => return None,
        })
    }

    fn intrinsic(self) -> Option<Op> {
        use Arithmetic::*;
        Some(match self {
            Pow => Op::Pow,
            ShiftLeft => Op::ShiftLeft,
            ShiftRight => Op::ShiftRight,
            BitwiseAnd => Op::BitwiseAnd,
            BitwiseOr => Op::BitwiseOr,
            BitwiseXor => Op::BitwiseXor,
            _ => return None,
        })
    }

    fn is_bits(self) -> bool {
        use Arithmetic::*;
        matches!(self, ShiftLeft | ShiftRight | BitwiseAnd | BitwiseOr | BitwiseXor)
    }

    /// Whether an operand of `dtype` is accepted, and which dtypes are.
    fn accepts(self, dtype: DType) -> Result<(), &'static str> {
        use Arithmetic::*;
        let (ok, what) = match self {
            FloorDiv | FloorMod | TruncDiv | ShiftLeft | ShiftRight => (dtype.is_integer(), "integer"),
            BitwiseAnd | BitwiseOr | BitwiseXor => (dtype.is_integer() || dtype.is_bool(), "integer or bool"),
            _ => (!dtype.code.eq(&DType::HANDLE.code), "numeric"),
        };
        if ok { Ok(()) } else { Err(what) }
    }
}

/// `a op b`.
pub fn binary(op: Arithmetic, a: Operand, b: Operand, span: Span) -> Result<Expr> {
    let (a, b) = operands(op, a, b, span)?;
    match fold::arithmetic(op, &a, &b, span)? {
        Some(folded) => Ok(folded.or_at(span)),
        None => node(op, a, b, span),
    }
}

/// Whether operator text of this node would fold, or be refused, when it is read: the printer writes such nodes as
/// `T.Add(a, b)`. Comparisons and logic never fold.
pub fn folds(op: BinOp, a: &Expr, b: &Expr) -> bool {
    let arithmetic = match op {
        BinOp::Add => Arithmetic::Add,
        BinOp::Sub => Arithmetic::Sub,
        BinOp::Mul => Arithmetic::Mul,
        BinOp::Div => Arithmetic::TrueDiv,
        BinOp::Mod => Arithmetic::TruncMod,
        BinOp::FloorDiv => Arithmetic::FloorDiv,
        BinOp::FloorMod => Arithmetic::FloorMod,
        BinOp::Min => Arithmetic::Min,
        BinOp::Max => Arithmetic::Max,
        _ => return false,
    };
    !matches!(fold::arithmetic(arithmetic, a, b, Span::NONE), Ok(None))
}

/// `a op b` with promotion and without folding.
pub fn binary_unfolded(op: Arithmetic, a: Operand, b: Operand, span: Span) -> Result<Expr> {
    let (a, b) = operands(op, a, b, span)?;
    node(op, a, b, span)
}

fn node(op: Arithmetic, a: Expr, b: Expr, span: Span) -> Result<Expr> {
    let result = match (op.bin_op(), op.intrinsic()) {
        (Some(op), _) => Expr::binary(op, a, b),
        (None, Some(op)) => {
            let dtype = a.dtype;
            Expr::call(op, dtype, vec![a, b])
        }
        (None, None) => return error(span, "operator without a form"),
    };
    Ok(result.at(span))
}

/// The operands checked and promoted.
fn operands(op: Arithmetic, a: Operand, b: Operand, span: Span) -> Result<(Expr, Expr)> {
    use Arithmetic::*;
    let (left, right) = (a.dtype(), b.dtype());
    for dtype in [left, right] {
        if let Err(what) = op.accepts(dtype) {
            return Err(Box::new(unsupported(op, what, left, right, span)));
        }
    }
    // Python's `/` on two signed integers: TVM rejects it as ambiguous between floor and truncating division.
    let int_like = |o: &Operand| match o {
        Operand::Expr(e) => e.dtype.is_int(),
        Operand::Int(_) | Operand::Bool(_) => true,
        Operand::Float(_) => false,
    };
    if op == TrueDiv && int_like(&a) && int_like(&b) {
        let message = format!("`/` on two integers ({left} and {right}) is ambiguous");
        return Err(Box::new(Diagnostic::new(span, message).help(
            "write `//` to round down, T.truncdiv(a, b) to round to zero, or cast an operand: T.cast(a, \"float32\")",
        )));
    }
    let (a, b) = if op.is_bits() {
        (adopt_bits(a.clone(), &b, span)?, adopt_bits(b, &a, span)?)
    } else {
        (a, b)
    };
    let (a, b) = promote(op.symbol(), a, b, span)?;
    if op == Pow && !a.dtype.is_float() {
        return Err(Box::new(unsupported(
            op,
            "float16, float32 or float64",
            left,
            right,
            span,
        )));
    }
    Ok((a, b))
}

/// An int literal in a bit operation takes the other operand's dtype; one that fits only as unsigned bits
/// (`x & 0xFFFFFFFF`) is taken as bits.
fn adopt_bits(literal: Operand, other: &Operand, span: Span) -> Result<Operand> {
    let (Operand::Int(v), Operand::Expr(e)) = (&literal, other) else {
        return Ok(literal);
    };
    let dtype = e.dtype.element();
    let unsigned = DType::uint(dtype.bits).max_int().unwrap_or(0);
    if dtype.is_int() && (0..=unsigned).contains(v) {
        return Ok(Expr::constant(dtype, *v).at(span).into());
    }
    Ok(constant(dtype, *v, span)?.into())
}

fn unsupported(op: Arithmetic, what: &str, left: DType, right: DType, span: Span) -> Diagnostic {
    let message = format!(
        "{} needs {what} operands, got {left} and {right}",
        quoted(op.symbol())
    );
    let both = |f: fn(DType) -> bool| f(left) || f(right);
    let help = if both(DType::is_handle) {
        "a pointer has no arithmetic: use buffer.ptr_to([...]) or T.handle_add_byte_offset(pointer, bytes)"
    } else if op == Arithmetic::Pow {
        "cast first: T.pow(T.cast(x, \"float32\"), y)"
    } else if both(DType::is_bool) {
        "cast the bool first: T.cast(x, \"int32\")"
    } else {
        "cast the operand first: T.cast(x, \"int32\")"
    };
    Diagnostic::new(span, message).help(help)
}

/// Operators in backticks, functions by name.
fn quoted(symbol: &str) -> String {
    if symbol.starts_with("T.") {
        symbol.to_string()
    } else {
        format!("`{symbol}`")
    }
}

/// The common dtype of `a` and `b` (of one lane count); `None` where they have none.
pub fn common_dtype(a: DType, b: DType) -> Option<DType> {
    if a == b {
        return Some(a);
    }
    // From the strongest family to the weakest; within one family the wider wins.
    let rank = |d: DType| match d {
        d if d.is_handle() || d.is_void() => None,
        d if d.is_float() => Some(6),
        d if d.is_bfloat16() => Some(5),
        d if d.is_float8() => Some(4),
        d if d.is_float6() => Some(3),
        d if d.is_float4() => Some(2),
        d if d.is_integer() => Some(1),
        _ => Some(0),
    };
    let (x, y) = (rank(a)?, rank(b)?);
    match x.cmp(&y) {
        std::cmp::Ordering::Greater => Some(a),
        std::cmp::Ordering::Less => Some(b),
        std::cmp::Ordering::Equal if x == 6 => Some(if a.bits > b.bits { a } else { b }),
        std::cmp::Ordering::Equal if x == 1 => Some(match a.bits.cmp(&b.bits) {
            std::cmp::Ordering::Greater => a,
            std::cmp::Ordering::Less => b,
            std::cmp::Ordering::Equal if a.is_uint() => a,
            std::cmp::Ordering::Equal => b,
        }),
        std::cmp::Ordering::Equal => None,
    }
}

/// Both operands in their common dtype and lane count. `what` names the operation in messages.
pub fn promote(what: &str, a: Operand, b: Operand, span: Span) -> Result<(Expr, Expr)> {
    let (x, y) = (a.dtype(), b.dtype());
    let lanes = match (x.lanes, y.lanes) {
        (m, n) if m == n => m,
        (1, n) => n,
        (m, 1) => m,
        _ => return mismatch(what, x, y, span),
    };
    let Some(common) = common_dtype(x.element(), y.element()) else {
        return mismatch(what, x, y, span);
    };
    let meet = |o: Operand| -> Result<Expr> {
        let scalar = o.dtype().is_scalar();
        let dtype = if scalar { common } else { common.with_lanes(lanes) };
        let e = o.convert(dtype, span)?;
        Ok(if scalar && lanes > 1 {
            let at = e.span;
            Expr::broadcast(e, lanes).at(at)
        } else {
            e
        })
    };
    Ok((meet(a)?, meet(b)?))
}

fn mismatch<T>(what: &str, x: DType, y: DType, span: Span) -> Result<T> {
    let diagnostic = Diagnostic::new(span, format!("{} cannot combine {x} and {y}", quoted(what)));
    let help = if x.lanes != y.lanes && !x.is_scalar() && !y.is_scalar() {
        "both vectors need the same number of lanes".to_string()
    } else if x.is_handle() || y.is_handle() {
        "a pointer has no arithmetic: use buffer.ptr_to([...]) or T.handle_add_byte_offset(pointer, bytes)"
            .into()
    } else {
        "cast one operand first: T.cast(x, \"float32\")".to_string()
    };
    Err(Box::new(diagnostic.help(help)))
}

/// `a op b` for a comparison. Nothing is promoted but literals, which take the other operand's dtype, and nothing folds.
pub fn compare(op: BinOp, a: Operand, b: Operand, span: Span) -> Result<Expr> {
    let symbol = match op {
        BinOp::Eq => "==",
        BinOp::Ne => "!=",
        BinOp::Lt => "<",
        BinOp::Le => "<=",
        BinOp::Gt => ">",
        _ => ">=",
    };
    let (x, y) = (a.dtype(), b.dtype());
    for (literal, other) in [(&a, &b), (&b, &a)] {
        let wanted = other.dtype();
        if matches!(literal, Operand::Float(_)) && other.is_expr() && !wanted.is_floating() {
            let message = format!("`{symbol}` cannot compare {wanted} with a float literal");
            let help = format!("cast the other side first: T.cast(x, \"float32\") {symbol} …");
            return Err(Box::new(Diagnostic::new(span, message).help(help)));
        }
    }
    let adopt = |o: Operand, other: DType, other_is_expr: bool| -> Result<Expr> {
        match o {
            Operand::Expr(e) => Ok(e),
            o if other_is_expr && !other.is_handle() => cast(o, other.element(), span),
            o => literal(o, span),
        }
    };
    let (a_is_expr, b_is_expr) = (a.is_expr(), b.is_expr());
    let a = adopt(a, y, b_is_expr)?;
    let b = adopt(b, x, a_is_expr)?;
    let widen = |e: Expr, lanes: u16| {
        if e.dtype.is_scalar() && lanes > 1 {
            let at = e.span;
            Expr::broadcast(e, lanes).at(at)
        } else {
            e
        }
    };
    let lanes = a.dtype.lanes.max(b.dtype.lanes);
    let (a, b) = (widen(a, lanes), widen(b, lanes));
    if a.dtype != b.dtype {
        let message = format!(
            "`{symbol}` needs operands of one dtype, got {} and {}",
            a.dtype, b.dtype
        );
        let target = comparable_dtype(a.dtype.element(), b.dtype.element()).with_lanes(lanes);
        let side = match (a.dtype == target, b.dtype == target) {
            (true, _) => "the right operand",
            (_, true) => "the left operand",
            _ => "both operands",
        };
        let help = match a.dtype.is_handle() || b.dtype.is_handle() {
            // A pointer is no number: a cast cannot make one of the other.
            true => "compare addresses as numbers: T.reinterpret(\"uint64\", p)".to_string(),
            false => format!("cast {side}: T.cast(x, \"{target}\")"),
        };
        return Err(Box::new(Diagnostic::new(span, message).help(help)));
    }
    Ok(Expr::binary(op, a, b).at(span))
}

/// A dtype that holds the values of both, to compare them in: where one integer is signed and the other is not, a wider
/// signed one, as far as there is one.
fn comparable_dtype(a: DType, b: DType) -> DType {
    let widest = |d: DType| if d.is_uint() { 2 * d.bits } else { d.bits };
    if a.is_integer() && b.is_integer() && a.is_uint() != b.is_uint() {
        return DType::int(widest(a).max(widest(b)).min(64));
    }
    common_dtype(a, b).unwrap_or(DType::FLOAT32)
}

/// `a and b`, `a or b` (`op` is [`BinOp::And`] or [`BinOp::Or`]): operands are bool; of vectors, the bitwise operator.
pub fn logical(op: BinOp, a: Operand, b: Operand, span: Span) -> Result<Expr> {
    let (name, bitwise) = match op {
        BinOp::And => ("and", Arithmetic::BitwiseAnd),
        _ => ("or", Arithmetic::BitwiseOr),
    };
    let (x, y) = (a.dtype(), b.dtype());
    for dtype in [x, y] {
        if !dtype.is_bool() {
            return not_bool(name, dtype, span);
        }
    }
    if x.is_vector() || y.is_vector() {
        return binary(bitwise, a, b, span);
    }
    Ok(Expr::binary(op, literal(a, span)?, literal(b, span)?).at(span))
}

fn not_bool<T>(name: &str, dtype: DType, span: Span) -> Result<T> {
    let diagnostic = Diagnostic::new(span, format!("`{name}` needs bool operands, got {dtype}"));
    Err(Box::new(diagnostic.help("compare it: x != 0")))
}

/// `not a`.
pub fn not(a: Operand, span: Span) -> Result<Expr> {
    if !a.dtype().is_bool() {
        return not_bool("not", a.dtype(), span);
    }
    Ok(Expr::logical_not(literal(a, span)?).at(span))
}

/// `-a`.
pub fn neg(a: Operand, span: Span) -> Result<Expr> {
    let dtype = a.dtype();
    if dtype.is_uint() || dtype.is_bool() || dtype.is_handle() {
        let diagnostic = Diagnostic::new(span, format!("unary `-` does not apply to {dtype}"));
        let help = match dtype.is_handle() {
            true => "a pointer has no arithmetic".to_string(),
            false => {
                let signed = DType::int(if dtype.bits < 32 { 32 } else { 64 }).with_lanes(dtype.lanes);
                format!("cast first: -T.cast(x, \"{signed}\")")
            }
        };
        return Err(Box::new(diagnostic.help(help)));
    }
    let minus_one = constant(dtype.element(), -1, span)?;
    binary(Arithmetic::Mul, a, minus_one.into(), span)
}

/// `~a`.
pub fn invert(a: Operand, span: Span) -> Result<Expr> {
    let dtype = a.dtype();
    if !dtype.is_integer() && !dtype.is_bool() {
        let diagnostic = Diagnostic::new(
            span,
            format!("unary `~` needs an integer or bool operand, got {dtype}"),
        );
        return Err(Box::new(diagnostic.help("cast first: ~T.cast(x, \"int32\")")));
    }
    let a = literal(a, span)?;
    Ok(Expr::call(Op::BitwiseNot, a.dtype, vec![a]).at(span))
}

/// `T.abs(a)`: a `Select` for integers, `fabs` for floats.
pub fn abs(a: Operand, span: Span) -> Result<Expr> {
    let a = literal(a, span)?;
    let dtype = a.dtype;
    if let Some(v) = a.as_int().filter(|_| dtype.is_int()) {
        return constant(dtype, v.abs(), span);
    }
    if let Some(v) = a.as_float() {
        return float_constant(dtype, v.abs(), span);
    }
    if dtype.is_uint() {
        return Ok(a);
    }
    if dtype.is_int() {
        let zero = Expr::constant(dtype, 0).at(span);
        let negated = Expr::binary(BinOp::Sub, zero.clone(), a.clone()).at(span);
        let condition = Expr::binary(BinOp::Ge, a.clone(), zero).at(span);
        return Ok(Expr::select(condition, a, negated).at(span));
    }
    if dtype.is_float() || dtype.is_bfloat16() {
        return Ok(Expr::call(Op::Fabs, dtype, vec![a]).at(span));
    }
    let diagnostic = Diagnostic::new(span, format!("T.abs does not apply to {dtype}"));
    Err(Box::new(
        diagnostic.help("cast first: T.abs(T.cast(x, \"float32\"))"),
    ))
}

/// `T.ceildiv(a, b)`: `(a + b - 1) // b`.
pub fn ceildiv(a: Operand, b: Operand, span: Span) -> Result<Expr> {
    for dtype in [a.dtype(), b.dtype()] {
        if !dtype.is_integer() {
            let message = format!(
                "T.ceildiv needs integer operands, got {} and {}",
                a.dtype(),
                b.dtype()
            );
            return error(span, message);
        }
    }
    let (a, b) = promote("T.ceildiv", a, b, span)?;
    let one = Expr::constant(a.dtype.element(), 1).at(span);
    let sum = binary(Arithmetic::Add, a.into(), b.clone().into(), span)?;
    let sum = binary(Arithmetic::Sub, sum.into(), one.into(), span)?;
    binary(Arithmetic::FloorDiv, sum.into(), b.into(), span)
}

/// `T.if_then_else(condition, a, b)`: promotes the values; a constant condition chooses at once.
pub fn if_then_else(condition: Operand, a: Operand, b: Operand, span: Span) -> Result<Expr> {
    if condition.dtype() != DType::BOOL {
        let message = format!("T.if_then_else needs a bool condition, got {}", condition.dtype());
        return Err(Box::new(
            Diagnostic::new(span, message).help("compare it: x != 0"),
        ));
    }
    let condition = literal(condition, span)?;
    let (a, b) = promote("T.if_then_else", a, b, span)?;
    Ok(match condition.as_int() {
        Some(0) => b,
        Some(_) => a,
        None => {
            let dtype = a.dtype;
            Expr::call(Op::IfThenElse, dtype, vec![condition, a, b]).at(span)
        }
    })
}

/// `T.Select(condition, a, b)`: the values must have one dtype already.
pub fn select(condition: Operand, a: Operand, b: Operand, span: Span) -> Result<Expr> {
    if !condition.dtype().is_bool() {
        let message = format!("T.Select needs a bool condition, got {}", condition.dtype());
        return Err(Box::new(
            Diagnostic::new(span, message).help("compare it: x != 0"),
        ));
    }
    let (condition, a, b) = (literal(condition, span)?, literal(a, span)?, literal(b, span)?);
    if a.dtype != b.dtype {
        let message = format!(
            "T.Select needs two values of one dtype, got {} and {}",
            a.dtype, b.dtype
        );
        let diagnostic = Diagnostic::new(span, message);
        return Err(Box::new(diagnostic.help("cast one of them: T.cast(x, \"…\")")));
    }
    Ok(Expr::select(condition, a, b).at(span))
}

#[cfg(test)]
mod tests;
