//! Where the threads of a block or the lanes of a warp meet: block barriers, warp barriers, exchanges.

use super::block::Block;
use super::exchange::Arguments;
use super::named::{self, OF_THE_BLOCK};
use super::run::Machine;
use super::{Context, Status, Strand, Trap, Warp, fault, thread_of};
use crate::alu::LANES;
use crate::bytecode::{Ballot, Operand, Vote};
use crate::fault::{Fault, FaultKind};

impl Block {
    /// Opens the barriers at which all threads have arrived.
    pub(super) fn release(&mut self, ctx: &Context<'_>) -> Result<bool, Fault> {
        let alive = self.alive();
        let at = |block: &Block, pred: &dyn Fn(Status) -> bool| -> u32 {
            let strands = block.warps.iter().flat_map(|w| &w.strands);
            strands
                .filter(|s| pred(s.status))
                .map(|s| s.mask.count_ones())
                .sum()
        };
        let mut released = false;
        let arrived = at(self, &|s| matches!(s, Status::Barrier(_)));
        if arrived > 0 {
            self.check_barrier_0(ctx)?;
        }
        if arrived > 0 && arrived == alive {
            self.check_all_came(ctx)?;
            self.open_barrier();
            released = true;
        }
        released |= named::open(&mut self.warps, &mut self.shared);
        Ok(released)
    }

    /// The block barrier is named barrier 0: no phase of that may be open while threads wait at it.
    fn check_barrier_0(&self, ctx: &Context<'_>) -> Result<(), Fault> {
        let open = self.shared.named.get(&0).map(named::Arrivals::count);
        let Some((count, threads)) = open.filter(|(count, threads)| count < threads) else {
            return Ok(());
        };
        let mut warps = self.warps.iter().enumerate();
        let found = warps.find_map(|(id, warp)| {
            let mut strands = warp.strands.iter();
            let strand = strands.find(|s| matches!(s.status, Status::Barrier(_)))?;
            Some((id, strand))
        });
        let Some((id, strand)) = found else {
            return Ok(());
        };
        let message = format!("{count} of {threads} threads are at named barrier 0 while {OF_THE_BLOCK}");
        let lane = strand.mask.trailing_zeros() & 31;
        let trap = Trap::new(FaultKind::InvalidBarrier, lane, message);
        Err(fault(ctx, &self.shared, id, strand.pc.saturating_sub(1), *trap))
    }

    /// A block barrier that some threads have skipped is an error, even if the rest could continue.
    fn check_all_came(&self, ctx: &Context<'_>) -> Result<(), Fault> {
        for (id, warp) in self.warps.iter().enumerate() {
            let mut here = warp
                .strands
                .iter()
                .filter(|s| matches!(s.status, Status::Barrier(_)));
            let Some(first) = here.next() else { continue };
            if let Some(other) = here.find(|s| s.pc != first.pc) {
                let message = format!(
                    "lane {} of the warp waits at another block barrier than lane {}: all lanes of a warp come to a barrier \
                     (barrier.sync.aligned) together",
                    other.mask.trailing_zeros(),
                    first.mask.trailing_zeros()
                );
                let mut trap = Trap::new(
                    FaultKind::BarrierDivergence,
                    first.mask.trailing_zeros() % LANES as u32,
                    message,
                );
                trap.notes
                    .push(("the other barrier".to_string(), other.pc.saturating_sub(1)));
                return Err(fault(ctx, &self.shared, id, first.pc.saturating_sub(1), *trap));
            }
        }
        self.check_votes(ctx)?;
        let missing = |w: &Warp| w.exist & !w.alive & !w.returned;
        let count: u32 = self.warps.iter().map(|w| missing(w).count_ones()).sum();
        if count == 0 {
            return Ok(());
        }
        let first = self.warps.iter().enumerate().find(|(_, w)| missing(w) != 0);
        let absent = first.map_or(0, |(id, w)| {
            id as u32 * LANES as u32 + missing(w).trailing_zeros()
        });
        let [x, y, z] = thread_of(ctx, absent);
        for (id, warp) in self.warps.iter().enumerate() {
            if let Some(strand) = warp
                .strands
                .iter()
                .find(|s| matches!(s.status, Status::Barrier(_)))
            {
                let threads = if count == 1 { "thread" } else { "threads" };
                let message = format!(
                    "{count} {threads} of the block ended without reaching this barrier, thread ({x}, {y}, {z}) \
                     the first"
                );
                let lane = strand.mask.trailing_zeros();
                let trap = Trap::new(FaultKind::BarrierDivergence, lane, message);
                return Err(fault(ctx, &self.shared, id, strand.pc.saturating_sub(1), *trap));
            }
        }
        Ok(())
    }

