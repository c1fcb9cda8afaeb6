//! Arithmetic and mathematical functions of `T`, and node constructors (`T.Add`, `T.Ramp`, …).

use super::super::eval::{Interpreter, Param, Value, keyword, optional, required};
use super::super::typing::{self, Arithmetic, Operand};
use super::call::{Function, MatchedCall, function};
use super::convert;
use crate::diagnostic::{Diagnostic, Result};
use crate::intrin::Op;
use crate::ir::{BinOp, DType, Expr, ExprKind};

const X: &[Param] = &[required("x")];
const XY: &[Param] = &[required("x"), required("y")];
const X1X2: &[Param] = &[required("x1"), required("x2")];
const AB: &[Param] = &[required("a"), required("b")];
const LHS_RHS: &[Param] = &[required("lhs"), required("rhs")];
const FMA: &[Param] = &[required("x"), required("y"), required("z")];
const CHOICE: &[Param] = &[required("cond"), required("t"), required("f")];
const SELECT: &[Param] = &[
    required("condition"),
    required("true_value"),
    required("false_value"),
];
const CAST: &[Param] = &[required("value"), required("dtype")];
const CAST_NODE: &[Param] = &[required("dtype"), required("value")];
const DTYPE: &[Param] = &[required("dtype")];
const RAMP: &[Param] = &[required("base"), required("stride"), required("lanes")];
const BROADCAST: &[Param] = &[required("value"), required("lanes")];
const SHUFFLE: &[Param] = &[required("vectors"), required("indices")];
const LET: &[Param] = &[required("expr"), required("where")];
const IMM: &[Param] = &[required("dtype"), required("value")];
const LOAD: &[Param] = &[required("buffer"), required("indices"), optional("predicate")];
const VAR: &[Param] = &[required("dtype"), optional("name")];
const VAR_NODE: &[Param] = &[optional("name"), optional("ty"), keyword("name_hint")];

type Run = fn(&mut Interpreter, &mut MatchedCall) -> Result<Value>;

macro_rules! arithmetic {
    ($a:literal, $b:literal, $op:ident) => {
        |_, c| typing::binary(Arithmetic::$op, c.operand($a)?, c.operand($b)?, c.span).map(Value::Expr)
    };
}

/// Bit operations in function form are what printed IR has for nodes: unlike the operators they do not fold.
macro_rules! bits {
    ($op:ident) => {
        |_, c| {
            typing::binary_unfolded(Arithmetic::$op, c.operand("x")?, c.operand("y")?, c.span)
                .map(Value::Expr)
        }
    };
}

macro_rules! node {
    ($op:ident) => {
        |_, c| binary_node(c, BinOp::$op)
    };
}

macro_rules! bit_node {
    ($op:ident) => {
        |_, c| {
            typing::binary_unfolded(Arithmetic::$op, c.operand("a")?, c.operand("b")?, c.span)
                .map(Value::Expr)
        }
    };
}

macro_rules! unary {
    ($op:ident) => {
        |_, c| float_unary(c, Op::$op)
    };
}

macro_rules! rounding {
    ($op:ident, $f:expr) => {
        |_, c| round(c, Op::$op, $f)
    };
}

macro_rules! float2 {
    ($op:ident) => {
        |_, c| float_binary(c, Op::$op)
    };
}

