//! Kernels with one synchronization taken out: does the simulator report each of them?
//!
//! A *mutant* is the text of a kernel file with one call of `SYNCHRONIZATIONS` replaced by nothing. It is *reported* if the
//! run of a kernel ends in a fault; *wrong* if it ends with other values and no fault; *silent* if nothing is different.
//! `mutants.txt` lists those that may be silent, with the reason.

use std::collections::BTreeMap;

use tirx_sim::LaunchOptions;

use crate::machine::Simulator;
use crate::{Case, stages};

/// Calls without which threads, or threads and copies, are no longer ordered. Each is a statement of its own.
const SYNCHRONIZATIONS: &[&str] = &[
    "T.cuda.cta_sync",
    "T.cuda.warp_sync",
    "T.cuda.warpgroup_sync",
    "T.cuda.cluster_sync",
    "T.cuda.grid_sync",
    "T.cuda.thread_fence",
    "T.tvm_storage_sync",
    "T.ptx.bar.sync",
    "T.ptx.bar.arrive",
    "T.ptx.barrier.",
    "T.ptx.fence",
    "T.ptx.mbarrier.",
    "T.ptx.griddepcontrol.wait",
    "T.ptx.cp_async.wait_group",
    "T.ptx.cp_async.commit_group",
    "T.ptx.cp_async.mbarrier",
    "T.ptx.cp_async.bulk.wait_group",
    "T.ptx.cp_async.bulk.commit_group",
    "T.ptx.wgmma.fence",
    "T.ptx.wgmma.commit_group",
    "T.ptx.wgmma.wait_group",
    "T.ptx.tcgen05.fence",
    "T.ptx.tcgen05.commit",
    "T.ptx.tcgen05.wait",
];

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The message of the fault.
    Reported(String),
    /// What is different.
    Wrong(String),
    /// Nothing is.
    Silent,
    /// It cannot be built, or nothing runs it.
    NotRun,
}

/// One synchronization taken out.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// `file kernel statement`, with a number where the kernel has the statement several times.
    pub name: String,
    /// Line of the file, from 1.
    pub line: usize,
    kernel: String,
    text: String,
}

/// The call that starts at `at`: one past its closing parenthesis.
fn call_end(text: &str, at: usize) -> Option<usize> {
    let open = at + text[at..].find('(')?;
    let mut depth = 0;
    for (i, c) in text[open..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(open + i + 1);
        }
    }
    None
}

/// The mutants of a file.
pub fn mutants(case: &Case) -> Vec<Mutant> {
    let mut out = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut kernel = String::new();
    let mut start = 0;
    for (number, line) in case.text.split_inclusive('\n').enumerate() {
        let trimmed = line.trim_start();
        if let Some(rest) = trimmed.strip_prefix("def ") {
            kernel = rest.split('(').next().unwrap_or_default().to_string();
        }
        let mut from = 0;
        while let Some(found) = line[from..].find("T.") {
            let at = from + found;
            from = at + 2;
            let statement = line[..at].trim().is_empty() || line[..at].trim_end().ends_with([';', ':']);
            let known = SYNCHRONIZATIONS.iter().any(|s| {
                let rest = line[at..].strip_prefix(s);
                rest.is_some_and(|r| s.ends_with('.') || r.starts_with(['(', '.']))
            });
            if !statement || !known || line.trim_start().starts_with('#') {
                continue;
            }
            let Some(end) = call_end(&case.text, start + at) else {
                continue;
            };
            let call = &case.text[start + at..end];
            let mut name = format!("{} {kernel} {call}", case.name());
            let times = seen.entry(name.clone()).or_default();
            *times += 1;
            if *times > 1 {
                name = format!("{name} {times}");
            }
            let text = format!("{}T.evaluate(0){}", &case.text[..start + at], &case.text[end..]);
            out.push(Mutant {
                name,
                line: number + 1,
                kernel: kernel.clone(),
                text,
            });
        }
        start += line.len();
    }
    out
}

impl Mutant {
    /// Runs it.
    ///
    /// # Errors
    /// Where the file's expectations cannot be read.
    pub fn run(&self, case: &Case) -> Result<Outcome, String> {
        let runs = case.runs()?;
        let whole = !runs.iter().any(|r| r.kernel == self.kernel);
        let mut outcome = Outcome::NotRun;
        for run in runs
            .iter()
            .filter(|r| (whole || r.kernel == self.kernel) && !r.faults())
        {
            let mutated = case.with_text(self.text.clone());
            let Ok(module) = mutated.build_one(&run.kernel) else {
                continue;
            };
            let Ok(lowered) = stages(&module, "sm_90a", &mut |_, _| Ok(())) else {
                continue;
            };
            for seed in 0..2 {
                let mut machine = Simulator::with_options(LaunchOptions {
                    step_limit: Some(1 << 20),
                    seed,
                    dependent: case.text.contains("griddepcontrol.wait"),
                    ..LaunchOptions::default()
                });
                match run.check(&mut machine, &lowered) {
                    Ok(()) if outcome == Outcome::NotRun => outcome = Outcome::Silent,
                    Ok(()) => {}
                    // Another order of atomics may leave other values.
                    Err(message) if message.starts_with("element ") && seed == 0 => {
                        outcome = Outcome::Wrong(message);
                    }
                    Err(message) if message.starts_with("element ") => {}
                    Err(message) => return Ok(Outcome::Reported(message)),
                }
            }
        }
        Ok(outcome)
    }
}

/// The mutants that may be silent, with the reasons: lines `name: reason`.
pub fn redundant(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter(|l| !l.starts_with('#'));
    let pairs = lines.filter_map(|l| l.split_once(": "));
    pairs
        .map(|(name, reason)| (name.to_string(), reason.to_string()))
        .collect()
}
