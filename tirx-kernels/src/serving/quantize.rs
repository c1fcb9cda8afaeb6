//! Quantization to 8 and 4 bits.
//!
//! | function | numbers | a factor for | factors |
//! |---|---|---|---|
//! | [`rows`] | `i8`, `f8e4m3` | a row, or a group of columns | `f32` |
//! | [`blocks`] | `f8e4m3` | 128 by 128 numbers | `f32` |
//! | [`mxfp4`] | `f4e2m1x2` | 32 columns | `f8e8m0` |
//! | [`nvfp4`] | `f4e2m1x2` | 16 columns | `f8e4m3`, and `f32` for the tensor |

use tirx_rt::{
    AsTensor, AsTensorMut, Element as Number, Stream, Tensor, ViewMut, bf16, f4e2m1x2, f8e4m3, f8e8m0, f16,
};

use super::Element;
use super::rows::{has_shape, number, same_shape, threads_of_row, three, three_mut};
use crate::generated::kernels;
use crate::{Error, Result};

mod sealed {
    use tirx_rt::{Stream, View, ViewMut};

    pub trait Sealed<Q: tirx_rt::Element>: tirx_rt::Element {
        fn launch(
            stream: &Stream,
            x: &View<'_, Self>,
            q: &mut ViewMut<'_, Q>,
            scales: &mut ViewMut<'_, f32>,
            threads: i32,
        ) -> crate::Result<()>;
    }
}

/// An element type that a kernel quantizes to `Q`: `bf16`, `f16` and `f32` to `i8` and `f8e4m3`.
pub trait QuantizeTo<Q: tirx_rt::Element>: sealed::Sealed<Q> {}

