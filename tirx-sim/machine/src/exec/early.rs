//! Reads of shared memory that nobody has written yet. Whether the write is missing or only the order (a barrier, or the wait for
//! a copy) is known later: the block goes on, and a write that comes without an order behind the read is the cause.
//!
//! What the block does in between is not reported, since it may follow from the value that was read, but for another race and for a
//! barrier that threads skip: these explain the read. Where nothing does until the block ends, waits for ever or has run
//! [`STEPS`] more, the read is reported as it was found.

use super::access::Check;
use super::{Context, Shared, Trap, excuse, report};
use crate::fault::{Fault, FaultKind, FaultNote};
use crate::findings::Excusable;

/// Branches and loop iterations that a block with such a read may still run.
const STEPS: u64 = 1 << 20;

/// The instructions of a block that have read what nobody had written, with the report of the first such read of each.
#[derive(Default)]
pub(super) struct EarlyReads {
    reads: Vec<EarlyRead>,
    /// How many of them [`EarlyReads::latest`] has given.
    taken: usize,
}

struct EarlyRead {
    pc: usize,
    fault: Fault,
}

impl EarlyReads {
    pub(super) fn clear(&mut self) {
        *self = EarlyReads::default();
    }

    /// The first of them.
    pub(super) fn first(&self) -> Option<&Fault> {
        self.reads.first().map(|read| &read.fault)
    }

    /// A read that this has not given before, with its instruction.
    pub(super) fn latest(&mut self) -> Option<(usize, Fault)> {
        let read = self.reads.get(self.taken)?;
        self.taken += 1;
        Some((read.pc, read.fault.clone()))
    }

    /// The cause of a fault of instruction `pc`, which is about accesses of the instructions `others` too.
    pub(super) fn cause(&self, fault: Fault, pc: usize, others: &[usize]) -> Fault {
        let Some(first) = self.reads.first() else {
            return fault;
        };
        let is_race = fault.kind == FaultKind::Race;
        let mut reads = self.reads.iter();
        match reads.find(|read| is_race && others.contains(&read.pc)) {
            Some(read) => read.before(&fault, pc < read.pc),
            None if explains(&fault) => first.behind(&fault),
            None => first.fault.clone(),
        }
    }
}

impl EarlyRead {
    /// The report of a fault that explains the read, which it mentions.
    fn behind(&self, cause: &Fault) -> Fault {
        let mut report = (**cause).clone();
        report.notes.push(FaultNote {
            message: format!("before that: {}", self.fault.message),
            location: self.fault.location.clone(),
        });
        report.into()
    }

    /// The report of the read, which a write follows without an order; `precedes`: the write stands before it in the kernel.
    fn before(&self, write: &Fault, precedes: bool) -> Fault {
        let mut report = (*self.fault).clone();
        report.message += "; a write comes later, and nothing orders the read after it: a barrier, or the wait for an operation, is \
                           missing between the two";
        report.notes.push(FaultNote {
            message: write.message.clone(),
            location: write.location.clone(),
        });
        if precedes {
            report.kind = FaultKind::Race;
        }
        report.into()
    }
}

/// Whether a fault may be why something was read too early: another race, or a barrier that threads skip.
pub(super) fn explains(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::Race | FaultKind::BarrierDivergence)
}

/// Goes on after a read of shared memory that nobody has written, until its cause is known.
///
/// # Errors
/// The trap, where it is of another kind, or no order is checked.
pub(super) fn read_early(
    ctx: &Context<'_>,
    shared: &mut Shared,
    by: (usize, usize),
    trap: Box<Trap>,
) -> Check {
    let (warp, pc) = by;
    if trap.kind != FaultKind::Uninitialized
        || !ctx.check_races
        || ctx.findings.excuses(Excusable::UnwrittenRead, trap.kind)
    {
        return excuse(ctx, shared, by, Excusable::UnwrittenRead, trap);
    }
    if shared.early.reads.iter().all(|read| read.pc != pc) {
        let fault = report(ctx, shared, warp, pc, *trap);
        shared.early.reads.push(EarlyRead { pc, fault });
        shared.steps = shared.steps.max(ctx.step_limit.saturating_sub(STEPS));
    }
    Ok(())
}
