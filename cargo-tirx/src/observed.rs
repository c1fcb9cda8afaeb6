//! What `cargo tirx sim` prints of what the simulator observed: counts by line, values at a line.

use std::collections::BTreeSet;

use tirx_core::source::SourceMap;
use tirx_services::counters::{LineSum, barriers, by_line, merged};
use tirx_sim::{Counts, FaultLocation, KINDS, LineCounts, Named, Snapshot};

use crate::failure::{Result, choice, user};
use crate::table::Table;

/// A column's title and its number.
type Column = (&'static str, fn(&Counts) -> u64);

/// The columns behind the line.
const COLUMNS: [Column; 8] = [
    ("global bytes", |c| c.global_bytes),
    ("sectors", |c| c.sectors),
    ("uncoalesced", Counts::uncoalesced),
    ("shared bytes", |c| c.shared_bytes),
    ("conflicts", Counts::bank_conflicts),
    ("local bytes", |c| c.local_bytes),
    ("cp.async bytes", |c| c.copied_bytes),
    ("TMA bytes", |c| c.bulk_bytes),
];

/// Columns from this one on are shown where they have a number.
const RARE: usize = 6;

/// The counts of each line and of all, and below it the instructions of all by kind. A line of an inline function that is
/// called several times is followed by a row for each call, with the text of the call.
pub(crate) fn table(lines: &[LineCounts]) -> String {
    let (merged, total) = merged(lines);
    let instructions = |counts: &Counts| counts.instructions.iter().sum::<u64>();
    let shown: Vec<&Column> = COLUMNS
        .iter()
        .enumerate()
        .filter(|(at, (_, number))| *at < RARE || number(&total) > 0)
        .map(|(_, column)| column)
        .collect();
    let mut table = Table::new(
        ["line", "instructions", "barriers"]
            .into_iter()
            .chain(shown.iter().map(|(title, _)| *title))
            .chain(["text"]),
    );
    let mut row = |place: String, counts: &Counts, text: String| {
        let numbers = [instructions(counts), barriers(counts)].into_iter();
        let numbers = numbers.chain(shown.iter().map(|(_, number)| number(counts)));
        let cells = [place]
            .into_iter()
            .chain(numbers.map(|number| number.to_string()))
            .chain([text]);
        table.row(cells.collect());
    };
    for LineSum { line, calls } in by_line(&merged) {
        let (place, text) = match &line.location {
            Some(location) if calls.is_empty() => (place_of(location), location.text.trim().to_string()),
            Some(location) => (
                format!("{}:{}", location.file, location.line),
                location.text.trim().to_string(),
            ),
            None => ("(none)".to_string(), String::new()),
        };
        row(place, &line.counts, text);
        for call in &calls {
            let Some(location) = &call.location else { continue };
            let text = location
                .calls()
                .next()
                .map_or("", |by| by.text.trim())
                .to_string();
            row(format!(" {}", calls_of(location)), &call.counts, text);
        }
    }
    row("all".to_string(), &total, String::new());
    let kinds = KINDS
        .iter()
        .zip(total.instructions)
        .filter(|(_, count)| *count > 0);
    let kinds: Vec<String> = kinds.map(|(kind, count)| format!("{kind} {count}")).collect();
    format!(
        "{}instructions of warps by kind: {}\n",
        table.text(),
        kinds.join(", ")
    )
}

/// `k.py:7`, and of a line of an inline function the calls around it: `k.py:7 from 19`.
pub(crate) fn place_of(location: &FaultLocation) -> String {
    format!("{}:{}{}", location.file, location.line, calls_of(location))
}

/// The calls around a line: ` from 19`.
fn calls_of(location: &FaultLocation) -> String {
    let mut text = String::new();
    for call in location.calls() {
        text += &match call.file == location.file {
            true => format!(" from {}", call.line),
            false => format!(" from {}:{}", call.file, call.line),
        };
    }
    text
}

/// Lanes as ranges: `0-3, 8`.
fn ranges(lanes: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for lane in lanes {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *lane => *last = *lane,
            _ => parts.push((*lane, *lane)),
        }
    }
    let parts = parts.into_iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// The values of a name: one where all lanes have the same, else each with its lanes.
fn values(named: &Named) -> String {
    let mut groups: Vec<(&str, Vec<u32>)> = Vec::new();
    for (lane, value) in &named.lanes {
        match groups.iter_mut().find(|(known, _)| known == value) {
            Some((_, lanes)) => lanes.push(*lane),
            None => groups.push((value, vec![*lane])),
        }
    }
    match groups.as_slice() {
        [(value, _)] => value.to_string(),
        // In the order of lanes, where each has its own.
        groups if groups.len() == named.lanes.len() => {
            let all: Vec<&str> = groups.iter().map(|(value, _)| *value).collect();
            all.join(" ")
        }
        groups => {
            let parts = groups
                .iter()
                .map(|(value, lanes)| format!("{value} (lanes {})", ranges(lanes)));
            parts.collect::<Vec<_>>().join(", ")
        }
    }
}

/// The names of kernel files: their identifiers, and `ring.stage` as `ring_stage`, which is what a member of an object is called in
/// the IR. Comments are left out.
pub(crate) fn written_names(sources: &SourceMap) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    for file in sources.files() {
        for line in file.text.lines() {
            let code = line.split('#').next().unwrap_or_default();
            for path in code.split(|c: char| !is_of_name(c) && c != '.') {
                let parts: Vec<&str> = path.split('.').filter(|part| !part.is_empty()).collect();
                // A method of the language is no name of the kernel.
                let of_language = matches!(parts.first(), Some(&("T" | "Tx" | "I")));
                names.extend(
                    parts
                        .iter()
                        .take(if of_language { 1 } else { parts.len() })
                        .map(ToString::to_string),
                );
                for end in 2..=parts.len() {
                    names.insert(parts[..end].join("_"));
                }
            }
        }
    }
    names
}

