//! Source texts, spans in them, and the errors that point at them.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod diagnostic;
pub mod source;
mod suggest;

pub use diagnostic::{Diagnostic, Diagnostics, Result};
pub use suggest::suggest;
