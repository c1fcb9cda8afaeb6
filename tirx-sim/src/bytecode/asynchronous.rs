//! Asynchronous instructions: mbarriers, copies, NVSHMEM.

use super::{AtomicOp, R};

/// Which operations are waited for together (`commit_group`, `wait_group`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
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
pub(crate) enum Direction {
    /// To shared memory.
    In,
    /// To the tensor.
    Out,
    /// Combined with the tensor.
    Reduce(AtomicOp),
}

/// What is done with an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MbarrierWhat {
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

/// An instruction of mbarriers; operands are vector registers.
#[derive(Clone, Debug)]
pub(crate) struct MbarrierInst {
    pub(crate) what: MbarrierWhat,
    /// A 64-bit address.
    pub(crate) barrier: R,
    /// Arrivals, bytes or parity.
    pub(crate) count: Option<R>,
    /// The rank of the block meant.
    pub(crate) remote: Option<R>,
    pub(crate) predicate: Option<R>,
    pub(crate) relaxed: bool,
    pub(crate) d: Option<R>,
}

/// A bulk copy of bytes; operands are vector registers.
#[derive(Clone, Debug)]
pub(crate) struct BulkInst {
    /// 64-bit addresses.
    pub(crate) to: R,
    pub(crate) from: R,
    pub(crate) bytes: R,
    /// The address of the mbarrier that counts them.
    pub(crate) barrier: Option<R>,
    /// A mask of ranks.
    pub(crate) ranks: Option<R>,
    /// Which of each 16 bytes are written.
    pub(crate) mask: Option<R>,
    /// Bytes at the beginning and at the end that are neither read nor written.
    pub(crate) ignored: [Option<R>; 2],
}

/// A tensor copy; operands are vector registers.
#[derive(Clone, Debug)]
pub(crate) struct TileInst {
    pub(crate) direction: Direction,
    pub(crate) gather: bool,
    /// 64-bit addresses.
    pub(crate) map: R,
    pub(crate) shared: R,
    pub(crate) barrier: Option<R>,
    pub(crate) ranks: Option<R>,
    /// Coordinates.
    pub(crate) at: Vec<R>,
}

/// An asynchronous instruction, or one of mbarriers.
#[derive(Clone, Debug)]
pub(crate) enum AsyncInst {
    Mbarrier(MbarrierInst),
    /// `fence.mbarrier_init`.
    FenceInit,
    /// `cp.async`.
    Copy {
        to: R,
        from: R,
        bytes: u8,
        predicate: Option<R>,
        /// Zeros are written where the predicate is 0.
        zeros: bool,
    },
    /// `cp.async.mbarrier.arrive`.
    ArriveWhenCopied {
        barrier: R,
        noinc: bool,
    },
    Bulk(BulkInst),
    Tile(TileInst),
    Commit(Class),
    /// At most so many groups may stay in flight; `None`: none at all.
    Wait {
        class: Class,
        left: Option<u32>,
        read: bool,
    },
    /// `clusterlaunchcontrol.try_cancel`: 64-bit addresses.
    TryCancel {
        handle: R,
        barrier: R,
    },
    /// Records that a thread has seen whether a cancellation was granted.
    Queried {
        found: R,
    },
    Remote(RemoteInst),
    /// `nvshmem_fence`.
    RemoteFence,
}

/// Which threads perform an NVSHMEM operation together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RemoteScope {
    Thread,
    Warp,
    /// The first warp does it, after all have met.
    Block,
}

/// A copy to or from a processing element, a signal, or both; operands are vector registers.
#[derive(Clone, Debug)]
pub(crate) struct RemoteInst {
    pub(crate) scope: RemoteScope,
    /// The element meant (32-bit).
    pub(crate) pe: R,
    /// 64-bit: destination, source, bytes.
    pub(crate) copy: Option<(R, R, R)>,
    pub(crate) signal: Option<SignalInst>,
}

/// A signal: a word of 64 bits that is set or added to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignalInst {
    pub(crate) address: R,
    pub(crate) value: R,
    pub(crate) adds: bool,
}
