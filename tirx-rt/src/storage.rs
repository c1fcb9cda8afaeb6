//! The memory of tensors, on a GPU or the simulator.
//!
//! A function that uses memory first takes its [`Turn`]: it orders the use after earlier ones, or has the capture of this thread
//! keep the memory.

use std::iter;
use std::sync::{Arc, RwLockReadGuard};

use crate::cuda::{self, CudaMemory, HostUse, PinnedBytes};
use crate::device::{Device, DeviceKind, Stream, StreamKind};
#[cfg(feature = "simulator")]
use crate::simulator::{RecordedWork, SimulatorMemory};
use crate::{Error, Result, graph};

/// An allocation. Work on it is ordered: a stream that uses it waits for the stream that used it last.
pub(crate) enum Storage {
    Cuda(CudaMemory),
    #[cfg(feature = "simulator")]
    Simulator(SimulatorMemory),
}

/// The right to queue work on memory. Work is queued before it is dropped.
pub(crate) enum Turn<'a> {
    /// The work is recorded by a capture, which keeps the memory.
    Recorded,
    /// No other thread changes the order of uses meanwhile.
    Queued {
        #[allow(dead_code, reason = "held, not looked at")]
        order: RwLockReadGuard<'a, ()>,
    },
}

impl Storage {
    /// Uninitialized memory.
    pub(crate) fn alloc(stream: &Stream, bytes: usize) -> Result<Storage> {
        graph::forbid_on(stream, "an allocation")?;
        match &stream.0 {
            StreamKind::Cuda(stream) => CudaMemory::alloc(stream, bytes).map(Storage::Cuda),
            #[cfg(feature = "simulator")]
            StreamKind::Simulator(simulator) => {
                SimulatorMemory::alloc(simulator, bytes).map(Storage::Simulator)
            }
        }
    }

    pub(crate) fn address(&self) -> u64 {
        match self {
            Storage::Cuda(memory) => memory.address(),
            #[cfg(feature = "simulator")]
            Storage::Simulator(memory) => memory.address(),
        }
    }

    pub(crate) fn as_cuda(&self) -> Option<&CudaMemory> {
        match self {
            Storage::Cuda(memory) => Some(memory),
            #[cfg(feature = "simulator")]
            Storage::Simulator(_) => None,
        }
    }

    /// Whether it lives as long as this value, whatever the program does.
    pub(crate) fn is_kept(&self) -> bool {
        self.as_cuda().is_none_or(CudaMemory::is_kept)
    }

    /// Bytes of simulated memory; `None` for that of a GPU.
    #[cfg(feature = "simulator")]
    pub(crate) fn simulated_bytes(&self) -> Option<usize> {
        match self {
            Storage::Cuda(_) => None,
            Storage::Simulator(memory) => Some(memory.len()),
        }
    }

    pub(crate) fn device(&self) -> Device {
        match self {
            Storage::Cuda(memory) => Device(DeviceKind::Cuda(memory.stream().context().clone())),
            #[cfg(feature = "simulator")]
            Storage::Simulator(memory) => Device(DeviceKind::Simulator(memory.simulator().clone())),
        }
    }

    pub(crate) fn device_id(&self) -> i32 {
        match self {
            Storage::Cuda(memory) => memory.ordinal(),
            #[cfg(feature = "simulator")]
            Storage::Simulator(memory) => memory.simulator().id(),
        }
    }

    /// The stream that used it last.
    pub(crate) fn stream(&self) -> Stream {
        match self {
            Storage::Cuda(memory) => Stream::from_kind(StreamKind::Cuda(memory.stream())),
            #[cfg(feature = "simulator")]
            Storage::Simulator(memory) => {
                Stream::from_kind(StreamKind::Simulator(memory.simulator().clone()))
            }
        }
    }

