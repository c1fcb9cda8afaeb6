//! Shadows of arithmetic, conversions and moves.
//!
//! Operands are looked at before an instruction runs, since it may overwrite them; its result is looked at before the next one runs.

use super::packed::packed;
use super::{MAX_PARTS, Shade, Slot, least, number};
use crate::accuracy::Sample;
use crate::alu::{Bin, LANES, Un, scalar_unary64, scalar64};
use crate::bytecode::{Exact, ExactInst, Inst, R};
use crate::exec::Strand;
use crate::exec::lanes::fma;
use crate::exec::run::Machine;
use crate::numeric::Kind;
use crate::rounded::Operation;

/// What becomes of a lane's result.
enum Next {
    /// The shade, if its bits are those of the result.
    Moved(Shade),
    Computed(Computed),
}

/// The result of an operation in double precision.
struct Computed {
    /// Of the shadows.
    shadow: f64,
    /// Of the rounded operands.
    exact: f64,
    /// The magnitude of the larger term of a sum.
    term: f64,
}

/// The shadows of an instruction that runs.
pub(in crate::exec) struct Pending {
    pc: usize,
    to: Slot,
    kind: Kind,
    lanes: Vec<(usize, Next)>,
}

/// An operation on one or two floats; none for one on integers, and for a comparison.
fn is_float_op(op: Bin) -> bool {
    use Bin::*;
    matches!(
        op,
        AddF | SubF | RSubF | MulF | DivF | RDivF | Fmod | Pow | Atan2 | Hypot | Copysign | MinF | MaxF
    )
}

fn is_float_un(op: Un) -> bool {
    use Un::*;
    !matches!(op, Not | BitNot | Popcount | Clz | Ffs | AbsS)
}

/// Whether an operation rounds to an integer: the shadow of the result is the result.
fn is_whole(op: Un) -> bool {
    matches!(op, Un::Floor | Un::Ceil | Un::Trunc | Un::Nearbyint)
}

impl Machine<'_, '_> {
    fn bits_of(&self, slot: Slot, lane: usize, strand: &Strand) -> u64 {
        match slot {
            Slot::V32(r) => u64::from(self.warp.v32[r as usize][lane]),
            Slot::V64(r) => self.warp.v64[r as usize][lane],
            Slot::S(r) => strand.scalars[r as usize],
        }
    }

    pub(super) fn shade_of(&self, slot: Slot, lane: usize) -> Shade {
        let Some(shadows) = &self.warp.shadows else {
            return Shade::NONE;
        };
        match slot {
            Slot::V32(r) => shadows.v32[r as usize][lane],
            Slot::V64(r) => shadows.v64[r as usize][lane],
            Slot::S(r) => shadows.scalars[r as usize],
        }
    }

    pub(super) fn set_shade(&mut self, slot: Slot, lane: usize, shade: Shade) {
        let Some(shadows) = &mut self.warp.shadows else {
            return;
        };
        match slot {
            Slot::V32(r) => shadows.v32[r as usize][lane] = shade,
            Slot::V64(r) => shadows.v64[r as usize][lane] = shade,
            Slot::S(r) => shadows.scalars[r as usize] = shade,
        }
    }

    /// The rounded value and the shadow of a float operand.
    fn operand(&self, kind: Kind, slot: Slot, lane: usize, strand: &Strand) -> (f64, f64) {
        let bits = match (kind, slot) {
            (Kind::F64, _) => self.bits_of(slot, lane, strand),
            _ => self.bits_of(slot, lane, strand) & 0xffff_ffff,
        };
        let rounded = number(kind, bits);
        (rounded, self.shade_of(slot, lane).value(bits).unwrap_or(rounded))
    }

