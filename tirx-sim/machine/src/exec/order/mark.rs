//! An access as histories record it: by whom, when, and how.

use super::clock::WARPS;
use crate::bytecode::Scope;

/// How an access was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub(crate) enum Kind {
    /// A weak access.
    Plain,
    /// A strong one, ordered with those of other threads within its scope.
    Cta,
    Cluster,
    Gpu,
    /// Within all devices.
    Sys,
    /// By an asynchronous operation: `cp.async`, which is of the generic proxy.
    Copy,
    /// By one of the async proxy: bulk and tensor copies, tensor cores.
    Engine,
    /// A strong one by an asynchronous operation: a signal.
    Signal,
}

const KINDS: [Kind; 8] = [
    Kind::Plain,
    Kind::Cta,
    Kind::Cluster,
    Kind::Gpu,
    Kind::Sys,
    Kind::Copy,
    Kind::Engine,
    Kind::Signal,
];

/// An access by lanes of one warp in one segment, or by an asynchronous operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Segment of the warp; the operation's number among those of its instruction.
    pub(crate) segment: u32,
    /// The block's number in the launch.
    pub(crate) block: u32,
    /// The lane; for an operation, the lane that issued it.
    pub(crate) lanes: u32,
    /// Instruction, warp, kind.
    what: u32,
}

const WARP_SHIFT: u32 = 4;
/// The access was made through a multicast window.
const WINDOW: u32 = 1 << 9;
const PC_SHIFT: u32 = 10;
const MAX_PC: usize = (1 << (32 - PC_SHIFT)) - 1;

impl Mark {
    /// No access yet.
    pub(crate) const NEVER: Mark = Mark {
        segment: u32::MAX,
        block: u32::MAX,
        lanes: 0,
        what: u32::MAX,
    };

    pub(crate) fn new(segment: u32, block: u32, lanes: u32, pc: usize, warp: usize, kind: Kind) -> Mark {
        let what = (pc.min(MAX_PC) as u32) << PC_SHIFT | ((warp % WARPS) as u32) << WARP_SHIFT | kind as u32;
        Mark {
            segment,
            block,
            lanes,
            what,
        }
    }

    #[inline(always)]
    pub(crate) fn is_never(self) -> bool {
        self.lanes == 0
    }

    #[inline(always)]
    pub(crate) fn warp(self) -> usize {
        (self.what >> WARP_SHIFT) as usize % WARPS
    }

    pub(crate) fn pc(self) -> usize {
        (self.what >> PC_SHIFT) as usize
    }

    pub(crate) fn kind(self) -> Kind {
        KINDS[(self.what & 15) as usize % KINDS.len()]
    }

    /// The same access, made in another way.
    pub(crate) fn with_kind(self, kind: Kind) -> Mark {
        Mark {
            what: self.what & !15 | kind as u32,
            ..self
        }
    }

    /// The strong access of an operation.
    pub(crate) fn as_signal(self) -> Mark {
        self.with_kind(Kind::Signal)
    }

    /// The same access through a multicast window, which is another address of the place.
    pub(crate) fn through_window(self) -> Mark {
        Mark {
            what: self.what | WINDOW,
            ..self
        }
    }

    /// Whether one of two accesses was made through a multicast window, and the other was not.
    #[inline(always)]
    pub(crate) fn is_alias_of(self, other: Mark) -> bool {
        (self.what ^ other.what) & WINDOW != 0 && !self.is_never() && !other.is_never()
    }

    /// Whether it is a strong access of a thread.
    pub(crate) fn is_strong(self) -> bool {
        matches!(self.kind(), Kind::Cta | Kind::Cluster | Kind::Gpu | Kind::Sys)
    }

    /// The scope of a strong access.
    pub(crate) fn scope(self) -> Option<Scope> {
        match self.kind() {
            Kind::Cta => Some(Scope::Cta),
            Kind::Cluster => Some(Scope::Cluster),
            Kind::Gpu => Some(Scope::Gpu),
            Kind::Sys | Kind::Signal => Some(Scope::Sys),
            _ => None,
        }
    }

    /// Whether it is an access by an asynchronous operation.
    #[inline(always)]
    pub(crate) fn is_operation(self) -> bool {
        self.what & 15 >= Kind::Copy as u32
    }

    /// Whether it is an access by lanes of a warp.
    pub(crate) fn of_warp(self, block: u32, warp: usize) -> bool {
        self.block == block && !self.is_operation() && self.warp() == warp
    }

    /// The mark of an operation's writes; its own is that of its reads.
    pub(crate) fn written(self) -> Mark {
        Mark {
            segment: self.segment | 1,
            ..self
        }
    }

    /// The same access of these lanes.
    #[inline(always)]
    pub(crate) fn with_lanes(self, lanes: u32) -> Mark {
        Mark { lanes, ..self }
    }

    /// Linear index of the first thread.
    pub(crate) fn thread(self) -> u32 {
        self.warp() as u32 * 32 + self.lanes.trailing_zeros() % 32
    }

    /// Whether both are of one warp and one segment, and no operations.
    pub(crate) fn together(self, other: Mark) -> bool {
        self.segment == other.segment
            && self.block == other.block
            && self.what & ((WINDOW << 1) - 1) == other.what & ((WINDOW << 1) - 1)
            && !self.is_operation()
    }
}
