//! The place of one lane's access: found and checked, read and written.

use std::sync::Arc;

use super::Trap;
use super::access::Check;
use super::address::{Target, decode};
use super::run::Machine;
use super::shadow::Finding;
use crate::bytecode::{Access, Region};
use crate::fault::FaultKind;
use crate::memory::Storage;

impl Machine<'_, '_> {
    /// Checks an access of a lane but for what is written there.
    pub(super) fn locate(&mut self, access: &Access, lane: u32, index: i64, verb: &str) -> Check<Spot> {
        let size = access.kind.bytes() as i64;
        let total = size * access.count as i64;
        let code = self.ctx.code;
        let misaligned = |at: i64| at % access.align as i64 != 0;
        let array_spot = |offset: i64, bytes: u32, name: &str, place: &str| {
            if offset < 0 || offset + total > bytes as i64 {
                let element = offset.div_euclid(size);
                let message = format!(
                    "{verb} {place} {}, which has {} elements ({bytes} bytes)",
                    range(name, element, access.count),
                    bytes as i64 / size,
                );
                return Err(Trap::new(FaultKind::OutOfBounds, lane, message));
            }
            if misaligned(offset) {
                return Err(misalignment(access, lane, verb, name, offset, offset));
            }
            Ok(offset as usize)
        };
        let target = match access.region {
            Region::Param(p) => return self.locate_param(access, lane, index, verb, p),
            Region::Shared(r) => Target::Shared(r, index.wrapping_mul(size)),
            Region::Local(a) => Target::Local(a, index.wrapping_mul(size)),
            Region::Pointer => decode(index as u64),
        };
        match target {
            Target::Shared(r, offset) => {
                let Some(array) = code.shared.get(r as usize) else {
                    return Err(wild(access, lane, verb, index as u64));
                };
                let offset = array_spot(offset, array.bytes, &array.name, "shared")?;
                Ok(Spot::Shared(array.offset as usize + offset))
            }
            Target::Local(a, offset) => {
                let Some(array) = code.locals.get(a as usize) else {
                    return Err(wild(access, lane, verb, index as u64));
                };
                let offset = array_spot(offset, array.bytes, &array.name, "local")?;
                Ok(Spot::Local(array.offset as usize * 4 + offset))
            }
            Target::Global(address) => {
                let cached = self.shared.last.clone().filter(|s| {
                    address
                        .checked_sub(s.address)
                        .is_some_and(|o| o + total as u64 <= s.bytes as u64)
                });
                let storage = match cached {
                    Some(storage) => storage,
                    None => {
                        let found = self.ctx.memory.find(address);
                        let inside = |s: &Arc<Storage>| address - s.address + total as u64 <= s.bytes as u64;
                        match found.filter(inside) {
                            Some(storage) => storage,
                            None => return Err(wild(access, lane, verb, address)),
                        }
                    }
                };
                self.shared.last = Some(storage.clone());
                if misaligned(address as i64) {
                    let name = &access.name;
                    let message = format!(
                        "{verb} {total} bytes through `{name}` at {address:#x}, which is no multiple of {}",
                        access.align
                    );
                    return Err(Trap::new(FaultKind::Misaligned, lane, message));
                }
                let offset = (address - storage.address) as usize;
                Ok(Spot::Global(storage, offset))
            }
        }
    }

    fn locate_param(&self, access: &Access, lane: u32, index: i64, verb: &str, param: u16) -> Check<Spot> {
        let size = access.kind.bytes() as i64;
        let total = size * access.count as i64;
        let name = &access.name;
        let Some((storage, base)) = &self.ctx.params[param as usize] else {
            let address = self.ctx.args[param as usize];
            let message = if address == 0 {
                format!("{verb} `{name}`, whose pointer is null")
            } else {
                format!("{verb} `{name}`, whose pointer {address:#x} points to no living allocation")
            };
            return Err(Trap::new(FaultKind::NullPointer, lane, message));
        };
        let offset = index
            .checked_mul(size)
            .and_then(|o| o.checked_add(*base as i64))
            .filter(|o| *o >= 0 && *o + total <= storage.bytes as i64);
        let Some(offset) = offset else {
            let message = format!(
                "{verb} {}, but its allocation has {} elements from `{name}[0]` on",
                range(name, index, access.count),
                (storage.bytes as i64 - *base as i64) / size,
            );
            return Err(Trap::new(FaultKind::OutOfBounds, lane, message));
        };
        let address = storage.address as i64 + offset;
        if address % access.align as i64 != 0 {
            return Err(misalignment(access, lane, verb, name, index * size, address));
        }
        Ok(Spot::Global(storage.clone(), offset as usize))
    }

