//! Loads and stores, with every check.
//!
//! Accesses to one region by an element index have a fast form: bounds and alignment of all lanes at once, then a plain
//! gather or scatter. Where that check fails, and for pointers, lanes are processed one by one, which finds the faulty
//! lane and its message.

use std::sync::atomic::Ordering;

use super::Trap;
use super::place::Spot;
use super::run::Machine;
use crate::alu::{FULL, LANES, Lanes32, put_each};
use crate::bytecode::{Access, R, Region, WORD};
use crate::memory::Storage;

pub(super) type Check<T = ()> = Result<T, Box<Trap>>;

/// Element offsets of all lanes, zero for inactive ones.
#[inline(always)]
fn offsets(index: &Lanes32, plus: u32, mask: u32) -> Lanes32 {
    let mut at = [0u32; LANES];
    for i in 0..LANES {
        at[i] = index[i].wrapping_add(plus);
    }
    if mask != FULL {
        for (i, at) in at.iter_mut().enumerate() {
            *at = if mask >> i & 1 != 0 { *at } else { 0 };
        }
    }
    at
}

/// Whether all offsets are less than `limit`, which is at most 2^31: neither the offset nor its distance from the last one is
/// negative (a difference and two ORs per lane, which SSE2 has; it has no maximum, and no comparison of unsigned numbers).
#[inline(always)]
fn all_below(at: &Lanes32, limit: u32) -> bool {
    let last = limit.wrapping_sub(1);
    let mut beyond = 0u32;
    for at in at {
        beyond |= *at | last.wrapping_sub(*at);
    }
    limit > 0 && beyond >> 31 == 0
}

impl Machine<'_, '_> {
    /// Loads `access.count` elements a lane to registers from `d` on; the index is 32-bit.
    #[inline(always)]
    pub(super) fn load(&mut self, pc: usize, d: R, index: R, plus: u64, access: u16, mask: u32) -> Check {
        let access = &self.ctx.code.accesses[access as usize];
        let at = offsets(&self.warp.v32[index as usize], plus as u32, mask);
        if access.kind.bits() == 32 && access.count == 1 {
            match access.region {
                Region::Shared(r) if self.ctx.code.granule == WORD && !access.poll => {
                    let array = &self.ctx.code.shared[r as usize];
                    if all_below(&at, array.bytes / 4) {
                        return self.load_shared_word(pc, d, array.offset as usize / 4, &at, mask, access);
                    }
                }
                Region::Param(p) => {
                    if let Some((storage, offset)) = &self.device.params[p as usize] {
                        let first = (offset / 4) as usize;
                        let whole = self.device.windows[p as usize].is_empty()
                            && !access.poll
                            && !access.constant
                            && self.ctx.before.is_none();
                        if whole && offset % 4 == 0 && all_below(&at, words_from(storage, first)) {
                            if let Some(sheet) = &self.device.sheets[p as usize] {
                                self.note_read_words(pc, sheet, first, &at, mask, access)?;
                            }
                            let words = &storage.words[first..];
                            put_each(&mut self.warp.v32[d as usize], mask, |i| {
                                words[at[i] as usize].load(Ordering::Relaxed)
                            });
                            return Ok(());
                        }
                    }
                }
                _ => {}
            }
        }
        self.load_each(pc, d, access, mask, &|i| at[i] as i32 as i64)
    }

    fn load_shared_word(
        &mut self,
        pc: usize,
        d: R,
        first: usize,
        at: &Lanes32,
        mask: u32,
        access: &Access,
    ) -> Check {
        let shared = &mut *self.shared;
        let by = (self.id, pc);
        let read = shared
            .cells
            .read_lanes(&shared.order, by, (first, at), mask, access.swapped);
        if let Err((lane, finding)) = read {
            let trap = self.found(access, lane, at[lane as usize] as i64, finding, "reads");
            self.read_early(pc, trap)?;
        }
        let words = &self.shared.words[first..];
        put_each(&mut self.warp.v32[d as usize], mask, |i| words[at[i] as usize]);
        Ok(())
    }

