//! `setmaxnreg`: how many registers the warps of a block have asked for.
//!
//! A block is given as many registers as its warps have when it is launched: ptxas gives each thread as many as the launch bounds
//! allow. `setmaxnreg.inc` waits until other warps have returned enough of them, and so for ever where the warps hold more than that
//! together. A warp that never asks holds what it was launched with.

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

/// The counts that each warp has asked for, one after the other.
#[derive(Debug, Default)]
pub(super) struct Registers(BTreeMap<usize, Vec<Asked>>);

/// Registers of each thread at launch, in a block of some warps.
fn at_launch(code: &Code, warps: usize) -> u32 {
    let threads = warps as u32 * LANES as u32;
    let fit = FILE / (threads * code.min_blocks.max(1)).max(1);
    let limit = code.max_registers.unwrap_or(MOST);
    fit.min(limit).min(MOST) / 8 * 8
}

impl Registers {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// A warp asks for a count, `more` than it has or fewer; `ordered` says whether another warp's call comes before it.
    fn ask(
        &mut self,
        warp: usize,
        (asked, more): (Asked, bool),
        exist: usize,
        ordered: impl Fn(Mark) -> bool,
    ) -> Result<(), String> {
        let count = asked.count;
        if !(24..=256).contains(&count) || !count.is_multiple_of(8) {
            return Err(format!(
                "setmaxnreg {count}: the count must be a multiple of 8 from 24 to 256"
            ));
        }
        let calls = self.0.entry(warp).or_default();
        let number = calls.len();
        if let Some(Asked { count: now, .. }) = calls.last()
            && (more && count < *now || !more && count > *now)
        {
            let (way, other) = if more { ("inc", "dec") } else { ("dec", "inc") };
            return Err(format!(
                "setmaxnreg.{way} to {count} registers where the warp has {now}: use setmaxnreg.{other}"
            ));
        }
        calls.push(asked);
        let first = warp / GROUP * GROUP;
        let group = first..(first + GROUP).min(exist);
        let call = |other: usize, number: usize| self.0.get(&other)?.get(number);
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
                "setmaxnreg {count}: nothing orders it behind the setmaxnreg before in warp {other}: the warps of a warpgroup \
                 synchronize between two of them"
            ));
        }
        Ok(())
    }
}

impl Machine<'_, '_> {
    /// The lanes of a warp ask for a count.
    pub(super) fn set_registers(&mut self, pc: usize, (count, more): (u16, bool), mask: u32) -> Check {
        let lane = mask.trailing_zeros() % 32;
        let asked = match mask == self.warp.alive {
            false => Err("setmaxnreg by some lanes of a warp: all of them do it together".to_string()),
            true => {
                let exist = self.ctx.block.iter().product::<u32>().div_ceil(LANES as u32) as usize;
                let mark = self.shared.order.mark(self.id, pc, Kind::Cta).of(mask);
                let Shared { registers, order, .. } = &mut *self.shared;
                let ordered =
                    |mark: Mark| !order.check || mark.warp() == self.id || order.ordered(mark, self.id, lane);
                registers.ask(self.id, (Asked { count, mark }, more), exist, ordered)
            }
        };
        asked.map_err(|message| Trap::new(FaultKind::Asynchronous, lane, message))
    }
}

impl Block {
    /// At the end of the block: the warps of a warpgroup have executed the same `setmaxnreg`s, and all had the registers for it.
    pub(super) fn check_registers(&self, ctx: &Context<'_>) -> Result<(), Fault> {
        self.check_calls(ctx)?;
        let all = &self.shared.registers.0;
        let launch = at_launch(ctx.code, self.warps.len());
        let held = |warp| {
            let last = all.get(&warp).and_then(|calls| calls.last());
            last.map_or(launch, |asked| u32::from(asked.count)) * LANES as u32
        };
        let sum: u32 = (0..self.warps.len()).map(held).sum();
        let given = launch * LANES as u32 * self.warps.len() as u32;
        let last = all
            .iter()
            .filter_map(|(warp, calls)| Some((*warp, calls.last()?)));
        let Some((warp, most)) = last.max_by_key(|(_, asked)| asked.count) else {
            return Ok(());
        };
        if sum <= given {
            return Ok(());
        }
        let silent = (0..self.warps.len())
            .filter(|warp| !all.contains_key(warp))
            .count();
        let kept = match silent {
            0 => String::new(),
            n => format!(" ({n} of them keep the {launch} for each thread that they were launched with)"),
        };
        let message = format!(
            "setmaxnreg {}: the warps of the block ask for {sum} registers together{kept}, and the block has {given}, {launch} for \
             each thread: one waits for ever",
            most.count
        );
        let trap = Trap::new(FaultKind::Asynchronous, 0, message);
        Err(fault(ctx, &self.shared, warp, most.mark.pc(), *trap))
    }

    fn check_calls(&self, ctx: &Context<'_>) -> Result<(), Fault> {
        let calls = |warp: &usize| self.shared.registers.0.get(warp).map_or(0, Vec::len);
        for (warp, made) in &self.shared.registers.0 {
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
