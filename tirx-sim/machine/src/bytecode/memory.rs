//! Memory: places of accesses, and the declared arrays.

use super::R;
use super::elements::ArrayView;
use crate::numeric::Kind;

/// How far a strong access reaches: `.cta`, `.cluster`, `.gpu` and `.sys`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    Cta,
    Cluster,
    Gpu,
    /// All devices of a world.
    Sys,
}

impl Scope {
    /// The scope of a modifier.
    pub fn from_modifier(name: &str) -> Scope {
        match name {
            "cta" => Scope::Cta,
            "cluster" => Scope::Cluster,
            "sys" => Scope::Sys,
            _ => Scope::Gpu,
        }
    }
}

/// The memory order of a strong access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strong {
    pub scope: Scope,
    pub acquires: bool,
    pub releases: bool,
    pub reads: bool,
    pub writes: bool,
    /// A reduction (`red`): its read forms no acquire pattern.
    pub reduces: bool,
    /// A plain access to a place that a loop polls: as strong as that loop needs it.
    pub polled: bool,
    /// A plain write of the value that is there already.
    pub same: bool,
    /// How many bits are accessed; 0 where that is not known yet.
    pub bits: u8,
}

impl Strong {
    /// `atom` or `ld` or `st` with these semantics (`relaxed`, `acquire`, `release`, `acq_rel`, `sc`) and scope.
    pub fn new(semantics: &str, scope: Scope, reads: bool, writes: bool) -> Strong {
        Strong {
            scope,
            acquires: reads && matches!(semantics, "acquire" | "acq_rel" | "sc"),
            releases: writes && matches!(semantics, "release" | "acq_rel" | "sc"),
            reads,
            writes,
            reduces: false,
            polled: false,
            same: false,
            bits: 0,
        }
    }

    /// `red` with these semantics and scope.
    pub fn reduction(semantics: &str, scope: Scope) -> Strong {
        Strong {
            reduces: true,
            ..Strong::new(semantics, scope, true, true)
        }
    }
}

/// The place of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
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
pub const UNNAMED_POINTER: &str = "*pointer";

/// What a load or store accesses.
#[derive(Clone, Debug)]
pub struct Access {
    pub region: Region,
    /// Kind of one element.
    pub kind: Kind,
    /// Elements, consecutive in memory and registers.
    pub count: u16,
    /// Required alignment, in bits.
    pub align: u32,
    /// The loop condition polls this place: reading it synchronizes with who wrote it.
    pub poll: bool,
    /// Some loop condition polls places of this region.
    pub polled: bool,
    /// Some compare-and-swap loop that begins with a plain read updates places of this region.
    pub swapped: bool,
    /// A load through the path for memory that does not change while the kernel runs (`ld.global.nc`).
    pub constant: bool,
    /// Through a multicast window.
    pub window: bool,
    /// The buffer's name.
    pub name: String,
}

/// A shared array.
#[derive(Clone, Debug)]
pub struct SharedArray {
    /// Where it starts in the block's shared memory, in bytes.
    pub offset: u32,
    pub bytes: u32,
    /// The alignment that the declaration guarantees, in bytes.
    pub align: u32,
    /// The bits of an element, in which messages count.
    pub element: u16,
    pub name: String,
    pub dynamic: bool,
    /// A buffer over a part of another array.
    pub view: Option<ArrayView>,
}

/// A per-thread array that is not held in registers.
#[derive(Clone, Debug)]
pub struct LocalArray {
    /// First word.
    pub offset: u32,
    pub bytes: u32,
    pub name: String,
}

/// A per-thread array in consecutive vector registers.
#[derive(Clone, Debug)]
pub struct RegisterArray {
    pub first: R,
    pub count: u16,
    /// 64-bit registers.
    pub wide: bool,
    /// The bit of the first element, where initialization is tracked.
    pub init: Option<u16>,
    pub name: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AtomicOp {
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
pub struct AtomicInst {
    pub op: AtomicOp,
    pub strong: Strong,
    pub access: u16,
    /// The index as `Load` has it, 64-bit where `wide`.
    pub index: R,
    pub wide: bool,
    pub plus: R,
    pub value: R,
    /// The expected value of compare and swap.
    pub compare: R,
    pub d: R,
    /// Nothing reads the result.
    pub unused: bool,
    /// It is a `multimem` instruction.
    pub multimem: Option<MultimemInst>,
}

/// How a `multimem` instruction accesses the parts of its window.
#[derive(Clone, Copy, Debug)]
pub struct MultimemInst {
    /// Weakly, not as `AtomicInst::strong` says.
    pub weak: bool,
    /// How a load combines them.
    pub combine: AtomicOp,
    /// Sums of 16-bit floats are float32 until the end.
    pub in_float32: bool,
}

/// log2 of the bits of a word, the coarsest granularity of tracking.
pub const WORD: u32 = 5;

/// log2 of the bits of a byte.
pub const BYTE: u32 = 3;
