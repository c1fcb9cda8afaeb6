//! Tuning records: the times of a tuned kernel's candidates on one GPU, which `cargo tirx tune` writes beside the manifest.
//!
//! `kernels.tuning/` has a file for each GPU. It is TOML, made for a diff:
//!
//! ```toml
//! version = 1
//! device = "NVIDIA H100 80GB HBM3"     # the name that the driver gives
//!
//! [[kernel]]
//! name = "scale"
//! hash = "2f6c…"                       # the candidates' code: a record with another hash is stale
//! driver = "13.0"                      # the CUDA release of the driver
//! nvcc = "13.0 V13.0.88"
//! tirx = "0.1.0"
//! clock = 1755                         # MHz after the measurement, if the driver gives it
//! sizes = ["n"]
//! candidates = ["tile256", "tile128"]
//! times = [
//!     [[1000], [2.31, 2.28]],          # sizes, microseconds of each candidate
//! ]
//! ```
//!
//! A build embeds the records, and the launcher `tuned` chooses by them. A stale record is not used: a build warns, and fails if
//! `TIRX_LOCKED` is set.

use std::fmt::Write;

use crate::document::{self, Fields, FromTable, Mistake, Record, quoted, quoted_list};

/// The folder of the records, beside the manifest.
pub const FOLDER: &str = "kernels.tuning";

/// The version of the format that this crate writes and reads.
pub const VERSION: u32 = 1;

/// The times that were measured on one GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct TuningRecord {
    /// The GPU's name, as its driver gives it.
    pub device: String,
    /// The tuned kernels.
    pub kernels: Vec<KernelTimes>,
}

/// The times of one kernel's candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelTimes {
    /// The kernel's path in Rust: `scale`.
    pub name: String,
    /// The hash of the candidates' code.
    pub hash: String,
    /// The CUDA release of the driver.
    pub driver: String,
    /// Release and build of the nvcc that compiled the candidates.
    pub nvcc: String,
    /// The version of the compiler of kernels.
    pub tirx: String,
    /// The clock of the multiprocessors after the measurement, in MHz; `None` if the driver does not give it.
    pub clock: Option<u32>,
    /// The names of the sizes.
    pub sizes: Vec<String>,
    /// The names of the candidates in Rust.
    pub candidates: Vec<String>,
    /// The measured points.
    pub points: Vec<MeasuredPoint>,
}

/// The times for some sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredPoint {
    /// The sizes, in the order of their names.
    pub sizes: Vec<i64>,
    /// The microseconds of each candidate.
    pub times: Vec<f64>,
}

/// The name of a GPU's file in the folder.
pub fn file_name(device: &str) -> String {
    let mut name = String::new();
    for c in device.chars() {
        match c.is_ascii_alphanumeric() {
            true => name.push(c),
            false if !name.ends_with('-') => name.push('-'),
            false => {}
        }
    }
    format!("{}.toml", name.trim_matches('-'))
}

impl TuningRecord {
    /// The file's text.
    pub fn text(&self) -> String {
        let mut text = String::from(
            "# Written by `cargo tirx tune`: the times of the candidates of tuned kernels on one GPU.\n",
        );
        let _ = writeln!(text, "version = {VERSION}");
        let _ = writeln!(text, "device = {}", quoted(&self.device));
        for kernel in &self.kernels {
            text.push_str("\n[[kernel]]\n");
            for (key, value) in [
                ("name", &kernel.name),
                ("hash", &kernel.hash),
                ("driver", &kernel.driver),
                ("nvcc", &kernel.nvcc),
                ("tirx", &kernel.tirx),
            ] {
                let _ = writeln!(text, "{key} = {}", quoted(value));
            }
            if let Some(clock) = kernel.clock {
                let _ = writeln!(text, "clock = {clock}");
            }
            let _ = writeln!(text, "sizes = {}", quoted_list(&kernel.sizes));
            let _ = writeln!(text, "candidates = {}", quoted_list(&kernel.candidates));
            text.push_str("times = [\n");
            for point in &kernel.points {
                let sizes: Vec<String> = point.sizes.iter().map(i64::to_string).collect();
                let times: Vec<String> = point.times.iter().map(|time| format!("{time:.3}")).collect();
                let _ = writeln!(text, "    [[{}], [{}]],", sizes.join(", "), times.join(", "));
            }
            text.push_str("]\n");
        }
        text
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// The reason why it is no record, with its line.
    pub fn read(text: &str) -> Result<TuningRecord, String> {
        let raw: RawRecord = document::read(text).map_err(|mistake: Mistake| {
            let before = text.get(..mistake.span.start).unwrap_or_default();
            format!("line {}: {mistake}", before.matches('\n').count() + 1)
        })?;
        if raw.version != VERSION {
            return Err(format!(
                "it has version {}, this compiler reads version {VERSION}",
                raw.version
            ));
        }
        let kernels = raw.kernels.into_iter().map(|kernel| kernel.0.checked());
        Ok(TuningRecord {
            device: raw.device,
            kernels: kernels.collect::<Result<_, _>>()?,
        })
    }
}

struct RawRecord {
    version: u32,
    device: String,
    kernels: Vec<Record<RawTimes>>,
}

impl FromTable for RawRecord {
    const KEYS: &'static [&'static str] = &["version", "device", "kernel"];

