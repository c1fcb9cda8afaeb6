//! Numbers and strings.

use std::fmt;

use super::{Expr, nodes};

/// The value of a number.
#[derive(Clone, Debug)]
pub enum Number {
    /// `1`, `0x1f`
    Int(Int),
    /// `1.5`, `1e3`
    Float(f64),
    /// `1.5j`
    Complex {
        /// Always 0: Python writes `1 + 2j` with an operator.
        real: f64,
        /// The number before the `j`.
        imag: f64,
    },
}

/// An integer without sign, of any size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Int(pub(crate) IntValue);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IntValue {
    Small(u64),
    /// As written, without underscores.
    Big(Box<str>),
}

impl Int {
    /// Its value where it fits.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_u64()?.try_into().ok()
    }

    /// Its value where it fits.
    pub fn as_u64(&self) -> Option<u64> {
        match &self.0 {
            IntValue::Small(value) => Some(*value),
            IntValue::Big(_) => None,
        }
    }
}

impl fmt::Display for Int {
    /// In decimal; one of more than 64 bits as it is written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            IntValue::Small(value) => value.fmt(f),
            IntValue::Big(text) => f.write_str(text),
        }
    }
}

/// The value of a string, that of all parts where several stand side by side.
#[derive(Clone, Debug)]
pub struct StringLiteralValue(pub(crate) Box<str>);

impl StringLiteralValue {
    /// The text, escapes replaced.
    pub fn to_str(&self) -> &str {
        &self.0
    }
}

/// The parts of an f-string: several where strings stand side by side.
#[derive(Clone, Debug)]
pub struct FStringValue(pub(crate) Vec<FStringPart>);

impl FStringValue {
    /// The parts, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, FStringPart> {
        self.0.iter()
    }

    /// The parts, in order.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, FStringPart> {
        self.0.iter_mut()
    }
}

/// A part of a concatenation with an f-string.
#[derive(Clone, Debug)]
pub enum FStringPart {
    /// `"text"`
    Literal(StringLiteral),
    /// `f"text {field}"`
    FString(FString),
}

/// How a field of an f-string turns its value into text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversionFlag {
    /// As `format` does.
    None,
    /// `!s`
    Str,
    /// `!a`
    Ascii,
    /// `!r`
    Repr,
}

/// The text of `{expression = }` around the expression.
#[derive(Clone, Debug)]
pub struct DebugText {
    pub(crate) leading: Box<str>,
    pub(crate) trailing: Box<str>,
}

impl DebugText {
    /// What is written before the expression.
    pub fn leading(&self) -> &str {
        &self.leading
    }

    /// What is written after it, with the `=`.
    pub fn trailing(&self) -> &str {
        &self.trailing
    }
}

/// A part of an f-string.
#[derive(Clone, Debug)]
pub enum InterpolatedStringElement {
    /// Text.
    Literal(InterpolatedStringLiteralElement),
    /// `{expression!r:spec}`
    Interpolation(InterpolatedElement),
}

nodes! {
    /// A string within a concatenation.
    StringLiteral {
        /// The text, escapes replaced.
        value: Box<str>,
    }
    /// One f-string.
    FString {
        /// Texts and fields.
        elements: Vec<InterpolatedStringElement>,
    }
    /// Text of an f-string.
    InterpolatedStringLiteralElement {
        /// The text, escapes and doubled braces replaced.
        value: Box<str>,
    }
    /// A field of an f-string.
    InterpolatedElement {
        /// What is shown.
        expression: Box<Expr>,
        /// `=`: the field shows its own text, too.
        debug_text: Option<DebugText>,
        /// `!r`
        conversion: ConversionFlag,
        /// What follows the `:`.
        format_spec: Option<Box<InterpolatedStringFormatSpec>>,
    }
    /// The format of a field, which may have fields itself.
    InterpolatedStringFormatSpec {
        /// Texts and fields.
        elements: Vec<InterpolatedStringElement>,
    }
}
