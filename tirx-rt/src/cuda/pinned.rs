//! Page-locked host memory, which the copy engines read and write without staging.
//!
//! The memory has several users: the program looks at it through [`HostUse`]s, streams copy from and to it, and graphs keep it
//! and copy at every launch. A copy follows the copies before it, and the program waits for them. A graph can be launched while
//! the program looks, since no lifetime ties the two: that launch is an error.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::{CudaContext, CudaEvent, CudaStream, result, sys};

use super::failed;
use crate::pinned::PlainElement;
use crate::{Error, Result};

/// Whether memory is read or written: by the program's slice, or by a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostUse {
    /// It is read.
    Read,
    /// It is written.
    Write,
}

/// An allocation, and what uses it.
pub(crate) struct PinnedBytes {
    start: NonNull<u8>,
    len: usize,
    home: Home,
    users: Mutex<Users>,
}

/// Where the memory comes from.
enum Home {
    /// The driver.
    Cuda(Arc<CudaContext>),
    /// The program's own memory, for a simulator. It is used through `start` alone.
    #[cfg(feature = "simulator")]
    Host {
        #[allow(dead_code, reason = "held, not looked at")]
        words: Vec<u64>,
    },
}

/// What uses pinned memory now.
#[derive(Default)]
pub(crate) struct Users {
    /// Recorded after the last copy.
    busy: Option<CudaEvent>,
    /// The program's slices that read, and whether it has one that writes.
    readers: usize,
    writer: bool,
    /// A copy whose end nobody can wait for: the memory is never freed.
    lost: bool,
}

// SAFETY: the memory belongs to this value alone; copies that use it are waited for before anyone looks at it.
unsafe impl Send for PinnedBytes {}
// SAFETY: who looks at the bytes is counted in `users`.
unsafe impl Sync for PinnedBytes {}

impl PinnedBytes {
    /// Zeroed memory of the driver.
    pub(crate) fn zeroed(context: &Arc<CudaContext>, len: usize) -> Result<PinnedBytes> {
        context.bind_to_thread().map_err(failed("binding the context"))?;
        let attempt = format!("allocating {len} bytes of pinned memory");
        // SAFETY: the context is current; the memory is freed once, in `drop`.
        let start = unsafe { result::malloc_host(len.max(1), sys::CU_MEMHOSTALLOC_PORTABLE) };
        let start = start.map_err(failed(&attempt))?.cast::<u8>();
        // SAFETY: the driver gave that many bytes.
        unsafe { start.write_bytes(0, len.max(1)) };
        let start = NonNull::new(start).ok_or_else(|| Error::Shape(format!("{attempt}: no memory")))?;
        Ok(PinnedBytes::at(start, len, Home::Cuda(context.clone())))
    }

    /// The first `len` bytes of words of the program.
    #[cfg(feature = "simulator")]
    pub(crate) fn of_words(mut words: Vec<u64>, len: usize) -> PinnedBytes {
        debug_assert!(len <= words.len() * 8);
        let start = NonNull::from(words.as_mut_slice()).cast::<u8>();
        PinnedBytes::at(start, len, Home::Host { words })
    }

    fn at(start: NonNull<u8>, len: usize, home: Home) -> PinnedBytes {
        PinnedBytes {
            start,
            len,
            home,
            users: Mutex::new(Users::default()),
        }
    }

    /// Whether copy engines reach it.
    pub(crate) fn is_cuda(&self) -> bool {
        matches!(self.home, Home::Cuda(_))
    }

    #[cfg(feature = "simulator")]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn users(&self) -> MutexGuard<'_, Users> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the copies that use it; the program looks at it until the result is dropped. Who writes borrows the memory
    /// exclusively: `Pinned` sees to it.
    pub(crate) fn look(&self, how: HostUse) -> Result<Look<'_>> {
        let mut users = self.users();
        users.wait()?;
        match how {
            HostUse::Read => users.readers += 1,
            HostUse::Write => users.writer = true,
        }
        Ok(Look { bytes: self, how })
    }

    /// Queues a copy on `stream`, after earlier copies that use the memory. Between the two a graph keeps what it records.
    pub(super) fn used_by(
        self: &Arc<PinnedBytes>,
        stream: &Arc<CudaStream>,
        how: HostUse,
        copy: impl FnOnce(*mut u8, usize) -> Result<()>,
    ) -> Result<()> {
        stream
            .context()
            .bind_to_thread()
            .map_err(failed("binding the context"))?;
        if crate::graph::keep_pinned(self, how) {
            return copy(self.start.as_ptr(), self.len);
        }
        let mut users = self.users();
        users.order(stream)?;
        copy(self.start.as_ptr(), self.len)?;
        users.queued(stream)
    }

    /// Copies the bytes to where `copy` puts them, in a launch of a graph or a copy by the program: `users` is held, so that
    /// nobody begins to look.
    #[cfg(feature = "simulator")]
    pub(crate) fn copy_out(&self, _users: &MutexGuard<'_, Users>, copy: impl FnOnce(&[u8])) {
        // SAFETY: that many initialized bytes. No slice of the program that writes them lives: a copy borrows the memory, and
        // graphs are refused.
        copy(unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) });
    }

    /// Overwrites the bytes, as [`copy_out`](PinnedBytes::copy_out).
    #[cfg(feature = "simulator")]
    pub(crate) fn copy_in(&self, _users: &MutexGuard<'_, Users>, from: &[u8]) {
        let len = from.len().min(self.len);
        // SAFETY: that many bytes, of which no slice of the program lives: a copy borrows the memory exclusively, and graphs are
        // refused.
        unsafe { self.start.as_ptr().copy_from_nonoverlapping(from.as_ptr(), len) };
    }
}

