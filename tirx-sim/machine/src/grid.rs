//! A launch: blocks in parallel, results.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::bytecode::{AsyncInst, Code, Inst, Special};
use crate::exec::prior::Before;
use crate::exec::steps;
use crate::exec::{Accuracy, Context, DeviceArguments, Group, GroupStop, Ledger, deadlock};
use crate::explore::Exploration;
use crate::fault::{Fault, FaultKind, Stats};
use crate::findings::{ContinueAfter, Findings};
use crate::memory::{Memory, Prior, Storage};
use crate::numeric::Kind;
use crate::observe::{Observe, Observed, Observer};
use crate::stand_in::StandIns;
use crate::timeline::TimelineEvent;
use crate::turns::{Left, Taken, Turns};
use crate::window::Window;

/// Branches and loop iterations of a block after which the block is considered endless.
const MAX_STEPS: u64 = 1 << 28;

/// One launch of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// Blocks along x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y, z.
    pub block: [u32; 3],
    /// Blocks of a cluster along x, y, z; ones without clusters.
    pub cluster: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// One per parameter: addresses, and scalars as little-endian bits.
    pub args: &'a [u64],
    /// The arguments of ranks 1, 2, … where devices of a world run the kernel together; `args` are those of rank 0.
    pub peers: &'a [Vec<u64>],
}

/// How a launch is run.
#[derive(Clone, Copy, Debug)]
pub struct LaunchOptions {
    /// Whether unordered accesses to shared and global memory are errors.
    pub check_races: bool,
    /// Most branches and loop iterations of one block, against kernels that never end. `None`: no limit. The default is
    /// 2²⁸, some seconds to a minute.
    pub step_limit: Option<u64>,
    /// Chooses when asynchronous copies and matrix operations take effect, which warp comes first (0: the first, 1: the last,
    /// another number: a random order), which lane of an atomic, in which order blocks affect one another, and from 2 on
    /// where threads pause for others behind an atomic or an arrival. Each number gives one schedule, and one result or
    /// report, on any number of threads.
    pub seed: u64,
    /// Whether the launch is a programmatic dependent one: memory that the previous launch in the same [`Memory`] has used
    /// may only be accessed behind `griddepcontrol.wait`, unless the host has waited meanwhile ([`Memory::synchronize`], or
    /// a copy).
    pub programmatic: bool,
    /// Whether that holds for all global memory.
    pub dependent: bool,
    /// The rank of the first device of the launch, to which memory of that rank alone belongs.
    pub rank: u32,
    /// The linear index of the block whose timeline is recorded.
    pub timeline: Option<u64>,
    /// What is reported in [`Stats::findings`] rather than as the error that ends the launch. Accesses that a warp makes together
    /// with such a read are not checked for races.
    pub continue_after: ContinueAfter,
    /// Whether float values have shadows of double precision, for [`Stats::accuracy`]; a launch runs some hundred times slower with
    /// them.
    pub accuracy: bool,
    /// What else is observed; a launch runs some ten times slower with it.
    pub observe: Observe,
}

impl Default for LaunchOptions {
    /// Races are checked; a block that does not end is stopped.
    fn default() -> LaunchOptions {
        LaunchOptions {
            check_races: true,
            step_limit: Some(MAX_STEPS),
            seed: 0,
            programmatic: false,
            dependent: false,
            rank: 0,
            timeline: None,
            continue_after: ContinueAfter::default(),
            accuracy: false,
            observe: Observe::default(),
        }
    }
}

