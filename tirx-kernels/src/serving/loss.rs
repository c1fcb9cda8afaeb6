//! Losses.

use tirx_rt::{AsTensor, AsTensorMut, Stream};

use super::Element;
use super::rows::{has_shape, number};
use crate::generated::kernels;
use crate::{Error, Result};

/// The cross-entropy of each row of logits `[rows, columns]`: log(Σ exp(row)) − row\[target\], in one pass over the logits. A target that is no
/// column, such as −1, gives 0.
///
/// # Errors
/// [`Error::Shape`] if the shapes do not fit each other or rows are not contiguous; [`Error::Runtime`] for those of the launch.
pub fn cross_entropy<T: Element>(
    stream: &Stream,
    logits: &impl AsTensor<T>,
    targets: &impl AsTensor<i32>,
    losses: &mut impl AsTensorMut<f32>,
) -> Result<()> {
    let (logits, targets, losses) = (logits.tensor(), targets.tensor(), losses.tensor_mut());
    let &[rows, columns] = logits.shape() else {
        return Err(Error::Shape(format!(
            "logits have the shape [rows, columns], not {:?}",
            logits.shape()
        )));
    };
    has_shape("the targets", targets.shape(), &[rows], "one for each row")?;
    has_shape("the losses", losses.shape(), &[rows], "one for each row")?;
    if rows == 0 {
        return Ok(());
    }
    if columns == 0 {
        return Err(Error::Shape("rows of logits have at least one column".into()));
    }
    if columns > 1 && logits.strides()[1] != 1 {
        return Err(Error::Shape(format!(
            "rows of logits are contiguous; their strides are {:?}",
            logits.strides()
        )));
    }
    number(columns, "the number of columns")?;
    number(rows, "the number of rows")?;
    kernels::cross_entropy::<T>(stream, logits, targets, losses)?;
    Ok(())
}
