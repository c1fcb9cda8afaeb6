//! Graphs: work that is recorded once and launched many times for the cost of one launch.
//!
//! The closure of [`Stream::capture`] calls typed launchers as usual, on a stream that records instead of running. The graph
//! keeps the memory of what the work uses, and each launch is a use of that memory like any other: it follows earlier uses, and
//! later uses follow it. So a graph has no lifetime, and the program goes on using the tensors between launches. Other
//! arguments take another capture: [`Graph::update`] exchanges the parameters of an instantiated graph.
//!
//! Why this is sound. A [`Tensor`](crate::Tensor) gives out no pointer to its elements: the program sees them by copies alone,
//! which are ordered among the other uses, so a graph may write what is borrowed as `&Tensor`. Memory that only a lifetime keeps
//! alive (a borrowed cudarc slice) cannot be recorded. Pinned memory gives out slices; while one lives, the launch of a graph
//! that copies to or from the memory is an error. While a simulator runs a graph, other threads wait with that device.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cuda::{self, CudaGraph, HostUse, PinnedBytes};
use crate::device::{Device, Stream, StreamKind};
#[cfg(feature = "simulator")]
use crate::simulator::RecordedWork;
use crate::storage::Storage;
use crate::{Error, Result};

/// Tells the stream of a capture from others; 0 is no capture.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CaptureId(u64);

/// What a capture of this thread has recorded so far.
#[derive(Default)]
pub(crate) struct Recording {
    id: CaptureId,
    /// The memory that it uses: a launch of the graph is ordered after the last use of each, and the graph keeps it.
    memory: Vec<Arc<Storage>>,
    pinned: Vec<(Arc<PinnedBytes>, HostUse)>,
    #[cfg(feature = "simulator")]
    work: Vec<RecordedWork>,
}

thread_local! {
    static RECORDING: RefCell<Option<Recording>> = const { RefCell::new(None) };
}

/// Lets a capture of this thread take note of something; `false` where there is none.
fn note(note: impl FnOnce(&mut Recording)) -> bool {
    RECORDING.with_borrow_mut(|recording| match recording {
        Some(recording) => {
            note(recording);
            true
        }
        None => false,
    })
}

/// Whether this thread is capturing.
pub(crate) fn recording() -> bool {
    note(|_| {})
}

/// Whether work on the stream is recorded, or is queued as usual.
///
/// # Errors
/// [`Error::Capture`] in a capture of this thread for other streams, and for its stream outside of it.
#[inline]
pub(crate) fn is_recorded(stream: &Stream) -> Result<bool> {
    let recorded = RECORDING.with_borrow(|recording| recording.as_ref().map_or(CaptureId(0), |r| r.id));
    match recorded == stream.2 {
        true => Ok(recorded != CaptureId(0)),
        false if stream.2 == CaptureId(0) => Err(Error::Capture {
            message: "a capture records only work on its own stream, which the closure receives; this is another stream"
                .to_string(),
        }),
        false => Err(foreign_stream()),
    }
}

/// The error of a capture's stream that is used elsewhere.
#[cold]
pub(crate) fn foreign_stream() -> Error {
    Error::Capture {
        message: "the stream of a capture is used outside of its closure, or by another thread".to_string(),
    }
}

/// Keeps memory that the capture of this thread uses.
///
/// # Errors
/// [`Error::Capture`] for memory that is only borrowed.
pub(crate) fn keep(storage: &Arc<Storage>) -> Result<()> {
    if !storage.is_kept() {
        return Err(Error::Capture {
            message: "memory that is borrowed from cudarc cannot be a part of a graph, which may outlive it; give it to a tensor \
                      (`Tensor::from_cudarc`)"
                .to_string(),
        });
    }
    note(|recording| recording.memory.push(storage.clone()));
    Ok(())
}

/// Keeps pinned memory that the capture of this thread copies from or to; `false` where there is none.
pub(crate) fn keep_pinned(bytes: &Arc<PinnedBytes>, how: HostUse) -> bool {
    note(|recording| recording.pinned.push((bytes.clone(), how)))
}

/// Records a simulator's work.
#[cfg(feature = "simulator")]
pub(crate) fn record(work: RecordedWork) {
    note(|recording| recording.work.push(work));
}

