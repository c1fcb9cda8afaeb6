//! Functions of numbers that Rust does not have: parts of floats, `erf`, exact sums, `gcd`.

/// `m` from 0.5 below 1 and `e` with `v == m * 2 ** e`.
pub(super) fn mantissa_and_exponent(v: f64) -> (f64, i128) {
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
pub(super) fn scale(v: f64, n: f64) -> f64 {
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
pub(super) fn ieee_remainder(a: f64, b: f64) -> f64 {
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
pub(super) fn erf(x: f64) -> f64 {
    match x.abs() {
        v if v < 1.5 => erf_series(x),
        v if v.is_nan() => x,
        v => (1.0 - erfc_fraction(v)).copysign(x),
    }
}

/// The complement of the error function.
pub(super) fn erfc(x: f64) -> f64 {
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
pub(super) fn exact_sum(items: &[f64]) -> f64 {
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

/// The greatest common divisor.
pub(super) fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a as i128
}

/// The least common multiple.
pub(super) fn lcm(a: i128, b: i128) -> i128 {
    match gcd(a, b) {
        0 => 0,
        divisor => (a / divisor).saturating_mul(b).abs(),
    }
}

/// The float next to `a` in the direction of `b`.
pub(super) fn next_after(a: f64, b: f64) -> f64 {
    match a.partial_cmp(&b) {
        Some(std::cmp::Ordering::Less) => a.next_up(),
        Some(std::cmp::Ordering::Greater) => a.next_down(),
        Some(_) => b,
        None => f64::NAN,
    }
}

/// The distance to the next float.
pub(super) fn ulp(v: f64) -> f64 {
    match v.abs() {
        v if v.is_nan() || v.is_infinite() => v,
        v if v == f64::MAX => v - v.next_down(),
        v => v.next_up() - v,
    }
}

/// How many subsets of `k` elements a set of `n` has.
pub(super) fn combinations(n: i128, k: i128) -> Option<i128> {
    if k < 0 || !(0..=120).contains(&n) {
        return None;
    }
    let steps = 0..k.min(n + 1);
    Some(steps.fold(1i128, |out, i| out.saturating_mul((n - i).max(0)) / (i + 1)))
}
