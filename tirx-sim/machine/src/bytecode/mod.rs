//! The instructions a device function is compiled to.
//!
//! A warp has vector registers of 32 lanes, in two files: 32-bit (`v`) and 64-bit (`w`). Values that are equal in all
//! lanes of a strand live in its scalar registers (`s`, 64-bit, shared by all kinds). A write of a vector register
//! changes the active lanes alone, so a lane's registers are its own whatever its neighbours do; scalar registers
//! belong to a strand and are copied when strands split.
//!
//! Control flow is structured. `If` splits the active lanes, `Arrive` ends each side; `LoopBegin` … `LoopLatch` frame a
//! loop whose lanes may leave at different times. Uniform branches and loops are plain jumps.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod` | the instructions |
//! | `code` | the code of a function, with the tables that instructions name by number |
//! | `elements`, `view` | buffers that are parts of other shared arrays, and the names of their elements |
//! | `memory`, `lanes`, `asynchronous`, `tensor` | rows of those tables |

mod asynchronous;
mod code;
mod elements;
mod lanes;
mod memory;
mod tensor;
mod view;

use crate::alu::{Bin, Un};
use crate::numeric::Kind;

pub use asynchronous::{
    AsyncInst, BulkInst, Class, Direction, MbarrierInst, MbarrierWhat, PENDING_BITS, RemoteInst, RemoteScope,
    SignalInst, StoreInst, TileInst,
};
pub use code::{Code, DebugHome, DebugName, PartedBarrier, PollLoop, Special};
pub use elements::{ArrayView, Elements, Permutation};
pub use lanes::{Exact, ExactInst, ExternCall, Print, Shuffle, ShuffleMode};
pub use memory::{
    Access, AtomicInst, AtomicOp, BYTE, LocalArray, MultimemInst, Region, RegisterArray, Scope, SharedArray,
    Strong, UNNAMED_POINTER, WORD,
};
pub use tensor::{LeftOperand, MmaInst, TensorInst, TensorMemoryInst, WgmmaInst};

/// A register number; the instruction determines the file.
pub type R = u16;

/// A position in the code.
pub type Pc = u32;

/// An operand of rarer instructions: a vector register (32- or 64-bit, by its kind) or a scalar one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    V(R),
    S(R),
}

/// A barrier with this number of threads is for all of the block.
pub const WHOLE_BLOCK: u32 = u32::MAX;

/// What a barrier tells of the threads' predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// Whether it holds for all.
    All,
    /// Whether it holds for any.
    Any,
    /// For how many it holds.
    Count,
}

