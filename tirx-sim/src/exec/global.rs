//! Accesses to global memory, as the ledger of the launch sees them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::access::Check;
use super::ledger::{Actor, Conflict, Sheet};
use super::run::Machine;
use super::shadow::Finding;
use super::{Context, Shared, Trap};
use crate::alu::{LANES, Lanes32};
use crate::bytecode::{Access, R};
use crate::fault::FaultKind;
use crate::memory::Storage;

impl Shared {
    /// The block takes part in an event that orders blocks.
    pub(super) fn synchronize(&mut self, ctx: &Context<'_>) {
        if let Some(ledger) = &ctx.ledger {
            self.acquired = ledger.synchronize(self.linear as u32);
        }
    }

    /// The same of one warp, which it orders within the block too.
    pub(super) fn publish(&mut self, ctx: &Context<'_>, warp: usize) {
        if ctx.ledger.is_some() {
            self.order.publish(warp);
            if ctx.cluster.iter().any(|d| *d > 1) {
                self.order.reveal();
                self.order.settle(&mut self.cells, false);
            }
            self.synchronize(ctx);
        }
    }
}

/// Lanes of a mask.
fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| mask >> lane & 1 != 0)
}

impl<'a> Machine<'a, '_> {
    /// Who accesses, if races are looked for.
    #[inline(always)]
    fn actor(&self, pc: usize, atomic: bool) -> Option<Actor<'_>> {
        let ledger = self.ctx.ledger.as_ref()?;
        let shared = &*self.shared;
        let stamp = shared.order.stamp(self.id, pc, atomic);
        Some(ledger.actor(&shared.order, stamp, shared.linear as u32, shared.acquired))
    }

    /// The places of an allocation, where the ledger looks after it.
    fn sheet(&mut self, storage: &Storage) -> Option<Arc<Sheet>> {
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

    /// Lanes read words; `at` are their numbers from `first` on.
    pub(super) fn note_read_words(
        &mut self,
        pc: usize,
        sheet: &Sheet,
        first: usize,
        at: &Lanes32,
        mask: u32,
        access: &Access,
    ) -> Check {
        if access.poll {
            for lane in lanes(mask) {
                self.poll(pc, sheet, (first + at[lane] as usize) * 32, 32);
            }
            return Ok(());
        }
        let (Some(ledger), Some(actor)) = (&self.ctx.ledger, self.actor(pc, false)) else {
            return Ok(());
        };
        let mut result = Ok(());
        // A word is one place, or several where the kernel has narrower accesses.
        for part in ledger.places(0, 32) {
            let places = lanes(mask).map(|lane| {
                let place = ledger.places((first + at[lane] as usize) * 32, 32).start;
                (lane as u32, place + part)
            });
            result = result.and(sheet.each(ledger, places, |place, lane| actor.read(place, lane)));
        }
        result.map_err(|(lane, conflict)| {
            self.unordered(access, lane, at[lane as usize] as i64, conflict, "reads")
        })
    }

    #[expect(clippy::too_many_arguments, reason = "an access has many sides")]
    pub(super) fn store_global_words(
        &mut self,
        pc: usize,
        v: R,
        storage: &Storage,
        sheet: &Sheet,
        first: usize,
        at: &Lanes32,
        mask: u32,
        access: &Access,
    ) -> Check {
        let (Some(ledger), Some(actor)) = (&self.ctx.ledger, self.actor(pc, false)) else {
            return Ok(());
        };
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
                actor.write(place, lane, word.load(Ordering::Relaxed) == value)?;
            }
            // The value goes there when all its places are noted: a later lane's is compared with it.
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

    /// A lane reads one element.
    #[expect(clippy::too_many_arguments, reason = "an access has many sides")]
    pub(super) fn note_read(
        &mut self,
        pc: usize,
        access: &Access,
        lane: u32,
        index: i64,
        c: u16,
        storage: &Storage,
        offset: usize,
    ) -> Check {
        let Some(sheet) = self.sheet(storage) else {
            return Ok(());
        };
        let size = access.kind.bits();
        if access.poll {
            self.poll(pc, &sheet, offset, size);
            return Ok(());
        }
        let (Some(ledger), Some(actor)) = (&self.ctx.ledger, self.actor(pc, false)) else {
            return Ok(());
        };
        let places = ledger.places(offset, size).map(|place| (lane, place));
        let done = sheet.each(ledger, places, |place, lane| actor.read(place, lane));
        done.map_err(|(_, conflict)| {
            self.unordered(access, lane, self.element(access, index, c), conflict, "reads")
        })
    }

    /// A lane is about to write one element; `same` says that it is there already.
    #[expect(clippy::too_many_arguments, reason = "an access has many sides")]
    pub(super) fn note_write(
        &mut self,
        pc: usize,
        access: &Access,
        lane: u32,
        index: i64,
        c: u16,
        storage: &Storage,
        offset: usize,
        same: bool,
    ) -> Check {
        let Some(sheet) = self.sheet(storage) else {
            return Ok(());
        };
        let (Some(ledger), Some(actor)) = (&self.ctx.ledger, self.actor(pc, false)) else {
            return Ok(());
        };
        let places = ledger
            .places(offset, access.kind.bits())
            .map(|place| (lane, place));
        let done = sheet.each(ledger, places, |place, lane| actor.write(place, lane, same));
        done.map_err(|(_, conflict)| {
            self.unordered(access, lane, self.element(access, index, c), conflict, "writes")
        })
    }

    /// A lane is about to update an element atomically.
    pub(super) fn note_atomic(
        &mut self,
        pc: usize,
        access: &Access,
        lane: u32,
        index: i64,
        storage: &Storage,
        offset: usize,
    ) -> Check {
        let Some(sheet) = self.sheet(storage) else {
            return Ok(());
        };
        let (Some(ledger), Some(actor)) = (&self.ctx.ledger, self.actor(pc, true)) else {
            return Ok(());
        };
        let places = ledger
            .places(offset, access.kind.bits())
            .map(|place| (lane, place));
        let done = sheet.each(ledger, places, |place, lane| actor.atomic(place, lane));
        done.map_err(|(_, conflict)| {
            self.unordered(access, lane, self.element(access, index, 0), conflict, "updates")
        })
    }

    /// A loop waits for what is at an offset, in bits.
    fn poll(&mut self, pc: usize, sheet: &Sheet, offset: usize, size: u32) {
        let mut writers = Vec::new();
        if let (Some(ledger), Some(actor)) = (&self.ctx.ledger, self.actor(pc, false)) {
            let places = ledger.places(offset, size).map(|place| (0, place));
            let looked = sheet.each(ledger, places, |place, _| {
                writers.extend(actor.poll(place));
                Ok(())
            });
            debug_assert!(looked.is_ok(), "a poll conflicts with nothing");
        }
        for writer in writers {
            self.shared.order.acquire(self.id, writer);
        }
        self.shared.publish(self.ctx, self.id);
    }

    /// The error of a conflict.
    fn unordered(
        &self,
        access: &Access,
        lane: u32,
        element: i64,
        conflict: Conflict,
        verb: &str,
    ) -> Box<Trap> {
        let (other, finding) = match conflict {
            Conflict::Write(event) => (event, Finding::AfterWrite(event.stamp)),
            Conflict::Read(event) => (event, Finding::AfterRead(event.stamp)),
        };
        if other.block == self.shared.linear as u32 {
            return self.found(access, lane, element, finding, verb);
        }
        let past = match conflict {
            Conflict::Write(_) if other.stamp.is_atomic() => "updated atomically",
            Conflict::Write(_) => "wrote",
            Conflict::Read(_) => "read",
        };
        let me = self.thread(self.id as u32 * 32 + lane);
        let them = self.thread(other.stamp.thread());
        let [x, y, _] = self.ctx.grid.map(|d| d.max(1));
        let block = other.block;
        let block = format!("({}, {}, {})", block % x, block / x % y, block / x / y);
        let name = &access.name;
        let message = format!(
            "thread {me} {verb} `{name}[{element}]`, which thread {them} of block {block} {past}, and nothing \
             orders the two blocks"
        );
        let mut trap = Trap::new(FaultKind::Race, lane, message);
        trap.notes.push((
            format!("thread {them} of block {block} {past} it here"),
            other.stamp.pc(),
        ));
        trap
    }
}
