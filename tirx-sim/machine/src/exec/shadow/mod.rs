//! Shadows: what each float value would be without rounding, for a table of errors by statement.
//!
//! A shadow is the value in double precision, computed from the shadows of its operands by the operations of the kernel. Integers,
//! addresses and control flow follow the rounded values, and so do minima and maxima: the shadow of a chosen value is that of
//! the chosen operand. A value without a shadow is exact: an argument of the kernel, a constant, an integer.
//!
//! | file | question |
//! |---|---|
//! | `arithmetic` | what is the shadow of an instruction's result? |
//! | `packed` | what are the elements of a register, and what do operations on its bits do to them? |
//! | `exchange` | what do lanes hand on to one another? |
//! | `memory` | how do shadows come to memory and back? |
//! | `tensor` | what do tensor cores, and copies of whole tiles, do to shadows? |
//!
//! **Shades.** A register's lane has a [`Shade`]: the bits for which it holds, and the shadow. A shade whose bits are not those of the
//! register is void, so an instruction that this module does not know leaves an exact value behind and never a wrong shadow. A shade may
//! be of several narrow elements that share a register. Memory has the same by address ([`Held`]).
//!
//! **Errors.** An operation on rounded operands has an exact result (in double precision); the rounded result differs from this by the
//! error that the statement *introduces*. The exact result differs from the shadow by the error that it was *given*: the errors of
//! its operands, which the operation may enlarge. Errors are relative. An underflow is counted and is no relative error: it would
//! be one of 100 percent wherever `exp` of a large negative number is 0.

mod arithmetic;
mod exchange;
mod memory;
mod packed;
mod tensor;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::accuracy::{Sample, ShadowValue, StatementAccuracy};
use crate::alu::LANES;
use crate::bytecode::{Code, R};
use crate::numeric::Kind;

pub(super) use memory::carry;
pub(crate) use tensor::Carried;
pub(super) use tensor::{Reduction, Shaded, accumulator};

/// Elements that share a register at most.
const MAX_PARTS: usize = 4;

/// A register holds one value, in the form of its kind.
const VALUE: u8 = 64;

/// The shadows of a register's lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shade {
    /// The bits of the register for which it holds.
    bits: u64,
    /// [`VALUE`], or the bits of the elements that share the register (32 in a register of 64 bits); 0 without a shadow.
    width: u8,
    values: [f64; MAX_PARTS],
}

impl Shade {
    const NONE: Shade = Shade {
        bits: 0,
        width: 0,
        values: [0.0; MAX_PARTS],
    };

    fn of_value(bits: u64, value: f64) -> Shade {
        let mut values = [0.0; MAX_PARTS];
        values[0] = value;
        Shade {
            bits,
            width: VALUE,
            values,
        }
    }

    /// The shadow of the one value in a register with these bits.
    fn value(&self, bits: u64) -> Option<f64> {
        (self.width == VALUE && self.bits == bits).then_some(self.values[0])
    }

    /// The shadow of a part of `width` bits in a register with these bits.
    fn part(&self, bits: u64, width: u8, part: usize) -> Option<f64> {
        (self.width == width && self.bits == bits)
            .then(|| self.values.get(part).copied())
            .flatten()
    }
}

/// The shadow of an element in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    bits: u64,
    width: u8,
    value: f64,
}

impl Held {
    pub(super) fn new(width: u32, bits: impl Into<u64>, value: f64) -> Held {
        Held {
            bits: bits.into(),
            width: width as u8,
            value,
        }
    }

    /// The shadow, if the element has this width and these bits.
    pub(super) fn value_of(&self, width: u32, bits: impl Into<u64>) -> Option<f64> {
        (u32::from(self.width) == width && self.bits == bits.into()).then_some(self.value)
    }
}

/// Shadows of memory, by the number of its first bit.
pub(crate) type HeldMemory = FxHashMap<u64, Held>;

/// The shadows of a warp's registers and local memory.
#[derive(Debug, Default)]
pub(crate) struct Shadows {
    v32: Vec<[Shade; LANES]>,
    v64: Vec<[Shade; LANES]>,
    scalars: Vec<Shade>,
    /// By lane.
    pub(super) local: Vec<HeldMemory>,
}

impl Shadows {
    pub(super) fn new(code: &Code) -> Shadows {
        Shadows {
            v32: vec![[Shade::NONE; LANES]; code.v32],
            v64: vec![[Shade::NONE; LANES]; code.v64],
            scalars: vec![Shade::NONE; code.scalars.len()],
            local: (0..LANES).map(|_| HeldMemory::default()).collect(),
        }
    }
}

/// A register.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slot {
    V32(R),
    V64(R),
    S(R),
}

/// The errors of a launch.
#[derive(Debug, Default)]
pub(crate) struct Accuracy {
    rows: Mutex<BTreeMap<usize, StatementAccuracy>>,
    global: Mutex<HeldMemory>,
}

impl Accuracy {
    fn rows(&self) -> MutexGuard<'_, BTreeMap<usize, StatementAccuracy>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds results to the errors of a statement.
    pub(super) fn note(&self, pc: usize, samples: &[Sample]) {
        if !samples.is_empty() {
            let mut rows = self.rows();
            let row = rows.entry(pc).or_default();
            samples.iter().for_each(|sample| row.note(sample));
        }
    }

    pub(super) fn global(&self) -> MutexGuard<'_, HeldMemory> {
        self.global.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The statements with their errors, and the shadows of global memory.
    pub(crate) fn finish(self, code: &Code) -> (Vec<crate::accuracy::LineAccuracy>, Vec<ShadowValue>) {
        let rows = self.rows.into_inner().unwrap_or_else(PoisonError::into_inner);
        let global = self.global.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut values: Vec<ShadowValue> = global
            .into_iter()
            .map(|(bit, held)| ShadowValue {
                address: bit / 8,
                bits: held.width,
                rounded: held.bits,
                shadow: held.value.to_bits(),
            })
            .collect();
        values.sort_by_key(|value| value.address);
        (crate::accuracy::by_line(code, rows), values)
    }
}

/// The smallest normal number of a kind.
pub(super) fn least(kind: Kind) -> f64 {
    match kind {
        Kind::F64 => f64::MIN_POSITIVE,
        Kind::F16 => 2.0f64.powi(-14),
        Kind::Mini(_) => 2.0f64.powi(-6),
        _ => f64::from(f32::MIN_POSITIVE),
    }
}

/// The number that a register of a kind holds.
fn number(kind: Kind, bits: u64) -> f64 {
    match kind {
        Kind::F64 => f64::from_bits(bits),
        _ => f64::from(f32::from_bits(bits as u32)),
    }
}
