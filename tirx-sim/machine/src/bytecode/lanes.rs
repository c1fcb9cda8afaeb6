//! What lanes exchange and convert, and output.

use super::{Operand, R};
use crate::alu::Bin;
use crate::cvt::Cvt;
use crate::numeric::Kind;
use crate::rounded::Rounded;

/// An exact operation, rounded once as its modifiers say.
#[derive(Clone, Debug)]
pub enum Exact {
    /// `cvt` of PTX.
    Cvt(Cvt),
    /// `add`, `sub`, `mul` and `fma` of PTX.
    Rounded(Rounded),
}

/// An exact operation; all operands are vector registers.
#[derive(Clone, Debug)]
pub struct ExactInst {
    pub what: Exact,
    pub operands: Vec<(Kind, R)>,
    /// Kind of the result.
    pub kind: Kind,
    pub d: R,
}

/// How lanes exchange values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ShuffleMode {
    Index,
    Up,
    Down,
    Xor,
    /// Butterfly reduction over groups of `width` lanes.
    Butterfly(Bin),
    /// Mask of lanes whose value is not zero.
    Ballot,
    /// The same, and orders the memory accesses of the lanes of a mask: a warp barrier of some lanes.
    Meet,
    /// Mask of lanes with the same value.
    Match,
    /// Reduction over the lanes of the mask.
    Reduce(Bin),
}

#[derive(Clone, Debug)]
pub struct Shuffle {
    pub mode: ShuffleMode,
    /// Kind of the value.
    pub kind: Kind,
    /// Vector, or scalar where the result is uniform.
    pub d: Operand,
    /// A vector register.
    pub value: R,
    /// 32-bit.
    pub lane: Operand,
    /// 32-bit.
    pub width: Operand,
    /// 32-bit.
    pub mask: Operand,
}

/// A `printf` or `print_buffer`: text with values between.
#[derive(Clone, Debug)]
pub struct Print {
    pub format: String,
    pub args: Vec<(Kind, R)>,
}

/// A call of a raw CUDA function.
#[derive(Clone, Debug)]
pub struct ExternCall {
    pub name: String,
    /// Vector registers.
    pub args: Vec<(Kind, R)>,
    /// Vector register of the result.
    pub result: Option<(Kind, R)>,
}