pub(super) static FUNCTIONS: &[Function] = &[
    // Operators as functions: promote and fold as the operators do.
    function("T.floordiv", AB, arithmetic!("a", "b", FloorDiv)),
    function("T.floormod", AB, arithmetic!("a", "b", FloorMod)),
    function("T.truncdiv", AB, arithmetic!("a", "b", TruncDiv)),
    function("T.truncmod", AB, arithmetic!("a", "b", TruncMod)),
    function("T.min", AB, arithmetic!("a", "b", Min)),
    function("T.max", AB, arithmetic!("a", "b", Max)),
    function("T.pow", XY, arithmetic!("x", "y", Pow)),
    function("T.shift_left", XY, bits!(ShiftLeft)),
    function("T.shift_right", XY, bits!(ShiftRight)),
    function("T.bitwise_and", XY, bits!(BitwiseAnd)),
    function("T.bitwise_or", XY, bits!(BitwiseOr)),
    function("T.bitwise_xor", XY, bits!(BitwiseXor)),
    function("T.bitwise_not", X, |_, c| {
        typing::invert(c.operand("x")?, c.span).map(Value::Expr)
    }),
    function("T.ceildiv", LHS_RHS, |_, c| {
        typing::ceildiv(c.operand("lhs")?, c.operand("rhs")?, c.span).map(Value::Expr)
    }),
    function("T.abs", X, |_, c| {
        typing::abs(c.operand("x")?, c.span).map(Value::Expr)
    }),
    function("T.fabs", X, |_, c| {
        typing::abs(c.operand("x")?, c.span).map(Value::Expr)
    }),
    function("T.if_then_else", CHOICE, |_, c| {
        typing::if_then_else(c.operand("cond")?, c.operand("t")?, c.operand("f")?, c.span).map(Value::Expr)
    }),
    function("T.Select", SELECT, |_, c| {
        let condition = c.operand("condition")?;
        typing::select(
            condition,
            c.operand("true_value")?,
            c.operand("false_value")?,
            c.span,
        )
        .map(Value::Expr)
    }),
    function("T.likely", const { &[required("cond")] }, likely),
    function("T.cast", CAST, |_, c| {
        typing::cast(c.operand("value")?, c.dtype("dtype")?, c.span).map(Value::Expr)
    }),
    function("T.infinity", DTYPE, infinity),
    function("T.max_value", DTYPE, |_, c| {
        typing::max_value(c.dtype("dtype")?, c.span).map(Value::Expr)
    }),
    function("T.min_value", DTYPE, |_, c| {
        typing::min_value(c.dtype("dtype")?, c.span).map(Value::Expr)
    }),
    function("T.reinterpret", CAST_NODE, reinterpret),
    // Mathematics.
    function("T.exp", X, unary!(Exp)),
    function("T.exp2", X, unary!(Exp2)),
    function("T.exp10", X, unary!(Exp10)),
    function("T.erf", X, unary!(Erf)),
    function("T.tanh", X, unary!(Tanh)),
    function("T.sigmoid", X, unary!(Sigmoid)),
    function("T.log", X, unary!(Log)),
    function("T.log2", X, unary!(Log2)),
    function("T.log10", X, unary!(Log10)),
    function("T.log1p", X, unary!(Log1p)),
    function("T.tan", X, unary!(Tan)),
    function("T.cos", X, unary!(Cos)),
    function("T.cosh", X, unary!(Cosh)),
    function("T.sin", X, unary!(Sin)),
    function("T.sinh", X, unary!(Sinh)),
    function("T.asin", X, unary!(Asin)),
    function("T.acos", X, unary!(Acos)),
    function("T.atan", X, unary!(Atan)),
    function("T.acosh", X, unary!(Acosh)),
    function("T.asinh", X, unary!(Asinh)),
    function("T.atanh", X, unary!(Atanh)),
    function("T.sqrt", X, unary!(Sqrt)),
    function("T.rsqrt", X, unary!(Rsqrt)),
    function("T.floor", X, rounding!(Floor, f64::floor)),
    function("T.ceil", X, rounding!(Ceil, f64::ceil)),
    function("T.trunc", X, rounding!(Trunc, f64::trunc)),
    function("T.round", X, rounding!(Round, f64::round_ties_even)),
    function("T.nearbyint", X, rounding!(Nearbyint, f64::round_ties_even)),
    function("T.atan2", X1X2, float2!(Atan2)),
    function("T.fmod", X1X2, float2!(Fmod)),
    function("T.hypot", X1X2, float2!(Hypot)),
    function("T.copysign", X1X2, float2!(Copysign)),
    function("T.nextafter", X1X2, float2!(Nextafter)),
    function("T.ldexp", X1X2, ldexp),
    function("T.fma", FMA, fma),
    function("T.isnan", X, |_, c| isnan(c.operand("x")?, c).map(Value::Expr)),
    function("T.isinf", X, |_, c| isinf(c.operand("x")?, c).map(Value::Expr)),
    function("T.isfinite", X, isfinite),
    function("T.popcount", X, |_, c| integer_unary(c, Op::Popcount)),
    function("T.clz", X, |_, c| integer_unary(c, Op::Clz)),
    // Nodes: nothing is promoted or folded.
    function("T.Add", AB, node!(Add)),
    function("T.Sub", AB, node!(Sub)),
    function("T.Mul", AB, node!(Mul)),
    function("T.Div", AB, node!(Div)),
    function("T.Mod", AB, node!(Mod)),
    function("T.FloorDiv", AB, node!(FloorDiv)),
    function("T.FloorMod", AB, node!(FloorMod)),
    function("T.Min", AB, node!(Min)),
    function("T.Max", AB, node!(Max)),
    function("T.EQ", AB, node!(Eq)),
    function("T.NE", AB, node!(Ne)),
    function("T.LT", AB, node!(Lt)),
    function("T.LE", AB, node!(Le)),
    function("T.GT", AB, node!(Gt)),
    function("T.GE", AB, node!(Ge)),
    function("T.And", AB, node!(And)),
    function("T.Or", AB, node!(Or)),
    function("T.BitwiseAnd", AB, bit_node!(BitwiseAnd)),
    function("T.BitwiseOr", AB, bit_node!(BitwiseOr)),
    function("T.BitwiseXor", AB, bit_node!(BitwiseXor)),
    function("T.LShift", AB, bit_node!(ShiftLeft)),
    function("T.RShift", AB, bit_node!(ShiftRight)),
    function("T.BitwiseNot", const { &[required("a")] }, |_, c| {
        typing::invert(c.operand("a")?, c.span).map(Value::Expr)
    }),
    function("T.Not", const { &[required("a")] }, |_, c| {
        typing::not(c.operand("a")?, c.span).map(Value::Expr)
    }),
    function("T.Cast", CAST_NODE, cast_node),
    function("T.Ramp", RAMP, ramp),
    function("T.ramp", RAMP, ramp),
    function("T.Broadcast", BROADCAST, broadcast),
    function("T.broadcast", BROADCAST, broadcast),
    function("T.Shuffle", SHUFFLE, shuffle),
    function("T.Let", LET, let_in),
    function("T.IntImm", IMM, imm),
    function("T.FloatImm", IMM, imm),
    function("T.StringImm", const { &[required("value")] }, |_, c| {
        Ok(Value::Expr(Expr::string(c.text("value")?).at(c.span)))
    }),
    function("T.BufferLoad", LOAD, buffer_load),
    function("T.var", VAR, |_, c| {
        let name = c.text_or("name", "v")?;
        let name = if name.is_empty() {
            c.names.name_or("v")
        } else {
            name
        };
        let var = crate::ir::Var::at(name, c.dtype("dtype")?, c.span);
        Ok(Value::Expr(Expr::var(&var).at(c.span)))
    }),
    function("T.Var", VAR_NODE, var_node as Run),
];

