//! Devices and streams: a GPU or the simulator.

use std::fmt;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream};

use crate::graph::CaptureId;
use crate::launch_attributes::{LaunchAttributes, Wanted};
#[cfg(feature = "simulator")]
use crate::simulator::{self, Simulator};
use crate::{Error, Result, cuda};

/// Where kernels run. Cheap to clone.
#[derive(Clone)]
pub struct Device(pub(crate) DeviceKind);

#[derive(Clone)]
pub(crate) enum DeviceKind {
    Cuda(Arc<CudaContext>),
    #[cfg(feature = "simulator")]
    Simulator(Arc<Simulator>),
}

/// The reason why [`Device::best`] chose the simulator.
#[cfg(feature = "simulator")]
static FALLBACK: std::sync::OnceLock<String> = std::sync::OnceLock::new();

impl Device {
    /// The first GPU; without one, the simulator.
    ///
    /// Where it is the simulator, [`fallback_reason`](Device::fallback_reason) gives the reason, and so does a warning
    /// of the `log` crate with the target `tirx`, once per process.
    ///
    /// # Errors
    /// Without the feature `simulator`, where there is no GPU.
    pub fn best() -> Result<Device> {
        match Device::cuda(0) {
            Ok(device) => Ok(device),
            #[cfg(feature = "simulator")]
            Err(error) => {
                FALLBACK.get_or_init(|| {
                    log::warn!(target: "tirx", "kernels run on the simulator: {error}");
                    error.to_string()
                });
                Ok(Device::simulator())
            }
            #[cfg(not(feature = "simulator"))]
            Err(error) => Err(error),
        }
    }

