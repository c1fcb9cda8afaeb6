//! Pieces of Rust text with their precedence and the variables they read.

use std::fmt::Write;

use super::rust_scalar;
use crate::ir::{BinOp, DType};

/// Precedence of a piece of Rust; an operand of lower precedence is put in parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Binds {
    /// `if … else …`, `x..y`
    Loose,
    Or,
    And,
    Compare,
    BitOr,
    BitXor,
    BitAnd,
    Sum,
    Product,
    Cast,
    Unary,
    /// Names, calls, literals.
    Tight,
}

impl Binds {
    /// The precedence of an operator on numbers, and the lowest precedence of its right operand without parentheses.
    pub(super) fn around(sign: &str) -> (Binds, Binds) {
        match sign {
            "+" | "-" => (Binds::Sum, Binds::Product),
            "*" | "/" | "%" => (Binds::Product, Binds::Cast),
            "&" => (Binds::BitAnd, Binds::Sum),
            "^" => (Binds::BitXor, Binds::Sum),
            _ => (Binds::BitOr, Binds::Sum),
        }
    }
}

/// A piece of Rust with the variables it reads.
#[derive(Clone, Debug)]
pub(super) struct Code {
    pub(super) text: String,
    pub(super) binds: Binds,
    pub(super) reads: Vec<String>,
}

impl Code {
    pub(super) fn tight(text: impl Into<String>) -> Code {
        Code {
            text: text.into(),
            binds: Binds::Tight,
            reads: Vec::new(),
        }
    }

    /// The text as an operand in a context of precedence `binds`.
    pub(super) fn operand(&self, binds: Binds) -> String {
        // A conversion is put in parentheses except under another one: `as u32 < n` would begin generics.
        if self.binds < binds || (self.binds == Binds::Cast && binds != Binds::Cast) {
            format!("({})", self.text)
        } else {
            self.text.clone()
        }
    }
}

/// Joins pieces to a new one that reads what they read.
pub(super) fn join(binds: Binds, text: String, parts: &[&Code]) -> Code {
    let reads = parts.iter().flat_map(|p| p.reads.iter().cloned()).collect();
    Code { text, binds, reads }
}

/// `a && b` or `a || b`.
pub(super) fn logical(op: BinOp, a: &Code, b: &Code) -> Code {
    let (sign, binds) = if op == BinOp::And {
        ("&&", Binds::And)
    } else {
        ("||", Binds::Or)
    };
    // Beside the other operator parentheses help the reader.
    let side = |code: &Code| match code.binds {
        Binds::Or | Binds::And if code.binds != binds => format!("({})", code.text),
        _ => code.operand(binds),
    };
    join(binds, format!("{} {sign} {}", side(a), side(b)), &[a, b])
}

/// A variable of a scalar dtype as the 64 bits of a launch argument.
pub(super) fn bits(name: &str, dtype: DType) -> String {
    match (dtype.is_floating(), dtype.bits) {
        _ if dtype.is_handle() || dtype == DType::UINT64 => name.to_string(),
        (true, 64) => format!("{name}.to_bits()"),
        (true, _) => format!("u64::from({name}.to_bits())"),
        // High bytes are defined to be zero, so no sign extension.
        _ if dtype.is_int() && dtype.bits < 64 => format!("u64::from({name}.cast_unsigned())"),
        _ if dtype.is_int() => format!("{name}.cast_unsigned()"),
        _ => format!("u64::from({name})"),
    }
}

/// An integer or bool constant; `typed` with its type.
pub(super) fn literal(dtype: DType, value: i128, typed: bool) -> Code {
    if dtype.is_bool() {
        return Code::tight(if value != 0 { "true" } else { "false" });
    }
    let mut text = String::new();
    let suffix = if typed {
        rust_scalar(dtype).unwrap_or("")
    } else {
        ""
    };
    let _ = write!(
        text,
        "{value}{}{suffix}",
        if suffix.is_empty() { "" } else { "_" }
    );
    Code {
        binds: if value < 0 { Binds::Unary } else { Binds::Tight },
        text,
        reads: Vec::new(),
    }
}

/// A floating constant with its type.
pub(super) fn float_literal(dtype: DType, value: f64) -> Code {
    let ty = rust_scalar(dtype).unwrap_or("f64");
    let wide = if dtype == DType::FLOAT32 { "f32" } else { "f64" };
    let text = if value.is_nan() {
        format!("{wide}::NAN")
    } else if value.is_infinite() {
        format!("{wide}::{}INFINITY", if value < 0.0 { "NEG_" } else { "" })
    } else if dtype == DType::FLOAT32 {
        format!("{:?}_f32", value as f32)
    } else {
        format!("{value:?}_f64")
    };
    if dtype.bits == 16 {
        return Code::tight(format!("{ty}::from_f64({text})"));
    }
    Code {
        binds: if value.is_sign_negative() {
            Binds::Unary
        } else {
            Binds::Tight
        },
        text,
        reads: Vec::new(),
    }
}
