//! Tensors: typed device memory with a shape, and views of it.

mod cuda_slice;
mod parts;

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use crate::device::{Device, Stream};
use crate::element::{CountingElement, Element};
use crate::shape::{IntoShape, MAX_RANK, Shape};
use crate::storage::Storage;
use crate::{Error, Result};

/// Device memory with element type, shape and strides.
///
/// A tensor owns its memory; [`View`] and [`ViewMut`] borrow it and are tensors themselves, so a kernel takes either.
/// Copies and launches are ordered per tensor, also across streams.
pub struct Tensor<T: Element> {
    storage: Arc<Storage>,
    /// First element, counted from the storage's start.
    offset: usize,
    shape: Shape,
    strides: Shape,
    contiguous: bool,
    element: PhantomData<T>,
}

/// A borrowed, read-only view of a tensor: a part of it, or another shape.
pub struct View<'a, T: Element>(Tensor<T>, PhantomData<&'a T>);

/// A borrowed, exclusive view of a tensor: a part of it, or another shape.
pub struct ViewMut<'a, T: Element>(Tensor<T>, PhantomData<&'a mut T>);

impl<T: Element> Deref for View<'_, T> {
    type Target = Tensor<T>;
    fn deref(&self) -> &Tensor<T> {
        &self.0
    }
}
impl<T: Element> Deref for ViewMut<'_, T> {
    type Target = Tensor<T>;
    fn deref(&self) -> &Tensor<T> {
        &self.0
    }
}
impl<T: Element> DerefMut for ViewMut<'_, T> {
    fn deref_mut(&mut self) -> &mut Tensor<T> {
        &mut self.0
    }
}

/// The argument type of a launcher for a tensor that the kernel reads: a [`Tensor`], a [`View`] of one, or a pointer to
/// either.
///
/// ```
/// # use tirx_rt::{AsTensor, Device, Tensor};
/// fn length(a: &impl AsTensor<f32>) -> usize {
///     a.tensor().shape()[0]
/// }
/// # let stream = Device::simulator().default_stream();
/// let a = Tensor::zeros(&stream, [8])?;
/// assert_eq!((length(&a), length(&a.slice(0, 2..5)?)), (8, 3));
/// # Ok::<(), tirx_rt::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "expected a tensor of `{T}`, found `{Self}`",
    label = "no `Tensor<{T}>` or view of one",
    note = "`&t.as_bits::<{T}>()?` sees a tensor of other elements, such as `u8`, as one of `{T}` if they have as many bits"
)]
pub trait AsTensor<T: Element> {
    /// The tensor.
    fn tensor(&self) -> &Tensor<T>;
}

/// The argument type of a launcher for a tensor that the kernel writes: a [`Tensor`], a [`ViewMut`] of one, or an
/// exclusive pointer to either.
#[diagnostic::on_unimplemented(
    message = "expected a tensor of `{T}` that can be written, found `{Self}`",
    label = "no `Tensor<{T}>` or `ViewMut` of one",
    note = "`&mut t.as_bits_mut::<{T}>()?` sees a tensor of other elements, such as `u8`, as one of `{T}` if they have as many bits"
)]
pub trait AsTensorMut<T: Element>: AsTensor<T> {
    /// The tensor.
    fn tensor_mut(&mut self) -> &mut Tensor<T>;
}

impl<T: Element> AsTensor<T> for Tensor<T> {
    #[inline]
    fn tensor(&self) -> &Tensor<T> {
        self
    }
}

impl<T: Element> AsTensorMut<T> for Tensor<T> {
    #[inline]
    fn tensor_mut(&mut self) -> &mut Tensor<T> {
        self
    }
}

impl<T: Element, P: Deref<Target = Tensor<T>>> AsTensor<T> for P {
    #[inline]
    fn tensor(&self) -> &Tensor<T> {
        self
    }
}

impl<T: Element, P: DerefMut<Target = Tensor<T>>> AsTensorMut<T> for P {
    #[inline]
    fn tensor_mut(&mut self) -> &mut Tensor<T> {
        self
    }
}

