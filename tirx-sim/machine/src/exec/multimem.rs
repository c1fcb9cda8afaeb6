//! `multimem`: one address for the memory of all devices of a multicast window.
//!
//! A store or reduction takes effect in every part of the window, a load combines all parts. Each access is checked like one
//! at the part's own address, and marked as made through the window: the part has two addresses, and a weak access by the other
//! one needs `fence.proxy.alias` between the two (PTX ISA, "Causality order": operations on aliases). Strong accesses need no such
//! fence: kernels signal through a window and poll at the own address.
//!
//! On one device, memory without a window counts as a window of its own.

use std::sync::{Arc, PoisonError};

use super::access::Check;
use super::atomic::{update, update_word};
use super::run::Machine;
use super::{Strand, Trap};
use crate::alu::LANES;
use crate::bytecode::{Access, AtomicInst, AtomicOp, MultimemInst, Region};
use crate::fault::FaultKind;
use crate::memory::Storage;
use crate::numeric::Kind;

impl Machine<'_, '_> {
    /// Runs a `multimem` instruction for one element of each lane.
    pub(super) fn multimem(
        &mut self,
        pc: usize,
        inst: &AtomicInst,
        multimem: MultimemInst,
        mask: u32,
        strand: &Strand,
    ) -> Check {
        let access = &self.ctx.code.accesses[inst.access as usize];
        let kind = access.kind;
        let plus = strand.scalars[inst.plus as usize];
        let backwards = self.ctx.seed & 1 == 1;
        for at in 0..LANES {
            let lane = if backwards { LANES - 1 - at } else { at };
            if mask >> lane & 1 == 0 {
                continue;
            }
            let index = match inst.wide {
                true => self.warp.v64[inst.index as usize][lane].wrapping_add(plus) as i64,
                false => i64::from(self.warp.v32[inst.index as usize][lane].wrapping_add(plus as u32) as i32),
            };
            let value = match kind.wide() {
                true => self.warp.v64[inst.value as usize][lane],
                false => u64::from(self.warp.v32[inst.value as usize][lane]),
            };
            let (mut parts, bit) = self.parts(access, lane as u32, index)?;
            if backwards {
                // The order in which parts are combined is not defined.
                parts.reverse();
            }
            let mut read = Vec::new();
            for storage in &parts {
                read.push(self.part_access(
                    pc,
                    inst,
                    multimem.weak,
                    (lane as u32, index),
                    (storage, bit),
                    value,
                )?);
            }
            let combined = combine(multimem, kind, &read);
            match kind.wide() {
                true => self.warp.v64[inst.d as usize][lane] = combined,
                false => self.warp.v32[inst.d as usize][lane] = combined as u32,
            }
            if self.warp.shadows.is_some() {
                let at = parts.iter().map(|part| part.address * 8 + bit as u64);
                let parts: Vec<(u64, u64)> = at.zip(read).collect();
                self.shade_multimem(pc, (inst, multimem), kind, lane, &parts, value);
            }
        }
        Ok(())
    }

    /// The memory behind an address of a window, and the bit in each part.
    fn parts(&self, access: &Access, lane: u32, index: i64) -> Check<(Vec<Arc<Storage>>, usize)> {
        let bytes = i64::from(access.kind.bytes());
        let base = match access.region {
            Region::Param(p) => self.device.args[p as usize],
            _ => 0,
        };
        let address = match access.region {
            Region::Param(_) => base.wrapping_add(index.wrapping_mul(bytes) as u64),
            _ => index as u64,
        };
        let found = match self.ctx.memory.behind_window(address) {
            Some(found) => Some(found),
            None if self.ctx.ranks() == 1 => {
                let storage = self.ctx.memory.find(address);
                storage.map(|storage| {
                    let byte = address - storage.address;
                    (vec![storage], byte)
                })
            }
            None => None,
        };
        let Some((parts, byte)) = found else {
            let message = format!(
                "multimem through `{}` at {address:#x}, which is no address of a multicast window: pass the window of symmetric \
                 memory, or T.nvshmem.mc_ptr of an address in it",
                access.name
            );
            return Err(Trap::new(FaultKind::OutOfBounds, lane, message));
        };
        if address % bytes as u64 != 0 {
            let message = format!(
                "multimem of {bytes} bytes through `{}` at {address:#x}, which is no multiple of {bytes}",
                access.name
            );
            return Err(Trap::new(FaultKind::Misaligned, lane, message));
        }
        if parts.iter().any(|part| byte + bytes as u64 > part.bytes as u64) {
            let message = format!(
                "multimem through `{}` accesses bytes {byte} to {} of a multicast window, which has {}",
                access.name,
                byte + bytes as u64,
                parts[0].bytes
            );
            return Err(Trap::new(FaultKind::OutOfBounds, lane, message));
        }
        Ok((parts, byte as usize * 8))
    }

    /// One part's share; the value that was there, as registers hold it.
    fn part_access(
        &mut self,
        pc: usize,
        inst: &AtomicInst,
        weak: bool,
        (lane, index): (u32, i64),
        (storage, bit): (&Arc<Storage>, usize),
        value: u64,
    ) -> Check<u64> {
        let access = &self.ctx.code.accesses[inst.access as usize];
        let kind = access.kind;
        let step = |old: u64| update(inst.op, kind, old, value, 0);
        if weak {
            return match inst.op {
                AtomicOp::Read => {
                    let bits = self.read_global(pc, access, lane, index, 0, storage, bit)?;
                    Ok(kind.load(bits))
                }
                _ => {
                    self.shared.changes += 1;
                    self.write_global(pc, access, lane, index, 0, storage, bit, kind.store(value))?;
                    Ok(0)
                }
            };
        }
        let lock = self.ctx.memory.lock(storage.address + bit as u64 / 8);
        let old = self.strong_global(pc, access, lane, index, 0, storage, bit, inst.strong, || {
            if !kind.wide() {
                let word = &storage.words[bit / 32];
                return update_word(word, (bit % 32) as u32, kind.bits(), step);
            }
            let _guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
            let old = storage.load(bit, 64);
            if let Some(new) = step(old) {
                storage.store(bit, 64, new);
            }
            old
        })?;
        self.shared.changes += u64::from(step(old).is_some_and(|new| new != old));
        Ok(kind.load(old))
    }
}

/// What a load gives that has found these values.
fn combine(multimem: MultimemInst, kind: Kind, values: &[u64]) -> u64 {
    let Some((first, rest)) = values.split_first() else {
        return 0;
    };
    // Registers hold 16-bit floats as float32, so sums in float32 are rounded once.
    let within = match multimem.in_float32 {
        true => Kind::F32,
        false => kind,
    };
    let all = rest.iter().fold(within.store(*first), |all, value| {
        update(multimem.combine, within, all, *value, 0).unwrap_or(all)
    });
    match multimem.in_float32 {
        true => kind.load(kind.store(u64::from(kind.canonical(all as u32)))),
        false => kind.load(all),
    }
}