/// Runs a grid whose launch has been checked to its end, blocks in parallel on rayon's threads. `turn` is told the
/// branch or loop that some block came to last, now and then. What has the address of one of `windows` among the arguments
/// may not be left.
///
/// An error that several threads find is found again by one thread, from the same memory: which of two unordered accesses
/// comes second, and is reported, does not depend on the threads then.
///
/// # Errors
/// The first error in the order of the blocks' turns (`turns.rs`). Memory holds what was written until then.
pub fn run(
    code: &Code,
    turn: &AtomicUsize,
    memory: &Memory,
    launch: &Launch<'_>,
    stand_ins: &StandIns,
    options: &LaunchOptions,
    windows: &[(u64, Window)],
) -> Result<Stats, Fault> {
    let (ctx, images) = context(code, turn, memory, launch, stand_ins, options, windows);
    let all = options.dependent || code.launches_dependents;
    let threads = match in_turn_alone(code) {
        true => 1,
        false => rayon_core::current_num_threads() as u64,
    };
    let (ctx, mut result) = attempt(ctx, threads, all);
    let again = |fault: &Fault| threads > 1 && fault.kind != FaultKind::StepLimit;
    let (ctx, result) = match (&result, &ctx.ledger) {
        (Err(fault), Some(ledger)) if again(fault) && ledger.restore() => {
            let (ctx, second) = attempt(ctx, 1, all);
            if second.is_err() {
                result = second;
            }
            (ctx, result)
        }
        _ => (ctx, result),
    };
    let used = ctx.ledger.map(Ledger::into_prior).unwrap_or_default();
    memory.set_prior(Some(Prior {
        before: images,
        ..used
    }));
    result
}

/// Runs a grid whose launch has been checked once, in the order that a search asks for; the statistics where the run came to
/// its end. Memory is as before the launch in each run of the search.
///
/// # Errors
/// As for [`run`]; the notes end with what acted last.
#[expect(clippy::too_many_arguments, reason = "those of `run`, and the search")]
pub fn explore(
    code: &Code,
    turn: &AtomicUsize,
    memory: &Memory,
    launch: &Launch<'_>,
    stand_ins: &StandIns,
    options: &LaunchOptions,
    windows: &[(u64, Window)],
    exploration: &Exploration,
) -> Result<Stats, Fault> {
    let (mut ctx, images) = context(code, turn, memory, launch, stand_ins, options, windows);
    ctx.exploring = true;
    ctx.accuracy = None;
    let all = options.dependent || code.launches_dependents;
    let total = track(&mut ctx, all, false);
    let result = steps::run(&ctx, total, exploration);
    let extent = extent(&ctx);
    let observer = ctx.observer.take();
    let observer = observer.map(|observer| observer.finish(ctx.code, extent));
    let used = ctx.ledger.map(Ledger::into_prior).unwrap_or_default();
    memory.set_prior(Some(Prior {
        before: images,
        ..used
    }));
    let Observed {
        counts,
        snapshots,
        coverage,
        work,
    } = observer.unwrap_or_default();
    let observed = Stats {
        counts,
        snapshots,
        coverage,
        work,
        ..Stats::default()
    };
    match result {
        Ok((lane_ops, output)) => Ok(Stats {
            lane_ops,
            output,
            findings: ctx.findings.take(),
            ..observed
        }),
        Err(fault) => {
            let output = fault.output.clone();
            let fault = ctx.findings.told(fault);
            Err(fault.after(Stats { output, ..observed }))
        }
    }
}

/// The blocks of a launch, and the warps of a block.
fn extent(ctx: &Context<'_>) -> (u64, u64) {
    let threads: u64 = ctx.block.iter().map(|extent| u64::from(*extent)).product();
    (ctx.blocks(), threads.div_ceil(32))
}

