//! Named barriers: which threads have arrived, when a barrier opens, and whether two of its phases could mix.
//!
//! A named barrier counts threads, not identities. If two groups of warps use the same barrier and nothing orders the
//! second group behind the first, a phase may complete with some warps of each. Therefore a thread that comes to a barrier
//! must be ordered behind all arrivals of the previous phase. Threads that waited in that phase are.

use super::meeting::announce;
use super::order::{Kind, Known, Mark};
use super::run::Machine;
use super::{Shared, Status, Strand, Trap, Warp};
use crate::alu::LANES;
use crate::bytecode::{Ballot, Vote, WHOLE_BLOCK};
use crate::fault::FaultKind;
use crate::findings::Excusable;

/// The current phase of a named barrier.
pub(super) struct Arrivals {
    /// How many threads complete it.
    threads: u32,
    /// Whether its instructions give that number.
    counted: bool,
    /// What its instructions count of a predicate.
    vote: Option<Vote>,
    /// How many have arrived.
    arrived: u32,
    /// What the arrivals that do not wait have released.
    before: Option<Known>,
    /// All arrivals.
    who: Vec<Mark>,
}

/// Why no phase of barrier 0 may be open while threads wait at the block barrier.
pub(super) const OF_THE_BLOCK: &str = "other threads wait at the block's barrier (cta_sync, or bar.sync 0 without a count), which is \
                                       barrier 0 too: a GPU stops if some threads give a count and other threads do \
                                       not, even if the count is the number of all threads. For some of the threads, \
                                       use a barrier from 1 to 15";

impl Arrivals {
    /// How many threads have arrived, and how many complete the phase.
    pub(super) fn count(&self) -> (u32, u32) {
        (self.arrived, self.threads)
    }
}

/// The barrier that an instruction names.
#[derive(Clone, Copy)]
pub(super) struct Meeting {
    id: u32,
    /// How many threads complete a phase.
    threads: u32,
    /// Whether the instruction gives that number; without it they are all threads of the block.
    counted: bool,
    /// What it counts of a predicate, if it does.
    vote: Option<Vote>,
    /// All lanes of a warp come together.
    aligned: bool,
}

impl Machine<'_, '_> {
    pub(super) fn meeting(&self, id: u64, threads: u64, aligned: bool) -> Meeting {
        let counted = threads as u32 != WHOLE_BLOCK;
        let threads = match threads as u32 {
            WHOLE_BLOCK => self
                .ctx
                .block
                .iter()
                .product::<u32>()
                .next_multiple_of(LANES as u32),
            threads => threads,
        };
        Meeting {
            id: id as u32,
            threads,
            counted,
            vote: None,
            aligned,
        }
    }

    /// Lanes come to a named barrier and wait. Barrier 0 without a count is the barrier of the block.
    pub(super) fn wait_at_named(
        &mut self,
        pc: usize,
        meeting: Meeting,
        mask: u32,
        ballot: Option<Ballot>,
    ) -> Result<Status, Box<Trap>> {
        let Meeting {
            id, threads, counted, ..
        } = meeting;
        if id == 0 && !counted {
            return Ok(Status::Barrier(ballot));
        }
        let meeting = Meeting {
            vote: ballot.map(|ballot| ballot.vote),
            ..meeting
        };
        self.arrive_at_named(pc, meeting, mask, true)?;
        Ok(Status::Named(id, threads, ballot))
    }

    /// Lanes arrive at a named barrier (PTX ISA, "bar, barrier"); with `waits`, they will wait there. At one that is not aligned the
    /// lanes of a warp may come one by one.
    pub(super) fn arrive_at_named(
        &mut self,
        pc: usize,
        meeting: Meeting,
        mask: u32,
        waits: bool,
    ) -> Result<(), Box<Trap>> {
        let Meeting {
            id,
            threads,
            counted,
            vote,
            aligned,
        } = meeting;
        let lane = mask.trailing_zeros() & 31;
        let message = match (id, threads) {
            (16.., _) => Some(format!("named barrier {id}: a block has 16, numbered from 0")),
            (_, 0) => Some(format!("named barrier {id} for no threads")),
            (_, n) if n % LANES as u32 != 0 => Some(format!(
                "named barrier {id} for {n} threads, which are not whole warps"
            )),
            _ => None,
        };
        if let Some(message) = message {
            return Err(Trap::new(FaultKind::InvalidBarrier, lane, message));
        }
        if id == 0 && self.shared.at_barrier > 0 {
            let message = format!("{threads} threads meet at named barrier 0 while {OF_THE_BLOCK}");
            return Err(Trap::new(FaultKind::InvalidBarrier, lane, message));
        }
        if aligned && mask != self.warp.alive {
            let message = format!(
                "{} of the warp's {} lanes come to named barrier {id}: all lanes of a warp come to this barrier \
                 together (bar.sync is barrier.sync.aligned; at barrier.sync they need not)",
                mask.count_ones(),
                self.warp.alive.count_ones()
            );
            return Err(Trap::new(FaultKind::InvalidBarrier, lane, message));
        }
        if let Some((message, there)) = self.in_wrong_phase(meeting, mask) {
            let open = |phase: &Arrivals| phase.threads == threads && phase.arrived < threads;
            let twice = there.warp() == self.id && self.shared.named.get(&id).is_some_and(open);
            let mut trap = Trap::new(FaultKind::InvalidBarrier, lane, message);
            trap.notes
                .push((format!("warp {} arrived here", there.warp()), there.pc()));
            if !twice {
                return Err(trap);
            }
            self.excuse(pc, Excusable::DoubleArrival, trap)?;
        }
        let order = &mut self.shared.order;
        let mark = order.mark(self.id, pc, Kind::Cta).with_lanes(mask);
        let arrivals = self.shared.named.entry(id).or_insert_with(|| Arrivals {
            threads,
            counted,
            vote,
            arrived: 0,
            before: None,
            who: Vec::new(),
        });
        arrivals.arrived += mask.count_ones();
        arrivals.who.push(mark);
        if !waits {
            let released = order.release(self.id, mask);
            match &mut arrivals.before {
                Some(before) => before.join(&released),
                none => *none = Some(released),
            }
        }
        Ok(())
    }

