//! IR as compact bytes: what a shipped binary carries for the simulator.
//!
//! The bytes are deterministic: the same module gives the same bytes on any machine. Variables and buffers are
//! numbered by first occurrence; strings, dtypes and spans are tables. Of the source texts only the lines that spans
//! point to are carried, with the names of their files, so that a fault shows the kernel's line; a span in an inline function has the
//! number of the span that calls it.
//!
//! Format: `TIRX`, a version byte, the tables (strings, lines, spans, dtypes), then the module. Numbers are LEB128,
//! signed ones zigzag. Spans are numbered relative to the one before, so that archives compress them well. Operators are stored by name, so that the table of intrinsics may grow.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub use decode::decode;
pub use encode::{Encoder, encode};

use std::fmt;

/// The first bytes.
const MAGIC: &[u8; 4] = b"TIRX";
/// The format's version; a decoder refuses others.
const VERSION: u8 = 4;

/// Why bytes are not an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageError {
    /// The error.
    pub message: String,
    /// The offset of the byte where decoding failed.
    pub offset: usize,
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a TIRx image: {} at byte {}", self.message, self.offset)
    }
}

impl std::error::Error for ImageError {}

/// The number of each variant is its position. Appending keeps old images readable.
mod variants {
    use crate::ir::{BinOp, ForKind, IterKind, TypeCode};

    pub(super) const BINARY: [BinOp; 17] = [
        BinOp::Add,
        BinOp::Sub,
        BinOp::Mul,
        BinOp::Div,
        BinOp::Mod,
        BinOp::FloorDiv,
        BinOp::FloorMod,
        BinOp::Min,
        BinOp::Max,
        BinOp::Eq,
        BinOp::Ne,
        BinOp::Lt,
        BinOp::Le,
        BinOp::Gt,
        BinOp::Ge,
        BinOp::And,
        BinOp::Or,
    ];

    pub(super) const LOOPS: [ForKind; 5] = [
        ForKind::Serial,
        ForKind::Parallel,
        ForKind::Vectorized,
        ForKind::Unrolled,
        ForKind::ThreadBinding,
    ];

    pub(super) const ITERS: [IterKind; 3] = [IterKind::DataPar, IterKind::ThreadIndex, IterKind::CommReduce];

    pub(super) const CODES: &[TypeCode] = TypeCode::ALL;

    pub(super) fn number<T: PartialEq>(list: &[T], item: &T) -> u8 {
        list.iter().position(|x| x == item).unwrap_or(list.len()) as u8
    }
}
