//! Methods of numbers.

use super::value::Value;
use super::{Args, Interpreter, args};
use crate::diagnostic::Result;
use crate::source::Span;

/// `number.name()`.
pub(super) fn number_method(
    interp: &mut Interpreter,
    value: &Value,
    name: &str,
    span: Span,
) -> Result<Value> {
    Ok(match (name, value) {
        ("bit_length", v) => {
            Value::Int(v.as_int().map_or(0, |v| 128 - v.unsigned_abs().leading_zeros()) as i128)
        }
        ("bit_count", v) => Value::Int(v.as_int().map_or(0, |v| v.unsigned_abs().count_ones()) as i128),
        ("is_integer", Value::Float(v)) => Value::Bool(v.fract() == 0.0),
        ("is_integer", _) => Value::Bool(true),
        ("conjugate", v) => v.clone(),
        ("as_integer_ratio", v) if v.as_int().is_some() => Value::tuple(vec![v.clone(), Value::Int(1)]),
        ("as_integer_ratio", Value::Float(v)) if v.is_finite() => {
            let (mut v, mut below) = (*v, 1i128);
            while v.fract() != 0.0 && below < 1 << 100 {
                (v, below) = (v * 2.0, below * 2);
            }
            if v.fract() != 0.0 || v.abs() >= 1e38 {
                return interp.raise("OverflowError", span, "this integer is larger than 127 bits");
            }
            Value::tuple(vec![Value::Int(v as i128), Value::Int(below)])
        }
        _ => {
            return interp.raise(
                "TypeError",
                span,
                format!("{name} is not supported in kernel files"),
            );
        }
    })
}

/// Whether `byteorder` says that the least significant byte comes first, and whether `signed` is on.
fn byte_order(
    interp: &mut Interpreter,
    order: Option<&(Value, Span)>,
    signed: Option<&(Value, Span)>,
) -> Result<(bool, bool)> {
    let signed = match signed {
        Some((v, at)) => interp.truth(v, *at)?,
        None => false,
    };
    match order {
        None => Ok((false, signed)),
        Some((v, _)) if v.as_str() == Some("big") => Ok((false, signed)),
        Some((v, _)) if v.as_str() == Some("little") => Ok((true, signed)),
        Some((_, at)) => interp.raise("ValueError", *at, "byteorder must be either 'little' or 'big'"),
    }
}

/// `int.to_bytes`; there is no type of bytes, so the bytes are a tuple.
pub(super) fn to_bytes(interp: &mut Interpreter, value: &Value, args: Args, span: Span) -> Result<Value> {
    let params = [
        args::optional("length"),
        args::optional("byteorder"),
        args::keyword("signed"),
    ];
    let bound = args.bind("int.to_bytes", &params, span)?;
    let (little, signed) = byte_order(interp, bound[1].as_ref(), bound[2].as_ref())?;
    let length = bound[0].as_ref().map_or(Some(1), |l| l.0.as_int());
    let (Some(v), Some(length @ 0..=4096)) = (value.as_int(), length) else {
        return interp.raise("ValueError", span, "to_bytes() length out of range");
    };
    let bits = (length * 8).min(127) as u32;
    let fits = match (signed, v < 0) {
        (false, true) => {
            return interp.raise("OverflowError", span, "can't convert negative int to unsigned");
        }
        (false, false) => bits == 127 || v >> bits == 0,
        (true, _) => bits == 127 || (bits > 0 && (v >> (bits - 1) == 0 || v >> (bits - 1) == -1)) || v == 0,
    };
    if !fits {
        return interp.raise("OverflowError", span, "int too big to convert");
    }
    let mut bytes: Vec<Value> = (0..length as u32)
        .map(|i| Value::Int((v >> (8 * i).min(127)) & 0xff))
        .collect();
    if !little {
        bytes.reverse();
    }
    Ok(Value::tuple(bytes))
}

/// `int.from_bytes` of items that are bytes.
pub(super) fn from_bytes(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let params = [
        args::required("bytes"),
        args::optional("byteorder"),
        args::keyword("signed"),
    ];
    let bound = args.bind("int.from_bytes", &params, span)?;
    let Some((bytes, at)) = &bound[0] else {
        return Ok(Value::None);
    };
    let (little, signed) = byte_order(interp, bound[1].as_ref(), bound[2].as_ref())?;
    let mut items = interp.iterate(bytes, *at)?;
    if !little {
        items.reverse();
    }
    let mut value = 0i128;
    for (i, item) in items.iter().enumerate() {
        let Some(byte @ 0..=255) = item.as_int() else {
            return interp.raise("ValueError", *at, "bytes must be in range(0, 256)");
        };
        // The most significant byte of a signed number holds the sign.
        let byte = match signed && i + 1 == items.len() && byte > 127 {
            true => byte - 256,
            false => byte,
        };
        let shifted = match (byte, i) {
            (0, _) => Some(0),
            (_, 0..=15) => byte.checked_mul(1i128 << (8 * i)),
            _ => None,
        };
        match shifted.and_then(|v| value.checked_add(v)) {
            Some(sum) => value = sum,
            None => return interp.raise("OverflowError", *at, "this integer is larger than 127 bits"),
        }
    }
    Ok(Value::Int(value))
}
