//! `setmaxnreg`: how many registers the warps of a block have asked for.

use std::collections::BTreeMap;

use super::access::Check;
use super::block::Block;
use super::run::Machine;
use super::{Context, Shared, Trap, fault};
use crate::alu::LANES;
use crate::fault::{Fault, FaultKind};

/// Registers of a multiprocessor.
const FILE: u32 = 1 << 16;
/// Warps of a warpgroup.
const GROUP: usize = 4;

/// The counts that each warp has asked for, one after the other, with the instruction.
#[derive(Debug, Default)]
pub(super) struct Registers(BTreeMap<usize, Vec<(u16, usize)>>);

impl Registers {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// A warp of a block of `warps` asks for a count, `more` than it has or fewer.
    fn ask(&mut self, warp: usize, count: u16, more: bool, pc: usize, warps: usize) -> Result<(), String> {
        if !(24..=256).contains(&count) || !count.is_multiple_of(8) {
            return Err(format!(
                "setmaxnreg {count}: the count must be a multiple of 8 from 24 to 256"
            ));
        }
        let calls = self.0.entry(warp).or_default();
        let number = calls.len();
        if let Some((now, _)) = calls.last()
            && (more && count < *now || !more && count > *now)
        {
            let (way, other) = if more { ("inc", "dec") } else { ("dec", "inc") };
            return Err(format!(
                "setmaxnreg.{way} to {count} registers where the warp has {now}: that is what setmaxnreg.{other} does"
            ));
        }
        calls.push((count, pc));
        let first = warp / GROUP * GROUP;
        let other = (first..first + GROUP).find_map(|other| {
            let (theirs, _) = self.0.get(&other)?.get(number)?;
            (*theirs != count).then_some((other, *theirs))
        });
        if let Some((other, theirs)) = other {
            return Err(format!(
                "setmaxnreg {count}, and {theirs} in warp {other} of the same warpgroup: all warps of a warpgroup execute the \
                 same setmaxnreg"
            ));
        }
        let now = self.0.values().filter_map(|calls| calls.last());
        let sum: u32 = now.map(|(count, _)| u32::from(*count) * LANES as u32).sum();
        if self.0.len() == warps && sum > FILE {
            return Err(format!(
                "setmaxnreg {count}: the warps of the block ask for {sum} registers together, and there are {FILE}"
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
                let threads: u32 = self.ctx.block.iter().product();
                let warps = threads.div_ceil(LANES as u32) as usize;
                let Shared { registers, .. } = &mut *self.shared;
                registers.ask(self.id, count, more, pc, warps)
            }
        };
        asked.map_err(|message| Trap::new(FaultKind::Asynchronous, lane, message))
    }
}

impl Block {
    /// At the end of the block: the warps of a warpgroup have executed the same `setmaxnreg`s.
    pub(super) fn check_registers(&self, ctx: &Context<'_>) -> Result<(), Fault> {
        let calls = |warp: &usize| self.shared.registers.0.get(warp).map_or(0, Vec::len);
        for (warp, made) in &self.shared.registers.0 {
            let first = warp / GROUP * GROUP;
            let mut others = first..(first + GROUP).min(self.warps.len());
            let Some(other) = others.find(|other| calls(other) < made.len()) else {
                continue;
            };
            let Some((count, pc)) = made.get(calls(&other)) else {
                continue;
            };
            let message = format!(
                "setmaxnreg {count} by warp {warp}, and not by warp {other} of the same warpgroup: all warps of a warpgroup \
                 execute the same setmaxnreg"
            );
            let trap = Trap::new(FaultKind::Asynchronous, 0, message);
            return Err(fault(ctx, &self.shared, *warp, *pc, *trap));
        }
        Ok(())
    }
}