/// The vote of a barrier: the vector register of the predicate, the scalar register of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ballot {
    /// The result.
    pub d: R,
    /// The predicate.
    pub v: R,
    /// What the result is.
    pub vote: Vote,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Inst {
    // Moves.
    Mov32 {
        d: R,
        a: R,
    },
    Mov64 {
        d: R,
        a: R,
    },
    MovS {
        d: R,
        a: R,
    },
    Splat32 {
        d: R,
        s: R,
    },
    Splat64 {
        d: R,
        s: R,
    },
    /// The first active lane's value.
    First32 {
        d: R,
        a: R,
    },
    First64 {
        d: R,
        a: R,
    },

    // Arithmetic: vector, vector with scalar, scalar.
    Bin32 {
        op: Bin,
        d: R,
        a: R,
        b: R,
    },
    Bin32S {
        op: Bin,
        d: R,
        a: R,
        s: R,
    },
    BinS32 {
        op: Bin,
        d: R,
        a: R,
        b: R,
    },
    Bin64 {
        op: Bin,
        d: R,
        a: R,
        b: R,
    },
    Bin64S {
        op: Bin,
        d: R,
        a: R,
        s: R,
    },
    BinS64 {
        op: Bin,
        d: R,
        a: R,
        b: R,
    },
    /// Comparisons of 64-bit operands give a 32-bit bool.
    Cmp64 {
        op: Bin,
        d: R,
        a: R,
        b: R,
    },
    Cmp64S {
        op: Bin,
        d: R,
        a: R,
        s: R,
    },
    CmpS64 {
        op: Bin,
        d: R,
        a: R,
        b: R,
    },
    Un32 {
        op: Un,
        d: R,
        a: R,
    },
    UnS32 {
        op: Un,
        d: R,
        a: R,
    },
    Un64 {
        op: Un,
        d: R,
        a: R,
    },
    UnS64 {
        op: Un,
        d: R,
        a: R,
    },
    /// Exact operations, rounded as their modifiers say.
    Exact {
        id: u16,
    },
    /// Addresses of shared memory: from a pointer to 32 bits and back, and to the same place in another block.
    SharedAddress {
        d: R,
        a: R,
    },
    SharedPointer {
        d: R,
        a: R,
    },
    Mapa {
        d: R,
        a: R,
        rank: R,
    },
    /// Rounds or wraps to what a kind can hold.
    Canonical {
        kind: Kind,
        d: R,
        a: R,
    },
    CanonicalS {
        kind: Kind,
        d: R,
        a: R,
    },
    Convert {
        from: Kind,
        to: Kind,
        d: R,
        a: R,
    },
    ConvertS {
        from: Kind,
        to: Kind,
        d: R,
        a: R,
    },
    /// Between a register and the bits as memory holds them.
    ToBits {
        kind: Kind,
        d: R,
        a: R,
    },
    ToBitsS {
        kind: Kind,
        d: R,
        a: R,
    },
    FromBits {
        kind: Kind,
        d: R,
        a: R,
    },
    FromBitsS {
        kind: Kind,
        d: R,
        a: R,
    },
    /// float32 `a * b + c`, rounded after each.
    MulAdd {
        d: R,
        a: R,
        b: R,
        c: R,
    },
    /// `a * b + c`, rounded once to the kind.
    Fma {
        kind: Kind,
        d: R,
        a: R,
        b: R,
        c: R,
    },
    FmaS {
        kind: Kind,
        d: R,
        a: R,
        b: R,
        c: R,
    },
    Select32 {
        d: R,
        c: R,
        a: R,
        b: R,
    },
    Select64 {
        d: R,
        c: R,
        a: R,
        b: R,
    },
    SelectS {
        d: R,
        c: R,
        a: R,
        b: R,
    },

    // Uniform control flow.
    Jump {
        pc: Pc,
    },
    JumpIf {
        s: R,
        pc: Pc,
    },
    JumpIfNot {
        s: R,
        pc: Pc,
    },
    /// `i += step; if i < end jump`.
    ForStep32 {
        i: R,
        step: R,
        end: R,
        pc: Pc,
    },
    ForStep64 {
        i: R,
        step: R,
        end: R,
        pc: Pc,
    },

    // Divergent control flow.
    If {
        c: R,
        other: Pc,
        join: Pc,
    },
    Arrive,
    LoopBegin {
        latch: Pc,
        exit: Pc,
    },
    LoopTest {
        c: R,
    },
    LoopTestS {
        s: R,
    },
    LoopLatch,
    Break,
    Continue,
    Return,
    End,
    /// An iteration of a loop that may wait for another thread's writes begins: its number in `Code::polls`.
    Turn {
        id: u16,
    },
    /// It ends, and another one follows.
    Spin {
        id: u16,
    },
    /// Counts work: the number of IR operators that follow in this block.
    Step {
        weight: u32,
    },

    // Memory; `access` describes the place. `plus` is a scalar added to the index.
    Load {
        d: R,
        index: R,
        plus: R,
        access: u16,
    },
    LoadWide {
        d: R,
        index: R,
        plus: R,
        access: u16,
    },
    /// One address for all lanes: a scalar result.
    LoadS {
        d: R,
        index: R,
        wide: bool,
        access: u16,
    },
    /// One index into a local array for all lanes.
    LoadRow {
        d: R,
        index: R,
        wide: bool,
        access: u16,
    },
    StoreRow {
        v: R,
        index: R,
        wide: bool,
        access: u16,
    },
    Store {
        v: R,
        index: R,
        plus: R,
        access: u16,
    },
    StoreWide {
        v: R,
        index: R,
        plus: R,
        access: u16,
    },
    /// An element of an array in registers, by an index that is the same for all lanes.
    LoadIndexed {
        d: R,
        array: u16,
        index: R,
        wide: bool,
    },
    StoreIndexed {
        v: R,
        array: u16,
        index: R,
        wide: bool,
    },
    Atomic {
        id: u16,
    },
    /// Reports lanes that have not written bit `bit` (a promoted element); `mark` sets it.
    CheckInit {
        bit: u16,
    },
    MarkInit {
        bit: u16,
    },
    /// A new iteration of the declaration's scope: the contents are undefined again.
    ClearInit {
        bit: u16,
    },
    /// The same for a local array.
    ClearLocal {
        array: u16,
    },

    // Warps and blocks.
    Shuffle {
        id: u16,
    },
    WarpSync,
    /// All running lanes of the warp must have arrived.
    Converged,
    ActiveMask {
        d: R,
    },
    CtaSync,
    CtaSyncReduce(Ballot),
    /// Waits at barrier `id` for the given number of threads, or for [`WHOLE_BLOCK`].
    NamedSync {
        id: R,
        threads: R,
        /// All lanes of the warp come together (`bar`, `barrier.aligned`).
        aligned: bool,
    },
    /// The same, with a predicate of each thread.
    NamedSyncReduce {
        id: R,
        threads: R,
        aligned: bool,
        ballot: Ballot,
    },
    /// Arrives at barrier `id` of the given number of threads without waiting.
    NamedArrive {
        id: R,
        threads: R,
        aligned: bool,
    },
    ClusterSync,
    ClusterArrive {
        relaxed: bool,
        /// All lanes of the warp together.
        aligned: bool,
    },
    ClusterWait {
        aligned: bool,
    },
    GridSync,
    /// `fence` of threads within a scope.
    Fence {
        scope: Scope,
        /// `fence.sc`, not `fence.acq_rel`.
        sc: bool,
    },
    /// An asynchronous instruction, or one of mbarriers.
    Async {
        id: u16,
    },
    /// The address on the device of a rank (32-bit) that stands for an address in symmetric memory; 0 if there is none.
    PeerPointer {
        d: R,
        a: R,
        rank: R,
    },
    /// The same in the multicast window.
    WindowPointer {
        d: R,
        a: R,
    },
    /// `fence.proxy.alias`.
    FenceAliases,
    /// `fence.proxy.async`, for accesses to these state spaces.
    FenceProxy {
        shared: bool,
        global: bool,
    },
    /// `griddepcontrol.wait`.
    PriorGrid,
    Clock {
        d: R,
    },

    // Checks and output.
    Assert {
        c: R,
        message: u16,
    },
    Extent {
        s: R,
        axis: Axis,
    },
    Print {
        id: u16,
    },
    CallStandIn {
        id: u16,
    },
    /// What a warp does with its tensor core.
    Tensor {
        id: u16,
    },
}

/// A hardware index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    Block(u8),
    Thread(u8),
    /// Index of the block in its cluster.
    ClusterCta(u8),
    /// Index of the cluster in the grid.
    Cluster(u8),
}

impl Axis {
    pub fn from_tag(tag: &str) -> Option<Axis> {
        let (name, dim) = tag.split_once('.')?;
        let dim = match dim {
            "x" => 0,
            "y" => 1,
            "z" => 2,
            _ => return None,
        };
        Some(match name {
            "blockIdx" => Axis::Block(dim),
            "threadIdx" => Axis::Thread(dim),
            "clusterCtaIdx" => Axis::ClusterCta(dim),
            "clusterIdx" => Axis::Cluster(dim),
            _ => return None,
        })
    }

    pub fn name(self) -> String {
        let (name, dim) = match self {
            Axis::Block(d) => ("blockIdx", d),
            Axis::Thread(d) => ("threadIdx", d),
            Axis::ClusterCta(d) => ("clusterCtaIdx", d),
            Axis::Cluster(d) => ("clusterIdx", d),
        };
        format!("{name}.{}", ['x', 'y', 'z'][dim as usize])
    }
}