/// Elements of an array that are shown where it is not watched.
const FIRST_ELEMENTS: usize = 8;

/// The values of a snapshot for a reader who asks for none in particular: those of names that the kernel has, arrays in one line.
fn overview(values: &[Named], own: &BTreeSet<String>) -> String {
    let base = |named: &Named| named.name.split('[').next().unwrap_or_default().to_string();
    let mut text = String::new();
    let mut rest = values;
    while let Some(first) = rest.first() {
        let name = base(first);
        let count = rest.iter().take_while(|named| base(named) == name).count();
        let (group, behind) = rest.split_at(count);
        rest = behind;
        if !own.contains(&name) {
            continue;
        }
        let same = |named: &&Named| named.lanes.windows(2).all(|pair| pair[0].1 == pair[1].1);
        text += &match group {
            [one] if one.name == name => format!("    {name} = {}\n", self::values(one)),
            group => {
                let shown: Vec<String> = group
                    .iter()
                    .take_while(same)
                    .take(FIRST_ELEMENTS)
                    .map(self::values)
                    .collect();
                match shown.len() {
                    0 => format!("    {name}: {count} elements in each lane, `--watch {name}` shows them\n"),
                    all if all == count => format!("    {name} = {}\n", shown.join(" ")),
                    _ => format!(
                        "    {name} = {} … (`--watch {name}` shows more)\n",
                        shown.join(" ")
                    ),
                }
            }
        };
    }
    text
}

/// The values wherever the line was reached: those of the names that are watched, or of the kernel's `own` names.
pub(crate) fn stops(
    line: u32,
    snapshots: &[Snapshot],
    watched: &[String],
    own: &BTreeSet<String>,
) -> Result<String> {
    if snapshots.is_empty() {
        return Err(user(format_args!(
            "none of the chosen threads has run an instruction of line {line}\n  = help: a declaration has no instructions of its own: \
             name a line that uses it; --block and --thread choose other threads"
        )));
    }
    let matches = |named: &Named, wanted: &String| {
        named.name == *wanted || named.name.split('[').next() == Some(wanted)
    };
    let mut text = String::new();
    for snapshot in snapshots {
        let [x, y, z] = snapshot.block;
        let lanes: Vec<u32> = (0..32).filter(|lane| snapshot.mask >> lane & 1 != 0).collect();
        let place = snapshot.location.as_ref();
        let place = place.map_or(String::new(), |l| format!("{}: {}", place_of(l), l.text.trim()));
        text += &format!(
            "{place}\n  block ({x}, {y}, {z}), warp {}, lanes {}\n",
            snapshot.warp,
            ranges(&lanes)
        );
        if watched.is_empty() {
            text += &overview(&snapshot.values, own);
        }
        for named in &snapshot.values {
            if watched.iter().any(|wanted| matches(named, wanted)) {
                text += &format!("    {} = {}\n", named.name, values(named));
            }
        }
    }
    for wanted in watched {
        let mut all = snapshots.iter().flat_map(|snapshot| &snapshot.values);
        if !all.clone().any(|named| matches(named, wanted)) {
            let mut names: Vec<&str> = all
                .by_ref()
                .filter_map(|named| named.name.split('[').next())
                .collect();
            names.sort_unstable();
            names.dedup();
            return Err(user(format_args!(
                "line {line} has no value of `{wanted}`\n  = help: {}",
                choice(wanted, &names, "there are values of")
            )));
        }
    }
    Ok(text)
}
