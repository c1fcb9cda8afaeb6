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
                    crate::diagnostic::Diagnostic::new(
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
    if let ("dist", [p, q]) = (name, &values[..]) {
        let (p, q) = (interp.iterate(p, span)?, interp.iterate(q, span)?);
        if p.len() != q.len() {
            return interp.raise("ValueError", span, "math.dist() needs points of one dimension");
        }
        let squares: Option<Vec<f64>> = p
            .iter()
            .zip(&q)
            .map(|(a, b)| Some((as_float(a)? - as_float(b)?).powi(2)))
            .collect();
        return match squares {
            Some(squares) => Ok(Value::Float(exact_sum(&squares).sqrt())),
            None => interp.raise("TypeError", span, "math.dist() needs numbers"),
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
        "log" | "perm" => values.len().clamp(1, 2),
        "pow" | "atan2" | "comb" | "copysign" | "isclose" | "fmod" | "ldexp" | "remainder" | "nextafter"
        | "dist" => 2,
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
                for i in 0..(*k).min(*n + 1) {
                    out = out.saturating_mul((n - i).max(0)) / (i + 1);
                }
                return Ok(Value::Int(out));
            }
            ("perm", [n, k @ ..]) if *n >= 0 && k.iter().all(|k| *k >= 0) => {
                let k = k.first().copied().unwrap_or(*n);
                let product = (0..k.min(*n + 1)).try_fold(1i128, |out, i| match n - i {
                    1.. => out.checked_mul(n - i),
                    _ => Some(0),
                });
                return match product {
                    Some(v) => Ok(Value::Int(v)),
                    None => interp.raise("OverflowError", span, "this integer is larger than 127 bits"),
                };
            }
            ("isqrt" | "factorial" | "comb" | "perm", _) => {
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
        ("isclose", [a, b]) => {
            let tolerance = |name: &str, default: f64| {
                let given = args.keyword.iter().find(|k| &*k.0 == name);
                given.and_then(|k| as_float(&k.1)).unwrap_or(default)
            };
            let (relative, absolute) = (tolerance("rel_tol", 1e-9), tolerance("abs_tol", 0.0));
            let finite = a.is_finite() && b.is_finite();
            let near = finite && (a - b).abs() <= absolute.max(relative * a.abs().max(b.abs()));
            return Ok(Value::Bool(a == b || near));
        }
        ("modf", [v]) => {
            let fraction = if v.is_infinite() {
                0f64.copysign(*v)
            } else {
                v.fract().copysign(*v)
            };
            return Ok(Value::tuple(vec![
                Value::Float(fraction),
                Value::Float(v.trunc()),
            ]));
        }
        ("frexp", [v]) => {
            let (mantissa, exponent) = mantissa_and_exponent(*v);
            return Ok(Value::tuple(vec![Value::Float(mantissa), Value::Int(exponent)]));
        }
        ("ldexp", [v, n]) => {
            let scaled = scale(*v, *n);
            if scaled.is_infinite() && v.is_finite() {
                return interp.raise("OverflowError", span, "math range error");
            }
            scaled
        }
        ("acosh", [v]) if *v < 1.0 => return out_of_range(interp, name, span),
        ("atanh", [v]) if v.abs() >= 1.0 => return out_of_range(interp, name, span),
        ("asin" | "acos", [v]) if v.abs() > 1.0 => return out_of_range(interp, name, span),
        ("log1p", [v]) if *v <= -1.0 => return out_of_range(interp, name, span),
        ("fmod" | "remainder", [a, b]) if *b == 0.0 || a.is_infinite() => {
            return out_of_range(interp, name, span);
        }
        ("exp" | "exp2" | "expm1" | "sinh" | "cosh", [v]) if v.is_finite() && overflows(name, *v) => {
            return interp.raise("OverflowError", span, "math range error");
        }
        ("cbrt", [v]) => v.cbrt(),
        ("exp2", [v]) => v.exp2(),
        ("asinh", [v]) => v.asinh(),
        ("acosh", [v]) => v.acosh(),
        ("atanh", [v]) => v.atanh(),
        ("erf", [v]) => erf(*v),
        ("erfc", [v]) => erfc(*v),
        ("remainder", [a, b]) => ieee_remainder(*a, *b),
        ("nextafter", [a, b]) => match a.partial_cmp(b) {
            Some(std::cmp::Ordering::Less) => a.next_up(),
            Some(std::cmp::Ordering::Greater) => a.next_down(),
            Some(_) => *b,
            None => f64::NAN,
        },
        ("ulp", [v]) => match v.abs() {
            v if v.is_nan() || v.is_infinite() => v,
            v if v == f64::MAX => v - v.next_down(),
            v => v.next_up() - v,
        },
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

fn out_of_range(interp: &mut Interpreter, name: &str, span: Span) -> Result<Value> {
    interp.raise(
        "ValueError",
        span,
        format!("math.{name}() of a value out of range"),
    )
}

fn overflows(name: &str, v: f64) -> bool {
    match name {
        "exp" => v.exp(),
        "exp2" => v.exp2(),
        "expm1" => v.exp_m1(),
        "sinh" => v.sinh(),
        _ => v.cosh(),
    }
    .is_infinite()
}

/// `m` from 0.5 below 1 and `e` with `v == m * 2 ** e`.
fn mantissa_and_exponent(v: f64) -> (f64, i128) {
    if v == 0.0 || !v.is_finite() {
        return (v, 0);
    }
    // Subnormal numbers have no exponent of their own.
    let (v, shift) = match v.abs() < f64::MIN_POSITIVE {
        true => (v * 2f64.powi(64), 64),
        false => (v, 0),
    };
    let exponent = ((v.to_bits() >> 52) & 0x7ff) as i128 - 1022;
    let mantissa = f64::from_bits(v.to_bits() & !(0x7ff << 52) | 1022 << 52);
    (mantissa, exponent - shift)
}

/// `v * 2 ** n`, rounded once.
fn scale(v: f64, n: f64) -> f64 {
    if v == 0.0 || !v.is_finite() {
        return v;
    }
    let (mantissa, exponent) = mantissa_and_exponent(v);
    let exponent = exponent.saturating_add(n.clamp(-1e6, 1e6) as i128);
    match exponent {
        1025.. => mantissa * f64::INFINITY,
        -1020..=1024 => mantissa * 2.0 * 2f64.powi(exponent as i32 - 1),
        -1200..-1020 => mantissa * 2f64.powi(-1000) * 2f64.powi(exponent as i32 + 1000),
        _ => mantissa * 0.0,
    }
}

/// `a - n * b` for the `n` nearest to `a / b`, the even one of two.
fn ieee_remainder(a: f64, b: f64) -> f64 {
    if b.is_infinite() || a.is_nan() {
        return a;
    }
    let b = b.abs();
    let rest = a.abs() % b;
    let other = b - rest;
    let nearest = match rest.partial_cmp(&other) {
        Some(std::cmp::Ordering::Less) => rest,
        Some(std::cmp::Ordering::Greater) => -other,
        // Half-way: `rest` if the quotient below is even.
        _ => rest - 2.0 * ((0.5 * (a.abs() - rest)) % b),
    };
    1f64.copysign(a) * nearest
}

/// The error function: its series near zero, `1 - erfc` elsewhere.
fn erf(x: f64) -> f64 {
    match x.abs() {
        v if v < 1.5 => erf_series(x),
        v if v.is_nan() => x,
        v => (1.0 - erfc_fraction(v)).copysign(x),
    }
}

fn erfc(x: f64) -> f64 {
    match x.abs() {
        v if v < 1.5 => 1.0 - erf_series(x),
        v if v.is_nan() => x,
        v if x > 0.0 => erfc_fraction(v),
        v => 2.0 - erfc_fraction(v),
    }
}

/// `2 x exp(-x²) / √π · Σ (2x²)ⁿ / (1·3·…·(2n+1))`, summed from the small terms up.
fn erf_series(x: f64) -> f64 {
    let square = x * x;
    let sum = (1..=25)
        .rev()
        .fold(0.0, |sum, n| 2.0 + square * sum / (f64::from(n) + 0.5));
    sum * x * (-square).exp() / std::f64::consts::PI.sqrt()
}

/// A continued fraction, for `x` of at least 1.5: `exp(-x²) / √π · x / (x² + 1/2 - …)`.
fn erfc_fraction(x: f64) -> f64 {
    if x >= 30.0 {
        return 0.0;
    }
    let square = x * x;
    let (mut a, mut da) = (0.0, 0.5);
    let (mut p, mut p_before) = (1.0, 0.0);
    let (mut q, mut q_before) = (da + square, 1.0);
    for _ in 0..50 {
        a += da;
        da += 2.0;
        let b = da + square;
        (p, p_before) = (b * p - a * p_before, p);
        (q, q_before) = (b * q - a * q_before, q);
    }
    p / q * x * (-square).exp() / std::f64::consts::PI.sqrt()
}

/// The sum, rounded once: non-overlapping partial sums hold what rounding loses (Shewchuk, "Adaptive precision
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
    // From the largest down; the remainder decides a tie.
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