    /// Why lanes may not arrive in the present phase of a barrier, and the other arrival that shows it.
    fn in_wrong_phase(&self, meeting: Meeting, mask: u32) -> Option<(String, Mark)> {
        let Meeting {
            id, threads, counted, ..
        } = meeting;
        let (warp, order) = (self.id, &self.shared.order);
        let last = match self.shared.named.get(&id) {
            // The phase is complete, but its threads have not been resumed yet.
            Some(phase) if phase.arrived >= phase.threads => Some(&phase.who),
            Some(phase) if phase.threads != threads => {
                let message = format!(
                    "warp {warp} arrives at named barrier {id} with a count of {threads} threads, other warps with {}",
                    phase.threads
                );
                return Some((message, *phase.who.first()?));
            }
            Some(phase) if phase.counted != counted => {
                let how = |counted| if counted { "with" } else { "without" };
                let message = format!(
                    "warp {warp} arrives at named barrier {id} {} a count of threads, other warps {} a count: a GPU stops at the \
                     mixture (illegal instruction), even if the numbers are equal",
                    how(counted),
                    how(phase.counted)
                );
                return Some((message, *phase.who.first()?));
            }
            Some(phase) if phase.vote != meeting.vote => {
                return Some((voting_apart(&format!("named barrier {id}")), *phase.who.first()?));
            }
            Some(phase) => {
                if let Some(mark) = phase.who.iter().find(|m| m.warp() == warp && m.lanes & mask != 0) {
                    let message = format!(
                        "warp {warp} arrives twice in one phase of named barrier {id}: it counts twice"
                    );
                    return Some((message, *mark));
                }
                self.shared.named_phases.get(&id)
            }
            None => self.shared.named_phases.get(&id),
        };
        let lane = mask.trailing_zeros() & 31;
        let unordered = |m: &&Mark| order.check && m.warp() != warp && !order.ordered(**m, warp, lane);
        let mark = *last?.iter().find(unordered)?;
        let message = format!(
            "warp {warp} arrives at named barrier {id}, at which warp {} arrived in the phase before, and nothing orders the \
             two arrivals: both could count in one phase. Use another barrier for warps that do not wait for these",
            mark.warp()
        );
        Some((message, mark))
    }
}

/// Why barriers with different reductions, or with one and without, may not meet.
pub(super) fn voting_apart(barrier: &str) -> String {
    format!(
        "some warps come to {barrier} with a reduction (barrier.red) and other warps without it, or with another \
         reduction: PTX does not define a phase that mixes them"
    )
}

/// Why a warp may not come to the barrier of the block: others have used barrier 0 with a count, and nothing orders that
/// before. Both could count in one phase.
pub(super) fn mixed_with_0(shared: &Shared, warp: usize, lane: u32) -> Option<Box<Trap>> {
    let order = &shared.order;
    let now = shared.named.get(&0).map(|phase| &phase.who);
    let before = shared.named_phases.get(&0);
    let unordered = |m: &&Mark| order.check && m.warp() != warp && !order.ordered(**m, warp, lane);
    let mark = *now.into_iter().chain(before).flatten().find(unordered)?;
    let message = format!(
        "warp {warp} comes to the block's barrier (cta_sync), which is barrier 0, at which warp {} arrived for some threads, and \
         nothing orders the two: use a barrier from 1 to 15 for some of the threads",
        mark.warp()
    );
    let mut trap = Trap::new(FaultKind::InvalidBarrier, lane, message);
    trap.notes
        .push((format!("warp {} arrived here", mark.warp()), mark.pc()));
    Some(trap)
}

/// Opens the named barriers at which enough threads have arrived; returns whether that resumed any thread.
pub(super) fn open(warps: &mut [Warp], shared: &mut Shared) -> bool {
    let full: Vec<u32> = shared
        .named
        .iter()
        .filter(|(_, phase)| phase.arrived >= phase.threads)
        .map(|(id, _)| *id)
        .collect();
    let mut opened = false;
    for id in full {
        let Some(phase) = shared.named.remove(&id) else {
            continue;
        };
        let order = &mut shared.order;
        let mut all = phase.before;
        let mut waited: Vec<(usize, u32)> = Vec::new();
        announce(warps, |status| match status {
            Status::Named(at, _, ballot) if at == id => ballot,
            _ => None,
        });
        for (w, warp) in warps.iter_mut().enumerate() {
            let here = |s: &&mut Strand| matches!(s.status, Status::Named(at, ..) if at == id);
            for strand in warp.strands.iter_mut().filter(here) {
                strand.status = Status::Ready;
                waited.push((w, strand.mask));
                let released = order.release(w, strand.mask);
                match &mut all {
                    Some(all) => all.join(&released),
                    none => *none = Some(released),
                }
            }
        }
        for (warp, mask) in &waited {
            if let Some(all) = &all {
                order.acquire(*warp, *mask, all);
            }
        }
        let lanes: Vec<(usize, u32)> = phase.who.iter().map(|m| (m.warp(), m.lanes)).collect();
        order.hand_on(&lanes);
        shared.named_phases.insert(id, phase.who);
        opened |= !waited.is_empty();
    }
    opened
}
