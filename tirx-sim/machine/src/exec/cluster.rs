//! What the blocks of a cluster share: their shared memory and their barrier.
//!
//! The barrier is split: a thread arrives and later waits. Which lanes have arrived is kept by warp; when none is missing
//! in the cluster, all of them may go on.

use super::access::Check;
use super::block::Block;
use super::cells;
use super::order::coarse::Finding;
use super::order::{Known, Scope, Strong};
use super::run::Machine;
use super::{Context, Shared, Status, Trap, Warp, fault, thread_of};
use crate::alu::LANES;
use crate::bytecode::{Access, Inst};
use crate::explore::Object;
use crate::fault::{Fault, FaultKind};
use crate::memory::{granules, load_bits, store_bits};

/// The blocks of the cluster except one.
pub(super) struct Peers<'a> {
    rank: usize,
    before: &'a mut [Block],
    after: &'a mut [Block],
}

impl<'a> Peers<'a> {
    /// The block at `at` of a cluster, and the others.
    pub(super) fn split(cluster: &'a mut [Block], at: usize) -> Option<(&'a mut Block, Peers<'a>)> {
        let (before, rest) = cluster.split_at_mut_checked(at)?;
        let (block, after) = rest.split_first_mut()?;
        Some((
            block,
            Peers {
                rank: at,
                before,
                after,
            },
        ))
    }

    /// None, of a block of this rank.
    pub(super) fn none(rank: usize) -> Peers<'a> {
        Peers {
            rank,
            before: &mut [],
            after: &mut [],
        }
    }

    /// The rank of the block itself.
    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    /// The other blocks, each with its rank.
    pub(super) fn others(&self) -> impl Iterator<Item = (u32, &Block)> {
        let before = self.before.iter().enumerate();
        let after = self.after.iter().enumerate();
        let ranked = before.chain(after.map(|(i, block)| (self.rank + 1 + i, block)));
        ranked.map(|(rank, block)| (rank as u32, block))
    }

    /// A reborrow for a shorter lifetime.
    pub(super) fn reborrow(&mut self) -> Peers<'_> {
        Peers {
            rank: self.rank,
            before: self.before,
            after: self.after,
        }
    }

    /// The block of a rank; `None` for this block and where there is none.
    pub(super) fn get(&mut self, rank: u32) -> Option<&mut Block> {
        let own = self.rank;
        match (rank as usize).checked_sub(own) {
            None => self.before.get_mut(rank as usize),
            Some(0) => None,
            Some(further) => self.after.get_mut(further - 1),
        }
    }
}

impl Machine<'_, '_> {
    /// Whether a rank is this block's own; an error where no such block exists or still runs, or where nothing says that it has
    /// started.
    pub(super) fn peer(&mut self, access: &Access, lane: u32, rank: u32, verb: &str) -> Check<bool> {
        if rank as usize == self.peers.rank {
            return Ok(true);
        }
        let count = self.peers.before.len() + 1 + self.peers.after.len();
        let name = &access.name;
        let message = match self.peers.get(rank) {
            None => {
                format!("{verb} `{name}` in the shared memory of rank {rank} of a cluster of {count} blocks")
            }
            Some(block) if block.gone() => format!(
                "{verb} `{name}` in the shared memory of rank {rank} of the cluster, whose block has ended"
            ),
            Some(block) => {
                let number = block.shared.order.block;
                return match self.has_started(number, lane) {
                    true => Ok(false),
                    false => {
                        let message = format!(
                            "{verb} `{name}` in the shared memory of rank {rank} of the cluster, whose block may not have started: \
                             no barrier of the cluster (`T.cuda.cluster_sync()`) stands before"
                        );
                        Err(Trap::new(FaultKind::Race, lane, message))
                    }
                };
            }
        };
        Err(Trap::new(FaultKind::OutOfBounds, lane, message))
    }

    /// Whether a lane is ordered behind anything that a block of its cluster has done: its shared memory exists from its start on. A
    /// barrier of the cluster says so even where it is relaxed.
    fn has_started(&self, block: u32, lane: u32) -> bool {
        let order = &self.shared.order;
        let met = self.shared.cluster_met.iter();
        order.knows_of(block, self.id, lane) || met.map(|met| &met.all).any(|met| met.knows_of(block))
    }