    /// Makes `stream` wait for earlier work on memory of its device, and later users wait for `stream`.
    ///
    /// # Errors
    /// [`Error::Capture`] in a capture for another stream, and for memory that it cannot keep; the driver's.
    #[inline]
    pub(crate) fn order<'m, 's>(
        memories: impl Iterator<Item = &'m Arc<Storage>> + Clone,
        stream: &'s Stream,
    ) -> Result<Turn<'s>> {
        if graph::is_recorded(stream)? {
            for memory in memories {
                graph::keep(memory)?;
            }
            return Ok(Turn::Recorded);
        }
        let order = match &stream.0 {
            StreamKind::Cuda(stream) => cuda::memory::order(memories.filter_map(|m| m.as_cuda()), stream)?,
            #[cfg(feature = "simulator")]
            StreamKind::Simulator(simulator) => simulator.beside_others(),
        };
        Ok(Turn::Queued { order })
    }

    /// The turn of one piece of memory.
    fn turn<'s>(self: &Arc<Storage>, stream: &'s Stream) -> Result<Turn<'s>> {
        if self.device_id() != stream.device_id() {
            return Err(Error::Shape(format!(
                "the tensor is on {:?}, the stream on {:?}",
                self.device(),
                stream.device()
            )));
        }
        Storage::order(iter::once(self), stream)
    }

    /// Copies host bytes in, from byte `offset`.
    pub(crate) fn write(self: &Arc<Storage>, stream: &Stream, offset: usize, bytes: &[u8]) -> Result<()> {
        graph::forbid_on(stream, "a copy from the host")?;
        let _turn = self.turn(stream)?;
        match (&**self, &stream.0) {
            (Storage::Cuda(memory), StreamKind::Cuda(stream)) => memory.write(stream, offset, bytes),
            #[cfg(feature = "simulator")]
            (Storage::Simulator(memory), _) => {
                memory.write(offset, bytes);
                Ok(())
            }
            #[cfg(feature = "simulator")]
            _ => Ok(()), // The turn has found out that the devices differ.
        }
    }

    /// Copies between pinned memory and that from byte `offset`, without waiting: `how` tells whether the pinned memory is read
    /// or written.
    pub(crate) fn copy_pinned(
        self: &Arc<Storage>,
        stream: &Stream,
        offset: usize,
        pinned: &Arc<PinnedBytes>,
        how: HostUse,
    ) -> Result<()> {
        let turn = self.turn(stream)?;
        match (&**self, &stream.0) {
            (Storage::Cuda(memory), StreamKind::Cuda(stream)) if pinned.is_cuda() => match how {
                HostUse::Read => memory.write_pinned(stream, offset, pinned),
                HostUse::Write => memory.read_pinned(stream, offset, pinned),
            },
            #[cfg(feature = "simulator")]
            (Storage::Simulator(memory), _) => match turn {
                Turn::Recorded => {
                    graph::keep_pinned(pinned, how);
                    graph::record(RecordedWork::Pinned {
                        memory: memory.clone(),
                        offset,
                        pinned: pinned.clone(),
                        how,
                    });
                    Ok(())
                }
                Turn::Queued { .. } => {
                    let mut users = pinned.users();
                    users.wait()?;
                    memory.copy_pinned(offset, pinned, &users, how);
                    Ok(())
                }
            },
            _ => {
                drop(turn);
                Err(Error::Shape(
                    "the pinned memory was made for a simulator, the tensor is on a GPU".to_string(),
                ))
            }
        }
    }

    /// Sets `len` bytes from `offset` to zero.
    pub(crate) fn zero(self: &Arc<Storage>, stream: &Stream, offset: usize, len: usize) -> Result<()> {
        let turn = self.turn(stream)?;
        match (&**self, &stream.0) {
            (Storage::Cuda(memory), StreamKind::Cuda(stream)) => {
                let zeroed = memory.zero(stream, offset, len);
                drop(turn);
                zeroed
            }
            #[cfg(feature = "simulator")]
            (Storage::Simulator(memory), _) => {
                match turn {
                    Turn::Recorded => graph::record(RecordedWork::Zero {
                        memory: memory.clone(),
                        offset,
                        len,
                    }),
                    Turn::Queued { .. } => memory.write(offset, &vec![0; len]),
                }
                Ok(())
            }
            #[cfg(feature = "simulator")]
            _ => Ok(()), // The turn has found out that the devices differ.
        }
    }

    /// Copies bytes out, after all earlier work on the memory.
    pub(crate) fn read(&self, offset: usize, len: usize) -> Result<Vec<u8>> {
        graph::forbid("a copy to the host")?;
        match self {
            Storage::Cuda(memory) => memory.read(offset, len),
            #[cfg(feature = "simulator")]
            Storage::Simulator(memory) => {
                let _turn = memory.simulator().beside_others();
                Ok(memory.read(offset, len))
            }
        }
    }

    /// Copies `len` bytes of `from`, which may be on another device; through the host where one of them is a simulator.
    pub(crate) fn copy(
        self: &Arc<Storage>,
        stream: &Stream,
        offset: usize,
        from: &Arc<Storage>,
        from_offset: usize,
        len: usize,
    ) -> Result<()> {
        if self.device_id() != from.device_id() {
            graph::forbid_on(stream, "a copy between devices")?;
            return match (&**self, &**from, &stream.0) {
                (Storage::Cuda(to), Storage::Cuda(from), StreamKind::Cuda(cuda))
                    if to.ordinal() == stream.device_id() =>
                {
                    to.copy_from_peer(cuda, offset, from, from_offset, len)
                }
                #[cfg(feature = "simulator")]
                _ => self.write(stream, offset, &from.read(from_offset, len)?),
                #[cfg(not(feature = "simulator"))]
                _ => self.turn(stream).map(drop),
            };
        }
        // An error where both are on another device than the stream.
        drop(self.turn(stream)?);
        let turn = Storage::order([self, from].into_iter(), stream)?;
        match (&**self, &**from, &stream.0) {
            (Storage::Cuda(to), Storage::Cuda(from), StreamKind::Cuda(stream)) => {
                let copied = to.copy(stream, offset, from, from_offset, len);
                drop(turn);
                copied
            }
            #[cfg(feature = "simulator")]
            (Storage::Simulator(to), Storage::Simulator(from), _) => {
                match turn {
                    Turn::Recorded => graph::record(RecordedWork::Copy {
                        memory: to.clone(),
                        offset,
                        from: from.clone(),
                        from_offset,
                        len,
                    }),
                    Turn::Queued { .. } => to.write(offset, &from.read(from_offset, len)),
                }
                Ok(())
            }
            #[cfg(feature = "simulator")]
            _ => Ok(()), // The turn has found out that the devices differ.
        }
    }
}
