//! What is the product of two matrices, and how is it accumulated?
//!
//! Products of operands are exact in float32; a tensor core adds those of one instruction and then the accumulator. The
//! order of additions within an instruction is the hardware's own and not documented; here it is ascending in k.

use std::ops::{AddAssign, Mul, Neg};

use super::format::round_f16;

/// The elements of a matrix: float32 for those that tensor cores multiply, float64 for those without rounding.
pub trait Number: Copy + Default + PartialEq + Neg<Output = Self> + Mul<Output = Self> + AddAssign {}

impl Number for f32 {}
impl Number for f64 {}

/// A matrix of values, row after row.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix<T = f32> {
    pub rows: usize,
    pub cols: usize,
    pub values: Vec<T>,
}

impl Matrix {
    /// The same values in double precision.
    pub fn widened(&self) -> Matrix<f64> {
        Matrix {
            rows: self.rows,
            cols: self.cols,
            values: self.values.iter().copied().map(f64::from).collect(),
        }
    }
}

impl Matrix<f64> {
    /// The magnitudes of its elements.
    pub fn magnitudes(&self) -> Matrix<f64> {
        Matrix {
            rows: self.rows,
            cols: self.cols,
            values: self.values.iter().map(|value| value.abs()).collect(),
        }
    }
}

impl<T: Number> Matrix<T> {
    pub fn zero(rows: usize, cols: usize) -> Matrix<T> {
        Matrix {
            rows,
            cols,
            values: vec![T::default(); rows * cols],
        }
    }

    #[inline]
    pub fn at(&self, row: usize, col: usize) -> T {
        self.values[row * self.cols + col]
    }

    #[inline]
    pub fn set(&mut self, row: usize, col: usize, value: T) {
        self.values[row * self.cols + col] = value;
    }

    /// Adds the rows of another below.
    pub fn append(&mut self, below: Matrix<T>) {
        self.rows += below.rows;
        self.values.extend(below.values);
    }

    /// Some of its rows.
    pub fn rows_from(&self, first: usize, rows: usize) -> Matrix<T> {
        Matrix {
            rows,
            cols: self.cols,
            values: self.values[first * self.cols..(first + rows) * self.cols].to_vec(),
        }
    }

    pub fn transposed(&self) -> Matrix<T> {
        let mut out = Matrix::zero(self.cols, self.rows);
        for r in 0..self.rows {
            for c in 0..self.cols {
                out.values[c * self.rows + r] = self.values[r * self.cols + c];
            }
        }
        out
    }

    pub fn negate(&mut self) {
        self.values.iter_mut().for_each(|v| *v = -*v);
    }
}

/// `a · b` of an M×K and a K×N matrix.
pub fn multiply<T: Number>(a: &Matrix<T>, b: &Matrix<T>) -> Matrix<T> {
    let n = b.cols;
    let mut out = Matrix::zero(a.rows, n);
    for row in 0..a.rows {
        let sums = &mut out.values[row * n..(row + 1) * n];
        for k in 0..a.cols.min(b.rows) {
            let x = a.values[row * a.cols + k];
            for (sum, y) in sums.iter_mut().zip(&b.values[k * n..(k + 1) * n]) {
                *sum += x * *y;
            }
        }
    }
    out
}

/// What an accumulator is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accumulator {
    F32,
    F16,
    I32 { saturate: bool },
}

impl Accumulator {
    /// The bits of `product + before`; a product of integers is exact in float32 for every shape there is.
    pub fn add(self, product: f32, before: u32) -> u32 {
        match self {
            Accumulator::F32 => (product + f32::from_bits(before)).to_bits(),
            Accumulator::F16 => {
                let before = tirx_dtype::f16::from_bits(before as u16).to_f32();
                round_f16(product + before).into()
            }
            Accumulator::I32 { saturate: false } => (product as i32).wrapping_add(before as i32) as u32,
            Accumulator::I32 { saturate: true } => (product as i32).saturating_add(before as i32) as u32,
        }
    }

    /// Elements of an accumulator in 32 bits.
    pub fn packed(self) -> usize {
        if self == Accumulator::F16 { 2 } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_matrices() {
        let a = Matrix {
            rows: 2,
            cols: 3,
            values: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        };
        let b = a.transposed();
        assert_eq!(multiply(&a, &b).values, [14.0, 32.0, 32.0, 77.0]);
    }

    #[test]
    fn accumulators_round_and_saturate() {
        assert_eq!(f32::from_bits(Accumulator::F32.add(1.5, 2.0f32.to_bits())), 3.5);
        assert_eq!(Accumulator::F16.add(1.0, 0x3c00), 0x4000);
        let most = i32::MAX as u32;
        assert_eq!(Accumulator::I32 { saturate: true }.add(1.0, most), most);
        assert_eq!(
            Accumulator::I32 { saturate: false }.add(1.0, most) as i32,
            i32::MIN
        );
    }
}