    /// The shadows of an instruction's result, from its operands; none for an instruction that makes no float.
    pub(in crate::exec) fn shade_before(
        &self,
        inst: &Inst,
        pc: usize,
        mask: u32,
        strand: &Strand,
    ) -> Option<Pending> {
        use Slot::{S, V32, V64};
        let f32 = Kind::F32;
        match *inst {
            Inst::Mov32 { d, a } => self.moves(pc, V32(d), mask, |_| V32(a)),
            Inst::Mov64 { d, a } => self.moves(pc, V64(d), mask, |_| V64(a)),
            Inst::MovS { d, a } => self.moves(pc, S(d), mask, |_| S(a)),
            Inst::Splat32 { d, s } => self.moves(pc, V32(d), mask, |_| S(s)),
            Inst::Splat64 { d, s } => self.moves(pc, V64(d), mask, |_| S(s)),
            Inst::First32 { d, a } => self.first(pc, S(d), V32(a), mask),
            Inst::First64 { d, a } => self.first(pc, S(d), V64(a), mask),
            Inst::Select32 { d, c, a, b } => {
                let chosen = self.warp.v32[c as usize];
                self.moves(pc, V32(d), mask, |lane| {
                    V32(if chosen[lane] != 0 { a } else { b })
                })
            }
            Inst::Select64 { d, c, a, b } => {
                let chosen = self.warp.v32[c as usize];
                self.moves(pc, V64(d), mask, |lane| {
                    V64(if chosen[lane] != 0 { a } else { b })
                })
            }
            Inst::SelectS { d, c, a, b } => {
                let chosen = strand.scalars[c as usize] != 0;
                self.moves(pc, S(d), mask, |_| S(if chosen { a } else { b }))
            }
            Inst::LoadIndexed {
                d,
                array,
                index,
                wide,
            } => self.indexed(pc, mask, strand, (array, index, wide), |from| (d, from)),
            Inst::StoreIndexed {
                v,
                array,
                index,
                wide,
            } => self.indexed(pc, mask, strand, (array, index, wide), |to| (to, v)),
            Inst::Bin32 { op, d, a, b } => self.binary(pc, op, f32, V32(d), [V32(a), V32(b)], mask, strand),
            Inst::Bin32S { op, d, a, s } => self.binary(pc, op, f32, V32(d), [V32(a), S(s)], mask, strand),
            Inst::BinS32 { op, d, a, b } => self.binary(pc, op, f32, S(d), [S(a), S(b)], mask, strand),
            Inst::Bin64 { op, d, a, b } => {
                self.binary(pc, op, Kind::F64, V64(d), [V64(a), V64(b)], mask, strand)
            }
            Inst::Bin64S { op, d, a, s } => {
                self.binary(pc, op, Kind::F64, V64(d), [V64(a), S(s)], mask, strand)
            }
            Inst::BinS64 { op, d, a, b } => self.binary(pc, op, Kind::F64, S(d), [S(a), S(b)], mask, strand),
            Inst::Un32 { op, d, a } => self.unary(pc, op, f32, V32(d), V32(a), mask, strand),
            Inst::UnS32 { op, d, a } => self.unary(pc, op, f32, S(d), S(a), mask, strand),
            Inst::Un64 { op, d, a } => self.unary(pc, op, Kind::F64, V64(d), V64(a), mask, strand),
            Inst::UnS64 { op, d, a } => self.unary(pc, op, Kind::F64, S(d), S(a), mask, strand),
            Inst::Canonical { kind, d, a } => self.converted(pc, f32, kind, V32(d), V32(a), mask, strand),
            Inst::CanonicalS { kind, d, a } => self.converted(pc, f32, kind, S(d), S(a), mask, strand),
            Inst::Convert { from, to, d, a } => {
                let slot = |kind: Kind, r: R| if kind.wide() { V64(r) } else { V32(r) };
                self.converted(pc, from, to, slot(to, d), slot(from, a), mask, strand)
            }
            Inst::ConvertS { from, to, d, a } => self.converted(pc, from, to, S(d), S(a), mask, strand),
            Inst::ToBits { kind, d, a } => self.to_bits(pc, kind, V32(d), V32(a), mask, strand),
            Inst::ToBitsS { kind, d, a } => self.to_bits(pc, kind, S(d), S(a), mask, strand),
            Inst::FromBits { kind, d, a } => self.of_bits(pc, kind, V32(d), V32(a), mask, strand),
            Inst::FromBitsS { kind, d, a } => self.of_bits(pc, kind, S(d), S(a), mask, strand),
            Inst::MulAdd { d, a, b, c } => {
                self.multiply_add(pc, f32, V32(d), [a, b, c].map(V32), mask, strand)
            }
            Inst::Fma { kind, d, a, b, c } => {
                let slot = |r: R| if kind.wide() { V64(r) } else { V32(r) };
                self.multiply_add(pc, kind, slot(d), [a, b, c].map(slot), mask, strand)
            }
            Inst::FmaS { kind, d, a, b, c } => {
                self.multiply_add(pc, kind, S(d), [a, b, c].map(S), mask, strand)
            }
            Inst::Exact { id } => self.exactly(pc, &self.ctx.code.exact[id as usize], mask, strand),
            _ => None,
        }
    }

