//! Local arrays at one index for all lanes, in memory and in registers.

use super::Trap;
use super::access::Check;
use super::run::Machine;
use crate::alu::put;
use crate::bytecode::{Access, R, Region, RegisterArray};
use crate::fault::FaultKind;
use crate::findings::Excusable;
use crate::memory::granules;

impl Machine<'_, '_> {
    /// A local array at one index for all lanes.
    pub(super) fn load_row(&mut self, pc: usize, d: R, index: i64, access: u16, mask: u32) -> Check {
        let access = &self.ctx.code.accesses[access as usize];
        let row = self.row(access, index).filter(|_| self.warp.shadows.is_none());
        let Some(row) = row else {
            return self.load_each(pc, d, access, mask, &|_| index);
        };
        for c in 0..access.count as usize {
            self.own_word(row + c, mask, false)?;
            let places = granules(self.ctx.code.local_granule, (row + c) * 32, 32);
            let warp = &mut *self.warp;
            let (first, last) = (places.start, places.end - 1);
            if warp.local_written[first] & warp.local_written[last] & mask != mask {
                return self.load_each(pc, d, access, mask, &|_| index);
            }
            let value = warp.local[row + c];
            put(&mut warp.v32[d as usize + c], &value, mask);
        }
        Ok(())
    }

    pub(super) fn store_row(&mut self, pc: usize, v: R, index: i64, access: u16, mask: u32) -> Check {
        let access = &self.ctx.code.accesses[access as usize];
        let row = self.row(access, index).filter(|_| self.warp.shadows.is_none());
        let Some(row) = row else {
            return self.store_each(pc, v, access, mask, &|_| index);
        };
        for c in 0..access.count as usize {
            self.own_word(row + c, mask, true)?;
            let places = granules(self.ctx.code.local_granule, (row + c) * 32, 32);
            let warp = &mut *self.warp;
            let value = warp.v32[v as usize + c];
            put(&mut warp.local[row + c], &value, mask);
            let places = &mut warp.local_written[places];
            places.iter_mut().for_each(|written| *written |= mask);
        }
        Ok(())
    }

    /// An element of an array in registers.
    pub(super) fn load_indexed(&mut self, pc: usize, d: R, array: u16, index: i64, mask: u32) -> Check {
        let array = &self.ctx.code.register_arrays[array as usize];
        let element = element_of(array, index, mask, "reads")?;
        if let Some(first) = array.init {
            let missing = mask & !self.warp.written[first as usize + element];
            if missing != 0 {
                let message = format!(
                    "reads `{}[{index}]` before this thread has written it",
                    array.name
                );
                let trap = Trap::new(FaultKind::Uninitialized, missing.trailing_zeros(), message);
                self.excuse(pc, Excusable::UnwrittenRead, trap)?;
            }
        }
        let warp = &mut *self.warp;
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

    /// The word of four-byte elements of a local array, if the access passes every check.
    fn row(&self, access: &Access, index: i64) -> Option<usize> {
        let Region::Local(array) = access.region else {
            return None;
        };
        let array = &self.ctx.code.locals[array as usize];
        let count = access.count as i64;
        let inside = index >= 0 && index + count <= array.bytes as i64 / 4;
        let aligned = index * 32 % access.align as i64 == 0;
        (access.kind.bits() == 32 && inside && aligned).then(|| array.offset as usize + index as usize)
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
