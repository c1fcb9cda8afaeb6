//! Python's `math`: a row for each function.

use tirx_python::Operator;

use super::numerics::{
    combinations, erf, erfc, exact_sum, gcd, ieee_remainder, lcm, mantissa_and_exponent, next_after, scale,
    ulp,
};
use super::ops::as_float;
use super::value::Value;
use super::{Args, Interpreter, args};
use crate::diagnostic::{Diagnostic, Result};
use crate::source::Span;

const CONSTANTS: &[(&str, f64)] = &[
    ("pi", std::f64::consts::PI),
    ("e", std::f64::consts::E),
    ("tau", std::f64::consts::TAU),
    ("inf", f64::INFINITY),
    ("nan", f64::NAN),
];

/// What a function computes.
#[derive(Clone, Copy)]
enum Body {
    Float(fn(f64) -> f64),
    Floats(fn(f64, f64) -> f64),
    /// Any number of floats.
    Many(fn(&[f64]) -> f64),
    Test(fn(f64) -> bool),
    /// A float rounded to an integer; integers stay what they are.
    Round(fn(f64) -> f64),
    /// Integers, as many as the range says; `None` out of the function's domain.
    Ints(usize, usize, fn(&[i128]) -> Option<i128>),
    /// Something else, with the number of its arguments.
    Values(usize, usize, fn(&mut Interpreter, &MathCall) -> Result<Value>),
}

/// A function.
struct Function {
    name: &'static str,
    body: Body,
    /// Whether the function has no value for its first and last argument.
    outside: fn(f64, f64) -> bool,
    /// Whether an infinite result of finite arguments is an error.
    overflows: bool,
}

const fn function(name: &'static str, body: Body) -> Function {
    Function {
        name,
        body,
        outside: |_, _| false,
        overflows: false,
    }
}

const fn float(name: &'static str, f: fn(f64) -> f64) -> Function {
    function(name, Body::Float(f))
}

const fn floats(name: &'static str, f: fn(f64, f64) -> f64) -> Function {
    function(name, Body::Floats(f))
}

impl Function {
    const fn unless(self, outside: fn(f64, f64) -> bool) -> Function {
        Function { outside, ..self }
    }

    const fn overflowing(self) -> Function {
        Function {
            overflows: true,
            ..self
        }
    }

    /// The fewest and the most arguments.
    fn count(&self) -> (usize, usize) {
        match self.body {
            Body::Float(_) | Body::Test(_) | Body::Round(_) => (1, 1),
            Body::Floats(_) => (2, 2),
            Body::Many(_) => (0, usize::MAX),
            Body::Ints(least, most, _) | Body::Values(least, most, _) => (least, most),
        }
    }
}

const FUNCTIONS: &[Function] = &[
    float("sqrt", f64::sqrt).unless(|v, _| v < 0.0),
    float("cbrt", f64::cbrt),
    float("exp", f64::exp).overflowing(),
    float("exp2", f64::exp2).overflowing(),
    float("expm1", f64::exp_m1).overflowing(),
    function("log", Body::Values(1, 2, log)),
    float("log2", f64::log2).unless(|v, _| v <= 0.0),
    float("log10", f64::log10).unless(|v, _| v <= 0.0),
    float("log1p", f64::ln_1p).unless(|v, _| v <= -1.0),
    float("sin", f64::sin),
    float("cos", f64::cos),
    float("tan", f64::tan),
    float("asin", f64::asin).unless(|v, _| v.abs() > 1.0),
    float("acos", f64::acos).unless(|v, _| v.abs() > 1.0),
    float("atan", f64::atan),
    float("sinh", f64::sinh).overflowing(),
    float("cosh", f64::cosh).overflowing(),
    float("tanh", f64::tanh),
    float("asinh", f64::asinh),
    float("acosh", f64::acosh).unless(|v, _| v < 1.0),
    float("atanh", f64::atanh).unless(|v, _| v.abs() >= 1.0),
    float("erf", erf),
    float("erfc", erfc),
    float("fabs", f64::abs),
    float("degrees", f64::to_degrees),
    float("radians", f64::to_radians),
    float("ulp", ulp),
    floats("pow", f64::powf),
    floats("atan2", f64::atan2),
    floats("copysign", f64::copysign),
    floats("fmod", |a, b| a % b).unless(|a, b| b == 0.0 || a.is_infinite()),
    floats("remainder", ieee_remainder).unless(|a, b| b == 0.0 || a.is_infinite()),
    floats("nextafter", next_after),
    floats("ldexp", scale).overflowing(),
    function(
        "hypot",
        Body::Many(|v| v.iter().map(|x| x * x).sum::<f64>().sqrt()),
    ),
    function("isnan", Body::Test(f64::is_nan)),
    function("isinf", Body::Test(f64::is_infinite)),
    function("isfinite", Body::Test(f64::is_finite)),
    function("ceil", Body::Round(f64::ceil)),
    function("floor", Body::Round(f64::floor)),
    function("trunc", Body::Round(f64::trunc)),
    function(
        "gcd",
        Body::Ints(0, usize::MAX, |n| Some(n.iter().copied().fold(0, gcd))),
    ),
    function(
        "lcm",
        Body::Ints(0, usize::MAX, |n| Some(n.iter().copied().fold(1, lcm))),
    ),
    function(
        "isqrt",
        Body::Ints(1, 1, |n| (n[0] >= 0).then(|| n[0].unsigned_abs().isqrt() as i128)),
    ),
    function(
        "factorial",
        Body::Ints(1, 1, |n| (0..=33).contains(&n[0]).then(|| (1..=n[0]).product())),
    ),
    function("comb", Body::Ints(2, 2, |n| combinations(n[0], n[1]))),
    function("perm", Body::Values(1, 2, permutations)),
    function("fsum", Body::Values(1, 1, sum)),
    function("dist", Body::Values(2, 2, distance)),
    function("prod", Body::Values(1, 1, product)),
    function("isclose", Body::Values(2, 2, is_close)),
    function(
        "modf",
        Body::Values(1, 1, |interp, call| {
            let v = call.float(interp, 0)?;
            let fraction = if v.is_infinite() { 0.0 } else { v.fract() };
            let parts = [fraction.copysign(v), v.trunc()];
            Ok(Value::tuple(parts.map(Value::Float).to_vec()))
        }),
    ),
    function(
        "frexp",
        Body::Values(1, 1, |interp, call| {
            let (mantissa, exponent) = mantissa_and_exponent(call.float(interp, 0)?);
            Ok(Value::tuple(vec![Value::Float(mantissa), Value::Int(exponent)]))
        }),
    ),
];

