//! The records that `CudaProfiler` of a kernel writes, decoded to events, a trace for Perfetto and a table.
//!
//! The buffer's first word holds the number of blocks (low half) and of groups of threads in each. Every other word that
//! is not zero is a record: in the high half the low 32 bits of a clock, in the low half `block and group << 12 |
//! event << 2 | what`, where what is 0 for a begin, 1 for an end, 2 for an instant and 3 for the end of the group's
//! records. On a GPU the clock counts nanoseconds, on the simulator the steps of a block.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::{Error, Result};

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProfilePoint {
    /// An event began.
    Begin,
    /// It ended.
    End,
    /// An instant event.
    Instant,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileEvent {
    /// The block.
    pub block: u32,
    /// The group of threads within it.
    pub group: u32,
    /// The event's name, or its number where it has none.
    pub name: String,
    /// The kind.
    pub point: ProfilePoint,
    /// The time, relative to the first record of the buffer.
    pub time: u64,
}

/// The decoded records of a kernel's profiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Blocks of the launch.
    pub blocks: u32,
    /// Groups of each block.
    pub groups: u32,
    /// The records, sorted by time; those of a group keep their order.
    pub events: Vec<ProfileEvent>,
}

impl Profile {
    /// Reads a buffer. `names` are the events' by number.
    ///
    /// ```
    /// # fn main() -> tirx_rt::Result<()> {
    /// let word = |time: u64, tag: u64| time << 32 | tag;
    /// // One block with one group: event 0 from 100 to 140.
    /// let buffer = [1 << 32 | 1, word(100, 0), word(140, 1), word(150, 3)];
    /// let profile = tirx_rt::Profile::decode(&buffer, &["load"])?;
    /// assert_eq!(profile.events[1].time, 40);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] where the buffer was not written by a profiler.
    pub fn decode(buffer: &[u64], names: &[&str]) -> Result<Profile> {
        let Some((header, records)) = buffer.split_first() else {
            return Err(Error::Shape("the profiler's buffer is empty".to_string()));
        };
        let (blocks, groups) = (*header as u32, (*header >> 32) as u32);
        if blocks == 0 || groups == 0 {
            return Err(Error::Shape(
                "no profiler wrote into the buffer: its first word says neither blocks nor groups"
                    .to_string(),
            ));
        }
        let rows = u64::from(blocks) * u64::from(groups);
        // The order of a group's records is that of the buffer, because the 32-bit clock wraps around.
        let mut last: BTreeMap<u32, u64> = BTreeMap::new();
        let mut ended: Vec<u32> = Vec::new();
        let mut events = Vec::new();
        let mut first: Option<u64> = None;
        for record in records.iter().filter(|r| **r != 0) {
            let (tag, clock) = (*record as u32, *record >> 32);
            let (row, event, what) = (tag >> 12, tag >> 2 & 0x3ff, tag & 3);
            if u64::from(row) >= rows {
                return Err(Error::Shape(format!(
                    "a record of the profiler's buffer is of row {row}, and there are {rows}"
                )));
            }
            if ended.contains(&row) {
                continue;
            }
            let before = last.get(&row).or(first.as_ref()).copied().unwrap_or(clock);
            // The nearest time with these low bits: less than half a period forward, or back.
            let step = clock.wrapping_sub(before) as u32 as i32;
            let time = before.wrapping_add_signed(i64::from(step));
            first.get_or_insert(time);
            last.insert(row, time);
            let point = match what {
                0 => ProfilePoint::Begin,
                1 => ProfilePoint::End,
                2 => ProfilePoint::Instant,
                _ => {
                    ended.push(row);
                    continue;
                }
            };
            events.push(ProfileEvent {
                block: row / groups,
                group: row % groups,
                name: names
                    .get(event as usize)
                    .map_or_else(|| event.to_string(), |n| n.to_string()),
                point,
                time,
            });
        }
        let start = events.iter().map(|e| e.time as i64).min().unwrap_or(0);
        for event in &mut events {
            event.time = (event.time as i64 - start) as u64;
        }
        events.sort_by_key(|event| event.time);
        Ok(Profile {
            blocks,
            groups,
            events,
        })
    }