    /// The shadows of the instruction before: its result is there.
    pub(in crate::exec) fn shade_after(&mut self, pending: Pending, strand: &Strand) {
        let mut samples = Vec::new();
        for (lane, next) in pending.lanes {
            let bits = self.bits_of(pending.to, lane, strand);
            let shade = match next {
                // Bits that are known only now.
                Next::Moved(shade) if shade.bits == u64::MAX => Shade { bits, ..shade },
                Next::Moved(shade) => shade,
                Next::Computed(computed) => {
                    let narrow = match pending.kind {
                        Kind::F64 => bits,
                        _ => bits & 0xffff_ffff,
                    };
                    samples.push(Sample {
                        rounded: number(pending.kind, narrow),
                        exact: computed.exact,
                        shadow: computed.shadow,
                        term: computed.term,
                        least: least(pending.kind),
                    });
                    Shade::of_value(narrow, computed.shadow)
                }
            };
            self.set_shade(pending.to, lane, shade);
        }
        self.note_samples(pending.pc, &samples);
    }

    /// Adds results to the errors of a statement.
    pub(super) fn note_samples(&self, pc: usize, samples: &[Sample]) {
        if let Some(accuracy) = &self.ctx.accuracy {
            accuracy.note(pc, samples);
        }
    }

    /// The lanes whose results an instruction makes: all of the mask, or the first for a scalar.
    fn lanes_of(to: Slot, mask: u32) -> impl Iterator<Item = usize> {
        let lanes = match to {
            Slot::S(_) => mask & mask.wrapping_neg(),
            _ => mask,
        };
        (0..LANES).filter(move |lane| lanes >> lane & 1 != 0)
    }

    fn moves(&self, pc: usize, to: Slot, mask: u32, from: impl Fn(usize) -> Slot) -> Option<Pending> {
        let lanes = Self::lanes_of(to, mask);
        Some(Pending {
            pc,
            to,
            kind: Kind::F32,
            lanes: lanes
                .map(|lane| (lane, Next::Moved(self.shade_of(from(lane), lane))))
                .collect(),
        })
    }

    fn first(&self, pc: usize, to: Slot, from: Slot, mask: u32) -> Option<Pending> {
        let first = mask.trailing_zeros() as usize % LANES;
        Some(Pending {
            pc,
            to,
            kind: Kind::F32,
            lanes: vec![(0, Next::Moved(self.shade_of(from, first)))],
        })
    }