fn likely(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let e = call.expr("cond")?;
    if e.as_int().is_some() {
        return Ok(Value::Expr(e));
    }
    if !e.dtype.is_bool() {
        let message = format!("T.likely needs a condition, found {}", e.dtype);
        let d = Diagnostic::new(e.span.or(call.span), message);
        return Err(Box::new(d.help("compare it: T.likely(x != 0)")));
    }
    let dtype = e.dtype;
    Ok(Value::Expr(Expr::call(Op::Likely, dtype, vec![e]).at(call.span)))
}

fn infinity(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let dtype = call.dtype("dtype")?;
    if !dtype.is_scalar() || !(dtype.is_float() || dtype.is_bfloat16()) {
        return call.fail(format!("{dtype} has no infinity"));
    }
    Ok(Value::Expr(Expr::float(dtype, f64::INFINITY).at(call.span)))
}

fn reinterpret(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let dtype = call.dtype("dtype")?;
    let value = match call.get("value") {
        // A buffer is its pointer, if the result is one.
        Some((v @ Value::Buffer(_), span)) if dtype.is_handle() => convert::argument(v, span, call.function)?,
        Some((v @ Value::Expr(_), span)) => convert::argument(v, span, call.function)?,
        _ => call.expr("value")?,
    };
    // Pointers to different elements have one dtype here, and the conversion documents the intent.
    if value.dtype == dtype && !dtype.is_handle() {
        return Ok(Value::Expr(value));
    }
    let bits = |d: DType| d.bits as u32 * d.lanes as u32;
    // Sub-byte elements are stored in whole bytes.
    let bytes_fit = value.dtype.bytes() == dtype.bytes() && (dtype.bits < 8 || value.dtype.bits < 8);
    if bits(value.dtype) != bits(dtype) && !bytes_fit {
        return call.fail(format!(
            "{} has {} bits but {dtype} has {}",
            value.dtype,
            bits(value.dtype),
            bits(dtype)
        ));
    }
    Ok(Value::Expr(
        Expr::call(Op::Reinterpret, dtype, vec![value]).at(call.span),
    ))
}

