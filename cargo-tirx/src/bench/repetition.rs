//! How long do repeated calls of a kernel take?

use std::time::Duration;

use tirx_rt::{Event, Kernel, Stream, Tensor};

use super::launches::Repeated;
use crate::failure::{Failure, Result, user};

/// A measurement lasts at least so long: events are exact to about half a microsecond.
const LEAST_SAMPLE: Duration = Duration::from_millis(2);
/// Launches before the first measurement: GPUs reach their clock after a while.
pub(crate) const WARM_UP: Duration = Duration::from_millis(200);
/// Most calls of one measurement.
const MAX_CALLS: u32 = 4096;
/// Most calls of one measurement that empties the cache before each: that takes longer than short kernels.
const MAX_FLUSHED: u32 = 256;

/// The launches of a call, again and again.
pub(crate) struct Repetition<'a> {
    pub(crate) kernel: &'static Kernel,
    pub(crate) stream: &'a Stream,
    pub(crate) launches: &'a [Repeated],
    /// More bytes than the L2 cache holds: writing them leaves nothing else in it.
    pub(crate) flush: Option<Tensor<u8>>,
}

impl Repetition<'_> {
    fn call(&self) -> tirx_rt::Result<()> {
        for (function, launch) in self.launches {
            #[expect(unsafe_code, reason = "the launches are those of the host function")]
            // SAFETY: function, arguments and extents are those that the kernel's host function launches with, of
            // tensors with the shapes that it has checked, which live until the stream is done.
            unsafe { launch.launch(self.kernel, *function, self.stream) }?;
        }
        Ok(())
    }

    /// The time of this many calls.
    pub(crate) fn calls(&mut self, count: u32) -> Result<Duration> {
        self.timed(count).map_err(|error| match error {
            tirx_rt::Error::Fault(fault) => Failure::User(vec![fault.to_diagnostic()]),
            error => user(error),
        })
    }

    /// The number of calls that a measurement on a GPU repeats.
    pub(crate) fn calls_of_a_sample(&mut self) -> Result<u32> {
        // The first call loads the image.
        let one = self.calls(1)?;
        let one = self.calls(1)?.min(one);
        let least = one.max(Duration::from_nanos(200));
        let wanted = LEAST_SAMPLE.as_secs_f64() / least.as_secs_f64();
        let most = if self.flush.is_some() {
            MAX_FLUSHED
        } else {
            MAX_CALLS
        };
        Ok((wanted.ceil() as u32).clamp(1, most))
    }

    fn timed(&mut self, count: u32) -> tirx_rt::Result<Duration> {
        // Calls follow each other between two events, unless something else comes between them.
        let (pairs, each) = match self.flush {
            Some(_) => (count, 1),
            None => (1, count),
        };
        let mut events: Vec<(Event, Event)> = Vec::new();
        for _ in 0..pairs {
            if let Some(memory) = &mut self.flush {
                memory.fill_zero(self.stream)?;
            }
            let start = self.stream.record()?;
            for _ in 0..each {
                self.call()?;
            }
            events.push((start, self.stream.record()?));
        }
        self.stream.synchronize()?;
        events.iter().map(|(start, end)| end.elapsed_since(start)).sum()
    }
}