    /// A move between a register and an element of an array in registers; `to_from` gives the two registers.
    fn indexed(
        &self,
        pc: usize,
        mask: u32,
        strand: &Strand,
        (array, index, wide): (u16, R, bool),
        to_from: impl Fn(R) -> (R, R),
    ) -> Option<Pending> {
        let array = &self.ctx.code.register_arrays[array as usize];
        let index = strand.scalars[index as usize];
        let index = if wide { index } else { u64::from(index as u32) };
        let element = u16::try_from(index)
            .ok()
            .filter(|element| u64::from(*element) < array.count as u64)?;
        let (to, from) = to_from(array.first as R + element);
        let slot = |r: R| if array.wide { Slot::V64(r) } else { Slot::V32(r) };
        self.moves(pc, slot(to), mask, |_| slot(from))
    }

    #[expect(clippy::too_many_arguments, reason = "an instruction with its place")]
    fn binary(
        &self,
        pc: usize,
        op: Bin,
        kind: Kind,
        to: Slot,
        [a, b]: [Slot; 2],
        mask: u32,
        strand: &Strand,
    ) -> Option<Pending> {
        if matches!(op, Bin::And | Bin::Or | Bin::Shl | Bin::ShrU) {
            let lanes = Self::lanes_of(to, mask).map(|lane| {
                let bits = |slot| match kind {
                    Kind::F64 => self.bits_of(slot, lane, strand),
                    _ => self.bits_of(slot, lane, strand) & 0xffff_ffff,
                };
                let shade = packed(
                    (op, if kind == Kind::F64 { 64 } else { 32 }),
                    (self.shade_of(a, lane), bits(a)),
                    (self.shade_of(b, lane), bits(b)),
                );
                (lane, Next::Moved(shade))
            });
            let lanes = lanes.collect();
            return Some(Pending { pc, to, kind, lanes });
        }
        if !is_float_op(op) {
            return None;
        }
        let lanes = Self::lanes_of(to, mask).map(|lane| {
            let (x, y) = (
                self.operand(kind, a, lane, strand),
                self.operand(kind, b, lane, strand),
            );
            if matches!(op, Bin::MinF | Bin::MaxF) {
                let chosen = f64::from_bits(scalar64(op, x.0.to_bits(), y.0.to_bits()));
                let (slot, value) = if chosen == x.0 { (a, x) } else { (b, y) };
                let bits = self.bits_of(slot, lane, strand);
                let bits = if kind == Kind::F64 {
                    bits
                } else {
                    bits & 0xffff_ffff
                };
                return (lane, Next::Moved(Shade::of_value(bits, value.1)));
            }
            let run = |x: f64, y: f64| f64::from_bits(scalar64(op, x.to_bits(), y.to_bits()));
            let sums = matches!(op, Bin::AddF | Bin::SubF | Bin::RSubF);
            (
                lane,
                Next::Computed(Computed {
                    shadow: run(x.1, y.1),
                    exact: run(x.0, y.0),
                    term: if sums { x.0.abs().max(y.0.abs()) } else { 0.0 },
                }),
            )
        });
        let lanes = lanes.collect();
        Some(Pending { pc, to, kind, lanes })
    }

    #[expect(clippy::too_many_arguments, reason = "an instruction with its place")]
    fn unary(
        &self,
        pc: usize,
        op: Un,
        kind: Kind,
        to: Slot,
        a: Slot,
        mask: u32,
        strand: &Strand,
    ) -> Option<Pending> {
        if !is_float_un(op) {
            return None;
        }
        let lanes = Self::lanes_of(to, mask).map(|lane| {
            let (rounded, shadow) = self.operand(kind, a, lane, strand);
            let run = |x: f64| f64::from_bits(scalar_unary64(op, x.to_bits()));
            let exact = run(rounded);
            let shadow = if is_whole(op) { exact } else { run(shadow) };
            (
                lane,
                Next::Computed(Computed {
                    shadow,
                    exact,
                    term: 0.0,
                }),
            )
        });
        let lanes = lanes.collect();
        Some(Pending { pc, to, kind, lanes })
    }