fn not_a_float<T>(call: &MatchedCall, dtype: DType) -> Result<T> {
    let name = call.function.trim_start_matches("T.");
    call.fail_with(
        format!("needs a floating-point operand, found {dtype}"),
        format!("cast it first: T.{name}(T.cast(x, \"float32\"))"),
    )
}

fn float_unary(call: &mut MatchedCall, op: Op) -> Result<Value> {
    let x = call.expr("x")?;
    if !x.dtype.is_floating() {
        return not_a_float(call, x.dtype);
    }
    let dtype = x.dtype;
    Ok(Value::Expr(Expr::call(op, dtype, vec![x]).at(call.span)))
}

/// Integers are unchanged; constants are rounded immediately.
fn round(call: &mut MatchedCall, op: Op, f: fn(f64) -> f64) -> Result<Value> {
    let x = call.expr("x")?;
    if x.dtype.is_integer() {
        return Ok(Value::Expr(x));
    }
    if !x.dtype.is_floating() {
        return not_a_float(call, x.dtype);
    }
    if let Some(v) = x.as_float() {
        return typing::float_constant(x.dtype, f(v), call.span).map(Value::Expr);
    }
    let dtype = x.dtype;
    Ok(Value::Expr(Expr::call(op, dtype, vec![x]).at(call.span)))
}

/// The second operand of a function of two floats: a literal takes the dtype of the first.
fn adopt(operand: Operand, dtype: DType, call: &MatchedCall) -> Result<Expr> {
    match operand {
        Operand::Expr(e) if e.dtype == dtype => Ok(e),
        Operand::Expr(e) if e.dtype.is_scalar() && e.dtype == dtype.element() => {
            Ok(Expr::broadcast(e, dtype.lanes).at(call.span))
        }
        Operand::Expr(e) => call.fail_with(
            format!("needs operands of one dtype, found {dtype} and {}", e.dtype),
            format!("cast one of them: T.cast(x, \"{dtype}\")"),
        ),
        literal => typing::cast(literal, dtype, call.span),
    }
}

fn float_binary(call: &mut MatchedCall, op: Op) -> Result<Value> {
    let (a, b) = (call.operand("x1")?, call.operand("x2")?);
    // A literal first operand takes the other's dtype.
    let dtype = match (&a, &b) {
        (Operand::Expr(e), _) | (_, Operand::Expr(e)) => e.dtype,
        _ => DType::FLOAT32,
    };
    if !dtype.is_floating() {
        return not_a_float(call, dtype);
    }
    let args = vec![adopt(a, dtype, call)?, adopt(b, dtype, call)?];
    Ok(Value::Expr(Expr::call(op, dtype, args).at(call.span)))
}

fn ldexp(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let (x, exponent) = (call.expr("x1")?, call.expr("x2")?);
    if !x.dtype.is_floating() {
        return not_a_float(call, x.dtype);
    }
    if !exponent.dtype.is_integer() {
        return call.expected("x2", "an integer exponent");
    }
    let dtype = x.dtype;
    Ok(Value::Expr(
        Expr::call(Op::Ldexp, dtype, vec![x, exponent]).at(call.span),
    ))
}

fn fma(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let operands = [call.operand("x")?, call.operand("y")?, call.operand("z")?];
    let dtype = operands
        .iter()
        .find_map(|o| match o {
            Operand::Expr(e) => Some(e.dtype),
            _ => None,
        })
        .unwrap_or(DType::FLOAT32);
    if !dtype.is_floating() {
        return not_a_float(call, dtype);
    }
    let args = operands
        .into_iter()
        .map(|o| adopt(o, dtype, call))
        .collect::<Result<Vec<_>>>()?;
    Ok(Value::Expr(Expr::call(Op::Fma, dtype, args).at(call.span)))
}

fn integer_unary(call: &mut MatchedCall, op: Op) -> Result<Value> {
    let x = call.expr("x")?;
    if !x.dtype.is_integer() {
        return call.fail_with(
            format!("needs an integer operand, found {}", x.dtype),
            "the bits of a float: T.reinterpret(\"uint32\", x)",
        );
    }
    let dtype = if op == Op::Clz {
        DType::INT32.with_lanes(x.dtype.lanes)
    } else {
        x.dtype
    };
    Ok(Value::Expr(Expr::call(op, dtype, vec![x]).at(call.span)))
}

