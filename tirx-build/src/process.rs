//! Runs programs with a time limit.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The outcome of a program.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Its exit status; `None` where it was stopped at the limit.
    pub(crate) status: Option<ExitStatus>,
    /// What it wrote to stdout.
    pub(crate) stdout: String,
    /// What it wrote to stderr.
    pub(crate) stderr: String,
}

/// Runs a program for at most `limit`. `waiting` is called from time to time while it runs, with the elapsed time.
pub(crate) fn run(
    command: &mut Command,
    limit: Option<Duration>,
    waiting: &mut dyn FnMut(Duration),
) -> io::Result<Finished> {
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let stdout = reader(child.stdout.take());
    let stderr = reader(child.stderr.take());
    let mut pause = Duration::from_millis(1);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        let elapsed = start.elapsed();
        if limit.is_some_and(|limit| elapsed >= limit) {
            stop(&mut child);
            break None;
        }
        waiting(elapsed);
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    // A child process may hold the pipes open longer than the program lives.
    let text = |reader: Receiver<Vec<u8>>| {
        let bytes = reader.recv_timeout(Duration::from_secs(2)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Ok(Finished {
        status,
        stdout: text(stdout),
        stderr: text(stderr),
    })
}

/// Reads in the background, so that a full pipe blocks nobody.
fn reader(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}

/// Kills a program after its child processes: nvcc starts other programs, which would continue.
fn stop(child: &mut Child) {
    let mut family = vec![child.id()];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        // Child processes are listed on Linux only; elsewhere only the program itself is killed.
        let path = format!("/proc/{parent}/task/{parent}/children");
        let children = std::fs::read_to_string(path).unwrap_or_default();
        family.extend(
            children
                .split_whitespace()
                .filter_map(|id| id.parse::<u32>().ok()),
        );
        next += 1;
    }
    for id in family.iter().skip(1) {
        let _ = Command::new("kill").args(["-9", &id.to_string()]).output();
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn output_is_kept_and_time_is_limited() {
        let finished = run(
            Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]),
            None,
            &mut |_| {},
        )
        .unwrap();
        assert_eq!(
            (finished.stdout.as_str(), finished.stderr.as_str()),
            ("out\n", "err\n")
        );
        assert_eq!(finished.status.and_then(|status| status.code()), Some(3));
        let start = Instant::now();
        let mut waited = 0;
        let finished = run(
            Command::new("sh").args(["-c", "sleep 60; true"]),
            Some(Duration::from_millis(100)),
            &mut |_| waited += 1,
        )
        .unwrap();
        assert!(finished.status.is_none() && waited > 0);
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}
