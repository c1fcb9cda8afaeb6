//! Several devices of one process that run a kernel together: GPUs with peer access, or simulated devices.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use cudarc::driver::CudaStream;

use crate::cuda::symmetric;
#[cfg(feature = "simulator")]
use crate::device::StreamKind;
use crate::device::{Device, Stream};
use crate::element::Element;
use crate::shape::IntoShape;
#[cfg(feature = "simulator")]
use crate::simulator::ranks;
use crate::storage::Storage;
use crate::{Error, Result, Tensor};

/// Devices with numbers from 0 on, their *ranks*, and memory that each of them may access.
///
/// A kernel that talks to other devices gets its rank and the addresses of the others' memory as arguments:
///
/// ```
/// # use tirx_rt::World;
/// let world = World::simulated(2)?;
/// let a = world.from_fn([4], |rank, i| (10 * rank + i) as f32)?;
/// let mut b = world.zeros::<f32>([4])?;
/// let peers = world.addresses_of(&b)?; // on each rank a tensor of uint64, the address of `b` on every rank
/// world.launch(|rank, stream| {
///     // kernels::send(stream, &a[rank], &mut b[rank], &peers[rank], rank as i32)
/// #   let _ = (stream, &a, &mut b, &peers);
///     Ok(())
/// })?;
/// assert_eq!(a[1].to_vec()?, [10.0, 11.0, 12.0, 13.0]);
/// # Ok::<(), tirx_rt::Error>(())
/// ```
pub struct World {
    streams: Vec<Stream>,
}

/// Memory with a part on each rank of a world: tensors of one shape. Index it by rank.
///
/// A kernel on any rank may access any part, by its address; the Rust program accesses parts as tensors.
pub struct Symmetric<T: Element> {
    tensors: Vec<Tensor<T>>,
    window: Option<u64>,
}

impl World {
    /// `ranks` simulated devices.
    ///
    /// # Errors
    /// [`Error::Shape`] for no rank, or for more than 64.
    #[cfg(feature = "simulator")]
    pub fn simulated(ranks: usize) -> Result<World> {
        if !(1..=64).contains(&ranks) {
            return Err(Error::Shape(format!("a world of {ranks} ranks: it has 1 to 64")));
        }
        let simulators = ranks::simulators(ranks as u32).into_iter();
        Ok(World {
            streams: simulators
                .map(|s| Stream::from_kind(StreamKind::Simulator(s)))
                .collect(),
        })
    }

    /// The GPUs with these numbers, each of which must have peer access to each other one. Rank 0 is the first of them.
    ///
    /// # Errors
    /// [`Error::NoDevice`] for a GPU that does not exist; [`Error::Shape`] for no GPU, for one that is named twice, and for two
    /// without peer access; the driver's.
    pub fn cuda(ordinals: &[usize]) -> Result<World> {
        if ordinals.is_empty() {
            return Err(Error::Shape("a world of no GPUs".to_string()));
        }
        let devices = ordinals.iter().map(|ordinal| Device::cuda(*ordinal));
        let devices = devices.collect::<Result<Vec<_>>>()?;
        let contexts: Vec<_> = devices.iter().filter_map(Device::as_cudarc).cloned().collect();
        symmetric::check_peers(&contexts)?;
        let streams = devices.iter().map(Device::new_stream);
        Ok(World {
            streams: streams.collect::<Result<_>>()?,
        })
    }

    /// `ranks` ranks on one GPU, each with a stream of its own: to check programs for several GPUs where there is one.
    ///
    /// The kernels of all ranks share the GPU. Kernels that wait for each other must fit on it together: if those of one rank take
    /// all multiprocessors, they wait for ever for blocks that cannot start. Their times say nothing about several GPUs.
    ///
    /// # Errors
    /// [`Error::NoDevice`] for a GPU that does not exist; [`Error::Shape`] for no rank; the driver's.
    pub fn on_one_gpu(ordinal: usize, ranks: usize) -> Result<World> {
        if ranks == 0 {
            return Err(Error::Shape("a world of no ranks".to_string()));
        }
        let device = Device::cuda(ordinal)?;
        let streams = (0..ranks).map(|_| device.new_stream());
        Ok(World {
            streams: streams.collect::<Result<_>>()?,
        })
    }

    /// How many ranks it has.
    pub fn ranks(&self) -> usize {
        self.streams.len()
    }

    /// The stream of a rank, on which the world launches. Tensors of the rank alone are allocated on it.
    ///
    /// # Panics
    /// If the world has no such rank, as indexing does.
    pub fn stream(&self, rank: usize) -> &Stream {
        &self.streams[rank]
    }

    /// The device of a rank.
    ///
    /// # Panics
    /// If the world has no such rank, as indexing does.
    pub fn device(&self, rank: usize) -> Device {
        self.streams[rank].device()
    }

