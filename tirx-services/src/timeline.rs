//! A picture of a block's timeline: a row for each warp and for the operations that it has issued.

use std::collections::BTreeSet;
use std::fmt::Write;

use tirx_sim::{TimelineEvent, Track};

/// The width of the bars, in pixels.
const WIDTH: f64 = 800.0;
/// The height of a row.
const ROW: usize = 18;
/// The width of the names of rows.
const NAMES: usize = 150;
/// The width of an entry of the legend.
const ENTRY: usize = 310;
/// Where a warp runs.
const RUNS: &str = "#9fb6b3";

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// The events as an SVG picture. Time runs to the right, in instructions of a warp.
pub fn svg(events: &[TimelineEvent]) -> String {
    let mut tracks: Vec<Track> = events.iter().map(|event| event.track).collect();
    tracks.sort();
    tracks.dedup();
    let mut kinds: Vec<&str> = Vec::new();
    for event in events {
        if !kinds.contains(&event.name.as_str()) {
            kinds.push(&event.name);
        }
    }
    let end = events.iter().map(|event| event.end).max().unwrap_or(0).max(1);
    let scale = WIDTH / end as f64;
    let per_line = ((NAMES as f64 + WIDTH) as usize / ENTRY).max(1);
    let axis = tracks.len() * ROW + 16;
    let legend = axis + 10;
    let height = legend + kinds.len().div_ceil(per_line) * ROW;
    let width = NAMES as f64 + WIDTH + 8.0;
    let colour = |name: &str| match name {
        "runs" => RUNS.to_string(),
        _ => {
            let at = kinds.iter().position(|kind| *kind == name).unwrap_or(0);
            format!("hsl({},60%,58%)", (at * 67 + 20) % 360)
        }
    };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height}\" width=\"{width:.0}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"11\" fill=\"#333\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for (row, track) in tracks.iter().enumerate() {
        let (name, y) = (
            match track {
                Track::Warp(warp) => format!("warp {warp}"),
                Track::Engine(warp) => format!("operations of warp {warp}"),
            },
            row * ROW,
        );
        let _ = writeln!(
            out,
            "<text x=\"4\" y=\"{}\">{name}</text><path d=\"M{NAMES} {}h{WIDTH:.0}\" stroke=\"#ddd\"/>",
            y + 13,
            y + ROW
        );
    }
    // The lanes of a warp issue copies at the same time: they are one bar.
    let mut drawn = BTreeSet::new();
    for event in events {
        let row = tracks.iter().position(|track| *track == event.track).unwrap_or(0);
        let line = event
            .location
            .as_ref()
            .map_or(String::new(), |location| format!(", line {}", location.line));
        let bar = format!(
            "<rect x=\"{:.1}\" y=\"{}\" width=\"{:.1}\" height=\"{}\" rx=\"2\" fill=\"{}\"><title>{}{line}: {} to {}</title></rect>\n",
            NAMES as f64 + event.start as f64 * scale,
            row * ROW + 3,
            ((event.end - event.start) as f64 * scale).max(1.0),
            ROW - 6,
            colour(&event.name),
            escaped(&event.name),
            event.start,
            event.end
        );
        if drawn.insert(bar.clone()) {
            out += &bar;
        }
    }
    for part in 0..=4 {
        let anchor = ["start", "middle", "middle", "middle", "end"][part];
        let _ = writeln!(
            out,
            "<text x=\"{:.0}\" y=\"{axis}\" text-anchor=\"{anchor}\" fill=\"#777\">{}</text>",
            NAMES as f64 + WIDTH * part as f64 / 4.0,
            end * part as u64 / 4
        );
    }
    for (at, kind) in kinds.iter().enumerate() {
        let (x, y) = (at % per_line * ENTRY + 4, legend + at / per_line * ROW);
        let text = match *kind {
            "runs" => "the warp runs",
            other => other,
        };
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{}\" width=\"12\" height=\"10\" rx=\"2\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{}</text>",
            y + 3,
            colour(kind),
            x + 18,
            y + 12,
            escaped(text)
        );
    }
    out += "</svg>\n";
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_has_its_row_its_place_and_its_name() {
        let event = |track, name: &str, start, end| TimelineEvent {
            track,
            name: name.into(),
            location: None,
            start,
            end,
        };
        let picture = svg(&[
            event(Track::Warp(0), "runs", 0, 10),
            event(Track::Engine(0), "a <copy>", 5, 20),
            event(Track::Engine(0), "a <copy>", 5, 20),
        ]);
        // Half of the time, in the first row; the operation begins at a quarter, in the second row.
        assert!(
            picture.contains("<rect x=\"150.0\" y=\"3\" width=\"400.0\""),
            "{picture}"
        );
        assert!(
            picture.contains("<rect x=\"350.0\" y=\"21\" width=\"600.0\""),
            "{picture}"
        );
        assert_eq!(
            picture.matches("<title>a &lt;copy&gt;: 5 to 20</title>").count(),
            1
        );
        assert!(picture.contains("operations of warp 0"));
        assert!(svg(&[]).contains("</svg>"));
    }
}
