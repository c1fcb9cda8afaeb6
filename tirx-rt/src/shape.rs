//! Shapes: up to eight extents, without an allocation.

use std::fmt;

/// The most dimensions a tensor has.
pub const MAX_RANK: usize = 8;

/// Extents or strides, outermost first; see [`IntoShape`] for what a shape is made from.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    rank: u8,
    values: [usize; MAX_RANK],
}

impl Shape {
    /// The values; `None` for more than [`MAX_RANK`].
    pub fn new(values: &[usize]) -> Option<Shape> {
        let mut shape = Shape {
            rank: values.len().try_into().ok()?,
            values: [0; MAX_RANK],
        };
        shape.values.get_mut(..values.len())?.copy_from_slice(values);
        Some(shape)
    }

    /// Product of the extents; `None` where it overflows.
    pub fn elements(&self) -> Option<usize> {
        self.iter().try_fold(1usize, |n, &e| n.checked_mul(e))
    }

    /// Strides of a compact row-major tensor of this shape, in elements.
    pub fn compact_strides(&self) -> Shape {
        let mut strides = *self;
        let mut step = 1usize;
        for (stride, &extent) in strides.values[..self.rank as usize]
            .iter_mut()
            .zip(&self.values)
            .rev()
        {
            *stride = step;
            step = step.saturating_mul(extent);
        }
        strides
    }

    /// Whether elements with these strides are compact and row-major. The stride of a dimension of extent one has no effect, and no
    /// elements have any.
    pub(crate) fn has_compact(&self, strides: &Shape) -> bool {
        let mut step = 1usize;
        let mut compact = true;
        for (&extent, &stride) in self.iter().zip(strides.iter()).rev() {
            if extent == 0 {
                return true;
            }
            compact &= extent == 1 || stride == step;
            step = step.saturating_mul(extent);
        }
        compact
    }

    /// With another value of a dimension that it has.
    pub(crate) fn replaced(mut self, dim: usize, value: usize) -> Shape {
        self.values[dim] = value;
        self
    }

    /// With another value in front of dimension `dim`; `None` for more than [`MAX_RANK`].
    pub(crate) fn inserted(&self, dim: usize, value: usize) -> Option<Shape> {
        let rank = self.rank as usize;
        if dim > rank || rank == MAX_RANK {
            return None;
        }
        let mut shape = *self;
        shape.values.copy_within(dim..rank, dim + 1);
        shape.values[dim] = value;
        shape.rank += 1;
        Some(shape)
    }

    /// The values in an order of all dimensions; `None` for any other list.
    pub(crate) fn ordered(&self, order: &[usize]) -> Option<Shape> {
        let mut left = (1u32 << self.rank) - 1;
        let mut shape = *self;
        for (value, &dim) in shape.values.iter_mut().zip(order) {
            *value = *self.get(dim)?;
            left &= !(1 << dim);
        }
        (left == 0 && order.len() == self.len()).then_some(shape)
    }
}

impl std::ops::Deref for Shape {
    type Target = [usize];
    #[inline]
    fn deref(&self) -> &[usize] {
        &self.values[..self.rank as usize]
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(values: [usize; N]) -> Shape {
        const { assert!(N <= MAX_RANK, "at most 8 dimensions") };
        let mut shape = Shape {
            rank: N as u8,
            values: [0; MAX_RANK],
        };
        shape.values[..N].copy_from_slice(&values);
        shape
    }
}

impl From<usize> for Shape {
    fn from(extent: usize) -> Shape {
        Shape::from([extent])
    }
}

impl TryFrom<&[usize]> for Shape {
    type Error = crate::Error;
    fn try_from(values: &[usize]) -> crate::Result<Shape> {
        Shape::new(values).ok_or_else(|| {
            crate::Error::Shape(format!(
                "{} dimensions: at most {MAX_RANK} are supported",
                values.len()
            ))
        })
    }
}

/// What tensors take as their shape: a number, an array, a slice, a vector or a tuple of `usize`, or a [`Shape`].
///
/// ```
/// # use tirx_rt::{Device, Tensor};
/// # let stream = Device::simulator().default_stream();
/// let w = Tensor::<f32>::zeros(&stream, (2, 3))?;
/// let more = Tensor::<f32>::zeros(&stream, w.shape())?;
/// assert_eq!(more.shape(), [2, 3]);
/// # Ok::<(), tirx_rt::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no shape of a tensor",
    label = "expected `usize`, an array, slice, `Vec` or tuple of `usize`, or a `Shape`"
)]
pub trait IntoShape {
    /// The shape.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) for more than [`MAX_RANK`] dimensions.
    fn into_shape(self) -> crate::Result<Shape>;
}

impl IntoShape for Shape {
    fn into_shape(self) -> crate::Result<Shape> {
        Ok(self)
    }
}

