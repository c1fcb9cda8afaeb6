//! The runs that the `# sim:` lines of a file describe, with their reports as data.

use std::sync::Arc;

use serde::Serialize;
use tirx_core::diagnostic::{Level, Message};
use tirx_core::script::Imports;
use tirx_expect::machine::Simulator;
use tirx_expect::runs::{Outcome, Tensor};
use tirx_expect::{Run, expressions};
use tirx_sim::{Exploration, LaunchOptions, Observe, TimelineEvent, Track};

use crate::counters::{Counted, merged};
use crate::data::Said;
use crate::kernel::{Loaded, gpu_named, judge};

/// How runs are made.
#[derive(Clone, Debug)]
pub struct Options {
    /// The GPU of runs that name none.
    pub arch: String,
    /// The first schedule; 0 without one.
    pub seed: Option<u64>,
    /// Schedules for each run; a run that asks for more in its file gets these unless there is a `seed`.
    pub schedules: u64,
    /// Every order of synchronizing operations, in so many runs at most, in place of schedules.
    pub all_orders: Option<u64>,
    /// Whether signed overflow is an error.
    pub check_overflow: bool,
    /// Whether races are found.
    pub check_races: bool,
    /// Branches and loop iterations of one block; the simulator's own limit without one.
    pub step_limit: Option<u64>,
    /// Whether instructions and memory transactions are counted.
    pub counters: bool,
    /// The linear index of the block whose timeline is recorded.
    pub timeline: Option<u64>,
    /// The only kernel that is run.
    pub kernel: Option<String>,
    /// Elements of each tensor that are shown.
    pub elements: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            arch: "sm_90a".to_string(),
            seed: None,
            schedules: 1,
            all_orders: None,
            check_overflow: false,
            check_races: true,
            step_limit: None,
            counters: false,
            timeline: None,
            kernel: None,
            elements: 0,
        }
    }
}

/// A tensor of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TensorReport {
    /// The parameter.
    pub name: String,
    /// Element type.
    pub dtype: String,
    /// Extents.
    pub shape: Vec<i64>,
    /// Its first elements before the run.
    pub before: Vec<String>,
    /// The first elements that the file expects, if it expects others than before.
    pub expected: Option<Vec<String>>,
    /// Its first elements after the run; none after a fault.
    pub after: Option<Vec<String>>,
    /// A digest of all bytes after the run.
    pub digest: Option<String>,
}

/// An event of the timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// The warp.
    pub warp: u32,
    /// Whether it is an asynchronous operation that the warp issued.
    pub engine: bool,
    /// "runs", "block barrier", "the bulk copy".
    pub name: String,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The start, in instructions of a warp.
    pub start: u64,
    /// The end.
    pub end: u64,
}

/// Orders that were explored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Orders {
    /// Orders that were run.
    pub runs: u64,
    /// The reason why not every order was run.
    pub cut: Option<String>,
}

/// A run, on one GPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunReport {
    /// The kernel.
    pub kernel: String,
    /// The line of `# sim:`, from 1.
    pub line: usize,
    /// The GPU.
    pub arch: String,
    /// The schedule that decided.
    pub schedule: u64,
    /// Whether the run is as described.
    pub passed: bool,
    /// The first difference from the description.
    pub message: Option<String>,
    /// Whether a fault is described.
    pub expects_fault: bool,
    /// The fault of the simulator.
    pub fault: Option<Said>,
    /// Faults that the run went on after.
    pub findings: Vec<Said>,
    /// Errors of the kernel, which was not run then.
    pub errors: Vec<Said>,
    /// Its tensors.
    pub tensors: Vec<TensorReport>,
    /// Output of the kernel.
    pub printed: String,
    /// Operators times lanes.
    pub lane_ops: u64,
    /// Counts by line, and the counts of all at the end.
    pub counters: Vec<Counted>,
    /// The timeline of one block.
    pub timeline: Vec<Event>,
    /// Orders that were explored.
    pub orders: Option<Orders>,
}

/// The runs of a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Errors of the file and its `# sim:` lines.
    pub errors: Vec<Said>,
    /// The runs, in the file's order.
    pub runs: Vec<RunReport>,
}

/// Makes the runs of a file.
pub fn simulate(name: &str, text: &str, imports: &dyn Imports, options: &Options) -> Report {
    let mut report = Report::default();
    let loaded = match Loaded::new(name, text, imports) {
        Ok(loaded) => loaded,
        Err(errors) => {
            report.errors = Said::all(&errors, name, text);
            return report;
        }
    };
    let runs = match expressions::read_with(name, text, imports) {
        Ok(runs) => runs,
        Err(error) => {
            report.errors.push(of_description(&error, name, text));
            return report;
        }
    };
    let wanted = |run: &&Run| options.kernel.as_ref().is_none_or(|kernel| run.kernel == *kernel);
    for run in runs.iter().filter(wanted) {
        for arch in run.archs(&options.arch) {
            report.runs.push(one(name, text, &loaded, run, arch, options));
        }
    }
    report
}

