//! When operations are performed, and which strands can go on then.

use super::barrier::{barrier_name, not_an_mbarrier};
use super::instruction::{lanes, misuse};
use super::{Completion, Operation, Reach};
use crate::bytecode::AsyncInst;
use crate::exec::access::Check;
use crate::exec::block::Block;
use crate::exec::cluster::Peers;
use crate::exec::order::{Forked, Kind, Known, Mark, Space};
use crate::exec::run::Machine;
use crate::exec::shadow::Carried;
use crate::exec::steps::wait_of;
use crate::exec::wgmma;
use crate::exec::{Context, Status, Trap, excuse, fault};
use crate::explore::{Footprint, Object, Touch};
use crate::fault::{Fault, FaultKind};
use crate::findings::Excusable;

impl Machine<'_, '_> {
    /// Whether a sleeping strand can continue; otherwise what it waits for.
    fn awake(&self, id: u16, mask: u32) -> Result<(), String> {
        match &self.ctx.code.asynchronous[id as usize] {
            AsyncInst::Wait { class, left, .. } => {
                let engine = &self.shared.engine;
                let own = self.id as u32 * 32;
                for lane in self.members(*class, mask) {
                    let done = match left {
                        Some(left) => engine.complete(*class, own + lane, *left as usize),
                        None => engine.all_complete(*class, own + lane),
                    };
                    if !done {
                        return Err("wait for asynchronous operations to complete".to_string());
                    }
                }
                Ok(())
            }
            AsyncInst::Mbarrier(inst) => {
                for lane in lanes(mask) {
                    if inst.predicate.is_some_and(|p| self.word(p, lane) == 0) {
                        continue;
                    }
                    let Ok((_, byte)) = self.barrier_at(lane, self.wide(inst.barrier, lane), None) else {
                        return Ok(());
                    };
                    let parity = inst.count.map_or(0, |count| self.word(count, lane));
                    let Some(barrier) = self.shared.engine.barriers.get(&byte) else {
                        return Ok(());
                    };
                    if !barrier.is_complete(parity) {
                        return Err(format!(
                            "wait for parity {parity} of {}, whose phase {} (parity {}) waits for {}",
                            barrier_name(self.ctx, byte),
                            barrier.phase,
                            barrier.phase & 1,
                            barrier.missing(self.ctx.code)
                        ));
                    }
                }
                Ok(())
            }
            AsyncInst::SetRegisters { count, more: true } => {
                let (code, warps) = (self.ctx.code, self.ctx.warps());
                let registers = &self.shared.registers;
                match registers.has(code, warps, (self.id, *count)) {
                    true => Ok(()),
                    false => Err(registers.missing(code, warps, *count)),
                }
            }
            _ => Ok(()),
        }
    }
}

impl Block {
    /// What sleeping strands of a warp wait for, of those that cannot continue.
    pub(in crate::exec) fn sleeps_for(
        &mut self,
        ctx: &Context<'_>,
        warp: usize,
        (id, mask): (u16, u32),
    ) -> Option<String> {
        let machine = Machine {
            ctx,
            device: &ctx.devices[self.shared.rank as usize],
            shared: &mut self.shared,
            warp: &mut self.warps[warp],
            peers: Peers::none(self.rank),
            id: warp,
            call: 0,
        };
        machine.awake(id, mask).err()
    }

    /// Whether a warp waits for the others of its warpgroup no longer.
    pub(in crate::exec) fn warpgroup_is_here(&self, warp: usize, status: Status) -> bool {
        let group = &self.shared.warpgroups[warp / wgmma::WARPS];
        matches!(status, Status::Warpgroup(groups) if group.missing(groups).is_empty())
    }