    /// The error of a finding in another block's shared memory.
    fn found_far(&self, access: &Access, at: (u32, u32, i64), finding: Finding, verb: &str) -> Box<Trap> {
        let (lane, rank, element) = at;
        let name = format!("`{}[{element}]` of rank {rank} of the cluster", access.name);
        match finding {
            Finding::Uninitialized => {
                let message = format!("{verb} {name} before any thread has written it");
                Trap::new(FaultKind::Uninitialized, lane, message)
            }
            Finding::Conflict(conflict) => self.conflicting(&name, lane, conflict, verb),
        }
    }

    /// Reads, writes or updates a place in another block's shared memory: `step` computes the new bits from the old
    /// ones, or `None` to leave them. Gives the old bits.
    #[expect(clippy::too_many_arguments, reason = "an access has many properties")]
    pub(super) fn far(
        &mut self,
        pc: usize,
        access: &Access,
        at: (u32, u32, i64),
        offset: usize,
        verb: &str,
        strong: Option<Strong>,
        step: impl FnOnce(u64) -> Option<u64>,
    ) -> Check<u64> {
        let bits = access.kind.bits();
        let places = granules(self.ctx.code.granule, offset, bits);
        let mut found = None;
        let mut old = 0;
        let misses = strong.is_some_and(|strong| self.ctx.misses_in_cluster(self.shared, strong));
        if let Some(block) = self.peers.get(at.1) {
            if let Some(strong) = &strong {
                for place in places.clone() {
                    let object = Object::Shared(block.shared.order.block, place);
                    self.shared.touched_strongly(object, strong.writes);
                }
            }
            let Shared {
                words,
                cells,
                changes,
                shared_out,
                ..
            } = &mut block.shared;
            *shared_out = true;
            let Shared {
                order,
                draws,
                changes: own_changes,
                ..
            } = &mut *self.shared;
            old = load_bits(words, offset, bits);
            let new = step(old);
            let result = match strong {
                Some(strong) => {
                    let strong = Strong {
                        bits: bits as u8,
                        ..strong
                    };
                    cells::strong_element(
                        cells,
                        (order, draws),
                        (self.id, pc, at.0),
                        places,
                        strong,
                        old,
                        misses,
                    )
                }
                None => {
                    let written = new.map(|new| new == old);
                    cells::plain(cells, order, self.id, pc, at.0, places, written).map(|()| None)
                }
            };
            match result {
                Ok(Some(before)) => {
                    // A loop that waits for the write sees it later.
                    *own_changes += 1;
                    return Ok(before);
                }
                Ok(None) => {}
                Err(finding) => found = Some(finding),
            }
            if let Some(new) = new {
                *changes += (new != old) as u64;
                self.shared.changes += (new != old) as u64;
                store_bits(words, offset, bits, new);
            }
        }
        match found {
            Some(finding) => {
                let trap = self.found_far(access, at, finding, verb);
                self.read_early(pc, trap)?;
                Ok(old)
            }
            None => Ok(old),
        }
    }

    /// "All threads in the warp must execute the same barrier.cluster instruction" (PTX ISA, `.aligned`).
    fn aligned_at_cluster(&self, mask: u32, aligned: bool) -> Check {
        let asleep = self
            .warp
            .strands
            .iter()
            .filter(|s| matches!(s.status, Status::Asleep(_)));
        let asleep = asleep.fold(0, |lanes, strand| lanes | strand.mask);
        // Lanes go ahead of one that waits only where nothing else can run: what it waits for is the cause.
        if !aligned || self.warp.alive & !mask & !asleep == 0 {
            return Ok(());
        }
        let message = format!(
            "{} of the warp's {} lanes come to this cluster barrier: all lanes of a warp come to it together (barrier.cluster with \
             .aligned, as of cluster_sync)",
            mask.count_ones(),
            self.warp.alive.count_ones()
        );
        let lane = mask.trailing_zeros() & 31;
        Err(Trap::new(FaultKind::BarrierDivergence, lane, message))
    }

