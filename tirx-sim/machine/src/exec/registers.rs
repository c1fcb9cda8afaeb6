//! `setmaxnreg`: how many registers the warps of a block have asked for.
//!
//! A block is given as many registers as its warps have when it is launched: ptxas gives each thread as many as the launch bounds
//! allow. Its warps share them (PTX ISA, `setmaxnreg`: the per-CTA-maximum-register-pool): `.dec` returns registers, `.inc` waits
//! until enough of them are free, and so for ever where the warps ask for more than the block has. A `.dec` to more registers than
//! the warp has, or an `.inc` to fewer, is undefined. A warp that never asks holds what it was launched with.

use std::collections::BTreeMap;

use super::access::Check;
use super::block::Block;
use super::order::{Kind, Mark};
use super::run::Machine;
use super::{Context, Shared, Trap, fault};
use crate::alu::LANES;
use crate::bytecode::Code;
use crate::fault::{Fault, FaultKind};

/// Registers of a multiprocessor.
const FILE: u32 = 1 << 16;
/// Warps of a warpgroup.
const GROUP: usize = 4;

/// The most registers of a thread at launch.
const MOST: u32 = 255;

/// A count that a warp has asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    count: u16,
    mark: Mark,
}

/// The counts that each warp has been given, one after the other, and those that warps wait for.
#[derive(Debug, Default)]
pub(super) struct Registers {
    given: BTreeMap<usize, Vec<Asked>>,
    awaited: BTreeMap<usize, u16>,
}

/// Registers of each thread at launch, in a block of some warps.
fn at_launch(code: &Code, warps: usize) -> u32 {
    let threads = warps as u32 * LANES as u32;
    let fit = FILE / (threads * code.min_blocks.max(1)).max(1);
    let limit = code.max_registers.unwrap_or(MOST);
    fit.min(limit).min(MOST) / 8 * 8
}

/// Whether that count is certain: ptxas may stay below the most that a thread can have, and uses all that other limits allow.
fn is_certain(code: &Code, warps: usize) -> bool {
    at_launch(code, warps) < MOST / 8 * 8
}

impl Registers {
    pub(super) fn clear(&mut self) {
        *self = Registers::default();
    }

    /// Registers of each thread of a warp.
    fn held(&self, code: &Code, warps: usize, warp: usize) -> u32 {
        let last = self.given.get(&warp).and_then(|calls| calls.last());
        last.map_or_else(|| at_launch(code, warps), |asked| u32::from(asked.count))
    }

    /// Whether a warp can have so many registers for each thread now.
    pub(super) fn has(&self, code: &Code, warps: usize, (warp, count): (usize, u16)) -> bool {
        let others = (0..warps).filter(|other| *other != warp);
        let held: u32 = others.map(|other| self.held(code, warps, other)).sum();
        held + u32::from(count) <= at_launch(code, warps) * warps as u32
    }

    /// Why a warp waits for registers for ever, or for how long.
    pub(super) fn missing(&self, code: &Code, warps: usize, count: u16) -> String {
        let launch = at_launch(code, warps);
        let wanted = |warp: usize| match self.awaited.get(&warp) {
            Some(count) => u32::from(*count),
            None => self.held(code, warps, warp),
        };
        let sum = (0..warps).map(wanted).sum::<u32>() * LANES as u32;
        let silent = (0..warps).filter(|w| !self.given.contains_key(w) && !self.awaited.contains_key(w));
        let kept = match silent.count() {
            0 => String::new(),
            n => format!(" ({n} of them keep the {launch} for each thread that they were launched with)"),
        };
        format!(
            "wait for registers (setmaxnreg.inc {count}): the warps of the block ask for {sum} registers together{kept}, and the \
             block has {}, {launch} for each thread",
            launch * LANES as u32 * warps as u32
        )
    }

    /// Checks what a warp asks for: a count, `more` than it has or fewer.
    fn check(
        &self,
        code: &Code,
        warps: usize,
        warp: usize,
        (count, more): (u16, bool),
    ) -> Result<(), String> {
        if !(24..=256).contains(&count) || !count.is_multiple_of(8) {
            return Err(format!(
                "setmaxnreg {count}: the count must be a multiple of 8 from 24 to 256"
            ));
        }
        let now = self.held(code, warps, warp);
        let launched = !self.given.contains_key(&warp);
        let wrong = match more {
            true => u32::from(count) < now,
            false => u32::from(count) > now,
        };
        if !wrong || launched && !is_certain(code, warps) {
            return Ok(());
        }
        let (way, other) = if more { ("inc", "dec") } else { ("dec", "inc") };
        let launched = if launched { " from its launch" } else { "" };
        Err(format!(
            "setmaxnreg.{way} to {count} registers, but the warp has {now}{launched}: this is undefined; use setmaxnreg.{other}"
        ))
    }