fn isnan(x: Operand, call: &MatchedCall) -> Result<Expr> {
    let x = typing::literal(x, call.span)?;
    let bool_like = DType::BOOL.with_lanes(x.dtype.lanes);
    if x.dtype.is_integer() {
        return Ok(Expr::constant(bool_like, 0).at(call.span));
    }
    if !(x.dtype.is_float() || x.dtype.is_bfloat16()) {
        return not_a_float(call, x.dtype);
    }
    if let Some(v) = x.as_float() {
        return Ok(Expr::bool(v.is_nan()).at(call.span));
    }
    // The narrow dtypes have no test of their own.
    let x = match x.dtype.bits {
        16 => {
            let wide = DType::FLOAT32.with_lanes(x.dtype.lanes);
            typing::cast(x.into(), wide, call.span)?
        }
        _ => x,
    };
    Ok(Expr::call(Op::Isnan, bool_like, vec![x]).at(call.span))
}

fn isinf(x: Operand, call: &MatchedCall) -> Result<Expr> {
    let x = typing::literal(x, call.span)?;
    if x.dtype.is_integer() {
        return Ok(Expr::bool(false).at(call.span));
    }
    if !(x.dtype.is_float() || x.dtype.is_bfloat16()) || !x.dtype.is_scalar() {
        return not_a_float(call, x.dtype);
    }
    if let Some(v) = x.as_float() {
        return Ok(Expr::bool(v.is_infinite()).at(call.span));
    }
    let infinity = Expr::float(x.dtype, f64::INFINITY).at(call.span);
    let magnitude = typing::abs(x.clone().into(), call.span)?;
    let equal = Expr::binary(BinOp::Eq, magnitude, infinity).at(call.span);
    let number = Expr::logical_not(isnan(x.into(), call)?).at(call.span);
    Ok(Expr::binary(BinOp::And, equal, number).at(call.span))
}

fn isfinite(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let x = call.expr("x")?;
    let infinite = isinf(x.clone().into(), call)?;
    if let Some(v) = infinite.as_int() {
        let nan = x.as_float().is_some_and(f64::is_nan);
        return Ok(Value::Expr(Expr::bool(v == 0 && !nan).at(call.span)));
    }
    let not_infinite = Expr::logical_not(infinite).at(call.span);
    let number = Expr::logical_not(isnan(x.into(), call)?).at(call.span);
    Ok(Value::Expr(
        Expr::binary(BinOp::And, not_infinite, number).at(call.span),
    ))
}

fn binary_node(call: &mut MatchedCall, op: BinOp) -> Result<Value> {
    let (a, b) = (call.expr("a")?, call.expr("b")?);
    if a.dtype != b.dtype {
        return call.fail_with(
            format!("needs operands of one dtype, found {} and {}", a.dtype, b.dtype),
            "operators such as `+` promote; nodes do not",
        );
    }
    if op.is_logical() && !a.dtype.is_bool() {
        return call.fail(format!("needs bool operands, found {}", a.dtype));
    }
    if a.dtype.is_handle() && !matches!(op, BinOp::Eq | BinOp::Ne) {
        return call.fail("does not apply to pointers");
    }
    Ok(Value::Expr(Expr::binary(op, a, b).at(call.span)))
}

fn cast_node(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let (dtype, value) = (call.dtype("dtype")?, call.expr("value")?);
    if dtype.lanes != value.dtype.lanes || dtype.is_handle() != value.dtype.is_handle() {
        return Err(Box::new(typing::no_cast(value.dtype, dtype, call.span)));
    }
    Ok(Value::Expr(Expr::new(ExprKind::Cast(value), dtype, call.span)))
}

fn lanes(call: &MatchedCall) -> Result<u16> {
    match call.int("lanes")? {
        v if (2..=u16::MAX as i128).contains(&v) => Ok(v as u16),
        v => call.fail(format!("lanes must be from 2 to {}, found {v}", u16::MAX)),
    }
}

fn ramp(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let base = call.expr("base")?;
    if !base.dtype.is_scalar() || base.dtype.is_handle() || base.dtype.is_bool() {
        return call.expected("base", "a scalar number");
    }
    let stride = typing::cast(call.operand("stride")?, base.dtype, call.span)?;
    Ok(Value::Expr(Expr::ramp(base, stride, lanes(call)?).at(call.span)))
}

