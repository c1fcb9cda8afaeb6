//! Shadows on their way to memory and back.

use super::{Held, HeldMemory, MAX_PARTS, Shade, Slot, VALUE, least, number};
use crate::accuracy::Sample;
use crate::bytecode::AtomicOp;
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
    if kind.is_float() || width != 32 {
        return Shade::NONE;
    }
    // A word of narrow elements.
    for part in [16u8, 8] {
        let mut values = [0.0; MAX_PARTS];
        let mut any = false;
        for (i, value) in values.iter_mut().enumerate().take(32 / usize::from(part)) {
            let shift = i as u32 * u32::from(part);
            let own = bits >> shift & ((1 << part) - 1);
            match held(at + u64::from(shift), part, own) {
                Some(found) => {
                    *value = found;
                    any = true;
                }
                None if own == 0 => {}
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
    if !matches!(part, 8 | 16) || part > width || shade.bits != register {
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
            Spot::Far(..) => Shade::NONE,
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
            Spot::Far(..) => {}
        }
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
        let value = match slot {
            Slot::V64(r) => self.warp.v64[r as usize][lane as usize],
            Slot::V32(r) | Slot::S(r) => u64::from(self.warp.v32[r as usize][lane as usize]),
        };
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
        let (x, y) = (number(kind, old), number(kind, value));
        let (shadow_x, shadow_y) = (before.value(old).unwrap_or(x), own.value(value).unwrap_or(y));
        match op {
            AtomicOp::Exchange => self.hold(kind, spot, 0, lane, kind.store(value), (value, own)),
            AtomicOp::Add if kind.is_float() => {
                let bits = super::arithmetic::rounded_sum(kind, old, value);
                let sample = Sample {
                    rounded: number(kind, bits),
                    exact: x + y,
                    shadow: shadow_x + shadow_y,
                    term: x.abs().max(y.abs()),
                    least: least(kind),
                };
                let shade = Shade::of_value(bits, sample.shadow);
                self.note_samples(pc, &[sample]);
                self.hold(kind, spot, 0, lane, kind.store(bits), (bits, shade));
            }
            AtomicOp::Min | AtomicOp::Max if kind.is_float() => {
                let takes = if op == AtomicOp::Min { y < x } else { y > x };
                let (bits, shadow) = if takes { (value, shadow_y) } else { (old, shadow_x) };
                let shade = Shade::of_value(bits, shadow);
                self.hold(kind, spot, 0, lane, kind.store(bits), (bits, shade));
            }
            _ => {}
        }
        debug_assert!(before.width == 0 || before.width == VALUE || !kind.is_float());
        self.set_shade(slot(to), lane as usize, before);
    }
}
