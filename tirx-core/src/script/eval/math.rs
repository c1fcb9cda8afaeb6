//! Python's `math`.

use ruff_python_ast::Operator;

use super::ops::as_float;
use super::value::Value;
use super::{Args, Interpreter, args};
use crate::diagnostic::{Result, error};
use crate::source::Span;

/// `math.name`.
pub(super) fn math(name: &'static str) -> Option<Value> {
    let constant = match name {
        "pi" => std::f64::consts::PI,
        "e" => std::f64::consts::E,
        "tau" => std::f64::consts::TAU,
        "inf" => f64::INFINITY,
        "nan" => f64::NAN,
        _ => {
            return Some(Value::builtin(format!("math.{name}"), move |i, a, s| {
                call_math(i, name, a, s)
            }));
        }
    };
    Some(Value::Float(constant))
}

fn call_math(interp: &mut Interpreter, name: &'static str, args: Args, span: Span) -> Result<Value> {
    for (value, at) in &args.positional {
        match value {
            Value::Expr(_) => {
                return Err(Box::new(
                    crate::Diagnostic::new(
                        *at,
                        format!("math.{name}() needs values that are known at compile time"),
                    )
                    .help(format!("at run time, use T.{name}(…)")),
                ));
            }
            Value::Unavailable(why) => return interp.unavailable(why, *at),
            _ => {}
        }
    }
    let values: Vec<Value> = args
        .positional
        .iter()
        .map(|a| interp.plain_number(&a.0))
        .collect();
    if let ("fsum", [items]) = (name, &values[..]) {
        let items = interp.iterate(items, span)?;
        let floats: Option<Vec<f64>> = items.iter().map(as_float).collect();
        return match floats {
            Some(floats) => Ok(Value::Float(exact_sum(&floats))),
            None => interp.raise("TypeError", span, "math.fsum() needs numbers"),
        };
    }
    if name == "prod" {
        let mut total = match args.keyword.iter().find(|k| &*k.0 == "start") {
            Some((_, v, _)) => v.clone(),
            None => Value::Int(1),
        };
        let Some(items) = values.first() else {
            return error(span, format!("math.{name}() needs an iterable"));
        };
        for item in interp.iterate(items, span)? {
            total = match (&total, &item) {
                (Value::Int(1), Value::Expr(_)) => item,
                _ => interp.binary(Operator::Mult, &total, &item, span)?,
            };
        }
        return Ok(total);
    }
    let expected = match name {
        "gcd" | "lcm" | "hypot" => values.len(),
        "log" => values.len().clamp(1, 2),
        "pow" | "atan2" | "comb" | "copysign" | "isclose" | "fmod" => 2,
        _ => 1,
    };
    if values.len() != expected {
        return interp.raise(
            "TypeError",
            span,
            format!(
                "math.{name}() takes {} but {} were given",
                args::count(expected, "argument"),
                values.len()
            ),
        );
    }
    let ints: Option<Vec<i128>> = values.iter().map(Value::as_int).collect();
    let floats: Option<Vec<f64>> = values.iter().map(as_float).collect();
    let Some(x) = floats else {
        return interp.raise("TypeError", span, format!("math.{name}() needs numbers"));
    };
    if let Some(n) = &ints {
        match (name, &n[..]) {
            ("ceil" | "floor" | "trunc", [v]) => return Ok(Value::Int(*v)),
            ("gcd", n) => return Ok(Value::Int(n.iter().fold(0, |a, b| gcd(a, *b)))),
            ("lcm", n) => {
                let mut out = 1i128;
                for v in n {
                    let g = gcd(out, *v);
                    out = if g == 0 {
                        0
                    } else {
                        (out / g).saturating_mul(*v).abs()
                    };
                }
                return Ok(Value::Int(out));
            }
            ("isqrt", [v]) if *v >= 0 => return Ok(Value::Int(v.unsigned_abs().isqrt() as i128)),
            ("factorial", [v]) if (0..=33).contains(v) => return Ok(Value::Int((1..=*v).product())),
            ("comb", [n, k]) if *n >= 0 && *k >= 0 && *n <= 120 => {
                let mut out = 1i128;
                for i in 0..*k {
                    out = out.saturating_mul((n - i).max(0)) / (i + 1);
                }
                return Ok(Value::Int(out));
            }
            ("isqrt" | "factorial" | "comb", _) => {
                return interp.raise(
                    "ValueError",
                    span,
                    format!("math.{name}() of a value out of range"),
                );
            }
            _ => {}
        }
    }
    let to_int = |interp: &mut Interpreter, v: f64| match v.is_finite() && v.abs() < 1e38 {
        true => Ok(Value::Int(v as i128)),
        false => interp.raise("OverflowError", span, "this number is no integer"),
    };
    let result = match (name, &x[..]) {
        ("ceil", [v]) => return to_int(interp, v.ceil()),
        ("floor", [v]) => return to_int(interp, v.floor()),
        ("trunc", [v]) => return to_int(interp, v.trunc()),
        ("isnan", [v]) => return Ok(Value::Bool(v.is_nan())),
        ("isinf", [v]) => return Ok(Value::Bool(v.is_infinite())),
        ("isfinite", [v]) => return Ok(Value::Bool(v.is_finite())),
        ("isclose", [a, b]) => return Ok(Value::Bool((a - b).abs() <= 1e-9 * a.abs().max(b.abs()))),
        ("sqrt" | "log" | "log2" | "log10", [v, ..]) if *v < 0.0 || (name != "sqrt" && *v == 0.0) => {
            return interp.raise(
                "ValueError",
                span,
                format!("math.{name}() of a value out of range"),
            );
        }
        ("sqrt", [v]) => v.sqrt(),
        ("log", [v]) => v.ln(),
        ("log", [v, base]) => v.ln() / base.ln(),
        ("log2", [v]) => v.log2(),
        ("log10", [v]) => v.log10(),
        ("log1p", [v]) => v.ln_1p(),
        ("exp", [v]) => v.exp(),
        ("expm1", [v]) => v.exp_m1(),
        ("pow", [a, b]) => a.powf(*b),
        ("sin", [v]) => v.sin(),
        ("cos", [v]) => v.cos(),
        ("tan", [v]) => v.tan(),
        ("asin", [v]) => v.asin(),
        ("acos", [v]) => v.acos(),
        ("atan", [v]) => v.atan(),
        ("atan2", [a, b]) => a.atan2(*b),
        ("sinh", [v]) => v.sinh(),
        ("cosh", [v]) => v.cosh(),
        ("tanh", [v]) => v.tanh(),
        ("fabs", [v]) => v.abs(),
        ("copysign", [a, b]) => a.copysign(*b),
        ("fmod", [a, b]) => a % b,
        ("hypot", v) => v.iter().map(|x| x * x).sum::<f64>().sqrt(),
        ("degrees", [v]) => v.to_degrees(),
        ("radians", [v]) => v.to_radians(),
        _ => return interp.raise("TypeError", span, format!("math.{name}() needs int")),
    };
    Ok(Value::Float(result))
}