impl Users {
    /// Waits for the copies.
    pub(crate) fn wait(&mut self) -> Result<()> {
        match self.busy.take() {
            Some(event) => event.synchronize().map_err(failed("waiting for a copy")),
            None => Ok(()),
        }
    }

    /// Makes `stream` wait for the copies.
    fn order(&self, stream: &Arc<CudaStream>) -> Result<()> {
        match &self.busy {
            Some(event) => stream.wait(event).map_err(failed("ordering two copies")),
            None => Ok(()),
        }
    }

    /// A copy was queued on `stream`.
    fn queued(&mut self, stream: &Arc<CudaStream>) -> Result<()> {
        match stream.record_event(None) {
            Ok(event) => {
                self.busy = Some(event);
                Ok(())
            }
            Err(error) => {
                self.lost |= stream.synchronize().is_err();
                Err(failed("recording the end of a copy")(error))
            }
        }
    }

    /// An error where the program looks at what a graph copies.
    pub(crate) fn allow_graph(&self, how: HostUse) -> Result<()> {
        let (looked_at, how) = match how {
            HostUse::Read => (self.writer, "reads"),
            HostUse::Write => (self.writer || self.readers > 0, "writes"),
        };
        match looked_at {
            false => Ok(()),
            true => Err(Error::Capture {
                message: format!(
                    "the graph {how} pinned memory that the program looks at: drop the slice before the launch"
                ),
            }),
        }
    }
}

/// The pinned memory of a graph while it is launched: nobody begins to look at it.
pub(crate) struct PinnedLaunch<'a>(Vec<(&'a Arc<PinnedBytes>, MutexGuard<'a, Users>)>);

impl<'a> PinnedLaunch<'a> {
    /// Takes pieces of memory, each once and in the order of their addresses.
    ///
    /// # Errors
    /// [`Error::Capture`] where the program looks at one.
    pub(crate) fn from_uses(pinned: &'a [(Arc<PinnedBytes>, HostUse)]) -> Result<PinnedLaunch<'a>> {
        let mut all = Vec::with_capacity(pinned.len());
        for (bytes, how) in pinned {
            let users = bytes.users();
            users.allow_graph(*how)?;
            all.push((bytes, users));
        }
        Ok(PinnedLaunch(all))
    }

    /// Makes `stream` wait for the copies of the memory.
    pub(crate) fn order(&self, stream: &Arc<CudaStream>) -> Result<()> {
        self.0.iter().try_for_each(|(_, users)| users.order(stream))
    }

    /// The graph was queued on `stream`.
    pub(crate) fn queued(mut self, stream: &Arc<CudaStream>) -> Result<()> {
        let mut outcome = Ok(());
        for (_, users) in &mut self.0 {
            // Each is marked, whatever becomes of the others.
            outcome = outcome.and(users.queued(stream));
        }
        outcome
    }

    /// Waits for the copies of the memory.
    #[cfg(feature = "simulator")]
    pub(crate) fn wait(&mut self) -> Result<()> {
        self.0.iter_mut().try_for_each(|(_, users)| users.wait())
    }

    /// The users of a piece.
    #[cfg(feature = "simulator")]
    pub(crate) fn users(&self, bytes: &Arc<PinnedBytes>) -> Option<&MutexGuard<'a, Users>> {
        let mut all = self.0.iter();
        all.find(|(held, _)| Arc::ptr_eq(held, bytes))
            .map(|(_, users)| users)
    }
}

/// The program looks at pinned memory.
pub(crate) struct Look<'a> {
    bytes: &'a PinnedBytes,
    how: HostUse,
}

impl Look<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: that many initialized bytes. Copies that write them are done, and none begins: those of streams borrow the
        // memory exclusively, and graphs are refused.
        unsafe { std::slice::from_raw_parts(self.bytes.start.as_ptr(), self.bytes.len) }
    }

    /// The bytes, to write; none of a look that reads.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match self.how {
            HostUse::Read => &mut [],
            // SAFETY: as above; a look that writes is the only one.
            HostUse::Write => unsafe {
                std::slice::from_raw_parts_mut(self.bytes.start.as_ptr(), self.bytes.len)
            },
        }
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        let mut users = self.bytes.users();
        match self.how {
            HostUse::Read => users.readers -= 1,
            HostUse::Write => users.writer = false,
        }
    }
}

impl Drop for PinnedBytes {
    fn drop(&mut self) {
        let users = self.users.get_mut().unwrap_or_else(PoisonError::into_inner);
        let waited = users.wait();
        match &mut self.home {
            Home::Cuda(context) => {
                if users.lost || waited.is_err() || context.bind_to_thread().is_err() {
                    // A device that failed may still use the memory: it is kept.
                    return;
                }
                // SAFETY: it came from `malloc_host`, is freed once, and no copy uses it.
                let _ = unsafe { result::free_host(self.start.as_ptr().cast::<c_void>()) };
            }
            #[cfg(feature = "simulator")]
            Home::Host { .. } => {}
        }
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
