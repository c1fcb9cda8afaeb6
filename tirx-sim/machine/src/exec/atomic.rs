//! Atomics: lanes in order, each update atomic for the whole grid.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};

use super::lane_orders::arranged;
use super::place::Spot;
use super::run::Machine;
use super::{Strand, Trap};
use crate::alu::{Bin, LANES, scalar32, scalar64};
use crate::bytecode::{AtomicOp, Strong};
use crate::fault::FaultKind;
use crate::memory::{granules, load_bits, store_bits};
use crate::numeric::Kind;

/// The new bits in memory, where they change.
pub(super) fn update(op: AtomicOp, kind: Kind, old: u64, value: u64, compare: u64) -> Option<u64> {
    match op {
        AtomicOp::Read => None,
        AtomicOp::Exchange => Some(kind.store(value)),
        AtomicOp::Inc | AtomicOp::Dec => {
            let (old, limit) = (old as u32, value as u32);
            let new = match op {
                AtomicOp::Inc if old >= limit => 0,
                AtomicOp::Inc => old + 1,
                _ if old == 0 || old > limit => limit,
                _ => old - 1,
            };
            Some(new.into())
        }
        AtomicOp::And => Some(old & kind.store(value)),
        AtomicOp::Or => Some(old | kind.store(value)),
        AtomicOp::Xor => Some(old ^ kind.store(value)),
        AtomicOp::Min | AtomicOp::Max => {
            let bin = match (op == AtomicOp::Min, kind.is_float(), kind.is_signed()) {
                (true, true, _) => Bin::MinF,
                (true, _, true) => Bin::MinS,
                (true, ..) => Bin::MinU,
                (false, true, _) => Bin::MaxF,
                (false, _, true) => Bin::MaxS,
                (false, ..) => Bin::MaxU,
            };
            let before = kind.load(old);
            let new = if kind.wide() {
                scalar64(bin, before, value)
            } else {
                scalar32(bin, before as u32, value as u32).into()
            };
            Some(kind.store(new))
        }
        AtomicOp::Cas => (old == kind.store(compare)).then(|| kind.store(value)),
        AtomicOp::Add => {
            let before = kind.load(old);
            let sum = match kind {
                Kind::F64 => scalar64(Bin::AddF, before, value),
                _ if kind.wide() => before.wrapping_add(value),
                _ if kind.is_float() => {
                    kind.canonical(scalar32(Bin::AddF, before as u32, value as u32)) as u64
                }
                _ => (before as u32).wrapping_add(value as u32) as u64,
            };
            Some(kind.store(sum))
        }
    }
}

/// Updates the part of a word that an element takes; the element's old bits.
pub(super) fn update_word(
    word: &AtomicU32,
    shift: u32,
    bits: u32,
    mut step: impl FnMut(u64) -> Option<u64>,
) -> u64 {
    let mask = if bits == 32 {
        u32::MAX
    } else {
        ((1 << bits) - 1) << shift
    };
    let part = |word: u32| ((word & mask) >> shift) as u64;
    let result = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| {
        step(part(old)).map(|new| old & !mask | ((new as u32) << shift) & mask)
    });
    match result {
        Ok(old) | Err(old) => part(old),
    }
}