    /// What lanes that wait at mbarriers touch when their wait is over.
    pub(in crate::exec) fn touched_by_wait(
        &mut self,
        ctx: &Context<'_>,
        warp: usize,
        (id, mask): (u16, u32),
    ) -> Footprint {
        let AsyncInst::Mbarrier(inst) = &ctx.code.asynchronous[id as usize] else {
            return Footprint::new();
        };
        let block = self.shared.order.block;
        let machine = Machine {
            ctx,
            device: &ctx.devices[self.shared.rank as usize],
            shared: &mut self.shared,
            warp: &mut self.warps[warp],
            peers: Peers::none(self.rank),
            id: warp,
            call: 0,
        };
        let waits = lanes(mask).filter(|lane| inst.predicate.is_none_or(|p| machine.word(p, *lane) != 0));
        let touches = waits.filter_map(|lane| {
            let (_, byte) = machine
                .barrier_at(lane, machine.wide(inst.barrier, lane), None)
                .ok()?;
            let parity = inst.count.map_or(0, |count| machine.word(count, lane));
            Some((Object::Mbarrier(block, byte), Touch::Wait { parity }))
        });
        touches.collect()
    }

    /// The byte of the mbarrier that sleeping strands of a warp wait for: that of the first lane whose wait is not over.
    pub(in crate::exec) fn awaited_mbarrier(
        &mut self,
        ctx: &Context<'_>,
        warp: usize,
        (id, mask): (u16, u32),
    ) -> Option<u32> {
        let AsyncInst::Mbarrier(inst) = &ctx.code.asynchronous[id as usize] else {
            return None;
        };
        let lane = lanes(mask).find(|lane| self.sleeps_for(ctx, warp, (id, 1 << lane)).is_some())?;
        let machine = Machine {
            ctx,
            device: &ctx.devices[self.shared.rank as usize],
            shared: &mut self.shared,
            warp: &mut self.warps[warp],
            peers: Peers::none(self.rank),
            id: warp,
            call: 0,
        };
        let found = machine.barrier_at(lane, machine.wide(inst.barrier, lane), None);
        found.ok().map(|(_, byte)| byte)
    }

    /// Wakes the strands whose wait is over. Gives whether there were any.
    pub(in crate::exec) fn wake(&mut self, ctx: &Context<'_>) -> bool {
        let mut any = false;
        for warp in 0..self.warps.len() {
            for at in 0..self.warps[warp].strands.len() {
                let strand = &self.warps[warp].strands[at];
                let (status, mask) = (strand.status, strand.mask);
                let over = match status {
                    Status::Asleep(id) => self.sleeps_for(ctx, warp, (id, mask)).is_none(),
                    Status::Warpgroup(_) => self.warpgroup_is_here(warp, status),
                    _ => false,
                };
                if over {
                    self.warps[warp].strands[at].status = Status::Ready;
                    any = true;
                }
            }
        }
        any
    }

    /// Of a strand that waits for mbarriers, lets the lanes go on whose wait is over. They leave the loop of their wait before the
    /// others, and may do what these wait for: lanes of a warp make progress independently. Gives whether there were any.
    pub(in crate::exec) fn wake_some(&mut self, ctx: &Context<'_>) -> bool {
        for warp in 0..self.warps.len() {
            for at in 0..self.warps[warp].strands.len() {
                let strand = &self.warps[warp].strands[at];
                let mask = strand.mask;
                let waits = match strand.status {
                    Status::Asleep(id) => Some(id),
                    // Where orders are explored, a strand stops before its wait.
                    Status::Ready if ctx.exploring => wait_of(ctx.code, strand.pc),
                    _ => None,
                };
                let of_mbarrier =
                    |id: &u16| matches!(ctx.code.asynchronous[*id as usize], AsyncInst::Mbarrier(_));
                let Some(id) = waits.filter(of_mbarrier) else {
                    continue;
                };
                let over = |lane: &u32| self.sleeps_for(ctx, warp, (id, 1 << lane)).is_none();
                let awake = lanes(mask).filter(over).fold(0, |awake, lane| awake | 1 << lane);
                if awake != 0 && awake != mask {
                    self.warps[warp].part_with(at, awake);
                    return true;
                }
            }
        }
        false
    }

    /// Performs the operations that are due. Gives whether there were any.
    pub(in crate::exec) fn perform(
        &mut self,
        ctx: &Context<'_>,
        peers: &mut Peers<'_>,
    ) -> Result<bool, Fault> {
        let mut any = false;
        while let Some(mut operation) = self.shared.engine.next() {
            any = true;
            let result = self.perform_one(ctx, peers, &mut operation);
            if let Err(trap) = result {
                return Err(fault(ctx, &self.shared, operation.warp, operation.pc, *trap));
            }
        }
        Ok(any)
    }