/// The names of the module.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let constants = CONSTANTS.iter().map(|(name, _)| *name);
    FUNCTIONS.iter().map(|function| function.name).chain(constants)
}

/// `math.name`.
pub(super) fn math(name: &str) -> Option<Value> {
    if let Some((_, value)) = CONSTANTS.iter().find(|(known, _)| *known == name) {
        return Some(Value::Float(*value));
    }
    let function = FUNCTIONS.iter().find(|function| function.name == name)?;
    Some(Value::builtin(
        format!("math.{name}"),
        move |interp, args, span| call(interp, function, args, span),
    ))
}

/// A call of a function.
struct MathCall {
    name: &'static str,
    values: Vec<Value>,
    keywords: Args,
    span: Span,
}

impl MathCall {
    fn float(&self, interp: &mut Interpreter, at: usize) -> Result<f64> {
        match self.values.get(at).and_then(as_float) {
            Some(v) => Ok(v),
            None => self.needs(interp, "numbers"),
        }
    }

    fn needs<T>(&self, interp: &mut Interpreter, what: &str) -> Result<T> {
        let message = format!("math.{}() needs {what}", self.name);
        interp.raise("TypeError", self.span, message)
    }

    fn out_of_range<T>(&self, interp: &mut Interpreter) -> Result<T> {
        let message = format!("math.{}() of a value out of range", self.name);
        interp.raise("ValueError", self.span, message)
    }

    fn keyword(&self, name: &str) -> Option<&Value> {
        let mut keywords = self.keywords.keyword.iter();
        keywords
            .find(|(known, ..)| &**known == name)
            .map(|(_, value, _)| value)
    }
}

