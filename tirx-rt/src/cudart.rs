//! Streams of the CUDA runtime, by the types of `cuda-runtime-sys`.

use cuda_runtime_sys::cudaStream_t;

use crate::{Device, Error, Result, Stream};

impl Stream {
    /// A stream of the CUDA runtime as a stream of `device`. It stays the caller's and is not destroyed; null is the default
    /// stream.
    ///
    /// # Errors
    /// [`Error::NoDevice`]: the device is the simulator, which has no streams of the runtime but null.
    ///
    /// # Safety
    /// `stream` is a stream of the device's primary context and lives as long as what is made of it here. Work that its
    /// owner gives it is ordered with that of tensors by the owner.
    pub unsafe fn from_cudart(device: &Device, stream: cudaStream_t) -> Result<Stream> {
        if stream.is_null() {
            return Ok(device.default_stream());
        }
        let Some(context) = device.as_cudarc() else {
            return Err(Error::NoDevice {
                device: "stream of the CUDA runtime".to_string(),
                reason: "the device is the simulator".to_string(),
            });
        };
        // SAFETY: the caller's promise; a stream of the runtime is one of the driver.
        let stream = unsafe { context.wrap_borrowed_stream(stream.cast()) };
        Ok(Stream::from_cudarc(stream))
    }

    /// The stream for functions of the CUDA runtime; `None` for a simulator. Valid as long as this stream.
    pub fn as_cudart(&self) -> Option<cudaStream_t> {
        self.as_cudarc().map(|stream| stream.cu_stream().cast())
    }
}

#[cfg(all(test, feature = "simulator"))]
mod tests {
    use super::*;

    #[test]
    fn the_simulator_has_the_default_stream_alone() {
        let device = Device::simulator();
        // SAFETY: nothing is launched; the second is never used.
        let (null, other) = unsafe {
            let other = std::ptr::dangling_mut();
            (
                Stream::from_cudart(&device, std::ptr::null_mut()),
                Stream::from_cudart(&device, other),
            )
        };
        assert_eq!(null.unwrap().as_cudart(), None);
        assert_eq!(
            other.unwrap_err().to_string(),
            "no stream of the CUDA runtime: the device is the simulator"
        );
    }
}
