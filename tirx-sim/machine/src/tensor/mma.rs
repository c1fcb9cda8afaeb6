//! What does `mma.sync` compute, dense and sparse?
//!
//! Registers come as they are in the instruction: one row of 32 lanes a register, 32 bits each (64 for float64).
//! Of a sparse A half of the elements are there ([`Sparsity`]).

#![allow(
    clippy::needless_range_loop,
    reason = "lanes and registers are coordinates of fragments, not positions of one list"
)]

use super::Outcome;
use super::format::Format;
use super::fragment::{Part, Shape, count, place, quads};
use super::matrix::{Accumulator, Matrix, Number, multiply};
use super::sparse::Sparsity;

const LANES: usize = 32;

/// How b1 operands are combined before their bits are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOp {
    And,
    Xor,
}

/// An `mma.sync` instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Mma {
    pub shape: Shape,
    pub a: Format,
    pub b: Format,
    /// Of D.
    pub d: Accumulator,
    /// Of C.
    pub c: Accumulator,
    /// A by columns, B by rows: m8n8k4 of float16 alone has the choice.
    pub a_turned: bool,
    pub b_turned: bool,
    pub bit_op: BitOp,
    /// The sparsity selector, where A is sparse.
    pub sparse: Option<u32>,
}

/// Registers of all lanes.
pub type Registers = Vec<[u32; LANES]>;

impl Mma {
    /// Whether four groups of lanes multiply matrices of their own.
    fn in_quads(&self) -> bool {
        self.shape == Shape { m: 8, n: 8, k: 4 } && self.a == Format::F16
    }

    /// The shape of A as it is held.
    fn held(&self) -> Shape {
        Shape {
            k: self.shape.k / if self.sparse.is_some() { 2 } else { 1 },
            ..self.shape
        }
    }

    /// 32-bit registers a lane of A, B, C and D.
    pub fn registers(&self) -> [usize; 4] {
        if self.in_quads() {
            let of = |acc: Accumulator| 8 / acc.packed();
            return [2, 2, of(self.c), of(self.d)];
        }
        let words = |elements: usize, bits: u32| elements * bits as usize / 32;
        let sums = count(self.shape, Part::C);
        [
            words(count(self.held(), Part::A), self.a.bits()),
            words(count(self.shape, Part::B), self.b.bits()),
            sums / self.c.packed(),
            sums / self.d.packed(),
        ]
    }

    /// D of registers A, B and C, with the metadata of a sparse A.
    pub fn compute(
        &self,
        a: &[[u32; LANES]],
        b: &[[u32; LANES]],
        c: &[[u32; LANES]],
        metadata: &[u32; LANES],
    ) -> Outcome<Registers> {
        if self.in_quads() {
            return Ok(self.compute_quads(a, b, c));
        }
        let Shape { m, n, k } = self.shape;
        let held = self.held();
        let mut left = gather(a, self.a, m, held.k, |lane, i| {
            place(held, Part::A, self.a.bits(), lane, i)
        });
        if self.sparse.is_some() {
            left = self.spread(&left, metadata)?;
        }
        let right = gather(b, self.b, k, n, |lane, i| {
            place(self.shape, Part::B, self.b.bits(), lane, i)
        });
        let mut product = multiply(&left, &right);
        if self.a == Format::B1 && self.bit_op == BitOp::Xor {
            // |a xor b| = |a| + |b| - 2 |a and b|.
            for row in 0..m {
                let ones: f32 = (0..k).map(|i| left.at(row, i)).sum();
                for col in 0..n {
                    let others: f32 = (0..k).map(|i| right.at(i, col)).sum();
                    product.set(row, col, ones + others - 2.0 * product.at(row, col));
                }
            }
        }
        Ok(self.accumulate(&product, c, LANES, &|lane, i| {
            place(self.shape, Part::C, 32, lane, i)
        }))
    }

    /// The widths of elements of A, B and C, if it multiplies floats of whole bytes by fragments of a warp.
    pub fn float_widths(&self) -> Option<[u32; 3]> {
        let whole = |format: Format| !format.is_integer() && matches!(format.bits(), 8 | 16 | 32);
        let floats =
            !self.in_quads() && whole(self.a) && whole(self.b) && !matches!(self.d, Accumulator::I32 { .. });
        floats.then(|| [self.a.bits(), self.b.bits(), 32 / self.c.packed() as u32])
    }