    pub(in crate::exec) fn perform_one(
        &mut self,
        ctx: &Context<'_>,
        peers: &mut Peers<'_>,
        operation: &mut Operation,
    ) -> Check {
        let commits = operation.work.is_none() && operation.forked.mark.kind() == Kind::Engine;
        if let Some(mut work) = operation.work.take() {
            let mut reach = Reach {
                ctx,
                shared: &mut self.shared,
                peers: peers.reborrow(),
                operation,
                carried: Carried::default(),
                alike: Default::default(),
            };
            work.run(&mut reach)?;
            if self.shared.recorded {
                let (warp, pc) = (operation.warp, operation.pc);
                self.shared.performed(warp, pc, operation.name, operation.time);
            }
            self.shared.operations = true;
        }
        let mut known = Known::nothing(ctx.blocks());
        if commits {
            // Matrix operations are ordered behind what their thread knew; so is a thread that observes the commit.
            known.join(&operation.forked.known);
        }
        let (own, after) = (operation.forked.mark, &operation.forked.after);
        for mark in after.iter().copied().chain([own, own.written()]) {
            known.learn(mark);
            if commits {
                known.told.learn(mark);
            }
        }
        let mut found = Vec::new();
        for completion in &operation.completions {
            let (Completion::Bytes(rank, byte, count) | Completion::Arrive(rank, byte, count)) = completion;
            let name = barrier_name(ctx, *byte);
            let other = rank.filter(|r| *r as usize != peers.rank());
            let number = other.is_none().then_some(operation.number);
            let shared = match other {
                None => &mut self.shared,
                Some(rank) => match peers.get(rank) {
                    Some(block) if !block.gone() => &mut block.shared,
                    _ => {
                        let message = format!(
                            "{} completes at {name} of rank {rank}, and no block of this rank runs",
                            operation.name
                        );
                        return Err(misuse(operation.lane, message));
                    }
                },
            };
            shared.changes += 1;
            let checks = shared.order.check;
            let object = Object::Mbarrier(shared.order.block, *byte);
            if let Some(trap) = not_an_mbarrier(ctx, shared, operation.lane, *byte, operation.name) {
                self.shared.touch(object, Touch::Write);
                return Err(trap);
            }
            let Some(barrier) = shared.engine.barriers.get_mut(byte) else {
                return Err(misuse(operation.lane, name));
            };
            let before = barrier.counts();
            let forked = &operation.forked;
            if checks && !forked.ordered(barrier.init) && !forked.ordered(barrier.published) {
                let message = format!(
                    "{} completes at {name}, and no barrier orders the mbarrier's initialization (mbarrier.init) before it was \
                     issued",
                    operation.name
                );
                return Err(Trap::new(FaultKind::Race, operation.lane, message));
            }
            if checks
                && !barrier.is_fenced(number)
                && own.kind() == Kind::Engine
                && !visible(&operation.forked, barrier.init)
            {
                let message = format!(
                    "{} completes at {name}, whose initialization no fence has made visible to the async proxy \
                     (fence.mbarrier_init or fence.proxy.async)",
                    operation.name
                );
                let trap = misuse(operation.lane, message);
                if !ctx.findings.excuses(Excusable::MissingFence, trap.kind) {
                    return Err(trap);
                }
                found.push(trap);
            }
            barrier.tell(&known, false);
            let done = match completion {
                Completion::Bytes(..) => barrier.copied(operation.pc, *count),
                Completion::Arrive(..) => barrier.arrive(*count),
            };
            let touch = match done {
                Ok(()) => barrier.touched_since(before),
                Err(_) => Touch::Write,
            };
            self.shared.touch(object, touch);
            done.map_err(|m| misuse(operation.lane, format!("{} {m} ({name})", operation.name)))?;
        }
        let by = (operation.warp, operation.pc);
        let mut found = found.into_iter();
        found.try_for_each(|trap| excuse(ctx, &self.shared, by, Excusable::MissingFence, trap))
    }
}

fn visible(forked: &Forked, mark: Mark) -> bool {
    forked.known.fenced[Space::Shared as usize].unknown(mark) == 0
}
