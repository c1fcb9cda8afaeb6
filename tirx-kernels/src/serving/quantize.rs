//! Quantization to 8 bits.

use tirx_rt::{AsTensor, AsTensorMut, Stream, bf16, f8e4m3, f16};

use super::rows::{has_shape, same_shape, threads_of_row, three, three_mut};
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
/// the scale 1.
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
    let Some((&columns, outer)) = x.shape().split_last() else {
        return Err(Error::Shape("X has at least one dimension".into()));
    };
    has_shape(
        "the scales",
        scales.shape(),
        outer,
        "that of X without its last dimension",
    )?;
    if x.is_empty() {
        return Ok(());
    }
    let x = three(x, "X")?;
    let mut q = three_mut(q, "Q")?;
    let threads = threads_of_row(columns, size_of::<T>(), x.len() / columns)?;
    let mut scales = match scales.shape().len() {
        1 => scales.unsqueeze_mut(0)?,
        2 => {
            let all = scales.shape()[0];
            scales.slice_mut(0, 0..all)?
        }
        _ => scales.reshape_mut([x.shape()[0], x.shape()[1]])?,
    };
    T::launch(stream, &x, &mut q, &mut scales, threads)
}