impl<T: Element> Tensor<T> {
    fn alloc(stream: &Stream, shape: Shape) -> Result<Tensor<T>> {
        let bytes = shape.elements().and_then(|n| T::TYPE.bytes_of(n));
        let bytes = bytes.ok_or_else(|| Error::Shape(format!("a tensor of shape {shape:?} is too large")))?;
        Ok(Tensor::new(
            Arc::new(Storage::alloc(stream, bytes)?),
            0,
            shape,
            shape.compact_strides(),
        ))
    }

    pub(crate) fn new(storage: Arc<Storage>, offset: usize, shape: Shape, strides: Shape) -> Tensor<T> {
        let contiguous = shape.has_compact(&strides);
        Tensor {
            storage,
            offset,
            shape,
            strides,
            contiguous,
            element: PhantomData,
        }
    }

    /// A tensor with these elements, in row-major order.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `shape` has as many elements as `values`; the driver's.
    pub fn from_slice(stream: &Stream, values: &[T], shape: impl IntoShape) -> Result<Tensor<T>> {
        let shape = shape.into_shape()?;
        if shape.elements() != Some(values.len()) {
            return Err(Error::Shape(format!(
                "{} values do not fill a tensor of shape {shape:?}",
                values.len()
            )));
        }
        let mut tensor = Tensor::alloc(stream, shape)?;
        tensor.copy_from_slice(stream, values)?;
        Ok(tensor)
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    /// The driver's.
    pub fn zeros(stream: &Stream, shape: impl IntoShape) -> Result<Tensor<T>> {
        let tensor = Tensor::alloc(stream, shape.into_shape()?)?;
        tensor.storage.zero(stream, 0, bytes_of::<T>(tensor.len()))?;
        Ok(tensor)
    }

    /// A tensor with `value` everywhere.
    ///
    /// # Errors
    /// The driver's.
    pub fn full(stream: &Stream, value: T, shape: impl IntoShape) -> Result<Tensor<T>> {
        let mut tensor = Tensor::alloc(stream, shape.into_shape()?)?;
        tensor.copy_from_slice(stream, &vec![value; tensor.len()])?;
        Ok(tensor)
    }

    /// A tensor of zeros with the shape of this one, on the stream's device.
    ///
    /// # Errors
    /// The driver's.
    pub fn zeros_like(&self, stream: &Stream) -> Result<Tensor<T>> {
        Tensor::zeros(stream, self.shape)
    }

    /// The values from `start` on, in steps of one, that are less than `end`: `Tensor::arange(&stream, 0, 4)` has 0, 1, 2, 3.
    ///
    /// # Errors
    /// The driver's.
    pub fn arange(stream: &Stream, start: T, end: T) -> Result<Tensor<T>>
    where
        T: CountingElement,
    {
        let values = T::count(start, end);
        Tensor::from_slice(stream, &values, values.len())
    }

    /// A tensor whose elements have no values yet, for a kernel that writes them all.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Safety
    /// Nothing reads an element before it is written. (On a GPU a read gives what earlier work left in the memory.)
    pub unsafe fn uninit(stream: &Stream, shape: impl IntoShape) -> Result<Tensor<T>> {
        Tensor::alloc(stream, shape.into_shape()?)
    }

    /// Extents, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Strides in elements, outermost first.
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Whether the elements are compact in row-major order.
    pub fn is_contiguous(&self) -> bool {
        self.contiguous
    }

    /// Address of the first element on the device.
    #[inline]
    pub fn address(&self) -> u64 {
        self.storage.address() + bytes_of::<T>(self.offset) as u64
    }

    /// The device that holds it.
    pub fn device(&self) -> Device {
        self.storage.device()
    }

    pub(crate) fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }
    /// The offset of the first element in its storage, in bytes.
    pub(crate) fn first_byte(&self) -> usize {
        bytes_of::<T>(self.offset)
    }
    pub(crate) fn shape_ref(&self) -> &Shape {
        &self.shape
    }
    pub(crate) fn strides_ref(&self) -> &Shape {
        &self.strides
    }

