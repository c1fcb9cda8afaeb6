//! Pieces of C++ text with their precedence, so that parentheses and casts are written only where they are needed.

use super::types;
use crate::ir::DType;

/// Precedence of C++ operators, lowest first.
pub(super) mod level {
    pub(in super::super) const TERNARY: u8 = 2;
    pub(in super::super) const OR: u8 = 3;
    pub(in super::super) const AND: u8 = 4;
    pub(in super::super) const BIT_OR: u8 = 5;
    pub(in super::super) const BIT_XOR: u8 = 6;
    pub(in super::super) const BIT_AND: u8 = 7;
    pub(in super::super) const EQUAL: u8 = 8;
    pub(in super::super) const LESS: u8 = 9;
    pub(in super::super) const SHIFT: u8 = 11;
    pub(in super::super) const SUM: u8 = 12;
    pub(in super::super) const PRODUCT: u8 = 13;
    pub(in super::super) const UNARY: u8 = 15;
    pub(in super::super) const PRIMARY: u8 = 17;
}

/// The relation between an 8- or 16-bit integer and the C++ value that represents it: C++ computes such values in
/// `int`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Width {
    /// The C++ type is the dtype's own.
    Exact,
    /// An `int` whose value is in the dtype's range.
    Promoted,
    /// An `int` of which only the low bits are valid.
    Dirty,
}

/// A C++ expression.
#[derive(Clone, Debug)]
pub(super) struct Code {
    /// The text.
    pub(super) text: String,
    /// The precedence of its outermost operator.
    pub(super) level: u8,
    /// For narrow integers and bools; `Exact` for all others.
    pub(super) width: Width,
}

impl Code {
    /// A name, literal, call or the like.
    pub(super) fn primary(text: impl Into<String>) -> Code {
        Code::new(text, level::PRIMARY)
    }

    /// An expression whose outermost operator has precedence `level`.
    pub(super) fn new(text: impl Into<String>, level: u8) -> Code {
        Code {
            text: text.into(),
            level,
            width: Width::Exact,
        }
    }

    /// The same with a width.
    pub(super) fn with_width(self, width: Width) -> Code {
        Code { width, ..self }
    }

    /// `(ty)self`.
    pub(super) fn cast(self, ty: &str) -> Code {
        Code::new(format!("({ty}){}", self.at(level::UNARY)), level::UNARY)
    }

    /// The text as an operand of an operator of precedence `level`: in parentheses where its own is lower.
    pub(super) fn at(self, level: u8) -> String {
        if self.level < level {
            format!("({})", self.text)
        } else {
            self.text
        }
    }

    /// A value in the range of `dtype`.
    pub(super) fn in_range(self, dtype: DType) -> Code {
        if self.width == Width::Dirty {
            self.exact(dtype)
        } else {
            self
        }
    }

    /// A value of exactly the C++ type of `dtype`.
    pub(super) fn exact(self, dtype: DType) -> Code {
        match types::element(dtype) {
            Some(ty) if self.width != Width::Exact => self.cast(ty),
            _ => self,
        }
    }

    /// Whether the text can be repeated at no cost: a name or a literal.
    pub(super) fn is_trivial(&self) -> bool {
        let plain = |t: &str| {
            t.bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'))
        };
        plain(&self.text)
            || (self.text.len() < 24 && self.text.strip_prefix("(int)").is_some_and(plain))
            || (self.level >= level::UNARY && self.text.strip_prefix('-').is_some_and(plain))
    }
}

/// A string as a C++ literal.
pub(super) fn string_literal(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            // Octal ends after three digits, hexadecimal would not.
            0..=0x1f | 0x7f.. => out.push_str(&format!("\\{byte:03o}")),
            b'?' => out.push_str("\\?"),
            _ => out.push(byte as char),
        }
    }
    out.push('"');
    out
}

/// An integer or bool constant.
pub(super) fn int_literal(dtype: DType, value: i128) -> Code {
    if dtype.is_bool() {
        return Code::primary(if value != 0 { "true" } else { "false" });
    }
    let signed = |text: String| Code::new(text, if value < 0 { level::UNARY } else { level::PRIMARY });
    match (dtype.is_uint(), dtype.bits) {
        (_, 0..32) => signed(value.to_string()).with_width(Width::Promoted),
        (false, 32) if value == i32::MIN as i128 => Code::new("-2147483647 - 1", level::SUM),
        (false, 32) => signed(value.to_string()),
        (true, 32) if value > 0xffff => Code::primary(format!("{value:#x}U")),
        (true, 32) => Code::primary(format!("{value}U")),
        (false, _) if value == i64::MIN as i128 => Code::new("(int64_t)0x8000000000000000ULL", level::UNARY),
        (false, _) if value.abs() > i32::MAX as i128 => {
            Code::new(format!("(int64_t){value}LL"), level::UNARY)
        }
        (false, _) => Code::new(format!("(int64_t){value}"), level::UNARY),
        (true, _) if value > u32::MAX as i128 => Code::new(format!("(uint64_t){value:#x}ULL"), level::UNARY),
        (true, _) => Code::new(format!("(uint64_t){value}"), level::UNARY),
    }
}

/// A `float` or `double` constant: the shortest text that reads back as the same value.
pub(super) fn float_literal(bits: u8, value: f64) -> Code {
    if value.is_nan() {
        return if bits == 32 {
            Code::primary("NAN")
        } else {
            Code::new("(double)NAN", level::UNARY)
        };
    }
    let level = if value.is_sign_negative() {
        level::UNARY
    } else {
        level::PRIMARY
    };
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_infinite() {
        return match bits {
            32 => Code::new(format!("{sign}INFINITY"), level),
            _ => Code::new(format!("{sign}(double)INFINITY"), level::UNARY),
        };
    }
    match bits {
        32 => Code::new(format!("{:?}f", value as f32), level),
        _ => Code::new(format!("{value:?}"), level),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals() {
        for (dtype, value, text) in [
            (DType::INT32, 5, "5"),
            (DType::INT32, i32::MIN as i128, "-2147483647 - 1"),
            (DType::UINT32, 7, "7U"),
            (DType::UINT32, 0xffff_ffff, "0xffffffffU"),
            (DType::INT64, 1 << 40, "(int64_t)1099511627776LL"),
            (DType::INT64, -3, "(int64_t)-3"),
            (DType::UINT64, u64::MAX as i128, "(uint64_t)0xffffffffffffffffULL"),
            (DType::BOOL, 1, "true"),
            (DType::INT8, -1, "-1"),
        ] {
            assert_eq!(int_literal(dtype, value).text, text);
        }
        for (bits, value, text) in [
            (32, 2.0, "2.0f"),
            (32, 0.1f32 as f64, "0.1f"),
            (32, -0.0, "-0.0f"),
            (32, 1e-40f32 as f64, "1e-40f"),
            (32, f32::MAX as f64, "3.4028235e38f"),
            (32, f64::NEG_INFINITY, "-INFINITY"),
            (32, f64::NAN, "NAN"),
            (64, 0.1, "0.1"),
            (64, 1e300, "1e300"),
        ] {
            assert_eq!(float_literal(bits, value).text, text);
        }
        assert_eq!(
            string_literal("a\"b\\\n%d\u{e9}"),
            "\"a\\\"b\\\\\\n%d\\303\\251\""
        );
    }

    #[test]
    fn parentheses_only_where_needed() {
        let sum = Code::new("a + b", level::SUM);
        assert_eq!(sum.clone().at(level::PRODUCT), "(a + b)");
        assert_eq!(sum.at(level::SUM), "a + b");
    }
}