/// What the blocks of a launch share, and the memory contents that the next launch may find.
fn context<'a>(
    code: &'a Code,
    turn: &'a AtomicUsize,
    memory: &'a Memory,
    launch: &Launch<'a>,
    stand_ins: &'a StandIns,
    options: &LaunchOptions,
    windows: &[(u64, Window)],
) -> (Context<'a>, BTreeMap<u64, Storage>) {
    let devices = [launch.args]
        .into_iter()
        .chain(launch.peers.iter().map(Vec::as_slice));
    let devices: Vec<_> = devices.map(|args| device(code, memory, args, windows)).collect();
    let uses_arrivals = code
        .specials
        .iter()
        .any(|(_, special)| *special == Special::Arrivals);
    let arrivals = uses_arrivals.then(|| memory.alloc_symmetric(devices.len() as u32, 8));
    let before = match memory.prior() {
        _ if options.dependent => Some(Before::Any),
        prior => prior.filter(|_| options.programmatic).map(Before::Grid),
    };
    // What the next launch may overtake is remembered, with the memory contents that it may find.
    let overtaken = code.launches_dependents;
    let params = devices.iter().flat_map(|device| device.params.iter().flatten());
    let images = params.filter(|_| overtaken);
    let images = images
        .map(|(storage, _)| (storage.address, storage.copy()))
        .collect();
    let context = Context {
        code,
        memory,
        grid: launch.grid,
        block: launch.block,
        cluster: launch.cluster,
        devices,
        arrivals,
        ledger: None,
        stand_ins,
        check_races: options.check_races,
        raw: Mutex::new(None),
        step_limit: options.step_limit.unwrap_or(u64::MAX),
        turn,
        seed: options.seed,
        before,
        timeline: options.timeline,
        first_rank: options.rank,
        shared_bytes: launch.shared_bytes,
        turns: Turns::new(0, 0),
        observer: (options.observe != Observe::default()).then(|| Observer::new(options.observe, code)),
        accuracy: options.accuracy.then(Accuracy::default),
        first_fault: AtomicU64::new(u64::MAX),
        exploring: false,
        findings: Findings::new(options.continue_after),
        sc_fences: Mutex::default(),
    };
    (context, images)
}

/// The arguments of one device.
fn device(code: &Code, memory: &Memory, args: &[u64], windows: &[(u64, Window)]) -> DeviceArguments {
    let params = code.params.iter().zip(args).map(|((_, kind), address)| {
        let storage = (*kind == Kind::Ptr).then(|| memory.find(*address)).flatten()?;
        let offset = address - storage.address;
        Some((storage, offset))
    });
    let params: Vec<_> = params.collect();
    let windows = params.iter().zip(args).map(|(param, address)| {
        let of_it = windows.iter().filter(|(of, _)| of == address && param.is_some());
        of_it.map(|(_, window)| window.clone()).collect()
    });
    DeviceArguments {
        args: args.to_vec(),
        windows: windows.collect(),
        params,
        sheets: Vec::new(),
    }
}

/// Begins to track memory: `all` of it, rather than what the kernel may write. Gives the number of groups.
fn track(ctx: &mut Context<'_>, all: bool, threads: bool) -> u64 {
    let total = Group::count(ctx);
    let params: Vec<_> = ctx.devices.iter().map(|device| &device.params[..]).collect();
    let ledger = ctx
        .check_races
        .then(|| Ledger::new(ctx.code, &params, all, threads));
    for device in &mut ctx.devices {
        let sheets = device.params.iter().map(|param| {
            let (storage, _) = param.as_ref()?;
            ledger.as_ref()?.sheet(storage)
        });
        device.sheets = sheets.collect();
    }
    ctx.ledger = ledger;
    ctx.raw = Mutex::new(None);
    total
}

/// Whether a kernel does what has to be done in turn all the time: it takes blocks off the grid, or calls functions of the
/// host, which may do anything.
fn in_turn_alone(code: &Code) -> bool {
    let cancels = |inst: &AsyncInst| matches!(inst, AsyncInst::TryCancel { .. });
    let calls = |inst: &Inst| matches!(inst, Inst::CallStandIn { .. });
    code.asynchronous.iter().any(cancels) || code.insts.iter().any(calls)
}

