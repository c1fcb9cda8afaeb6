//! Counts of a run by line: instructions, memory transactions, bank conflicts.

use serde::Serialize;
use tirx_sim::{Counts, FaultLocation, KINDS, LineCounts};

/// The counts of each line, several launches together, and the counts of all.
pub fn merged(lines: &[LineCounts]) -> (Vec<LineCounts>, Counts) {
    let mut merged: Vec<LineCounts> = Vec::new();
    let mut total = Counts::default();
    for line in lines {
        total.add(&line.counts);
        let place = line.location.as_ref().map(FaultLocation::key);
        let is_it = |known: &&mut LineCounts| known.location.as_ref().map(FaultLocation::key) == place;
        match merged.iter_mut().find(is_it) {
            Some(known) => known.counts.add(&line.counts),
            None => merged.push(line.clone()),
        }
    }
    (merged, total)
}

/// The counts of a line, whoever calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineSum {
    /// All calls together. The location is that of the first one.
    pub line: LineCounts,
    /// Each call, if the line is of an inline function that is called several times.
    pub calls: Vec<LineCounts>,
}

/// The lines of [`merged`], each with its calls.
pub fn by_line(merged: &[LineCounts]) -> Vec<LineSum> {
    let mut sums: Vec<LineSum> = Vec::new();
    for counted in merged {
        let place = |line: &LineCounts| line.location.as_ref().map(|l| (l.file.clone(), l.line));
        match sums.iter_mut().find(|sum| place(&sum.line) == place(counted)) {
            Some(sum) => {
                if sum.calls.is_empty() {
                    sum.calls.push(sum.line.clone());
                }
                sum.calls.push(counted.clone());
                sum.line.counts.add(&counted.counts);
            }
            None => sums.push(LineSum {
                line: counted.clone(),
                calls: Vec::new(),
            }),
        }
    }
    sums
}

/// The instructions that are barriers.
pub fn barriers(counts: &Counts) -> u64 {
    let kinds = KINDS.iter().zip(counts.instructions);
    kinds
        .filter(|(kind, _)| **kind == "barriers")
        .map(|(_, count)| count)
        .sum()
}

/// The counts of a line as data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counted {
    /// The file; none for the sum, and for instructions that no line asks for.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The lines that call it, innermost first, if it is a line of an inline function.
    pub calls: Vec<u32>,
    /// The line's text.
    pub text: String,
    /// Instructions of warps.
    pub instructions: u64,
    /// Barriers among them.
    pub barriers: u64,
    /// Bytes that lanes read and wrote in global memory.
    pub global_bytes: u64,
    /// Sectors of 32 bytes that these accesses touch.
    pub sectors: u64,
    /// Sectors beyond the least for these bytes.
    pub uncoalesced: u64,
    /// Bytes that lanes read and wrote in shared memory.
    pub shared_bytes: u64,
    /// Passes due to bank conflicts.
    pub bank_conflicts: u64,
    /// Bytes in local memory.
    pub local_bytes: u64,
    /// Bytes of `cp.async`.
    pub copied_bytes: u64,
    /// Bytes of bulk and tensor copies.
    pub bulk_bytes: u64,
}

impl Counted {
    /// The counts of a line.
    pub fn from_line(line: &LineCounts) -> Counted {
        let location = line.location.as_ref();
        Counted {
            file: location.map(|l| l.file.clone()),
            line: location.map(|l| l.line),
            calls: location.map_or(Vec::new(), |l| l.calls().map(|call| call.line).collect()),
            text: location.map_or(String::new(), |l| l.text.trim().to_string()),
            instructions: line.counts.instructions.iter().sum(),
            barriers: barriers(&line.counts),
            global_bytes: line.counts.global_bytes,
            sectors: line.counts.sectors,
            uncoalesced: line.counts.uncoalesced(),
            shared_bytes: line.counts.shared_bytes,
            bank_conflicts: line.counts.bank_conflicts(),
            local_bytes: line.counts.local_bytes,
            copied_bytes: line.counts.copied_bytes,
            bulk_bytes: line.counts.bulk_bytes,
        }
    }
}
