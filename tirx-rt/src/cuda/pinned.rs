//! Page-locked host memory, which the copy engines read and write without staging.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{CudaContext, CudaEvent, CudaStream, result, sys};

use super::failed;
use crate::Result;
use crate::pinned::PlainElement;

/// An allocation, and the last copy that uses it.
pub(crate) struct PinnedBytes {
    start: NonNull<u8>,
    len: usize,
    context: Arc<CudaContext>,
    /// Recorded after the last copy.
    busy: Mutex<Option<CudaEvent>>,
}

// SAFETY: the memory belongs to this value alone; copies that use it are waited for before anyone looks at it.
unsafe impl Send for PinnedBytes {}
// SAFETY: shared access reads only, after `wait`.
unsafe impl Sync for PinnedBytes {}

impl PinnedBytes {
    /// Zeroed memory.
    pub(crate) fn zeroed(context: &Arc<CudaContext>, len: usize) -> Result<PinnedBytes> {
        context.bind_to_thread().map_err(failed("binding the context"))?;
        let attempt = format!("allocating {len} bytes of pinned memory");
        // SAFETY: the context is current; the memory is freed once, in `drop`.
        let start = unsafe { result::malloc_host(len.max(1), sys::CU_MEMHOSTALLOC_PORTABLE) };
        let start = start.map_err(failed(&attempt))?.cast::<u8>();
        // SAFETY: the driver gave that many bytes.
        unsafe { start.write_bytes(0, len.max(1)) };
        let start =
            NonNull::new(start).ok_or_else(|| crate::Error::Shape(format!("{attempt}: no memory")))?;
        Ok(PinnedBytes {
            start,
            len,
            context: context.clone(),
            busy: Mutex::new(None),
        })
    }

    /// Waits for the copies that use it.
    pub(crate) fn wait(&self) -> Result<()> {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(event) = busy.take() {
            event.synchronize().map_err(failed("waiting for a copy"))?;
        }
        Ok(())
    }

    /// Queues a copy on `stream`, after earlier copies that use the memory.
    pub(super) fn used_by(
        &self,
        stream: &Arc<CudaStream>,
        copy: impl FnOnce(*mut u8, usize) -> Result<()>,
    ) -> Result<()> {
        crate::graph::forbid("a copy between host and device")?;
        stream
            .context()
            .bind_to_thread()
            .map_err(failed("binding the context"))?;
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(event) = &*busy {
            stream.wait(event).map_err(failed("ordering two copies"))?;
        }
        copy(self.start.as_ptr(), self.len)?;
        *busy = Some(
            stream
                .record_event(None)
                .map_err(failed("recording the end of a copy"))?,
        );
        Ok(())
    }

    /// The bytes. The caller has called [`wait`](PinnedBytes::wait).
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: that many initialized bytes, and no copy writes them.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The bytes, to write. The caller has called [`wait`](PinnedBytes::wait).
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the access is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for PinnedBytes {
    fn drop(&mut self) {
        let waited = self.wait();
        if self.context.bind_to_thread().is_err() || waited.is_err() {
            // A device that failed may still use the memory: it is kept.
            return;
        }
        // SAFETY: it came from `malloc_host`, is freed once, and no copy uses it.
        let _ = unsafe { result::free_host(self.start.as_ptr().cast::<c_void>()) };
    }
}

/// The elements in bytes. Empty where the bytes are not aligned for them, which those of an allocation are.
pub(crate) fn elements<T: PlainElement>(bytes: &[u8]) -> &[T] {
    // SAFETY: every pattern of bits is a value of a plain element.
    let (front, elements, _) = unsafe { bytes.align_to::<T>() };
    debug_assert!(front.is_empty());
    elements
}

/// The elements in bytes, to write.
pub(crate) fn elements_mut<T: PlainElement>(bytes: &mut [u8]) -> &mut [T] {
    // SAFETY: as above, and every value is a pattern of bits.
    let (front, elements, _) = unsafe { bytes.align_to_mut::<T>() };
    debug_assert!(front.is_empty());
    elements
}

/// The bytes of words.
#[cfg(feature = "simulator")]
pub(crate) fn bytes_of_words(words: &[u64]) -> &[u8] {
    // SAFETY: bytes have no alignment and no invalid values.
    let (_, bytes, _) = unsafe { words.align_to::<u8>() };
    bytes
}

/// The bytes of words, to write.
#[cfg(feature = "simulator")]
pub(crate) fn bytes_of_words_mut(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: as above; words have no invalid values either.
    let (_, bytes, _) = unsafe { words.align_to_mut::<u8>() };
    bytes
}
