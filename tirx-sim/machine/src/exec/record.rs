//! Recording a block's timeline.

use super::{Context, Event, Shared, Status, Strand, Warp};
use crate::alu::LANES;
use crate::bytecode::AsyncInst;
use crate::timeline::Track;

/// How long an operation takes, in instructions of a warp.
const OPERATION: u64 = 400;

impl Shared {
    /// The block's work so far, in instructions of a warp.
    fn work(&self) -> u64 {
        self.lane_ops / LANES as u64 + self.steps
    }

    /// A strand continues: it has waited until now.
    pub(super) fn resume(&mut self, ctx: &Context<'_>, warp: &mut Warp, id: usize, strand: &mut Strand) {
        if let Some((status, since)) = strand.waits.take() {
            let (name, end) = match status {
                Status::Asleep(inst) => match &ctx.code.asynchronous[inst as usize] {
                    AsyncInst::Mbarrier(_) => ("waits for an mbarrier", self.engine.latest),
                    AsyncInst::SetRegisters { .. } => ("waits for registers", self.work()),
                    _ => ("waits for operations", self.engine.latest),
                },
                Status::Barrier(_) => ("block barrier", self.latest),
                Status::Named(..) => ("named barrier", self.latest),
                Status::Cluster => ("cluster barrier", self.latest),
                Status::Grid => ("grid barrier", self.latest),
                Status::Warpgroup(_) => ("waits for its warpgroup", self.latest),
                _ => ("warp barrier", self.latest),
            };
            let end = end.max(since);
            self.events.push(Event {
                track: Track::Warp(id as u32),
                name: name.to_string(),
                pc: strand.pc.saturating_sub(usize::from(!status.repeats())),
                start: since,
                end,
            });
            warp.time = warp.time.max(end);
        }
        warp.base = self.work();
    }

    /// A strand has run from an instruction on.
    pub(super) fn ran(&mut self, warp: &mut Warp, id: usize, pc: usize) {
        let start = warp.time;
        warp.time += self.work() - warp.base + 1;
        self.events.push(Event {
            track: Track::Warp(id as u32),
            name: "runs".to_string(),
            pc,
            start,
            end: warp.time,
        });
    }

    /// An operation that was issued at a time is complete.
    pub(super) fn performed(&mut self, warp: usize, pc: usize, name: &str, issued: u64) {
        let end = issued + OPERATION;
        self.engine.latest = self.engine.latest.max(end);
        self.events.push(Event {
            track: Track::Engine(warp as u32),
            name: name.to_string(),
            pc,
            start: issued,
            end,
        });
    }

    /// The time of a warp that runs.
    pub(super) fn time(&self, warp: &Warp) -> u64 {
        warp.time + self.work().saturating_sub(warp.base)
    }
}
