//! Which parts of a kernel have runs exercised: lines, directions of branches, barriers, phases of mbarriers?

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::bytecode::{AsyncInst, Code, Inst, MbarrierWhat};
use crate::location::FaultLocation;

/// How many times threads have taken a branch of the kernel, and how many times they have not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Branch {
    /// The condition was true.
    pub taken: u64,
    /// The condition was false.
    pub skipped: u64,
}

/// Phases of mbarriers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// Phases that were complete when their block ended.
    pub complete: u64,
    /// Of these, phases whose completion a thread has observed, by a wait or a test that returned true.
    pub seen: u64,
}

/// What runs have exercised of a line. A line of an inline function counts apart for each call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineCoverage {
    /// The line.
    pub location: FaultLocation,
    /// Whether a warp has run one of its instructions.
    pub run: bool,
    /// The branches of its `if` and `while`. A condition that is known when the kernel is compiled is no branch.
    pub branches: Vec<Branch>,
    /// For each of its barriers and waits for mbarriers, whether threads have come to it.
    pub barriers: Vec<bool>,
    /// The phases of the mbarriers that the line initializes.
    pub phases: Phases,
}

impl LineCoverage {
    /// Adds what other runs, or other launches of one run, have exercised.
    pub fn merge(all: &mut Vec<LineCoverage>, more: Vec<LineCoverage>) {
        for line in more {
            match all
                .iter_mut()
                .find(|own| own.location.key() == line.location.key())
            {
                Some(own) => own.add(line),
                None => all.push(line),
            }
        }
        all.sort_by(|a, b| a.location.key().cmp(&b.location.key()));
    }

    fn add(&mut self, other: LineCoverage) {
        self.run |= other.run;
        self.phases.complete += other.phases.complete;
        self.phases.seen += other.phases.seen;
        let same = (self.branches.len(), self.barriers.len()) == (other.branches.len(), other.barriers.len());
        if !same {
            // Another kernel with the same line.
            self.branches.extend(other.branches);
            self.barriers.extend(other.barriers);
            return;
        }
        for (own, more) in self.branches.iter_mut().zip(other.branches) {
            own.taken += more.taken;
            own.skipped += more.skipped;
        }
        for (own, more) in self.barriers.iter_mut().zip(other.barriers) {
            *own |= more;
        }
    }
}

/// What a launch has exercised so far.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    /// By instruction.
    insts: Mutex<Vec<Covered>>,
    /// By the instruction that initializes the mbarrier.
    phases: Mutex<BTreeMap<usize, Phases>>,
}

/// What was exercised of an instruction.
#[derive(Clone, Debug, Default)]
struct Covered {
    run: bool,
    branch: Branch,
}

/// Whether threads meet or wait at an instruction.
fn is_barrier(code: &Code, inst: &Inst) -> bool {
    match inst {
        Inst::CtaSync
        | Inst::CtaSyncReduce(_)
        | Inst::NamedSync { .. }
        | Inst::NamedSyncReduce { .. }
        | Inst::ClusterSync
        | Inst::ClusterWait { .. }
        | Inst::GridSync => true,
        Inst::Async { id } => matches!(
            code.asynchronous.get(*id as usize),
            Some(AsyncInst::Mbarrier(inst)) if matches!(inst.what, MbarrierWhat::Wait | MbarrierWhat::Test)
        ),
        _ => false,
    }
}

/// Whether an instruction is of the kernel, rather than for the simulator's own accounts.
fn is_own(inst: &Inst) -> bool {
    !matches!(
        inst,
        Inst::Step { .. }
            | Inst::Turn { .. }
            | Inst::Spin { .. }
            | Inst::CheckInit { .. }
            | Inst::MarkInit { .. }
            | Inst::ClearInit { .. }
            | Inst::ClearLocal { .. }
            | Inst::Extent { .. }
            | Inst::Converged
            | Inst::LoopBegin { .. }
            | Inst::LoopLatch
            | Inst::Arrive
            | Inst::Jump { .. }
            | Inst::End
    )
}

impl Coverage {
    /// Threads come to an instruction; if it is a branch, some of them find its condition `true`.
    pub(crate) fn come(&self, pc: usize, taken: Option<(u32, u32)>) {
        let mut insts = self.insts.lock().unwrap_or_else(PoisonError::into_inner);
        if insts.len() <= pc {
            insts.resize(pc + 1, Covered::default());
        }
        let covered = &mut insts[pc];
        covered.run = true;
        if let Some((taken, skipped)) = taken {
            covered.branch.taken += u64::from(taken);
            covered.branch.skipped += u64::from(skipped);
        }
    }

    /// The end of an mbarrier that an instruction has initialized: its complete phases, and those that threads have seen.
    pub(crate) fn end(&self, init: usize, complete: u64, seen: u64) {
        let mut phases = self.phases.lock().unwrap_or_else(PoisonError::into_inner);
        let all = phases.entry(init).or_default();
        all.complete += complete;
        all.seen += seen.min(complete);
    }

    /// By line, in the order of the lines.
    pub(crate) fn finish(self, code: &Code) -> Vec<LineCoverage> {
        let covered = self.insts.into_inner().unwrap_or_else(PoisonError::into_inner);
        let phases = self.phases.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut lines: Vec<LineCoverage> = Vec::new();
        for (pc, inst) in code.insts.iter().enumerate() {
            let Some(location) = code.location(pc).filter(|_| is_own(inst)) else {
                continue;
            };
            let found = lines
                .iter()
                .position(|line| line.location.key() == location.key());
            let at = found.unwrap_or(lines.len());
            if found.is_none() {
                lines.push(LineCoverage {
                    location,
                    run: false,
                    branches: Vec::new(),
                    barriers: Vec::new(),
                    phases: Phases::default(),
                });
            }
            let line = &mut lines[at];
            let of_inst = covered.get(pc).cloned().unwrap_or_default();
            line.run |= of_inst.run;
            if code.branches.contains(&(pc as u32)) {
                line.branches.push(of_inst.branch);
            }
            if is_barrier(code, inst) {
                line.barriers.push(of_inst.run);
            }
            if let Some(of_inst) = phases.get(&pc) {
                line.phases.complete += of_inst.complete;
                line.phases.seen += of_inst.seen;
            }
        }
        lines.sort_by(|a, b| a.location.key().cmp(&b.location.key()));
        lines
    }
}
