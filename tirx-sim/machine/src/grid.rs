//! A launch: blocks in parallel, results.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::bytecode::Code;
use crate::exec::prior::{Before, Prior};
use crate::exec::{Context, Group, GroupStop, Ledger};
use crate::fault::Fault;
use crate::memory::Memory;
use crate::numeric::Kind;
use crate::stand_in::StandIns;
use crate::timeline::TimelineEvent;
use crate::window::Window;

/// Branches and loop iterations of a block after which the block is considered endless.
const MOST_STEPS: u64 = 1 << 28;

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
    /// another number: a random order), which lane of an atomic, and from 2 on where threads pause for others behind an
    /// atomic or an arrival. Each number gives one schedule of a block; blocks that share memory run in parallel.
    pub seed: u64,
    /// Whether the launch is a programmatic dependent one: memory that the previous launch in the same [`Memory`] has used
    /// may only be accessed behind `griddepcontrol.wait`, unless the host has waited meanwhile ([`Memory::synchronize`], or
    /// a copy).
    pub programmatic: bool,
    /// Whether that holds for all global memory.
    pub dependent: bool,
    /// The linear index of the block whose timeline is recorded.
    pub timeline: Option<u64>,
}

impl Default for LaunchOptions {
    /// Races are checked; a block that does not end is stopped.
    fn default() -> LaunchOptions {
        LaunchOptions {
            check_races: true,
            step_limit: Some(MOST_STEPS),
            seed: 0,
            programmatic: false,
            dependent: false,
            timeline: None,
        }
    }
}

/// What a launch did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Work done: operators of the lowered kernel (arithmetic, conversions, loads, stores, calls; loop control aside)
    /// times the lanes they were run for. What is the same for a whole warp counts for each lane, as on a GPU.
    pub lane_ops: u64,
    /// What the kernel printed, by block.
    pub output: String,
    /// The events of the block that [`LaunchOptions::timeline`] names.
    pub timeline: Vec<TimelineEvent>,
}

/// Runs a grid whose launch has been checked to its end, blocks in parallel on rayon's threads. `turn` is told the
/// branch or loop that some block came to last, now and then. What has the address of one of `windows` among the arguments
/// may not be left.
///
/// # Errors
/// The first error of the lowest block that has one. Memory holds what was written until then.
pub fn run(
    code: &Code,
    turn: &AtomicUsize,
    memory: &Memory,
    launch: &Launch<'_>,
    stand_ins: &StandIns,
    options: &LaunchOptions,
    windows: &[(u64, Window)],
) -> Result<Stats, Fault> {
    let params = code.params.iter().zip(launch.args).map(|((_, kind), address)| {
        let storage = (*kind == Kind::Ptr).then(|| memory.find(*address)).flatten()?;
        let offset = address - storage.address;
        Some((storage, offset))
    });
    let params: Vec<_> = params.collect();
    let windows = params.iter().zip(launch.args).map(|(param, address)| {
        let of_it = windows.iter().filter(|(of, _)| of == address && param.is_some());
        of_it.map(|(_, window)| window.clone()).collect()
    });
    let before = match memory.prior() {
        _ if options.dependent => Some(Before::Any),
        prior => prior.filter(|_| options.programmatic).map(Before::Grid),
    };
    // What the next launch may overtake is remembered, with the memory contents that it may find.
    let overtaken = code.launches_dependents;
    let images = params.iter().flatten().filter(|_| overtaken);
    let images = images
        .map(|(storage, _)| (storage.address, storage.copy()))
        .collect();
    let ledger = options
        .check_races
        .then(|| Ledger::new(code, &params, options.dependent || overtaken));
    let sheets = params.iter().map(|param| {
        let (storage, _) = param.as_ref()?;
        ledger.as_ref()?.sheet(storage)
    });
    let ctx = Context {
        code,
        memory,
        grid: launch.grid,
        block: launch.block,
        cluster: launch.cluster,
        args: launch.args,
        sheets: sheets.collect(),
        windows: windows.collect(),
        params,
        ledger,
        stand_ins,
        check_races: options.check_races,
        raw: Mutex::new(None),
        step_limit: options.step_limit.unwrap_or(u64::MAX),
        turn,
        seed: options.seed,
        before,
        timeline: options.timeline,
        next: AtomicU64::new(0),
        first_fault: AtomicU64::new(u64::MAX),
    };
    let state = Run {
        total: Group::count(&ctx),
        inner: Mutex::new(Inner::default()),
    };
    let workers = (rayon_core::current_num_threads() as u64).min(state.total);
    if workers <= 1 {
        state.work(&ctx);
    } else {
        rayon_core::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|_| state.work(&ctx));
            }
        });
    }
    let used = ctx.ledger.map(Ledger::into_prior).unwrap_or_default();
    memory.set_prior(Some(Prior {
        before: images,
        ..used
    }));
    let mut inner = state.inner.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, fault)) = inner.fault {
        return Err(fault);
    }
    inner.output.sort_by_key(|(block, _)| *block);
    Ok(Stats {
        lane_ops: inner.lane_ops,
        timeline: inner.timeline,
        output: inner.output.into_iter().map(|(_, text)| text).collect(),
    })
}

