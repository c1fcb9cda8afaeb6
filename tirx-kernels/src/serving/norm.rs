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
//! | [`rms_norm_quantized`], [`add_rms_norm_quantized`], [`layer_norm_quantized`], [`add_layer_norm_quantized`] | the same, with Y in 8 bits and a factor for each row, as [`quantize::rows`](super::quantize::rows) gives them |

use tirx_rt::{AsTensor, AsTensorMut, Element as Number, Stream, Tensor, View, bf16, f8e4m3, f16};

use super::Element;
use super::quantize::scales_of_rows;
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
        Operands::rms(x.tensor(), None, weight.tensor(), options),
        y.tensor_mut(),
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
        Operands::rms(x.tensor(), residual, weight.tensor(), options),
        y.tensor_mut(),
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
    launch(
        stream,
        Operands::layer(x.tensor(), None, weight.tensor(), bias.tensor(), options),
        y.tensor_mut(),
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
    let residual = Some(residual.tensor_mut());
    launch(
        stream,
        Operands::layer(x.tensor(), residual, weight.tensor(), bias.tensor(), options),
        y.tensor_mut(),
    )
}

/// As [`rms_norm`], with Y in 8 bits: `scales[r]` = max |Y\[r\]| / 127 (`i8`) or 448 (`f8e4m3`), and Q = Y · (1 / scale), rounded to the nearest. Y is
/// rounded to `T` first, so the result is that of [`quantize::rows`](super::quantize::rows) after [`rms_norm`], in one pass.
///
/// `scales` has the shape of X without the last dimension.
///
/// # Errors
/// As for [`rms_norm`].
pub fn rms_norm_quantized<T: QuantizeTo<Q>, Q: Number>(
    stream: &Stream,
    x: &impl AsTensor<T>,
    weight: &impl AsTensor<T>,
    q: &mut impl AsTensorMut<Q>,
    scales: &mut impl AsTensorMut<f32>,
    options: Options,
) -> Result<()> {
    let operands = Operands::rms(x.tensor(), None, weight.tensor(), options);
    launch_quantized(stream, operands, q.tensor_mut(), scales.tensor_mut())
}

/// R = R + X, rounded to the element type, and the norm of R as by [`rms_norm_quantized`].
///
/// # Errors
/// As for [`rms_norm`].
pub fn add_rms_norm_quantized<T: QuantizeTo<Q>, Q: Number>(
    stream: &Stream,
    x: &impl AsTensor<T>,
    residual: &mut impl AsTensorMut<T>,
    weight: &impl AsTensor<T>,
    q: &mut impl AsTensorMut<Q>,
    scales: &mut impl AsTensorMut<f32>,
    options: Options,
) -> Result<()> {
    let residual = Some(residual.tensor_mut());
    let operands = Operands::rms(x.tensor(), residual, weight.tensor(), options);
    launch_quantized(stream, operands, q.tensor_mut(), scales.tensor_mut())
}

/// As [`layer_norm`], with Y in 8 bits as by [`rms_norm_quantized`].
///
/// # Errors
/// As for [`rms_norm`].
pub fn layer_norm_quantized<T: QuantizeTo<Q>, Q: Number>(
    stream: &Stream,
    x: &impl AsTensor<T>,
    weight: &impl AsTensor<T>,
    bias: &impl AsTensor<T>,
    q: &mut impl AsTensorMut<Q>,
    scales: &mut impl AsTensorMut<f32>,
    options: Options,
) -> Result<()> {
    let operands = Operands::layer(x.tensor(), None, weight.tensor(), bias.tensor(), options);
    launch_quantized(stream, operands, q.tensor_mut(), scales.tensor_mut())
}

/// R = R + X, rounded to the element type, and the norm of R as by [`layer_norm_quantized`].
///
/// # Errors
/// As for [`rms_norm`].
#[expect(clippy::too_many_arguments, reason = "the arguments of a launch")]
pub fn add_layer_norm_quantized<T: QuantizeTo<Q>, Q: Number>(
    stream: &Stream,
    x: &impl AsTensor<T>,
    residual: &mut impl AsTensorMut<T>,
    weight: &impl AsTensor<T>,
    bias: &impl AsTensor<T>,
    q: &mut impl AsTensorMut<Q>,
    scales: &mut impl AsTensorMut<f32>,
    options: Options,
) -> Result<()> {
    let residual = Some(residual.tensor_mut());
    let operands = Operands::layer(x.tensor(), residual, weight.tensor(), bias.tensor(), options);
    launch_quantized(stream, operands, q.tensor_mut(), scales.tensor_mut())
}

mod sealed {
    use tirx_rt::{Stream, Tensor};

    use super::{Arguments, Options};

