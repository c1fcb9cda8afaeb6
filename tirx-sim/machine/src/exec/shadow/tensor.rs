//! Shadows in tensor cores, and in copies of tiles.
//!
//! A product multiplies the shadows of its operands, element by element: those of registers by the fragments of the instruction, those
//! of shared and tensor memory by the places that its descriptors name. Copies hand on the shadows of the bytes that they move
//! ([`Carried`]).

use rustc_hash::FxHashMap;

use super::{Held, HeldMemory, MAX_PARTS, Shade, Slot};
use crate::accuracy::Sample;
use crate::alu::{LANES, Lanes32};
use crate::bytecode::{AtomicOp, R};
use crate::exec::run::Machine;
use crate::numeric::Kind;
use crate::tensor::descriptor::{Operand, PIECE};
use crate::tensor::format::Format;
use crate::tensor::matrix::{Accumulator, Matrix};
use crate::tensor::mma::Mma;
use crate::tensor::rows::RowMove;
use crate::tensor::wgmma::Wgmma;

/// The shadows of bytes that an asynchronous operation has read and not yet written, by the distance in bits from the first of them.
/// Operations write bytes in the order in which they have read them.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    held: HeldMemory,
    read: u64,
    written: u64,
}

impl From<HeldMemory> for Carried {
    fn from(held: HeldMemory) -> Carried {
        Carried {
            held,
            ..Carried::default()
        }
    }
}

impl Carried {
    /// Reads the shadows of `bytes` bytes from a bit of memory on.
    pub(crate) fn read(&mut self, memory: &HeldMemory, first: u64, bytes: u64) {
        if self.written > 0 {
            *self = Carried::default();
        }
        super::carry((memory, first), (&mut self.held, self.read), bytes * 8);
        self.read += bytes * 8;
    }

    /// Gives shadows to `bytes` bytes that have been written from a bit on.
    pub(crate) fn write(&mut self, memory: &mut HeldMemory, first: u64, bytes: u64) {
        super::carry((&self.held, self.written), (memory, first), bytes * 8);
        self.written += bytes * 8;
    }

    /// Bytes that have been read are not written.
    pub(crate) fn skip(&mut self, bytes: u64) {
        self.written += bytes * 8;
    }

    /// The operation has rounded the float32 elements that it has read.
    pub(crate) fn rounded(&mut self, before: &[u8], after: &[u8]) -> Vec<Sample> {
        let mut samples = Vec::new();
        for (i, (before, after)) in before.as_chunks().0.iter().zip(after.as_chunks().0).enumerate() {
            let (before, after) = (u32::from_le_bytes(*before), u32::from_le_bytes(*after));
            let at = i as u64 * 32;
            let own = self.held.get(&at).filter(|held| held.bits == u64::from(before));
            let value = own.map_or(f64::from(f32::from_bits(before)), |held| held.value);
            self.held.insert(at, Held::new(32, after, value));
            samples.push(Sample {
                rounded: f32::from_bits(after).into(),
                exact: f32::from_bits(before).into(),
                shadow: value,
                term: 0.0,
                least: super::least(Kind::F32),
            });
        }
        samples
    }

    /// Gives shadows to elements of memory that the operation has combined with those that it has read.
    pub(crate) fn reduced(
        &mut self,
        (memory, first): (&mut HeldMemory, u64),
        reduction: &Reduction<'_>,
        (before, after): (&[u8], &[u8]),
    ) -> Vec<Sample> {
        let kind = reduction.kind;
        let width = kind.bits();
        let mut samples = Vec::new();
        for i in 0..after.len() / (width as usize / 8) {
            let at = i as u64 * u64::from(width);
            let bits = |bytes: &[u8]| {
                let own = bytes.iter().skip(i * width as usize / 8).take(width as usize / 8);
                own.rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
            };
            let (old, operand, new) = (bits(before), bits(reduction.operand), bits(after));
            let value = |memory: &HeldMemory, at: u64, bits: u64| {
                let number = super::number(kind, kind.load(bits));
                let held = memory.get(&at).and_then(|held| held.value_of(width, bits));
                (number, held.unwrap_or(number))
            };
            let (x, y) = (
                value(memory, first + at, old),
                value(&self.held, self.written + at, operand),
            );
            super::carry((&HeldMemory::default(), 0), (memory, first + at), width.into());
            let shadow = match reduction.op {
                AtomicOp::Add if kind.is_float() => {
                    samples.push(Sample {
                        rounded: super::number(kind, kind.load(new)),
                        exact: x.0 + y.0,
                        shadow: x.1 + y.1,
                        term: x.0.abs().max(y.0.abs()),
                        least: super::least(kind),
                    });
                    x.1 + y.1
                }
                AtomicOp::Min | AtomicOp::Max if kind.is_float() => {
                    if new == operand {
                        y.1
                    } else {
                        x.1
                    }
                }
                _ => continue,
            };
            memory.insert(first + at, Held::new(width, new, shadow));
        }
        self.written += after.len() as u64 * 8;
        samples
    }

