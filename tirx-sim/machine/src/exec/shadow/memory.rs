//! Shadows on their way to memory and back.

use super::{Held, HeldMemory, MAX_PARTS, Shade, Slot, VALUE, least, number};
use crate::accuracy::Sample;
use crate::bytecode::{AtomicInst, AtomicOp, MultimemInst};
use crate::exec::place::Spot;
use crate::exec::run::Machine;
use crate::numeric::Kind;

/// The shade of an element with these bits in memory, as a register of this kind gets it.
pub(super) fn load(memory: &HeldMemory, at: u64, kind: Kind, bits: u64) -> Shade {
    let width = kind.bits() as u8;
    let held = |at: u64, width: u8, bits: u64| {
        let held = memory
            .get(&at)
            .filter(|held| held.width == width && held.bits == bits);
        held.map(|held| held.value)
    };
    if let Some(value) = held(at, width, bits) {
        return match kind.is_float() || width >= 32 {
            true => Shade::of_value(kind.load(bits), value),
            false => Shade {
                bits: kind.load(bits),
                width,
                ..Shade::of_value(bits, value)
            },
        };
    }
    if kind.is_float() || !matches!(width, 32 | 64) {
        return Shade::NONE;
    }
    // A word of narrower elements.
    for part in [width / 2, width / 4] {
        let mut values = [0.0; MAX_PARTS];
        let mut any = false;
        for (i, value) in values.iter_mut().enumerate().take(usize::from(width / part)) {
            let shift = i as u32 * u32::from(part);
            let own = bits >> shift & ((1 << part) - 1);
            match held(at + u64::from(shift), part, own) {
                Some(found) => {
                    *value = found;
                    any = true;
                }
                None if own == 0 => {}
                // The element is exact: its number is known if it is a float32.
                None if part == 32 => *value = f32::from_bits(own as u32).into(),
                None => *value = f64::NAN,
            }
        }
        if any && values.iter().all(|value| !value.is_nan()) {
            return Shade {
                bits,
                width: part,
                values,
            };
        }
    }
    Shade::NONE
}

/// Puts the shade of a register into memory, where it has been stored as `bits`.
pub(super) fn store(memory: &mut HeldMemory, at: u64, kind: Kind, bits: u64, register: u64, shade: Shade) {
    let width = kind.bits();
    for part in (0..width.max(8)).step_by(8) {
        memory.remove(&(at + u64::from(part)));
    }
    if let Some(value) = shade.value(register) {
        if kind.is_float() || width >= 32 {
            let held = Held {
                bits,
                width: width as u8,
                value,
            };
            memory.insert(at, held);
        }
        return;
    }
    let part = u32::from(shade.width);
    if !matches!(part, 8 | 16 | 32) || part > width || shade.bits != register {
        return;
    }
    for (i, value) in shade.values.iter().enumerate().take((width / part) as usize) {
        let shift = i as u32 * part;
        let held = Held {
            bits: bits >> shift & ((1 << part) - 1),
            width: shade.width,
            value: *value,
        };
        memory.insert(at + u64::from(shift), held);
    }
}

/// Gives an element of memory that a register has updated its shadow: `old` and the operand as registers hold them.
fn update(
    memory: &mut HeldMemory,
    at: u64,
    (op, kind): (AtomicOp, Kind),
    old: u64,
    (value, own): (u64, Shade),
    samples: &mut Vec<Sample>,
) {
    let (x, y) = (number(kind, old), number(kind, value));
    let before = load(memory, at, kind, kind.store(old)).value(old).unwrap_or(x);
    let shadow = own.value(value).unwrap_or(y);
    let (bits, shade) = match op {
        AtomicOp::Exchange => (value, own),
        AtomicOp::Add if kind.is_float() => {
            let bits = super::arithmetic::rounded_sum(kind, old, value);
            let sample = Sample {
                rounded: number(kind, bits),
                exact: x + y,
                shadow: before + shadow,
                term: x.abs().max(y.abs()),
                least: least(kind),
            };
            let shade = Shade::of_value(bits, sample.shadow);
            samples.push(sample);
            (bits, shade)
        }
        AtomicOp::Min | AtomicOp::Max if kind.is_float() => {
            let takes = if op == AtomicOp::Min { y < x } else { y > x };
            let (bits, shadow) = if takes { (value, shadow) } else { (old, before) };
            (bits, Shade::of_value(bits, shadow))
        }
        _ => return,
    };
    store(memory, at, kind, kind.store(bits), bits, shade);
}