/// An error of the `# sim:` lines, which is text: `error: …`, with a line ` --> FILE:LINE:COLUMN`.
fn of_description(error: &str, name: &str, text: &str) -> Said {
    let head = error.lines().next().unwrap_or(error);
    let message = Message::new(Level::Error, head.strip_prefix("error: ").unwrap_or(head));
    let mut said = Said::from_message(&message, name, text);
    let place = error
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("--> "));
    let line = place
        .and_then(|place| place.strip_prefix(name)?.strip_prefix(':')?.split(':').next())
        .and_then(|line| line.parse::<u32>().ok());
    if let Some(line) = line.filter(|line| *line > 0) {
        let length = text.lines().nth(line as usize - 1).unwrap_or_default();
        let length = length.encode_utf16().count() as u32;
        let at = |character| lsp_types::Position::new(line - 1, character);
        said.range = Some(lsp_types::Range::new(at(0), at(length)));
        (said.file, said.line) = (Some(name.to_string()), Some(line));
    }
    said.rendered = error.to_string();
    said
}

fn one(name: &str, text: &str, loaded: &Loaded, run: &Run, arch: &str, options: &Options) -> RunReport {
    let mut report = RunReport {
        kernel: run.kernel.clone(),
        line: run.line,
        arch: arch.to_string(),
        schedule: options.seed.unwrap_or(0),
        passed: false,
        message: None,
        expects_fault: run.faults(),
        fault: None,
        findings: Vec::new(),
        errors: Vec::new(),
        tensors: Vec::new(),
        printed: String::new(),
        lane_ops: 0,
        counters: Vec::new(),
        timeline: Vec::new(),
        orders: None,
    };
    let built = loaded.build(&run.kernel, &run.values);
    let judged = match built.and_then(|module| judge(module, Some(gpu_named(arch)?))) {
        Ok(judged) => judged,
        Err(errors) => {
            report.errors = Said::all(&errors, name, text);
            return report;
        }
    };
    let module = judged.lowered;
    let run = match run.bound_to(&judged.authored) {
        Ok(run) => &run.clone(),
        Err(error) => {
            report.message = Some(error);
            return report;
        }
    };
    let defaults = LaunchOptions::default();
    let simulator = |seed: u64| {
        let simulator = Simulator::with_options(LaunchOptions {
            seed,
            check_races: options.check_races,
            step_limit: options.step_limit.or(defaults.step_limit),
            timeline: options.timeline,
            observe: Observe {
                counters: options.counters,
                ..Observe::default()
            },
            ..defaults
        });
        match options.check_overflow {
            true => simulator.checks_overflow(),
            false => simulator,
        }
    };
    let outcome = match options.all_orders {
        None => run.outcome_by(&module, options.seed, options.schedules, &simulator),
        Some(most) => {
            let exploration = Arc::new(Exploration::new(most));
            let first = options.seed.unwrap_or(0);
            let outcome = run.outcome_of_orders(&module, &exploration, &|| {
                simulator(first).in_orders_of(&exploration)
            });
            let explored = exploration.explored();
            report.orders = Some(Orders {
                runs: explored.runs,
                cut: explored.cut,
            });
            outcome
        }
    };
    fill(&mut report, run, &outcome, name, text, options);
    report
}

/// What a run did.
fn fill(report: &mut RunReport, run: &Run, outcome: &Outcome, name: &str, text: &str, options: &Options) {
    report.schedule = outcome.schedule;
    report.passed = outcome.verdict.is_ok();
    report.message = outcome.verdict.clone().err();
    let fault = outcome.machine.fault();
    report.fault = fault.map(|fault| Said::from_message(&fault.to_diagnostic(), name, text));
    for (at, (tensor, described)) in run.tensors().enumerate() {
        let after = outcome.contents.as_ref().and_then(|contents| contents.get(at));
        report
            .tensors
            .push(tensor_report(tensor, described, after, options.elements));
    }
    let mut counts = Vec::new();
    for launch in outcome.machine.launches() {
        report.printed.push_str(&launch.output);
        report.lane_ops += launch.lane_ops;
        let findings = launch.findings.iter().map(|fault| fault.to_diagnostic());
        report
            .findings
            .extend(findings.map(|message| Said::from_message(&message, name, text)));
        report.timeline.extend(launch.timeline.iter().map(event));
        counts.extend(launch.counts.iter().cloned());
    }
    if let Some(fault) = fault {
        report.printed.push_str(&fault.output);
        report.timeline.extend(fault.stats.timeline.iter().map(event));
        counts.extend(fault.stats.counts.iter().cloned());
    }
    if options.counters {
        let (lines, all) = merged(&counts);
        report.counters = lines.iter().map(Counted::from_line).collect();
        report.counters.push(Counted::from_line(&tirx_sim::LineCounts {
            location: None,
            counts: all,
        }));
    }
}

fn tensor_report(name: &str, tensor: &Tensor, after: Option<&Vec<u8>>, most: usize) -> TensorReport {
    TensorReport {
        name: name.to_string(),
        dtype: tensor.dtype.to_string(),
        shape: tensor.shape.clone(),
        before: tensor.elements(&tensor.before, most),
        expected: tensor.after.as_ref().map(|bytes| tensor.elements(bytes, most)),
        after: after.map(|bytes| tensor.elements(bytes, most)),
        digest: after.map(|bytes| digest(bytes)),
    }
}

/// FNV-1a of 64 bits: equal bytes have equal digests on every machine.
fn digest(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

fn event(event: &TimelineEvent) -> Event {
    let (warp, engine) = match event.track {
        Track::Warp(warp) => (warp, false),
        Track::Engine(warp) => (warp, true),
    };
    Event {
        warp,
        engine,
        name: event.name.clone(),
        line: event.location.as_ref().map(|location| location.line),
        start: event.start,
        end: event.end,
    }
}