    /// Overwrites the elements, in row-major order.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there are as many values as elements and the tensor is contiguous; the driver's.
    pub fn copy_from_slice(&mut self, stream: &Stream, values: &[T]) -> Result<()> {
        if values.len() != self.len() || !self.contiguous {
            return Err(Error::Shape(format!(
                "{} values do not fill a tensor of shape {:?} and strides {:?}",
                values.len(),
                self.shape,
                self.strides
            )));
        }
        let mut bytes = Vec::with_capacity(bytes_of::<T>(values.len()));
        T::write_bytes(values, &mut bytes);
        let first = bytes_of::<T>(self.offset);
        self.keep_neighbours(first, &mut bytes)?;
        self.storage.write(stream, first, &bytes)
    }

    /// Sets all elements to zero.
    ///
    /// # Errors
    /// [`Error::Shape`] unless the tensor is contiguous; the driver's.
    pub fn fill_zero(&mut self, stream: &Stream) -> Result<()> {
        if !self.contiguous {
            return Err(Error::Shape(format!(
                "cannot clear a tensor of strides {:?}",
                self.strides
            )));
        }
        if self.ends_within_a_byte() {
            return self.copy_from_slice(stream, &vec![T::default(); self.len()]);
        }
        self.storage
            .zero(stream, bytes_of::<T>(self.offset), bytes_of::<T>(self.len()))
    }

    fn ends_within_a_byte(&self) -> bool {
        !self.len().is_multiple_of(T::TYPE.in_a_byte())
    }

    /// Other elements that share a byte with the tensor's last ones keep their values.
    fn keep_neighbours(&self, first: usize, bytes: &mut [u8]) -> Result<()> {
        let Some((last, front)) = bytes.split_last_mut().filter(|_| self.ends_within_a_byte()) else {
            return Ok(());
        };
        let before = self.storage.read(first + front.len(), 1)?;
        let used = self.len() % T::TYPE.in_a_byte() * T::TYPE.bits as usize;
        *last |= before.first().copied().unwrap_or(0) >> used << used;
        Ok(())
    }

