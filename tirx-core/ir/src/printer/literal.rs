//! How constants are written: numbers, strings and attribute values.

use crate::ir::{DType, odd_f32};

/// A Python string literal.
pub(super) fn string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A float as Python reads it: 17 significant digits, whole numbers in full with one decimal. Quoted where it is no
/// number (`"inf"`, `"nan"`): those stand inside a constructor, `T.float32("inf")`.
pub(super) fn float(value: f64) -> String {
    if value.is_nan() {
        return "\"nan\"".into();
    }
    if value.is_infinite() {
        return if value > 0.0 {
            "\"inf\"".into()
        } else {
            "\"-inf\"".into()
        };
    }
    if value == value.trunc() {
        return format!("{value:.1}");
    }
    // C's %.17g.
    let scientific = format!("{value:.16e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |s: &str| s.trim_end_matches('0').trim_end_matches('.').to_string();
    if !(-4..17).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim(mantissa), exponent.abs());
    }
    trim(&format!("{value:.*}", (16 - exponent) as usize))
}

/// The number that a user would have written for a constant of `dtype`: the shortest decimal that rounds to it.
pub(super) fn as_written(dtype: DType, value: f64) -> f64 {
    if !value.is_finite() {
        return value;
    }
    let round = |v: f64| match (dtype.bits, dtype.is_float()) {
        (32, _) => v as f32 as f64,
        (16, true) => tirx_dtype::f16::from_f32(odd_f32(v)).to_f64(),
        (16, false) => tirx_dtype::bf16::from_f32(odd_f32(v)).to_f64(),
        _ => v,
    };
    // The largest float32 keeps all its digits: its shortest decimal is above it.
    let largest = dtype.bits == 32 && value.abs() == f64::from(f32::MAX);
    if dtype.bits == 64 || dtype.bits < 16 || largest {
        return value;
    }
    (0..9)
        .find_map(|digits| {
            format!("{value:.digits$e}")
                .parse()
                .ok()
                .filter(|v| round(*v) == value)
        })
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_read_back_and_look_as_written() {
        let text = |dtype, v| float(as_written(dtype, v));
        assert_eq!(text(DType::FLOAT32, 0.1f32 as f64), "0.10000000000000001");
        assert_eq!(text(DType::FLOAT32, 1e-6f32 as f64), "9.9999999999999995e-07");
        assert_eq!(text(DType::FLOAT32, 1e20f32 as f64), "100000000000000000000.0");
        assert_eq!(text(DType::FLOAT32, 2.7f32 as f64), "2.7000000000000002");
        assert_eq!(
            text(DType::FLOAT16, tirx_dtype::f16::from_f64(0.1).to_f64()),
            "0.10000000000000001"
        );
        assert_eq!(text(DType::FLOAT64, -1.5), "-1.5");
        assert_eq!(text(DType::FLOAT64, 1e-20), "9.9999999999999995e-21");
        assert_eq!(text(DType::FLOAT32, f64::NEG_INFINITY), "\"-inf\"");
        assert_eq!(text(DType::FLOAT32, -0.0), "-0.0");
        let mut state = 1u64;
        for _ in 0..2000 {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let value = f32::from_bits((state >> 32) as u32);
            if value.is_finite() {
                let read: f64 = text(DType::FLOAT32, value as f64).parse().unwrap();
                assert_eq!(read as f32, value);
            }
        }
    }

    #[test]
    fn strings_are_escaped() {
        let mut out = String::new();
        string(&mut out, "a\"b\\\n\té\u{1}");
        assert_eq!(out, "\"a\\\"b\\\\\\n\\té\\x01\"");
    }
}
