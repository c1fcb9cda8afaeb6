//! Memory: where an access goes, and what arrays there are.

use super::R;
use crate::numeric::Kind;

/// How far a strong access reaches: `.cta`, `.cluster`, `.gpu` and `.sys`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    Cta,
    Cluster,
    Gpu,
}

impl Scope {
    /// The scope of a modifier.
    pub(crate) fn of(name: &str) -> Scope {
        match name {
            "cta" => Scope::Cta,
            "cluster" => Scope::Cluster,
            _ => Scope::Gpu,
        }
    }
}

/// What a strong access asks of the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strong {
    pub(crate) scope: Scope,
    pub(crate) acquires: bool,
    pub(crate) releases: bool,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    /// A plain access to a place that a loop polls: as strong as that loop needs it.
    pub(crate) polled: bool,
    /// A plain write of the value that is there already.
    pub(crate) same: bool,
}

impl Strong {
    /// `atom` or `ld` or `st` with these semantics (`relaxed`, `acquire`, `release`, `acq_rel`, `sc`) and scope.
    pub(crate) fn new(semantics: &str, scope: Scope, reads: bool, writes: bool) -> Strong {
        Strong {
            scope,
            acquires: reads && matches!(semantics, "acquire" | "acq_rel" | "sc"),
            releases: writes && matches!(semantics, "release" | "acq_rel" | "sc"),
            reads,
            writes,
            polled: false,
            same: false,
        }
    }
}

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Region {
    /// Relative to a pointer parameter.
    Param(u16),
    /// A shared array.
    Shared(u16),
    /// A per-thread array.
    Local(u16),
    /// The index is an address.
    Pointer,
}

/// The name in messages of a pointer that is not a variable.
pub(crate) const UNNAMED_POINTER: &str = "*pointer";

/// What a load or store accesses.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) region: Region,
    /// Kind of one element.
    pub(crate) kind: Kind,
    /// Elements, consecutive in memory and registers.
    pub(crate) count: u16,
    /// Required alignment, in bits.
    pub(crate) align: u32,
    /// The loop condition polls this place: reading it synchronizes with who wrote it.
    pub(crate) poll: bool,
    /// Some loop condition polls places of this region.
    pub(crate) polled: bool,
    /// Some compare-and-swap loop that begins with a plain read updates places of this region.
    pub(crate) swapped: bool,
    /// The buffer's name.
    pub(crate) name: String,
}

/// A shared array.
#[derive(Clone, Debug)]
pub(crate) struct SharedArray {
    /// Where it starts in the block's shared memory, in bytes.
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
    pub(crate) name: String,
    pub(crate) dynamic: bool,
}

/// A per-thread array that is not held in registers.
#[derive(Clone, Debug)]
pub(crate) struct LocalArray {
    /// First word.
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
    pub(crate) name: String,
}

/// A per-thread array in consecutive vector registers.
#[derive(Clone, Debug)]
pub(crate) struct RegisterArray {
    pub(crate) first: R,
    pub(crate) count: u16,
    /// 64-bit registers.
    pub(crate) wide: bool,
    /// The bit of the first element, where initialization is tracked.
    pub(crate) init: Option<u16>,
    pub(crate) name: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum AtomicOp {
    Add,
    /// Compare and swap.
    Cas,
    /// Nothing is updated: only the value is wanted.
    Read,
    Exchange,
    And,
    Or,
    Xor,
    Min,
    Max,
    /// Increments, and wraps to 0 after the value.
    Inc,
    /// Decrements, and wraps to the value after 0 and from values beyond it.
    Dec,
}

/// An atomic; all operands are vector registers.
#[derive(Clone, Debug)]
pub(crate) struct AtomicInst {
    pub(crate) op: AtomicOp,
    pub(crate) strong: Strong,
    pub(crate) access: u16,
    /// The index as `Load` has it, 64-bit where `wide`.
    pub(crate) index: R,
    pub(crate) wide: bool,
    pub(crate) plus: R,
    pub(crate) value: R,
    /// The expected value of compare and swap.
    pub(crate) compare: R,
    pub(crate) d: R,
}

/// log2 of the bits of a word, the coarsest granularity of tracking.
pub(crate) const WORD: u32 = 5;

/// log2 of the bits of a byte.
pub(crate) const BYTE: u32 = 3;