    /// The elements in row-major order, once all earlier work on the tensor is done.
    ///
    /// # Errors
    /// The driver's, those of earlier work included.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let span: usize = self
            .shape
            .iter()
            .zip(self.strides.iter())
            .map(|(e, s)| (e - 1) * s)
            .sum::<usize>()
            + 1;
        let bytes = self
            .storage
            .read(bytes_of::<T>(self.offset), bytes_of::<T>(span))?;
        let mut all = T::from_bytes(&bytes);
        all.truncate(span);
        if self.contiguous {
            return Ok(all);
        }
        let mut out = Vec::with_capacity(self.len());
        let mut index = vec![0usize; self.shape.len()];
        loop {
            out.push(
                all[index
                    .iter()
                    .zip(self.strides.iter())
                    .map(|(i, s)| i * s)
                    .sum::<usize>()],
            );
            // Counts up like an odometer; done when the outermost digit overflows.
            let mut dim = self.shape.len();
            loop {
                let Some(d) = dim.checked_sub(1) else {
                    return Ok(out);
                };
                dim = d;
                index[d] += 1;
                if index[d] < self.shape[d] {
                    break;
                }
                index[d] = 0;
            }
        }
    }

    /// Copies the elements to `to` in row-major order, once all earlier work on the tensor is done.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `to` has as many elements; the driver's, those of earlier work included.
    pub fn copy_to_slice(&self, to: &mut [T]) -> Result<()> {
        if to.len() != self.len() {
            return Err(Error::Shape(format!(
                "a tensor of shape {:?} does not fill a slice of {} values",
                self.shape,
                to.len()
            )));
        }
        to.copy_from_slice(&self.to_vec()?);
        Ok(())
    }

    /// A tensor of its own with the same elements, compact.
    ///
    /// # Errors
    /// The driver's.
    pub fn try_clone(&self, stream: &Stream) -> Result<Tensor<T>> {
        self.to(stream)
    }

    fn raw_view(&self, offset: usize, shape: Shape, strides: Shape) -> Tensor<T> {
        Tensor::new(self.storage.clone(), offset, shape, strides)
    }

    fn sliced(&self, dim: usize, range: Range<usize>) -> Result<Tensor<T>> {
        let extent = self.shape.get(dim).copied().unwrap_or(0);
        if dim >= self.shape.len() || range.start > range.end || range.end > extent {
            return Err(Error::Shape(format!(
                "no range {range:?} in dimension {dim} of shape {:?}",
                self.shape
            )));
        }
        let shape = self.shape.replaced(dim, range.len());
        let offset = self.offset + range.start * self.strides[dim];
        if !offset.is_multiple_of(T::TYPE.in_a_byte()) {
            return Err(Error::Shape(format!(
                "range {range:?} in dimension {dim} of shape {:?} starts within a byte: two {} share one",
                self.shape,
                T::NAME
            )));
        }
        Ok(self.raw_view(offset, shape, self.strides))
    }

    fn reshaped(&self, shape: Shape) -> Result<Tensor<T>> {
        if !self.contiguous || shape.elements() != Some(self.len()) {
            return Err(Error::Shape(format!(
                "a tensor of shape {:?} and strides {:?} cannot be seen as {shape:?}",
                self.shape, self.strides
            )));
        }
        Ok(self.raw_view(self.offset, shape, shape.compact_strides()))
    }

    fn permuted(&self, order: &[usize]) -> Result<Tensor<T>> {
        let (Some(shape), Some(strides)) = (self.shape.ordered(order), self.strides.ordered(order)) else {
            return Err(Error::Shape(format!(
                "{order:?} is no order of {} dimensions",
                self.shape.len()
            )));
        };
        Ok(self.raw_view(self.offset, shape, strides))
    }

    fn strided(&self, offset: usize, shape: Shape, strides: Shape) -> Result<Tensor<T>> {
        let refused = |reason: &str| {
            Err(Error::Shape(format!(
                "a tensor of shape {:?} cannot be seen as {shape:?} with the strides {strides:?} from element {offset}: {reason}",
                self.shape
            )))
        };
        if !self.contiguous {
            return refused("it is not contiguous");
        }
        if shape.len() != strides.len() {
            return refused("each dimension has a stride");
        }
        // The index of the last element, if there are any.
        let last = shape
            .iter()
            .zip(strides.iter())
            .try_fold(offset, |last, (&extent, &stride)| {
                last.checked_add(extent.saturating_sub(1).checked_mul(stride)?)
            });
        let last = match shape.contains(&0) {
            true => Some(offset).filter(|offset| *offset <= self.len()),
            false => last.filter(|last| *last < self.len()),
        };
        if last.is_none() || shape.elements().is_none() {
            return refused("it has too few elements");
        }
        if !(self.offset + offset).is_multiple_of(T::TYPE.in_a_byte()) {
            return refused("the first element is within a byte");
        }
        Ok(self.raw_view(self.offset + offset, shape, strides))
    }

    fn unsqueezed(&self, dim: usize) -> Result<Tensor<T>> {
        if dim > self.shape.len() {
            return Err(Error::Shape(format!(
                "no place {dim} for a new dimension in shape {:?}",
                self.shape
            )));
        }
        // A step over the new dimension leaves the tensor, as a step over the outermost of compact dimensions does.
        let spans = self
            .shape
            .iter()
            .zip(self.strides.iter())
            .map(|(n, stride)| n * stride);
        let step = spans.max().unwrap_or(1);
        match (self.shape.inserted(dim, 1), self.strides.inserted(dim, step)) {
            (Some(shape), Some(strides)) => Ok(self.raw_view(self.offset, shape, strides)),
            _ => Err(Error::Shape(format!(
                "a new dimension in shape {:?}: at most {MAX_RANK} are supported",
                self.shape
            ))),
        }
    }

    /// Elements `range` of dimension `dim`.
    ///
    /// # Errors
    /// [`Error::Shape`] where the range is not in the tensor, or does not start at a whole byte.
    pub fn slice(&self, dim: usize, range: Range<usize>) -> Result<View<'_, T>> {
        self.sliced(dim, range).map(|t| View(t, PhantomData))
    }

    /// Elements `range` of dimension `dim`, to write.
    ///
    /// # Errors
    /// [`Error::Shape`] where the range is not in the tensor, or does not start at a whole byte.
    pub fn slice_mut(&mut self, dim: usize, range: Range<usize>) -> Result<ViewMut<'_, T>> {
        self.sliced(dim, range).map(|t| ViewMut(t, PhantomData))
    }

    /// The same elements in another shape.
    ///
    /// # Errors
    /// [`Error::Shape`] where the tensor is not contiguous or the sizes differ.
    pub fn reshape(&self, shape: impl IntoShape) -> Result<View<'_, T>> {
        self.reshaped(shape.into_shape()?).map(|t| View(t, PhantomData))
    }

    /// The same elements in another shape, to write.
    ///
    /// # Errors
    /// [`Error::Shape`] where the tensor is not contiguous or the sizes differ.
    pub fn reshape_mut(&mut self, shape: impl IntoShape) -> Result<ViewMut<'_, T>> {
        self.reshaped(shape.into_shape()?)
            .map(|t| ViewMut(t, PhantomData))
    }

    /// The dimensions in another order: `permute(&[1, 0])` is the transpose. No element moves.
    ///
    /// # Errors
    /// [`Error::Shape`] where `order` does not name each dimension once.
    pub fn permute(&self, order: &[usize]) -> Result<View<'_, T>> {
        self.permuted(order).map(|t| View(t, PhantomData))
    }

    /// The dimensions in another order, to write; see [`permute`](Tensor::permute).
    ///
    /// # Errors
    /// As for [`permute`](Tensor::permute).
    pub fn permute_mut(&mut self, order: &[usize]) -> Result<ViewMut<'_, T>> {
        self.permuted(order).map(|t| ViewMut(t, PhantomData))
    }

    /// The elements from index `offset` on, in row-major order, with any shape and any step in elements for each dimension: a tensor as
    /// other libraries describe it. A stride of 0 repeats elements.
    ///
    /// ```
    /// # let stream = tirx_rt::Device::simulator().default_stream();
    /// let t = tirx_rt::Tensor::arange(&stream, 0, 12)?;
    /// assert_eq!(t.as_strided(1, [2, 3], [1, 4])?.to_vec()?, [1, 5, 9, 2, 6, 10]);
    /// # Ok::<(), tirx_rt::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] where the tensor is not contiguous, an element would be outside of it, or the first one is within a byte.
    pub fn as_strided(
        &self,
        offset: usize,
        shape: impl IntoShape,
        strides: impl IntoShape,
    ) -> Result<View<'_, T>> {
        self.strided(offset, shape.into_shape()?, strides.into_shape()?)
            .map(|t| View(t, PhantomData))
    }

    /// The same elements with a new dimension of extent 1 before dimension `dim`: shape `[3, 4]` becomes `[1, 3, 4]` for `dim` 0.
    ///
    /// # Errors
    /// [`Error::Shape`] where `dim` is larger than the number of dimensions, or the tensor has as many dimensions as a tensor may have.
    pub fn unsqueeze(&self, dim: usize) -> Result<View<'_, T>> {
        self.unsqueezed(dim).map(|t| View(t, PhantomData))
    }

    /// The same elements with a new dimension, to write; see [`unsqueeze`](Tensor::unsqueeze).
    ///
    /// # Errors
    /// As for [`unsqueeze`](Tensor::unsqueeze).
    pub fn unsqueeze_mut(&mut self, dim: usize) -> Result<ViewMut<'_, T>> {
        self.unsqueezed(dim).map(|t| ViewMut(t, PhantomData))
    }

    /// The stream that used the tensor last.
    pub fn stream(&self) -> Stream {
        self.storage.stream()
    }
}

