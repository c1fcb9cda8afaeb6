//! When a block's warps ran and waited, and when its asynchronous operations were in flight.
//!
//! Time is counted in instructions of a warp. A warp that waits goes on when the last of those it waits for has come; an
//! operation takes a fixed time. So a timeline shows who waits for whom, not how long a GPU takes.

use crate::location::FaultLocation;

/// Where an event belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Track {
    /// A warp of the block.
    Warp(u32),
    /// Copies and matrix operations that a warp has issued.
    Engine(u32),
}

/// Something that took time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineEvent {
    /// Where it belongs.
    pub track: Track,
    /// What it was: "runs", "block barrier", "the bulk copy".
    pub name: String,
    /// The instruction.
    pub location: Option<FaultLocation>,
    /// Instructions of the warp from its start on.
    pub start: u64,
    /// The end, in the same unit; not before `start`.
    pub end: u64,
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if (c as u32) < 0x20 => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The events as a trace that Perfetto and `chrome://tracing` show.
pub fn trace(events: &[TimelineEvent]) -> String {
    let thread = |track: Track| match track {
        Track::Warp(warp) => (2 * warp, format!("warp {warp}")),
        Track::Engine(warp) => (2 * warp + 1, format!("operations of warp {warp}")),
    };
    let mut tracks: Vec<Track> = events.iter().map(|e| e.track).collect();
    tracks.sort();
    tracks.dedup();
    let mut lines = Vec::new();
    for track in tracks {
        let (id, name) = thread(track);
        lines.push(format!(
            "{{\"ph\":\"M\",\"pid\":0,\"tid\":{id},\"name\":\"thread_name\",\"args\":{{\"name\":{}}}}}",
            quoted(&name)
        ));
    }
    for event in events {
        let (id, _) = thread(event.track);
        let place = event.location.as_ref().map_or(String::new(), |l| {
            format!(
                ",\"args\":{{\"line\":{},\"text\":{}}}",
                l.line,
                quoted(l.text.trim())
            )
        });
        lines.push(format!(
            "{{\"ph\":\"X\",\"pid\":0,\"tid\":{id},\"ts\":{},\"dur\":{},\"name\":{}{place}}}",
            event.start,
            event.end - event.start,
            quoted(&event.name)
        ));
    }
    format!("{{\"traceEvents\":[\n{}\n]}}\n", lines.join(",\n"))
}