    #[expect(clippy::too_many_arguments, reason = "an instruction with its place")]
    fn converted(
        &self,
        pc: usize,
        from: Kind,
        kind: Kind,
        to: Slot,
        a: Slot,
        mask: u32,
        strand: &Strand,
    ) -> Option<Pending> {
        if !kind.is_float() {
            // Bits that are widened or narrowed, or a number that is no float any more.
            if from.is_float() || from == Kind::Bool {
                return None;
            }
            if !from.wide() || kind.wide() {
                return self.moves(pc, to, mask, |_| a);
            }
            let lanes = Self::lanes_of(to, mask)
                .map(|lane| (lane, Next::Moved(self.shade_of(a, lane).narrowed())))
                .collect();
            return Some(Pending { pc, to, kind, lanes });
        }
        let lanes = Self::lanes_of(to, mask).map(|lane| {
            let (rounded, shadow) = match from.is_float() {
                true => self.operand(from, a, lane, strand),
                false => {
                    let bits = self.bits_of(a, lane, strand);
                    let value = f64::from_bits(crate::numeric::convert(from, Kind::F64, bits));
                    (value, value)
                }
            };
            (
                lane,
                Next::Computed(Computed {
                    shadow,
                    exact: rounded,
                    term: 0.0,
                }),
            )
        });
        let lanes = lanes.collect();
        Some(Pending { pc, to, kind, lanes })
    }

    fn to_bits(
        &self,
        pc: usize,
        kind: Kind,
        to: Slot,
        a: Slot,
        mask: u32,
        strand: &Strand,
    ) -> Option<Pending> {
        if !kind.is_float() || kind.bits() >= 32 {
            return self.moves(pc, to, mask, |_| a);
        }
        let lanes = Self::lanes_of(to, mask).map(|lane| {
            let bits = self.bits_of(a, lane, strand) & 0xffff_ffff;
            let shade = match self.shade_of(a, lane).value(bits) {
                Some(value) => Shade {
                    bits: kind.store(bits),
                    width: kind.bits() as u8,
                    ..Shade::of_value(bits, value)
                },
                None => Shade::NONE,
            };
            (lane, Next::Moved(shade))
        });
        let lanes = lanes.collect();
        Some(Pending { pc, to, kind, lanes })
    }

    fn of_bits(
        &self,
        pc: usize,
        kind: Kind,
        to: Slot,
        a: Slot,
        mask: u32,
        strand: &Strand,
    ) -> Option<Pending> {
        if !kind.is_float() || kind.bits() >= 32 {
            return self.moves(pc, to, mask, |_| a);
        }
        let lanes = Self::lanes_of(to, mask).map(|lane| {
            let bits = self.bits_of(a, lane, strand) & 0xffff_ffff;
            let shade = self.shade_of(a, lane).part(bits, kind.bits() as u8, 0);
            let shade = shade.map_or(Shade::NONE, |value| Shade::of_value(kind.load(bits), value));
            (lane, Next::Moved(shade))
        });
        let lanes = lanes.collect();
        Some(Pending { pc, to, kind, lanes })
    }

    fn multiply_add(
        &self,
        pc: usize,
        kind: Kind,
        to: Slot,
        [a, b, c]: [Slot; 3],
        mask: u32,
        strand: &Strand,
    ) -> Option<Pending> {
        if !kind.is_float() {
            return None;
        }
        let lanes = Self::lanes_of(to, mask).map(|lane| {
            let [a, b, c] = [a, b, c].map(|slot| self.operand(kind, slot, lane, strand));
            (lane, Next::Computed(sum_of_product(a, b, c)))
        });
        let lanes = lanes.collect();
        Some(Pending { pc, to, kind, lanes })
    }

