//! Shadows in tensor cores, and in copies of tiles.
//!
//! `mma.sync` multiplies the shadows of its operands, element by element of the fragments. Copies that move many elements to places of
//! their own (bulk and tensor copies, `ldmatrix`) hand on shadows by content: an element gets the shadow of an element with the same
//! bits that the operation has read. Elements with the same bits differ by less than their rounding; the one with the largest error counts.

use rustc_hash::FxHashMap;

use super::{Held, HeldMemory, MAX_PARTS, Shade, Slot};
use crate::alu::{LANES, Lanes32};
use crate::bytecode::R;
use crate::exec::run::Machine;
use crate::numeric::Kind;
use crate::tensor::format::Format;
use crate::tensor::matrix::{Accumulator, Matrix};
use crate::tensor::mma::Mma;
use crate::tensor::wgmma::Wgmma;

/// The shadows that an operation has read, by width and bits.
#[derive(Debug, Default)]
pub(crate) struct Carried(FxHashMap<(u8, u64), f64>);

impl Carried {
    fn add(&mut self, held: &Held) {
        let value = f64_of(held);
        let slot = self.0.entry((held.width, held.bits)).or_insert(held.value);
        if value.is_some_and(|exact| (held.value - exact).abs() > (*slot - exact).abs()) {
            *slot = held.value;
        }
    }

    /// Reads the shadows of `bytes` bytes from a bit of memory on.
    pub(crate) fn read(&mut self, memory: &HeldMemory, first: u64, bytes: u64) {
        if memory.is_empty() {
            return;
        }
        for bit in (first..first + bytes * 8).step_by(8) {
            if let Some(held) = memory.get(&bit) {
                self.add(held);
            }
        }
    }

    /// Gives shadows to bytes that have been written from a bit on.
    pub(crate) fn write(&self, memory: &mut HeldMemory, first: u64, bytes: &[u8]) {
        if !memory.is_empty() {
            for i in 0..bytes.len() as u64 {
                memory.remove(&(first + i * 8));
            }
        }
        for width in [8u8, 16, 32, 64] {
            if !self.0.keys().any(|(own, _)| *own == width) {
                continue;
            }
            let size = usize::from(width / 8);
            for (i, element) in bytes.chunks_exact(size).enumerate() {
                let bits = element
                    .iter()
                    .rev()
                    .fold(0, |bits, byte| bits << 8 | u64::from(*byte));
                if let Some(value) = self.0.get(&(width, bits)) {
                    let held = Held {
                        bits,
                        width,
                        value: *value,
                    };
                    memory.insert(first + (i * size * 8) as u64, held);
                }
            }
        }
    }
}

/// Accumulators by lane and element: without rounding, and those of rounded operands.
pub(in crate::exec) type Products = [Vec<Vec<f64>>; 2];

/// The number with the bits of an element of 32 or 64 bits; narrow formats are not told apart.
fn f64_of(held: &Held) -> Option<f64> {
    match held.width {
        32 => Some(f64::from(f32::from_bits(held.bits as u32))),
        64 => Some(f64::from_bits(held.bits)),
        _ => None,
    }
}

/// The number that an accumulator's bits are.
fn accumulator(format: Accumulator, bits: u32) -> f64 {
    match format {
        Accumulator::F16 => Format::F16.decode(bits).into(),
        _ => f32::from_bits(bits).into(),
    }
}

