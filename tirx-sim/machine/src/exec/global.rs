//! Accesses to global memory, checked by the launch's ledger.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::access::Check;
use super::ledger::Sheet;
use super::order::{Conflict, Kind, Mark, Scope, Strong};
use super::prior::early;
use super::run::Machine;
use super::{Shared, Trap};
use crate::alu::{LANES, Lanes32};
use crate::bytecode::{Access, R, Region};
use crate::explore::Object;
use crate::fault::FaultKind;
use crate::findings::Excusable;
use crate::memory::Storage;

/// Lanes of a mask.
fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| mask >> lane & 1 != 0)
}

impl Machine<'_, '_> {
    /// The histories of an allocation, where the ledger tracks it.
    fn sheet(&mut self, storage: &Arc<Storage>) -> Option<Arc<Sheet>> {
        let ledger = self.ctx.ledger.as_ref()?;
        match &self.shared.sheet {
            Some((address, sheet)) if *address == storage.address => sheet.clone(),
            _ => {
                let sheet = ledger.sheet(storage);
                self.shared.sheet = Some((storage.address, sheet.clone()));
                sheet
            }
        }
    }

    /// The error of a conflict, unless the launch goes on after it.
    fn judge(
        &self,
        pc: usize,
        access: &Access,
        (lane, name, element): (u32, Option<String>, i64),
        conflict: Conflict,
        verb: &str,
    ) -> Check {
        let trap = match name {
            Some(name) => self.conflicting(&name, lane, conflict, verb),
            None => self.unordered(access, lane, element, conflict, verb),
        };
        match conflict {
            Conflict::Alias(_) => self.excuse(pc, Excusable::MissingFence, trap),
            _ => Err(trap),
        }
    }

    /// The name of an element of a tensor that an address leads to, on several devices: `F[0]` of rank 1.
    fn name_on_rank(&self, access: &Access, storage: &Arc<Storage>, offset: usize) -> Option<String> {
        if self.ctx.ranks() == 1 || access.region != Region::Pointer {
            return None;
        }
        for (rank, device) in self.ctx.devices.iter().enumerate() {
            for (param, (name, _)) in device.params.iter().zip(&self.ctx.code.params) {
                if let Some((of, base)) = param
                    && Arc::ptr_eq(of, storage)
                {
                    let name = name.strip_suffix("_ptr").unwrap_or(name);
                    let element = (offset as i64 - *base as i64 * 8) / i64::from(access.kind.bits());
                    return Some(format!("`{name}[{element}]` of rank {rank}"));
                }
            }
        }
        None
    }

    /// The mark of an access, which may be made through a multicast window.
    #[inline(always)]
    fn through(&self, access: &Access, mark: Mark) -> Mark {
        match access.window && self.ctx.ranks() > 1 {
            true => mark.through_window(),
            false => mark,
        }
    }

    /// An element may be in use by the grid before this one.
    #[inline]
    fn check_prior(
        &self,
        access: &Access,
        lane: u32,
        element: i64,
        storage: &Arc<Storage>,
        offset: usize,
        writes: bool,
    ) -> Check {
        let Some(before) = &self.ctx.before else {
            return Ok(());
        };
        if !self.ctx.check_races || self.shared.order.known(self.id, lane).prior {
            return Ok(());
        }
        let Some(why) = before.forbids(storage, offset, access.kind.bits(), writes) else {
            return Ok(());
        };
        let message = format!(
            "{} `{}[{element}]` of global memory, {why}: no griddepcontrol.wait orders the two",
            if writes { "writes" } else { "reads" },
            access.name
        );
        Err(Trap::new(FaultKind::Race, lane, message))
    }

