//! Errors of the functions of this crate.

use std::fmt;

/// A refused call, or an error of the launch.
pub enum Error {
    /// The shapes of the tensors do not fit each other, or the function does not support them.
    Shape(String),
    /// An error of the runtime: of the driver, or a fault that the simulator found.
    Runtime(tirx_rt::Error),
}

/// A result with the [`Error`] of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Shape(message) => f.write_str(message),
            Error::Runtime(error) => error.fmt(f),
        }
    }
}

// `unwrap` and `fn main() -> Result<…>` print `Debug`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Shape(_) => None,
            Error::Runtime(error) => Some(error),
        }
    }
}

impl From<tirx_rt::Error> for Error {
    fn from(error: tirx_rt::Error) -> Error {
        Error::Runtime(error)
    }
}
