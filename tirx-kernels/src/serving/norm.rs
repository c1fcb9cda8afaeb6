//! Normalization of rows: RMSNorm and LayerNorm, also of the sum with a residual.
//!
//! A row is the last dimension of a tensor with any number of others, so `[tokens, heads, head]` normalizes heads. Rows may have gaps
//! between them: views of up to three dimensions need no copy. Elements are `bf16`, `f16` or `f32`, sums are float32.
//!
//! | function | result |
//! |---|---|
//! | [`rms_norm`] | Y = X / sqrt(mean(X²) + eps) · W |
//! | [`layer_norm`] | Y = (X − mean(X)) / sqrt(mean((X − mean(X))²) + eps) · W + B |
//! | [`add_rms_norm`], [`add_layer_norm`] | the residual becomes R + X, and Y is the norm of that sum |

use tirx_rt::{AsTensor, AsTensorMut, Stream, Tensor};

use super::Element;
use super::rows::{has_shape, same_shape, threads_of_row, three, three_mut};
use crate::Result;
use crate::generated::kernels;

/// The constants of a norm.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// The number that is added to the mean of squares.
    pub eps: f32,
    /// The number that is added to each weight: 1 for models whose weights are deviations from 1 (Gemma).
    pub weight_offset: f32,
}

impl Options {
    /// With this number added to the mean of squares.
    pub fn eps(eps: f32) -> Options {
        Options {
            eps,
            weight_offset: 0.0,
        }
    }

    /// With this number added to each weight.
    pub fn weight_offset(self, weight_offset: f32) -> Options {
        Options {
            weight_offset,
            ..self
        }
    }
}

/// RMSNorm of each row of X.
///
/// ```
/// use tirx_kernels::norm::{self, Options};
/// # use tirx_rt::{Device, Tensor};
/// # fn main() -> tirx_kernels::Result<()> {
/// # let stream = Device::simulator().default_stream();
/// let x = Tensor::from_slice(&stream, &[3.0f32, 4.0], [1, 2])?;
/// let w = Tensor::from_slice(&stream, &[1.0f32, 10.0], [2])?;
/// let mut y = x.zeros_like(&stream)?;
/// norm::rms_norm(&stream, &x, &w, &mut y, Options::eps(0.0))?;
/// assert!((y.to_vec()?[1] - 40.0 / 12.5f32.sqrt()).abs() < 1e-5);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the shapes do not fit each other or the rows are not contiguous;
/// [`Error::Runtime`](crate::Error::Runtime) for those of the launch.
pub fn rms_norm<T: Element>(
    stream: &Stream,
    x: &impl AsTensor<T>,
    weight: &impl AsTensor<T>,
    y: &mut impl AsTensorMut<T>,
    options: Options,
) -> Result<()> {
    launch(
        stream,
        x.tensor(),
        None,
        weight.tensor(),
        None,
        y.tensor_mut(),
        options,
        false,
    )
}

/// R = R + X, rounded to the element type, and Y = RMSNorm of R.
///
/// # Errors
/// As for [`rms_norm`].
pub fn add_rms_norm<T: Element>(
    stream: &Stream,
    x: &impl AsTensor<T>,
    residual: &mut impl AsTensorMut<T>,
    weight: &impl AsTensor<T>,
    y: &mut impl AsTensorMut<T>,
    options: Options,
) -> Result<()> {
    let residual = Some(residual.tensor_mut());
    launch(
        stream,
        x.tensor(),
        residual,
        weight.tensor(),
        None,
        y.tensor_mut(),
        options,
        false,
    )
}

/// LayerNorm of each row of X.
///
/// # Errors
/// As for [`rms_norm`].
pub fn layer_norm<T: Element>(
    stream: &Stream,
    x: &impl AsTensor<T>,
    weight: &impl AsTensor<T>,
    bias: &impl AsTensor<T>,
    y: &mut impl AsTensorMut<T>,
    options: Options,
) -> Result<()> {
    let bias = Some(bias.tensor());
    launch(
        stream,
        x.tensor(),
        None,
        weight.tensor(),
        bias,
        y.tensor_mut(),
        options,
        true,
    )
}

/// R = R + X, rounded to the element type, and Y = LayerNorm of R.
///
/// # Errors
/// As for [`rms_norm`].
pub fn add_layer_norm<T: Element>(
    stream: &Stream,
    x: &impl AsTensor<T>,
    residual: &mut impl AsTensorMut<T>,
    weight: &impl AsTensor<T>,
    bias: &impl AsTensor<T>,
    y: &mut impl AsTensorMut<T>,
    options: Options,
) -> Result<()> {
    let (residual, bias) = (Some(residual.tensor_mut()), Some(bias.tensor()));
    launch(
        stream,
        x.tensor(),
        residual,
        weight.tensor(),
        bias,
        y.tensor_mut(),
        options,
        true,
    )
}

#[expect(clippy::too_many_arguments, reason = "the arguments of a launch")]
fn launch<T: Element>(
    stream: &Stream,
    x: &Tensor<T>,
    residual: Option<&mut Tensor<T>>,
    weight: &Tensor<T>,
    bias: Option<&Tensor<T>>,
    y: &mut Tensor<T>,
    options: Options,
    centered: bool,
) -> Result<()> {
    same_shape(("X", x.shape()), ("Y", y.shape()))?;
    if let Some(residual) = &residual {
        same_shape(("X", x.shape()), ("the residual", residual.shape()))?;
    }
    let x = three(x, "X")?;
    let columns = x.shape()[2];
    for (name, tensor) in [("the weight", Some(weight)), ("the bias", bias)] {
        if let Some(tensor) = tensor {
            has_shape(name, tensor.shape(), &[columns], "one number for each column")?;
        }
    }
    let mut y = three_mut(y, "Y")?;
    if x.is_empty() {
        return Ok(());
    }
    let threads = threads_of_row(columns, size_of::<T>(), x.len() / columns)?;
    // The kernel takes empty tensors for a residual and a bias that there are not.
    let no_bias = weight.slice(0, 0..0)?;
    let bias = bias.unwrap_or(&no_bias);
    let (eps, offset, centered) = (options.eps, options.weight_offset, i32::from(centered));
    match residual {
        Some(residual) => {
            let mut residual = three_mut(residual, "the residual")?;
            kernels::norm::<T>(
                stream,
                &x,
                &mut residual,
                weight,
                bias,
                &mut y,
                eps,
                offset,
                centered,
                threads,
            )?;
        }
        None => {
            let (mut nothing, mut y) = y.split_at_mut(0, 0)?;
            kernels::norm::<T>(
                stream,
                &x,
                &mut nothing,
                weight,
                bias,
                &mut y,
                eps,
                offset,
                centered,
                threads,
            )?;
        }
    }
    Ok(())
}
