//! What does `wgmma` compute, and which lane holds it?
//!
//! `wgmma.mma_async` multiplies a 64×K matrix A, in shared memory or in registers, by a K×N matrix B in shared memory,
//! for the 128 threads of a warpgroup. K is 32 bytes. Warp `w` of the warpgroup holds rows `16 w` to `16 w + 15` of A
//! and D (PTX ISA, "Register fragments and shared memory matrix layouts").

use super::Outcome;
use super::descriptor::Operand;
use super::format::Format;
use super::matrix::{Accumulator, Matrix, Number, multiply};

/// Rows of A and D.
pub const ROWS: usize = 64;

/// A `wgmma.mma_async` instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wgmma {
    pub n: usize,
    pub a: Format,
    pub b: Format,
    pub d: Accumulator,
    /// MN-major operands.
    pub turned_a: bool,
    pub turned_b: bool,
    pub negate_a: bool,
    pub negate_b: bool,
}

impl Wgmma {
    /// An instruction of these extents and formats, if there is one.
    pub fn new(m: usize, n: usize, k: usize, input: Format, output: Format) -> Outcome<Wgmma> {
        let d = match output {
            Format::F32 => Accumulator::F32,
            Format::F16 => Accumulator::F16,
            Format::I32 => Accumulator::I32 { saturate: false },
            _ => return Err(format!("wgmma has no accumulators of {output:?}")),
        };
        let right_k = k * input.bits() as usize == 256;
        let small = n.is_multiple_of(8) && (8..=256).contains(&n);
        if m != ROWS || !right_k || !small {
            return Err(format!(
                "wgmma has no shape m{m}n{n}k{k} for {input:?}: m is 64, n a multiple of 8 up to 256, and k {}",
                256 / input.bits().max(1)
            ));
        }
        Ok(Wgmma {
            n,
            a: input,
            b: input,
            d,
            turned_a: false,
            turned_b: false,
            negate_a: false,
            negate_b: false,
        })
    }

    pub fn k(&self) -> usize {
        256 / self.a.bits() as usize
    }

    /// How A lies in shared memory.
    pub fn left(&self) -> Operand {
        Operand::packed(ROWS, self.k(), self.a, self.turned_a)
    }

    /// How B lies in shared memory.
    pub fn right(&self) -> Operand {
        Operand::packed(self.n, self.k(), self.b, self.turned_b)
    }

    /// 32-bit accumulator registers of a thread.
    pub fn sums(&self) -> usize {
        self.n / 2 / self.d.packed()
    }

    /// 32-bit registers of A of a thread.
    pub fn left_registers(&self) -> usize {
        4
    }

    /// The rows of A that a warp holds in registers: 16×K, as `mma.sync` has them.
    pub fn left_of_registers(&self, registers: &[[u32; 32]]) -> Matrix {
        let bits = self.a.bits();
        let per = (32 / bits) as usize;
        let decoder = self.a.decoder();
        let mut out = Matrix::zero(16, self.k());
        for (r, register) in registers.iter().enumerate().take(4) {
            for (lane, word) in register.iter().enumerate() {
                for e in 0..per {
                    let row = lane / 4 + 8 * (r % 2);
                    let col = lane % 4 * per + e + 4 * per * (r / 2);
                    out.set(row, col, decoder.decode(word >> (e as u32 * bits)));
                }
            }
        }
        out
    }

    /// `A · B` with the instruction's signs: of rows×K and N×K.
    pub fn product<T: Number>(&self, mut left: Matrix<T>, right: &Matrix<T>) -> Matrix<T> {
        if self.negate_a != self.negate_b {
            left.negate();
        }
        multiply(&left, &right.transposed())
    }

    /// Row (of the warp's sixteen) and column of a lane's accumulator element.
    pub fn place(lane: usize, element: usize) -> (usize, usize) {
        let row = lane / 4 + element / 2 % 2 * 8;
        (row, element / 4 * 8 + lane % 4 * 2 + element % 2)
    }

    /// A warp's accumulators after the instruction. `first_row` is the row of `product` where the warp's begin;
    /// `keep` says whether what is there is added (`scale-d`).
    pub fn accumulate(
        &self,
        product: &Matrix,
        first_row: usize,
        sums: &mut [[u32; 32]],
        keep: &dyn Fn(usize) -> bool,
    ) {
        let packed = self.d.packed();
        for (r, register) in sums.iter_mut().enumerate() {
            for (lane, word) in register.iter_mut().enumerate() {
                let before = if keep(lane) { *word } else { 0 };
                let mut after = 0;
                for e in 0..packed {
                    let (row, col) = Wgmma::place(lane, r * packed + e);
                    let mask = if packed == 2 { 0xffff } else { u32::MAX };
                    let shift = e as u32 * 16;
                    let sum = self
                        .d
                        .add(product.at(first_row + row, col), before >> shift & mask);
                    after |= (sum & mask) << shift;
                }
                *word = after;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        assert!(Wgmma::new(64, 256, 16, Format::Bf16, Format::F32).is_ok());
        assert!(Wgmma::new(64, 8, 8, Format::Tf32, Format::F32).is_ok());
        assert!(Wgmma::new(64, 24, 32, Format::E4m3, Format::F16).is_ok());
        let error = Wgmma::new(64, 256, 32, Format::Bf16, Format::F32).unwrap_err();
        assert!(error.contains("k 16"), "{error}");
    }

    #[test]
    fn accumulators_cover_the_tile() {
        let it = Wgmma::new(64, 64, 16, Format::F16, Format::F32).unwrap();
        let mut seen = vec![0; 16 * 64];
        for lane in 0..32 {
            for i in 0..it.sums() {
                let (row, col) = Wgmma::place(lane, i);
                seen[row * 64 + col] += 1;
            }
        }
        assert!(seen.iter().all(|n| *n == 1));
        assert_eq!(Wgmma::place(5, 6), (9, 8 + 2));
    }

    #[test]
    fn products_with_a_in_registers() {
        for (format, k) in [(Format::F16, 16), (Format::Tf32, 8), (Format::E4m3, 32)] {
            let mut it = Wgmma::new(64, 8, k, format, Format::F32).unwrap();
            it.negate_b = true;
            let value = |row: usize, col: usize| ((row + 2 * col) % 4) as f32 - 1.0;
            let per = (32 / format.bits()) as usize;
            let mut registers = [[0u32; 32]; 4];
            for (r, register) in registers.iter_mut().enumerate() {
                for (lane, word) in register.iter_mut().enumerate() {
                    for e in 0..per {
                        let row = lane / 4 + 8 * (r % 2);
                        let col = lane % 4 * per + e + 4 * per * (r / 2);
                        *word |= format.encode(value(row, col)) << (e as u32 * format.bits());
                    }
                }
            }
            let left = it.left_of_registers(&registers);
            let mut right = Matrix::zero(8, k);
            for n in 0..8 {
                for i in 0..k {
                    right.set(n, i, value(n, i));
                }
            }
            let product = it.product(left, &right);
            let mut sums = [[1.0f32.to_bits(); 32]; 4];
            it.accumulate(&product, 0, &mut sums, &|lane| lane % 2 == 0);
            for lane in 0..32 {
                for (i, sum) in sums.iter().enumerate() {
                    let (row, col) = Wgmma::place(lane, i);
                    let dot: f32 = (0..k).map(|j| value(row, j) * value(col, j)).sum();
                    let before = if lane % 2 == 0 { 1.0 } else { 0.0 };
                    assert_eq!(f32::from_bits(sum[lane]), before - dot);
                }
            }
        }
    }
}
