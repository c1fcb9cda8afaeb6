//! Device memory, and the order of its uses.
//!
//! A stream that uses memory waits for the stream that used it last, and memory is freed on the stream of its last use. To
//! other threads it is one step that a stream becomes the last one and that its work is queued (`ORDER`). Otherwise a third
//! stream could wait for the last one, or the memory be freed on it, between the two: two threads may use one tensor at the
//! same time, as readers or through a graph.

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use cudarc::driver::{CudaStream, result, sys};

use super::graph::not_captured_elsewhere;
use super::pinned::PinnedBytes;
use super::{HostUse, failed};
use crate::Result;
use crate::dlpack::Foreign;

/// Read-locked while work is queued, write-locked while the last user of memory changes.
static ORDER: RwLock<()> = RwLock::new(());

/// Held from the ordering of memory until the work that uses it is queued.
pub(crate) type Queueing = RwLockReadGuard<'static, ()>;

/// A piece of device memory.
pub(crate) struct CudaMemory {
    address: u64,
    ordinal: i32,
    owner: Owner,
    /// The stream that used it last, and that stream's handle for a quick comparison.
    last: Mutex<Arc<CudaStream>>,
    last_handle: AtomicUsize,
}

enum Owner {
    /// Freed when the value is dropped.
    Own,
    /// Another library's, which uses it on stream `home` before and after: released when the value is dropped.
    Foreign {
        #[allow(dead_code, reason = "held, not looked at")]
        tensor: Foreign,
        home: Arc<CudaStream>,
    },
    /// A caller's, who keeps it as long as the value lives, and uses it on stream `home` afterwards.
    Borrowed { home: Arc<CudaStream> },
    /// Mapped for several devices: unmapped when the value is dropped.
    Mapped {
        #[allow(dead_code, reason = "held, not looked at")]
        mapping: Box<dyn Any + Send + Sync>,
    },
    /// Given to the caller.
    Leaked,
}

/// Makes `stream` wait for the last use of each memory; its work is the last use from now on. Work may be queued as long as
/// the result lives.
#[inline]
pub(crate) fn order<'a>(
    memories: impl Iterator<Item = &'a CudaMemory> + Clone,
    stream: &Arc<CudaStream>,
) -> Result<Queueing> {
    let queueing = ORDER.read().unwrap_or_else(PoisonError::into_inner);
    if memories.clone().all(|memory| memory.was_used_by(stream)) {
        return Ok(queueing);
    }
    drop(queueing);
    change_last(memories, stream)
}

#[cold]
fn change_last<'a>(
    memories: impl Iterator<Item = &'a CudaMemory>,
    stream: &Arc<CudaStream>,
) -> Result<Queueing> {
    not_captured_elsewhere(stream)?;
    let changing = ORDER.write().unwrap_or_else(PoisonError::into_inner);
    for memory in memories {
        memory.follow(stream)?;
    }
    Ok(RwLockWriteGuard::downgrade(changing))
}

impl CudaMemory {
    /// Memory at `address` of another library.
    pub(crate) fn foreign(stream: &Arc<CudaStream>, address: u64, tensor: Foreign) -> CudaMemory {
        let home = stream.clone();
        CudaMemory::at(stream, address, Owner::Foreign { tensor, home })
    }

    /// Memory at `address` of the stream's context, freed when it is dropped.
    pub(crate) fn owned(stream: &Arc<CudaStream>, address: u64) -> CudaMemory {
        CudaMemory::at(stream, address, Owner::Own)
    }

    /// Memory at `address` that is mapped for several devices, and is unmapped when `mapping` is dropped.
    pub(crate) fn mapped(
        stream: &Arc<CudaStream>,
        address: u64,
        mapping: Box<dyn Any + Send + Sync>,
    ) -> CudaMemory {
        CudaMemory::at(stream, address, Owner::Mapped { mapping })
    }

    /// Memory at `address` that its owner keeps meanwhile, and frees on stream `home`.
    pub(crate) fn borrowed(stream: &Arc<CudaStream>, address: u64, home: &Arc<CudaStream>) -> CudaMemory {
        let home = home.clone();
        CudaMemory::at(stream, address, Owner::Borrowed { home })
    }

