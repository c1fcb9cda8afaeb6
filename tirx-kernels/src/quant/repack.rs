//! Weights of 4 bits in the layouts of GPTQ and AWQ, in the layout of the kernels.

use tirx_rt::{Stream, Tensor, f16};

use crate::{Error, Result};

/// A matrix `[outputs, columns]` of 4-bit weights with a factor and a zero for each group of columns, on a device.
///
/// | tensor | shape | |
/// |---|---|---|
/// | `bytes` | `[outputs, columns / 2]` | the weight with the even column in the low half of a byte |
/// | `scales` | `[outputs, groups]` | the factor of each group |
/// | `zeros` | `[outputs, groups]` | the number that stands for zero: a weight is (number − zero) · factor |
#[derive(Debug)]
pub struct Int4 {
    /// Two weights each.
    pub bytes: Tensor<u8>,
    /// Factors.
    pub scales: Tensor<f16>,
    /// Zeros.
    pub zeros: Tensor<u8>,
}

/// A layout of the tensors `qweight`, `qzeros` and `scales` of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `qweight` `[columns / 8, outputs]`, eight columns in a number; zeros are stored less 1. Without `g_idx` (act-order).
    Gptq,
    /// `qweight` `[columns, outputs / 8]`, eight outputs in a number, in the order 0, 2, 4, 6, 1, 3, 5, 7.
    Awq,
}

/// The output that each four bits of a number of AWQ are of.
const AWQ: [usize; 8] = [0, 2, 4, 6, 1, 3, 5, 7];

impl Int4 {
    /// The matrix of a file's tensors. `scales` is `[groups, outputs]` and `qzeros` `[groups, outputs / 8]` in both layouts.
    ///
    /// # Errors
    /// [`Error::Shape`] if the numbers of elements do not fit each other; [`Error::Runtime`] for those of the copies.
    pub fn from_layout(
        stream: &Stream,
        layout: Layout,
        [outputs, columns, groups]: [usize; 3],
        qweight: &[i32],
        qzeros: &[i32],
        scales: &[f16],
    ) -> Result<Int4> {
        // Extents that overflow are none of these tensors.
        let (weights, factors) = (outputs.saturating_mul(columns), groups.saturating_mul(outputs));
        let fits = groups > 0
            && columns.is_multiple_of(groups.saturating_mul(8))
            && outputs.is_multiple_of(8)
            && qweight.len() == weights / 8
            && qzeros.len() == factors / 8
            && scales.len() == factors;
        if !fits {
            return Err(Error::Shape(format!(
                "{outputs} outputs (a multiple of 8) and {columns} columns in {groups} groups of a multiple of 8 have {} numbers of weights, {} of zeros \
                 and {factors} factors; there are {}, {} and {}",
                weights / 8,
                factors / 8,
                qweight.len(),
                qzeros.len(),
                scales.len()
            )));
        }
        let four = |number: i32, at: usize| (number as u32 >> (4 * at) & 15) as u8;
        let place = |output: usize| match layout {
            Layout::Gptq => output % 8,
            Layout::Awq => AWQ.iter().position(|o| *o == output % 8).unwrap_or(0),
        };
        let weight = |output: usize, column: usize| match layout {
            Layout::Gptq => four(qweight[column / 8 * outputs + output], column % 8),
            Layout::Awq => four(qweight[column * (outputs / 8) + output / 8], place(output)),
        };
        let zero = |output: usize, group: usize| {
            let number = four(qzeros[group * (outputs / 8) + output / 8], place(output));
            if layout == Layout::Gptq {
                number + 1
            } else {
                number
            }
        };
        let each = || (0..outputs).flat_map(|output| (0..groups).map(move |group| (output, group)));
        let bytes: Vec<u8> = (0..outputs)
            .flat_map(|output| (0..columns / 2).map(move |pair| (output, 2 * pair)))
            .map(|(output, column)| weight(output, column) | weight(output, column + 1) << 4)
            .collect();
        let factors: Vec<f16> = each()
            .map(|(output, group)| scales[group * outputs + output])
            .collect();
        let zeros: Vec<u8> = each().map(|(output, group)| zero(output, group)).collect();
        Ok(Int4 {
            bytes: Tensor::from_slice(stream, &bytes, [outputs, columns / 2])?,
            scales: Tensor::from_slice(stream, &factors, [outputs, groups])?,
            zeros: Tensor::from_slice(stream, &zeros, [outputs, groups])?,
        })
    }
}
