//! Graphs: work that is recorded once and launched many times for the cost of one launch.
//!
//! The closure of [`Stream::capture`] calls typed launchers as usual, on a stream that records instead of running. The
//! tensors that it uses stay borrowed for as long as the graph lives, so that the addresses in the graph are valid.
//! Other arguments take another capture: [`Graph::update`] exchanges the parameters of an instantiated graph.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::cuda::{Allocation, CudaGraph};
use crate::device::{Stream, StreamKind};
#[cfg(feature = "simulator")]
use crate::simulator::RecordedLaunch;
use crate::{Error, Result};

/// What a capture of this thread has recorded so far.
#[derive(Default)]
pub(crate) struct Recording {
    /// The memory that it uses: a launch of the graph is ordered after the last use of each, and the graph keeps it.
    pub(crate) uses: Vec<Arc<Allocation>>,
    #[cfg(feature = "simulator")]
    pub(crate) launches: Vec<RecordedLaunch>,
}

thread_local! {
    static RECORDING: RefCell<Option<Recording>> = const { RefCell::new(None) };
}

/// Lets a capture of this thread take note of something; `false` where there is none.
pub(crate) fn record(note: impl FnOnce(&mut Recording)) -> bool {
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
    record(|_| {})
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

/// Recorded work. It borrows the tensors that the work uses.
///
/// ```
/// # use tirx_rt::{Device, Tensor};
/// let stream = Device::simulator().new_stream()?;
/// let mut b = Tensor::<f32>::zeros(&stream, [64])?;
/// let graph = stream.capture(|s| {
///     b.fill_zero(s)
///     // kernels::scale(s, &a, &mut b)?;
///     // kernels::add(s, &b, &c, &mut d)
/// })?;
/// for _ in 0..10 {
///     graph.launch(&stream)?;
/// }
/// drop(graph);
/// assert_eq!(b.to_vec()?, [0.0; 64]);
/// # Ok::<(), tirx_rt::Error>(())
/// ```
pub struct Graph<'a> {
    work: Work,
    uses: Vec<Arc<Allocation>>,
    /// The borrows of the closure.
    tensors: PhantomData<&'a mut ()>,
}

enum Work {
    Cuda(CudaGraph),
    #[cfg(feature = "simulator")]
    Simulator(Vec<RecordedLaunch>),
}

/// Ends the recording of this thread, also where the closure panics.
struct Recorder;

impl Recorder {
    fn start() -> Result<Recorder> {
        forbid("a capture")?;
        RECORDING.set(Some(Recording::default()));
        Ok(Recorder)
    }

    fn finish(self) -> Recording {
        RECORDING.take().unwrap_or_default()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        RECORDING.set(None);
    }
}

impl Stream {
    /// Records what `work` queues on the stream that it is given, and runs none of it. Launches and
    /// [`fill_zero`](crate::Tensor::fill_zero) can be recorded; allocations and copies from and to the host are errors.
    ///
    /// # Errors
    /// [`Error::Capture`] for work that cannot be recorded; those of `work`; the driver's.
    pub fn capture<'a>(&self, work: impl FnOnce(&Stream) -> Result<()> + 'a) -> Result<Graph<'a>> {
        match &self.0 {
            StreamKind::Cuda(stream) => {
                // On a stream of its own: no tensor was used there, so that each use is seen.
                let capture = CudaGraph::begin(stream.context())?;
                let recorder = Recorder::start()?;
                let done = work(&Stream::of(StreamKind::Cuda(capture.stream().clone())));
                let recording = recorder.finish();
                let graph = capture.finish();
                done?;
                Ok(Graph {
                    work: Work::Cuda(graph?),
                    uses: recording.uses,
                    tensors: PhantomData,
                })
            }
            #[cfg(feature = "simulator")]
            StreamKind::Simulator(_) => {
                let recorder = Recorder::start()?;
                let done = work(self);
                let recording = recorder.finish();
                done?;
                Ok(Graph {
                    work: Work::Simulator(recording.launches),
                    uses: recording.uses,
                    tensors: PhantomData,
                })
            }
        }
    }
}

impl Graph<'_> {
    /// Queues the work. Later work on its tensors waits for it, as after any launch.
    ///
    /// # Errors
    /// [`Error::Shape`] where the stream is of another device; the driver's; faults on a simulator.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        forbid("the launch of a graph")?;
        match (&self.work, &stream.0) {
            (Work::Cuda(graph), StreamKind::Cuda(stream)) => {
                for memory in &self.uses {
                    memory.order(stream)?;
                }
                graph.launch(stream)
            }
            #[cfg(feature = "simulator")]
            (Work::Simulator(launches), StreamKind::Simulator(simulator)) => {
                launches.iter().try_for_each(|launch| launch.run(simulator))
            }
            #[cfg(feature = "simulator")]
            _ => Err(Error::Shape(
                "the graph was captured on another device".to_string(),
            )),
        }
    }

    /// How many launches and other operations it has.
    ///
    /// # Errors
    /// The driver's.
    pub fn len(&self) -> Result<usize> {
        match &self.work {
            Work::Cuda(graph) => graph.nodes(),
            #[cfg(feature = "simulator")]
            Work::Simulator(launches) => Ok(launches.len()),
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
    pub fn update<'b>(
        self,
        stream: &Stream,
        work: impl FnOnce(&Stream) -> Result<()> + 'b,
    ) -> Result<Graph<'b>> {
        let new = stream.capture(work)?;
        let work = match (self.work, new.work) {
            (Work::Cuda(old), Work::Cuda(new)) => Work::Cuda(old.updated(new)?),
            #[cfg(feature = "simulator")]
            (_, new) => new,
        };
        Ok(Graph {
            work,
            uses: new.uses,
            tensors: PhantomData,
        })
    }
}

impl fmt::Debug for Graph<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "graph of {} operations", self.len().unwrap_or(0))
    }
}