fn call(interp: &mut Interpreter, function: &'static Function, mut args: Args, span: Span) -> Result<Value> {
    let name = function.name;
    for (value, at) in &args.positional {
        match value {
            Value::Expr(_) => {
                let message = format!("math.{name}() needs values that are known at compile time");
                let diagnostic = Diagnostic::new(*at, message);
                return Err(Box::new(match super::super::lang::is_offered("T", name) {
                    true => diagnostic.help(format!("at run time, use T.{name}(…)")),
                    false => diagnostic,
                }));
            }
            Value::Unavailable(why) => return interp.unavailable(why, *at),
            _ => {}
        }
    }
    let given = std::mem::take(&mut args.positional);
    let values: Vec<Value> = given
        .iter()
        .map(|(value, _)| interp.plain_number(value))
        .collect();
    let (least, most) = function.count();
    if !(least..=most).contains(&values.len()) {
        let expected = args::count(values.len().clamp(least, most), "argument");
        let message = format!("math.{name}() takes {expected} but {} were given", values.len());
        return interp.raise("TypeError", span, message);
    }
    let call = MathCall {
        name,
        values,
        keywords: args,
        span,
    };
    if let Body::Values(_, _, f) = function.body {
        return f(interp, &call);
    }
    let x: Option<Vec<f64>> = call.values.iter().map(as_float).collect();
    let Some(x) = x else {
        return call.needs(interp, "numbers");
    };
    let ints: Option<Vec<i128>> = call.values.iter().map(Value::as_int).collect();
    if let (Some(first), Some(last)) = (x.first(), x.last())
        && (function.outside)(*first, *last)
    {
        return call.out_of_range(interp);
    }
    let result = match (function.body, &ints) {
        (Body::Round(_), Some(n)) => return Ok(Value::Int(n[0])),
        (Body::Round(f), None) => {
            return match f(x[0]) {
                v if v.is_finite() && v.abs() < 1e38 => Ok(Value::Int(v as i128)),
                _ => interp.raise("OverflowError", span, "this number is no integer"),
            };
        }
        (Body::Ints(_, _, f), Some(n)) => {
            return match f(n) {
                Some(v) => Ok(Value::Int(v)),
                None => call.out_of_range(interp),
            };
        }
        (Body::Ints(..), None) => return call.needs(interp, "int"),
        (Body::Test(f), _) => return Ok(Value::Bool(f(x[0]))),
        (Body::Float(f), _) => f(x[0]),
        (Body::Floats(f), _) => f(x[0], x[1]),
        (Body::Many(f), _) => f(&x),
        // Called above.
        (Body::Values(..), _) => return call.needs(interp, "numbers"),
    };
    if function.overflows && result.is_infinite() && x[0].is_finite() {
        return interp.raise("OverflowError", span, "math range error");
    }
    Ok(Value::Float(result))
}

fn log(interp: &mut Interpreter, call: &MathCall) -> Result<Value> {
    let v = call.float(interp, 0)?;
    let base = match call.values.len() {
        1 => None,
        _ => Some(call.float(interp, 1)?),
    };
    if v <= 0.0 {
        return call.out_of_range(interp);
    }
    Ok(Value::Float(base.map_or(v.ln(), |base| v.ln() / base.ln())))
}

fn permutations(interp: &mut Interpreter, call: &MathCall) -> Result<Value> {
    for at in 0..call.values.len() {
        call.float(interp, at)?;
    }
    let ints: Option<Vec<i128>> = call.values.iter().map(Value::as_int).collect();
    let Some(ints) = ints else {
        return call.needs(interp, "int");
    };
    if ints.iter().any(|n| *n < 0) {
        return call.out_of_range(interp);
    }
    let n = ints[0];
    let k = ints.get(1).copied().unwrap_or(n);
    let product = (0..k.min(n + 1)).try_fold(1i128, |out, i| match n - i {
        1.. => out.checked_mul(n - i),
        _ => Some(0),
    });
    match product {
        Some(v) => Ok(Value::Int(v)),
        None => interp.raise("OverflowError", call.span, "this integer is larger than 127 bits"),
    }
}

fn sum(interp: &mut Interpreter, call: &MathCall) -> Result<Value> {
    let items = interp.iterate(&call.values[0], call.span)?;
    let floats: Option<Vec<f64>> = items.iter().map(as_float).collect();
    match floats {
        Some(floats) => Ok(Value::Float(exact_sum(&floats))),
        None => call.needs(interp, "numbers"),
    }
}

fn distance(interp: &mut Interpreter, call: &MathCall) -> Result<Value> {
    let p = interp.iterate(&call.values[0], call.span)?;
    let q = interp.iterate(&call.values[1], call.span)?;
    if p.len() != q.len() {
        return interp.raise(
            "ValueError",
            call.span,
            "math.dist() needs points of one dimension",
        );
    }
    let squares: Option<Vec<f64>> = p
        .iter()
        .zip(&q)
        .map(|(a, b)| Some((as_float(a)? - as_float(b)?).powi(2)))
        .collect();
    match squares {
        Some(squares) => Ok(Value::Float(exact_sum(&squares).sqrt())),
        None => call.needs(interp, "numbers"),
    }
}

fn product(interp: &mut Interpreter, call: &MathCall) -> Result<Value> {
    let items = &call.values[0];
    let mut total = call.keyword("start").cloned().unwrap_or(Value::Int(1));
    for item in interp.iterate(items, call.span)? {
        total = match (&total, &item) {
            (Value::Int(1), Value::Expr(_)) => item,
            _ => interp.binary(Operator::Mult, &total, &item, call.span)?,
        };
    }
    Ok(total)
}

fn is_close(interp: &mut Interpreter, call: &MathCall) -> Result<Value> {
    let (a, b) = (call.float(interp, 0)?, call.float(interp, 1)?);
    let tolerance = |name: &str, default: f64| call.keyword(name).and_then(as_float).unwrap_or(default);
    let (relative, absolute) = (tolerance("rel_tol", 1e-9), tolerance("abs_tol", 0.0));
    let finite = a.is_finite() && b.is_finite();
    let near = finite && (a - b).abs() <= absolute.max(relative * a.abs().max(b.abs()));
    Ok(Value::Bool(a == b || near))
}
