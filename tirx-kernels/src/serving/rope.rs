//! Rotary embedding (RoPE).

use tirx_rt::{AsTensor, AsTensorMut, Stream};

use super::Element;
use super::rows::{has_shape, number, pairs_of_lane};
use crate::generated::kernels;
use crate::{Error, Result};

/// The elements of a head that a pair consists of, for pairs p = 0, 1, …
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// p and p + number of pairs, as in the published weights of Llama and Qwen for `transformers` (GPT-NeoX).
    Halves,
    /// 2 p and 2 p + 1, as in Meta's weights and GPT-J.
    Interleaved,
}

/// The angles per position of the original method, `base`^(−2 p / `head`) for `head` / 2 pairs. Models that stretch their context have other
/// numbers; pass them in a tensor.
pub fn frequencies(base: f64, head: usize) -> Vec<f32> {
    (0..head / 2)
        .map(|pair| base.powf(-2.0 * pair as f64 / head as f64) as f32)
        .collect()
}

/// Turns the pairs of each head of X `[tokens, heads, head]` in place, by position times frequency.
///
/// `frequencies` has a number for each pair, so `2 * frequencies.len()` elements of a head turn and the others keep their values. Angles are
/// reduced in float64: large positions lose no precision. X may be a part of a wider tensor, such as the queries in a fused product.
///
/// ```
/// use tirx_kernels::rope::{self, Pairs};
/// # use tirx_rt::{Device, Tensor};
/// # fn main() -> tirx_kernels::Result<()> {
/// # let stream = Device::simulator().default_stream();
/// let mut q = Tensor::full(&stream, 1.0f32, [3, 4, 64])?;
/// let positions = Tensor::from_slice(&stream, &[0, 1, 2], [3])?;
/// let frequencies = Tensor::from_slice(&stream, &rope::frequencies(10_000.0, 64), [32])?;
/// rope::apply(&stream, &mut q, &positions, &frequencies, Pairs::Halves)?;
/// assert!((q.to_vec()?[4 * 64] - (1f32.cos() - 1f32.sin())).abs() < 1e-5);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the shapes do not fit each other or heads are not contiguous; [`Error::Runtime`] for those of the launch.
pub fn apply<T: Element>(
    stream: &Stream,
    x: &mut impl AsTensorMut<T>,
    positions: &impl AsTensor<i32>,
    frequencies: &impl AsTensor<f32>,
    pairs: Pairs,
) -> Result<()> {
    let (x, positions, frequencies) = (x.tensor_mut(), positions.tensor(), frequencies.tensor());
    let (&[tokens, heads, head], &[of_pairs]) = (x.shape(), frequencies.shape()) else {
        return Err(Error::Shape(format!(
            "rotary embedding takes X [tokens, heads, head] and frequencies [pairs]; they have {:?} and {:?}",
            x.shape(),
            frequencies.shape()
        )));
    };
    has_shape(
        "the positions",
        positions.shape(),
        &[tokens],
        "one for each token",
    )?;
    if of_pairs * 2 > head || of_pairs > MAX_PAIRS {
        return Err(Error::Shape(format!(
            "{of_pairs} frequencies turn {} elements of a head; heads have {head}, and there are at most {MAX_PAIRS} frequencies",
            of_pairs * 2
        )));
    }
    if x.is_empty() || of_pairs == 0 {
        return Ok(());
    }
    if x.strides()[2] != 1 || (of_pairs > 1 && frequencies.strides()[0] != 1) {
        return Err(Error::Shape(format!(
            "heads and frequencies are contiguous; their strides are {:?} and {:?}",
            x.strides(),
            frequencies.strides()
        )));
    }
    number(tokens, "the number of tokens")?;
    number(heads.saturating_mul(head), "the number of elements of a token")?;
    let interleaved = i32::from(pairs == Pairs::Interleaved);
    let of_lane = pairs_of_lane(tokens, heads * (of_pairs * size_of::<T>()).div_ceil(16))?;
    kernels::rope::<T>(stream, x, positions, frequencies, interleaved, of_lane)?;
    Ok(())
}

/// The most pairs of a head that turn.
pub const MAX_PAIRS: usize = 256;
