//! Rows of a table, chosen by numbers on the device.

use tirx_rt::{AsTensor, AsTensorMut, Stream};

use super::Element;
use super::rows::{has_shape, number, segments_of_row};
use crate::generated::kernels;
use crate::{Error, Result};

/// Row r of Y `[rows, columns]` is row `ids[r]` of the table `[entries, columns]`. A number that is no row of the table gives zeros.
///
/// ```
/// use tirx_kernels::embedding;
/// # use tirx_rt::{Device, Tensor};
/// # fn main() -> tirx_kernels::Result<()> {
/// # let stream = Device::simulator().default_stream();
/// let table = Tensor::from_slice(&stream, &[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// let ids = Tensor::from_slice(&stream, &[1, 0, 1], [3])?;
/// let mut y = Tensor::zeros(&stream, [3, 2])?;
/// embedding::gather(&stream, &table, &ids, &mut y)?;
/// assert_eq!(y.to_vec()?, [3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the shapes do not fit each other or rows are not contiguous; [`Error::Runtime`] for those of the launch.
pub fn gather<T: Element>(
    stream: &Stream,
    table: &impl AsTensor<T>,
    ids: &impl AsTensor<i32>,
    y: &mut impl AsTensorMut<T>,
) -> Result<()> {
    let (table, ids, y) = (table.tensor(), ids.tensor(), y.tensor_mut());
    let (&[entries, columns], &[rows]) = (table.shape(), ids.shape()) else {
        return Err(Error::Shape(format!(
            "gather takes a table [entries, columns], ids [rows] and Y [rows, columns]; they have {:?}, {:?} and {:?}",
            table.shape(),
            ids.shape(),
            y.shape()
        )));
    };
    has_shape("Y", y.shape(), &[rows, columns], "[ids, columns of the table]")?;
    if y.is_empty() {
        return Ok(());
    }
    if columns > 1 && (table.strides()[1], y.strides()[1]) != (1, 1) {
        return Err(Error::Shape(format!(
            "the rows of the table and of Y are contiguous; their strides are {:?} and {:?}",
            table.strides(),
            y.strides()
        )));
    }
    if entries == 0 {
        return Err(Error::Shape("the table has at least one row".into()));
    }
    number(entries, "the number of rows of the table")?;
    let (warps, segments) = segments_of_row(columns, size_of::<T>(), rows, 4)?;
    kernels::gather::<T>(stream, table, ids, y, warps, segments)?;
    Ok(())
}