/// A grid that is running.
struct Run {
    total: u64,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    lane_ops: u64,
    timeline: Vec<TimelineEvent>,
    output: Vec<(u64, String)>,
    /// The fault and the linear index of its block.
    fault: Option<(u64, Fault)>,
    /// Groups that wait for memory, each with the version of the grid that it last looked at.
    waiting: VecDeque<(u64, Group)>,
    /// Incremented whenever a group makes progress.
    version: u64,
    running: u32,
}

impl Run {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work of one thread: fresh groups first, then those that wait, as long as others make progress.
    fn work(&self, ctx: &Context<'_>) {
        let mut spare: Option<Group> = None;
        loop {
            if let Some(number) = ctx.take_group() {
                let mut group = spare.take().unwrap_or_else(|| Group::new(ctx));
                group.start(ctx, number);
                if group.first_block() > ctx.first_fault.load(Ordering::Relaxed) {
                    spare = Some(group);
                    continue;
                }
                let version = {
                    let mut inner = self.inner();
                    inner.running += 1;
                    inner.version
                };
                spare = self.run(ctx, group, version);
                continue;
            }
            let mut inner = self.inner();
            if inner.waiting.is_empty() && inner.running == 0 {
                return;
            }
            let version = inner.version;
            if let Some(i) = inner.waiting.iter().position(|(seen, _)| *seen != version)
                && let Some((_, group)) = inner.waiting.remove(i)
            {
                inner.running += 1;
                drop(inner);
                spare = self.run(ctx, group, version);
                continue;
            }
            if inner.running == 0 {
                // Every group has looked, and none made progress.
                let stuck = inner
                    .waiting
                    .iter_mut()
                    .min_by_key(|(_, group)| group.first_block());
                if let Some((_, group)) = stuck {
                    let fault = group.deadlock(ctx);
                    let block = group.first_block();
                    inner.note(ctx, block, fault);
                }
                inner.waiting.clear();
                return;
            }
            drop(inner);
            std::thread::yield_now();
        }
    }

    /// Runs a group; returns its storage when it is done.
    fn run(&self, ctx: &Context<'_>, mut group: Group, version: u64) -> Option<Group> {
        let result = group.run(ctx);
        let (lane_ops, output) = group.harvest();
        let timeline = group.timeline(ctx);
        let mut inner = self.inner();
        inner.running -= 1;
        inner.lane_ops += lane_ops;
        inner.timeline.extend(timeline);
        if !output.is_empty() {
            inner.output.push((group.first_block(), output));
        }
        match result {
            Ok(GroupStop::Done) => {
                inner.version += 1;
                Some(group)
            }
            Ok(GroupStop::Waiting(moved)) => {
                inner.version += moved as u64;
                // It may have missed what others did since it started: it looks again before it counts as stuck.
                inner.waiting.push_back((version, group));
                None
            }
            Err(fault) => {
                inner.version += 1;
                let block = group.first_block();
                inner.note(ctx, block, fault);
                Some(group)
            }
        }
    }
}

impl Inner {
    fn note(&mut self, ctx: &Context<'_>, block: u64, fault: Fault) {
        if self.fault.as_ref().is_none_or(|(first, _)| block < *first) {
            self.fault = Some((block, fault));
        }
        ctx.first_fault.fetch_min(block, Ordering::Relaxed);
    }
}
