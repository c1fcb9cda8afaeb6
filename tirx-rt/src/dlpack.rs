//! DLPack: exchange of tensors with other libraries, without copying.
//!
//! A `DLManagedTensor` is memory with a description and a function that releases it. An exported one keeps the tensor
//! alive; an imported one is released when the last tensor over its memory is dropped.
//!
//! Source: DLPack, `include/dlpack/dlpack.h`, version 0.8. `unsafe` here has one reason: that structure's pointers.

use std::ffi::c_void;
use std::sync::Arc;

use tirx_dtype::{DType, TypeCode};

use crate::cuda::CudaMemory;
use crate::device::{Stream, StreamKind};
use crate::shape::Shape;
use crate::storage::Storage;
use crate::{Element, Error, Result, Tensor};

/// DLPack's device type of CUDA memory.
const CUDA: i32 = 2;
/// DLPack's device type for memory of an unknown kind, used for a simulator's.
const SIMULATOR: i32 = 12;

/// `DLTensor`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DlTensor {
    /// Start of the memory.
    pub data: *mut c_void,
    /// `DLDeviceType`: 2 is CUDA.
    pub device_type: i32,
    /// Number of the device.
    pub device_id: i32,
    /// Number of dimensions.
    pub ndim: i32,
    /// `DLDataTypeCode`.
    pub code: u8,
    /// Bits of an element.
    pub bits: u8,
    /// Lanes of an element.
    pub lanes: u16,
    /// Extents.
    pub shape: *mut i64,
    /// Steps in elements; null for a compact tensor.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
#[derive(Debug)]
pub struct DlManagedTensor {
    /// The description.
    pub dl_tensor: DlTensor,
    /// Private to the producer.
    pub manager_ctx: *mut c_void,
    /// Called by the consumer to release the tensor.
    pub deleter: Option<unsafe extern "C" fn(*mut DlManagedTensor)>,
}

/// The context of an exported tensor.
struct Held<T: Element> {
    managed: DlManagedTensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
    tensor: Tensor<T>,
}

unsafe extern "C" fn give_back<T: Element>(managed: *mut DlManagedTensor) {
    if managed.is_null() {
        return;
    }
    // SAFETY: `into_dlpack` put the context there, and a tensor is given back once.
    drop(unsafe { Box::from_raw((*managed).manager_ctx.cast::<Held<T>>()) });
}

/// An imported tensor, released when this value is dropped.
pub(crate) struct Foreign(*mut DlManagedTensor);

// SAFETY: DLPack lets any thread give a tensor back, and nothing else is done with the pointer.
unsafe impl Send for Foreign {}
// SAFETY: as above.
unsafe impl Sync for Foreign {}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: the pointer was valid when it was taken, and it is given back once.
        unsafe {
            if let Some(deleter) = (*self.0).deleter {
                deleter(self.0);
            }
        }
    }
}

impl<T: Element> Tensor<T> {
    /// Exports the tensor; the consumer calls the `deleter` when it is done. On a GPU the memory is CUDA's; wait for
    /// the stream that wrote it before the other library reads it.
    ///
    /// # Errors
    /// [`Error::Shape`] for elements that share bytes, which DLPack cannot address.
    pub fn into_dlpack(self) -> Result<*mut DlManagedTensor> {
        if T::TYPE.bits < 8 {
            return Err(Error::Shape(format!("DLPack has no tensors of {}", T::NAME)));
        }
        let device_id = self.storage().device_id();
        // Simulators have the numbers -1, -2, …; DLPack counts devices from 0.
        let (device_type, device_id) = if device_id < 0 {
            (SIMULATOR, -1 - device_id)
        } else {
            (CUDA, device_id)
        };
        let (code, bits, lanes) = T::TYPE.dlpack();
        let wide = |values: &[usize]| values.iter().map(|v| *v as i64).collect::<Vec<i64>>();
        let mut held = Box::new(Held {
            shape: wide(self.shape()),
            strides: wide(self.strides()),
            managed: DlManagedTensor {
                dl_tensor: DlTensor {
                    data: self.address() as *mut c_void,
                    device_type,
                    device_id,
                    ndim: self.shape().len() as i32,
                    code,
                    bits,
                    lanes,
                    shape: std::ptr::null_mut(),
                    strides: std::ptr::null_mut(),
                    byte_offset: 0,
                },
                manager_ctx: std::ptr::null_mut(),
                deleter: Some(give_back::<T>),
            },
            tensor: self,
        });
        held.managed.dl_tensor.shape = held.shape.as_mut_ptr();
        held.managed.dl_tensor.strides = held.strides.as_mut_ptr();
        let held = Box::into_raw(held);
        // SAFETY: the box was just made; it is freed by `give_back` alone.
        unsafe {
            (*held).managed.manager_ctx = held.cast();
            Ok(&raw mut (*held).managed)
        }
    }