    /// Lanes arrive at the cluster's barrier.
    pub(super) fn cluster_arrive(&mut self, mask: u32, (relaxed, aligned): (bool, bool)) -> Check {
        self.aligned_at_cluster(mask, aligned)?;
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
        let released = self.shared.order.release(self.id, mask);
        let note = |all: &mut Option<Known>, released: &Known| match all {
            Some(all) => all.join(released),
            none => *none = Some(released.clone()),
        };
        note(&mut self.shared.cluster_met, &released);
        if relaxed {
            // "Use memory fence prior to arrive for relaxed barrier" (PTX ISA, barrier.cluster, examples).
            let mut fenced = self.shared.order.published(self.id, mask);
            for lane in (0..32).filter(|lane| mask >> lane & 1 != 0) {
                for (scope, known) in self.shared.order.released(self.id, lane, Scope::Cluster) {
                    match scope {
                        // A fence of the block's scope tells the block alone.
                        Scope::Cta => note(&mut self.shared.cluster_near, &known),
                        _ => fenced.join(&known),
                    }
                }
            }
            for (_, init) in self.warp.initializations.iter().filter(|(by, _)| by & mask != 0) {
                fenced.all.learn(*init);
            }
            note(&mut self.shared.cluster_arrived, &fenced);
        } else {
            note(&mut self.shared.cluster_arrived, &released);
        }
        Ok(())
    }

    /// Lanes wait at the cluster's barrier; gives whether they must.
    pub(super) fn cluster_wait(&mut self, mask: u32, aligned: bool) -> Check<bool> {
        self.aligned_at_cluster(mask, aligned)?;
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
        if let Some(open) = &self.shared.cluster_open {
            self.shared.order.acquire(self.id, mask, open);
        }
        Ok(false)
    }
}

/// Opens the barrier of a cluster where all have arrived. Gives whether it did.
///
/// # Errors
/// Where threads have ended without having come to a `cluster_sync`, which is for all threads of the cluster.
pub(super) fn open(ctx: &Context<'_>, cluster: &mut [Block]) -> Result<bool, Fault> {
    let some = cluster.iter().any(|b| b.warps.iter().any(|w| w.arrived != 0));
    let all = cluster
        .iter()
        .all(|b| b.warps.iter().all(|w| w.alive & !w.arrived == 0));
    if !(some && all) {
        return Ok(false);
    }
    check_all_came(ctx, cluster)?;
    let arrived = cluster.iter_mut().filter_map(|b| b.shared.cluster_arrived.take());
    let open = joined(arrived);
    let met = joined(cluster.iter().filter_map(|b| b.shared.cluster_met.clone()));
    for block in cluster.iter_mut() {
        let near = block.shared.cluster_near.take();
        let open = joined(open.iter().cloned().chain(near));
        block.shared.cluster_open = open.clone();
        block.shared.cluster_met = met.clone();
        for (id, warp) in block.warps.iter_mut().enumerate() {
            warp.arrived = 0;
            for strand in warp.strands.iter_mut().filter(|s| s.status == Status::Cluster) {
                strand.status = Status::Ready;
                warp.owed &= !strand.mask;
                if let Some(open) = &open {
                    block.shared.order.acquire(id, strand.mask, open);
                }
            }
        }
    }
    Ok(true)
}

/// A `cluster_sync` that some threads have skipped is an error, even if the rest could continue.
fn check_all_came(ctx: &Context<'_>, cluster: &[Block]) -> Result<(), Fault> {
    let missing = |w: &Warp| w.exist & !w.alive & !w.returned;
    let absent = cluster.iter().find_map(|block| {
        let mut warps = block.warps.iter().enumerate();
        let (id, warp) = warps.find(|(_, warp)| missing(warp) != 0)?;
        Some((block, id as u32 * LANES as u32 + missing(warp).trailing_zeros()))
    });
    let Some((absent, thread)) = absent else {
        return Ok(());
    };
    let synchronizes = |pc: usize| matches!(ctx.code.insts.get(pc), Some(Inst::ClusterSync));
    for block in cluster {
        for (id, warp) in block.warps.iter().enumerate() {
            for strand in warp.strands.iter().filter(|s| s.status == Status::Cluster) {
                let pc = strand.pc.saturating_sub(1);
                if !synchronizes(pc) {
                    continue;
                }
                let [x, y, z] = thread_of(ctx, thread);
                let [bx, by, bz] = absent.shared.index;
                let message = format!(
                    "thread ({x}, {y}, {z}) of block ({bx}, {by}, {bz}) has ended without reaching this barrier of the cluster, which \
                     all threads of the cluster come to"
                );
                let trap = Trap::new(
                    FaultKind::BarrierDivergence,
                    strand.mask.trailing_zeros() & 31,
                    message,
                );
                return Err(fault(ctx, &block.shared, id, pc, *trap));
            }
        }
    }
    Ok(())
}

/// All lanes.
fn joined(known: impl Iterator<Item = Known>) -> Option<Known> {
    known.reduce(|mut all, known| {
        all.join(&known);
        all
    })
}
