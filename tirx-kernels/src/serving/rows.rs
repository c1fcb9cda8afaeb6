//! Tensors as rows: the shapes that the memory-bound kernels take, and the division of their work.

use tirx_rt::{Element as Number, Tensor, View, ViewMut, bf16, f16};

use crate::generated::kernels;
use crate::{Error, Result};

/// The threads of a block.
const MAX_THREADS: usize = 256;
/// About half of the threads that a large GPU holds at a time (132 multiprocessors with 2,048 threads).
const THREADS_OF_GPU: usize = 1 << 17;

mod sealed {
    use super::kernels;

    pub trait Kernels:
        kernels::norm::Element
        + kernels::rope::Element
        + kernels::activation::Element
        + kernels::gather::Element
        + kernels::softmax::Element
        + kernels::cross_entropy::Element
        + kernels::sample::Element
        + kernels::sample_in_clusters::Element
        + kernels::argmax::Element
        + kernels::experts_route::Element
        + kernels::experts_combine::Element
        + kernels::quantize_blocks::Element
        + kernels::quantize_groups::Element
    {
    }
}

/// An element type of the functions on rows: `bf16`, `f16` or `f32`. They compute in float32.
pub trait Element: sealed::Kernels {}

impl sealed::Kernels for bf16 {}
impl sealed::Kernels for f16 {}
impl sealed::Kernels for f32 {}
impl Element for bf16 {}
impl Element for f16 {}
impl Element for f32 {}

fn refusal<T: Number>(tensor: &Tensor<T>, name: &str) -> Error {
    Error::Shape(format!(
        "the rows of {name} are contiguous, and a tensor with more than three dimensions is contiguous as a whole; {name} has the shape {:?} \
         and the strides {:?}: copy the tensor, or permute it back",
        tensor.shape(),
        tensor.strides()
    ))
}

/// Whether the elements of each row are neighbors.
fn rows_are_contiguous<T: Number>(tensor: &Tensor<T>) -> bool {
    let row = (tensor.shape().last(), tensor.strides().last());
    matches!(row, (Some(0 | 1), _) | (_, Some(1)))
}

/// The tensor with the three dimensions that a kernel takes: its last one is a row.
pub(super) fn three<'a, T: Number>(tensor: &'a Tensor<T>, name: &str) -> Result<View<'a, T>> {
    if !rows_are_contiguous(tensor) && !tensor.is_empty() {
        return Err(refusal(tensor, name));
    }
    Ok(match *tensor.shape() {
        [] => return Err(refusal(tensor, name)),
        [columns] => tensor.reshape([1, 1, columns])?,
        [_, _] => tensor.unsqueeze(0)?,
        [outer, _, _] => tensor.slice(0, 0..outer)?,
        [.., columns] => tensor
            .reshape([1, tensor.len() / columns.max(1), columns])
            .map_err(|_| refusal(tensor, name))?,
    })
}

/// As [`three`], to write.
pub(super) fn three_mut<'a, T: Number>(tensor: &'a mut Tensor<T>, name: &str) -> Result<ViewMut<'a, T>> {
    if !rows_are_contiguous(tensor) && !tensor.is_empty() {
        return Err(refusal(tensor, name));
    }
    Ok(match *tensor.shape() {
        [] => return Err(refusal(tensor, name)),
        [columns] => tensor.reshape_mut([1, 1, columns])?,
        [_, _] => tensor.unsqueeze_mut(0)?,
        [outer, _, _] => tensor.slice_mut(0, 0..outer)?,
        [.., columns] => {
            let rows = tensor.len() / columns.max(1);
            if !tensor.is_contiguous() {
                return Err(refusal(tensor, name));
            }
            tensor.reshape_mut([1, rows, columns])?
        }
    })
}

/// That two tensors have the same shape.
pub(super) fn same_shape(one: (&str, &[usize]), other: (&str, &[usize])) -> Result<()> {
    if one.1 == other.1 {
        return Ok(());
    }
    Err(Error::Shape(format!(
        "{} and {} have the same shape; they have {:?} and {:?}",
        one.0, other.0, one.1, other.1
    )))
}

/// That a tensor has a shape.
pub(super) fn has_shape(name: &str, found: &[usize], expected: &[usize], reason: &str) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Shape(format!(
        "expected {name} of shape {expected:?}, {reason}; the shape is {found:?}"
    )))
}

/// A number that a kernel takes in 32 bits.
pub(super) fn number(extent: usize, name: &str) -> Result<i32> {
    i32::try_from(extent).map_err(|_| Error::Shape(format!("{name} is {extent}, above {}", i32::MAX)))
}