    /// A tensor of another library, or of [`Tensor::into_dlpack`], on the stream's device.
    ///
    /// # Errors
    /// [`Error::Shape`] where the device, element type or strides do not fit; the tensor is then given back.
    ///
    /// # Safety
    /// `managed` is a whole `DLManagedTensor` that nobody has taken, its memory is as large as it says, and earlier work
    /// of the other library on it is done or in `stream`.
    pub unsafe fn from_dlpack(stream: &Stream, managed: *mut DlManagedTensor) -> Result<Tensor<T>> {
        if managed.is_null() {
            return Err(Error::Shape("a null pointer is no DLPack tensor".to_string()));
        }
        let foreign = Foreign(managed);
        crate::graph::forbid_on(stream, "a tensor of another library")?;
        // SAFETY: the caller's promise.
        let tensor = unsafe { (*managed).dl_tensor };
        if (tensor.code, tensor.bits, tensor.lanes) != T::TYPE.dlpack() {
            let codes = TypeCode::ALL.iter();
            let code = codes.copied().find(|code| code.dlpack() == tensor.code);
            let found = code.map_or_else(
                || {
                    format!(
                        "code {}, {} bits and {} lanes",
                        tensor.code, tensor.bits, tensor.lanes
                    )
                },
                |code| {
                    DType::scalar(code, tensor.bits)
                        .with_lanes(tensor.lanes)
                        .to_string()
                },
            );
            return Err(Error::Shape(format!(
                "the DLPack tensor has elements of {found}, expected {}",
                T::NAME
            )));
        }
        // SAFETY: the caller's promise.
        let own = unsafe { (*managed).deleter }.is_some_and(|d| {
            std::ptr::fn_addr_eq(d, give_back::<T> as unsafe extern "C" fn(*mut DlManagedTensor))
        });
        if own {
            std::mem::forget(foreign);
            // SAFETY: the deleter says who made it, and what the context is.
            let held = unsafe { Box::from_raw((*managed).manager_ctx.cast::<Held<T>>()) };
            if held.tensor.storage().device_id() != stream.device_id() {
                return Err(Error::Shape(
                    "the DLPack tensor is on another device than the stream".to_string(),
                ));
            }
            return Ok(held.tensor);
        }
        let rank = usize::try_from(tensor.ndim).unwrap_or(usize::MAX);
        let list = |values: *const i64| {
            // SAFETY: the caller's promise: as many values as dimensions.
            let values = unsafe { std::slice::from_raw_parts(values, rank) };
            let values: Option<Vec<usize>> = values.iter().map(|v| usize::try_from(*v).ok()).collect();
            values.and_then(|values| Shape::new(&values))
        };
        let refused =
            || Error::Shape("the DLPack tensor has too many dimensions or negative steps".to_string());
        let shape = match rank {
            0 => Shape::new(&[]),
            1..=8 => list(tensor.shape),
            _ => None,
        };
        let shape = shape.ok_or_else(refused)?;
        let strides = match tensor.strides.is_null() || rank == 0 {
            true => shape.compact_strides(),
            false => list(tensor.strides).ok_or_else(refused)?,
        };
        let device = (tensor.device_type, tensor.device_id);
        let cuda = match &stream.0 {
            StreamKind::Cuda(cuda) if device == (CUDA, stream.device_id()) => cuda,
            _ => {
                return Err(Error::Shape(format!(
                    "the DLPack tensor is on device {} of type {}, the stream on {:?}",
                    tensor.device_id,
                    tensor.device_type,
                    stream.device()
                )));
            }
        };
        let address = tensor.data as u64 + tensor.byte_offset;
        let memory = CudaMemory::foreign(cuda, address, foreign);
        Ok(Tensor::new(Arc::new(Storage::Cuda(memory)), 0, shape, strides))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::Device;

    #[test]
    fn a_tensor_comes_back_as_it_went() {
        let stream = Device::simulator().default_stream();
        let tensor = Tensor::from_slice(&stream, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]).unwrap();
        let managed = tensor.into_dlpack().unwrap();
        // SAFETY: just made.
        let described = unsafe { (*managed).dl_tensor };
        assert_eq!(
            (described.ndim, described.code, described.bits, described.lanes),
            (2, 2, 32, 1)
        );
        assert_eq!(described.device_type, SIMULATOR);
        // SAFETY: two dimensions.
        let shape = unsafe { std::slice::from_raw_parts(described.shape, 2) };
        assert_eq!(shape, [2, 3]);
        // SAFETY: nobody has taken it.
        let back = unsafe { Tensor::<f32>::from_dlpack(&stream, managed) }.unwrap();
        assert_eq!(back.to_vec().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    }

    #[test]
    fn narrow_floats_have_their_codes() {
        let stream = Device::simulator().default_stream();
        let tensor = Tensor::<crate::f8e4m3>::zeros(&stream, [4]).unwrap();
        let pairs = Tensor::<crate::f4e2m1x2>::zeros(&stream, [4]).unwrap();
        let managed = [tensor.into_dlpack().unwrap(), pairs.into_dlpack().unwrap()];
        // SAFETY: just made.
        let described = managed.map(|managed| unsafe { (*managed).dl_tensor });
        let types = described.map(|t| (t.code, t.bits, t.lanes));
        assert_eq!(types, [(10, 8, 1), (17, 4, 2)]);
        // SAFETY: nobody has taken it.
        let error = unsafe { Tensor::<crate::f8e5m2>::from_dlpack(&stream, managed[0]) };
        assert_eq!(
            error.err().unwrap().to_string(),
            "the DLPack tensor has elements of float8_e4m3fn, expected float8_e5m2"
        );
        // SAFETY: nobody has taken it.
        let pairs = unsafe { Tensor::<crate::f4e2m1x2>::from_dlpack(&stream, managed[1]) };
        assert_eq!(pairs.unwrap().len(), 4);
    }

    #[test]
    fn what_does_not_fit_is_refused_and_given_back() {
        let stream = Device::simulator().default_stream();
        let tensor = Tensor::from_slice(&stream, &[1i32, 2], [2]).unwrap();
        let managed = tensor.into_dlpack().unwrap();
        // SAFETY: nobody has taken it.
        let error = unsafe { Tensor::<f32>::from_dlpack(&stream, managed) }
            .err()
            .unwrap();
        assert_eq!(
            error.to_string(),
            "the DLPack tensor has elements of int32, expected float32"
        );
        // SAFETY: a null pointer is refused.
        let error = unsafe { Tensor::<f32>::from_dlpack(&stream, std::ptr::null_mut()) };
        assert!(
            error
                .err()
                .unwrap()
                .to_string()
                .contains("a null pointer is no DLPack tensor")
        );
        let tensor = Tensor::from_slice(&stream, &[1i32, 2], [2]).unwrap();
        let managed = tensor.into_dlpack().unwrap();
        let other = Device::new_simulator().default_stream();
        // SAFETY: nobody has taken it.
        let error = unsafe { Tensor::<i32>::from_dlpack(&other, managed) };
        let error = error.err().unwrap().to_string();
        assert!(
            error.contains("the DLPack tensor is on another device than the stream"),
            "{error}"
        );
        let small = Tensor::<crate::Float4E2m1>::zeros(&stream, [2]).unwrap();
        let error = small.into_dlpack().unwrap_err().to_string();
        assert!(error.contains("DLPack has no tensors of float4"), "{error}");
    }

    #[test]
    fn tensors_of_other_libraries_are_refused_with_a_reason() {
        static GIVEN_BACK: AtomicUsize = AtomicUsize::new(0);
        unsafe extern "C" fn count(_: *mut DlManagedTensor) {
            GIVEN_BACK.fetch_add(1, Ordering::Relaxed);
        }
        let stream = Device::simulator().default_stream();
        let refused = |ndim: i32, shape: &mut [i64], strides: &mut [i64]| {
            let mut managed = DlManagedTensor {
                dl_tensor: DlTensor {
                    data: std::ptr::null_mut(),
                    device_type: CUDA,
                    device_id: 3,
                    ndim,
                    code: 2,
                    bits: 32,
                    lanes: 1,
                    shape: shape.as_mut_ptr(),
                    strides: strides.as_mut_ptr(),
                    byte_offset: 0,
                },
                manager_ctx: std::ptr::null_mut(),
                deleter: Some(count),
            };
            // SAFETY: whole, and refused before its memory is used.
            let result = unsafe { Tensor::<f32>::from_dlpack(&stream, &raw mut managed) };
            result.err().unwrap().to_string()
        };
        let text = "the DLPack tensor has too many dimensions or negative steps";
        for (ndim, shape, strides) in [
            (9, &mut [1i64; 9][..], &mut [1i64; 9][..]),
            (-1, &mut [1], &mut [1]),
            (1, &mut [-4], &mut [1]),
            (1, &mut [4], &mut [-1]),
        ] {
            let error = refused(ndim, shape, strides);
            assert!(error.contains(text), "{ndim}: {error}");
        }
        let error = refused(1, &mut [4], &mut [1]);
        assert!(
            error.contains("the DLPack tensor is on device 3 of type 2, the stream on "),
            "{error}"
        );
        assert_eq!(GIVEN_BACK.load(Ordering::Relaxed), 5);
    }
}
