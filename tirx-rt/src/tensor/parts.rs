//! Parts of a tensor that are borrowed at once, and copies between tensors.

use std::marker::PhantomData;

use super::{Tensor, View, ViewMut, bytes_of};
use crate::device::Stream;
use crate::element::Element;
use crate::{Error, Result};

impl<T: Element> Tensor<T> {
    /// The elements before and from index `at` of dimension `dim`: two parts that one launch can write.
    ///
    /// ```
    /// # let stream = tirx_rt::Device::simulator().default_stream();
    /// let mut t = tirx_rt::Tensor::<f32>::full(&stream, 1.0, [4, 8])?;
    /// let (mut top, bottom) = t.split_at_mut(0, 1)?;
    /// top.fill_zero(&stream)?;
    /// assert_eq!((top.shape(), bottom.shape()), (&[1, 8][..], &[3, 8][..]));
    /// # Ok::<(), tirx_rt::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] where `at` is not in the dimension, or within a byte.
    pub fn split_at_mut(&mut self, dim: usize, at: usize) -> Result<(ViewMut<'_, T>, ViewMut<'_, T>)> {
        let extent = self.shape().get(dim).copied().unwrap_or(0);
        let (front, back) = (self.sliced(dim, 0..at)?, self.sliced(dim, at..extent)?);
        self.parts_share_no_byte(dim)?;
        Ok((ViewMut(front, PhantomData), ViewMut(back, PhantomData)))
    }

    /// Windows of `size` indices of dimension `dim`, one after the other; the last one can be smaller.
    ///
    /// # Errors
    /// [`Error::Shape`] for a size of 0, a dimension that does not exist, or windows that begin within a byte.
    pub fn windows(&self, dim: usize, size: usize) -> Result<Vec<View<'_, T>>> {
        let parts = self.window_ranges(dim, size)?.into_iter();
        parts.map(|range| self.slice(dim, range)).collect()
    }

    /// As [`windows`](Tensor::windows), to write: all at once, from several launches or threads.
    ///
    /// # Errors
    /// As [`windows`](Tensor::windows) and [`split_at_mut`](Tensor::split_at_mut).
    pub fn windows_mut(&mut self, dim: usize, size: usize) -> Result<Vec<ViewMut<'_, T>>> {
        self.parts_share_no_byte(dim)?;
        let parts = self.window_ranges(dim, size)?.into_iter();
        parts
            .map(|range| self.sliced(dim, range).map(|t| ViewMut(t, PhantomData)))
            .collect()
    }

    /// Parts along an inner dimension interleave; where two elements share a byte, each part would write the other's.
    fn parts_share_no_byte(&self, dim: usize) -> Result<()> {
        match T::TYPE.in_a_byte() > 1 && dim > 0 {
            true => Err(Error::Shape(format!(
                "a tensor of {} can be split along its first dimension only: two of its elements share a byte",
                T::NAME
            ))),
            false => Ok(()),
        }
    }

    /// The bits of the elements, seen as other elements of as many bits: bytes that were read from a file are floats of 8 bits.
    /// A tensor without elements can be seen as any type.
    ///
    /// ```
    /// # let stream = tirx_rt::Device::simulator().default_stream();
    /// use tirx_rt::{Tensor, f8e4m3};
    /// let bytes = Tensor::from_slice(&stream, &[0x38_u8, 0x30], [2])?;
    /// assert_eq!(bytes.as_bits::<f8e4m3>()?.to_vec()?, [1.0, 0.5].map(f8e4m3::from_f32));
    /// # Ok::<(), tirx_rt::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] where there are elements, of different sizes.
    pub fn as_bits<U: Element>(&self) -> Result<View<'_, U>> {
        self.of_bits().map(|t| View(t, PhantomData))
    }

    /// As [`as_bits`](Tensor::as_bits), to write.
    ///
    /// # Errors
    /// As [`as_bits`](Tensor::as_bits).
    pub fn as_bits_mut<U: Element>(&mut self) -> Result<ViewMut<'_, U>> {
        self.of_bits().map(|t| ViewMut(t, PhantomData))
    }

    fn of_bits<U: Element>(&self) -> Result<Tensor<U>> {
        if T::TYPE.bits != U::TYPE.bits && !self.is_empty() {
            return Err(Error::Shape(format!(
                "elements of {} cannot be seen as {}: they have different sizes",
                T::NAME,
                U::NAME
            )));
        }
        let offset = if self.is_empty() { 0 } else { self.offset };
        Ok(Tensor::new(
            self.storage().clone(),
            offset,
            self.shape,
            self.strides,
        ))
    }

    fn window_ranges(&self, dim: usize, size: usize) -> Result<Vec<std::ops::Range<usize>>> {
        let Some(extent) = self.shape().get(dim).copied().filter(|_| size > 0) else {
            return Err(Error::Shape(format!(
                "no windows of {size} in dimension {dim} of shape {:?}",
                self.shape()
            )));
        };
        let starts = (0..extent).step_by(size);
        Ok(starts
            .map(|start| start..extent.min(start.saturating_add(size)))
            .collect())
    }

    /// Overwrites the elements with those of a tensor of the same shape, which may be on another device: GPUs copy
    /// directly, where the machine lets them. In a [capture](Stream::capture) a copy on one device is recorded.
    ///
    /// # Errors
    /// [`Error::Shape`] unless both are contiguous and have one shape; the driver's.
    pub fn copy_from(&mut self, stream: &Stream, from: &Tensor<T>) -> Result<()> {
        if self.shape() != from.shape() || !self.is_contiguous() || !from.is_contiguous() {
            return Err(Error::Shape(format!(
                "a tensor of shape {:?} and strides {:?} cannot be copied to one of shape {:?} and strides {:?}",
                from.shape(),
                from.strides(),
                self.shape(),
                self.strides()
            )));
        }
        if self.ends_within_a_byte() {
            return self.copy_from_slice(stream, &from.to_vec()?);
        }
        self.storage().copy(
            stream,
            self.first_byte(),
            from.storage(),
            from.first_byte(),
            bytes_of::<T>(self.len()),
        )
    }

    /// A compact tensor with the same elements on the stream's device.
    ///
    /// # Errors
    /// The driver's.
    pub fn to(&self, stream: &Stream) -> Result<Tensor<T>> {
        if !self.is_contiguous() {
            return Tensor::from_slice(stream, &self.to_vec()?, self.shape);
        }
        let mut copy = Tensor::alloc(stream, self.shape)?;
        copy.copy_from(stream, self)?;
        Ok(copy)
    }
}