    pub(crate) fn alloc(stream: &Arc<CudaStream>, bytes: usize) -> Result<CudaMemory> {
        let context = stream.context();
        context.bind_to_thread().map_err(failed("binding the context"))?;
        let attempt = format!("allocating {bytes} bytes");
        // SAFETY: the context is current; the address is freed once, in `drop`.
        let address = unsafe {
            if context.has_async_alloc() {
                result::malloc_async(stream.cu_stream(), bytes.max(1))
            } else {
                result::malloc_sync(bytes.max(1))
            }
        };
        let address = address.map_err(failed(&attempt))?;
        Ok(CudaMemory::owned(stream, address))
    }

    fn at(stream: &Arc<CudaStream>, address: u64, owner: Owner) -> CudaMemory {
        CudaMemory {
            address,
            ordinal: stream.context().ordinal() as i32,
            owner,
            last: Mutex::new(stream.clone()),
            last_handle: AtomicUsize::new(stream.cu_stream() as usize),
        }
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn ordinal(&self) -> i32 {
        self.ordinal
    }

    /// The stream that used it last.
    pub(crate) fn stream(&self) -> Arc<CudaStream> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it lives as long as this value, whatever the caller does.
    pub(crate) fn is_kept(&self) -> bool {
        !matches!(self.owner, Owner::Borrowed { .. })
    }

    /// Whether it is mapped for several devices.
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self.owner, Owner::Mapped { .. })
    }

    /// Gives the memory up without freeing it.
    pub(crate) fn leak(mut self) -> (u64, Arc<CudaStream>) {
        self.owner = Owner::Leaked;
        (self.address, self.stream())
    }

    #[inline]
    fn was_used_by(&self, stream: &CudaStream) -> bool {
        self.last_handle.load(Ordering::Acquire) == stream.cu_stream() as usize
    }

    /// Makes `stream` wait for the last use; it is the last one from now on.
    fn follow(&self, stream: &Arc<CudaStream>) -> Result<()> {
        if self.was_used_by(stream) {
            return Ok(());
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        stream.join(&last).map_err(failed("ordering two streams"))?;
        *last = stream.clone();
        self.last_handle
            .store(stream.cu_stream() as usize, Ordering::Release);
        Ok(())
    }

    /// Copies pinned memory in, without waiting. The stream has been ordered, as for the functions below.
    pub(crate) fn write_pinned(
        &self,
        stream: &Arc<CudaStream>,
        offset: usize,
        bytes: &Arc<PinnedBytes>,
    ) -> Result<()> {
        bytes.used_by(stream, HostUse::Read, |host, len| {
            let address = self.address + offset as u64;
            // SAFETY: callers keep offset + len within the allocation; the pinned memory is not written and not freed
            // before the event that is recorded after the copy.
            let status = unsafe { sys::cuMemcpyHtoDAsync_v2(address, host.cast(), len, stream.cu_stream()) };
            status.result().map_err(failed("copying to the device"))
        })
    }

    /// Copies to pinned memory, without waiting.
    pub(crate) fn read_pinned(
        &self,
        stream: &Arc<CudaStream>,
        offset: usize,
        bytes: &Arc<PinnedBytes>,
    ) -> Result<()> {
        bytes.used_by(stream, HostUse::Write, |host, len| {
            let address = self.address + offset as u64;
            // SAFETY: as above; the pinned memory is not read before the event.
            let status = unsafe { sys::cuMemcpyDtoHAsync_v2(host.cast(), address, len, stream.cu_stream()) };
            status.result().map_err(failed("copying from the device"))
        })
    }

    /// Copies `len` bytes of memory of the same device.
    pub(crate) fn copy(
        &self,
        stream: &Arc<CudaStream>,
        offset: usize,
        from: &CudaMemory,
        from_offset: usize,
        len: usize,
    ) -> Result<()> {
        stream
            .context()
            .bind_to_thread()
            .map_err(failed("binding the context"))?;
        let (to, from) = (self.address + offset as u64, from.address + from_offset as u64);
        // SAFETY: callers keep both ranges within the allocations, which are freed after the copy on this stream or later.
        unsafe { result::memcpy_dtod_async(to, from, len, stream.cu_stream()) }
            .map_err(failed("copying between tensors"))
    }

    /// Copies `len` bytes of another GPU's memory. Orders both, on a stream of this one.
    pub(crate) fn copy_from_peer(
        &self,
        stream: &Arc<CudaStream>,
        offset: usize,
        from: &CudaMemory,
        from_offset: usize,
        len: usize,
    ) -> Result<()> {
        not_captured_elsewhere(stream)?;
        // The source stays with its own stream, which neither changes nor frees it before the copy is queued.
        let _changing = ORDER.write().unwrap_or_else(PoisonError::into_inner);
        let source = from.stream();
        self.follow(stream)?;
        stream.join(&source).map_err(failed("ordering two streams"))?;
        stream
            .context()
            .bind_to_thread()
            .map_err(failed("binding the context"))?;
        // SAFETY: callers keep both ranges within the allocations, which live until the copy is done: the destination
        // is ordered by `follow`, the source by the join below.
        let copied = unsafe {
            result::memcpy_peer_async(
                stream.context().cu_ctx(),
                self.address + offset as u64,
                source.context().cu_ctx(),
                from.address + from_offset as u64,
                len,
                stream.cu_stream(),
            )
        };
        copied.map_err(failed("copying between tensors"))?;
        source.join(stream).map_err(failed("ordering two streams"))
    }

    pub(crate) fn write(&self, stream: &Arc<CudaStream>, offset: usize, bytes: &[u8]) -> Result<()> {
        stream
            .context()
            .bind_to_thread()
            .map_err(failed("binding the context"))?;
        // SAFETY: callers keep offset + len within the allocation. The source is pageable memory: the driver has
        // staged it when the call returns.
        unsafe { result::memcpy_htod_async(self.address + offset as u64, bytes, stream.cu_stream()) }
            .map_err(failed("copying to the device"))
    }

    pub(crate) fn zero(&self, stream: &Arc<CudaStream>, offset: usize, len: usize) -> Result<()> {
        stream
            .context()
            .bind_to_thread()
            .map_err(failed("binding the context"))?;
        // SAFETY: callers keep offset + len within the allocation.
        unsafe { result::memset_d8_async(self.address + offset as u64, 0, len, stream.cu_stream()) }
            .map_err(failed("clearing device memory"))
    }

    /// Copies bytes out behind the last use, and waits.
    pub(crate) fn read(&self, offset: usize, len: usize) -> Result<Vec<u8>> {
        let queueing = ORDER.read().unwrap_or_else(PoisonError::into_inner);
        let stream = self.stream();
        stream
            .context()
            .bind_to_thread()
            .map_err(failed("binding the context"))?;
        let mut bytes = vec![0u8; len];
        // SAFETY: callers keep offset + len within the allocation; the destination lives until the stream is done,
        // which the next call waits for.
        let queued = unsafe {
            result::memcpy_dtoh_async(&mut bytes, self.address + offset as u64, stream.cu_stream())
        };
        drop(queueing);
        queued
            .and_then(|()| stream.synchronize())
            .map_err(failed("copying from the device"))?;
        Ok(bytes)
    }
}

impl Drop for CudaMemory {
    fn drop(&mut self) {
        let stream = self.stream();
        match &self.owner {
            Owner::Own => {}
            Owner::Leaked => return,
            Owner::Mapped { .. } => {
                // Kernels of all ranks come before the tail of any rank's stream.
                let _ = stream.synchronize();
                return;
            }
            Owner::Foreign { home, .. } | Owner::Borrowed { home } => {
                // What the owner queues from now on follows. Errors have nowhere to go from a destructor.
                if home.cu_stream() != stream.cu_stream() {
                    let _ = home.join(&stream);
                }
                return;
            }
        }
        let context = stream.context();
        if context.bind_to_thread().is_err() {
            return;
        }
        // SAFETY: the address came from the matching allocation call and is freed once. All users of the memory
        // precede `stream`'s tail (see `order`).
        unsafe {
            if context.has_async_alloc() {
                let _ = result::free_async(self.address, stream.cu_stream());
            } else {
                let _ = stream.synchronize();
                let _ = result::free_sync(self.address);
            }
        }
    }
}
