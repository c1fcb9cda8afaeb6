//! The table of results.

use std::fmt;
use std::time::{Duration, Instant};

use tirx_rt::{Device, Stream};

struct Row {
    kernel: String,
    time: Duration,
    error: f64,
    allowed: f64,
}

/// One row per kernel: time of a launch and the worst error against plain Rust.
pub(crate) struct Report {
    device: String,
    rows: Vec<Row>,
}

impl Report {
    pub(crate) fn new(device: &Device) -> Report {
        Report {
            device: device.name(),
            rows: Vec::new(),
        }
    }

    /// Whether every kernel is within its tolerance.
    pub(crate) fn passed(&self) -> bool {
        // Not `error > allowed`: a NaN must fail.
        self.rows.iter().all(|r| r.error <= r.allowed)
    }

    /// Adds a row.
    pub(crate) fn add(&mut self, kernel: &str, time: Duration, error: f64, allowed: f64) {
        self.rows.push(Row {
            kernel: kernel.to_string(),
            time,
            error,
            allowed,
        });
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<20} {:<24} {:>12} {:>12} {:>10}",
            "kernel", "device", "time", "worst error", "allowed"
        )?;
        for row in &self.rows {
            let verdict = if row.error <= row.allowed { "" } else { "  WRONG" };
            let time = format!("{:.1} us", row.time.as_secs_f64() * 1e6);
            writeln!(
                f,
                "{:<20} {:<24} {time:>12} {:>12.3e} {:>10.1e}{verdict}",
                row.kernel, self.device, row.error, row.allowed
            )?;
        }
        Ok(())
    }
}

/// Time of one launch on the host's clock, including the wait for its end. On a GPU the kernel has run once before, so
/// that loading it is not counted; for a kernel that adds to its output this must not matter.
pub(crate) fn time(
    stream: &Stream,
    mut launch: impl FnMut() -> tirx_rt::Result<()>,
) -> Result<Duration, tirx_rt::Error> {
    if !stream.device().is_simulator() {
        launch()?;
    }
    stream.synchronize()?;
    let start = Instant::now();
    launch()?;
    stream.synchronize()?;
    Ok(start.elapsed())
}

/// The largest difference; infinite where lengths differ or a value is not a number.
pub(crate) fn worst_error(actual: &[f32], expected: &[f64]) -> f64 {
    if actual.len() != expected.len() {
        return f64::INFINITY;
    }
    actual
        .iter()
        .zip(expected)
        .map(|(a, e)| (*a as f64 - e).abs())
        .fold(
            0.0,
            |worst, d| {
                if d.is_nan() { f64::INFINITY } else { worst.max(d) }
            },
        )
}

/// The largest relative difference, against the largest expected magnitude.
pub(crate) fn relative_error(actual: &[f32], expected: &[f64]) -> f64 {
    let scale = expected.iter().fold(f64::MIN_POSITIVE, |m, e| m.max(e.abs()));
    worst_error(actual, expected) / scale
}

/// The largest difference of two grey pictures.
pub(crate) fn worst_grey(actual: &[u8], expected: &[u8]) -> f64 {
    if actual.len() != expected.len() {
        return f64::INFINITY;
    }
    actual
        .iter()
        .zip(expected)
        .map(|(a, e)| a.abs_diff(*e) as f64)
        .fold(0.0, f64::max)
}

/// The share of pixels that differ.
pub(crate) fn share_different(actual: &[u8], expected: &[u8]) -> f64 {
    if actual.len() != expected.len() {
        return 1.0;
    }
    actual.iter().zip(expected).filter(|(a, e)| a != e).count() as f64 / expected.len() as f64
}