    /// The shadows of what has been read, which is not written.
    pub(crate) fn take(&mut self) -> HeldMemory {
        std::mem::take(self).held
    }
}

/// How an operation combines elements with those of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduction<'b> {
    pub(crate) op: AtomicOp,
    pub(crate) kind: Kind,
    /// The bytes of the operands.
    pub(crate) operand: &'b [u8],
}

/// The format by which an operand counts as exact: a float32 operand that a tensor core reads as tf32 loses its low bits in the product.
fn whole(format: Format) -> Format {
    match format {
        Format::Tf32 => Format::F32,
        format => format,
    }
}

/// The number that the bits of an operand are, before a tensor core has cut off any.
fn operand_of(format: Format, bits: u32) -> f64 {
    whole(format).decode(bits).into()
}

/// The shadow of an operand at a bit of memory, if it is this number there.
fn shadow_of(memory: &HeldMemory, at: u64, format: Format, number: f64) -> Option<f64> {
    let held = memory.get(&at)?;
    let same = || operand_of(format, held.bits as u32).to_bits() == number.to_bits();
    (u32::from(held.width) == format.bits() && same()).then_some(held.value)
}

/// A matrix as a tensor core multiplies it; if errors are asked for also its elements without rounding, and the elements exactly as they
/// are.
#[derive(Clone, Debug)]
pub(in crate::exec) struct Shaded {
    pub(in crate::exec) values: Matrix,
    pub(in crate::exec) exactly: Option<[Matrix<f64>; 2]>,
}

impl Shaded {
    /// An operand of the bytes of its pieces, with the shadows of these bytes.
    pub(in crate::exec) fn of_pieces(
        operand: &Operand,
        bytes: &[u8],
        shadows: Option<&HeldMemory>,
    ) -> Shaded {
        let exactly = shadows.map(|shadows| {
            let same = Operand {
                format: whole(operand.format),
                ..*operand
            };
            let exact = same.matrix(bytes).widened();
            let mut shaded = exact.clone();
            for (row, k, piece, bit) in operand.elements().filter(|_| !shadows.is_empty()) {
                let at = (piece * PIECE * 8) as u64 + bit;
                if let Some(value) = shadow_of(shadows, at, operand.format, exact.at(row, k)) {
                    shaded.set(row, k, value);
                }
            }
            [shaded, exact]
        });
        Shaded {
            values: operand.matrix(bytes),
            exactly,
        }
    }

    /// Zeros, with shadows if errors are asked for.
    pub(in crate::exec) fn zero(shadows: bool, rows: usize, cols: usize) -> Shaded {
        let zero = || Matrix::<f64>::zero(rows, cols);
        Shaded {
            values: Matrix::zero(rows, cols),
            exactly: shadows.then(|| [zero(), zero()]),
        }
    }

    /// Sets an element, of which the format, the bits and the value are known, with its shadow at a bit of memory.
    pub(in crate::exec) fn set(
        &mut self,
        (row, col): (usize, usize),
        (memory, at): (&HeldMemory, u64),
        (format, bits, value): (Format, u32, f32),
    ) {
        self.values.set(row, col, value);
        if let Some([shaded, exact]) = &mut self.exactly {
            let number = operand_of(format, bits);
            let shadow = shadow_of(memory, at, format, number);
            shaded.set(row, col, shadow.unwrap_or(number));
            exact.set(row, col, number);
        }
    }

