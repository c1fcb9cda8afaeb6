//! Events: points in a stream's work that the program and other streams can wait for, and the time between them.

use std::fmt;
use std::time::Duration;
#[cfg(feature = "simulator")]
use std::time::Instant;

use cudarc::driver::{CudaEvent, sys};

use crate::cuda::failed;
use crate::device::{Stream, StreamKind};
use crate::{Error, Result};

/// A point in the work of a stream: everything that was queued before [`Stream::record`].
///
/// ```
/// # let stream = tirx_rt::Device::simulator().default_stream();
/// let start = stream.record()?;
/// // kernels::scale(&stream, &a, &mut b)?;
/// let end = stream.record()?;
/// println!("{:?}", end.elapsed_since(&start)?);
/// # Ok::<(), tirx_rt::Error>(())
/// ```
pub struct Event(EventKind);

enum EventKind {
    Cuda(CudaEvent),
    /// A simulator has done its work when the call returns.
    #[cfg(feature = "simulator")]
    Simulator {
        time: Instant,
        device: i32,
    },
}

impl Stream {
    /// Marks the end of what is queued so far.
    ///
    /// # Errors
    /// The driver's; in a [capture](Stream::capture), where events have no time.
    pub fn record(&self) -> Result<Event> {
        crate::graph::forbid_on(self, "recording an event")?;
        match &self.0 {
            StreamKind::Cuda(stream) => stream
                .record_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT))
                .map(|event| Event(EventKind::Cuda(event)))
                .map_err(failed("recording an event")),
            #[cfg(feature = "simulator")]
            StreamKind::Simulator(simulator) => Ok(Event(EventKind::Simulator {
                time: Instant::now(),
                device: simulator.id(),
            })),
        }
    }

    /// Makes what is queued from now on wait for the event, which may be of another stream, also of another GPU.
    ///
    /// # Errors
    /// The driver's; in a [capture](Stream::capture).
    pub fn wait(&self, event: &Event) -> Result<()> {
        crate::graph::forbid_on(self, "waiting for an event")?;
        match (&self.0, &event.0) {
            (StreamKind::Cuda(stream), EventKind::Cuda(event)) => {
                stream.wait(event).map_err(failed("waiting for an event"))
            }
            // A simulator runs its work when it is called.
            #[cfg(feature = "simulator")]
            _ => event.synchronize(),
        }
    }

    /// Whether everything that is queued is done, without waiting.
    ///
    /// # Errors
    /// Those of the work: a kernel that faulted, for instance.
    pub fn is_done(&self) -> Result<bool> {
        crate::graph::forbid_on(self, "asking for the end of work")?;
        match &self.0 {
            StreamKind::Cuda(stream) => crate::cuda::is_done(stream),
            #[cfg(feature = "simulator")]
            StreamKind::Simulator { .. } => Ok(true),
        }
    }
}

impl Event {
    /// Whether the work before it is done, without waiting.
    ///
    /// # Errors
    /// Those of the work.
    pub fn is_done(&self) -> Result<bool> {
        match &self.0 {
            EventKind::Cuda(event) => event.try_is_complete().map_err(failed("asking for an event")),
            #[cfg(feature = "simulator")]
            EventKind::Simulator { .. } => Ok(true),
        }
    }

    /// Waits until the work before it is done.
    ///
    /// # Errors
    /// Those of the work.
    pub fn synchronize(&self) -> Result<()> {
        match &self.0 {
            EventKind::Cuda(event) => event.synchronize().map_err(failed("waiting for an event")),
            #[cfg(feature = "simulator")]
            EventKind::Simulator { .. } => Ok(()),
        }
    }

    /// The time from an earlier event of the same device to this one, once both are reached. Of a GPU it is that of the
    /// device, to about half a microsecond; of a simulator that of the host.
    ///
    /// # Errors
    /// [`Error::Shape`] where the events are of different devices; those of the work.
    pub fn elapsed_since(&self, start: &Event) -> Result<Duration> {
        match (&start.0, &self.0) {
            (EventKind::Cuda(start), EventKind::Cuda(end))
                if start.context().cu_ctx() == end.context().cu_ctx() =>
            {
                let milliseconds = start.elapsed_ms(end).map_err(failed("timing two events"))?;
                Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3))
            }
            #[cfg(feature = "simulator")]
            (
                EventKind::Simulator { time, device },
                EventKind::Simulator {
                    time: end,
                    device: other,
                },
            ) if device == other => Ok(end.saturating_duration_since(*time)),
            _ => Err(Error::Shape(format!(
                "no time passes between events of two devices: {start:?} and {self:?}"
            ))),
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = match &self.0 {
            EventKind::Cuda(event) => format!("cuda({})", event.context().ordinal()),
            #[cfg(feature = "simulator")]
            EventKind::Simulator { device, .. } => format!("simulator({})", -1 - device),
        };
        write!(f, "event of {device}")
    }
}