fn broadcast(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let value = call.expr("value")?;
    if !value.dtype.is_scalar() {
        return call.expected("value", "a scalar");
    }
    Ok(Value::Expr(Expr::broadcast(value, lanes(call)?).at(call.span)))
}

fn shuffle(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let list = |name: &str| -> Result<Vec<Expr>> {
        let items = call.items(name, "a list of expressions")?;
        items.iter().map(|v| convert::expr(v, call.span)).collect()
    };
    let (vectors, indices) = (list("vectors")?, list("indices")?);
    let Some(first) = vectors.first() else {
        return call.fail("needs at least one vector");
    };
    let element = first.dtype.element();
    if let Some(other) = vectors.iter().find(|v| v.dtype.element() != element) {
        return call.fail(format!(
            "vectors must have one element dtype, found {element} and {}",
            other.dtype
        ));
    }
    let total: i128 = vectors.iter().map(|v| v.dtype.lanes as i128).sum();
    if let Some(bad) = indices
        .iter()
        .filter_map(Expr::as_int)
        .find(|v| !(0..total).contains(v))
    {
        return call.fail(format!(
            "index {bad} is out of range: the vectors have {total} lanes"
        ));
    }
    if indices.is_empty() || indices.len() > u16::MAX as usize {
        return call.fail("needs at least one index");
    }
    let dtype = element.with_lanes(indices.len() as u16);
    Ok(Value::Expr(Expr::new(
        ExprKind::Shuffle { vectors, indices },
        dtype,
        call.span,
    )))
}

fn let_in(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let body = call.expr("expr")?;
    let (where_, _) = call.need("where", "a dictionary with one variable")?;
    let Value::Dict(dict) = where_ else {
        return call.expected("where", "a dictionary with one variable");
    };
    let pairs: Vec<(Value, Value)> = dict
        .borrow()
        .iter()
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let [(var, value)] = &pairs[..] else {
        return call.expected("where", "a dictionary with one variable");
    };
    let Some(var) = var.as_expr().and_then(|e| e.as_var()) else {
        return call.expected("where", "a dictionary with one variable");
    };
    let value = convert::expr(value, call.span)?;
    if value.dtype != var.dtype() {
        return call.fail(format!(
            "the value is {} but the variable is {}",
            value.dtype,
            var.dtype()
        ));
    }
    Ok(Value::Expr(Expr::let_in(var, value, body).at(call.span)))
}

fn imm(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    typing::cast(call.operand("value")?, call.dtype("dtype")?, call.span).map(Value::Expr)
}

fn buffer_load(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let Some(buffer) = call.get("buffer").and_then(|(v, _)| convert::buffer(v)) else {
        return call.expected("buffer", "a buffer");
    };
    let index = Value::tuple(call.items("indices", "a list of indices")?);
    let loaded = super::access::load(interp, &buffer, &index, call.span)?;
    let (Value::Expr(e), Some(predicate)) = (&loaded, call.opt_expr("predicate")?) else {
        return Ok(loaded);
    };
    let ExprKind::BufferLoad { buffer, indices, .. } = &e.kind else {
        return Ok(loaded);
    };
    if predicate.dtype != DType::BOOL.with_lanes(e.dtype.lanes) {
        let message = format!(
            "T.BufferLoad: the predicate of {} must be a bool per lane, found {}",
            e.dtype, predicate.dtype
        );
        return Err(Box::new(Diagnostic::new(call.span, message)));
    }
    let kind = ExprKind::BufferLoad {
        buffer: buffer.clone(),
        indices: indices.clone(),
        predicate: Some(predicate),
    };
    Ok(Value::Expr(Expr::new(kind, e.dtype, call.span)))
}

fn var_node(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let name = match call.get("name_hint") {
        Some(_) => call.text("name_hint")?,
        None => call.text_or("name", &call.names.name_or("v"))?,
    };
    let ty = match call.get("ty") {
        Some((ty, span)) => convert::type_of_value(ty, span)?,
        None => None,
    };
    let Some(ty) = ty else {
        return call.expected("ty", "a type");
    };
    let var = crate::ir::Var::at(name, ty, call.span);
    Ok(Value::Expr(Expr::var(&var).at(call.span)))
}
