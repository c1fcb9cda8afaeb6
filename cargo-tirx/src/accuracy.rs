//! The errors of a kernel's float values as a table: `cargo tirx sim --accuracy`.

use tirx_sim::LineAccuracy;

use crate::observed::place_of;
use crate::table::Table;

/// The errors of each line, with the text of the line.
pub(crate) fn table(lines: &[LineAccuracy]) -> String {
    let mut table = Table::new([
        "line",
        "results",
        "introduced",
        "carried in",
        "total",
        "bits cancelled",
        "overflows",
        "underflows",
        "text",
    ]);
    for line in lines {
        let (place, text) = match &line.location {
            Some(location) => (place_of(location), location.text.trim().to_string()),
            None => ("(none)".to_string(), String::new()),
        };
        let errors = &line.errors;
        table.row(vec![
            place,
            errors.results.to_string(),
            relative(errors.introduced()),
            relative(errors.carried()),
            relative(errors.total()),
            errors.cancelled.to_string(),
            errors.overflows.to_string(),
            errors.underflows.to_string(),
            text,
        ]);
    }
    if lines.is_empty() {
        return "the kernel computes no float values\n".to_string();
    }
    format!(
        "largest relative errors, against a computation in double precision\n{}",
        table.text()
    )
}

/// An error with two digits; 0 as such.
pub(crate) fn relative(error: f64) -> String {
    match error == 0.0 {
        true => "0".to_string(),
        false => format!("{error:.1e}"),
    }
}
