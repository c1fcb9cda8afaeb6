//! The least time of a run on a GPU, as a table by resource: `cargo tirx sim --cost`.

use tirx_services::cost::{GPUS, Gpu, bounds};
use tirx_sim::{Counts, Work};

use crate::table::Table;

/// The GPU of an argument.
pub(crate) fn gpu(text: &str) -> Result<Gpu, String> {
    Gpu::named(text).ok_or_else(|| {
        let names: Vec<&str> = GPUS.iter().map(|gpu| gpu.name).collect();
        format!("there is no model of `{text}`; there are {}", names.join(", "))
    })
}

/// A time with three digits.
fn time(seconds: f64) -> String {
    match seconds {
        0.0 => "0".to_string(),
        s if s < 1e-6 => format!("{:.3} us", s * 1e6),
        s if s < 1e-3 => format!("{:.2} us", s * 1e6),
        s => format!("{:.2} ms", s * 1e3),
    }
}

/// The bounds of each launch. `whole`: of the whole GPU, rather than of one multiprocessor.
pub(crate) fn table(gpu: &Gpu, whole: bool, launches: &[(Work, Counts)]) -> String {
    let model = if whole { *gpu } else { gpu.multiprocessor() };
    let mut text = String::new();
    let mut sum = 0.0;
    for (number, (work, counts)) in launches.iter().enumerate() {
        let bounds = bounds(&model, work, counts);
        let Some(first) = bounds.first() else { continue };
        sum += first.seconds;
        if launches.len() > 1 {
            text += &format!("launch {}:\n", number + 1);
        }
        let mut table = Table::new(["resource", "least time"]);
        for bound in bounds.iter().filter(|bound| bound.seconds > 0.0) {
            table.row(vec![bound.resource.to_string(), time(bound.seconds)]);
        }
        let what = match whole {
            true => gpu.name.to_string(),
            false => format!(
                "one multiprocessor of {} ({} has {})",
                gpu.name, gpu.name, gpu.multiprocessors
            ),
        };
        text += &format!(
            "at least {} on {what}, limited by {}\n{}",
            time(first.seconds),
            first.resource,
            table.text()
        );
    }
    if launches.len() > 1 {
        text += &format!("all launches: at least {}\n", time(sum));
    }
    text
}