/// Number of bytes of elements of an allocated tensor, which cannot overflow.
fn bytes_of<T: Element>(count: usize) -> usize {
    T::TYPE.bytes_of(count).unwrap_or(usize::MAX)
}

impl<T: Element> fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor<{}>{:?} on {:?}", T::NAME, self.shape, self.device())
    }
}

#[cfg(all(test, feature = "simulator"))]
mod tests {
    use super::*;

    #[test]
    fn a_new_dimension_moves_no_element() {
        let stream = crate::Device::simulator().default_stream();
        let mut t = Tensor::arange(&stream, 0, 12).unwrap();
        let mut t = t.reshape_mut([3, 4]).unwrap();
        let columns = t.slice(1, 1..3).unwrap();
        let batch = columns.unsqueeze(0).unwrap();
        assert_eq!(
            (batch.shape(), batch.strides()),
            (&[1, 3, 2][..], &[12, 4, 1][..])
        );
        assert_eq!(batch.to_vec().unwrap(), columns.to_vec().unwrap());
        assert_eq!(columns.unsqueeze(2).unwrap().shape(), [3, 2, 1]);
        assert!(columns.unsqueeze(3).is_err());
        let columns = t.permute_mut(&[1, 0]).unwrap();
        assert_eq!((columns.shape(), columns.strides()), (&[4, 3][..], &[1, 4][..]));
        assert_eq!(columns.to_vec().unwrap()[..4], [0, 4, 8, 1]);
        assert_eq!(t.unsqueeze_mut(1).unwrap().shape(), [3, 1, 4]);
    }

