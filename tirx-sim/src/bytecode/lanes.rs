//! What lanes exchange and convert, and output.

use super::{Operand, R};
use crate::alu::Bin;
use crate::cvt::Cvt;
use crate::numeric::Kind;
use crate::rounded::Rounded;

/// An exact operation, rounded once as its modifiers say.
#[derive(Clone, Debug)]
pub(crate) enum Exact {
    /// `cvt` of PTX.
    Cvt(Cvt),
    /// `add`, `sub`, `mul` and `fma` of PTX.
    Rounded(Rounded),
}

/// An exact operation; all operands are vector registers.
#[derive(Clone, Debug)]
pub(crate) struct ExactInst {
    pub(crate) what: Exact,
    pub(crate) operands: Vec<(Kind, R)>,
    /// Kind of the result.
    pub(crate) kind: Kind,
    pub(crate) d: R,
}

/// How lanes exchange values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ShuffleMode {
    Index,
    Up,
    Down,
    Xor,
    /// Butterfly reduction over groups of `width` lanes.
    Butterfly(Bin),
    /// Mask of lanes whose value is not zero.
    Ballot,
    /// Reduction over the lanes of the mask.
    Reduce(Bin),
}

#[derive(Clone, Debug)]
pub(crate) struct Shuffle {
    pub(crate) mode: ShuffleMode,
    /// Kind of the value.
    pub(crate) kind: Kind,
    /// Vector, or scalar where the result is uniform.
    pub(crate) d: Operand,
    /// A vector register.
    pub(crate) value: R,
    /// 32-bit.
    pub(crate) lane: Operand,
    /// 32-bit.
    pub(crate) width: Operand,
    /// 32-bit.
    pub(crate) mask: Operand,
}

/// A `printf` or `print_buffer`: text with values between.
#[derive(Clone, Debug)]
pub(crate) struct Print {
    pub(crate) format: String,
    pub(crate) args: Vec<(Kind, R)>,
}

/// A call of a raw CUDA function.
#[derive(Clone, Debug)]
pub(crate) struct ExternCall {
    pub(crate) name: String,
    /// Vector registers.
    pub(crate) args: Vec<(Kind, R)>,
    /// Vector register of the result.
    pub(crate) result: Option<(Kind, R)>,
}