    /// Operations of PTX with modifiers: sums, products and quotients of floats. Conversions that pack several values give values
    /// without shadows.
    fn exactly(&self, pc: usize, inst: &ExactInst, mask: u32, strand: &Strand) -> Option<Pending> {
        let Exact::Rounded(rounded) = &inst.what else {
            return self.packs(pc, inst, mask, strand);
        };
        let kind = inst.kind;
        let slot = |(kind, r): &(Kind, R)| if kind.wide() { Slot::V64(*r) } else { Slot::V32(*r) };
        let to = slot(&(kind, inst.d));
        let lanes = Self::lanes_of(to, mask).map(|lane| {
            let operands: Vec<(f64, f64)> = (inst.operands.iter())
                .map(|operand| self.operand(operand.0, slot(operand), lane, strand))
                .collect();
            let [a, b, c] = [0, 1, 2].map(|i| operands.get(i).copied().unwrap_or((0.0, 0.0)));
            let of = |run: fn(f64, f64) -> f64, term: f64| Computed {
                shadow: run(a.1, b.1),
                exact: run(a.0, b.0),
                term,
            };
            let term = a.0.abs().max(b.0.abs());
            let computed = match rounded.operation {
                Operation::Add => of(|a, b| a + b, term),
                Operation::Sub => of(|a, b| a - b, term),
                Operation::Mul => of(|a, b| a * b, 0.0),
                Operation::Div => of(|a, b| a / b, 0.0),
                Operation::Sqrt => of(|a, _| a.sqrt(), 0.0),
                Operation::Fma => sum_of_product(a, b, c),
            };
            // To saturate is no rounding.
            let clamped = |value: f64| if rounded.sat { value.clamp(0.0, 1.0) } else { value };
            let computed = Computed {
                shadow: clamped(computed.shadow),
                exact: clamped(computed.exact),
                ..computed
            };
            (lane, Next::Computed(computed))
        });
        let lanes = lanes.collect();
        Some(Pending { pc, to, kind, lanes })
    }

    /// A conversion of PTX from floats to one register, with the last operand in the low bits.
    fn packs(&self, pc: usize, inst: &ExactInst, mask: u32, strand: &Strand) -> Option<Pending> {
        let parts = inst.operands.len();
        let narrow = |kind: Kind| kind.is_float() && !kind.wide();
        if parts == 1 && inst.kind.is_float() && inst.operands[0].0.is_float() {
            let slot = |kind: Kind, r: R| if kind.wide() { Slot::V64(r) } else { Slot::V32(r) };
            let (from, a) = inst.operands[0];
            return self.converted(
                pc,
                from,
                inst.kind,
                slot(inst.kind, inst.d),
                slot(from, a),
                mask,
                strand,
            );
        }
        let width = inst.kind.bits() as usize / parts.max(1);
        if inst.kind.is_float() || parts > MAX_PARTS || !matches!(width, 8 | 16) {
            return None;
        }
        if !inst.operands.iter().all(|(kind, _)| narrow(*kind)) {
            return None;
        }
        let to = Slot::V32(inst.d);
        let lanes = Self::lanes_of(to, mask).map(|lane| {
            let mut values = [0.0; MAX_PARTS];
            for (part, (kind, r)) in inst.operands.iter().rev().enumerate() {
                values[part] = self.operand(*kind, Slot::V32(*r), lane, strand).1;
            }
            // The bits are those of the result, whatever they are.
            (
                lane,
                Next::Moved(Shade {
                    bits: u64::MAX,
                    width: width as u8,
                    values,
                }),
            )
        });
        let lanes = lanes.collect();
        Some(Pending {
            pc,
            to,
            kind: inst.kind,
            lanes,
        })
    }
}

fn sum_of_product(a: (f64, f64), b: (f64, f64), c: (f64, f64)) -> Computed {
    Computed {
        shadow: a.1.mul_add(b.1, c.1),
        exact: a.0.mul_add(b.0, c.0),
        term: (a.0 * b.0).abs().max(c.0.abs()),
    }
}

/// The rounded result of a float sum, for memory that an atomic has updated.
pub(super) fn rounded_sum(kind: Kind, a: u64, b: u64) -> u64 {
    fma(kind, a, Kind::constant(kind, 1.0), b)
}
