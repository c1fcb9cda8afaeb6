//! Mixtures of experts: everything around the products of the experts.
//!
//! 1. [`route`] chooses experts for each token, with weights.
//! 2. [`align`] orders the choices by expert, so that the rows of each expert are neighbors and begin at a multiple of a tile's rows.
//! 3. [`embedding::gather`](super::embedding::gather) copies the tokens in this order (padding becomes zeros); the experts multiply their rows.
//! 4. [`combine`] adds the results of each token with its weights, in a fixed order.
//!
//! The order of an expert's rows differs between runs. A token's result does not depend on it.

use tirx_rt::{AsTensor, AsTensorMut, Stream};

use super::Element;
use super::rows::{has_shape, number, segments_of_row};
use crate::generated::kernels;
use crate::{Error, Result};

/// The most experts.
pub const MAX_EXPERTS: usize = 512;

/// The function that makes scores of logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Score {
    /// The softmax over all experts (Mixtral, Qwen).
    Softmax,
    /// The sigmoid of each logit (DeepSeek V3, Llama 4).
    Sigmoid,
}

/// The form of weights of the chosen experts. [`Options::new`] has scores as they are.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// The function that makes scores.
    pub score: Score,
    /// Whether the weights of a token are divided by their sum.
    pub normalized: bool,
    /// The factor of weights.
    pub scale: f32,
}

impl Options {
    /// With these scores as weights.
    pub fn new(score: Score) -> Options {
        Options {
            score,
            normalized: false,
            scale: 1.0,
        }
    }

    /// With weights whose sum is 1 (before the factor).
    pub fn normalized(self) -> Options {
        Options {
            normalized: true,
            ..self
        }
    }

    /// With this factor of weights.
    pub fn scale(self, scale: f32) -> Options {
        Options { scale, ..self }
    }
}

/// Chooses the experts with the greatest scores for each token, greatest first; of equal ones the first.
///
/// `logits` is `[tokens, experts]`, `ids` and `weights` are `[tokens, experts of a token]`. With a `bias`, `[experts]`, the choice is by score plus
/// bias and the weight is the score alone.
///
/// Experts whose score (plus bias) is NaN or minus infinity come last, the first of them first. The ids of a token are different experts in any case.
///
/// # Errors
/// [`Error::Shape`] if the shapes do not fit each other, there are more than [`MAX_EXPERTS`] experts, or a tensor is not contiguous;
/// [`Error::Runtime`] for those of the launch.
pub fn route<T: Element>(
    stream: &Stream,
    logits: &impl AsTensor<T>,
    bias: Option<&tirx_rt::Tensor<f32>>,
    ids: &mut impl AsTensorMut<i32>,
    weights: &mut impl AsTensorMut<f32>,
    options: Options,
) -> Result<()> {
    let (logits, ids, weights) = (logits.tensor(), ids.tensor_mut(), weights.tensor_mut());
    let (&[tokens, experts], &[of_ids, chosen]) = (logits.shape(), ids.shape()) else {
        return Err(Error::Shape(format!(
            "logits have the shape [tokens, experts] and ids [tokens, experts of a token]; they have {:?} and {:?}",
            logits.shape(),
            ids.shape()
        )));
    };
    has_shape("the weights", weights.shape(), ids.shape(), "that of the ids")?;
    if of_ids != tokens || chosen > experts || experts > MAX_EXPERTS {
        return Err(Error::Shape(format!(
            "of at most {MAX_EXPERTS} experts, each of {tokens} tokens has some; there are {experts} experts, and ids have the shape {:?}",
            ids.shape()
        )));
    }
    if let Some(bias) = bias {
        has_shape("the bias", bias.shape(), &[experts], "one for each expert")?;
    }
    if ids.is_empty() {
        return Ok(());
    }
    if experts > 1 && logits.strides()[1] != 1 {
        return Err(Error::Shape("the rows of logits are contiguous".into()));
    }
    number(tokens, "the number of tokens")?;
    let (sigmoid, normalized) = (
        i32::from(options.score == Score::Sigmoid),
        i32::from(options.normalized),
    );
    // The kernel takes an empty tensor for "no bias".
    let (mut nothing, mut weights) = weights.split_at_mut(0, 0)?;
    let nothing = nothing.reshape_mut([0])?;
    let bias = bias.unwrap_or(&nothing);
    // A token's weights add up to the factor if they are normalized.
    let scale = if options.normalized { 1.0 } else { options.scale };
    let after = if options.normalized { options.scale } else { 1.0 };
    kernels::experts_route::<T>(
        stream,
        logits,
        bias,
        ids,
        &mut weights,
        sigmoid,
        normalized,
        scale,
        after,
    )?;
    Ok(())
}