    /// D of elements in double precision, by lane and element, without rounding.
    pub fn compute_exactly(
        &self,
        a: &[Vec<f64>],
        b: &[Vec<f64>],
        c: Option<&[Vec<f64>]>,
        metadata: &[u32; LANES],
    ) -> Outcome<Vec<Vec<f64>>> {
        let Shape { m, n, k } = self.shape;
        let held = self.held();
        let fill =
            |lanes: &[Vec<f64>], rows: usize, cols: usize, place: &dyn Fn(usize, usize) -> (usize, usize)| {
                let mut out = Matrix::<f64>::zero(rows, cols);
                for (lane, values) in lanes.iter().enumerate() {
                    for (i, value) in values.iter().enumerate() {
                        let (row, col) = place(lane, i);
                        if row < rows && col < cols {
                            out.set(row, col, *value);
                        }
                    }
                }
                out
            };
        let mut left = fill(a, m, held.k, &|lane, i| {
            place(held, Part::A, self.a.bits(), lane, i)
        });
        if self.sparse.is_some() {
            left = self.spread(&left, metadata)?;
        }
        let right = fill(b, k, n, &|lane, i| {
            place(self.shape, Part::B, self.b.bits(), lane, i)
        });
        let sums = (0..LANES)
            .map(|lane| {
                let sums = (0..m * n / LANES).map(|i| {
                    let (row, col) = place(self.shape, Part::C, 32, lane, i);
                    let before = c.map_or(0.0, |c| c[lane][i]);
                    (0..k).fold(before, |sum, j| left.at(row, j).mul_add(right.at(j, col), sum))
                });
                sums.collect()
            })
            .collect();
        Ok(sums)
    }

    /// `C + product` where each lane holds it.
    fn accumulate(
        &self,
        product: &Matrix,
        c: &[[u32; LANES]],
        lanes: usize,
        place: &dyn Fn(usize, usize) -> (usize, usize),
    ) -> Registers {
        let sums = product.rows * product.cols / lanes;
        let mut out = vec![[0; LANES]; sums / self.d.packed()];
        for lane in 0..LANES {
            for i in 0..sums {
                let (row, col) = place(lane, i);
                let before = element(c, self.c, lane, i);
                put(&mut out, self.d, lane, i, self.sum(product.at(row, col), before));
            }
        }
        out
    }

    /// C and D may have formats of their own (float16 and float32).
    fn sum(&self, product: f32, before: u32) -> u32 {
        let before = match (self.c, self.d) {
            (Accumulator::F16, Accumulator::F32) => {
                tirx_dtype::f16::from_bits(before as u16).to_f32().to_bits()
            }
            (Accumulator::F32, Accumulator::F16) => {
                let sum = product + f32::from_bits(before);
                return tirx_dtype::f16::from_f32(sum).to_bits().into();
            }
            _ => before,
        };
        self.d.add(product, before)
    }

    fn compute_quads(&self, a: &[[u32; LANES]], b: &[[u32; LANES]], c: &[[u32; LANES]]) -> Registers {
        let mut out = vec![[0; LANES]; 8 / self.d.packed()];
        let (half, wide) = (Format::F16, |acc| acc != Accumulator::F16);
        for group in 0..4 {
            let lanes = quads::lanes(group);
            let (mut left, mut right) = (Matrix::zero(8, 4), Matrix::zero(4, 8));
            for lane in lanes {
                for i in 0..4 {
                    let (row, col) = quads::place(Part::A, lane, i, self.a_turned, false);
                    left.set(row, col, half.decode(a[i / 2][lane] >> (i % 2 * 16)));
                    let (row, col) = quads::place(Part::B, lane, i, self.b_turned, false);
                    right.set(row, col, half.decode(b[i / 2][lane] >> (i % 2 * 16)));
                }
            }
            let product = multiply(&left, &right);
            // C by its own layout, which is not D's where the formats differ.
            let mut before = vec![0; 64];
            for lane in lanes {
                for i in 0..8 {
                    let (row, col) = quads::place(Part::C, lane, i, false, wide(self.c));
                    before[row * 8 + col] = element(c, self.c, lane, i);
                }
            }
            for lane in lanes {
                for i in 0..8 {
                    let (row, col) = quads::place(Part::C, lane, i, false, wide(self.d));
                    let sum = self.sum(product.at(row, col), before[row * 8 + col]);
                    put(&mut out, self.d, lane, i, sum);
                }
            }
        }
        out
    }