    fn from_table(fields: &Fields<'_, '_>) -> Result<RawRecord, Mistake> {
        Ok(RawRecord {
            version: fields.required("version")?,
            device: fields.required("device")?,
            kernels: fields.or_default("kernel")?,
        })
    }
}

struct RawTimes {
    name: String,
    hash: String,
    driver: String,
    nvcc: String,
    tirx: String,
    clock: Option<u32>,
    sizes: Vec<String>,
    candidates: Vec<String>,
    times: Vec<(Vec<i64>, Vec<f64>)>,
}

impl FromTable for RawTimes {
    const KEYS: &'static [&'static str] = &[
        "name",
        "hash",
        "driver",
        "nvcc",
        "tirx",
        "clock",
        "sizes",
        "candidates",
        "times",
    ];

    fn from_table(fields: &Fields<'_, '_>) -> Result<RawTimes, Mistake> {
        Ok(RawTimes {
            name: fields.required("name")?,
            hash: fields.required("hash")?,
            driver: fields.required("driver")?,
            nvcc: fields.required("nvcc")?,
            tirx: fields.required("tirx")?,
            clock: fields.optional("clock")?,
            sizes: fields.required("sizes")?,
            candidates: fields.required("candidates")?,
            times: fields.required("times")?,
        })
    }
}

impl RawTimes {
    fn checked(self) -> Result<KernelTimes, String> {
        let name = &self.name;
        if self.times.is_empty() {
            return Err(format!("kernel `{name}` has no times"));
        }
        for (sizes, times) in &self.times {
            if sizes.len() != self.sizes.len() || times.len() != self.candidates.len() {
                return Err(format!(
                    "a point of kernel `{name}` has {} sizes and {} times, expected {} and {}",
                    sizes.len(),
                    times.len(),
                    self.sizes.len(),
                    self.candidates.len()
                ));
            }
            if let Some(time) = times.iter().find(|time| !(time.is_finite() && **time > 0.0)) {
                return Err(format!("kernel `{name}` has the time {time}"));
            }
        }
        let points = self
            .times
            .into_iter()
            .map(|(sizes, times)| MeasuredPoint { sizes, times });
        Ok(KernelTimes {
            name: self.name,
            hash: self.hash,
            driver: self.driver,
            nvcc: self.nvcc,
            tirx: self.tirx,
            clock: self.clock,
            sizes: self.sizes,
            candidates: self.candidates,
            points: points.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> TuningRecord {
        TuningRecord {
            device: "NVIDIA H100 80GB HBM3".into(),
            kernels: vec![KernelTimes {
                name: "scale".into(),
                hash: "00ff".into(),
                driver: "13.0".into(),
                nvcc: "13.0 V13.0.88".into(),
                tirx: "0.1.0".into(),
                clock: Some(1755),
                sizes: vec!["m".into(), "n".into()],
                candidates: vec!["tile256".into(), "tile128".into()],
                points: vec![MeasuredPoint {
                    sizes: vec![1, 1 << 33],
                    times: vec![2.25, 1000.5],
                }],
            }],
        }
    }

    #[test]
    fn a_record_that_was_written_is_read() {
        let record = record();
        assert_eq!(TuningRecord::read(&record.text()), Ok(record));
        assert_eq!(file_name("NVIDIA H100 80GB HBM3"), "NVIDIA-H100-80GB-HBM3.toml");
        assert_eq!(
            file_name("NVIDIA GeForce RTX 4090 / (mobile)"),
            "NVIDIA-GeForce-RTX-4090-mobile.toml"
        );
    }

    #[test]
    fn damaged_records_are_refused_with_the_reason() {
        let text = record().text();
        for (from, to, reason) in [
            (
                "version = 1",
                "version = 2",
                "version 2, this compiler reads version 1",
            ),
            ("device = ", "devise = ", "line 3: unknown key `devise`"),
            (
                "[2.250, 1000.500]",
                "[2.250]",
                "2 sizes and 1 times, expected 2 and 2",
            ),
            ("[1, 8589934592]", "[1]", "1 sizes and 2 times"),
            ("2.250", "-1.0", "has the time -1"),
            ("2.250", "nan", "has the time NaN"),
            ("2.250", "\"x\"", "`times` is a list of pairs, found the string"),
            ("    [[1", "    # [[1", "has no times"),
            ("times = [", "times = ", "line "),
        ] {
            assert!(text.contains(from), "{from}: {text}");
            let error = TuningRecord::read(&text.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(reason), "{to}: {error}");
        }
    }
}