    /// A warp is given a count; `ordered` says whether another warp's call comes before it.
    fn give(
        &mut self,
        warp: usize,
        asked: Asked,
        exist: usize,
        ordered: impl Fn(Mark) -> bool,
    ) -> Result<(), String> {
        let count = asked.count;
        self.awaited.remove(&warp);
        let calls = self.given.entry(warp).or_default();
        let number = calls.len();
        calls.push(asked);
        let first = warp / GROUP * GROUP;
        let group = first..(first + GROUP).min(exist);
        let call = |other: usize, number: usize| self.given.get(&other)?.get(number);
        let differs = |other: &usize| call(*other, number).filter(|theirs| theirs.count != count);
        if let Some((other, theirs)) = group.clone().find_map(|o| Some((o, differs(&o)?.count))) {
            return Err(format!(
                "setmaxnreg {count}, and {theirs} in warp {other} of the same warpgroup: all warps of a warpgroup execute the \
                 same setmaxnreg"
            ));
        }
        let early = |other: &usize| {
            number > 0 && !call(*other, number - 1).is_some_and(|theirs| ordered(theirs.mark))
        };
        if let Some(other) = group.clone().find(early) {
            return Err(format!(
                "setmaxnreg {count}: nothing orders it after the earlier setmaxnreg of warp {other}: the warps of a warpgroup \
                 synchronize between two of them"
            ));
        }
        Ok(())
    }
}

impl Machine<'_, '_> {
    /// The lanes of a warp ask for a count. False where the warp has to wait for it.
    pub(super) fn set_registers(&mut self, pc: usize, (count, more): (u16, bool), mask: u32) -> Check<bool> {
        let lane = mask.trailing_zeros() % 32;
        let misused = |message| Trap::new(FaultKind::Asynchronous, lane, message);
        if mask != self.warp.alive {
            let message = "setmaxnreg by some lanes of a warp: all of them do it together";
            return Err(misused(message.to_string()));
        }
        let (code, exist) = (self.ctx.code, self.ctx.warps());
        let Shared { registers, order, .. } = &mut *self.shared;
        registers
            .check(code, exist, self.id, (count, more))
            .map_err(misused)?;
        if more && !registers.has(code, exist, (self.id, count)) {
            registers.awaited.insert(self.id, count);
            return Ok(false);
        }
        let mark = order.mark(self.id, pc, Kind::Cta).with_lanes(mask);
        let ordered =
            |mark: Mark| !order.check || mark.warp() == self.id || order.ordered(mark, self.id, lane);
        registers
            .give(self.id, Asked { count, mark }, exist, ordered)
            .map_err(misused)?;
        self.shared.changes += 1;
        Ok(true)
    }
}

impl Context<'_> {
    /// Warps of a block.
    pub(super) fn warps(&self) -> usize {
        self.block.iter().product::<u32>().div_ceil(LANES as u32) as usize
    }
}

impl Block {
    /// At the end of the block: the warps of a warpgroup have executed the same `setmaxnreg`s.
    pub(super) fn check_registers(&self, ctx: &Context<'_>) -> Result<(), Fault> {
        let calls = |warp: &usize| self.shared.registers.given.get(warp).map_or(0, Vec::len);
        for (warp, made) in &self.shared.registers.given {
            let first = warp / GROUP * GROUP;
            let mut others = first..(first + GROUP).min(self.warps.len());
            let Some(other) = others.find(|other| calls(other) < made.len()) else {
                continue;
            };
            let Some(Asked { count, mark }) = made.get(calls(&other)) else {
                continue;
            };
            let message = format!(
                "setmaxnreg {count} by warp {warp}, and not by warp {other} of the same warpgroup: all warps of a warpgroup \
                 execute the same setmaxnreg"
            );
            let trap = Trap::new(FaultKind::Asynchronous, 0, message);
            return Err(fault(ctx, &self.shared, *warp, mark.pc(), *trap));
        }
        Ok(())
    }
}