    /// Adds the rows of another below.
    pub(in crate::exec) fn append(&mut self, below: Shaded) {
        self.values.append(below.values);
        self.exactly = match (self.exactly.take(), below.exactly) {
            (Some([mut shaded, mut exact]), Some([more_shaded, more_exact])) => {
                shaded.append(more_shaded);
                exact.append(more_exact);
                Some([shaded, exact])
            }
            _ => None,
        };
    }

    /// Some of its rows.
    pub(in crate::exec) fn rows_from(&self, first: usize, rows: usize) -> Shaded {
        Shaded {
            values: self.values.rows_from(first, rows),
            exactly: (self.exactly.as_ref()).map(|both| both.each_ref().map(|m| m.rows_from(first, rows))),
        }
    }
}

/// Accumulators by lane and element: without rounding, those of rounded operands, and the sums of their terms' magnitudes.
pub(in crate::exec) type Products = [ByLane; 3];

/// Elements of fragments.
type ByLane = Vec<Vec<f64>>;

/// The number that an accumulator's bits are.
pub(in crate::exec) fn accumulator(format: Accumulator, bits: u32) -> f64 {
    match format {
        Accumulator::F16 => Format::F16.decode(bits).into(),
        _ => f32::from_bits(bits).into(),
    }
}

impl Machine<'_, '_> {
    /// Registers of lanes and rows that lie in registers: what `ldmatrix` or `stmatrix` has moved between them.
    pub(in crate::exec) fn shade_rows(&mut self, rows: &RowMove, temp: R, registers: R) {
        type Word = (R, usize);
        let Some(shadows) = &self.warp.shadows else { return };
        let bits = |(register, lane): Word| self.warp.v32[register as usize][lane];
        let mut moved: FxHashMap<Word, [Option<(u8, f64)>; MAX_PARTS]> = FxHashMap::default();
        for lane in 0..LANES {
            for r in 0..rows.registers() {
                let place = |byte: usize| rows.place(lane, r, byte);
                for byte in 0..4 {
                    let (row, at) = place(byte);
                    let own = ((registers + r as R, lane), byte);
                    let other = ((temp + (at / 4) as R, row), at % 4);
                    let (from, to) = if rows.store { (own, other) } else { (other, own) };
                    let shade = &shadows.v32[from.0.0 as usize][from.0.1];
                    let Some((width, value)) = shade.element(bits(from.0).into(), from.1) else {
                        continue;
                    };
                    // Elements that are torn apart have no shadow.
                    let together = |n: usize| {
                        let first = byte / n * n;
                        first == byte && (1..n).all(|i| place(first + i) == (row, at + i))
                    };
                    if together(usize::from(width / 8)) {
                        moved.entry(to.0).or_default()[to.1] = Some((width, value));
                    }
                }
            }
        }
        let mut shades = Vec::new();
        for lane in 0..LANES {
            let to = match rows.store {
                true => temp..temp + 4,
                false => registers..registers + rows.registers() as R,
            };
            for register in to {
                let word = (register, lane);
                let elements = moved.get(&word);
                let shade = elements.map_or(Shade::NONE, |elements| Shade::of_elements(bits(word), elements));
                shades.push((word, shade));
            }
        }
        for ((register, lane), shade) in shades {
            self.set_shade(Slot::V32(register), lane, shade);
        }
    }

    /// The shadows of fragments of 32-bit registers: elements of `width` bits, `value` of bits without a shadow.
    fn fragment(&self, first: R, count: usize, width: u32, value: &dyn Fn(u32) -> f64) -> Vec<Vec<f64>> {
        let per = (32 / width) as usize;
        (0..LANES)
            .map(|lane| {
                let mut all = Vec::with_capacity(count * per);
                for register in first..first + count as R {
                    let bits = self.warp.v32[register as usize][lane];
                    let shade = self.shade_of(Slot::V32(register), lane);
                    for part in 0..per {
                        let own = match width {
                            32 => bits,
                            _ => bits >> (part as u32 * width) & ((1 << width) - 1),
                        };
                        let shadow = match width {
                            32 => shade.value(bits.into()),
                            _ => shade.part(bits.into(), width as u8, part),
                        };
                        all.push(shadow.unwrap_or_else(|| value(own)));
                    }
                }
                all
            })
            .collect()
    }