    pub trait Sealed<Q: tirx_rt::Element>: super::Element + tirx_rt::Element {
        fn launch_quantized(
            stream: &Stream,
            arguments: Arguments<'_, Self, Q>,
            scales: &mut Tensor<f32>,
            options: Options,
        ) -> crate::Result<()>;
    }
}

/// An element type whose norm is quantized to `Q`: `bf16`, `f16` and `f32` to `i8` and `f8e4m3`.
pub trait QuantizeTo<Q: Number>: sealed::Sealed<Q> {}

macro_rules! quantizations {
    ($($from:ty => $($to:ty)*;)*) => {$($(
        impl sealed::Sealed<$to> for $from {
            fn launch_quantized(
                stream: &Stream,
                arguments: Arguments<'_, $from, $to>,
                scales: &mut Tensor<f32>,
                options: Options,
            ) -> Result<()> {
                let Arguments { x, residual, weight, bias, y, centered, threads } = arguments;
                let (eps, offset) = (options.eps, options.weight_offset);
                Ok(kernels::norm_quantize::<$from, $to>(
                    stream, x, residual, weight, bias, y, scales, eps, offset, centered, threads,
                )?)
            }
        }
        impl QuantizeTo<$to> for $from {}
    )*)*};
}

quantizations! {
    bf16 => i8 f8e4m3;
    f16 => i8 f8e4m3;
    f32 => i8 f8e4m3;
}

/// The tensors of a norm, without its result: the kernel reads them, and updates the residual.
struct Operands<'a, T: Number> {
    x: &'a Tensor<T>,
    residual: Option<&'a mut Tensor<T>>,
    weight: &'a Tensor<T>,
    /// That of a LayerNorm; RMSNorm has none.
    bias: Option<&'a Tensor<T>>,
    options: Options,
}

impl<'a, T: Number> Operands<'a, T> {
    fn rms(
        x: &'a Tensor<T>,
        residual: Option<&'a mut Tensor<T>>,
        weight: &'a Tensor<T>,
        options: Options,
    ) -> Operands<'a, T> {
        Operands {
            x,
            residual,
            weight,
            bias: None,
            options,
        }
    }

    fn layer(
        x: &'a Tensor<T>,
        residual: Option<&'a mut Tensor<T>>,
        weight: &'a Tensor<T>,
        bias: &'a Tensor<T>,
        options: Options,
    ) -> Operands<'a, T> {
        Operands {
            x,
            residual,
            weight,
            bias: Some(bias),
            options,
        }
    }
}

/// The arguments of the kernel, which has empty tensors for a residual and a bias that there are not.
pub struct Arguments<'a, T: Number, Q: Number> {
    x: &'a View<'a, T>,
    residual: &'a mut Tensor<T>,
    weight: &'a Tensor<T>,
    bias: &'a Tensor<T>,
    y: &'a mut Tensor<Q>,
    centered: i32,
    threads: i32,
}

fn launch<T: Element + Number>(stream: &Stream, operands: Operands<'_, T>, y: &mut Tensor<T>) -> Result<()> {
    let Options { eps, weight_offset } = operands.options;
    with_arguments(operands, y, |arguments| {
        let Arguments {
            x,
            residual,
            weight,
            bias,
            y,
            centered,
            threads,
        } = arguments;
        Ok(kernels::norm::<T>(
            stream,
            x,
            residual,
            weight,
            bias,
            y,
            eps,
            weight_offset,
            centered,
            threads,
        )?)
    })
}

fn launch_quantized<T: QuantizeTo<Q>, Q: Number>(
    stream: &Stream,
    operands: Operands<'_, T>,
    q: &mut Tensor<Q>,
    scales: &mut Tensor<f32>,
) -> Result<()> {
    let options = operands.options;
    let mut scales = scales_of_rows(operands.x.shape(), scales)?;
    with_arguments(operands, q, |arguments| {
        T::launch_quantized(stream, arguments, &mut scales, options)
    })
}

/// Checks the operands and calls `run` with the arguments of the kernel, unless there is nothing to do.
fn with_arguments<T: Element + Number, Q: Number>(
    operands: Operands<'_, T>,
    y: &mut Tensor<Q>,
    run: impl FnOnce(Arguments<'_, T, Q>) -> Result<()>,
) -> Result<()> {
    let Operands {
        x,
        residual,
        weight,
        bias,
        ..
    } = operands;
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
    let no_bias = weight.slice(0, 0..0)?;
    let (mut nothing, mut y) = y.split_at_mut(0, 0)?;
    let mut nothing = nothing.as_bits_mut::<T>()?;
    let mut residual = match residual {
        Some(residual) => Some(three_mut(residual, "the residual")?),
        None => None,
    };
    run(Arguments {
        x: &x,
        residual: residual.as_deref_mut().unwrap_or(&mut nothing),
        weight,
        bias: bias.unwrap_or(&no_bias),
        y: &mut y,
        centered: i32::from(bias.is_some()),
        threads,
    })
}
