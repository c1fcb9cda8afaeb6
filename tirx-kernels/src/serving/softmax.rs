//! Softmax of rows.

use tirx_rt::{AsTensor, AsTensorMut, Stream};

use super::Element;
use super::rows::{same_shape, threads_of_row, three, three_mut};
use crate::Result;
use crate::generated::kernels;

/// Y = softmax(scale · X) of each row, the last dimension.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the shapes differ or rows are not contiguous;
/// [`Error::Runtime`](crate::Error::Runtime) for those of the launch.
pub fn softmax<T: Element>(
    stream: &Stream,
    x: &impl AsTensor<T>,
    y: &mut impl AsTensorMut<T>,
    scale: f32,
) -> Result<()> {
    let (x, y) = (x.tensor(), y.tensor_mut());
    same_shape(("X", x.shape()), ("Y", y.shape()))?;
    let x = three(x, "X")?;
    let mut y = three_mut(y, "Y")?;
    if x.is_empty() {
        return Ok(());
    }
    let columns = x.shape()[2];
    let threads = threads_of_row(columns, size_of::<T>(), x.len() / columns)?;
    kernels::softmax::<T>(stream, &x, &mut y, scale, threads)?;
    Ok(())
}
