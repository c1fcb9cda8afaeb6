//! Pinned host memory: copies from and to it run beside the program and beside kernels.

use std::fmt;
use std::marker::PhantomData;

use crate::device::{Device, DeviceKind, Stream};
use crate::element::Element;
#[cfg(feature = "simulator")]
use crate::simulator::AlignedBytes;
use crate::tensor::Tensor;
use crate::{Error, Result, cuda};

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
pub struct Pinned<T: PlainElement> {
    memory: Memory,
    len: usize,
    element: PhantomData<T>,
}

enum Memory {
    Cuda(cuda::PinnedBytes),
    #[cfg(feature = "simulator")]
    Host(AlignedBytes),
}

/// An element type whose values in memory are its little-endian bytes, every pattern of which is a value: all but `bool`
/// and those of less than a byte.
pub trait PlainElement: Element {}

macro_rules! plain {
    ($($ty:ty)*) => {$(impl PlainElement for $ty {})*};
}
plain!(i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 crate::f16 crate::bf16);

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
            DeviceKind::Cuda(context) => Memory::Cuda(cuda::PinnedBytes::zeroed(context, bytes)?),
            #[cfg(feature = "simulator")]
            DeviceKind::Simulator(_) => Memory::Host(AlignedBytes::zeroed(bytes)?),
        };
        Ok(Pinned {
            memory,
            len,
            element: PhantomData,
        })
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
    /// Those of the copies, and of the work before them.
    pub fn as_slice(&self) -> Result<&[T]> {
        let bytes = match &self.memory {
            Memory::Cuda(memory) => {
                memory.wait()?;
                memory.bytes()
            }
            #[cfg(feature = "simulator")]
            Memory::Host(memory) => memory.bytes(),
        };
        Ok(cuda::elements(bytes))
    }

    /// The elements, to write, once the copies that use them are done.
    ///
    /// # Errors
    /// Those of the copies, and of the work before them.
    pub fn as_mut_slice(&mut self) -> Result<&mut [T]> {
        let bytes = match &mut self.memory {
            Memory::Cuda(memory) => {
                memory.wait()?;
                memory.bytes_mut()
            }
            #[cfg(feature = "simulator")]
            Memory::Host(memory) => memory.bytes_mut(),
        };
        Ok(cuda::elements_mut(bytes))
    }
}

impl<T: PlainElement> Tensor<T> {
    /// Overwrites the elements with those of pinned memory, in row-major order, and returns before the copy is done.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there are as many and the tensor is contiguous; the driver's.
    pub fn copy_from_pinned(&mut self, stream: &Stream, from: &Pinned<T>) -> Result<()> {
        self.fits(from)?;
        let first = self.first_byte();
        match &from.memory {
            Memory::Cuda(memory) => self.storage().write_pinned(stream, first, memory),
            #[cfg(feature = "simulator")]
            Memory::Host(memory) => self.storage().write(stream, first, memory.bytes()),
        }
    }

    /// Copies the elements to pinned memory, in row-major order, and returns before the copy is done;
    /// [`Pinned::as_slice`] waits for it.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there are as many and the tensor is contiguous; the driver's.
    pub fn copy_to_pinned(&self, stream: &Stream, to: &mut Pinned<T>) -> Result<()> {
        self.fits(to)?;
        let first = self.first_byte();
        match &mut to.memory {
            Memory::Cuda(memory) => self.storage().read_pinned(stream, first, memory),
            #[cfg(feature = "simulator")]
            Memory::Host(memory) => {
                let bytes = memory.bytes_mut();
                let read = self.storage().read(first, bytes.len())?;
                bytes.copy_from_slice(&read);
                Ok(())
            }
        }
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
