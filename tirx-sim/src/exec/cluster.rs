//! What the blocks of a cluster share: their shared memory and their barrier.
//!
//! The barrier is split: a thread arrives and later waits. Which lanes have arrived is kept by warp; when none is missing
//! in the cluster, all of them may go on.

use super::access::Check;
use super::block::Block;
use super::run::Machine;
use super::shadow::Finding;
use super::{Context, Shared, Status, Trap};
use crate::bytecode::Access;
use crate::fault::FaultKind;
use crate::memory::{granules, load_bits, store_bits};

/// The blocks of the cluster but one.
pub(super) struct Peers<'a> {
    before: &'a mut [Block],
    after: &'a mut [Block],
}

impl<'a> Peers<'a> {
    /// The block at `at` of a cluster, and the others.
    pub(super) fn of(cluster: &'a mut [Block], at: usize) -> Option<(&'a mut Block, Peers<'a>)> {
        let (before, rest) = cluster.split_at_mut_checked(at)?;
        let (block, after) = rest.split_first_mut()?;
        Some((block, Peers { before, after }))
    }

    /// The same for a shorter time.
    pub(super) fn reborrow(&mut self) -> Peers<'_> {
        Peers {
            before: self.before,
            after: self.after,
        }
    }

    /// The block of a rank; none for the own one and where there is none.
    fn get(&mut self, rank: u32) -> Option<&mut Block> {
        let own = self.before.len();
        match (rank as usize).checked_sub(own) {
            None => self.before.get_mut(rank as usize),
            Some(0) => None,
            Some(further) => self.after.get_mut(further - 1),
        }
    }
}

impl Machine<'_, '_> {
    /// Whether a rank is this block's own; an error where there is no such block, or none that still runs.
    pub(super) fn peer(&mut self, access: &Access, lane: u32, rank: u32, verb: &str) -> Check<bool> {
        if rank as usize == self.peers.before.len() {
            return Ok(true);
        }
        let count = self.peers.before.len() + 1 + self.peers.after.len();
        let name = &access.name;
        let message = match self.peers.get(rank) {
            None => {
                format!("{verb} `{name}` in the shared memory of rank {rank} of a cluster of {count} blocks")
            }
            Some(block) if block.done() => format!(
                "{verb} `{name}` in the shared memory of rank {rank} of the cluster, whose block has ended"
            ),
            Some(_) => return Ok(false),
        };
        Err(Trap::new(FaultKind::OutOfBounds, lane, message))
    }

    /// The error of a finding in another block's shared memory.
    fn found_far(&self, access: &Access, at: (u32, u32, i64), finding: Finding, verb: &str) -> Box<Trap> {
        let (lane, rank, element) = at;
        let name = format!("`{}[{element}]` of rank {rank} of the cluster", access.name);
        let (other, past) = match finding {
            Finding::Uninitialized => {
                let message = format!("{verb} {name} before any thread has written it");
                return Trap::new(FaultKind::Uninitialized, lane, message);
            }
            Finding::AfterWrite(stamp) if stamp.is_atomic() => (stamp, "updated atomically"),
            Finding::AfterWrite(stamp) => (stamp, "wrote"),
            Finding::AfterRead(stamp) => (stamp, "read"),
        };
        let me = self.thread(self.id as u32 * 32 + lane);
        let them = self.thread(other.thread());
        let message = format!(
            "thread {me} {verb} {name}, which thread {them} of that block {past}, and no cluster barrier orders the two"
        );
        let mut trap = Trap::new(FaultKind::Race, lane, message);
        trap.notes
            .push((format!("thread {them} {past} it here"), other.pc()));
        trap
    }

    /// Reads, writes or updates a place in another block's shared memory: `step` gives the new bits of the old ones,
    /// where they change. The old bits.
    #[expect(clippy::too_many_arguments, reason = "an access has many sides")]
    pub(super) fn far(
        &mut self,
        pc: usize,
        access: &Access,
        at: (u32, u32, i64),
        offset: usize,
        verb: &str,
        atomic: bool,
        step: impl FnOnce(u64) -> Option<u64>,
    ) -> Check<u64> {
        let bits = access.kind.bits();
        let places = granules(self.ctx.code.granule, offset, bits);
        let stamp = self.shared.order.stamp(self.id, pc, atomic).of_lane(at.0);
        let mut found = None;
        let mut old = 0;
        if let Some(block) = self.peers.get(at.1) {
            let Shared {
                words,
                cells,
                order,
                changes,
                ..
            } = &mut block.shared;
            old = load_bits(words, offset, bits);
            let new = step(old);
            for (cell, place) in places.clone().zip(&mut cells[places]) {
                let result = match new {
                    _ if atomic => order.remote_atomic(place, cell, stamp),
                    None => order.remote_read(place, cell, stamp, access.poll),
                    Some(new) => order.remote_write(place, cell, stamp, new == old),
                };
                found = found.or(result.err());
            }
            if let Some(new) = new {
                *changes += (new != old) as u64;
                self.shared.changes += (new != old) as u64;
                store_bits(words, offset, bits, new);
            }
        }
        match found {
            Some(finding) => Err(self.found_far(access, at, finding, verb)),
            None => Ok(old),
        }
    }

    /// Lanes arrive at the cluster's barrier.
    pub(super) fn cluster_arrive(&mut self, mask: u32) -> Check {
        let again = self.warp.owed & mask;
        if again != 0 {
            let message = "arrives at the cluster barrier again, without having waited for it";
            return Err(Trap::new(
                FaultKind::BarrierDivergence,
                again.trailing_zeros(),
                message,
            ));
        }
        self.warp.arrived |= mask;
        self.warp.owed |= mask;
        self.shared.order.arrive(self.id);
        self.shared.publish(self.ctx, self.id);
        Ok(())
    }

    /// Lanes want to go on; whether they must wait.
    pub(super) fn cluster_wait(&mut self, mask: u32) -> Check<bool> {
        let absent = mask & !self.warp.owed;
        if absent != 0 {
            let message = "waits at the cluster barrier without having arrived";
            return Err(Trap::new(
                FaultKind::BarrierDivergence,
                absent.trailing_zeros(),
                message,
            ));
        }
        if self.warp.arrived & mask != 0 {
            return Ok(true);
        }
        self.warp.owed &= !mask;
        self.shared.order.wait(self.id);
        self.shared.publish(self.ctx, self.id);
        Ok(false)
    }
}

/// Opens the barrier of a cluster where all have arrived. Whether it did.
pub(super) fn open(ctx: &Context<'_>, cluster: &mut [Block]) -> bool {
    let some = cluster.iter().any(|b| b.warps.iter().any(|w| w.arrived != 0));
    let all = cluster
        .iter()
        .all(|b| b.warps.iter().all(|w| w.alive & !w.arrived == 0));
    if !(some && all) {
        return false;
    }
    for block in cluster.iter_mut() {
        let whole = block.all_at(Status::Cluster);
        for (id, warp) in block.warps.iter_mut().enumerate() {
            warp.arrived = 0;
            for strand in warp.strands.iter_mut().filter(|s| s.status == Status::Cluster) {
                strand.status = Status::Ready;
                warp.owed &= !strand.mask;
                block.shared.order.wait(id);
            }
        }
        if whole {
            block.shared.order.barrier();
            block.shared.order.reveal();
        }
        block.shared.order.open();
        let Shared { order, cells, .. } = &mut block.shared;
        order.settle(cells, false);
    }
    // Twice: each is behind what all did before, whoever comes first.
    for _ in 0..2 {
        cluster.iter_mut().for_each(|b| b.shared.synchronize(ctx));
    }
    true
}