    /// Lanes read words; `at` are their word numbers relative to `first`.
    pub(super) fn note_read_words(
        &mut self,
        pc: usize,
        sheet: &Sheet,
        first: usize,
        at: &Lanes32,
        mask: u32,
        access: &Access,
    ) -> Check {
        let Some(ledger) = &self.ctx.ledger else {
            return Ok(());
        };
        let order = &self.shared.order;
        let mark = order.mark(self.id, pc, Kind::Plain);
        let mut result = Ok(());
        // A word is one place, or several where the kernel has narrower accesses.
        for part in ledger.places(0, 32) {
            let places = lanes(mask).map(|lane| {
                let place = ledger.places((first + at[lane] as usize) * 32, 32).start;
                (lane as u32, place + part)
            });
            result = result.and(sheet.each(ledger, places, |place, lane| {
                place.read(order, mark.with_lanes(1 << lane), lane, access.swapped)
            }));
        }
        match result {
            Ok(()) => Ok(()),
            Err((lane, conflict)) => self.judge(
                pc,
                access,
                (lane, None, at[lane as usize] as i64),
                conflict,
                "reads",
            ),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "an access has many properties")]
    pub(super) fn store_global_words(
        &mut self,
        pc: usize,
        v: R,
        storage: &Arc<Storage>,
        sheet: &Sheet,
        first: usize,
        at: &Lanes32,
        mask: u32,
        access: &Access,
    ) -> Check {
        let Some(ledger) = &self.ctx.ledger else {
            return Ok(());
        };
        let order = &self.shared.order;
        let mark = order.mark(self.id, pc, Kind::Plain);
        let values = &self.warp.v32[v as usize];
        let words = &storage.words[first..];
        let parts = ledger.places(0, 32);
        let places = lanes(mask).flat_map(|lane| {
            let place = ledger.places((first + at[lane] as usize) * 32, 32).start;
            parts.clone().map(move |part| (lane as u32, place + part))
        });
        let last = parts.end - 1;
        let mut part = 0;
        let done = sheet.each_or_none(ledger, places, |place, lane| {
            let (word, value) = (&words[at[lane as usize] as usize], values[lane as usize]);
            if let Some(place) = place {
                let same = word.load(Ordering::Relaxed) == value;
                place.write(order, mark.with_lanes(1 << lane), lane, same)?;
            }
            // The value is written when all its places have been checked: a later lane's value is compared with it.
            if part == last {
                word.store(value, Ordering::Relaxed);
                part = 0;
            } else {
                part += 1;
            }
            Ok(())
        });
        done.map_err(|(lane, conflict)| {
            self.unordered(access, lane, at[lane as usize] as i64, conflict, "writes")
        })
    }

    /// A lane reads one element: its bits.
    #[expect(clippy::too_many_arguments, reason = "an access has many properties")]
    pub(super) fn read_global(
        &mut self,
        pc: usize,
        access: &Access,
        lane: u32,
        index: i64,
        c: u16,
        storage: &Arc<Storage>,
        offset: usize,
    ) -> Check<u64> {
        self.check_prior(
            access,
            lane,
            self.element(access, index, c),
            storage,
            offset,
            false,
        )?;
        let size = access.kind.bits();
        let sheet = self.sheet(storage);
        if let (Some(ledger), Some(sheet)) = (&self.ctx.ledger, &sheet) {
            let order = &self.shared.order;
            let mark = self.through(access, order.mark(self.id, pc, Kind::Plain).with_lanes(1 << lane));
            let places = ledger.places(offset, size).map(|place| (lane, place));
            let done = sheet.each(ledger, places, |place, lane| match access.constant {
                true => place.read_constant(order, mark, lane),
                false => place.read(order, mark, lane, access.swapped),
            });
            if let Err((_, conflict)) = done {
                let name = self.name_on_rank(access, storage, offset);
                self.judge(
                    pc,
                    access,
                    (lane, name, self.element(access, index, c)),
                    conflict,
                    "reads",
                )?;
            }
        }
        let early = early(self.ctx, self.shared, storage).unwrap_or(&**storage);
        Ok(early.load(offset, size))
    }

    /// A lane writes one element.
    #[expect(clippy::too_many_arguments, reason = "an access has many properties")]
    pub(super) fn write_global(
        &mut self,
        pc: usize,
        access: &Access,
        lane: u32,
        index: i64,
        c: u16,
        storage: &Arc<Storage>,
        offset: usize,
        bits: u64,
    ) -> Check {
        self.check_prior(
            access,
            lane,
            self.element(access, index, c),
            storage,
            offset,
            true,
        )?;
        let size = access.kind.bits();
        let early = early(self.ctx, self.shared, storage);
        let store = || {
            storage.store(offset, size, bits);
            early.iter().for_each(|early| early.store(offset, size, bits));
        };
        let sheet = self.sheet(storage);
        if let (Some(ledger), Some(sheet)) = (&self.ctx.ledger, &sheet) {
            let same = storage.load(offset, size) == bits;
            let order = &self.shared.order;
            let mark = self.through(access, order.mark(self.id, pc, Kind::Plain).with_lanes(1 << lane));
            let places = ledger.places(offset, size).map(|place| (lane, place));
            let done = sheet.each(ledger, places, |place, lane| place.write(order, mark, lane, same));
            if let Err((_, conflict)) = done {
                let name = self.name_on_rank(access, storage, offset);
                self.judge(
                    pc,
                    access,
                    (lane, name, self.element(access, index, c)),
                    conflict,
                    "writes",
                )?;
            }
        }
        store();
        Ok(())
    }

