//! Bundles: compiled kernels as files that are committed, shipped, and read where there is no nvcc.
//!
//! A bundle is a folder, or one file with the same contents:
//!
//! ```text
//! kernels.lock         what each kernel was made of (TOML; read by builds and by people)
//! NOTICE.txt           whose work is in it
//! add-n256.tirxk       a kernel: images for its targets, IR, signature
//! ```
//!
//! A bundle is untrusted input. Every length is checked before it is used, every content has a hash, unpacked contents
//! have at most the stated length, and nothing in it runs on the host: machine code goes to the driver, IR to the
//! simulator.
//!
//! | file | question |
//! |---|---|
//! | `files` | how is a bundle a folder or a file? |
//! | `kernel` | what does a `.tirxk` hold? |
//! | `fatbin` | what is a fat binary, and how are several made one? |
//! | `seal` | what do the files begin with? |
//! | `reader` | how are bytes read that may be anybody's? |

#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod fatbin;
mod files;
mod kernel;
mod reader;
pub mod seal;

use std::fmt;

use sha2::{Digest, Sha256};

pub use files::{Files, LOCK, NOTICE};
pub use kernel::{EXTENSION, Function, Kernel, Param};

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

    pub(crate) fn of(mut self, file: &str) -> Problem {
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

/// SHA-256 in hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    raw_hash(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn raw_hash(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
