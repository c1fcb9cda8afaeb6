//! A call when the work of a stream is done.

use std::ffi::c_void;

use cudarc::driver::{CudaStream, DriverError, sys};

use super::failed;
use crate::Result;

type Callback = Box<dyn FnOnce(Result<()>) + Send>;

/// Has the driver's thread call `then` once, when everything that is queued on the stream is done or has failed. `then`
/// must not call the driver.
pub(crate) fn when_done(stream: &CudaStream, then: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
    unsafe extern "C" fn call(_: sys::CUstream, status: sys::CUresult, data: *mut c_void) {
        // SAFETY: the box that `when_done` made; the driver calls once.
        let then: Box<Callback> = unsafe { Box::from_raw(data.cast()) };
        let outcome = match status {
            sys::CUresult::CUDA_SUCCESS => Ok(()),
            // Names of errors are texts of the library: no work of the driver.
            error => Err(failed("waiting for the stream")(DriverError(error))),
        };
        // A panic must not cross C.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| then(outcome)));
    }
    stream
        .context()
        .bind_to_thread()
        .map_err(failed("binding the context"))?;
    let call_once: Box<Callback> = Box::new(Box::new(then));
    let data = Box::into_raw(call_once);
    // cuLaunchHostFunc is not called after an error, and the future that waits would never end.
    // SAFETY: `call` takes the box back, once.
    let status = unsafe { sys::cuStreamAddCallback(stream.cu_stream(), Some(call), data.cast(), 0) };
    status.result().map_err(|error| {
        // SAFETY: the driver did not take it.
        drop(unsafe { Box::from_raw(data) });
        failed("waiting for the stream")(error)
    })
}