    /// All who wait at the block's barrier vote about the same.
    fn check_votes(&self, ctx: &Context<'_>) -> Result<(), Fault> {
        let mut first = None;
        for (id, warp) in self.warps.iter().enumerate() {
            for strand in &warp.strands {
                let Status::Barrier(ballot) = strand.status else {
                    continue;
                };
                let vote = ballot.map(|ballot| ballot.vote);
                let (other, pc) = *first.get_or_insert((vote, strand.pc));
                if other != vote {
                    let message = named::voting_apart("the block's barrier");
                    let lane = strand.mask.trailing_zeros() % LANES as u32;
                    let mut trap = Trap::new(FaultKind::InvalidBarrier, lane, message);
                    trap.notes
                        .push(("the other barrier".to_string(), pc.saturating_sub(1)));
                    return Err(fault(ctx, &self.shared, id, strand.pc.saturating_sub(1), *trap));
                }
            }
        }
        Ok(())
    }

    fn open_barrier(&mut self) {
        self.shared.at_barrier = 0;
        announce(&mut self.warps, |status| match status {
            Status::Barrier(ballot) => ballot,
            _ => None,
        });
        for strand in self.warps.iter_mut().flat_map(|w| &mut w.strands) {
            if let Status::Barrier(_) = strand.status {
                strand.status = Status::Ready;
            }
        }
        self.warps.iter_mut().for_each(Warp::unite);
        self.shared.order.barrier();
    }
}

/// Counts the votes of the strands that wait at a barrier, and tells each of them what it has asked for.
pub(super) fn announce(warps: &mut [Warp], ballot_of: impl Fn(Status) -> Option<Ballot>) {
    let (mut held, mut failed) = (0, 0);
    for warp in warps.iter() {
        for strand in &warp.strands {
            if let Some(ballot) = ballot_of(strand.status) {
                let lanes = &warp.v32[ballot.v as usize];
                let voting = (0..LANES).filter(|l| strand.mask >> l & 1 != 0);
                let (yes, no): (Vec<_>, Vec<_>) = voting.partition(|lane| lanes[*lane] != 0);
                held += yes.len() as u64;
                failed += no.len() as u64;
            }
        }
    }
    for strand in warps.iter_mut().flat_map(|w| &mut w.strands) {
        if let Some(ballot) = ballot_of(strand.status) {
            strand.scalars[ballot.d as usize] = match ballot.vote {
                Vote::All => u64::from(failed == 0),
                Vote::Any => u64::from(held > 0),
                Vote::Count => held,
            };
        }
    }
}

impl Machine<'_, '_> {
    /// Resumes strands whose warp barrier or exchange has all its lanes. On an error, gives the instruction.
    pub(super) fn meet_in_warp(&mut self) -> Result<bool, (usize, Box<Trap>)> {
        let mut met = false;
        let alive = self.warp.alive;
        let at_barrier = self
            .warp
            .strands
            .iter()
            .filter(|s| s.status == Status::WarpSync)
            .fold(0, |mask, s| mask | s.mask);
        if at_barrier != 0 && at_barrier == alive {
            for strand in &mut self.warp.strands {
                if strand.status == Status::WarpSync {
                    strand.status = Status::Ready;
                }
            }
            self.warp.unite();
            self.shared.order.warp_sync(self.id);
            met = true;
        }
        let waiting: Vec<(usize, u16, u32)> = self
            .warp
            .strands
            .iter()
            .filter_map(|s| match s.status {
                Status::Exchange(id, needed) => Some((s.pc, id, needed)),
                _ => None,
            })
            .collect();
        for (pc, id, needed) in waiting {
            let is_here = |s: &Strand| s.pc == pc && matches!(s.status, Status::Exchange(i, _) if i == id);
            let here = self
                .warp
                .strands
                .iter()
                .filter(|s| is_here(s))
                .fold(0, |m, s| m | s.mask);
            if here == 0 || needed & self.warp.alive & !here != 0 {
                continue;
            }
            let shuffle = &self.ctx.code.shuffles[id as usize];
            let mut arguments = Arguments::new();
            let mut lanes = 0;
            for strand in self.warp.strands.iter().filter(|s| is_here(s)) {
                // Strands that still wait for others are left out.
                let Status::Exchange(_, theirs) = strand.status else {
                    continue;
                };
                if theirs & self.warp.alive & !here == 0 {
                    self.arguments(shuffle, strand, &mut arguments);
                    lanes |= strand.mask;
                }
            }
            let uniform = self
                .exchange(pc - 1, shuffle, lanes, &arguments)
                .map_err(|trap| (pc - 1, trap))?;
            for strand in &mut self.warp.strands {
                if is_here(strand) && strand.mask & lanes != 0 {
                    strand.status = Status::Ready;
                    if let Operand::S(d) = shuffle.d {
                        strand.scalars[d as usize] = uniform;
                    }
                }
            }
            met = true;
        }
        Ok(met)
    }
}
