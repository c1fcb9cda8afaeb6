//! `cargo tirx sim`: runs a kernel on the simulator, with arrays from and to files.

mod arguments;
mod once;
mod orders;

use std::collections::HashMap;
use std::path::PathBuf;

use tirx_core::diagnostic::{Level, Message};
use tirx_services::cost::Gpu;
use tirx_sim::{Excusable, LineCoverage, Program};

use self::arguments::{Prepared, prepare};
pub(crate) use self::arguments::{inferred_shape, named, scalar, shown_name};
use self::once::{Ran, once, variable, write_outs};
use self::orders::every_order;
use crate::accuracy;
use crate::cost;
use crate::coverage;
use crate::failure::{Failure, Result, user};
use crate::input::Input;
use crate::observed;
use crate::output::{Output, out, say};
use crate::tensor_map;

#[derive(clap::Args, Debug)]
pub(crate) struct Simulate {
    #[command(flatten)]
    input: Input,
    /// A tensor argument. NAME is the parameter, its buffer, or the parameter's number: `--arg 0=a.npy`. With --ranks,
    /// `a{rank}.npy` is a file for each rank, and `peers:B` has the address of tensor B on every rank.
    #[arg(long = "arg", value_name = "NAME=FILE.npy")]
    args: Vec<String>,
    /// A scalar argument. With --ranks, `rank` is the number of the device, and `window:B` the multicast address of tensor B.
    #[arg(long = "scalar", value_name = "NAME=VALUE")]
    scalars: Vec<String>,
    #[arg(long = "tensor-map", value_name = "NAME=WHAT,box=…", help = tensor_map::HELP)]
    tensor_maps: Vec<String>,
    /// Writes a tensor when the kernel is done; it starts zero-filled unless --arg sets it. With --ranks, FILE contains `{rank}`.
    #[arg(long = "out", value_name = "NAME=FILE.npy")]
    outs: Vec<String>,
    /// Runs the kernel on this many devices at once. Their tensors are symmetric memory (T.nvshmem, peer addresses, multimem).
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    ranks: u32,
    /// Reports signed overflow and too-large shifts, which are undefined in CUDA C++; otherwise integers wrap.
    #[arg(long)]
    check_overflow: bool,
    /// Turns race detection off, for a faster run.
    #[arg(long)]
    no_race_check: bool,
    /// Continues after findings of these kinds, so that results can still be compared. Accesses made by a warp together with an
    /// uninitialized read are not checked for races.
    #[arg(long, value_name = "KIND", value_enum, value_delimiter = ',')]
    continue_after: Vec<ContinuableFault>,
    /// Branches and loop iterations allowed per block; defaults to TIRX_SIM_STEP_LIMIT, or 2^28.
    #[arg(long, value_name = "STEPS")]
    step_limit: Option<u64>,
    /// Selects a schedule: the order of warps and asynchronous operations; defaults to TIRX_SIM_SEED, or 0.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Writes the timeline of one block's warps, with their operations and waits: a Perfetto trace, or a picture if the file ends
    /// in .svg.
    #[arg(long, value_name = "FILE.json|FILE.svg")]
    timeline: Option<PathBuf>,
    /// The linear index of the block that --timeline shows.
    #[arg(long, default_value_t = 0, value_name = "INDEX")]
    timeline_block: u64,
    /// Runs this many schedules, starting at --seed, and reports the first failure.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    schedules: u64,
    /// Runs every order of synchronizing operations (mbarriers, atomics, flags) that can make a difference, up to this many
    /// runs, and reports whether one fails.
    #[arg(
        long,
        value_name = "RUNS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "20000",
        value_parser = clap::value_parser!(u64).range(1..),
        conflicts_with_all = ["schedules", "timeline", "stop"]
    )]
    all_schedules: Option<u64>,
    /// Prints instructions, memory transactions, bank conflicts and barriers per source line.
    #[arg(long)]
    counters: bool,
    /// Prints the least time that a GPU (A100, H100, H200, B200, L40S, RTX4090) takes for the run's work, by resource.
    #[arg(long, value_name = "GPU", value_parser = cost::gpu, conflicts_with = "all_schedules")]
    cost: Option<Gpu>,
    /// With --cost: the time of one multiprocessor with its share of the memories, so that a small run stands for a large one.
    #[arg(long, requires = "cost")]
    per_multiprocessor: bool,
    /// Prints what the runs have not exercised: lines, directions of branches, barriers, phases of mbarriers.
    #[arg(long)]
    coverage: bool,
    /// Prints the largest relative errors of float values per source line: each value has a shadow of double precision.
    #[arg(long, conflicts_with = "all_schedules")]
    accuracy: bool,
    /// Prints the values of the kernel's variables each time this line is reached.
    #[arg(long = "break", value_name = "LINE")]
    stop: Option<u32>,
    /// The thread whose values --break prints, as `x,y,z`; defaults to whole warps.
    #[arg(long, value_name = "X,Y,Z", requires = "stop")]
    thread: Option<String>,
    /// The block that --break stops in, as `x,y,z`.
    #[arg(long, value_name = "X,Y,Z", requires = "stop", default_value = "0,0,0")]
    block: String,
    /// A variable or array element (`s[3]`) to print at --break; defaults to the variables that the kernel names.
    #[arg(long, value_name = "NAME", requires = "stop")]
    watch: Vec<String>,
}