/// Moves the shadows of some bits of a memory, from a bit on, to a bit of another one.
pub(in crate::exec) fn carry((from, first): (&HeldMemory, u64), (to, at): (&mut HeldMemory, u64), bits: u64) {
    if from.is_empty() && to.is_empty() {
        return;
    }
    for bit in (0..bits).step_by(8) {
        to.remove(&(at + bit));
        let held = from.get(&(first + bit));
        if let Some(held) = held.filter(|held| bit + u64::from(held.width) <= bits) {
            to.insert(at + bit, *held);
        }
    }
}

impl Machine<'_, '_> {
    fn slot(kind: Kind, register: usize) -> Slot {
        match kind.wide() {
            true => Slot::V64(register as u16),
            false => Slot::V32(register as u16),
        }
    }

    /// The shade of an element that a lane has read.
    fn shade_at(&self, kind: Kind, spot: &Spot, step: usize, lane: u32, bits: u64) -> Shade {
        let Some(accuracy) = &self.ctx.accuracy else {
            return Shade::NONE;
        };
        match spot {
            Spot::Global(storage, offset) => {
                let at = storage.address * 8 + (offset + step) as u64;
                load(&accuracy.global(), at, kind, bits)
            }
            Spot::Shared(offset) => load(&self.shared.held, (offset + step) as u64, kind, bits),
            Spot::Local(offset) => match &self.warp.shadows {
                Some(shadows) => load(&shadows.local[lane as usize], (offset + step) as u64, kind, bits),
                None => Shade::NONE,
            },
            Spot::Far(rank, offset) => {
                let block = self.peers.others().find(|(other, _)| other == rank);
                let held = block.map(|(_, block)| &block.shared.held);
                held.map_or(Shade::NONE, |held| load(held, (offset + step) as u64, kind, bits))
            }
        }
    }

    fn hold(&mut self, kind: Kind, spot: &Spot, step: usize, lane: u32, bits: u64, from: (u64, Shade)) {
        let Some(accuracy) = &self.ctx.accuracy else {
            return;
        };
        let (register, shade) = from;
        match spot {
            Spot::Global(storage, offset) => {
                let at = storage.address * 8 + (offset + step) as u64;
                store(&mut accuracy.global(), at, kind, bits, register, shade);
            }
            Spot::Shared(offset) => {
                store(
                    &mut self.shared.held,
                    (offset + step) as u64,
                    kind,
                    bits,
                    register,
                    shade,
                );
            }
            Spot::Local(offset) => {
                if let Some(shadows) = &mut self.warp.shadows {
                    let memory = &mut shadows.local[lane as usize];
                    store(memory, (offset + step) as u64, kind, bits, register, shade);
                }
            }
            Spot::Far(rank, offset) => {
                if let Some(block) = self.peers.get(*rank) {
                    let memory = &mut block.shared.held;
                    store(memory, (offset + step) as u64, kind, bits, register, shade);
                }
            }
        }
    }

    /// The bytes of registers that an asynchronous store takes have these shadows, by the distance in bits from the first.
    pub(in crate::exec) fn shade_taken(&self, kind: Kind, registers: &[u16], lane: usize) -> HeldMemory {
        let mut held = HeldMemory::default();
        if self.warp.shadows.is_some() {
            for (i, register) in registers.iter().enumerate() {
                let slot = Self::slot(kind, (*register).into());
                let value = self.register_of(slot, lane);
                let at = i as u64 * u64::from(kind.bits());
                store(
                    &mut held,
                    at,
                    kind,
                    kind.store(value),
                    value,
                    self.shade_of(slot, lane),
                );
            }
        }
        held
    }

    /// The bits of a vector register's lane.
    fn register_of(&self, slot: Slot, lane: usize) -> u64 {
        match slot {
            Slot::V64(r) => self.warp.v64[r as usize][lane],
            Slot::V32(r) | Slot::S(r) => u64::from(self.warp.v32[r as usize][lane]),
        }
    }

