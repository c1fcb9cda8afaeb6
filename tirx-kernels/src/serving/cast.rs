//! Casts between `bf16`, `f16` and `f32`.

use tirx_rt::{AsTensor, AsTensorMut, Stream, bf16, f16};

use super::rows::{same_shape, segments_of_row, three, three_mut};
use crate::Result;
use crate::generated::kernels;

mod sealed {
    use tirx_rt::{Stream, View, ViewMut};

    pub trait Sealed<T: tirx_rt::Element>: tirx_rt::Element {
        fn launch(
            stream: &Stream,
            x: &View<'_, Self>,
            y: &mut ViewMut<'_, T>,
            warps: i32,
            segments: i32,
        ) -> crate::Result<()>;
    }
}

/// An element type that a kernel converts to `T`.
pub trait CastTo<T: tirx_rt::Element>: sealed::Sealed<T> {}

macro_rules! casts {
    ($($from:ty => $($to:ty)*;)*) => {$($(
        impl sealed::Sealed<$to> for $from {
            fn launch(
                stream: &Stream,
                x: &tirx_rt::View<'_, $from>,
                y: &mut tirx_rt::ViewMut<'_, $to>,
                warps: i32,
                segments: i32,
            ) -> Result<()> {
                Ok(kernels::cast::<$from, $to>(stream, x, y, warps, segments)?)
            }
        }
        impl CastTo<$to> for $from {}
    )*)*};
}

casts! {
    bf16 => bf16 f16 f32;
    f16 => bf16 f16 f32;
    f32 => bf16 f16 f32;
}

/// Y = X, rounded to the nearest value of Y's type. With equal types it copies between tensors with different strides.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the shapes differ or rows are not contiguous;
/// [`Error::Runtime`](crate::Error::Runtime) for those of the launch.
pub fn cast<S: CastTo<T>, T: tirx_rt::Element>(
    stream: &Stream,
    x: &impl AsTensor<S>,
    y: &mut impl AsTensorMut<T>,
) -> Result<()> {
    let (x, y) = (x.tensor(), y.tensor_mut());
    same_shape(("X", x.shape()), ("Y", y.shape()))?;
    let x = three(x, "X")?;
    let mut y = three_mut(y, "Y")?;
    if x.is_empty() {
        return Ok(());
    }
    let columns = x.shape()[2];
    // A thread has two vectors of as many elements as the wider type has in 16 bytes.
    let bytes = size_of::<S>().max(size_of::<T>());
    let (warps, segments) = segments_of_row(columns, bytes, x.len() / columns, 4)?;
    S::launch(stream, &x, &mut y, warps, segments)
}
