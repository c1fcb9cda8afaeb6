//! What is observed of a launch beside its results: counts by line, and the values of a kernel's names at a line.

use std::sync::Mutex;

use crate::bytecode::Code;
use crate::coverage::{Coverage, LineCoverage};
use crate::location::FaultLocation;
use crate::work::{Work, Working};

/// What is to be observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observe {
    /// Counts instructions and memory transactions by line.
    pub counters: bool,
    /// Records which lines, branches, barriers and phases of mbarriers the launch exercises.
    pub coverage: bool,
    /// Adds up the work that a cost model weighs.
    pub work: bool,
    /// Records values wherever a line is reached.
    pub stop: Option<StopAt>,
}

/// Where values are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopAt {
    /// The kernel's line, from 1.
    pub line: u32,
    /// The linear index of the block.
    pub block: u64,
    /// The linear index of a thread in the block; any without one.
    pub thread: Option<u32>,
}

/// The kinds of instructions that are counted.
pub const KINDS: [&str; 12] = [
    "arithmetic",
    "control",
    "global loads",
    "global stores",
    "shared loads",
    "shared stores",
    "local",
    "atomics",
    "shuffles",
    "barriers",
    "asynchronous",
    "matrix",
];

/// Counts of a line, or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions that warps have run, by kind ([`KINDS`]). They are those of the simulator: the compiler of the GPU joins and
    /// splits arithmetic, but not accesses to memory and barriers.
    pub instructions: [u64; KINDS.len()],
    /// Bytes that lanes have read and written in global memory.
    pub global_bytes: u64,
    /// Sectors of 32 bytes that the warps' accesses to global memory have touched, and the least for these bytes.
    pub sectors: u64,
    /// The least number of sectors for the same bytes.
    pub least_sectors: u64,
    /// Bytes that lanes have read and written in shared memory.
    pub shared_bytes: u64,
    /// Passes that the accesses to shared memory take: one more for each further word of a bank.
    pub passes: u64,
    /// The passes without conflicts of banks.
    pub least_passes: u64,
    /// Bytes that lanes have read and written in local memory.
    pub local_bytes: u64,
    /// Bytes that `cp.async` brings to shared memory.
    pub copied_bytes: u64,
    /// Bytes that bulk and tensor copies take to shared memory (of each block that they are for) or from it. What lies beyond
    /// the tensor is not counted.
    pub bulk_bytes: u64,
}

impl Counts {
    /// Passes that are due to conflicts of banks.
    pub fn bank_conflicts(&self) -> u64 {
        self.passes - self.least_passes.min(self.passes)
    }

    /// Sectors that are touched because lanes access places that are apart.
    pub fn uncoalesced(&self) -> u64 {
        self.sectors - self.least_sectors.min(self.sectors)
    }

    /// Adds the counts of another line.
    pub fn add(&mut self, other: &Counts) {
        for (own, more) in self.instructions.iter_mut().zip(other.instructions) {
            *own += more;
        }
        self.global_bytes += other.global_bytes;
        self.sectors += other.sectors;
        self.least_sectors += other.least_sectors;
        self.shared_bytes += other.shared_bytes;
        self.passes += other.passes;
        self.least_passes += other.least_passes;
        self.local_bytes += other.local_bytes;
        self.copied_bytes += other.copied_bytes;
        self.bulk_bytes += other.bulk_bytes;
    }
}

/// The counts of a line; those of a line of an inline function are apart for each call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineCounts {
    /// The line; `None` for instructions that no line of the kernel asks for.
    pub location: Option<FaultLocation>,
    /// Its counts.
    pub counts: Counts,
}

/// The values of names where a warp has reached a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The line.
    pub location: Option<FaultLocation>,
    /// The block.
    pub block: [u32; 3],
    /// The warp in the block.
    pub warp: u32,
    /// Its lanes that have reached the line.
    pub mask: u32,
    /// The values of each name, one of each lane in `mask` (or in it and asked for), or one that all lanes share.
    pub values: Vec<Named>,
}

/// The values of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name, with an index for an element of an array: `s[3]`.
    pub name: String,
    /// Values as text, by lane.
    pub lanes: Vec<(u32, String)>,
    /// Whether all lanes have the same one, and it is given once.
    pub shared: bool,
}

/// Most snapshots and elements of an array that are kept.
pub(crate) const MAX_SNAPSHOTS: usize = 256;
pub(crate) const MAX_ELEMENTS: usize = 64;

/// What was observed of a launch so far.
#[derive(Debug)]
pub(crate) struct Observer {
    pub(crate) what: Observe,
    /// By instruction.
    pub(crate) counts: Mutex<Vec<Counts>>,
    pub(crate) snapshots: Mutex<Vec<Snapshot>>,
    pub(crate) coverage: Coverage,
    pub(crate) working: Working,
}

/// What was observed of a launch.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub(crate) counts: Vec<LineCounts>,
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) coverage: Vec<LineCoverage>,
    pub(crate) work: Option<Work>,
}

impl Observer {
    pub(crate) fn new(what: Observe, code: &Code) -> Observer {
        Observer {
            what,
            counts: Mutex::new(vec![Counts::default(); code.insts.len()]),
            snapshots: Mutex::default(),
            coverage: Coverage::default(),
            working: Working::default(),
        }
    }

    /// What was observed; counts are in the order of the lines.
    pub(crate) fn finish(self, code: &Code, (blocks, warps): (u64, u64)) -> Observed {
        let counts = self
            .counts
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut lines: Vec<LineCounts> = Vec::new();
        for (pc, counts) in counts.iter().enumerate() {
            if *counts == Counts::default() {
                continue;
            }
            let location = code.charged_location(pc);
            let key = location.as_ref().map(FaultLocation::key);
            match lines
                .iter_mut()
                .find(|line| line.location.as_ref().map(FaultLocation::key) == key)
            {
                Some(line) => line.counts.add(counts),
                None => lines.push(LineCounts {
                    location,
                    counts: counts.clone(),
                }),
            }
        }
        fn key(line: &LineCounts) -> Option<Vec<(&str, u32)>> {
            line.location.as_ref().map(FaultLocation::key)
        }
        lines.sort_by(|a, b| key(a).cmp(&key(b)));
        let snapshots = self.snapshots.into_inner();
        Observed {
            counts: lines,
            snapshots: snapshots.unwrap_or_else(std::sync::PoisonError::into_inner),
            coverage: match self.what.coverage {
                true => self.coverage.finish(code),
                false => Vec::new(),
            },
            work: self.what.work.then(|| self.working.finish(blocks, warps)),
        }
    }
}