impl Machine<'_, '_> {
    /// Registers that hold the elements of other registers, each at a place of its own (`ldmatrix`, `stmatrix`).
    pub(in crate::exec) fn shade_rows(&mut self, from: (R, usize), to: (R, usize)) {
        let Some(shadows) = &self.warp.shadows else { return };
        let mut found: FxHashMap<(u8, u64), f64> = FxHashMap::default();
        for register in from.0 as usize..from.0 as usize + from.1 {
            for lane in 0..LANES {
                let (shade, bits) = (
                    &shadows.v32[register][lane],
                    u64::from(self.warp.v32[register][lane]),
                );
                let width = u32::from(shade.width);
                if !matches!(width, 8 | 16) || shade.bits != bits {
                    continue;
                }
                for (part, value) in shade.values.iter().enumerate().take((32 / width) as usize) {
                    let own = bits >> (part as u32 * width) & ((1 << width) - 1);
                    found.insert((shade.width, own), *value);
                }
            }
        }
        for register in to.0 as usize..to.0 as usize + to.1 {
            for lane in 0..LANES {
                let bits = u64::from(self.warp.v32[register][lane]);
                let shade = [16u8, 8].into_iter().find_map(|width| {
                    let mut values = [0.0; MAX_PARTS];
                    for (part, value) in values.iter_mut().enumerate().take(32 / usize::from(width)) {
                        let own = bits >> (part as u32 * u32::from(width)) & ((1 << width) - 1);
                        *value = *found.get(&(width, own))?;
                    }
                    Some(Shade { bits, width, values })
                });
                self.set_shade(Slot::V32(register as R), lane, shade.unwrap_or(Shade::NONE));
            }
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
    pub(in crate::exec) fn shade_mma(&self, mma: &Mma, [a, b]: [R; 2], c: Option<R>) -> Option<Products> {
        let widths = mma.float_widths()?;
        let [a_count, b_count, c_count, _] = mma.registers();
        let read = |machine: &Self, shadows: bool| {
            let of = |first: R, count: usize, width: u32, value: &dyn Fn(u32) -> f64| match shadows {
                true => machine.fragment(first, count, width, value),
                false => machine.plain(first, count, width, value),
            };
            let left = of(a, a_count, widths[0], &|bits| mma.a.decode(bits).into());
            let right = of(b, b_count, widths[1], &|bits| mma.b.decode(bits).into());
            let before = c.map(|c| of(c, c_count, widths[2], &|bits| accumulator(mma.c, bits)));
            mma.compute_exactly(&left, &right, before.as_deref())
        };
        Some([read(self, true), read(self, false)])
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

    /// The accumulators of a warp's `wgmma` without rounding, by lane and element, and those of the rounded operands; none for a
    /// product of integers. Elements of shared memory have the shadows of elements there with the same bits.
    pub(in crate::exec) fn shade_wgmma(
        &self,
        wgmma: &Wgmma,
        (left, right): (&Matrix, &Matrix),
        registers: Option<&[usize]>,
        (words, sums, keep): (&[usize], &[Lanes32], u32),
    ) -> Option<Products> {
        let shadows = self.warp.shadows.as_ref()?;
        if wgmma.a.is_integer() {
            return None;
        }
        let k = left.cols;
        let of_shared = |matrix: &Matrix, format: Format| -> Vec<f64> {
            let width = format.bits() as u8;
            let held = self.shared.held.values().filter(|held| held.width == width);
            let found: FxHashMap<u32, f64> = held
                .map(|held| (format.decode(held.bits as u32).to_bits(), held.value))
                .collect();
            let value = |value: &f32| found.get(&value.to_bits()).copied().unwrap_or(f64::from(*value));
            matrix.values.iter().map(value).collect()
        };
        let plain = |matrix: &Matrix| -> Vec<f64> { matrix.values.iter().copied().map(f64::from).collect() };
        let mut left_shadows = match registers {
            None => of_shared(left, wgmma.a),
            Some(_) => plain(left),
        };
        if let Some(registers) = registers {
            let bits = wgmma.a.bits();
            let per = (32 / bits) as usize;
            for (r, word) in registers.iter().enumerate().take(4) {
                for (lane, memory) in shadows.local.iter().enumerate() {
                    for e in 0..per {
                        let at = *word as u64 * 32 + e as u64 * u64::from(bits);
                        let own =
                            u64::from(self.warp.local[*word][lane]) >> (e as u32 * bits) & ((1 << bits) - 1);
                        let held = memory.get(&at);
                        if let Some(held) = held.filter(|h| u32::from(h.width) == bits && h.bits == own) {
                            let row = lane / 4 + 8 * (r % 2);
                            let col = lane % 4 * per + e + 4 * per * (r / 2);
                            left_shadows[row * k + col] = held.value;
                        }
                    }
                }
            }
        }
        let (left_plain, right_plain) = (plain(left), plain(right));
        let right_shadows = of_shared(right, wgmma.b);
        let sign = if wgmma.negate_a != wgmma.negate_b {
            -1.0
        } else {
            1.0
        };
        let packed = wgmma.d.packed();
        let width = 32 / packed as u32;
        let sums = |left: &[f64], right: &[f64], shaded: bool| {
            (0..LANES)
                .map(|lane| {
                    let elements = (0..words.len() * packed).map(|i| {
                        let (row, col) = Wgmma::place(lane, i);
                        let pairs = left[row * k..(row + 1) * k]
                            .iter()
                            .zip(&right[col * k..(col + 1) * k]);
                        let product: f64 = pairs.map(|(x, y)| x * y).sum();
                        if keep >> lane & 1 == 0 {
                            return sign * product;
                        }
                        let (word, part) = (i / packed, (i % packed) as u32);
                        let bits = u64::from(sums[word][lane]) >> (part * width) & (u64::MAX >> (64 - width));
                        let at = words[word] as u64 * 32 + u64::from(part * width);
                        let held = shadows.local[lane].get(&at).filter(|_| shaded);
                        let held = held.filter(|held| u32::from(held.width) == width && held.bits == bits);
                        let before =
                            held.map_or_else(|| accumulator(wgmma.d, bits as u32), |held| held.value);
                        before + sign * product
                    });
                    elements.collect()
                })
                .collect()
        };
        Some([
            sums(&left_shadows, &right_shadows, true),
            sums(&left_plain, &right_plain, false),
        ])
    }

    /// Gives the results of a `wgmma` their shadows.
    pub(in crate::exec) fn shade_wgmma_after(
        &mut self,
        pc: usize,
        wgmma: &Wgmma,
        (words, sums): (&[usize], &[Lanes32]),
        [shaded, exact]: &Products,
    ) {
        let packed = wgmma.d.packed();
        let width = 32 / packed as u32;
        let mut samples = Vec::new();
        for lane in 0..LANES {
            for i in 0..words.len() * packed {
                let (word, part) = (i / packed, (i % packed) as u32);
                let bits = u64::from(sums[word][lane]) >> (part * width) & (u64::MAX >> (64 - width));
                samples.push(crate::accuracy::Sample {
                    rounded: accumulator(wgmma.d, bits as u32),
                    exact: exact[lane][i],
                    shadow: shaded[lane][i],
                    term: 0.0,
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
        [shadows, exact]: Products,
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
                    samples.push(crate::accuracy::Sample {
                        rounded: accumulator(mma.d, own),
                        exact: exact[lane][i],
                        shadow: shadows[lane][i],
                        term: 0.0,
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