    /// The trace as JSON that <https://ui.perfetto.dev> and `chrome://tracing` open: a process for each block, a thread
    /// for each group.
    pub fn to_perfetto(&self) -> String {
        let mut out = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        let mut rows: Vec<(u32, u32)> = self.events.iter().map(|e| (e.block, e.group)).collect();
        rows.sort_unstable();
        rows.dedup();
        let mut lines = Vec::new();
        for (block, group) in rows {
            lines.push(format!(
                "{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{block},\"args\":{{\"name\":\"block {block}\"}}}}"
            ));
            lines.push(format!(
                "{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{block},\"tid\":{group},\
                 \"args\":{{\"name\":\"group {group}\"}}}}"
            ));
        }
        for event in &self.events {
            let phase = match event.point {
                ProfilePoint::Begin => "B",
                ProfilePoint::End => "E",
                ProfilePoint::Instant => "i",
            };
            lines.push(format!(
                "{{\"name\":{},\"ph\":\"{phase}\",\"ts\":{}.{:03},\"pid\":{},\"tid\":{}}}",
                json(&event.name),
                event.time / 1000,
                event.time % 1000,
                event.block,
                event.group
            ));
        }
        out.push_str(&lines.join(",\n"));
        out.push_str("\n]}\n");
        out
    }

    /// A table with one line per event: how often it happened, and its duration.
    pub fn summary(&self) -> String {
        let mut open: BTreeMap<(u32, u32, &str), Vec<u64>> = BTreeMap::new();
        let mut spans: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for event in &self.events {
            let place = (event.block, event.group, event.name.as_str());
            match event.point {
                ProfilePoint::Begin => open.entry(place).or_default().push(event.time),
                ProfilePoint::End => {
                    if let Some(begin) = open.get_mut(&place).and_then(Vec::pop) {
                        spans.entry(&event.name).or_default().push(event.time - begin);
                    }
                }
                ProfilePoint::Instant => spans.entry(&event.name).or_default().push(0),
            }
        }
        let width = spans
            .keys()
            .map(|name| name.len())
            .max()
            .unwrap_or(0)
            .max("event".len());
        let mut out = format!(
            "{:width$}  {:>8}  {:>12}  {:>10}  {:>10}  {:>10}\n",
            "event", "count", "total", "mean", "least", "most"
        );
        for (name, times) in spans {
            let total: u64 = times.iter().sum();
            let (least, most) = (times.iter().min().unwrap_or(&0), times.iter().max().unwrap_or(&0));
            let _ = writeln!(
                out,
                "{name:width$}  {:>8}  {total:>12}  {:>10}  {least:>10}  {most:>10}",
                times.len(),
                total / times.len() as u64,
            );
        }
        out
    }
}

/// A JSON string.
fn json(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if (c as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: u64, row: u64, event: u64, what: u64) -> u64 {
        (time & 0xffff_ffff) << 32 | row << 12 | event << 2 | what
    }

    /// Two blocks with two groups; the clock wraps around in between.
    fn buffer() -> Vec<u64> {
        let turn = 1u64 << 32;
        vec![
            2 << 32 | 2,
            record(turn - 10, 0, 0, 0),
            record(turn - 5, 3, 1, 0),
            0,
            record(turn + 20, 0, 0, 1),
            record(turn + 15, 3, 1, 1),
            record(turn + 21, 0, 1, 2),
            record(turn + 22, 0, 0, 3),
            record(5, 0, 0, 0),
        ]
    }

    #[test]
    fn records_become_events() {
        let profile = Profile::decode(&buffer(), &["load", "mma"]).unwrap();
        assert_eq!((profile.blocks, profile.groups), (2, 2));
        let found: Vec<_> = (profile.events.iter())
            .map(|e| (e.block, e.group, e.name.as_str(), e.point, e.time))
            .collect();
        assert_eq!(
            found,
            [
                (0, 0, "load", ProfilePoint::Begin, 0),
                (1, 1, "mma", ProfilePoint::Begin, 5),
                (1, 1, "mma", ProfilePoint::End, 25),
                (0, 0, "load", ProfilePoint::End, 30),
                (0, 0, "mma", ProfilePoint::Instant, 31),
            ]
        );
    }

    #[test]
    fn a_profile_is_a_trace_and_a_table() {
        let profile = Profile::decode(&buffer(), &["load"]).unwrap();
        let trace = profile.to_perfetto();
        assert!(
            trace.contains("{\"name\":\"load\",\"ph\":\"E\",\"ts\":0.030,\"pid\":0,\"tid\":0}"),
            "{trace}"
        );
        assert!(trace.contains("\"args\":{\"name\":\"block 1\"}"));
        assert_eq!(
            profile.summary(),
            "event     count         total        mean       least        most\n\
             1             2            20          10           0          20\n\
             load          1            30          30          30          30\n"
        );
    }

    #[test]
    fn buffers_of_others_are_refused() {
        let refused = |buffer: &[u64], expected: &str| {
            let error = Profile::decode(buffer, &[]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        refused(&[], "empty");
        refused(&[0, 5], "no profiler wrote");
        refused(&[1 << 32 | 1, record(1, 1, 0, 0)], "row 1, and there are 1");
    }
}
