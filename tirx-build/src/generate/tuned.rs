//! The launcher of a tuned kernel: it chooses one of the specializations by the sizes of a call.
//!
//! ```text
//! kernels::scale::tuned(&stream, &a, &mut b)
//! kernels::scale::TUNING.choose(&stream, &[1000])     the number of the specialization that runs
//! ```

use std::fmt::Write;

use tirx_core::codegen::rust::blocks;

use super::{GeneratedKernel, RESULT, doc, parameters};
use crate::tuning::KernelTimes;

/// A kernel whose variants are candidates.
#[derive(Debug)]
pub(crate) struct Tuned {
    /// The names of the sizes that choose.
    pub(crate) names: Vec<String>,
    /// The points to measure.
    pub(crate) points: Vec<Vec<i64>>,
    /// The Rust expression of each size, an `i64`, over the launcher's parameters.
    pub(crate) reads: Vec<String>,
    /// The hash of the candidates' code.
    pub(crate) hash: String,
    /// The fitting records, by the GPU's name.
    pub(crate) records: Vec<(String, KernelTimes)>,
}

/// The items of the kernel's module: `TUNING` and `tuned`.
pub(super) fn module_items(text: &mut String, kernel: &GeneratedKernel, tuned: &Tuned) {
    let Some(first) = kernel.variants.first() else {
        return;
    };
    let names: Vec<&str> = (kernel.variants.iter())
        .map(|variant| variant.name.as_deref().unwrap_or_default())
        .collect();
    let mut candidates = String::new();
    for (name, variant) in names.iter().zip(&kernel.variants) {
        let blocks = match blocks(&variant.compiled.lowered, &tuned.names) {
            Some(blocks) if blocks.contains("sizes[") => format!("Some(|sizes| {blocks})"),
            Some(blocks) => format!("Some(|_| {blocks})"),
            None => "None".to_string(),
        };
        let _ = write!(
            candidates,
            "::tirx_rt::TuningCandidate {{ name: {name:?}, blocks: {blocks} }},"
        );
    }
    let mut records = String::new();
    for (device, kernel) in &tuned.records {
        let points: String = (kernel.points.iter())
            .map(|point| format!("(&{:?}, &{:?}),", point.sizes, point.times))
            .collect();
        let _ = write!(
            records,
            "::tirx_rt::TuningRecord {{ device: {device:?}, times: &[{points}] }},"
        );
    }
    let measured = match tuned.records.as_slice() {
        [] => "There is no record: a model of the grids chooses.".to_string(),
        records => {
            let devices: Vec<String> = records.iter().map(|(device, _)| format!("`{device}`")).collect();
            format!(
                "Measured on {}; on other devices a model of the grids chooses.",
                devices.join(", ")
            )
        }
    };
    let sizes: Vec<String> = tuned.names.iter().map(|name| format!("`{name}`")).collect();
    let by = match sizes.is_empty() {
        true => "device".to_string(),
        false => format!("device and {}", sizes.join(", ")),
    };
    doc(
        text,
        &[
            format!("The choice between the specializations by {by}."),
            String::new(),
            measured,
        ],
    );
    let _ = writeln!(
        text,
        "pub static TUNING: ::tirx_rt::Tuning = ::tirx_rt::Tuning::new(&{:?}, &[{candidates}], &[{records}]);",
        tuned.names
    );
    doc(
        text,
        &[
            format!("Launches the specialization that [`TUNING`] chooses by {by}."),
            String::new(),
            "# Errors".to_string(),
            String::new(),
            "Those of the specialization.".to_string(),
        ],
    );
    let launcher = &first.compiled.launcher;
    let _ = writeln!(
        text,
        "pub fn tuned(stream: &::tirx_rt::Stream{}) -> {RESULT} {{ match TUNING.choose(stream, &[{}])? {{",
        parameters(launcher),
        tuned.reads.join(", ")
    );
    let arguments: String = launcher.params().map(|(name, _)| format!(", {name}")).collect();
    for (at, name) in names.iter().enumerate() {
        let pattern = match at + 1 == names.len() {
            true => "_".to_string(),
            false => at.to_string(),
        };
        let _ = writeln!(text, "{pattern} => {name}(stream{arguments}),");
    }
    text.push_str("} }\n");
}