/// The sum, rounded once: partial sums that do not overlap hold what rounding loses (Shewchuk, "Adaptive precision
/// floating-point arithmetic", 1997).
fn exact_sum(items: &[f64]) -> f64 {
    let mut partials: Vec<f64> = Vec::new();
    for &item in items {
        let mut x = item;
        let mut kept = 0;
        for i in 0..partials.len() {
            let mut y = partials[i];
            if x.abs() < y.abs() {
                std::mem::swap(&mut x, &mut y);
            }
            let high = x + y;
            let low = y - (high - x);
            if low != 0.0 {
                partials[kept] = low;
                kept += 1;
            }
            x = high;
        }
        partials.truncate(kept);
        partials.push(x);
    }
    if let Some(special) = items
        .iter()
        .copied()
        .filter(|v| !v.is_finite())
        .reduce(|a, b| a + b)
    {
        return special;
    }
    // From the largest down; what is left decides a tie.
    let mut rest = partials.into_iter().rev();
    let Some(mut total) = rest.next() else { return 0.0 };
    while let Some(next) = rest.next() {
        let sum = total + next;
        let lost = next - (sum - total);
        total = sum;
        if lost != 0.0 {
            if let Some(further) = rest.next()
                && (further < 0.0) == (lost < 0.0)
                && further != 0.0
            {
                let twice = lost * 2.0;
                let moved = total + twice;
                if twice == moved - total {
                    total = moved;
                }
            }
            break;
        }
    }
    total
}

fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a as i128
}
