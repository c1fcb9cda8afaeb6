//! Shapes: up to eight extents, without an allocation.

use std::fmt;

/// The most dimensions a tensor has.
pub const MAX_RANK: usize = 8;

/// Extents or strides, outermost first. Made from arrays, slices and vectors of `usize`.
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
}

impl std::ops::Deref for Shape {
    type Target = [usize];
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
}