/// What --continue-after may name.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum ContinuableFault {
    /// Reads of shared, local or tensor memory that no thread has written; they give zeros.
    UnwrittenReads,
    /// Tensor memory that is freed while other threads use it; they use it until it is allocated again.
    FreedColumns,
    /// A warp that arrives twice in one phase of a named barrier.
    DoubleArrivals,
    /// A block that ends while an asynchronous operation reads its shared memory.
    UnfinishedReads,
    /// A warp that ends without having waited for its loads of tensor memory (tcgen05.wait::ld).
    UnwaitedLoads,
    /// Shared memory and mbarriers that asynchronous operations use without a proxy fence after the threads' writes.
    MissingFences,
}

impl From<ContinuableFault> for Excusable {
    fn from(kind: ContinuableFault) -> Excusable {
        match kind {
            ContinuableFault::UnwrittenReads => Excusable::UnwrittenRead,
            ContinuableFault::FreedColumns => Excusable::FreedColumns,
            ContinuableFault::DoubleArrivals => Excusable::DoubleArrival,
            ContinuableFault::UnfinishedReads => Excusable::UnfinishedRead,
            ContinuableFault::UnwaitedLoads => Excusable::UnwaitedLoad,
            ContinuableFault::MissingFences => Excusable::MissingFence,
        }
    }
}

pub(crate) fn run(command: &Simulate, output: &Output) -> Result<()> {
    let first = command
        .seed
        .map_or_else(|| variable("TIRX_SIM_SEED"), |v| Ok(Some(v)))?
        .unwrap_or(0);
    let last = first.saturating_add(command.schedules.max(1) - 1);
    let prepared = prepare(command, output)?;
    let mut programs: HashMap<String, Program> = HashMap::new();
    if let Some(most) = command.all_schedules {
        return every_order(command, output, &prepared, first, most, &mut programs);
    }
    let ran = each_schedule(command, &prepared, first, last, &mut programs)?;
    out(&ran.printed)?;
    output.show(&ran.findings);
    if command.schedules > 1 && ran.fault.is_none() {
        say(&format!(
            "{} schedules, {first} to {last}: none fails\n",
            command.schedules
        ));
    }
    let reported = report(command, &prepared, &ran);
    match ran.fault {
        None => reported.and_then(|()| write_outs(&ran.bound)),
        // The fault is the news; why there is no report is said behind it.
        Some(mut fault) => {
            if let Err(Failure::User(messages)) = reported {
                fault.extend(messages);
            }
            Err(Failure::User(fault))
        }
    }
}

/// Runs the kernel by one schedule after the other; the last run, or the first that ends in a fault.
fn each_schedule(
    command: &Simulate,
    prepared: &Prepared,
    first: u64,
    last: u64,
    programs: &mut HashMap<String, Program>,
) -> Result<Ran> {
    let mut seed = first;
    let mut covered = Vec::new();
    loop {
        let mut ran = once(command, prepared, seed, programs, None)?;
        LineCoverage::merge(&mut covered, std::mem::take(&mut ran.coverage));
        if let Some(message) = ran.fault.iter_mut().flatten().last()
            && command.schedules > 1
        {
            let text = format!("schedule {seed} is the first that fails: `--seed {seed}` repeats it");
            message.children.push(Message::new(Level::Note, text));
        }
        if seed == last || ran.fault.is_some() {
            ran.coverage = covered;
            return Ok(ran);
        }
        seed += 1;
    }
}

/// Writes what was observed of a run.
fn report(command: &Simulate, prepared: &Prepared, ran: &Ran) -> Result<()> {
    if let Some(path) = &command.timeline {
        let text = match path.extension().is_some_and(|end| end == "svg") {
            true => tirx_services::timeline::svg(&ran.events),
            false => tirx_sim::trace(&ran.events),
        };
        std::fs::write(path, text).map_err(|e| user(format_args!("cannot write {}: {e}", path.display())))?;
    }
    if let Some(line) = command.stop {
        let own = observed::written_names(&prepared.lowered.sources);
        out(&observed::stops(line, &ran.snapshots, &command.watch, &own)?)?;
    }
    if command.counters {
        out(&observed::table(&ran.counts))?;
    }
    if let Some(gpu) = &command.cost {
        out(&cost::table(gpu, !command.per_multiprocessor, &ran.work))?;
    }
    if command.coverage {
        out(&coverage::table(&ran.coverage))?;
    }
    if command.accuracy {
        out(&accuracy::table(&ran.accuracy))?;
    }
    Ok(())
}