macro_rules! quantizations {
    ($($from:ty => $($to:ty)*;)*) => {$($(
        impl sealed::Sealed<$to> for $from {
            fn launch(
                stream: &Stream,
                x: &tirx_rt::View<'_, $from>,
                q: &mut tirx_rt::ViewMut<'_, $to>,
                scales: &mut tirx_rt::ViewMut<'_, f32>,
                threads: i32,
            ) -> Result<()> {
                Ok(kernels::quantize::<$from, $to>(stream, x, q, scales, threads)?)
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

/// Quantizes each row: `scales[r]` = max |X\[r\]| / 127 (`i8`) or 448 (`f8e4m3`), and Q = X · (1 / scale), rounded to the nearest. A row of zeros has
/// the scale 1, other scales are at least 2^−126, and a row with NaN has the scale NaN.
///
/// `scales` has the shape of X without the last dimension. For a scale per group of columns, pass X as `[rows, groups, columns of a group]`.
///
/// ```
/// use tirx_kernels::quantize;
/// # use tirx_rt::{Device, Tensor};
/// # fn main() -> tirx_kernels::Result<()> {
/// # let stream = Device::simulator().default_stream();
/// let x = Tensor::from_slice(&stream, &[0.5f32, -127.0, 2.0, 1.0], [2, 2])?;
/// let mut q = Tensor::<i8>::zeros(&stream, [2, 2])?;
/// let mut scales = Tensor::zeros(&stream, [2])?;
/// quantize::rows(&stream, &x, &mut q, &mut scales)?;
/// assert_eq!(q.to_vec()?, [0, -127, 127, 64]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the shapes do not fit each other or rows are not contiguous; [`Error::Runtime`] for those of the launch.
pub fn rows<T: QuantizeTo<Q>, Q: tirx_rt::Element>(
    stream: &Stream,
    x: &impl AsTensor<T>,
    q: &mut impl AsTensorMut<Q>,
    scales: &mut impl AsTensorMut<f32>,
) -> Result<()> {
    let (x, q, scales) = (x.tensor(), q.tensor_mut(), scales.tensor_mut());
    same_shape(("X", x.shape()), ("Q", q.shape()))?;
    let mut scales = scales_of_rows(x.shape(), scales)?;
    if x.is_empty() {
        return Ok(());
    }
    let x = three(x, "X")?;
    let columns = x.shape()[2];
    let mut q = three_mut(q, "Q")?;
    let threads = threads_of_row(columns, size_of::<T>(), x.len() / columns)?;
    T::launch(stream, &x, &mut q, &mut scales, threads)
}

/// The factors of rows, in the two dimensions that a kernel takes.
pub(super) fn scales_of_rows<'a>(x: &[usize], scales: &'a mut Tensor<f32>) -> Result<ViewMut<'a, f32>> {
    let Some((_, outer)) = x.split_last() else {
        return Err(Error::Shape("X has at least one dimension".into()));
    };
    has_shape(
        "the scales",
        scales.shape(),
        outer,
        "that of X without its last dimension",
    )?;
    Ok(match *outer {
        [] => scales.reshape_mut([1, 1])?,
        [_] => scales.unsqueeze_mut(0)?,
        [all, _] => scales.slice_mut(0, 0..all)?,
        _ => scales.reshape_mut([1, outer.iter().product()])?,
    })
}

/// Quantizes each block of 128 rows and 128 columns of X `[rows, columns]` or `[matrices, rows, columns]`: its factor is max |X| / 448, and
/// Q = X · (1 / factor), rounded to the nearest. A block of zeros has the factor 1, one with NaN the factor NaN. Products
/// with factors of blocks take weights in this form.
///
/// `scales` is `[rows / 128, columns / 128]`, rounded up, with the matrices before.
///
/// # Errors
/// [`Error::Shape`] if the shapes do not fit each other or rows are not contiguous; [`Error::Runtime`] for those of the launch.
pub fn blocks<T: Element + Number>(
    stream: &Stream,
    x: &impl AsTensor<T>,
    q: &mut impl AsTensorMut<f8e4m3>,
    scales: &mut impl AsTensorMut<f32>,
) -> Result<()> {
    let (x, q, scales) = (x.tensor(), q.tensor_mut(), scales.tensor_mut());
    same_shape(("X", x.shape()), ("Q", q.shape()))?;
    let (&[.., rows, columns], 2 | 3) = (x.shape(), x.shape().len()) else {
        return Err(Error::Shape(format!(
            "X has the shape [rows, columns] or [matrices, rows, columns], not {:?}",
            x.shape()
        )));
    };
    let (down, across) = (rows.div_ceil(128), columns.div_ceil(128));
    let mut expected = x.shape()[..x.shape().len() - 2].to_vec();
    expected.extend([down, across]);
    has_shape(
        "the scales",
        scales.shape(),
        &expected,
        "one for each block of 128 by 128 numbers",
    )?;
    if x.is_empty() {
        return Ok(());
    }
    number(rows, "the number of rows")?;
    number(columns, "the number of columns")?;
    let x = three(x, "X")?;
    for (extent, name) in [(down, "rows of blocks"), (x.shape()[0], "matrices")] {
        if extent > 65535 {
            return Err(Error::Shape(format!(
                "a launch has at most 65535 {name}, not {extent}: divide the call"
            )));
        }
    }
    let (mut q, mut scales) = (three_mut(q, "Q")?, three_mut(scales, "the scales")?);
    Ok(kernels::quantize_blocks::<T>(stream, &x, &mut q, &mut scales)?)
}

/// Quantizes each 32 columns to MXFP4 of the OCP's specification of microscaling formats: the factor is the least power of two that is not
/// below max |X| / 6, so that no number is clipped, and Q = X / factor, rounded to the nearest float4 (e2m1), the even one of two. 32 zeros
/// have the factor 1; 32 columns with a number that is not finite have the factor NaN.
///
/// `q` has the shape of X with half the columns, the number with the even column in the low half of a byte; `scales` has a 32nd of the columns.
/// `quant::Weights::Mxfp4` takes both as weights.
///
/// ```
/// use tirx_kernels::quantize;
/// # use tirx_rt::{Device, Tensor, f4e2m1x2, f8e8m0};
/// # fn main() -> tirx_kernels::Result<()> {
/// # let stream = Device::simulator().default_stream();
/// let x = Tensor::from_slice(&stream, &[12.0f32, -3.0].repeat(16), [1, 32])?;
/// let mut q = Tensor::<f4e2m1x2>::zeros(&stream, [1, 16])?;
/// let mut scales = Tensor::<f8e8m0>::zeros(&stream, [1, 1])?;
/// quantize::mxfp4(&stream, &x, &mut q, &mut scales)?;
/// assert_eq!((scales.to_vec()?[0].to_f32(), q.to_vec()?[0].to_f32()), (2.0, [6.0, -1.5]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the shapes do not fit each other, the columns are no multiple of 32, or rows are not contiguous; [`Error::Runtime`]
/// for those of the launch.
pub fn mxfp4<T: Element + Number>(
    stream: &Stream,
    x: &impl AsTensor<T>,
    q: &mut impl AsTensorMut<f4e2m1x2>,
    scales: &mut impl AsTensorMut<f8e8m0>,
) -> Result<()> {
    let mut scales = scales.tensor_mut().as_bits_mut::<u8>()?;
    groups(stream, x.tensor(), q.tensor_mut(), &mut scales, 1.0, 32)
}

/// Quantizes each 16 columns to NVFP4: the factor is max |X| / 6 / `of_tensor`, rounded to float8 (at most 448), and Q = X / (factor · `of_tensor`),
/// rounded to the nearest float4 (e2m1), the even one of two. With `of_tensor` = max |X| / (6 · 448) over the tensor, all factors are in
/// the range of float8. 16 columns with a number that is not finite have the factor NaN.
///
/// `q` has the shape of X with half the columns, the number with the even column in the low half of a byte; `scales` has a 16th of the columns.
///
/// # Errors
/// [`Error::Shape`] if the shapes do not fit each other, the columns are no multiple of 16, rows are not contiguous, or `of_tensor` is not
/// positive and finite; [`Error::Runtime`] for those of the launch.
pub fn nvfp4<T: Element + Number>(
    stream: &Stream,
    x: &impl AsTensor<T>,
    q: &mut impl AsTensorMut<f4e2m1x2>,
    scales: &mut impl AsTensorMut<f8e4m3>,
    of_tensor: f32,
) -> Result<()> {
    if !(of_tensor > 0.0 && of_tensor.is_finite()) {
        return Err(Error::Shape(format!(
            "the factor of the tensor is positive and finite, not {of_tensor}"
        )));
    }
    let mut scales = scales.tensor_mut().as_bits_mut::<u8>()?;
    groups(stream, x.tensor(), q.tensor_mut(), &mut scales, of_tensor, 16)
}

fn groups<T: Element + Number>(
    stream: &Stream,
    x: &Tensor<T>,
    q: &mut Tensor<f4e2m1x2>,
    scales: &mut Tensor<u8>,
    of_tensor: f32,
    group: usize,
) -> Result<()> {
    let Some((&columns, outer)) = x.shape().split_last() else {
        return Err(Error::Shape("X has at least one dimension".into()));
    };
    if !columns.is_multiple_of(group) {
        return Err(Error::Shape(format!(
            "X has a multiple of {group} columns, not {columns}"
        )));
    }
    let with = |last: usize| [outer, &[last]].concat();
    has_shape("Q", q.shape(), &with(columns / 2), "two numbers in a byte")?;
    has_shape(
        "the scales",
        scales.shape(),
        &with(columns / group),
        &format!("one for each {group} columns"),
    )?;
    if x.is_empty() {
        return Ok(());
    }
    let mut q = q.as_bits_mut::<u8>()?;
    // No group lies in two rows, so tensors without gaps are one row: the kernel need not find the row of a number.
    let without_gaps = x.is_contiguous() && q.is_contiguous() && scales.is_contiguous();
    let (x, mut q, mut scales) = if without_gaps && i32::try_from(x.len()).is_ok() {
        let (of_q, of_scales) = (q.len(), scales.len());
        (
            x.reshape([1, 1, x.len()])?,
            q.reshape_mut([1, 1, of_q])?,
            scales.reshape_mut([1, 1, of_scales])?,
        )
    } else {
        (
            three(x, "X")?,
            three_mut(&mut q, "Q")?,
            three_mut(scales, "the scales")?,
        )
    };
    number(x.len() / 16 + 512, "the sixteenth of the elements")?;
    let constexpr = kernels::quantize_groups::Constexpr { GROUP: group as i64 };
    Ok(kernels::quantize_groups::<T>(
        stream,
        constexpr,
        &x,
        &mut q,
        &mut scales,
        of_tensor,
    )?)
}