    /// A lane accesses an element strongly: `step` performs the access under the lock of the place.
    ///
    /// From seed 2 on a read may miss the last write of another block ([`Place::missed`]), as on a GPU, where nothing but
    /// an order of the two makes a block see what another one has written.
    #[expect(clippy::too_many_arguments, reason = "an access has many properties")]
    pub(super) fn strong_global(
        &mut self,
        pc: usize,
        access: &Access,
        lane: u32,
        index: i64,
        c: u16,
        storage: &Arc<Storage>,
        offset: usize,
        strong: Strong,
        step: impl FnOnce() -> u64,
    ) -> Check<u64> {
        let element = self.element(access, index, c);
        self.check_prior(access, lane, element, storage, offset, strong.writes)?;
        let word = (storage.address + offset as u64 / 8) / 4;
        for word in word..word + u64::from(access.kind.bits().div_ceil(32)) {
            self.shared.touched_strongly(Object::Global(word), strong.writes);
        }
        self.shared.wait_for_turn(self.ctx);
        let sheet = self.sheet(storage);
        let (Some(ledger), Some(sheet)) = (&self.ctx.ledger, &sheet) else {
            return Ok(step());
        };
        let plain = self
            .shared
            .order
            .mark(self.id, pc, Kind::Plain)
            .with_lanes(1 << lane);
        let mark = self.through(access, plain);
        let misses = self.ctx.misses_writes() && strong.scope >= Scope::Gpu && !strong.polled;
        let Shared {
            order,
            draws,
            changes,
            ..
        } = &mut *self.shared;
        let places = ledger.places(offset, access.kind.bits());
        let (first, id) = (places.len(), self.id);
        let strong = Strong {
            bits: access.kind.bits() as u8,
            ..strong
        };
        let mut left = places.len();
        let mut step = Some(step);
        let mut result = None;
        let places = places.map(|place| (lane, place));
        let done = sheet.each_or_none(ledger, places, |place, lane| {
            if result.is_some() {
                return Ok(());
            }
            if let Some(place) = place {
                // Values are those of the whole element: its first place decides.
                let misses = misses && left == first;
                if misses && !strong.writes {
                    if let Some(before) = place.missed(order, id, lane)
                        && draws.misses()
                    {
                        // A loop that waits for the write sees it later.
                        *changes += 1;
                        result = Some(before);
                        return Ok(());
                    }
                    place.seen(order.block);
                }
                let keeps = !strong.same && place.releases_nothing();
                let before = (misses && keeps).then(|| storage.load(offset, access.kind.bits()));
                place.strong(order, mark, lane, strong)?;
                if misses && strong.writes {
                    place.replaced(before, mark);
                }
            }
            left -= 1;
            // Performed under the lock of the last of its places.
            if left == 0 {
                result = step.take().map(|step| step());
            }
            Ok(())
        });
        let verb = match (strong.reads, strong.writes) {
            (true, true) => "updates",
            (_, true) => "writes",
            _ => "reads",
        };
        done.map_err(|(_, conflict)| {
            let name = self.name_on_rank(access, storage, offset);
            let name = name.unwrap_or_else(|| format!("`{}[{element}]`", access.name));
            self.unordered_strong(&name, (lane, strong.scope), conflict, verb)
        })?;
        // An element covers at least one place.
        match (result, step) {
            (None, Some(step)) => Ok(step()),
            (result, _) => result.ok_or_else(|| Trap::new(FaultKind::OutOfBounds, lane, "no place")),
        }
    }
}

/// A loop condition reads a place of shared memory in order to wait for it.
pub(super) const POLL: Strong = Strong {
    scope: super::order::Scope::Gpu,
    acquires: true,
    releases: false,
    reads: true,
    writes: false,
    reduces: false,
    polled: true,
    same: false,
    bits: 0,
};

/// A plain write to such a place.
pub(super) const TELL: Strong = Strong {
    scope: super::order::Scope::Gpu,
    acquires: false,
    releases: true,
    reads: false,
    writes: true,
    reduces: false,
    polled: true,
    same: false,
    bits: 0,
};