    /// The accumulators of an `mma.sync` without rounding, by lane and element; none for products that have no shadows. The
    /// second ones are those of the rounded operands.
    pub(in crate::exec) fn shade_mma(
        &self,
        mma: &Mma,
        [a, b]: [R; 2],
        c: Option<R>,
        metadata: Option<R>,
    ) -> Option<Products> {
        let metadata = metadata.map_or([0; LANES], |r| self.warp.v32[r as usize]);
        let widths = mma.float_widths()?;
        let [a_count, b_count, c_count, _] = mma.registers();
        let read = |machine: &Self, shadows: bool| {
            let of = |first: R, count: usize, width: u32, value: &dyn Fn(u32) -> f64| match shadows {
                true => machine.fragment(first, count, width, value),
                false => machine.plain(first, count, width, value),
            };
            let left = of(a, a_count, widths[0], &|bits| operand_of(mma.a, bits));
            let right = of(b, b_count, widths[1], &|bits| operand_of(mma.b, bits));
            let before = c.map(|c| of(c, c_count, widths[2], &|bits| accumulator(mma.c, bits)));
            (left, right, before)
        };
        let of = |(left, right, before): &(ByLane, ByLane, Option<ByLane>)| {
            mma.compute_exactly(left, right, before.as_deref(), &metadata)
                .ok()
        };
        let magnitudes = |values: &ByLane| -> ByLane {
            let lanes = values.iter();
            lanes
                .map(|lane| lane.iter().map(|value| value.abs()).collect())
                .collect()
        };
        let (shaded, exact) = (read(self, true), read(self, false));
        let terms = (
            magnitudes(&exact.0),
            magnitudes(&exact.1),
            exact.2.as_ref().map(magnitudes),
        );
        Some([of(&shaded)?, of(&exact)?, of(&terms)?])
    }

    fn plain(&self, first: R, count: usize, width: u32, value: &dyn Fn(u32) -> f64) -> Vec<Vec<f64>> {
        let per = (32 / width) as usize;
        (0..LANES)
            .map(|lane| {
                let words =
                    (first..first + count as R).map(|register| self.warp.v32[register as usize][lane]);
                let part = |word: u32, part: usize| match width {
                    32 => word,
                    _ => word >> (part as u32 * width) & ((1 << width) - 1),
                };
                words
                    .flat_map(|word| (0..per).map(move |i| part(word, i)))
                    .map(value)
                    .collect()
            })
            .collect()
    }

    /// A of a warp's `wgmma` in registers: the elements without rounding, and exactly as they are.
    pub(in crate::exec) fn shade_registers(
        &self,
        wgmma: &Wgmma,
        registers: &[usize],
    ) -> Option<[Matrix<f64>; 2]> {
        let shadows = self.warp.shadows.as_ref()?;
        let bits = wgmma.a.bits();
        let per = (32 / bits) as usize;
        let mut exact = Matrix::<f64>::zero(16, wgmma.left().k);
        let mut shaded = exact.clone();
        for (r, word) in registers.iter().enumerate().take(4) {
            for (lane, memory) in shadows.local.iter().enumerate() {
                for e in 0..per {
                    let shift = e as u32 * bits;
                    let own = self.warp.local[*word][lane] >> shift & (u32::MAX >> (32 - bits));
                    let number = operand_of(wgmma.a, own);
                    let row = lane / 4 + 8 * (r % 2);
                    let col = lane % 4 * per + e + 4 * per * (r / 2);
                    let at = *word as u64 * 32 + u64::from(shift);
                    exact.set(row, col, number);
                    let shadow = shadow_of(memory, at, wgmma.a, number);
                    shaded.set(row, col, shadow.unwrap_or(number));
                }
            }
        }
        Some([shaded, exact])
    }