    /// The same, element by element.
    pub(super) fn load_with_shadows(
        &mut self,
        pc: usize,
        d: R,
        index: R,
        plus: u64,
        access: u16,
        mask: u32,
    ) -> Check {
        let access = &self.ctx.code.accesses[access as usize];
        let at = offsets(&self.warp.v32[index as usize], plus as u32, mask);
        self.load_each(pc, d, access, mask, &|i| at[i] as i32 as i64)
    }

    /// A store of the same kind.
    pub(super) fn store_with_shadows(
        &mut self,
        pc: usize,
        v: R,
        index: R,
        plus: u64,
        access: u16,
        mask: u32,
    ) -> Check {
        let access = &self.ctx.code.accesses[access as usize];
        self.shared.changes += 1;
        let at = offsets(&self.warp.v32[index as usize], plus as u32, mask);
        self.store_each(pc, v, access, mask, &|i| at[i] as i32 as i64)
    }

    /// The same with a 64-bit index (or address).
    pub(super) fn load_wide(
        &mut self,
        pc: usize,
        d: R,
        index: R,
        plus: u64,
        access: u16,
        mask: u32,
    ) -> Check {
        let access = &self.ctx.code.accesses[access as usize];
        let at = self.warp.v64[index as usize].map(|i| i.wrapping_add(plus) as i64);
        self.load_each(pc, d, access, mask, &|i| at[i])
    }

    pub(super) fn load_each(
        &mut self,
        pc: usize,
        d: R,
        access: &Access,
        mask: u32,
        at: &dyn Fn(usize) -> i64,
    ) -> Check {
        for lane in 0..LANES as u32 {
            if mask >> lane & 1 == 0 {
                continue;
            }
            let index = at(lane as usize);
            let spot = self.locate(access, lane, index, "reads")?;
            for c in 0..access.count {
                let bits = self.read_spot(pc, access, lane, index, &spot, c)?;
                let value = access.kind.load(bits);
                let register = (d + c) as usize;
                if access.kind.wide() {
                    self.warp.v64[register][lane as usize] = value;
                } else {
                    self.warp.v32[register][lane as usize] = value as u32;
                }
                if self.warp.shadows.is_some() {
                    self.shade_loaded(access.kind, register, (lane, c), &spot, bits);
                }
            }
        }
        Ok(())
    }

    /// One place for all lanes, to scalar registers from `d` on.
    pub(super) fn load_scalar(
        &mut self,
        pc: usize,
        d: R,
        index: i64,
        access: u16,
        mask: u32,
        scalars: &mut [u64],
    ) -> Check {
        let access = &self.ctx.code.accesses[access as usize];
        let lane = mask.trailing_zeros();
        let spot = self.locate(access, lane, index, "reads")?;
        for c in 0..access.count {
            let mut bits = self.read_spot(pc, access, lane, index, &spot, c)?;
            if access.poll {
                // Each lane continues only when it has seen the value.
                for other in (lane + 1..LANES as u32).filter(|l| mask >> l & 1 != 0) {
                    bits = self.read_spot(pc, access, other, index, &spot, c)?;
                }
            } else if mask.count_ones() > 1 && !matches!(spot, Spot::Local(_)) {
                // Another lane has read the place too; the next write must be ordered behind that read.
                let other = 31 - mask.leading_zeros();
                bits = self.read_spot(pc, access, other, index, &spot, c)?;
            }
            scalars[(d + c) as usize] = access.kind.load(bits);
            if self.warp.shadows.is_some() {
                self.shade_loaded_scalar(access.kind, d + c, (lane, c), &spot, bits);
            }
        }
        Ok(())
    }