/// An error in a capture: the operation cannot be a part of a graph.
pub(crate) fn forbid(what: &str) -> Result<()> {
    match recording() {
        true => Err(Error::Capture {
            message: format!("{what} cannot be a part of a graph; do it before or after the capture"),
        }),
        false => Ok(()),
    }
}

/// An error in a capture, and on the stream of a capture elsewhere.
pub(crate) fn forbid_on(stream: &Stream, what: &str) -> Result<()> {
    forbid(what)?;
    is_recorded(stream).map(drop)
}

/// Recorded work, with the memory that it uses.
///
/// ```
/// # use tirx_rt::{Device, Tensor};
/// let stream = Device::simulator().new_stream()?;
/// let mut input = Tensor::<f32>::zeros(&stream, [64])?;
/// let mut output = Tensor::<f32>::zeros(&stream, [64])?;
/// let graph = stream.capture(|s| {
///     output.copy_from(s, &input)
///     // kernels::scale(s, &input, &mut output)?;
/// })?;
/// for step in 0..3 {
///     input.copy_from_slice(&stream, &[step as f32; 64])?;
///     graph.launch(&stream)?;
///     assert_eq!(output.to_vec()?, [step as f32; 64]);
/// }
/// # Ok::<(), tirx_rt::Error>(())
/// ```
pub struct Graph {
    // Dropped first: the work uses the memory.
    work: Work,
    device: Device,
    /// Each once.
    memory: Vec<Arc<Storage>>,
    /// Each once, in the order of addresses.
    pinned: Vec<(Arc<PinnedBytes>, HostUse)>,
}

enum Work {
    Cuda(CudaGraph),
    #[cfg(feature = "simulator")]
    Simulator(Vec<RecordedWork>),
}

/// Ends the recording of this thread, also where the closure panics.
struct Recorder(CaptureId);

impl Recorder {
    fn start() -> Result<Recorder> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        forbid("a capture")?;
        let id = CaptureId(NEXT.fetch_add(1, Ordering::Relaxed));
        RECORDING.set(Some(Recording {
            id,
            ..Recording::default()
        }));
        Ok(Recorder(id))
    }

    fn finish(self) -> Recording {
        let mut recording = RECORDING.take().unwrap_or_default();
        recording
            .memory
            .sort_by_key(|storage| Arc::as_ptr(storage) as usize);
        recording.memory.dedup_by(|a, b| Arc::ptr_eq(a, b));
        // Writes first, so that they are what stays of a piece that is also read.
        let order =
            |(bytes, how): &(Arc<PinnedBytes>, HostUse)| (Arc::as_ptr(bytes) as usize, *how == HostUse::Read);
        recording.pinned.sort_by_key(order);
        recording.pinned.dedup_by(|(a, _), (b, _)| Arc::ptr_eq(a, b));
        recording
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        RECORDING.set(None);
    }
}

impl Stream {
    /// Records what `work` queues on the stream that it is given, and runs none of it: launches, copies between tensors of the
    /// device, copies from and to [pinned memory](crate::Pinned), and [`fill_zero`](crate::Tensor::fill_zero). The graph keeps
    /// the memory, also of tensors that `work` owns. Allocations, copies from and to host slices, and waiting are errors, and
    /// so is work on other streams. An error or a panic of `work` leaves nothing behind.
    ///
    /// # Errors
    /// [`Error::Capture`] for work that cannot be recorded; those of `work`; the driver's.
    pub fn capture(&self, work: impl FnOnce(&Stream) -> Result<()>) -> Result<Graph> {
        forbid_on(self, "a capture")?;
        let device = self.device();
        match &self.0 {
            StreamKind::Cuda(stream) => {
                // On a stream of its own: no tensor was used there, so that each use is seen.
                let capture = CudaGraph::begin(stream.context())?;
                let recorder = Recorder::start()?;
                let kind = StreamKind::Cuda(capture.stream().clone());
                let done = work(&Stream(kind, self.1, recorder.0));
                let recording = recorder.finish();
                let graph = capture.finish();
                done?;
                Ok(Graph {
                    work: Work::Cuda(graph?),
                    device,
                    memory: recording.memory,
                    pinned: recording.pinned,
                })
            }
            #[cfg(feature = "simulator")]
            StreamKind::Simulator(_) => {
                let recorder = Recorder::start()?;
                let done = work(&Stream(self.0.clone(), self.1, recorder.0));
                let recording = recorder.finish();
                done?;
                Ok(Graph {
                    work: Work::Simulator(recording.work),
                    device,
                    memory: recording.memory,
                    pinned: recording.pinned,
                })
            }
        }
    }
}