impl Machine<'_, '_> {
    pub(super) fn atomic(&mut self, pc: usize, id: u16, mask: u32, strand: &Strand) -> Result<(), Box<Trap>> {
        let code = self.ctx.code;
        let inst = &code.atomics[id as usize];
        if let Some(multimem) = inst.multimem {
            return self.multimem(pc, inst, multimem, mask, strand);
        }
        let access = &code.accesses[inst.access as usize];
        let kind = access.kind;
        let plus = strand.scalars[inst.plus as usize];
        let register = |machine: &Self, r: u16, lane: usize| {
            if kind.wide() {
                machine.warp.v64[r as usize][lane]
            } else {
                machine.warp.v32[r as usize][lane] as u64
            }
        };
        // The order of lanes is not defined: odd seeds begin with the last lane.
        let backwards = self.ctx.seed & 1 == 1;
        let mut lanes: Vec<usize> = match self.shared.lane_order {
            0 => (0..LANES).filter(|lane| mask >> lane & 1 != 0).collect(),
            order => arranged(inst, self.warp, plus, mask, order),
        };
        if backwards {
            lanes.reverse();
        }
        for lane in lanes {
            let index = if inst.wide {
                self.warp.v64[inst.index as usize][lane].wrapping_add(plus) as i64
            } else {
                self.warp.v32[inst.index as usize][lane].wrapping_add(plus as u32) as i32 as i64
            };
            let value = register(self, inst.value, lane);
            let compare = register(self, inst.compare, lane);
            let step = |old: u64| update(inst.op, kind, old, value, compare);
            let spot = self.locate(access, lane as u32, index, "updates")?;
            let touched = self.shared.touched.len();
            let old = match &spot {
                Spot::Global(storage, offset) => {
                    let (lock, bits) = (
                        self.ctx.memory.lock(storage.address + *offset as u64 / 8),
                        kind.bits(),
                    );
                    let (pc, lane, strong) = (pc, lane as u32, inst.strong);
                    let old =
                        self.strong_global(pc, access, lane, index, 0, storage, *offset, strong, || {
                            if !kind.wide() {
                                let word = &storage.words[offset / 32];
                                return update_word(word, (offset % 32) as u32, bits, step);
                            }
                            let _guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
                            let old = storage.load(*offset, 64);
                            if let Some(new) = step(old) {
                                storage.store(*offset, 64, new);
                            }
                            old
                        })?;
                    self.shared.changes += step(old).is_some_and(|new| new != old) as u64;
                    old
                }
                Spot::Shared(offset) => {
                    let bits = kind.bits();
                    let strong = Strong {
                        bits: bits as u8,
                        ..inst.strong
                    };
                    let places = granules(code.granule, *offset, bits);
                    let misses = self.ctx.misses_in_cluster(self.shared, strong);
                    let now = load_bits(&self.shared.words, *offset, bits);
                    let by = (self.id, pc, lane as u32);
                    let done = self.shared.strong_element(by, places, strong, now, misses);
                    let seen = done.or_else(|finding| {
                        let at = (self.element(access, index, 0), *offset as u32 / 8);
                        let trap = self.found_shared(access, lane as u32, at, finding, "updates");
                        self.read_early(pc, trap).map(|()| None)
                    })?;
                    if let Some(before) = seen {
                        // A loop that waits for the write sees it later.
                        self.shared.changes += 1;
                        before
                    } else {
                        if let Some(new) = step(now) {
                            self.shared.changes += (new != now) as u64;
                            store_bits(&mut self.shared.words, *offset, bits, new);
                        }
                        now
                    }
                }
                Spot::Far(rank, offset) => {
                    let at = (lane as u32, *rank, self.element(access, index, 0));
                    self.far(pc, access, at, *offset, "updates", Some(inst.strong), step)?
                }
                Spot::Local(..) => {
                    let message = format!("an atomic on the local array `{}`", access.name);
                    return Err(Trap::new(FaultKind::OutOfBounds, lane as u32, message));
                }
            };
            if self.ctx.exploring {
                match step(old) {
                    None => self.shared.left_as_it_was(touched, false),
                    Some(new) if new == old => self.shared.left_as_it_was(touched, true),
                    Some(_) => {}
                }
            }
            let old = kind.load(old);
            if kind.wide() {
                self.warp.v64[inst.d as usize][lane] = old;
            } else {
                self.warp.v32[inst.d as usize][lane] = old as u32;
            }
            if self.warp.shadows.is_some() {
                let registers = [inst.d, inst.value];
                self.shade_atomic(pc, (inst.op, kind), registers, lane as u32, &spot, (old, value));
            }
        }
        Ok(())
    }
}
