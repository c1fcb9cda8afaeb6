//! Loads and stores, with every check.
//!
//! Accesses to one region by an element index have a fast form: bounds and alignment of all lanes at once, then a
//! plain gather or scatter. Where that finds something wrong, and for pointers, each lane is done by itself,
//! which finds the lane and the words for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::address::{Target, decode};
use super::run::Machine;
use super::shadow::Finding;
use super::{Trap, thread_of};
use crate::alu::{FULL, LANES, Lanes32, put};
use crate::bytecode::{Access, R, Region, RegisterArray};
use crate::fault::FaultKind;
use crate::memory::Storage;
use crate::numeric::Kind;
use crate::stand_in::PointerAccess;

/// A checked place: where one lane's access goes.
pub(super) enum Spot {
    Global(Arc<Storage>, usize),
    /// Byte of the block's shared memory.
    Shared(usize),
    /// Byte of the lane's local memory.
    Local(usize),
}

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

/// Whether all offsets are less than `limit` (a compare and an or a lane, which SSE2 has; it has no maximum).
#[inline(always)]
fn all_below(at: &Lanes32, limit: u32) -> bool {
    let mut beyond = 0u32;
    for at in at {
        beyond |= (*at >= limit) as u32;
    }
    beyond == 0
}

impl Machine<'_, '_> {
    /// Loads `access.count` elements a lane to registers from `d` on; the index is 32-bit.
    #[inline(always)]
    pub(super) fn load(&mut self, pc: usize, d: R, index: R, plus: u64, access: u16, mask: u32) -> Check {
        let access = &self.ctx.code.accesses[access as usize];
        let at = offsets(&self.warp.v32[index as usize], plus as u32, mask);
        if access.kind.bytes() == 4 && access.count == 1 {
            match access.region {
                Region::Shared(r) if self.ctx.code.granule == 2 && !access.poll => {
                    let array = &self.ctx.code.shared[r as usize];
                    if all_below(&at, array.bytes / 4) {
                        return self.load_shared_word(pc, d, array.offset as usize / 4, &at, mask, access);
                    }
                }
                Region::Param(p) => {
                    if let Some((storage, offset)) = &self.ctx.params[p as usize] {
                        let first = (offset / 4) as usize;
                        if offset % 4 == 0 && all_below(&at, words_from(storage, first)) {
                            if let Some(sheet) = &self.ctx.sheets[p as usize] {
                                self.note_read_words(pc, sheet, first, &at, mask, access)?;
                            }
                            let words = &storage.words[first..];
                            let mut out = [0; LANES];
                            for i in 0..LANES {
                                out[i] = words[at[i] as usize].load(Ordering::Relaxed);
                            }
                            put(&mut self.warp.v32[d as usize], &out, mask);
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
        let words = &shared.words[first..];
        let cells = &mut shared.cells[first..];
        let stamp = shared.order.stamp(self.id, pc, false);
        if let Err((lane, finding)) = shared.order.read_lanes(cells, at, stamp, mask) {
            return Err(self.found(access, lane, at[lane as usize] as i64, finding, "reads"));
        }
        let mut out = [0; LANES];
        for i in 0..LANES {
            out[i] = words[at[i] as usize];
        }
        put(&mut self.warp.v32[d as usize], &out, mask);
        Ok(())
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

    fn load_each(&mut self, pc: usize, d: R, access: &Access, mask: u32, at: &dyn Fn(usize) -> i64) -> Check {
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
            if mask.count_ones() > 1 && matches!(spot, Spot::Shared(_)) {
                // Another lane has read it too; that matters to who writes next.
                let other = 31 - mask.leading_zeros();
                bits = self.read_spot(pc, access, other, index, &spot, c)?;
            }
            scalars[(d + c) as usize] = access.kind.load(bits);
        }
        Ok(())
    }

    /// Stores `access.count` elements a lane from registers from `v` on; the index is 32-bit.
    #[inline(always)]
    pub(super) fn store(&mut self, pc: usize, v: R, index: R, plus: u64, access: u16, mask: u32) -> Check {
        let access = &self.ctx.code.accesses[access as usize];
        self.shared.changes += 1;
        let at = offsets(&self.warp.v32[index as usize], plus as u32, mask);
        if access.kind.bytes() == 4 && access.count == 1 {
            match access.region {
                Region::Shared(r) if self.ctx.code.granule == 2 => {
                    let array = &self.ctx.code.shared[r as usize];
                    if all_below(&at, array.bytes / 4) {
                        return self.store_shared_word(pc, v, array.offset as usize / 4, &at, mask, access);
                    }
                }
                Region::Param(p) => {
                    if let Some((storage, offset)) = &self.ctx.params[p as usize] {
                        let first = (offset / 4) as usize;
                        if offset % 4 == 0 && all_below(&at, words_from(storage, first)) {
                            if let Some(sheet) = &self.ctx.sheets[p as usize] {
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
        let cells = &mut shared.cells[first..];
        let stamp = shared.order.stamp(self.id, pc, false);
        let values = &self.warp.v32[v as usize];
        let mut bad = None;
        for i in 0..LANES {
            if mask >> i & 1 == 0 {
                continue;
            }
            let place = at[i] as usize;
            let same = words[place] == values[i];
            if let Err(finding) = shared.order.write(&mut cells[place], stamp, i as u32, same) {
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

    fn store_each(
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
            }
        }
        Ok(())
    }

    /// A local array at one index for all lanes.
    pub(super) fn load_row(&mut self, pc: usize, d: R, index: i64, access: u16, mask: u32) -> Check {
        let access = &self.ctx.code.accesses[access as usize];
        let Some((row, first)) = self.row(access, index) else {
            return self.load_each(pc, d, access, mask, &|_| index);
        };
        for c in 0..access.count as usize {
            let (row, first) = (row + c, first + c * 4);
            let warp = &mut *self.warp;
            if warp.local_written[first] & warp.local_written[first + 3] & mask != mask {
                return self.load_each(pc, d, access, mask, &|_| index);
            }
            let value = warp.local[row];
            put(&mut warp.v32[d as usize + c], &value, mask);
        }
        Ok(())
    }

    pub(super) fn store_row(&mut self, pc: usize, v: R, index: i64, access: u16, mask: u32) -> Check {
        let access = &self.ctx.code.accesses[access as usize];
        let Some((row, first)) = self.row(access, index) else {
            return self.store_each(pc, v, access, mask, &|_| index);
        };
        for c in 0..access.count as usize {
            let warp = &mut *self.warp;
            let value = warp.v32[v as usize + c];
            put(&mut warp.local[row + c], &value, mask);
            let first = first + c * 4;
            warp.local_written[first..first + 4]
                .iter_mut()
                .for_each(|written| *written |= mask);
        }
        Ok(())
    }

    /// An element of an array in registers.
    pub(super) fn load_indexed(&mut self, d: R, array: u16, index: i64, mask: u32) -> Check {
        let array = &self.ctx.code.register_arrays[array as usize];
        let element = element_of(array, index, mask, "reads")?;
        let warp = &mut *self.warp;
        if let Some(first) = array.init {
            let missing = mask & !warp.written[first as usize + element];
            if missing != 0 {
                let message = format!(
                    "reads `{}[{index}]` before this thread has written it",
                    array.name
                );
                return Err(Trap::new(
                    FaultKind::Uninitialized,
                    missing.trailing_zeros(),
                    message,
                ));
            }
        }
        let from = array.first as usize + element;
        if array.wide {
            let value = warp.v64[from];
            put(&mut warp.v64[d as usize], &value, mask);
        } else {
            let value = warp.v32[from];
            put(&mut warp.v32[d as usize], &value, mask);
        }
        Ok(())
    }

    pub(super) fn store_indexed(&mut self, v: R, array: u16, index: i64, mask: u32) -> Check {
        let array = &self.ctx.code.register_arrays[array as usize];
        let element = element_of(array, index, mask, "writes")?;
        let warp = &mut *self.warp;
        if let Some(first) = array.init {
            warp.written[first as usize + element] |= mask;
        }
        let to = array.first as usize + element;
        if array.wide {
            let value = warp.v64[v as usize];
            put(&mut warp.v64[to], &value, mask);
        } else {
            let value = warp.v32[v as usize];
            put(&mut warp.v32[to], &value, mask);
        }
        Ok(())
    }

    /// The word and byte of four-byte elements of a local array, if all is in order.
    fn row(&self, access: &Access, index: i64) -> Option<(usize, usize)> {
        let Region::Local(array) = access.region else {
            return None;
        };
        let array = &self.ctx.code.locals[array as usize];
        let count = access.count as i64;
        let inside = index >= 0 && index + count <= array.bytes as i64 / 4;
        let aligned = index * 4 % access.align as i64 == 0;
        (access.kind.bytes() == 4 && inside && aligned).then(|| {
            let row = array.offset as usize + index as usize;
            (row, row * 4)
        })
    }

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
    fn write_spot(
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

    /// The index of an element for messages.
    pub(super) fn element(&self, access: &Access, index: i64, c: u16) -> i64 {
        let size = access.kind.bytes() as i64;
        let first = match (access.region, decode(index as u64)) {
            (Region::Pointer, Target::Shared(_, offset) | Target::Local(_, offset)) => offset / size,
            _ => index,
        };
        first + c as i64
    }

    /// The error of a finding.
    pub(super) fn found(
        &self,
        access: &Access,
        lane: u32,
        element: i64,
        finding: Finding,
        verb: &str,
    ) -> Box<Trap> {
        let name = format!("`{}[{element}]`", access.name);
        let me = self.thread(self.id as u32 * 32 + lane);
        let (other, past) = match finding {
            Finding::Uninitialized => {
                let place = if matches!(access.region, Region::Local(_)) {
                    "this thread"
                } else {
                    "any thread"
                };
                let message = format!("{verb} {name} before {place} has written it");
                return Trap::new(FaultKind::Uninitialized, lane, message);
            }
            Finding::AfterWrite(stamp) if stamp.is_atomic() => (stamp, "updated atomically"),
            Finding::AfterWrite(stamp) => (stamp, "wrote"),
            Finding::AfterRead(stamp) => (stamp, "read"),
        };
        let them = self.thread(other.thread());
        let same_warp = other.thread() / 32 == self.id as u32;
        let missing = if same_warp {
            "no warp or block barrier orders the two"
        } else {
            "no barrier orders the two"
        };
        let message = format!("thread {me} {verb} {name}, which thread {them} {past}, and {missing}");
        let mut trap = Trap::new(FaultKind::Race, lane, message);
        trap.notes
            .push((format!("thread {them} {past} it here"), other.pc()));
        trap
    }

    pub(super) fn thread(&self, linear: u32) -> String {
        let [x, y, z] = thread_of(self.ctx, linear);
        format!("({x}, {y}, {z})")
    }
}

/// An index into an array in registers, checked.
fn element_of(array: &RegisterArray, index: i64, mask: u32, verb: &str) -> Check<usize> {
    match usize::try_from(index) {
        Ok(element) if element < array.count as usize => Ok(element),
        _ => {
            let message = format!(
                "{verb} local `{}[{index}]`, which has {} elements",
                array.name, array.count
            );
            Err(Trap::new(
                FaultKind::OutOfBounds,
                mask.trailing_zeros() & 31,
                message,
            ))
        }
    }
}

/// Words of an allocation from one on, as far as a 32-bit index reaches.
#[inline(always)]
fn words_from(storage: &Storage, first: usize) -> u32 {
    (storage.bytes / 4).saturating_sub(first).min(1 << 31) as u32
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

impl PointerAccess for Machine<'_, '_> {
    fn read(&mut self, lane: u32, address: u64, out: &mut [u8]) -> Result<(), String> {
        let access = raw_bytes();
        for (i, byte) in out.iter_mut().enumerate() {
            let at = address.wrapping_add(i as u64) as i64;
            let spot = self.locate(&access, lane, at, "reads");
            let bits = spot.and_then(|spot| match spot {
                Spot::Global(storage, offset) => Ok(storage.load(offset, 1)),
                spot => self.read_spot(self.call, &access, lane, at, &spot, 0),
            });
            *byte = bits.map_err(|trap| trap.message)? as u8;
        }
        Ok(())
    }

    fn write(&mut self, lane: u32, address: u64, bytes: &[u8]) -> Result<(), String> {
        let access = raw_bytes();
        for (i, byte) in bytes.iter().enumerate() {
            let at = address.wrapping_add(i as u64) as i64;
            let spot = self.locate(&access, lane, at, "writes");
            let done = spot.and_then(|spot| match spot {
                Spot::Global(storage, offset) => {
                    storage.store(offset, 1, *byte as u64);
                    Ok(())
                }
                spot => self.write_spot(self.call, &access, lane, at, &spot, 0, *byte as u64),
            });
            done.map_err(|trap| trap.message)?;
        }
        Ok(())
    }
}

/// Single bytes through a pointer.
fn raw_bytes() -> Access {
    Access {
        region: Region::Pointer,
        kind: Kind::U8,
        count: 1,
        align: 1,
        poll: false,
        name: "*pointer".to_string(),
    }
}