    /// A with its zeros, of the elements held and the metadata.
    fn spread<T: Number>(&self, held: &Matrix<T>, metadata: &[u32; LANES]) -> Outcome<Matrix<T>> {
        let selector = self.sparse.unwrap_or(0) as usize;
        let sparsity = match self.a.bits() {
            32 => Sparsity::OneOfTwo,
            4 => Sparsity::PairsOfFour,
            _ => Sparsity::TwoOfFour,
        };
        sparsity.spread(held, self.shape.k, |row, group| {
            self.metadata_bits(metadata, selector, row, group)
        })
    }

    /// Four bits of metadata: of a row, for a group of elements. One lane of four holds those of a row and of the one
    /// eight below (16-bit and 32-bit formats), or a pair does; `selector` says which.
    fn metadata_bits(&self, metadata: &[u32; LANES], selector: usize, row: usize, group: usize) -> u32 {
        let groups = match self.a.bits() {
            32 => self.shape.k / 2,
            4 => self.shape.k / 8,
            _ => self.shape.k / 4,
        };
        let (upper, lane) = (row / 8, row % 8 * 4);
        let (lane, bit) = if self.a.bits() >= 16 {
            // 16 bits a row in a lane; with 32 bits a row the next lane goes on.
            let (word, within) = (group / 4, group % 4);
            let first = if groups > 4 {
                selector % 2 * 2
            } else {
                selector % 4
            };
            (lane + first + word, upper * 16 + within * 4)
        } else {
            // 32 bits a row in a lane, the row eight below in the next; with 64 bits a row the pair after goes on.
            let (word, within) = (group / 8, group % 8);
            let first = if groups > 8 { 0 } else { selector % 2 * 2 };
            (lane + first + word * 2 + upper, within * 4)
        };
        metadata[lane % LANES] >> bit & 0xf
    }
}

/// An element of accumulator registers.
fn element(registers: &[[u32; LANES]], kind: Accumulator, lane: usize, i: usize) -> u32 {
    let packed = kind.packed();
    let word = registers.get(i / packed).map_or(0, |r| r[lane]);
    if packed == 2 {
        word >> (i % 2 * 16) & 0xffff
    } else {
        word
    }
}

fn put(registers: &mut [[u32; LANES]], kind: Accumulator, lane: usize, i: usize, value: u32) {
    let packed = kind.packed();
    let word = &mut registers[i / packed][lane];
    *word = if packed == 2 {
        let shift = i % 2 * 16;
        *word & !(0xffff << shift) | (value & 0xffff) << shift
    } else {
        value
    };
}

/// A matrix from the registers of all lanes.
fn gather(
    registers: &[[u32; LANES]],
    format: Format,
    rows: usize,
    cols: usize,
    place: impl Fn(usize, usize) -> (usize, usize),
) -> Matrix {
    let bits = format.bits();
    let per = (32 / bits) as usize;
    let decoder = format.decoder();
    let mut out = Matrix::zero(rows, cols);
    for (r, register) in registers.iter().enumerate() {
        for (lane, word) in register.iter().enumerate() {
            for e in 0..per {
                let (row, col) = place(lane, r * per + e);
                if row < rows && col < cols {
                    out.set(row, col, decoder.decode(word >> (e as u32 * bits)));
                }
            }
        }
    }
    out
}