/// The threads of a block that work on a row together, a power of two. Each holds four vectors of 16 bytes, or fewer if the rows are too few
/// to occupy a GPU.
pub(super) fn threads_of_row(columns: usize, bytes: usize, rows: usize) -> Result<i32> {
    number(columns, "the length of a row")?;
    let vectors = (columns * bytes).div_ceil(16);
    let threads = [4, 2, 1]
        .map(|held| vectors.div_ceil(held).next_power_of_two().min(MAX_THREADS))
        .into_iter()
        .find(|threads| rows.saturating_mul(*threads) >= THREADS_OF_GPU)
        .unwrap_or_else(|| vectors.next_power_of_two().min(MAX_THREADS));
    number(rows, "the number of rows")?;
    Ok(threads as i32)
}

/// For rotary embedding and appending: the pairs of vectors that a lane has, if each token has `pairs` of them. A lane has four, or fewer if tokens are
/// too few to occupy a GPU.
pub(super) fn pairs_of_lane(tokens: usize, pairs: usize) -> Result<i32> {
    let of_warp = pairs.div_ceil(32).max(1);
    if of_warp > 65535 {
        return Err(Error::Shape(format!(
            "a launch takes heads of a token with at most {} bytes",
            65535 * 1024
        )));
    }
    let of_lane = (tokens.saturating_mul(of_warp) / (THREADS_OF_GPU / 64)).clamp(1, of_warp.min(4));
    Ok(of_lane as i32)
}

/// The vectors of 16 bytes of a thread, for work on single elements of so many bytes: four, or one if there are too few to occupy a GPU.
pub(super) fn vectors_of_thread(bytes: usize) -> usize {
    if bytes.div_ceil(16) < THREADS_OF_GPU { 1 } else { 4 }
}

/// For work on single elements, where a thread has some vectors of 16 bytes: the warps of a segment of a row, and the segments of a row.
pub(super) fn segments_of_row(
    columns: usize,
    bytes: usize,
    rows: usize,
    vectors: usize,
) -> Result<(i32, i32)> {
    let of_warp = 32 * 16 * vectors;
    let warps = if columns * bytes <= 2 * of_warp {
        1
    } else {
        MAX_THREADS / 32
    };
    number(columns, "the length of a row")?;
    let segments = (columns * bytes).div_ceil(warps * of_warp).max(1);
    number(
        rows.saturating_mul(segments).saturating_mul(warps),
        "the number of segments of rows, times the warps of each,",
    )?;
    Ok((warps as i32, number(segments, "the segments of a row")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_has_four_pairs_of_many_tokens_and_one_of_few() {
        // 48 heads of 16 vectors.
        assert_eq!(pairs_of_lane(16_384, 384).unwrap(), 4);
        assert_eq!(pairs_of_lane(128, 384).unwrap(), 1);
        assert_eq!(pairs_of_lane(1, 384).unwrap(), 1);
        assert_eq!(pairs_of_lane(1 << 20, 32).unwrap(), 1);
        assert_eq!(pairs_of_lane(1, 0).unwrap(), 1);
        assert!(pairs_of_lane(1, 1 << 22).is_err());
    }

    #[test]
    fn a_thread_holds_four_vectors_of_many_rows_and_one_of_few() {
        // Rows of 512 vectors.
        assert_eq!(threads_of_row(4096, 2, 8192).unwrap(), 128);
        assert_eq!(threads_of_row(4096, 2, 600).unwrap(), 256);
        assert_eq!(threads_of_row(4096, 2, 1).unwrap(), 256);
        // Rows of 16 vectors.
        assert_eq!(threads_of_row(128, 2, 262_144).unwrap(), 4);
        assert_eq!(threads_of_row(128, 2, 20_000).unwrap(), 8);
        assert_eq!(threads_of_row(128, 2, 32).unwrap(), 16);
        assert_eq!(threads_of_row(1, 4, 1).unwrap(), 1);
        assert_eq!(threads_of_row(0, 4, 1).unwrap(), 1);
        assert_eq!(threads_of_row(100_000, 4, 1).unwrap(), 256);
        assert!(threads_of_row(1 << 31, 4, 1).is_err());
    }

    #[test]
    fn few_elements_are_divided_among_more_threads() {
        // Rows of 1792 vectors.
        let division = |rows: usize| {
            let vectors = vectors_of_thread(rows * 14336 * 2);
            segments_of_row(14336, 2, rows, vectors).unwrap()
        };
        assert_eq!(division(1), (8, 7));
        assert_eq!(division(8192), (8, 2));
    }
}