    /// Symmetric memory of zeros.
    ///
    /// # Errors
    /// The driver's.
    pub fn zeros<T: Element>(&self, shape: impl IntoShape) -> Result<Symmetric<T>> {
        let shape = shape.into_shape()?;
        let bytes = shape.elements().and_then(|n| T::TYPE.bytes_of(n));
        let bytes = bytes.ok_or_else(|| Error::Shape(format!("a tensor of shape {shape:?} is too large")))?;
        for stream in &self.streams {
            crate::graph::forbid_on(stream, "an allocation")?;
        }
        let (parts, window): (Vec<Storage>, _) = match self.cuda_streams() {
            Some(streams) => {
                let parts = symmetric::alloc(&streams, bytes)?;
                (parts.into_iter().map(Storage::Cuda).collect(), None)
            }
            #[cfg(feature = "simulator")]
            None => {
                let simulators: Vec<_> = (self.streams.iter())
                    .filter_map(|stream| match &stream.0 {
                        StreamKind::Simulator(simulator) => Some(simulator.clone()),
                        StreamKind::Cuda(_) => None,
                    })
                    .collect();
                let (parts, window) = ranks::alloc(&simulators, bytes);
                (parts.into_iter().map(Storage::Simulator).collect(), Some(window))
            }
            #[cfg(not(feature = "simulator"))]
            None => (Vec::new(), None),
        };
        let tensors = parts.into_iter();
        let tensors = tensors.map(|part| Tensor::new(Arc::new(part), 0, shape, shape.compact_strides()));
        Ok(Symmetric {
            tensors: tensors.collect(),
            window,
        })
    }

    /// Symmetric memory with the elements that `value` gives for a rank and an element's number in row-major order.
    ///
    /// # Errors
    /// The driver's.
    pub fn from_fn<T: Element>(
        &self,
        shape: impl IntoShape,
        mut value: impl FnMut(usize, usize) -> T,
    ) -> Result<Symmetric<T>> {
        let mut all = self.zeros(shape)?;
        for rank in 0..self.ranks() {
            let values: Vec<T> = (0..all[rank].len()).map(|i| value(rank, i)).collect();
            all[rank].copy_from_slice(&self.streams[rank], &values)?;
        }
        Ok(all)
    }

    /// A tensor on each rank with the addresses of symmetric memory on all ranks, as a kernel's argument.
    ///
    /// # Errors
    /// The driver's.
    pub fn addresses_of<T: Element>(&self, memory: &Symmetric<T>) -> Result<Vec<Tensor<u64>>> {
        let addresses = memory.addresses();
        let tensors = self.streams.iter();
        tensors
            .map(|stream| Tensor::from_slice(stream, &addresses, [addresses.len()]))
            .collect()
    }

    /// Launches a kernel on every rank: calls `each` with every rank and its stream. The kernels run at the same time and may wait for
    /// one another. Later work on any rank's stream comes after them all.
    ///
    /// On simulated devices the kernels start when `each` has been called for all ranks, so every rank must launch the same kernel
    /// with one grid. On GPUs they start at once: if `each` fails for a rank, kernels of earlier ranks may wait for it for ever, so check
    /// arguments before the launch. `each` must not wait for a kernel.
    ///
    /// # Errors
    /// That of `each`; on simulated devices also the kernel's fault, with its rank.
    pub fn launch(&self, mut each: impl FnMut(usize, &Stream) -> Result<()>) -> Result<()> {
        let Some(streams) = self.cuda_streams() else {
            #[cfg(feature = "simulator")]
            {
                let mut launches = Vec::new();
                for (rank, stream) in self.streams.iter().enumerate() {
                    launches.push(ranks::held(|| each(rank, stream))?);
                }
                return ranks::run(launches);
            }
            #[cfg(not(feature = "simulator"))]
            return Ok(());
        };
        if streams.len() > 1 && crate::cuda::synchronous() {
            return Err(Error::Shape(
                "TIRX_SYNCHRONOUS or TIRX_DETERMINISTIC is set: the launch of one rank would be waited for before the next rank's, and the \
                 kernels may wait for each other"
                    .to_string(),
            ));
        }
        symmetric::join_all(&streams)?;
        for (rank, stream) in self.streams.iter().enumerate() {
            each(rank, stream)?;
        }
        symmetric::join_all(&streams)
    }

    /// Waits for the work of all ranks.
    ///
    /// # Errors
    /// Those of the work.
    pub fn synchronize(&self) -> Result<()> {
        self.streams.iter().try_for_each(Stream::synchronize)
    }

    /// The streams, of GPUs; `None` for simulated devices.
    fn cuda_streams(&self) -> Option<Vec<Arc<CudaStream>>> {
        self.streams
            .iter()
            .map(|stream| stream.as_cudarc().cloned())
            .collect()
    }
}

impl<T: Element> Symmetric<T> {
    /// The address of the memory on each rank.
    pub fn addresses(&self) -> Vec<u64> {
        self.tensors.iter().map(Tensor::address).collect()
    }

    /// The address of the multicast window over all ranks, for `multimem` instructions; `None` where the devices have none.
    pub fn window(&self) -> Option<u64> {
        self.window
    }

    /// The parts by rank.
    pub fn tensors(&self) -> &[Tensor<T>] {
        &self.tensors
    }
}

impl<T: Element> Index<usize> for Symmetric<T> {
    type Output = Tensor<T>;
    fn index(&self, rank: usize) -> &Tensor<T> {
        &self.tensors[rank]
    }
}

impl<T: Element> IndexMut<usize> for Symmetric<T> {
    fn index_mut(&mut self, rank: usize) -> &mut Tensor<T> {
        &mut self.tensors[rank]
    }
}