    fn stream() -> Stream {
        Device::simulator().default_stream()
    }

    #[test]
    fn elements_come_back() {
        let values: Vec<i32> = (0..24).collect();
        let mut t = Tensor::from_slice(&stream(), &values, [2, 3, 4]).unwrap();
        assert_eq!(t.to_vec().unwrap(), values);
        t.slice_mut(0, 1..2).unwrap().fill_zero(&stream()).unwrap();
        assert_eq!(&t.to_vec().unwrap()[11..14], [11, 0, 0]);
        assert_eq!(
            Tensor::full(&stream(), 7u8, 3).unwrap().to_vec().unwrap(),
            [7, 7, 7]
        );
        assert!(
            Tensor::<f32>::zeros(&stream(), [0, 5])
                .unwrap()
                .to_vec()
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn tensors_are_made_in_many_ways() {
        let stream = stream();
        let w = Tensor::full(&stream, 2.0f32, (2, 3)).unwrap();
        assert_eq!(w.zeros_like(&stream).unwrap().to_vec().unwrap(), [0.0; 6]);
        assert_eq!(Tensor::<u8>::zeros(&stream, w.shape()).unwrap().shape(), [2, 3]);
        let counted = Tensor::arange(&stream, -1, 3).unwrap();
        assert_eq!(
            (counted.shape(), counted.to_vec().unwrap()),
            (&[4][..], vec![-1i32, 0, 1, 2])
        );
        assert_eq!(
            Tensor::arange(&stream, 0.5f32, 3.0).unwrap().to_vec().unwrap(),
            [0.5, 1.5, 2.5]
        );
        assert_eq!(Tensor::arange(&stream, 3u64, 3).unwrap().len(), 0);
        // SAFETY: nothing is read.
        let mut open = unsafe { Tensor::<i32>::uninit(&stream, [4]) }.unwrap();
        open.copy_from(&stream, &counted).unwrap();
        let mut values = [0; 4];
        open.copy_to_slice(&mut values).unwrap();
        assert_eq!(values, [-1, 0, 1, 2]);
        let error = open.copy_to_slice(&mut values[1..]).unwrap_err().to_string();
        assert_eq!(error, "a tensor of shape [4] does not fill a slice of 3 values");
        let pinned = crate::Pinned::from_slice(&stream.device(), &values).unwrap();
        assert_eq!(pinned.as_slice().unwrap(), values);
    }

    #[test]
    fn more_memory_than_there_is_is_an_error() {
        let shape = [1 << 29, 1 << 29];
        let pinned = crate::Pinned::<f32>::zeroed(&Device::simulator(), 1 << 58).map(|_| ());
        let made = [
            Tensor::<f32>::zeros(&stream(), shape).map(|_| ()),
            Tensor::full(&stream(), 1.0f32, shape).map(|_| ()),
            pinned,
        ];
        for error in made.map(Result::unwrap_err) {
            assert_eq!(
                error.to_string(),
                "allocating 1152921504606846976 bytes: the simulator uses the memory of this machine, which is not \
                 large enough (CUDA_ERROR_OUT_OF_MEMORY)"
            );
            assert_eq!(error.cuda_name(), Some("CUDA_ERROR_OUT_OF_MEMORY"));
        }
    }

    #[test]
    fn views_are_other_ways_to_see_the_elements() {
        let t = Tensor::from_slice(&stream(), &[0u8, 1, 2, 3, 4, 5], [2, 3]).unwrap();
        let transposed = t.permute(&[1, 0]).unwrap();
        assert_eq!(
            (transposed.shape(), transposed.strides()),
            (&[3, 2][..], &[1, 3][..])
        );
        assert_eq!(transposed.to_vec().unwrap(), [0, 3, 1, 4, 2, 5]);
        assert!(!transposed.is_contiguous());
        let column = t.slice(1, 1..2).unwrap();
        assert_eq!(column.to_vec().unwrap(), [1, 4]);
        assert_eq!(column.address(), t.address() + 1);
        assert_eq!(t.reshape([3, 2]).unwrap().to_vec().unwrap(), t.to_vec().unwrap());
        assert!(transposed.reshape([6]).is_err());
        assert!(t.slice(0, 1..3).is_err());
        assert!(t.permute(&[0, 0]).is_err());
    }

    #[test]
    fn strides_of_another_library_stay_in_the_tensor() {
        let t = Tensor::arange(&stream(), 0, 24).unwrap();
        let seen = |offset, shape: &[usize], strides: &[usize]| {
            t.as_strided(offset, shape, strides)
                .map(|view| view.to_vec().unwrap())
        };
        assert_eq!(seen(20, &[2, 2], &[0, 3]).unwrap(), [20, 23, 20, 23]);
        assert_eq!(seen(24, &[0, 5], &[9, 9]).unwrap(), []);
        assert_eq!(seen(23, &[], &[]).unwrap(), [23]);
        for (offset, shape, strides) in [
            (21, &[2, 2][..], &[0, 3][..]),
            (25, &[0], &[1]),
            (0, &[2, 2], &[1]),
            (0, &[2], &[usize::MAX]),
            (0, &[usize::MAX, 2], &[0, 0]),
        ] {
            assert!(
                seen(offset, shape, strides).is_err(),
                "{offset} {shape:?} {strides:?}"
            );
        }
        let error = seen(0, &[5, 5], &[5, 1]).unwrap_err().to_string();
        assert_eq!(
            error,
            "a tensor of shape [24] cannot be seen as [5, 5] with the strides [5, 1] from element 0: it has too few elements"
        );
        // The part that another view may write is not in reach.
        let mut t = Tensor::arange(&stream(), 0, 24).unwrap();
        let (front, _back) = t.split_at_mut(0, 12).unwrap();
        assert!(front.as_strided(12, [1], [1]).is_err());
        let columns = t.reshape([4, 6]).unwrap();
        assert!(columns.permute(&[1, 0]).unwrap().as_strided(0, [1], [1]).is_err());
    }

    #[test]
    fn float4_views_leave_their_neighbours_alone() {
        use crate::Float4E2m1;
        let codes =
            |codes: &[u8]| -> Vec<Float4E2m1> { codes.iter().map(|c| Float4E2m1::from_bits(*c)).collect() };
        let all = codes(&[1, 2, 3, 4, 5, 6]);
        let mut t = Tensor::from_slice(&stream(), &all, [2, 3]).unwrap();
        assert_eq!(t.to_vec().unwrap(), all);
        t.slice_mut(0, 0..1).unwrap().fill_zero(&stream()).unwrap();
        assert_eq!(t.to_vec().unwrap(), codes(&[0, 0, 0, 4, 5, 6]));
        let error = t.slice(0, 1..2).err().unwrap().to_string();
        assert_eq!(
            error,
            "range 1..2 in dimension 0 of shape [2, 3] starts within a byte: two float4_e2m1fn share one"
        );
        let columns = t.slice(1, 2..3);
        assert_eq!(columns.unwrap().to_vec().unwrap(), codes(&[0, 6]));
    }

    #[test]
    fn a_wrong_number_of_values_is_an_error() {
        let error = Tensor::from_slice(&stream(), &[1.0f32; 5], [2, 3])
            .unwrap_err()
            .to_string();
        assert_eq!(error, "5 values do not fill a tensor of shape [2, 3]");
    }
}
