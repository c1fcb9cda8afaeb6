//! Constructors of expressions that fold what is constant at once.
//!
//! They fold two constants, and the identities `x + 0`, `x * 1`, `x * 0`, `x / 1`, `x // 1`, `x % 1`, boolean constants
//! under `and`/`or`/`not`. Integer division by a constant zero is left for code generation to report. Integer results
//! wrap to the dtype. All other simplification is done by `tirx-arith`.

use crate::ir::{BinOp, DType, Expr, ExprKind};

/// Quotient and remainder of the truncating division; `b` must not be zero. Nearly all numbers have 64 bits, which the machine
/// divides itself.
pub fn div_rem(a: i128, b: i128) -> (i128, i128) {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(x), Ok(y)) if x != i64::MIN => ((x / y).into(), (x % y).into()),
        _ => (a / b, a % b),
    }
}

/// Quotient rounded to minus infinity. `b` must not be zero.
pub fn floor_div(a: i128, b: i128) -> i128 {
    let (quotient, remainder) = div_rem(a, b);
    if remainder != 0 && (a < 0) != (b < 0) {
        quotient - 1
    } else {
        quotient
    }
}

/// Remainder of [`floor_div`]; has the sign of `b`, which must not be zero.
pub fn floor_mod(a: i128, b: i128) -> i128 {
    a - floor_div(a, b) * b
}

/// The value of `op` on two integer constants of `dtype`; `None` for a division by zero.
pub fn eval_int(op: BinOp, dtype: DType, a: i128, b: i128) -> Option<i128> {
    use BinOp::*;
    let value = match op {
        Add => a + b,
        Sub => a - b,
        Mul => a.wrapping_mul(b),
        Div if b != 0 => a / b,
        Mod if b != 0 => a % b,
        FloorDiv if b != 0 => floor_div(a, b),
        FloorMod if b != 0 => floor_mod(a, b),
        Div | Mod | FloorDiv | FloorMod => return None,
        Min => a.min(b),
        Max => a.max(b),
        Eq => return Some((a == b) as i128),
        Ne => return Some((a != b) as i128),
        Lt => return Some((a < b) as i128),
        Le => return Some((a <= b) as i128),
        Gt => return Some((a > b) as i128),
        Ge => return Some((a >= b) as i128),
        And => (a != 0 && b != 0) as i128,
        Or => (a != 0 || b != 0) as i128,
    };
    Some(dtype.wrap(value))
}

/// The value of an arithmetic `op` on two floating constants, before rounding to the dtype; `None` where the
/// operator has no float form or the fold would hide a division by zero.
fn eval_float(op: BinOp, a: f64, b: f64) -> Option<f64> {
    use BinOp::*;
    Some(match op {
        Add => a + b,
        Sub => a - b,
        Mul => a * b,
        Div if b != 0.0 => a / b,
        // As in hardware, a negative zero is less than a positive one.
        Min if a == b => {
            if a.is_sign_negative() {
                a
            } else {
                b
            }
        }
        Max if a == b => {
            if a.is_sign_negative() {
                b
            } else {
                a
            }
        }
        Min => a.min(b),
        Max => a.max(b),
        _ => return None,
    })
}

/// A binary node, folded. Operands must have one dtype.
pub fn binary(op: BinOp, a: Expr, b: Expr) -> Expr {
    try_fold(op, &a, &b)
        .map(|e| e.or_at(a.span.to(b.span)))
        .unwrap_or_else(|| Expr::binary(op, a, b))
}

fn try_fold(op: BinOp, a: &Expr, b: &Expr) -> Option<Expr> {
    use BinOp::*;
    let dtype = a.dtype;
    if let (Some(x), Some(y)) = (a.as_int(), b.as_int()) {
        let result = if op.is_comparison() { DType::BOOL } else { dtype };
        return eval_int(op, dtype, x, y).map(|v| Expr::constant(result, v));
    }
    if let (Some(x), Some(y)) = (a.as_float(), b.as_float()) {
        if op.is_comparison() {
            let v = match op {
                Eq => x == y,
                Ne => x != y,
                Lt => x < y,
                Le => x <= y,
                Gt => x > y,
                _ => x >= y,
            };
            return Some(Expr::bool(v));
        }
        // Operations on small floats are computed in float32, and a chain of them rounds once at its end, so nothing is
        // folded here.
        if dtype.is_small_float() && !matches!(op, Min | Max) {
            return None;
        }
        // float32 arithmetic in f64, rounded once more, equals float32 arithmetic for these operators; a result
        // that overflows the dtype stays unfolded so that the program's own rounding decides.
        let v = eval_float(op, x, y)?;
        return v.is_finite().then(|| Expr::float(dtype, v));
    }
    let one = |e: &Expr| e.is_int(1) || e.as_float() == Some(1.0);
    match op {
        Add if zero_int(a) => Some(b.clone()),
        Add | Sub if zero_int(b) => Some(a.clone()),
        Mul if one(a) => Some(b.clone()),
        Mul if one(b) => Some(a.clone()),
        Mul if zero_int(a) => Some(a.clone()),
        Mul if zero_int(b) => Some(b.clone()),
        Div | FloorDiv if one(b) => Some(a.clone()),
        Mod | FloorMod if b.is_int(1) => Some(Expr::constant(dtype, 0)),
        Div | FloorDiv | Mod | FloorMod if zero_int(a) && !zero_int(b) => Some(a.clone()),
        And => match (a.as_int(), b.as_int()) {
            (Some(0), _) | (_, Some(0)) => Some(Expr::bool(false)),
            (Some(_), None) => Some(b.clone()),
            (None, Some(_)) => Some(a.clone()),
            _ => None,
        },
        Or => match (a.as_int(), b.as_int()) {
            (Some(0), None) => Some(b.clone()),
            (None, Some(0)) => Some(a.clone()),
            (Some(_), _) | (_, Some(_)) => Some(Expr::bool(true)),
            _ => None,
        },
        _ => None,
    }
}

