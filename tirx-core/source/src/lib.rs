//! Source texts, spans in them, and the errors that point at them.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod diagnostic;
pub mod source;

pub use diagnostic::{Diagnostic, Diagnostics, Result};
