//! The number of nvcc processes that run at a time: as many as Cargo's jobserver has tokens for.
//!
//! The build script holds one token, so one worker needs none; each of the others takes one for as long as it works.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::environment::Environment;

/// Cargo's jobserver, and how many jobs it allows.
pub(crate) struct Slots {
    tokens: Option<jobserver::Client>,
    most: usize,
}

impl Slots {
    /// The jobserver of the Cargo that started this process; otherwise as many jobs as `NUM_JOBS` says, or as there are
    /// cores.
    pub(crate) fn new(environment: &Environment) -> Slots {
        let number = environment
            .peek("NUM_JOBS")
            .and_then(|jobs| jobs.to_str()?.parse().ok());
        let cores = || thread::available_parallelism().map_or(1, |n| n.get());
        Slots {
            tokens: environment
                .peek("CARGO_MAKEFLAGS")
                .and_then(|_| jobserver_of_cargo()),
            most: number.unwrap_or_else(cores).max(1),
        }
    }

    /// Runs every job, in order as far as workers are free; gives the results in that order.
    pub(crate) fn run<T: Send>(&self, count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
        let next = AtomicUsize::new(0);
        let results: Mutex<Vec<Option<T>>> = Mutex::new((0..count).map(|_| None).collect());
        let step = || {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return false;
            }
            let result = work(index);
            results.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(result);
            true
        };
        // Waits for tokens in the background; each is handed to an idle worker.
        let (sender, receiver) = channel();
        let receiver = Mutex::new(receiver);
        let helper = self.tokens.clone().and_then(|client| {
            let hand_over = move |token| drop(sender.send(token));
            client.into_helper_thread(hand_over).ok()
        });
        let with_tokens = |helper: &jobserver::HelperThread| {
            helper.request_token();
            while next.load(Ordering::Relaxed) < count {
                // The first worker may finish everything before a token arrives.
                let wait = Duration::from_millis(20);
                let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
                match receiver.recv_timeout(wait) {
                    Ok(Ok(token)) => {
                        drop(receiver);
                        step();
                        drop(token);
                        helper.request_token();
                    }
                    Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {}
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..self.most.min(count) {
                match (&helper, &self.tokens) {
                    (Some(helper), _) => scope.spawn(|| with_tokens(helper)),
                    // A jobserver that cannot be waited for allows one worker.
                    (None, Some(_)) => break,
                    (None, None) => scope.spawn(|| while step() {}),
                };
            }
            while step() {}
        });
        drop(helper);
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.into_iter().flatten().collect()
    }
}

#[allow(unsafe_code)]
fn jobserver_of_cargo() -> Option<jobserver::Client> {
    // SAFETY: the descriptors that the environment names are Cargo's pipe, open for as long as this process lives:
    // nothing here closes files that it did not open. The variable was looked for before.
    unsafe { jobserver::Client::from_env() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_done_once_and_no_more_at_a_time_than_there_are_tokens() {
        for (tokens, most) in [(None, 3), (Some(1), 8), (None, 1)] {
            let slots = Slots {
                tokens: tokens.map(|n| jobserver::Client::new(n).unwrap()),
                most,
            };
            let (running, peak) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let results = slots.run(20, |index| {
                let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                peak.fetch_max(now, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(2));
                running.fetch_sub(1, Ordering::SeqCst);
                index
            });
            assert_eq!(results, (0..20).collect::<Vec<_>>());
            let allowed = tokens.map_or(most, |n| n + 1);
            assert!(peak.load(Ordering::SeqCst) <= allowed, "{tokens:?} {most}");
        }
        assert!(
            Slots {
                tokens: None,
                most: 4
            }
            .run(0, |_| ())
            .is_empty()
        );
    }
}