    /// The bits of element `c` at a located place.
    pub(super) fn read_spot(
        &mut self,
        pc: usize,
        access: &Access,
        lane: u32,
        index: i64,
        spot: &Spot,
        c: u16,
    ) -> Check<u64> {
        let size = access.kind.bytes();
        let step = (c as u32 * size) as usize;
        match spot {
            Spot::Global(storage, offset) => {
                self.note_read(pc, access, lane, index, c, storage, offset + step)?;
                Ok(storage.load(offset + step, size))
            }
            Spot::Shared(offset) => {
                let offset = offset + step;
                let granule = self.ctx.code.granule;
                let stamp = self.shared.order.stamp(self.id, pc, false);
                for cell in offset >> granule..(offset + size as usize + (1 << granule) - 1) >> granule {
                    let mut place = self.shared.cells[cell];
                    let finding = if access.poll {
                        self.shared.order.poll(&mut place, self.id)
                    } else {
                        self.shared.order.read(&mut place, stamp, lane)
                    };
                    self.shared.cells[cell] = place;
                    if let Err(finding) = finding {
                        return Err(self.found(
                            access,
                            lane,
                            self.element(access, index, c),
                            finding,
                            "reads",
                        ));
                    }
                }
                Ok(load_words(&self.shared.words, offset, size))
            }
            Spot::Local(offset) => {
                let offset = offset + step;
                let bit = 1u32 << lane;
                let written = &self.warp.local_written[offset..offset + size as usize];
                if written.iter().any(|w| w & bit == 0) {
                    let element = self.element(access, index, c);
                    return Err(self.found(access, lane, element, Finding::Uninitialized, "reads"));
                }
                let word = |i: usize| self.warp.local[i][lane as usize];
                let low = word(offset / 4);
                Ok(match size {
                    8 => low as u64 | (word(offset / 4 + 1) as u64) << 32,
                    4 => low as u64,
                    2 => (low >> (offset % 4 * 8)) as u16 as u64,
                    _ => (low >> (offset % 4 * 8)) as u8 as u64,
                })
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "an access has many sides")]
    pub(super) fn write_spot(
        &mut self,
        pc: usize,
        access: &Access,
        lane: u32,
        index: i64,
        spot: &Spot,
        c: u16,
        bits: u64,
    ) -> Check {
        let size = access.kind.bytes();
        let step = (c as u32 * size) as usize;
        match spot {
            Spot::Global(storage, offset) => {
                let same = storage.load(offset + step, size) == bits;
                self.note_write(pc, access, lane, index, c, storage, offset + step, same)?;
                storage.store(offset + step, size, bits);
            }
            Spot::Shared(offset) => {
                let offset = offset + step;
                let granule = self.ctx.code.granule;
                let stamp = self.shared.order.stamp(self.id, pc, false);
                let same = load_words(&self.shared.words, offset, size) == bits;
                for cell in offset >> granule..(offset + size as usize + (1 << granule) - 1) >> granule {
                    let mut place = self.shared.cells[cell];
                    let finding = self.shared.order.write(&mut place, stamp, lane, same);
                    self.shared.cells[cell] = place;
                    if let Err(finding) = finding {
                        return Err(self.found(
                            access,
                            lane,
                            self.element(access, index, c),
                            finding,
                            "writes",
                        ));
                    }
                }
                store_words(&mut self.shared.words, offset, size, bits);
            }
            Spot::Local(offset) => {
                let offset = offset + step;
                for written in &mut self.warp.local_written[offset..offset + size as usize] {
                    *written |= 1 << lane;
                }
                let word = &mut self.warp.local[offset / 4][lane as usize];
                match size {
                    4 | 8 => *word = bits as u32,
                    _ => {
                        let shift = offset % 4 * 8;
                        let mask = if size == 2 { 0xffffu32 } else { 0xff } << shift;
                        *word = *word & !mask | ((bits as u32) << shift) & mask;
                    }
                }
                if size == 8 {
                    self.warp.local[offset / 4 + 1][lane as usize] = (bits >> 32) as u32;
                }
            }
        }
        Ok(())
    }
}

/// A checked place: where one lane's access goes.
pub(super) enum Spot {
    Global(Arc<Storage>, usize),
    /// Byte of the block's shared memory.
    Shared(usize),
    /// Byte of the lane's local memory.
    Local(usize),
}

fn range(name: &str, first: i64, count: u16) -> String {
    if count == 1 {
        format!("`{name}[{first}]`")
    } else {
        format!("`{name}[{first}:{}]`", first + count as i64)
    }
}

fn wild(access: &Access, lane: u32, verb: &str, address: u64) -> Box<Trap> {
    let name = &access.name;
    if address < 4096 {
        let message = format!("{verb} through `{name}`, which is null");
        return Trap::new(FaultKind::NullPointer, lane, message);
    }
    let message = format!("{verb} through `{name}` at {address:#x}, which is in no living allocation");
    Trap::new(FaultKind::OutOfBounds, lane, message)
}

fn misalignment(access: &Access, lane: u32, verb: &str, name: &str, byte: i64, address: i64) -> Box<Trap> {
    let total = access.kind.bytes() * access.count as u32;
    let element = byte.div_euclid(access.kind.bytes() as i64);
    let message = format!(
        "{verb} {total} bytes at {}, whose address ({address:#x}) is no multiple of {}",
        range(name, element, access.count),
        access.align
    );
    Trap::new(FaultKind::Misaligned, lane, message)
}

/// Bits of `size` bytes in words.
pub(super) fn load_words(words: &[u32], offset: usize, size: u32) -> u64 {
    let word = words[offset / 4];
    match size {
        8 => word as u64 | (words[offset / 4 + 1] as u64) << 32,
        4 => word as u64,
        2 => (word >> (offset % 4 * 8)) as u16 as u64,
        _ => (word >> (offset % 4 * 8)) as u8 as u64,
    }
}

pub(super) fn store_words(words: &mut [u32], offset: usize, size: u32, bits: u64) {
    match size {
        8 => {
            words[offset / 4] = bits as u32;
            words[offset / 4 + 1] = (bits >> 32) as u32;
        }
        4 => words[offset / 4] = bits as u32,
        _ => {
            let shift = offset % 4 * 8;
            let mask = if size == 2 { 0xffffu32 } else { 0xff } << shift;
            let word = &mut words[offset / 4];
            *word = *word & !mask | ((bits as u32) << shift) & mask;
        }
    }
}