    /// The reason why [`best`](Device::best) chose the simulator: no driver, no GPU. `None` for other devices.
    ///
    /// ```
    /// let device = tirx_rt::Device::best()?;
    /// if let Some(reason) = device.fallback_reason() {
    ///     eprintln!("slow: {reason}");
    /// }
    /// # Ok::<(), tirx_rt::Error>(())
    /// ```
    pub fn fallback_reason(&self) -> Option<&'static str> {
        #[cfg(feature = "simulator")]
        if *self == Device::simulator() {
            return FALLBACK.get().map(String::as_str);
        }
        None
    }

    /// GPU number `ordinal`, by its primary context.
    ///
    /// # Errors
    /// [`Error::NoDevice`] where there is no driver or no such GPU.
    pub fn cuda(ordinal: usize) -> Result<Device> {
        cuda::context(ordinal).map(|c| Device(DeviceKind::Cuda(c)))
    }

    /// How many GPUs there are; 0 without a driver.
    pub fn cuda_count() -> usize {
        cuda::count()
    }

    /// The process's simulator: always the same device.
    #[cfg(feature = "simulator")]
    pub fn simulator() -> Device {
        Device(DeviceKind::Simulator(simulator::shared()))
    }

    /// A separate simulator, whose memory is not shared with any other device.
    #[cfg(feature = "simulator")]
    pub fn new_simulator() -> Device {
        Device(DeviceKind::Simulator(Simulator::of_environment()))
    }

    /// The device of a caller's own cudarc context.
    pub fn from_cudarc(context: Arc<CudaContext>) -> Device {
        Device(DeviceKind::Cuda(context))
    }

    /// The cudarc context; `None` for a simulator.
    pub fn as_cudarc(&self) -> Option<&Arc<CudaContext>> {
        match &self.0 {
            DeviceKind::Cuda(context) => Some(context),
            #[cfg(feature = "simulator")]
            DeviceKind::Simulator(_) => None,
        }
    }

    /// Whether it is a simulator.
    pub fn is_simulator(&self) -> bool {
        self.as_cudarc().is_none()
    }

    /// The GPU's name, or `simulator`.
    pub fn name(&self) -> String {
        match &self.0 {
            DeviceKind::Cuda(context) => context.name().unwrap_or_else(|_| "CUDA device".to_string()),
            #[cfg(feature = "simulator")]
            DeviceKind::Simulator(_) => "simulator".to_string(),
        }
    }

    /// The default stream (CUDA's null stream).
    pub fn default_stream(&self) -> Stream {
        match &self.0 {
            DeviceKind::Cuda(context) => Stream::from_kind(StreamKind::Cuda(context.default_stream())),
            #[cfg(feature = "simulator")]
            DeviceKind::Simulator(simulator) => Stream::from_kind(StreamKind::Simulator(simulator.clone())),
        }
    }

    /// A new stream. A simulator runs each launch to its end before the call returns.
    ///
    /// # Errors
    /// In a capture of this thread, and where the driver has no room for another.
    pub fn new_stream(&self) -> Result<Stream> {
        crate::graph::forbid("a new stream")?;
        match &self.0 {
            // A new stream may wait for the whole context, which would make captures of other threads invalid.
            DeviceKind::Cuda(context) => cuda::while_no_thread_captures(|| context.new_stream())
                .map(|s| Stream::from_kind(StreamKind::Cuda(s)))
                .map_err(cuda::failed("creating a stream")),
            #[cfg(feature = "simulator")]
            DeviceKind::Simulator(_) => Ok(self.default_stream()),
        }
    }

    /// A new stream whose work is preferred to that of streams of less priority: 0 is the usual one, greater numbers are
    /// preferred, up to the device's greatest. Without effect on a simulator.
    ///
    /// # Errors
    /// As [`new_stream`](Device::new_stream).
    pub fn new_stream_with_priority(&self, priority: u32) -> Result<Stream> {
        crate::graph::forbid("a new stream")?;
        match &self.0 {
            DeviceKind::Cuda(context) => {
                let wanted = cuda::priority_of_driver(context, priority)?;
                cuda::while_no_thread_captures(|| context.new_stream_with_priority(wanted))
                    .map(|s| Stream::from_kind(StreamKind::Cuda(s)))
                    .map_err(cuda::failed("creating a stream"))
            }
            #[cfg(feature = "simulator")]
            DeviceKind::Simulator(_) => self.new_stream(),
        }
    }

    /// Free and total bytes of the GPU's memory; `None` for a simulator, which uses that of the host.
    ///
    /// # Errors
    /// The driver's.
    pub fn memory(&self) -> Result<Option<(usize, usize)>> {
        match &self.0 {
            DeviceKind::Cuda(context) => cuda::memory(context).map(Some),
            #[cfg(feature = "simulator")]
            DeviceKind::Simulator(_) => Ok(None),
        }
    }

    /// What the GPU is; `None` for a simulator.
    ///
    /// # Errors
    /// The driver's.
    pub fn properties(&self) -> Result<Option<DeviceProperties>> {
        match &self.0 {
            DeviceKind::Cuda(context) => cuda::properties(context).map(Some),
            #[cfg(feature = "simulator")]
            DeviceKind::Simulator(_) => Ok(None),
        }
    }

    /// Major and minor number of the compute capability; of a simulator that of the GPU that it
    /// [stands for](Device::simulated_arch), `None` if it stands for none.
    ///
    /// ```
    /// # use tirx_rt::Device;
    /// let device = Device::new_simulator().simulated_arch("sm_100a");
    /// assert_eq!(device.compute_capability()?, Some((10, 0)));
    /// # Ok::<(), tirx_rt::Error>(())
    /// ```
    ///
    /// # Errors
    /// The driver's.
    pub fn compute_capability(&self) -> Result<Option<(i32, i32)>> {
        match &self.0 {
            DeviceKind::Cuda(context) => {
                cuda::capability(context).map(|(major, minor, _)| Some((major, minor)))
            }
            #[cfg(feature = "simulator")]
            DeviceKind::Simulator(simulator) => Ok(simulator.settings().arch()),
        }
    }

    /// Gives the memory back to the system that freed tensors left in the driver's pool, but for `keep` bytes. Tensors are
    /// allocated from that pool without waiting for the device.
    ///
    /// # Errors
    /// The driver's.
    pub fn trim_memory(&self, keep: usize) -> Result<()> {
        match &self.0 {
            DeviceKind::Cuda(context) => cuda::trim(context, keep),
            #[cfg(feature = "simulator")]
            DeviceKind::Simulator(_) => Ok(()),
        }
    }

    /// Waits for all work on the device.
    ///
    /// # Errors
    /// Those of earlier work on the device; in a [capture](Stream::capture).
    pub fn synchronize(&self) -> Result<()> {
        crate::graph::forbid("waiting for the device")?;
        match &self.0 {
            DeviceKind::Cuda(context) => cuda::while_no_thread_captures(|| context.synchronize())
                .map_err(cuda::failed("waiting for the device")),
            #[cfg(feature = "simulator")]
            DeviceKind::Simulator(simulator) => {
                simulator.synchronize();
                Ok(())
            }
        }
    }

    /// A number that identifies the device: the ordinal of a GPU, a negative number for simulators.
    pub fn id(&self) -> i32 {
        match &self.0 {
            DeviceKind::Cuda(context) => context.ordinal() as i32,
            #[cfg(feature = "simulator")]
            DeviceKind::Simulator(simulator) => simulator.id(),
        }
    }
}

/// What a GPU is, as its driver says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceProperties {
    /// Major and minor number of the compute capability: 9 and 0 of an H100.
    pub compute_capability: (i32, i32),
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// The highest clock of the multiprocessors, in kilohertz.
    pub clock_khz: u32,
    /// The highest clock of the memory, in kilohertz; two transfers are made in a cycle.
    pub memory_clock_khz: u32,
    /// Bits that the memory transfers at once.
    pub memory_bus_bits: u32,
    /// Bytes of the second-level cache.
    pub l2_bytes: u32,
    /// Major and minor number of the CUDA release of the driver: 13 and 0.
    pub driver: (u32, u32),
}