/// The rows that [`align`] needs for `choices` choices (tokens times experts of a token): each expert may have a part of a tile more.
pub fn capacity(choices: usize, experts: usize, multiple: usize) -> usize {
    let padding = experts.min(choices).saturating_mul(multiple.saturating_sub(1));
    choices.saturating_add(padding)
}

/// Orders the choices by expert.
///
/// | tensor | shape | |
/// |---|---|---|
/// | `ids` | `[tokens, experts of a token]` | from [`route`]; others than experts are left out |
/// | `begins` | `[experts + 1]` | the first row of each expert, a multiple of `multiple`, and the end of the last one |
/// | `tokens` | `[rows]` | the token of each row, −1 for padding; [`capacity`] rows are enough |
/// | `places` | `[tokens, experts of a token]` | the row of each choice; −1 if it is left out |
///
/// # Errors
/// [`Error::Shape`] if the shapes do not fit each other or a tensor is not contiguous; [`Error::Runtime`] for those of the launch.
pub fn align(
    stream: &Stream,
    ids: &impl AsTensor<i32>,
    begins: &mut impl AsTensorMut<i32>,
    tokens: &mut impl AsTensorMut<i32>,
    places: &mut impl AsTensorMut<i32>,
    multiple: usize,
) -> Result<()> {
    let (ids, begins, tokens, places) = (
        ids.tensor(),
        begins.tensor_mut(),
        tokens.tensor_mut(),
        places.tensor_mut(),
    );
    has_shape("the places", places.shape(), ids.shape(), "that of the ids")?;
    let (&[_, _], &[ends], &[rows]) = (ids.shape(), begins.shape(), tokens.shape()) else {
        return Err(Error::Shape(format!(
            "ids have the shape [tokens, experts of a token], begins [experts + 1], tokens [rows]; they have {:?}, {:?} and {:?}",
            ids.shape(),
            begins.shape(),
            tokens.shape()
        )));
    };
    if !(2..=MAX_EXPERTS + 1).contains(&ends) || multiple == 0 {
        return Err(Error::Shape(format!(
            "there are 1 to {MAX_EXPERTS} experts, and rows begin at multiples of at least 1; begins has the shape {:?}",
            begins.shape()
        )));
    }
    let needed = capacity(ids.len(), ends - 1, multiple);
    if rows < needed {
        return Err(Error::Shape(format!(
            "tokens have {rows} rows; {} choices need {needed}",
            ids.len()
        )));
    }
    number(needed, "the number of rows")?;
    let multiple = number(multiple, "the multiple")?;
    kernels::experts_align(stream, ids, begins, tokens, places, multiple)?;
    Ok(())
}

/// Y\[t\] = Σ weights\[t, c\] · X\[places\[t, c\]\] over the experts c of a token, in float32. A place that is no row of X adds nothing.
///
/// # Errors
/// [`Error::Shape`] if the shapes do not fit each other or rows are not contiguous; [`Error::Runtime`] for those of the launch.
pub fn combine<T: Element>(
    stream: &Stream,
    x: &impl AsTensor<T>,
    places: &impl AsTensor<i32>,
    weights: &impl AsTensor<f32>,
    y: &mut impl AsTensorMut<T>,
) -> Result<()> {
    let (x, places, weights, y) = (x.tensor(), places.tensor(), weights.tensor(), y.tensor_mut());
    has_shape(
        "the weights",
        weights.shape(),
        places.shape(),
        "that of the places",
    )?;
    let (&[rows, columns], &[tokens, _]) = (x.shape(), places.shape()) else {
        return Err(Error::Shape(format!(
            "X has the shape [rows, columns] and places [tokens, experts of a token]; they have {:?} and {:?}",
            x.shape(),
            places.shape()
        )));
    };
    has_shape("Y", y.shape(), &[tokens, columns], "[tokens, columns of X]")?;
    if y.is_empty() {
        return Ok(());
    }
    if places.is_empty() || rows == 0 {
        y.fill_zero(stream)?;
        return Ok(());
    }
    if columns > 1 && (x.strides()[1], y.strides()[1]) != (1, 1) {
        return Err(Error::Shape("the rows of X and Y are contiguous".into()));
    }
    number(rows, "the number of rows")?;
    let (warps, segments) = segments_of_row(columns, size_of::<T>(), tokens, 2)?;
    kernels::experts_combine::<T>(stream, x, places, weights, y, warps, segments)?;
    Ok(())
}
