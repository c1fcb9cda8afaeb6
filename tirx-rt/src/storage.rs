//! The memory of tensors, on a GPU or the simulator.

#[cfg(feature = "simulator")]
use crate::Error;
use crate::Result;
use crate::cuda::{CudaMemory, PinnedBytes};
use crate::device::{Device, DeviceKind, Stream, StreamKind};
#[cfg(feature = "simulator")]
use crate::simulator::SimulatorMemory;

/// An allocation. Work on it is ordered: a stream that uses it waits for the stream that used it last.
pub(crate) enum Storage {
    Cuda(CudaMemory),
    #[cfg(feature = "simulator")]
    Simulator(SimulatorMemory),
}

impl Storage {
    /// Uninitialized memory.
    pub(crate) fn alloc(stream: &Stream, bytes: usize) -> Result<Storage> {
        match &stream.0 {
            StreamKind::Cuda(stream) => CudaMemory::alloc(stream, bytes).map(Storage::Cuda),
            #[cfg(feature = "simulator")]
            StreamKind::Simulator(simulator) => {
                crate::graph::forbid("an allocation")?;
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
            Storage::Cuda(memory) => Stream::of(StreamKind::Cuda(memory.stream())),
            #[cfg(feature = "simulator")]
            Storage::Simulator(memory) => Stream::of(StreamKind::Simulator(memory.simulator().clone())),
        }
    }

    /// Makes `stream` wait for earlier work on the memory, and later users wait for `stream`.
    #[inline]
    pub(crate) fn order(&self, stream: &Stream) -> Result<()> {
        match (self, &stream.0) {
            (Storage::Cuda(memory), StreamKind::Cuda(stream)) => memory.order(stream),
            #[cfg(feature = "simulator")]
            _ => Ok(()),
        }
    }

    /// Copies host bytes in, from byte `offset`.
    pub(crate) fn write(&self, stream: &Stream, offset: usize, bytes: &[u8]) -> Result<()> {
        match (self, &stream.0) {
            (Storage::Cuda(memory), StreamKind::Cuda(stream)) => memory.write(stream, offset, bytes),
            #[cfg(feature = "simulator")]
            (Storage::Simulator(memory), StreamKind::Simulator(_)) => {
                crate::graph::forbid("a copy from the host")?;
                memory.write(offset, bytes);
                Ok(())
            }
            #[cfg(feature = "simulator")]
            _ => Err(self.foreign(stream)),
        }
    }

    /// Copies pinned memory in, from byte `offset`, without waiting.
    pub(crate) fn write_pinned(&self, stream: &Stream, offset: usize, bytes: &PinnedBytes) -> Result<()> {
        match (self, &stream.0) {
            (Storage::Cuda(memory), StreamKind::Cuda(stream)) => memory.write_pinned(stream, offset, bytes),
            #[cfg(feature = "simulator")]
            _ => {
                bytes.wait()?;
                self.write(stream, offset, bytes.bytes())
            }
        }
    }

    /// Copies to pinned memory, from byte `offset`, without waiting.
    pub(crate) fn read_pinned(&self, stream: &Stream, offset: usize, bytes: &mut PinnedBytes) -> Result<()> {
        match (self, &stream.0) {
            (Storage::Cuda(memory), StreamKind::Cuda(stream)) => memory.read_pinned(stream, offset, bytes),
            #[cfg(feature = "simulator")]
            _ => {
                bytes.wait()?;
                let read = self.read(offset, bytes.bytes().len())?;
                bytes.bytes_mut().copy_from_slice(&read);
                Ok(())
            }
        }
    }

    /// Sets `len` bytes from `offset` to zero.
    pub(crate) fn zero(&self, stream: &Stream, offset: usize, len: usize) -> Result<()> {
        match (self, &stream.0) {
            (Storage::Cuda(memory), StreamKind::Cuda(stream)) => memory.zero(stream, offset, len),
            #[cfg(feature = "simulator")]
            (Storage::Simulator(memory), StreamKind::Simulator(_)) => {
                memory.zero(offset, len);
                Ok(())
            }
            #[cfg(feature = "simulator")]
            _ => Err(self.foreign(stream)),
        }
    }

    /// Copies bytes out, after all earlier work on the memory.
    pub(crate) fn read(&self, offset: usize, len: usize) -> Result<Vec<u8>> {
        match self {
            Storage::Cuda(memory) => memory.read(offset, len),
            #[cfg(feature = "simulator")]
            Storage::Simulator(memory) => {
                crate::graph::forbid("a copy to the host")?;
                Ok(memory.read(offset, len))
            }
        }
    }

    /// Copies `len` bytes of `from`, which may be on another device; through the host where one of them is a simulator.
    pub(crate) fn copy(
        &self,
        stream: &Stream,
        offset: usize,
        from: &Storage,
        from_offset: usize,
        len: usize,
    ) -> Result<()> {
        match (self, from, &stream.0) {
            (Storage::Cuda(to), Storage::Cuda(from), StreamKind::Cuda(stream)) => {
                to.copy(stream, offset, from, from_offset, len)
            }
            #[cfg(feature = "simulator")]
            _ => self.write(stream, offset, &from.read(from_offset, len)?),
        }
    }

    #[cfg(feature = "simulator")]
    fn foreign(&self, stream: &Stream) -> Error {
        Error::Shape(format!(
            "the tensor is on {:?}, the stream on {:?}",
            self.device(),
            stream.device()
        ))
    }
}