impl Graph {
    /// Queues the work, as a launch that uses all its tensors: it follows what was queued on them before, on any stream, and
    /// what is queued on them later follows it.
    ///
    /// # Errors
    /// [`Error::Shape`] where the stream is of another device; [`Error::Capture`] while the program looks at pinned memory that
    /// the graph copies; the driver's; faults on a simulator.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        forbid_on(stream, "the launch of a graph")?;
        if stream.device() != self.device {
            return Err(Error::Shape(format!(
                "the graph was captured on {:?}, the stream is of {:?}",
                self.device,
                stream.device()
            )));
        }
        match (&self.work, &stream.0) {
            (Work::Cuda(graph), StreamKind::Cuda(stream)) => {
                let queueing = cuda::memory::order(self.memory.iter().filter_map(|m| m.as_cuda()), stream)?;
                let pinned = cuda::PinnedLaunch::from_uses(&self.pinned)?;
                pinned.order(stream)?;
                graph.launch(stream)?;
                pinned.queued(stream)?;
                drop(queueing);
                graph.wait_if_synchronous(stream)
            }
            #[cfg(feature = "simulator")]
            (Work::Simulator(work), StreamKind::Simulator(simulator)) => {
                let _alone = simulator.alone();
                let mut pinned = cuda::PinnedLaunch::from_uses(&self.pinned)?;
                pinned.wait()?;
                work.iter().try_for_each(|work| work.run(simulator, &pinned))
            }
            #[cfg(feature = "simulator")]
            _ => Err(Error::Shape(
                "the graph was captured on another device".to_string(),
            )),
        }
    }

    /// The device that it was captured on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// How many launches and other operations it has.
    ///
    /// # Errors
    /// The driver's.
    pub fn len(&self) -> Result<usize> {
        match &self.work {
            Work::Cuda(graph) => graph.nodes(),
            #[cfg(feature = "simulator")]
            Work::Simulator(work) => Ok(work.len()),
        }
    }

    /// Whether it has no operation.
    ///
    /// # Errors
    /// The driver's.
    pub fn is_empty(&self) -> Result<bool> {
        self.len().map(|count| count == 0)
    }

    /// The graph of other work, usually of the same launches with other tensors and values: where only parameters
    /// differ, the instantiated graph is kept and its parameters are exchanged, which saves instantiating a new one.
    ///
    /// # Errors
    /// As [`Stream::capture`].
    pub fn update(self, stream: &Stream, work: impl FnOnce(&Stream) -> Result<()>) -> Result<Graph> {
        let new = stream.capture(work)?;
        let same_device = self.device == new.device;
        let work = match (self.work, new.work) {
            (Work::Cuda(old), Work::Cuda(new)) if same_device => Work::Cuda(old.updated(new)?),
            (_, new) => new,
        };
        Ok(Graph { work, ..new })
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "graph of {} operations", self.len().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_may_be_kept_anywhere() {
        fn kept_anywhere<T: Send + Sync + 'static>() {}
        kept_anywhere::<Graph>();
    }

    #[test]
    #[cfg(feature = "simulator")]
    fn the_stream_of_a_capture_is_of_no_use_elsewhere() {
        let stream = Device::new_simulator().default_stream();
        let mut left = None;
        let mut t = crate::Tensor::<f32>::full(&stream, 1.0, [4]).unwrap();
        let graph = stream.capture(|s| {
            left = Some(s.clone());
            t.fill_zero(s)
        });
        assert_eq!(graph.unwrap().len().unwrap(), 1);
        let left = left.unwrap();
        let outcomes = [
            t.fill_zero(&left),
            left.synchronize(),
            left.record().map(drop),
            left.capture(|_| Ok(())).map(drop),
        ];
        for outcome in outcomes {
            let error = outcome.unwrap_err().to_string();
            assert!(
                error.starts_with("the stream of a capture is used outside"),
                "{error}"
            );
        }
        assert_eq!(t.to_vec().unwrap(), [1.0; 4]);
    }
}
