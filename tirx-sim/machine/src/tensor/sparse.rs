//! What does a sparse A hold, with its zeros?
//!
//! Of a sparse A half of the elements are stored. The metadata says in four bits for each group which are there (PTX ISA,
//! "Sparse matrix storage"): two of four elements, one of two (tf32), or two pairs of four (formats of four bits).

use super::Outcome;
use super::matrix::{Matrix, Number};

/// The encoding of four bits of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sparsity {
    /// Which one of two elements.
    OneOfTwo,
    /// Which two of four elements.
    TwoOfFour,
    /// Which two pairs of four pairs.
    PairsOfFour,
}

impl Sparsity {
    /// Elements of a group.
    pub fn span(self) -> usize {
        match self {
            Sparsity::OneOfTwo => 2,
            Sparsity::TwoOfFour => 4,
            Sparsity::PairsOfFour => 8,
        }
    }

    /// The matrix with `k` columns whose elements are `held`; `bits` gives the metadata of a row's group.
    pub fn spread<T: Number>(
        self,
        held: &Matrix<T>,
        k: usize,
        bits: impl Fn(usize, usize) -> u32,
    ) -> Outcome<Matrix<T>> {
        let mut out = Matrix::zero(held.rows, k);
        let span = self.span();
        for row in 0..held.rows {
            for group in 0..k / span {
                let bits = bits(row, group) & 0xf;
                let kept = held.values[row * held.cols..].get(group * span / 2..(group + 1) * span / 2);
                let kept = kept.unwrap_or(&[]);
                let wrong = || {
                    format!(
                        "the sparsity metadata of row {row}, group {group} is {bits:#06b}, which names {}",
                        match self {
                            Sparsity::OneOfTwo =>
                                "neither the first (0b0100) nor the second (0b1110) of two elements",
                            _ => "no two in ascending order",
                        }
                    )
                };
                if self == Sparsity::OneOfTwo {
                    let at = match bits {
                        0b0100 => 0,
                        0b1110 => 1,
                        _ => return Err(wrong()),
                    };
                    kept.iter().for_each(|value| out.set(row, group * 2 + at, *value));
                    continue;
                }
                let unit = span / 4;
                let (first, second) = (bits as usize & 3, bits as usize >> 2);
                if first >= second {
                    return Err(wrong());
                }
                for (i, value) in kept.iter().enumerate() {
                    let at = if i < unit { first } else { second };
                    out.set(row, group * span + at * unit + i % unit, *value);
                }
            }
        }
        Ok(out)
    }
}
