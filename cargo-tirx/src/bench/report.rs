//! How is a measurement shown?

use serde_json::{Value, json};
use tirx_rt::DeviceProperties;

use super::peak::Unit;
use crate::table::Table;

/// What was measured of a specialization.
pub(super) struct Measured {
    pub(super) kernel: String,
    pub(super) target: String,
    pub(super) device: String,
    /// Seconds of a call in each measurement, in order.
    pub(super) seconds: Vec<f64>,
    /// Calls of a measurement.
    pub(super) calls: u32,
    /// Whether the L2 cache was emptied before each call.
    pub(super) flushed: bool,
    pub(super) read: u64,
    pub(super) written: u64,
    pub(super) operations: Option<f64>,
    pub(super) unit: Unit,
    pub(super) gpu: Option<DeviceProperties>,
}

impl Measured {
    /// The time that this share of the measurements does not exceed.
    fn quantile(&self, share: f64) -> f64 {
        let last = self.seconds.len().saturating_sub(1);
        let at = (share * last as f64).round() as usize;
        self.seconds.get(at).copied().unwrap_or(f64::NAN)
    }

    fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    fn bytes_per_second(&self) -> f64 {
        (self.read + self.written) as f64 / self.median()
    }

    fn operations_per_second(&self) -> Option<f64> {
        self.operations.map(|operations| operations / self.median())
    }

    fn peak_bytes(&self) -> Option<f64> {
        self.gpu
            .map(|gpu| gpu.peak_bytes_per_second())
            .filter(|peak| *peak > 0.0)
    }

    fn peak_operations(&self) -> Option<f64> {
        self.gpu.as_ref().and_then(|gpu| self.unit.peak(gpu))
    }
}

pub(super) fn as_json(all: &[Measured]) -> String {
    let object = |m: &Measured| -> Value {
        json!({
            "kernel": m.kernel,
            "target": m.target,
            "device": m.device,
            "seconds": m.median(),
            "fastest": m.quantile(0.0),
            "tenth": m.quantile(0.1),
            "ninetieth": m.quantile(0.9),
            "slowest": m.quantile(1.0),
            "samples": m.seconds.len(),
            "calls": m.calls,
            "l2_flushed": m.flushed,
            "bytes_read": m.read,
            "bytes_written": m.written,
            "bytes_per_second": m.bytes_per_second(),
            "peak_bytes_per_second": m.peak_bytes(),
            "operations": m.operations,
            "operations_per_second": m.operations_per_second(),
            "peak_operations_per_second": m.peak_operations(),
            "unit": m.unit.name(),
        })
    };
    let all: Vec<Value> = all.iter().map(object).collect();
    format!("{}\n", serde_json::to_string_pretty(&all).unwrap_or_default())
}

/// A time with a fitting unit.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.2} us", s * 1e6),
        s if s < 1.0 => format!("{:.3} ms", s * 1e3),
        s => format!("{s:.3} s"),
    }
}

pub(super) fn as_table(all: &[Measured]) -> String {
    let mut text = String::new();
    if let Some(first) = all.first() {
        text += &format!("{}\n", first.device);
    }
    let mut table = Table::new([
        "kernel", "target", "median", "10 %", "90 %", "GB/s", "of peak", "TFLOP/s", "of peak", "peak of",
    ]);
    let share = |value: f64, peak: Option<f64>| match peak {
        Some(peak) => format!("{:.1} %", 100.0 * value / peak),
        None => "?".to_string(),
    };
    for m in all {
        let operations = m.operations_per_second();
        table.row(vec![
            m.kernel.clone(),
            m.target.clone(),
            time(m.median()),
            time(m.quantile(0.1)),
            time(m.quantile(0.9)),
            format!("{:.1}", m.bytes_per_second() / 1e9),
            share(m.bytes_per_second(), m.peak_bytes()),
            operations.map_or("?".to_string(), |value| format!("{:.2}", value / 1e12)),
            operations.map_or("?".to_string(), |value| share(value, m.peak_operations())),
            m.unit.name().to_string(),
        ]);
    }
    text += &table.text();
    if all.iter().any(|m| m.flushed) {
        text += "the L2 cache was emptied before each call\n";
    }
    if all.iter().any(|m| m.operations.is_none()) {
        text += "operations are not known: give them with --operations, for example \"2*M*N*K\"\n";
    }
    if all.iter().any(|m| m.gpu.is_none()) {
        text += "the simulator's time does not predict the time on a GPU\n";
    }
    text
}
