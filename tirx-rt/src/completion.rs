//! Waiting for a stream in asynchronous programs.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::device::{Stream, StreamKind};
use crate::{Result, cuda};

/// Completes when everything that was queued on a stream is done: see [`Stream::completion`].
///
/// It needs no executor of its own, and dropping it cancels nothing: the work goes on, and nobody is called.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Completion(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    outcome: Option<Result<()>>,
    waker: Option<Waker>,
}

impl Stream {
    /// A future of the end of everything that is queued so far, for any executor (tokio, for instance). Its value is the
    /// outcome of the work.
    ///
    /// ```
    /// # async fn example(stream: &tirx_rt::Stream) -> tirx_rt::Result<()> {
    /// // kernels::scale(&stream, &a, &mut b)?;
    /// stream.completion()?.await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The driver's; in a capture.
    pub fn completion(&self) -> Result<Completion> {
        crate::graph::forbid_on(self, "waiting for the stream")?;
        let state = Arc::new(Mutex::new(State::default()));
        match &self.0 {
            StreamKind::Cuda(stream) => {
                let shared = state.clone();
                cuda::when_done(stream, move |outcome| {
                    let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    state.outcome = Some(outcome);
                    let waker = state.waker.take();
                    drop(state);
                    if let Some(waker) = waker {
                        waker.wake();
                    }
                })?;
            }
            #[cfg(feature = "simulator")]
            StreamKind::Simulator(_) => {
                state.lock().unwrap_or_else(PoisonError::into_inner).outcome = Some(Ok(()));
            }
        }
        Ok(Completion(state))
    }
}

impl Future for Completion {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &state.outcome {
            Some(outcome) => Poll::Ready(outcome.clone()),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.write_str(match state.outcome {
            Some(_) => "completion, reached",
            None => "completion, pending",
        })
    }
}