fn zero_int(e: &Expr) -> bool {
    e.is_int(0)
}

/// `a + b`.
pub fn add(a: Expr, b: Expr) -> Expr {
    binary(BinOp::Add, a, b)
}
/// `a - b`.
pub fn sub(a: Expr, b: Expr) -> Expr {
    binary(BinOp::Sub, a, b)
}
/// `a * b`.
pub fn mul(a: Expr, b: Expr) -> Expr {
    binary(BinOp::Mul, a, b)
}
/// `a // b`.
pub fn floordiv(a: Expr, b: Expr) -> Expr {
    binary(BinOp::FloorDiv, a, b)
}
/// `a % b`, rounding as [`floordiv`].
pub fn floormod(a: Expr, b: Expr) -> Expr {
    binary(BinOp::FloorMod, a, b)
}
/// `a and b`.
pub fn and(a: Expr, b: Expr) -> Expr {
    binary(BinOp::And, a, b)
}
/// `not a`.
pub fn not(a: Expr) -> Expr {
    match a.as_int() {
        Some(v) => Expr::bool(v == 0).at(a.span),
        None => Expr::logical_not(a),
    }
}

/// `a` as `dtype`; constants are converted immediately.
pub fn cast(a: Expr, dtype: DType) -> Expr {
    if a.dtype == dtype || dtype.is_vector() {
        return a.cast(dtype);
    }
    let span = a.span;
    let folded = match a.kind {
        ExprKind::Int(v) if dtype.is_integer() || dtype.is_bool() => Some(Expr::constant(dtype, v)),
        ExprKind::Int(v) if matches!(dtype.bits, 16 | 32 | 64) && dtype.is_floating() => {
            Some(Expr::float_of(dtype, v))
        }
        ExprKind::Float(v) if matches!(dtype.bits, 16 | 32 | 64) && dtype.is_floating() => {
            Some(Expr::float(dtype, v))
        }
        // Out of range or NaN is undefined in C: the conversion is left to run time.
        ExprKind::Float(v) if dtype.is_integer() => {
            let t = v.trunc();
            let fits = dtype.min_int().is_some_and(|m| t >= m as f64)
                && dtype.max_int().is_some_and(|m| t <= m as f64);
            fits.then(|| Expr::constant(dtype, t as i128))
        }
        _ => None,
    };
    folded.map_or_else(|| a.cast(dtype), |e| e.at(span))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Var;

    #[test]
    fn constants_hold_values_of_their_dtype() {
        for (name, value, held) in [
            ("float8_e4m3fn", 17.0, 16.0),
            ("float8_e4m3fn", 19.0, 20.0),
            ("float8_e5m2", 1e9, 57344.0),
            ("float4_e2m1fn", 2.4, 2.0),
        ] {
            let constant = Expr::float(name.parse().unwrap(), value);
            assert_eq!(constant.as_float(), Some(held), "{name} {value}");
        }
    }

    #[test]
    fn folds_constants_with_wrapping() {
        let c = |v| Expr::constant(DType::INT32, v);
        assert!(add(c(2), c(3)).is_int(5));
        assert!(add(c(i32::MAX as i128), c(1)).is_int(i32::MIN as i128));
        assert!(floordiv(c(-7), c(2)).is_int(-4));
        assert!(floormod(c(-7), c(2)).is_int(1));
        assert!(binary(BinOp::Div, c(-7), c(2)).is_int(-3));
        assert!(floordiv(c(1), c(0)).as_int().is_none());
    }

    #[test]
    fn zeros_are_ordered_by_their_signs() {
        let c = |v: f64| Expr::float(DType::FLOAT32, v);
        for (a, b) in [(0.0, -0.0), (-0.0, 0.0)] {
            let (least, most) = (binary(BinOp::Min, c(a), c(b)), binary(BinOp::Max, c(a), c(b)));
            assert!(least.as_float().is_some_and(|v| v == 0.0 && v.is_sign_negative()));
            assert!(most.as_float().is_some_and(|v| v == 0.0 && v.is_sign_positive()));
        }
    }

    #[test]
    fn keeps_what_is_not_exact() {
        let x = Expr::var(&Var::new("x", DType::FLOAT32));
        let zero = Expr::float(DType::FLOAT32, 0.0);
        // x + 0.0 differs from x for x = -0.0, x * 0.0 for infinities.
        assert!(add(x.clone(), zero.clone()).as_var().is_none());
        assert!(mul(x.clone(), zero).as_var().is_none());
        assert!(mul(x, Expr::float(DType::FLOAT32, 1.0)).as_var().is_some());
    }
}
