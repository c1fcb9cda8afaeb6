//! Errors in bundles.

use std::fmt;

/// An error in a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file of the bundle that is invalid; empty for the bundle itself.
    pub file: String,
    /// The error, as it follows the name in a message: "is cut off".
    pub reason: String,
}

impl Problem {
    pub(crate) fn new(reason: impl Into<String>) -> Problem {
        Problem {
            file: String::new(),
            reason: reason.into(),
        }
    }

    pub(crate) fn in_file(mut self, file: &str) -> Problem {
        self.file = file.to_string();
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.file.is_empty() {
            true => write!(f, "the bundle {}", self.reason),
            false => write!(f, "`{}` {}", self.file, self.reason),
        }
    }
}

impl std::error::Error for Problem {}
