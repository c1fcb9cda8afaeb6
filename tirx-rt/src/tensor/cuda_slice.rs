//! Tensors over a caller's own `cudarc` slices, and slices from tensors.

use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, DevicePtr, DevicePtrMut};

use super::{Tensor, View, ViewMut};
use crate::cuda::CudaMemory;
use crate::device::Stream;
use crate::element::Element;
use crate::shape::{IntoShape, Shape};
use crate::storage::Storage;
use crate::{Error, Result};

impl<T: Element> Tensor<T> {
    /// A tensor over a caller's own memory, which it takes.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `shape` has as many elements as the slice.
    pub fn from_cudarc(slice: CudaSlice<T>, shape: impl IntoShape) -> Result<Tensor<T>> {
        let shape = shape.into_shape()?;
        check_slice::<T>(slice.len(), &shape)?;
        let stream = slice.stream().clone();
        let memory = CudaMemory::owned(&stream, slice.leak());
        Ok(Tensor::new(
            Arc::new(Storage::Cuda(memory)),
            0,
            shape,
            shape.compact_strides(),
        ))
    }

    /// The memory as cudarc's; the tensor back where it is on a simulator, a view, of elements that share bytes, or symmetric memory.
    ///
    /// # Errors
    /// The tensor itself.
    #[expect(clippy::result_large_err, reason = "the tensor comes back as it was given")]
    pub fn into_cudarc(self) -> std::result::Result<CudaSlice<T>, Tensor<T>> {
        let len = self.len();
        if T::TYPE.bits < 8
            || self.offset != 0
            || !self.contiguous
            || self.storage.as_cuda().is_none_or(CudaMemory::is_mapped)
        {
            return Err(self);
        }
        let Tensor {
            storage,
            offset,
            shape,
            strides,
            contiguous,
            element,
        } = self;
        match Arc::try_unwrap(storage) {
            Ok(Storage::Cuda(memory)) => {
                let (address, stream) = memory.leak();
                // SAFETY: the allocation has room for `len` elements, and every `Element` is plain data.
                Ok(unsafe { stream.upgrade_device_ptr(address, len) })
            }
            #[cfg(feature = "simulator")]
            Ok(other) => Err(Tensor {
                storage: Arc::new(other),
                offset,
                shape,
                strides,
                contiguous,
                element,
            }),
            Err(storage) => Err(Tensor {
                storage,
                offset,
                shape,
                strides,
                contiguous,
                element,
            }),
        }
    }

    /// A caller's own memory as a tensor to read on `stream`, which waits for cudarc's earlier writes to it. cudarc
    /// does not learn of work that kernels do on it: synchronize, or use one stream.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `shape` has as many elements as the slice, or for a simulator's stream.
    pub fn borrow_cudarc<'a>(
        stream: &Stream,
        slice: &'a CudaSlice<T>,
        shape: impl IntoShape,
    ) -> Result<View<'a, T>> {
        let shape = shape.into_shape()?;
        check_slice::<T>(slice.len(), &shape)?;
        let cuda = stream.as_cudarc().ok_or_else(not_cuda)?;
        crate::graph::forbid_on(stream, "a borrowed cudarc slice")?;
        let (address, guard) = slice.device_ptr(cuda);
        let memory = CudaMemory::borrowed(cuda, address, slice.stream());
        drop(guard);
        Ok(View(
            Tensor::new(Arc::new(Storage::Cuda(memory)), 0, shape, shape.compact_strides()),
            PhantomData,
        ))
    }

    /// A caller's own memory as a tensor to write; see [`Tensor::borrow_cudarc`].
    ///
    /// # Errors
    /// [`Error::Shape`] unless `shape` has as many elements as the slice, or for a simulator's stream.
    pub fn borrow_cudarc_mut<'a>(
        stream: &Stream,
        slice: &'a mut CudaSlice<T>,
        shape: impl IntoShape,
    ) -> Result<ViewMut<'a, T>> {
        let shape = shape.into_shape()?;
        check_slice::<T>(slice.len(), &shape)?;
        let cuda = stream.as_cudarc().ok_or_else(not_cuda)?;
        crate::graph::forbid_on(stream, "a borrowed cudarc slice")?;
        let home = slice.stream().clone();
        let (address, guard) = slice.device_ptr_mut(cuda);
        let memory = CudaMemory::borrowed(cuda, address, &home);
        drop(guard);
        Ok(ViewMut(
            Tensor::new(Arc::new(Storage::Cuda(memory)), 0, shape, shape.compact_strides()),
            PhantomData,
        ))
    }
}

/// Checks that a slice, which has whole bytes for its elements, has the layout that kernels expect.
fn check_slice<T: Element>(len: usize, shape: &Shape) -> Result<()> {
    if T::TYPE.bits < 8 {
        return Err(Error::Shape(format!(
            "{} share bytes, which a cudarc slice of them does not",
            T::NAME
        )));
    }
    if shape.elements() == Some(len) {
        return Ok(());
    }
    Err(Error::Shape(format!(
        "a slice of {len} elements does not fill a tensor of shape {shape:?}"
    )))
}

fn not_cuda() -> Error {
    Error::Shape("a cudarc slice needs a stream of a CUDA device".to_string())
}