impl DeviceProperties {
    /// Bytes that the memory transfers in a second, at most.
    pub fn peak_bytes_per_second(&self) -> f64 {
        2.0 * f64::from(self.memory_clock_khz) * 1e3 * f64::from(self.memory_bus_bits) / 8.0
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id() {
            id @ 0.. => write!(f, "cuda({id})"),
            id => write!(f, "simulator({})", -1 - id),
        }
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Device) -> bool {
        match (&self.0, &other.0) {
            (DeviceKind::Cuda(a), DeviceKind::Cuda(b)) => Arc::ptr_eq(a, b) || a.cu_ctx() == b.cu_ctx(),
            #[cfg(feature = "simulator")]
            (DeviceKind::Simulator(a), DeviceKind::Simulator(b)) => Arc::ptr_eq(a, b),
            #[cfg(feature = "simulator")]
            _ => false,
        }
    }
}
impl Eq for Device {}

/// A queue of work on one device: launches and copies run in order. Cheap to clone.
#[derive(Clone)]
pub struct Stream(pub(crate) StreamKind, pub(crate) Wanted, pub(crate) CaptureId);

#[derive(Clone)]
pub(crate) enum StreamKind {
    Cuda(Arc<CudaStream>),
    #[cfg(feature = "simulator")]
    Simulator(Arc<Simulator>),
}

impl Stream {
    pub(crate) fn from_kind(kind: StreamKind) -> Stream {
        Stream(kind, Wanted::default(), CaptureId::default())
    }

    /// The same stream, whose launches have these attributes: `kernels::scale(&stream.with(attributes)?, &a, &mut b)`.
    ///
    /// # Errors
    /// [`Error::Shape`] for a share of more than 100 percent; the driver's.
    pub fn with(&self, attributes: LaunchAttributes) -> Result<Stream> {
        let priority = match (&self.0, attributes.priority) {
            (StreamKind::Cuda(stream), Some(priority)) => {
                Some(cuda::priority_of_driver(stream.context(), priority)?)
            }
            _ => None,
        };
        Ok(Stream(self.0.clone(), Wanted::new(attributes, priority)?, self.2))
    }

    /// The device.
    pub fn device(&self) -> Device {
        match &self.0 {
            StreamKind::Cuda(stream) => Device(DeviceKind::Cuda(stream.context().clone())),
            #[cfg(feature = "simulator")]
            StreamKind::Simulator(simulator) => Device(DeviceKind::Simulator(simulator.clone())),
        }
    }

    /// A caller's own cudarc stream.
    pub fn from_cudarc(stream: Arc<CudaStream>) -> Stream {
        Stream::from_kind(StreamKind::Cuda(stream))
    }

    /// The cudarc stream; `None` for a simulator.
    pub fn as_cudarc(&self) -> Option<&Arc<CudaStream>> {
        match &self.0 {
            StreamKind::Cuda(stream) => Some(stream),
            #[cfg(feature = "simulator")]
            StreamKind::Simulator(_) => None,
        }
    }

    /// Waits until everything queued so far is done.
    ///
    /// # Errors
    /// Those of the work: a kernel that faulted, for instance; in a [capture](Stream::capture).
    pub fn synchronize(&self) -> Result<()> {
        crate::graph::forbid_on(self, "waiting for the stream")?;
        match &self.0 {
            StreamKind::Cuda(stream) => {
                stream
                    .context()
                    .bind_to_thread()
                    .map_err(cuda::failed("binding the context"))?;
                stream
                    .synchronize()
                    .map_err(cuda::failed("waiting for the stream"))
            }
            #[cfg(feature = "simulator")]
            StreamKind::Simulator(simulator) => {
                simulator.synchronize();
                Ok(())
            }
        }
    }

    /// The device's number; see [`Device::id`].
    pub(crate) fn device_id(&self) -> i32 {
        match &self.0 {
            StreamKind::Cuda(stream) => stream.context().ordinal() as i32,
            #[cfg(feature = "simulator")]
            StreamKind::Simulator(simulator) => simulator.id(),
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream of {:?}", self.device())
    }
}

/// The error for a device that does not exist.
pub(crate) fn no_device(device: impl Into<String>, reason: impl Into<String>) -> Error {
    Error::NoDevice {
        device: device.into(),
        reason: reason.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(feature = "simulator")]
    fn the_shared_simulator_is_one_device() {
        assert_eq!(Device::simulator(), Device::simulator());
        assert_ne!(Device::simulator(), Device::new_simulator());
        assert!(Device::simulator().id() < 0);
    }

    #[test]
    #[cfg(feature = "simulator")]
    fn the_best_device_says_why_it_is_the_simulator() {
        let device = Device::best().unwrap();
        let reason = device.fallback_reason();
        assert_eq!(reason.is_some(), device.is_simulator());
        assert!(
            reason.is_none_or(|reason| reason.starts_with("no CUDA device 0: ")),
            "{reason:?}"
        );
        assert_eq!(Device::new_simulator().fallback_reason(), None);
    }

    #[test]
    fn a_missing_gpu_is_an_error() {
        let error = Device::cuda(4096).unwrap_err().to_string();
        assert!(error.starts_with("no CUDA device 4096: "), "{error}");
    }
}