    /// The accumulators of a warp's `wgmma` without rounding, by lane and element, and those of the rounded operands; none for a
    /// product of integers.
    pub(in crate::exec) fn shade_wgmma(
        &self,
        wgmma: &Wgmma,
        left: Option<[Matrix<f64>; 2]>,
        right: Option<&[Matrix<f64>; 2]>,
        (words, sums, keep): (&[usize], &[Lanes32], u32),
    ) -> Option<Products> {
        let shadows = self.warp.shadows.as_ref()?;
        if wgmma.a.is_integer() {
            return None;
        }
        let [left_shaded, left_exact] = left?;
        let [right_shaded, right_exact] = right?;
        let packed = wgmma.d.packed();
        let width = 32 / packed as u32;
        let sums = |product: &Matrix<f64>, shaded: bool, magnitude: bool| {
            (0..LANES)
                .map(|lane| {
                    let elements = (0..words.len() * packed).map(|i| {
                        let (row, col) = Wgmma::place(lane, i);
                        let product = product.at(row, col);
                        let product = if magnitude { product.abs() } else { product };
                        if keep >> lane & 1 == 0 {
                            return product;
                        }
                        let (word, part) = (i / packed, (i % packed) as u32);
                        let bits = u64::from(sums[word][lane]) >> (part * width) & (u64::MAX >> (64 - width));
                        let at = words[word] as u64 * 32 + u64::from(part * width);
                        let held = shadows.local[lane].get(&at).filter(|_| shaded);
                        let held = held.filter(|held| u32::from(held.width) == width && held.bits == bits);
                        let before =
                            held.map_or_else(|| accumulator(wgmma.d, bits as u32), |held| held.value);
                        product + if magnitude { before.abs() } else { before }
                    });
                    elements.collect()
                })
                .collect()
        };
        let terms = wgmma.product(left_exact.magnitudes(), &right_exact.magnitudes());
        Some([
            sums(&wgmma.product(left_shaded, right_shaded), true, false),
            sums(&wgmma.product(left_exact, right_exact), false, false),
            sums(&terms, false, true),
        ])
    }

    /// Gives the results of a `wgmma` their shadows.
    pub(in crate::exec) fn shade_wgmma_after(
        &mut self,
        pc: usize,
        wgmma: &Wgmma,
        (words, sums): (&[usize], &[Lanes32]),
        [shaded, exact, terms]: &Products,
    ) {
        let packed = wgmma.d.packed();
        let width = 32 / packed as u32;
        let mut samples = Vec::new();
        for lane in 0..LANES {
            for i in 0..words.len() * packed {
                let (word, part) = (i / packed, (i % packed) as u32);
                let bits = u64::from(sums[word][lane]) >> (part * width) & (u64::MAX >> (64 - width));
                samples.push(Sample {
                    rounded: accumulator(wgmma.d, bits as u32),
                    exact: exact[lane][i],
                    shadow: shaded[lane][i],
                    term: terms[lane][i],
                    least: super::least(if width == 32 { Kind::F32 } else { Kind::F16 }),
                });
                let held = Held {
                    bits,
                    width: width as u8,
                    value: shaded[lane][i],
                };
                if let Some(shadows) = &mut self.warp.shadows {
                    let at = words[word] as u64 * 32 + u64::from(part * width);
                    shadows.local[lane].insert(at, held);
                }
            }
        }
        self.note_samples(pc, &samples);
    }

    /// Gives the results of an `mma.sync` their shadows.
    pub(in crate::exec) fn shade_mma_after(
        &mut self,
        pc: usize,
        mma: &Mma,
        d: R,
        [shadows, exact, terms]: Products,
    ) {
        let width = 32 / mma.d.packed() as u32;
        let per = (32 / width) as usize;
        let [.., count] = mma.registers();
        let mut samples = Vec::new();
        for lane in 0..LANES {
            for r in 0..count {
                let bits = self.warp.v32[d as usize + r][lane];
                let mut values = [0.0; MAX_PARTS];
                for (part, value) in values.iter_mut().enumerate().take(per) {
                    let i = r * per + part;
                    let own = if width == 32 {
                        bits
                    } else {
                        bits >> (part as u32 * width) & 0xffff
                    };
                    *value = shadows[lane][i];
                    samples.push(Sample {
                        rounded: accumulator(mma.d, own),
                        exact: exact[lane][i],
                        shadow: shadows[lane][i],
                        term: terms[lane][i],
                        least: super::least(if width == 32 { Kind::F32 } else { Kind::F16 }),
                    });
                }
                let shade = match width {
                    32 => Shade::of_value(bits.into(), values[0]),
                    _ => Shade {
                        bits: bits.into(),
                        width: width as u8,
                        values,
                    },
                };
                self.set_shade(Slot::V32(d + r as R), lane, shade);
            }
        }
        self.note_samples(pc, &samples);
    }
}