    /// The shadows behind a `multimem` access of a lane: those that it has read from each part of the window, or the one that it writes
    /// there.
    pub(in crate::exec) fn shade_multimem(
        &mut self,
        pc: usize,
        (inst, multimem): (&AtomicInst, MultimemInst),
        kind: Kind,
        lane: usize,
        parts: &[(u64, u64)],
        value: u64,
    ) {
        let Some(accuracy) = &self.ctx.accuracy else {
            return;
        };
        let mut samples = Vec::new();
        if inst.op != AtomicOp::Read {
            let own = self.shade_of(Self::slot(kind, inst.value.into()), lane);
            let mut held = accuracy.global();
            for (at, old) in parts {
                update(&mut held, *at, (inst.op, kind), *old, (value, own), &mut samples);
            }
            drop(held);
            accuracy.note(pc, &samples);
            return;
        }
        let held = accuracy.global();
        let read = parts.iter().map(|(at, bits)| {
            let shadow = load(&held, *at, kind, kind.store(*bits)).value(*bits);
            let number = number(kind, *bits);
            (*bits, number, shadow.unwrap_or(number))
        });
        let read: Vec<(u64, f64, f64)> = read.collect();
        drop(held);
        let to = Self::slot(kind, inst.d.into());
        let bits = self.register_of(to, lane);
        let shadow = match multimem.combine {
            AtomicOp::Add if kind.is_float() => {
                let sample = Sample {
                    rounded: number(kind, bits),
                    exact: read.iter().map(|(_, number, _)| number).sum(),
                    shadow: read.iter().map(|(_, _, shadow)| shadow).sum(),
                    term: read.iter().map(|(_, number, _)| number.abs()).fold(0.0, f64::max),
                    least: least(kind),
                };
                accuracy.note(pc, &[sample]);
                Some(read.iter().map(|(_, _, shadow)| shadow).sum())
            }
            _ => read
                .iter()
                .find(|(own, ..)| *own == bits)
                .map(|(_, _, shadow)| *shadow),
        };
        let shade = match shadow.filter(|_| kind.is_float()) {
            Some(shadow) => Shade::of_value(bits, shadow),
            None => Shade::NONE,
        };
        self.set_shade(to, lane, shade);
    }

    /// A lane has loaded element `c` of an access, `bits`, to a vector register.
    pub(in crate::exec) fn shade_loaded(
        &mut self,
        kind: Kind,
        register: usize,
        (lane, c): (u32, u16),
        spot: &Spot,
        bits: u64,
    ) {
        let step = (u32::from(c) * kind.bits()) as usize;
        let shade = self.shade_at(kind, spot, step, lane, bits);
        self.set_shade(Self::slot(kind, register), lane as usize, shade);
    }

    /// The same to a scalar register.
    pub(in crate::exec) fn shade_loaded_scalar(
        &mut self,
        kind: Kind,
        register: u16,
        (lane, c): (u32, u16),
        spot: &Spot,
        bits: u64,
    ) {
        let step = (u32::from(c) * kind.bits()) as usize;
        let shade = self.shade_at(kind, spot, step, lane, bits);
        self.set_shade(Slot::S(register), 0, shade);
    }

    /// A lane has stored a vector register as `bits`.
    pub(in crate::exec) fn shade_stored(
        &mut self,
        kind: Kind,
        register: usize,
        (lane, c): (u32, u16),
        spot: &Spot,
        bits: u64,
    ) {
        let step = (u32::from(c) * kind.bits()) as usize;
        let slot = Self::slot(kind, register);
        let value = self.register_of(slot, lane as usize);
        let shade = self.shade_of(slot, lane as usize);
        self.hold(kind, spot, step, lane, bits, (value, shade));
    }

    /// A lane has updated an element: `old` and the operand's register, as bits of registers. Gives the shade of the old value.
    pub(in crate::exec) fn shade_atomic(
        &mut self,
        pc: usize,
        (op, kind): (AtomicOp, Kind),
        [to, operand]: [u16; 2],
        lane: u32,
        spot: &Spot,
        (old, value): (u64, u64),
    ) {
        let slot = |r: u16| Self::slot(kind, r as usize);
        let before = self.shade_at(kind, spot, 0, lane, kind.store(old));
        let own = self.shade_of(slot(operand), lane as usize);
        let mut samples = Vec::new();
        let change = |memory: &mut HeldMemory, at: u64, samples: &mut Vec<Sample>| {
            update(memory, at, (op, kind), old, (value, own), samples);
        };
        match (spot, &self.ctx.accuracy) {
            (_, None) => {}
            (Spot::Global(storage, offset), Some(accuracy)) => {
                let at = storage.address * 8 + *offset as u64;
                change(&mut accuracy.global(), at, &mut samples);
            }
            (Spot::Shared(offset), _) => change(&mut self.shared.held, *offset as u64, &mut samples),
            (Spot::Far(rank, offset), _) => {
                if let Some(block) = self.peers.get(*rank) {
                    change(&mut block.shared.held, *offset as u64, &mut samples);
                }
            }
            (Spot::Local(_), _) => {}
        }
        self.note_samples(pc, &samples);
        debug_assert!(before.width == 0 || before.width == VALUE || !kind.is_float());
        self.set_shade(slot(to), lane as usize, before);
    }
}
