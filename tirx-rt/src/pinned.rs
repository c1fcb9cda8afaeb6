//! Pinned host memory: copies from and to it run beside the program and beside kernels.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::cuda::{self, HostUse, Look, PinnedBytes};
use crate::device::{Device, DeviceKind, Stream};
use crate::element::Element;
use crate::tensor::Tensor;
use crate::{Error, Result};

/// Host memory that the GPU's copy engines access directly; on a simulator ordinary memory.
///
/// ```
/// # use tirx_rt::{Device, Pinned, Tensor};
/// # let device = Device::simulator();
/// # let stream = device.default_stream();
/// let mut host = Pinned::<f32>::zeroed(&device, 64)?;
/// host.as_mut_slice()?.fill(1.5);
/// let mut a = Tensor::zeros(&stream, [64])?;
/// a.copy_from_pinned(&stream, &host)?;              // returns at once
/// a.copy_to_pinned(&stream, &mut host)?;
/// assert_eq!(host.as_slice()?, [1.5; 64]);          // waits for the copies that use it
/// # Ok::<(), tirx_rt::Error>(())
/// ```
///
/// A [graph](crate::Graph) that copies from or to it keeps the memory. Its launch is an error while a slice lives that the copy
/// would change, or that changes what is copied.
pub struct Pinned<T: PlainElement> {
    memory: Arc<PinnedBytes>,
    len: usize,
    element: PhantomData<T>,
}

/// An element type whose values in memory are its little-endian bytes, every pattern of which is a value: all but `bool`
/// and those of less than a byte.
pub trait PlainElement: Element {}

macro_rules! plain {
    ($($ty:ty)*) => {$(impl PlainElement for $ty {})*};
}
plain!(i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 crate::f16 crate::bf16);
plain!(crate::f8e4m3 crate::f8e5m2 crate::f8e8m0 crate::f4e2m1x2);

impl<T: PlainElement> Pinned<T> {
    /// `len` zeros.
    ///
    /// # Errors
    /// The driver's, where it has no more memory to pin.
    pub fn zeroed(device: &Device, len: usize) -> Result<Pinned<T>> {
        let bytes = len
            .checked_mul(size_of::<T>())
            .ok_or_else(|| Error::Shape(format!("{len} elements of {} are too many", T::NAME)))?;
        let memory = match &device.0 {
            DeviceKind::Cuda(context) => {
                crate::graph::forbid("an allocation")?;
                PinnedBytes::zeroed(context, bytes)?
            }
            #[cfg(feature = "simulator")]
            DeviceKind::Simulator(_) => crate::simulator::pinned_memory(bytes)?,
        };
        Ok(Pinned {
            memory: Arc::new(memory),
            len,
            element: PhantomData,
        })
    }

    /// A copy of `values`.
    ///
    /// # Errors
    /// The driver's, where it has no more memory to pin.
    pub fn from_slice(device: &Device, values: &[T]) -> Result<Pinned<T>> {
        let mut pinned = Pinned::zeroed(device, values.len())?;
        pinned.as_mut_slice()?.copy_from_slice(values);
        Ok(pinned)
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements, once the copies that use them are done.
    ///
    /// # Errors
    /// Those of the copies, and of the work before them; [`Error::Capture`] in a capture.
    pub fn as_slice(&self) -> Result<PinnedSlice<'_, T>> {
        crate::graph::forbid("looking at pinned memory")?;
        let look = self.memory.look(HostUse::Read)?;
        Ok(PinnedSlice(look, PhantomData))
    }

    /// The elements, to write, once the copies that use them are done.
    ///
    /// # Errors
    /// As [`as_slice`](Pinned::as_slice).
    pub fn as_mut_slice(&mut self) -> Result<PinnedSliceMut<'_, T>> {
        crate::graph::forbid("looking at pinned memory")?;
        let look = self.memory.look(HostUse::Write)?;
        Ok(PinnedSliceMut(look, PhantomData))
    }
}

/// The elements of [`Pinned`] memory: a slice. While it lives, a graph that writes the memory cannot be launched.
pub struct PinnedSlice<'a, T: PlainElement>(Look<'a>, PhantomData<&'a [T]>);

/// The elements of [`Pinned`] memory, to write: a slice. While it lives, a graph that copies from or to the memory cannot be
/// launched.
pub struct PinnedSliceMut<'a, T: PlainElement>(Look<'a>, PhantomData<&'a mut [T]>);

macro_rules! slices {
    ($($name:ident)*) => {$(
        impl<T: PlainElement> Deref for $name<'_, T> {
            type Target = [T];
            fn deref(&self) -> &[T] {
                cuda::elements(self.0.bytes())
            }
        }

        impl<T: PlainElement, S: AsRef<[T]> + ?Sized> PartialEq<S> for $name<'_, T> {
            fn eq(&self, other: &S) -> bool {
                **self == *other.as_ref()
            }
        }

        impl<T: PlainElement> AsRef<[T]> for $name<'_, T> {
            fn as_ref(&self) -> &[T] {
                self
            }
        }

        impl<'s, T: PlainElement> IntoIterator for &'s $name<'_, T> {
            type Item = &'s T;
            type IntoIter = std::slice::Iter<'s, T>;
            fn into_iter(self) -> Self::IntoIter {
                self.iter()
            }
        }

        impl<T: PlainElement> fmt::Debug for $name<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }
    )*};
}
slices!(PinnedSlice PinnedSliceMut);

impl<T: PlainElement> DerefMut for PinnedSliceMut<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        cuda::elements_mut(self.0.bytes_mut())
    }
}

impl<'s, T: PlainElement> IntoIterator for &'s mut PinnedSliceMut<'_, T> {
    type Item = &'s mut T;
    type IntoIter = std::slice::IterMut<'s, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<T: PlainElement> Tensor<T> {
    /// Overwrites the elements with those of pinned memory, in row-major order, and returns before the copy is done. In a
    /// [capture](Stream::capture) the copy is recorded.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there are as many and the tensor is contiguous; the driver's.
    pub fn copy_from_pinned(&mut self, stream: &Stream, from: &Pinned<T>) -> Result<()> {
        self.fits(from)?;
        let first = self.first_byte();
        self.storage()
            .copy_pinned(stream, first, &from.memory, HostUse::Read)
    }

    /// Copies the elements to pinned memory, in row-major order, and returns before the copy is done;
    /// [`Pinned::as_slice`] waits for it. In a [capture](Stream::capture) the copy is recorded.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there are as many and the tensor is contiguous; the driver's.
    pub fn copy_to_pinned(&self, stream: &Stream, to: &mut Pinned<T>) -> Result<()> {
        self.fits(to)?;
        let first = self.first_byte();
        self.storage()
            .copy_pinned(stream, first, &to.memory, HostUse::Write)
    }

    fn fits(&self, pinned: &Pinned<T>) -> Result<()> {
        match pinned.len == self.len() && self.is_contiguous() {
            true => Ok(()),
            false => Err(Error::Shape(format!(
                "{} pinned values do not fill a tensor of shape {:?} and strides {:?}",
                pinned.len,
                self.shape(),
                self.strides()
            ))),
        }
    }
}

impl<T: PlainElement> fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pinned<{}>[{}]", T::NAME, self.len)
    }
}