/// Runs the grid once, from the beginning. `all` memory is tracked, rather than what the kernel may write.
fn attempt<'a>(mut ctx: Context<'a>, threads: u64, all: bool) -> (Context<'a>, Result<Stats, Fault>) {
    let workers = threads.min(Group::count(&ctx));
    let total = track(&mut ctx, all, workers > 1);
    let room = ctx.most_resident() / Group::blocks_of(&ctx).max(1) * u64::from(ctx.ranks());
    ctx.turns = Turns::new(total, room);
    ctx.first_fault = AtomicU64::new(u64::MAX);
    ctx.accuracy = ctx.accuracy.map(|_| Accuracy::default());
    ctx.findings = Findings::new(ctx.findings.after);
    ctx.observer = ctx
        .observer
        .map(|observer| Observer::new(observer.what, ctx.code));
    let results = Results::default();
    if workers <= 1 {
        results.work(&ctx);
    } else {
        rayon_core::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|_| results.work(&ctx));
            }
        });
    }
    let mut results = results.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    let turns = std::mem::replace(&mut ctx.turns, Turns::new(0, 0));
    let (mut stuck, not_started) = turns.into_stuck();
    if results.fault.is_none() {
        let deadlock = deadlock(&ctx, stuck.iter_mut(), not_started);
        results.fault = deadlock.map(|fault| (0, fault));
    }
    results.output.sort_by_key(|(block, _)| *block);
    let extent = extent(&ctx);
    let observer = ctx.observer.take();
    let observer = observer.map(|observer| observer.finish(ctx.code, extent));
    let Observed {
        counts,
        snapshots,
        coverage,
        work,
    } = observer.unwrap_or_default();
    let fault = results.fault.map(|(_, fault)| ctx.findings.told(fault));
    let keeps = ctx.accuracy.is_some();
    let shadows = ctx.accuracy.take().map(|accuracy| accuracy.finish(ctx.code));
    let (accuracy, shadows) = shadows.unwrap_or_default();
    ctx.accuracy = keeps.then(Accuracy::default);
    let stats = Stats {
        findings: ctx.findings.take(),
        accuracy,
        shadows,
        counts,
        snapshots,
        coverage,
        work,
        lane_ops: results.lane_ops,
        timeline: results.timeline,
        output: results.output.into_iter().map(|(_, text)| text).collect(),
    };
    let result = match fault {
        Some(fault) => Err(fault.after(stats)),
        None => Ok(stats),
    };
    (ctx, result)
}

/// What the groups of a launch have done.
#[derive(Default)]
struct Results(Mutex<Done>);

#[derive(Default)]
struct Done {
    lane_ops: u64,
    timeline: Vec<TimelineEvent>,
    output: Vec<(u64, String)>,
    /// The fault and the turn in which it happened.
    fault: Option<(u64, Fault)>,
}

/// A turn that has begun. It ends when this is dropped, which a panic does too, so that no thread waits for it for ever.
struct Turn<'t> {
    turns: &'t Turns<Group>,
    number: u64,
    left: Option<Left<Group>>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns
            .end(self.number, self.left.take().unwrap_or(Left::Failed));
    }
}

impl Results {
    fn done(&self) -> MutexGuard<'_, Done> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work of one thread.
    fn work(&self, ctx: &Context<'_>) {
        let mut spare: Option<Group> = None;
        while let Some((number, taken)) = ctx.take_turn() {
            let mut turn = Turn {
                turns: &ctx.turns,
                number,
                left: None,
            };
            let mut group = match taken {
                Taken::Waiting(group) => group,
                Taken::Fresh(which) => {
                    let mut group = spare.take().unwrap_or_else(|| Group::new(ctx));
                    group.start(ctx, ctx.in_order_of_starts(which));
                    group
                }
            };
            let result = group.run(ctx, number);
            let (lane_ops, output) = group.harvest();
            let timeline = group.timeline(ctx);
            let mut done = self.done();
            done.lane_ops += lane_ops;
            done.timeline.extend(timeline);
            if !output.is_empty() {
                done.output.push((group.first_block(), output));
            }
            turn.left = Some(match result {
                Ok(GroupStop::Waiting(moved)) => Left::Waiting(group, moved),
                Ok(GroupStop::Done) => {
                    spare = Some(group);
                    Left::Done
                }
                Err(fault) => {
                    done.note(ctx, number, fault);
                    spare = Some(group);
                    Left::Failed
                }
            });
        }
    }
}

impl Done {
    fn note(&mut self, ctx: &Context<'_>, turn: u64, fault: Fault) {
        if self.fault.as_ref().is_none_or(|(first, _)| turn < *first) {
            self.fault = Some((turn, fault));
        }
        ctx.first_fault.fetch_min(turn, Ordering::Relaxed);
    }
}
