//! What must hold when a block ends.

use super::block::Block;
use super::cells::Cells;
use super::engine::barrier::barrier_name;
use super::engine::overwritten;
use super::order::{Mark, Place};
use super::wgmma;
use super::{Context, Trap, fault};
use crate::fault::{Fault, FaultKind};
use crate::findings::Excusable;

impl Block {
    /// A block's shared memory exists until it ends: accesses by other blocks must be ordered before that.
    pub(super) fn check_end(&self, ctx: &Context<'_>) -> Result<(), Fault> {
        if let Some(early) = self.shared.early.first() {
            return Err(early.clone());
        }
        if let Some(observer) = &ctx.observer {
            let barriers = self.shared.engine.barriers.values();
            barriers.for_each(|barrier| {
                observer
                    .coverage
                    .end(barrier.init.pc(), barrier.phase, barrier.seen)
            });
        }
        self.check_barriers(ctx)?;
        self.check_warpgroups(ctx)?;
        self.check_registers(ctx)?;
        if let Some((columns, pc)) = self.shared.bank.leak() {
            let message = format!(
                "the block ends with {columns} columns of tensor memory allocated: tcgen05.dealloc is missing"
            );
            let trap = Trap::new(FaultKind::Asynchronous, 0, message);
            return Err(fault(ctx, &self.shared, 0, pc, *trap));
        }
        self.check_far_arrivals(ctx)?;
        if !self.shared.shared_out && !self.shared.operations {
            return Ok(());
        }
        let Cells::Fine(places) = &self.shared.cells else {
            return Ok(());
        };
        let order = &self.shared.order;
        let mut known = order.everything();
        self.shared.cluster_met.iter().for_each(|met| known.join(met));
        let left = |place: &Place| place.left_behind(order.block, &known.all);
        for (mark, wrote) in places.iter().filter_map(left) {
            let does = if wrote { "writes" } else { "reads" };
            if !mark.is_operation() {
                let message = format!(
                    "a thread of another block of the cluster {does} shared memory of this block, which may have ended by then: no \
                     cluster barrier stands between"
                );
                let trap = Trap::new(FaultKind::Race, 0, message);
                return Err(fault(ctx, &self.shared, 0, mark.pc(), *trap));
            }
            let message = format!(
                "the block ends while an asynchronous operation {does} its shared memory: no thread has waited for its completion"
            );
            let trap = Trap::new(FaultKind::Asynchronous, mark.thread() % 32, message);
            let by = (mark.warp(), mark.pc());
            let excused = match wrote {
                true => Err(trap),
                false => super::excuse(ctx, &self.shared, by, Excusable::UnfinishedRead, trap),
            };
            excused.map_err(|trap| fault(ctx, &self.shared, by.0, by.1, *trap))?;
        }
        Ok(())
    }

    /// An arrival of another block's thread at an mbarrier of this block: a thread of the block has seen its phase complete, or a
    /// barrier of the cluster stands behind it.
    fn check_far_arrivals(&self, ctx: &Context<'_>) -> Result<(), Fault> {
        if !self.shared.order.check {
            return Ok(());
        }
        let barriers = self.shared.engine.barriers.iter();
        let mut unseen = barriers.flat_map(|(byte, barrier)| {
            let of = move |(phase, mark): &(u64, Mark)| (*phase >= barrier.seen).then_some((*byte, *mark));
            barrier.far.iter().filter_map(of)
        });
        let Some(first) = unseen.next() else {
            return Ok(());
        };
        let mut known = self.shared.order.everything();
        self.shared.cluster_met.iter().for_each(|met| known.join(met));
        let behind =
            |(_, mark): &(u32, Mark)| known.all.unknown(*mark) != 0 && known.over.unknown(*mark) != 0;
        let Some((byte, mark)) = std::iter::once(first).chain(unseen).find(behind) else {
            return Ok(());
        };
        let message = format!(
            "a thread of another block of the cluster arrives at {} of this block, which may have ended by then: no thread of this \
             block waits for the phase, and no cluster barrier stands between",
            barrier_name(ctx, byte)
        );
        let trap = Trap::new(FaultKind::Race, 0, message);
        Err(fault(ctx, &self.shared, 0, mark.pc(), *trap))
    }

    /// The four warps of a warpgroup issue a wgmma together.
    fn check_warpgroups(&self, ctx: &Context<'_>) -> Result<(), Fault> {
        for (group, warps) in self.warps.chunks(4).enumerate() {
            let counts = warps
                .iter()
                .map(|w| w.wgmma.issued())
                .chain((warps.len()..4).map(|_| (0, 0)));
            let counts: Vec<(u32, usize)> = counts.collect();
            let Some((most, (issued, pc))) = counts.iter().enumerate().max_by_key(|(_, (n, _))| *n) else {
                continue;
            };
            let Some(least) = counts.iter().position(|(n, _)| n < issued) else {
                if let Some((pc, warp, other)) = self.shared.warpgroups[group].left_out() {
                    let message = format!(
                        "warp {warp} has come to this {}, and warp {} of its warpgroup has not: the four warps of a warpgroup do \
                         each wgmma instruction together (.aligned)",
                        wgmma::name_of(&ctx.code.insts, &ctx.code.tensor, pc),
                        group * wgmma::WARPS + other
                    );
                    let trap = Trap::new(FaultKind::Asynchronous, 0, message);
                    return Err(fault(ctx, &self.shared, warp, pc, *trap));
                }
                continue;
            };
            let (most, least) = (group * 4 + most, group * 4 + least);
            let message = format!(
                "warp {most} has issued {issued} wgmma operations, and warp {least} of its warpgroup {}: the four warps of a \
                 warpgroup issue each together",
                counts[least % 4].0
            );
            let trap = Trap::new(FaultKind::Asynchronous, 0, message);
            return Err(fault(ctx, &self.shared, most, *pc, *trap));
        }
        Ok(())
    }

    /// A valid mbarrier that something else has been written over; an mbarrier whose expected and copied bytes differ at the end of the block.
    fn check_barriers(&self, ctx: &Context<'_>) -> Result<(), Fault> {
        for (byte, barrier) in &self.shared.engine.barriers {
            if let Some((by, trap)) = overwritten(ctx, &self.shared, *byte, barrier) {
                return Err(fault(ctx, &self.shared, by.warp(), by.pc(), *trap));
            }
        }
        if let Some(barrier) = self.shared.engine.barriers.values().find(|b| b.bytes != 0) {
            let message = format!(
                "the block ends while phase {} of an mbarrier waits for {}",
                barrier.phase,
                barrier.missing(ctx.code)
            );
            let mark = barrier.init;
            let trap = Trap::new(FaultKind::Asynchronous, mark.thread() % 32, message);
            return Err(fault(ctx, &self.shared, mark.warp(), mark.pc(), *trap));
        }
        Ok(())
    }
}