    /// Stores `access.count` elements a lane from registers from `v` on; the index is 32-bit.
    #[inline(always)]
    pub(super) fn store(&mut self, pc: usize, v: R, index: R, plus: u64, access: u16, mask: u32) -> Check {
        let access = &self.ctx.code.accesses[access as usize];
        self.shared.changes += 1;
        let at = offsets(&self.warp.v32[index as usize], plus as u32, mask);
        if access.kind.bits() == 32 && access.count == 1 {
            match access.region {
                Region::Shared(r) if self.ctx.code.granule == WORD && !access.polled => {
                    let array = &self.ctx.code.shared[r as usize];
                    if all_below(&at, array.bytes / 4) {
                        return self.store_shared_word(pc, v, array.offset as usize / 4, &at, mask, access);
                    }
                }
                Region::Param(p) => {
                    if let Some((storage, offset)) = &self.device.params[p as usize] {
                        let first = (offset / 4) as usize;
                        let whole = self.device.windows[p as usize].is_empty()
                            && !access.polled
                            && self.ctx.before.is_none();
                        if whole && offset % 4 == 0 && all_below(&at, words_from(storage, first)) {
                            if let Some(sheet) = &self.device.sheets[p as usize] {
                                return self
                                    .store_global_words(pc, v, storage, sheet, first, &at, mask, access);
                            }
                            let words = &storage.words[first..];
                            let values = &self.warp.v32[v as usize];
                            for i in 0..LANES {
                                if mask >> i & 1 != 0 {
                                    words[at[i] as usize].store(values[i], Ordering::Relaxed);
                                }
                            }
                            return Ok(());
                        }
                    }
                }
                _ => {}
            }
        }
        self.store_each(pc, v, access, mask, &|i| at[i] as i32 as i64)
    }

    fn store_shared_word(
        &mut self,
        pc: usize,
        v: R,
        first: usize,
        at: &Lanes32,
        mask: u32,
        access: &Access,
    ) -> Check {
        let shared = &mut *self.shared;
        let words = &mut shared.words[first..];
        let values = &self.warp.v32[v as usize];
        let mut bad = None;
        for i in 0..LANES {
            if mask >> i & 1 == 0 {
                continue;
            }
            let place = at[i] as usize;
            let same = words[place] == values[i];
            if let Err(finding) =
                shared
                    .cells
                    .write(&shared.order, (self.id, pc), first + place, i as u32, same)
            {
                bad = Some((i, finding));
                break;
            }
            words[place] = values[i];
        }
        match bad {
            Some((lane, finding)) => Err(self.found(access, lane as u32, at[lane] as i64, finding, "writes")),
            None => Ok(()),
        }
    }

    pub(super) fn store_wide(
        &mut self,
        pc: usize,
        v: R,
        index: R,
        plus: u64,
        access: u16,
        mask: u32,
    ) -> Check {
        let access = &self.ctx.code.accesses[access as usize];
        self.shared.changes += 1;
        let at = self.warp.v64[index as usize].map(|i| i.wrapping_add(plus) as i64);
        self.store_each(pc, v, access, mask, &|i| at[i])
    }

    pub(super) fn store_each(
        &mut self,
        pc: usize,
        v: R,
        access: &Access,
        mask: u32,
        at: &dyn Fn(usize) -> i64,
    ) -> Check {
        for lane in 0..LANES as u32 {
            if mask >> lane & 1 == 0 {
                continue;
            }
            let index = at(lane as usize);
            let spot = self.locate(access, lane, index, "writes")?;
            for c in 0..access.count {
                let register = (v + c) as usize;
                let value = if access.kind.wide() {
                    self.warp.v64[register][lane as usize]
                } else {
                    self.warp.v32[register][lane as usize] as u64
                };
                let bits = access.kind.store(value);
                self.write_spot(pc, access, lane, index, &spot, c, bits)?;
                if self.warp.shadows.is_some() {
                    self.shade_stored(access.kind, register, (lane, c), &spot, bits);
                }
            }
        }
        Ok(())
    }
}

/// Words of an allocation from one on, as far as a 32-bit index reaches.
#[inline(always)]
fn words_from(storage: &Storage, first: usize) -> u32 {
    (storage.bytes / 4).saturating_sub(first).min(1 << 31) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_compared_without_sign() {
        for (offset, limit, below) in [
            (0, 1, true),
            (1, 1, false),
            (0, 0, false),
            (u32::MAX, 1 << 31, false),
            ((1 << 31) - 1, 1 << 31, true),
            (1 << 31, 1 << 31, false),
            (1 << 31, 5, false),
            (5, 4, false),
        ] {
            let mut at = [0; LANES];
            at[17] = offset;
            assert_eq!(all_below(&at, limit), below, "{offset} of {limit}");
        }
    }
}
