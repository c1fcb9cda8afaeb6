//! How does a matrix multiply whose parts have different forms?
//!
//! Files in few bits mix formats: values may have more bits than keys. Parts of one form are one product; each writes its own columns of the
//! output.

use tirx_kernels::Result as KernelResult;
use tirx_kernels::gemm::{self, Plan};
use tirx_kernels::quant::{self, Format, Weights};
use tirx_rt::{Stream, Tensor, bf16};

use crate::weights::Elements;
use crate::{Result, Source};

/// Rows of X up to which the weights are multiplied in few bits.
const FEW_ROWS: usize = 16;

/// Weights `[outputs, inputs]`.
#[derive(Debug)]
pub(crate) struct Matrix {
    /// Rows below one another.
    parts: Vec<Part>,
    columns: usize,
}

#[derive(Debug)]
struct Part {
    rows: usize,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Numbers(Tensor<bf16>),
    Blocks(Format, Tensor<u8>),
}

impl Matrix {
    /// The rows of all these tensors with the same number of columns.
    pub(crate) fn load(
        stream: &Stream,
        source: &dyn Source,
        names: &[(String, usize)],
        columns: usize,
    ) -> Result<Matrix> {
        let mut found: Vec<(usize, Elements)> = Vec::new();
        for (name, rows) in names {
            let elements = source.matrix(&format!("{name}.weight"), *rows, columns)?;
            match (found.last_mut(), elements) {
                (Some((all, Elements::Bf16(before))), Elements::Bf16(values)) => {
                    before.extend(values);
                    *all += rows;
                }
                (Some((all, Elements::Blocks(format, before))), Elements::Blocks(other, bytes))
                    if *format == other =>
                {
                    before.extend(bytes);
                    *all += rows;
                }
                (_, elements) => found.push((*rows, elements)),
            }
        }
        let part = |(rows, elements)| -> Result<Part> {
            let values = match elements {
                Elements::Bf16(values) => {
                    Values::Numbers(Tensor::from_slice(stream, &values, [rows, columns])?)
                }
                Elements::Blocks(format, bytes) => {
                    let of_row = bytes.len() / rows.max(1);
                    Values::Blocks(format, Tensor::from_slice(stream, &bytes, [rows, of_row])?)
                }
            };
            Ok(Part { rows, values })
        };
        Ok(Matrix {
            parts: found.into_iter().map(part).collect::<Result<_>>()?,
            columns,
        })
    }

    /// All its numbers.
    pub(crate) fn into_numbers(self, stream: &Stream) -> Result<Tensor<bf16>> {
        let rows = self.parts.iter().map(|part| part.rows).sum();
        let mut all = Tensor::zeros(stream, [rows, self.columns])?;
        let mut first = 0;
        for part in self.parts {
            let mut own = all.slice_mut(0, first..first + part.rows)?;
            first += part.rows;
            match part.values {
                Values::Numbers(values) => own.copy_from(stream, &values)?,
                Values::Blocks(format, bytes) => {
                    quant::dequantize(stream, Weights::Gguf(format, &bytes), &mut own)?;
                }
            }
        }
        Ok(all)
    }

    pub(crate) fn bytes(&self) -> usize {
        let of_part = |part: &Part| match &part.values {
            Values::Numbers(values) => 2 * values.len(),
            Values::Blocks(_, bytes) => bytes.len(),
        };
        self.parts.iter().map(of_part).sum()
    }

    /// The elements that [`Matrix::multiply`] needs for the numbers of a part.
    pub(crate) fn dense_elements(&self, tokens: usize) -> usize {
        let blocks = |part: &&Part| tokens > FEW_ROWS && matches!(part.values, Values::Blocks(..));
        let elements = self
            .parts
            .iter()
            .filter(blocks)
            .map(|part| part.rows * self.columns);
        elements.max().unwrap_or(0)
    }

    /// Y = X Wᵀ.
    pub(crate) fn multiply(
        &self,
        stream: &Stream,
        x: &Tensor<bf16>,
        y: &mut Tensor<bf16>,
        dense: &mut Tensor<bf16>,
    ) -> KernelResult<()> {
        let mut first = 0;
        for part in &self.parts {
            let mut y = y.slice_mut(1, first..first + part.rows)?;
            first += part.rows;
            match &part.values {
                Values::Numbers(values) => multiply_numbers(stream, x, values, &mut y)?,
                Values::Blocks(format, bytes) if x.shape()[0] <= FEW_ROWS => {
                    quant::matmul(stream, x, Weights::Gguf(*format, bytes), &mut y)?;
                }
                Values::Blocks(format, bytes) => {
                    let mut numbers = dense.slice_mut(0, 0..part.rows * self.columns)?;
                    let mut numbers = numbers.reshape_mut([part.rows, self.columns])?;
                    quant::dequantize(stream, Weights::Gguf(*format, bytes), &mut numbers)?;
                    gemm::matmul(stream, x, &numbers.permute(&[1, 0])?, &mut y)?;
                }
            }
        }
        Ok(())
    }
}

/// Y = X Wᵀ. No kernel writes weights, so they may be fetched while the kernels before end.
pub(crate) fn multiply_numbers(
    stream: &Stream,
    x: &Tensor<bf16>,
    weights: &Tensor<bf16>,
    y: &mut Tensor<bf16>,
) -> KernelResult<()> {
    let w = weights.permute(&[1, 0])?;
    let plan = Plan::new(&stream.device(), x, &w, y)?;
    plan.constant_b().run(stream, x, &w, y)
}
