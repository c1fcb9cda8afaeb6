//! Instructions of the tensor core and of tensor memory.

use super::{Operand, R};
use crate::tensor::format::Format;
use crate::tensor::fragment::Shape;
use crate::tensor::mma::Mma;
use crate::tensor::rows::RowMove;
use crate::tensor::transfer::{Copy, Transfer};
use crate::tensor::wgmma::Wgmma;

/// An instruction of the tensor core; operands are consecutive vector registers.
#[derive(Clone, Debug)]
pub enum TensorInst {
    /// `ldmatrix`, `stmatrix`: rows of 16 bytes at addresses (64-bit), through four registers at `temp`.
    Rows {
        rows: RowMove,
        address: R,
        access: u16,
        temp: R,
        registers: R,
    },
    /// `mma.sync`.
    Mma {
        mma: Mma,
        a: R,
        b: R,
        c: Option<R>,
        d: R,
        /// Of a sparse A.
        metadata: Option<R>,
    },
    /// `mma.sync` of float64.
    MmaF64 {
        shape: Shape,
        a: R,
        b: R,
        c: Option<R>,
        d: R,
    },
    WgmmaFence,
    WgmmaCommit,
    WgmmaWait {
        n: usize,
    },
    Wgmma(WgmmaInst),
    Memory(TensorMemoryInst),
}

/// An instruction of tensor memory; registers are vector registers unless noted.
#[derive(Clone, Debug)]
pub enum TensorMemoryInst {
    /// `tcgen05.fence::before_thread_sync`.
    FenceBefore,
    /// `tcgen05.fence::after_thread_sync`.
    FenceAfter,
    /// Columns (32-bit) whose address goes to shared memory at `to` (64-bit) through `temp`.
    Alloc {
        to: R,
        access: u16,
        columns: R,
        temp: R,
        group: usize,
    },
    Dealloc {
        address: R,
        columns: R,
        group: usize,
    },
    Relinquish {
        group: usize,
    },
    /// From an address to registers given by pointers.
    Load {
        transfer: Transfer,
        address: R,
        registers: Vec<Operand>,
    },
    WaitLoad,
    Store {
        transfer: Transfer,
        address: R,
        registers: Vec<Operand>,
    },
    WaitStore,
    /// Signals an mbarrier (64-bit), or those of a mask of ranks.
    Commit {
        barrier: R,
        ranks: Option<R>,
        predicate: Option<R>,
        group: usize,
    },
    Mma(MmaInst),
    Copy {
        copy: Copy,
        group: usize,
        address: R,
        descriptor: R,
    },
    /// Rows of 32 bytes move to the next lane.
    Shift {
        group: usize,
        address: R,
    },
}

impl TensorMemoryInst {
    /// The blocks that work together (`.cta_group`), which each instruction of a kernel that has the qualifier must name alike.
    pub fn group(&self) -> Option<usize> {
        match self {
            TensorMemoryInst::Alloc { group, .. }
            | TensorMemoryInst::Dealloc { group, .. }
            | TensorMemoryInst::Relinquish { group }
            | TensorMemoryInst::Commit { group, .. }
            | TensorMemoryInst::Copy { group, .. }
            | TensorMemoryInst::Shift { group, .. } => Some(*group),
            TensorMemoryInst::Mma(inst) => Some(inst.group),
            TensorMemoryInst::FenceBefore
            | TensorMemoryInst::FenceAfter
            | TensorMemoryInst::Load { .. }
            | TensorMemoryInst::WaitLoad
            | TensorMemoryInst::Store { .. }
            | TensorMemoryInst::WaitStore => None,
        }
    }
}

/// A `tcgen05.mma`.
#[derive(Clone, Debug)]
pub struct MmaInst {
    pub kind: crate::tensor::tcgen05::Kind,
    /// The formats of A, B and D that the call names, where it does.
    pub named: Option<[Format; 3]>,
    /// Blocks that work together.
    pub group: usize,
    pub weight_stationary: bool,
    /// Scale factors along k.
    pub blocks: usize,
    /// log2 of what the accumulators are divided by.
    pub scale: u32,
    /// The address of a sparse A's metadata (32-bit).
    pub metadata: Option<R>,
    /// A is in tensor memory: `left` (64-bit) is its address.
    pub left_in_memory: bool,
    pub left: R,
    pub right: R,
    pub d: R,
    pub descriptor: R,
    pub keep: R,
    pub off: Vec<R>,
    pub factors: Option<[R; 2]>,
    pub predicate: Option<R>,
}

/// Matrix A of a `wgmma`.
#[derive(Clone, Debug)]
pub enum LeftOperand {
    /// A 64-bit register with its descriptor.
    Shared(R),
    /// Pointers to registers.
    Registers(Vec<Operand>),
}

/// A `wgmma.mma_async`.
#[derive(Clone, Debug)]
pub struct WgmmaInst {
    pub wgmma: Wgmma,
    pub left: LeftOperand,
    /// A 64-bit register with the descriptor of B.
    pub right: R,
    /// A 32-bit register: whether the accumulators' old contents are added.
    pub keep: R,
    /// Pointers to the accumulators.
    pub sums: Vec<Operand>,
}