impl IntoShape for &Shape {
    fn into_shape(self) -> crate::Result<Shape> {
        Ok(*self)
    }
}

impl IntoShape for usize {
    fn into_shape(self) -> crate::Result<Shape> {
        Ok(Shape::from(self))
    }
}

impl<const N: usize> IntoShape for [usize; N] {
    fn into_shape(self) -> crate::Result<Shape> {
        Ok(Shape::from(self))
    }
}

impl<const N: usize> IntoShape for &[usize; N] {
    fn into_shape(self) -> crate::Result<Shape> {
        Ok(Shape::from(*self))
    }
}

impl IntoShape for &[usize] {
    fn into_shape(self) -> crate::Result<Shape> {
        Shape::try_from(self)
    }
}

impl IntoShape for Vec<usize> {
    fn into_shape(self) -> crate::Result<Shape> {
        Shape::try_from(&self[..])
    }
}

impl IntoShape for &Vec<usize> {
    fn into_shape(self) -> crate::Result<Shape> {
        Shape::try_from(&self[..])
    }
}

impl IntoShape for () {
    fn into_shape(self) -> crate::Result<Shape> {
        Ok(Shape::from([]))
    }
}

macro_rules! tuples {
    ($(($($extent:ident $usize:ty),*))*) => {$(
        impl IntoShape for ($($usize,)*) {
            fn into_shape(self) -> crate::Result<Shape> {
                let ($($extent,)*) = self;
                Ok(Shape::from([$($extent),*]))
            }
        }
    )*};
}
tuples! {
    (a usize)
    (a usize, b usize)
    (a usize, b usize, c usize)
    (a usize, b usize, c usize, d usize)
    (a usize, b usize, c usize, d usize, e usize)
    (a usize, b usize, c usize, d usize, e usize, f usize)
    (a usize, b usize, c usize, d usize, e usize, f usize, g usize)
    (a usize, b usize, c usize, d usize, e usize, f usize, g usize, h usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_and_sizes() {
        let shape = Shape::from([2, 3, 4]);
        assert_eq!(*shape.compact_strides(), [12, 4, 1]);
        assert_eq!(shape.elements(), Some(24));
        assert_eq!(Shape::from([]).elements(), Some(1));
        assert_eq!(Shape::from([usize::MAX, 2]).elements(), None);
        assert!(Shape::new(&[1; 9]).is_none());
    }

    #[test]
    fn values_are_inserted_and_ordered() {
        let shape = Shape::from([2, 3, 4]);
        assert_eq!(*shape.inserted(0, 1).unwrap(), [1, 2, 3, 4]);
        assert_eq!(*shape.inserted(3, 1).unwrap(), [2, 3, 4, 1]);
        assert!(shape.inserted(4, 1).is_none() && Shape::from([1; 8]).inserted(0, 1).is_none());
        assert_eq!(*shape.ordered(&[2, 0, 1]).unwrap(), [4, 2, 3]);
        for wrong in [&[0, 1][..], &[0, 1, 1], &[0, 1, 3], &[0, 1, 2, 0], &[0; 9]] {
            assert!(shape.ordered(wrong).is_none(), "{wrong:?}");
        }
        assert_eq!(*Shape::from([]).ordered(&[]).unwrap(), []);
    }

    #[test]
    fn compact_strides_are_those_of_all_but_extents_of_one() {
        let shape = Shape::from([2, 1, 4]);
        assert!(shape.has_compact(&Shape::from([4, 77, 1])));
        assert!(!shape.has_compact(&Shape::from([8, 4, 1])));
        assert!(Shape::from([2, 0, 4]).has_compact(&Shape::from([9, 9, 9])));
    }

    #[test]
    fn shapes_are_made_from_what_lists_extents() {
        fn shape(from: impl IntoShape) -> Vec<usize> {
            from.into_shape().unwrap().to_vec()
        }
        let (array, vector) = ([2usize, 3], vec![2usize, 3]);
        let (borrowed, whole) = (&array, &Shape::from(array));
        let all = [
            shape([2, 3]),
            shape(borrowed),
            shape(&array[..]),
            shape(vector.clone()),
            shape(&vector),
            shape(vector.as_slice()),
            shape((2, 3)),
            shape(Shape::from(array)),
            shape(whole),
        ];
        assert!(all.iter().all(|shape| *shape == [2, 3]));
        assert_eq!((shape(7), shape((7,)), shape(())), (vec![7], vec![7], vec![]));
        assert_eq!(shape((1, 2, 3, 4, 5, 6, 7, 8)), [1, 2, 3, 4, 5, 6, 7, 8]);
        let error = vec![1; 9].into_shape().unwrap_err().to_string();
        assert_eq!(error, "9 dimensions: at most 8 are supported");
    }
}
