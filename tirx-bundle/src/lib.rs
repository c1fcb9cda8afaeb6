//! Bundles: compiled kernels as files that are committed, shipped, and read by builds without nvcc.
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
//! | `lock` | what was each kernel made of, and do the files fit together? |
//! | `fatbin` | what is a fat binary, and how are several made one? |
//! | `cubin` | what does a kernel's machine code take of a GPU? |
//! | `seal` | what do the files begin with? |
//! | `reader` | how are untrusted bytes read? |
//! | `problem` | errors |

#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod cubin;
pub mod fatbin;
mod files;
mod kernel;
pub mod lock;
mod problem;
mod reader;
pub mod seal;

pub use files::{Files, LOCK, NOTICE};
pub use kernel::{EXTENSION, Function, Kernel, Param};
pub use problem::Problem;

/// SHA-256 in hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    seal::raw_hash(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// SHA-256 in hexadecimal over parts, each with its length, so that different lists of parts have different inputs.
pub fn hash_of_parts<P: AsRef<[u8]>>(parts: &[P]) -> String {
    let mut all = Vec::new();
    for part in parts {
        all.extend((part.as_ref().len() as u64).to_le_bytes());
        all.extend(part.as_ref());
    }
    hash(&all)
}
