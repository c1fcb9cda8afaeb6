//! Asynchronous instructions: mbarriers, copies, NVSHMEM.

use super::{AtomicOp, R};
use crate::numeric::Kind;

/// Which operations are waited for together (`commit_group`, `wait_group`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// `cp.async`, by thread.
    Copy,
    /// `cp.async.bulk`, by thread.
    Bulk,
    /// `wgmma`, by warp: the thread is its lane 0.
    Matrix,
    /// `tcgen05`, by thread; completion is reported by commits.
    Tensor,
    /// NVSHMEM, by thread.
    Remote,
    /// Reported to mbarriers alone: no groups.
    Told,
}

/// What is done with a box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Direction {
    /// To shared memory.
    In,
    /// To the tensor.
    Out,
    /// Combined with the tensor.
    Reduce(AtomicOp),
}

/// What is done with an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MbarrierWhat {
    Init,
    Inval,
    Arrive,
    ArriveExpect,
    ArriveNoComplete,
    Expect,
    Complete,
    /// Waits for a phase.
    Wait,
    /// Tests whether it is complete.
    Test,
}

/// Bits of the state of an mbarrier that hold the pending arrivals; those above them are the phase. The format is the
/// simulator's own, as it is the GPU's.
pub const PENDING_BITS: u32 = 20;

/// An instruction of mbarriers; operands are vector registers.
#[derive(Clone, Debug)]
pub struct MbarrierInst {
    pub what: MbarrierWhat,
    /// A 64-bit address.
    pub barrier: R,
    /// Arrivals, bytes or parity.
    pub count: Option<R>,
    /// The rank of the block meant.
    pub remote: Option<R>,
    pub predicate: Option<R>,
    pub relaxed: bool,
    /// At the scope of the cluster rather than of the block.
    pub cluster: bool,
    /// Later phases wait for as many arrivals less.
    pub drops: bool,
    /// A 64-bit register with a state: written by an arrival; the phase that a test asks for.
    pub state: Option<R>,
    pub d: Option<R>,
}

/// A bulk copy of bytes; operands are vector registers.
#[derive(Clone, Debug)]
pub struct BulkInst {
    /// 64-bit addresses.
    pub to: R,
    pub from: R,
    pub bytes: R,
    /// The address of the mbarrier that counts them.
    pub barrier: Option<R>,
    /// A mask of ranks.
    pub ranks: Option<R>,
    /// Which of each 16 bytes are written.
    pub mask: Option<R>,
    /// Bytes at the beginning and at the end that are neither read nor written.
    pub ignored: [Option<R>; 2],
    /// Combines elements with those that are there.
    pub reduces: Option<(AtomicOp, Kind)>,
}

/// A store or reduction of registers that completes at an mbarrier (`st.async`, `red.async`); operands are vector registers.
#[derive(Clone, Debug)]
pub struct StoreInst {
    /// 64-bit addresses.
    pub to: R,
    pub barrier: R,
    pub kind: Kind,
    pub values: Vec<R>,
    /// Combines the values with those that are there.
    pub reduces: Option<AtomicOp>,
}

/// A tensor copy; operands are vector registers.
#[derive(Clone, Debug)]
pub struct TileInst {
    pub direction: Direction,
    pub gather: bool,
    /// 64-bit addresses.
    pub map: R,
    pub shared: R,
    pub barrier: Option<R>,
    pub ranks: Option<R>,
    /// With `.cta_group::2` the mbarrier may be of the other block of the pair.
    pub pair: bool,
    /// Coordinates.
    pub at: Vec<R>,
}

/// An asynchronous instruction, or one of mbarriers.
#[derive(Clone, Debug)]
pub enum AsyncInst {
    Mbarrier(MbarrierInst),
    /// `fence.mbarrier_init`.
    FenceInit,
    /// `fence.proxy.tensormap`.
    FenceMaps {
        acquires: bool,
    },
    /// `cp.async`.
    Copy {
        to: R,
        from: R,
        bytes: u8,
        predicate: Option<R>,
        /// Zeros are written where the predicate is 0.
        zeros: bool,
        /// How many of the bytes are read; the others are zeros. All, where this is left out.
        read: Option<R>,
    },
    /// `cp.async.mbarrier.arrive`.
    ArriveWhenCopied {
        barrier: R,
        noinc: bool,
    },
    Bulk(BulkInst),
    /// `st.async` and `red.async`.
    Store(StoreInst),
    Tile(TileInst),
    Commit(Class),
    /// At most so many groups may stay in flight; `None`: none at all.
    Wait {
        class: Class,
        left: Option<u32>,
        read: bool,
    },
    /// `clusterlaunchcontrol.try_cancel`: 64-bit addresses. The response goes to every block of the cluster, or to this one.
    TryCancel {
        handle: R,
        barrier: R,
        multicast: bool,
    },
    /// Records that a thread has seen whether a cancellation was granted.
    Queried {
        found: R,
    },
    Remote(RemoteInst),
    /// `nvshmem_fence`.
    RemoteFence,
    /// `setmaxnreg`, which waits for registers.
    SetRegisters {
        count: u16,
        /// `.inc`, not `.dec`.
        more: bool,
    },
}

/// Which threads perform an NVSHMEM operation together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteScope {
    Thread,
    Warp,
    /// The first warp does it, after all have met.
    Block,
}

/// A copy to or from a processing element, a signal, or both; operands are vector registers.
#[derive(Clone, Debug)]
pub struct RemoteInst {
    pub scope: RemoteScope,
    /// The element meant (32-bit).
    pub pe: R,
    /// 64-bit: destination, source, bytes.
    pub copy: Option<(R, R, R)>,
    /// The source is the element's, not the destination.
    pub gets: bool,
    pub signal: Option<SignalInst>,
}

/// A signal: a word of 64 bits that is set or added to.
#[derive(Clone, Copy, Debug)]
pub struct SignalInst {
    pub address: R,
    pub value: R,
    pub adds: bool,
}
