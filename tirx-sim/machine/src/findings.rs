//! Faults that a launch may report and go on after.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::fault::{Fault, FaultKind, FaultNote};

/// What a launch may go on after: [`LaunchOptions::continue_after`](crate::LaunchOptions).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excusable {
    /// A read of shared, local or tensor memory that nobody has written. It gives what is there, zeros at first.
    UnwrittenRead,
    /// Tensor memory is freed while others use it. They use it until it is allocated again.
    FreedColumns,
    /// A warp arrives twice in one phase of a named barrier. It counts twice.
    DoubleArrival,
    /// A block ends while an asynchronous operation reads its shared memory.
    UnfinishedRead,
    /// A warp ends without having waited for its loads of tensor memory.
    UnwaitedLoad,
    /// An asynchronous operation uses shared memory that threads have written before, or an mbarrier that they have
    /// initialized, without a fence that makes it visible to the async proxy.
    MissingFence,
}

/// A set of [`Excusable`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContinueAfter(u8);

impl ContinueAfter {
    /// The set of some.
    pub fn from_findings(findings: &[Excusable]) -> ContinueAfter {
        let bits = findings
            .iter()
            .fold(0, |bits, finding| bits | 1 << *finding as u8);
        ContinueAfter(bits)
    }

    pub(crate) fn contains(self, finding: Excusable) -> bool {
        self.0 >> finding as u8 & 1 != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What a launch has gone on after: for each instruction the first fault of the first block.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) after: ContinueAfter,
    found: Mutex<BTreeMap<usize, (u64, Fault)>>,
}

impl Findings {
    pub(crate) fn new(after: ContinueAfter) -> Findings {
        Findings {
            after,
            found: Mutex::default(),
        }
    }

    fn found(&self) -> MutexGuard<'_, BTreeMap<usize, (u64, Fault)>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the launch goes on after a fault of this kind.
    pub(crate) fn excuses(&self, finding: Excusable, kind: FaultKind) -> bool {
        let is_read = finding == Excusable::UnwrittenRead;
        self.after.contains(finding) && (kind == FaultKind::Uninitialized || !is_read)
    }

    /// Notes what the launch goes on after, of an instruction and the block of a number.
    pub(crate) fn note(&self, pc: usize, block: u64, fault: impl FnOnce() -> Fault) {
        let mut found = self.found();
        if found.get(&pc).is_none_or(|(first, _)| block < *first) {
            found.insert(pc, (block, fault()));
        }
    }

    /// All of them, in the order of the kernel's lines.
    pub(crate) fn take(&self) -> Vec<Fault> {
        let found = std::mem::take(&mut *self.found());
        found.into_values().map(|(_, fault)| fault).collect()
    }

    /// A fault that ends the launch, with what was found before it.
    pub(crate) fn told(&self, fault: Fault) -> Fault {
        let before = self.take();
        if before.is_empty() {
            return fault;
        }
        let mut report = (*fault).clone();
        report.notes.extend(before.into_iter().map(|earlier| FaultNote {
            message: format!(
                "the launch went on after this {}: {}",
                earlier.kind, earlier.message
            ),
            location: earlier.location.clone(),
        }));
        report.into()
    }
}