/// `mma.sync` of float64: registers of 64 bits, one element each.
pub fn compute_f64(
    shape: Shape,
    a: &[[u64; LANES]],
    b: &[[u64; LANES]],
    c: &[[u64; LANES]],
) -> Vec<[u64; LANES]> {
    let Shape { m, n, k } = shape;
    let fill = |registers: &[[u64; LANES]], part, rows: usize, cols: usize| {
        let mut out = vec![0.0f64; rows * cols];
        for (i, register) in registers.iter().enumerate() {
            for (lane, bits) in register.iter().enumerate() {
                let (row, col) = place(shape, part, 64, lane, i);
                if let Some(slot) = out.get_mut(row * cols + col) {
                    *slot = f64::from_bits(*bits);
                }
            }
        }
        out
    };
    let (left, right) = (fill(a, Part::A, m, k), fill(b, Part::B, k, n));
    (0..count(shape, Part::C))
        .map(|i| {
            std::array::from_fn(|lane| {
                let (row, col) = place(shape, Part::C, 64, lane, i);
                let before = c.get(i).map_or(0.0, |r| f64::from_bits(r[lane]));
                let sum = (0..k).fold(before, |sum, j| {
                    left[row * k + j].mul_add(right[j * n + col], sum)
                });
                sum.to_bits()
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dense(text: &str, a: Format, b: Format, d: Accumulator) -> Mma {
        Mma {
            shape: Shape::parse(text).unwrap(),
            a,
            b,
            d,
            c: d,
            a_turned: false,
            b_turned: false,
            bit_op: BitOp::And,
            sparse: None,
        }
    }

    /// Small whole values, different everywhere.
    fn value(row: usize, col: usize) -> f32 {
        ((row * 7 + col * 3) % 5) as f32 - 2.0
    }

    fn fill(mma: &Mma, part: Part, format: Format, f: impl Fn(usize, usize) -> f32) -> Registers {
        let bits = format.bits();
        let per = (32 / bits) as usize;
        let shape = if part == Part::A { mma.held() } else { mma.shape };
        let mut out = vec![[0; 32]; count(shape, part) / per];
        for lane in 0..32 {
            for i in 0..count(shape, part) {
                let (row, col) = place(shape, part, bits, lane, i);
                out[i / per][lane] |= format.encode(f(row, col)) << ((i % per) as u32 * bits);
            }
        }
        out
    }

    fn reference(k: usize, a: impl Fn(usize, usize) -> f32, row: usize, col: usize) -> f32 {
        (0..k).map(|i| a(row, i) * value(i, col)).sum::<f32>() + value(col, row)
    }

    fn check(mma: &Mma, d: &Registers, a: impl Fn(usize, usize) -> f32) {
        for lane in 0..32 {
            for i in 0..count(mma.shape, Part::C) {
                let (row, col) = place(mma.shape, Part::C, 32, lane, i);
                let got = match mma.d {
                    Accumulator::F32 => f32::from_bits(d[i][lane]),
                    Accumulator::F16 => Format::F16.decode(d[i / 2][lane] >> (i % 2 * 16)),
                    Accumulator::I32 { .. } => d[i][lane] as i32 as f32,
                };
                assert_eq!(
                    got,
                    reference(mma.shape.k, &a, row, col),
                    "{mma:?} ({row}, {col})"
                );
            }
        }
    }

    #[test]
    fn dense_products_of_all_shapes() {
        use Format::*;
        let int = Accumulator::I32 { saturate: false };
        for (text, format, d) in [
            ("m16n8k4", Tf32, Accumulator::F32),
            ("m16n8k8", Tf32, Accumulator::F32),
            ("m16n8k8", F16, Accumulator::F32),
            ("m16n8k16", F16, Accumulator::F16),
            ("m16n8k8", Bf16, Accumulator::F32),
            ("m16n8k16", Bf16, Accumulator::F32),
            ("m16n8k32", E4m3, Accumulator::F32),
            ("m16n8k32", E5m2, Accumulator::F32),
            ("m16n8k16", E5m2, Accumulator::F16),
            ("m8n8k16", I8, int),
            ("m16n8k16", I8, int),
            ("m16n8k32", I8, int),
            ("m8n8k32", I4, int),
            ("m16n8k64", I4, int),
        ] {
            let mma = dense(text, format, format, d);
            let a = fill(&mma, Part::A, format, value);
            let b = fill(&mma, Part::B, format, value);
            let sums = match d {
                Accumulator::F32 => F32,
                Accumulator::F16 => F16,
                Accumulator::I32 { .. } => I32,
            };
            let mut c = vec![[0; 32]; mma.registers()[2]];
            for lane in 0..32 {
                for i in 0..count(mma.shape, Part::C) {
                    let (row, col) = place(mma.shape, Part::C, 32, lane, i);
                    put(&mut c, d, lane, i, sums.encode(value(col, row)));
                }
            }
            assert_eq!([a.len(), b.len(), c.len()], mma.registers()[..3]);
            let out = mma.compute(&a, &b, &c, &[0; 32]).unwrap();
            check(&mma, &out, value);
        }
    }

    #[test]
    fn bits_are_counted() {
        let int = Accumulator::I32 { saturate: false };
        let mut mma = dense("m16n8k256", Format::B1, Format::B1, int);
        let a = vec![[0xff00_ff00; 32]; 4];
        let b = vec![[0xffff_0000; 32]; 2];
        let c = vec![[1; 32]; 4];
        let out = mma.compute(&a, &b, &c, &[0; 32]).unwrap();
        assert!(out.iter().flatten().all(|d| *d == 1 + 64));
        mma.bit_op = BitOp::Xor;
        let out = mma.compute(&a, &b, &c, &[0; 32]).unwrap();
        assert!(out.iter().flatten().all(|d| *d == 1 + 128));
    }

    #[test]
    fn quads_multiply_their_own_matrices() {
        for (a_turned, b_turned) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut mma = dense("m8n8k4", Format::F16, Format::F16, Accumulator::F32);
            (mma.a_turned, mma.b_turned) = (a_turned, b_turned);
            let (mut a, mut b) = (vec![[0; 32]; 2], vec![[0; 32]; 2]);
            for lane in 0..32 {
                let group = (lane % 16 / 4) as f32;
                for i in 0..4 {
                    let (row, col) = quads::place(Part::A, lane, i, a_turned, false);
                    a[i / 2][lane] |= Format::F16.encode(value(row, col) + group) << (i % 2 * 16);
                    let (row, col) = quads::place(Part::B, lane, i, b_turned, false);
                    b[i / 2][lane] |= Format::F16.encode(value(row, col)) << (i % 2 * 16);
                }
            }
            let d = mma.compute(&a, &b, &[[0; 32]; 8], &[0; 32]).unwrap();
            for lane in 0..32 {
                let group = (lane % 16 / 4) as f32;
                for i in 0..8 {
                    let (row, col) = quads::place(Part::C, lane, i, false, true);
                    let expected: f32 = (0..4).map(|k| (value(row, k) + group) * value(k, col)).sum();
                    assert_eq!(f32::from_bits(d[i][lane]), expected);
                }
            }
        }
    }

    #[test]
    fn sparse_products() {
        use Format::*;
        let int = Accumulator::I32 { saturate: false };
        for (text, format, d, selectors) in [
            ("m16n8k16", F16, Accumulator::F32, 4),
            ("m16n8k32", Bf16, Accumulator::F32, 2),
            ("m16n8k8", Tf32, Accumulator::F32, 4),
            ("m16n8k16", Tf32, Accumulator::F32, 2),
            ("m16n8k32", I8, int, 2),
            ("m16n8k64", I8, int, 1),
            ("m16n8k64", E4m3, Accumulator::F32, 1),
        ] {
            for selector in 0..selectors {
                let mut mma = dense(text, format, format, d);
                mma.sparse = Some(selector);
                // Keeps elements 1 and 3 of four in even groups, 0 and 2 in odd ones; of two the last or the first.
                let tf32 = format == Tf32;
                let full = |row: usize, col: usize| {
                    let kept = if tf32 {
                        col % 2 == 1 - col / 2 % 2
                    } else {
                        col % 2 == 1 - col / 4 % 2
                    };
                    if kept { value(row, col) } else { 0.0 }
                };
                let held = |row: usize, col: usize| {
                    let full_col = if tf32 {
                        col * 2 + 1 - col % 2
                    } else {
                        col * 2 + 1 - col / 2 % 2
                    };
                    full(row, full_col)
                };
                let pattern = |group: usize| match (tf32, group % 2) {
                    (true, 0) => 0b1110,
                    (true, _) => 0b0100,
                    (false, 0) => 0b1101,
                    (false, _) => 0b1000,
                };
                let word: u32 = (0..8).map(|g| pattern(g) << (4 * g)).sum();
                let a = fill(&mma, Part::A, format, held);
                let b = fill(&mma, Part::B, format, value);
                let mut c = vec![[0; 32]; 4];
                for lane in 0..32 {
                    for (i, c) in c.iter_mut().enumerate() {
                        let (row, col) = place(mma.shape, Part::C, 32, lane, i);
                        let format = if d == Accumulator::F32 { F32 } else { I32 };
                        c[lane] = format.encode(value(col, row));
                    }
                }
                let out = mma.compute(&a, &b, &c, &[word; 32]).unwrap();
                check(&mma, &out, full);
                assert!(mma.compute(&a, &b, &c, &[0; 32]).is_err());
            }
        }
    }

    #[test]
    fn float64_products() {
        for text in ["m8n8k4", "m16n8k8"] {
            let shape = Shape::parse(text).unwrap();
            let fill = |part| -> Vec<[u64; 32]> {
                (0..count(shape, part))
                    .map(|i| {
                        std::array::from_fn(|lane| {
                            let (row, col) = place(shape, part, 64, lane, i);
                            f64::from(value(row, col)).to_bits()
                        })
                    })
                    .collect()
            };
            let d = compute_f64(shape, &fill(Part::A), &fill(Part::B), &[]);
            for lane in 0..32 {
                for (i, d) in d.iter().enumerate() {
                    let (row, col) = place(shape, Part::C, 64, lane, i);
                    let expected: f32 = (0..shape.k).map(|k| value(row, k) * value(k, col)).sum();
                    assert_eq!(f64::from_bits(d[lane]), f64::from(expected));
                }
            }
        }
    }
}
