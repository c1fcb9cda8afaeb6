//! What is wrong with a text.

use std::fmt;

use crate::TextRange;

/// A place where a text is not Python, or goes beyond the limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Where.
    pub range: TextRange,
    /// What was found, and what is expected.
    pub message: String,
    /// Whether the text goes beyond the [`Limits`](crate::Limits); parsing ends there.
    pub is_limit: bool,
}

impl SyntaxError {
    pub(crate) fn new(range: TextRange, message: impl Into<String>) -> Box<SyntaxError> {
        Box::new(SyntaxError {
            range,
            message: message.into(),
            is_limit: false,
        })
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SyntaxError {}

pub(crate) type Result<T> = std::result::Result<T, Box<SyntaxError>>;
