//! Launching: checks, blocks in parallel, results.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tirx_ir::IRModule;
use tirx_source::Diagnostics;

use crate::bytecode::{Axis, Code};
use crate::compile::{self, CompileOptions};
use crate::exec::{Context, Group, GroupStop, Ledger};
use crate::fault::{Fault, FaultKind, FaultLocation, FaultReport};
use crate::memory::Memory;
use crate::numeric::Kind;
use crate::stand_in::StandIns;
use crate::timeline::TimelineEvent;
use crate::window::Window;

/// Most threads of a block.
const MOST_THREADS: u64 = 1024;
/// Most shared memory of a block in bytes: 227 KiB, that of Hopper and Blackwell.
pub const MOST_SHARED: u64 = 227 * 1024;
/// Most blocks of a grid along x, y, z.
const MOST_BLOCKS: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// Largest grid, in blocks, that is run: more would take hours.
const MOST_RUN: u64 = 1 << 26;
/// Branches and loop iterations of a block after which the block is considered endless.
const MOST_STEPS: u64 = 1 << 28;
/// Most blocks of a cluster.
const MOST_IN_CLUSTER: u64 = 16;

/// A device function, compiled to run on the CPU. Compile once, launch often, from any thread.
#[derive(Debug)]
pub struct Program {
    code: Arc<Code>,
    turn: Arc<AtomicUsize>,
}

/// Where a program is, as seen from another thread; see [`Program::position`].
#[derive(Clone, Debug)]
pub struct Position {
    code: Arc<Code>,
    turn: Arc<AtomicUsize>,
}

impl Position {
    /// The branch or loop that some block reached last, sampled every 65,536 of them; `None` before the first sample.
    pub fn location(&self) -> Option<FaultLocation> {
        match self.turn.load(Ordering::Relaxed) {
            NOWHERE => None,
            pc => self.code.location(pc),
        }
    }
}

/// No position has been sampled yet.
const NOWHERE: usize = usize::MAX;

/// What a kernel parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamKind {
    /// An address in [`Memory`].
    Pointer,
    /// A scalar, in the low bits of its argument.
    Scalar {
        /// Its width.
        bits: u8,
    },
}

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
    /// Chooses when asynchronous copies and matrix operations take effect, and whether the first or the last warp, and
    /// lane of an atomic, comes first. Each number gives one schedule.
    pub seed: u64,
    /// Whether the launch is a programmatic dependent one, and all global memory may have been written by the grid before
    /// it: each access must come behind `griddepcontrol.wait`.
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

impl Program {
    /// Compiles a device function of a lowered module (by its name or `global_symbol`).
    ///
    /// # Errors
    /// Where the function is missing or holds what the simulator does not run, with the source line.
    pub fn compile(module: &IRModule, function: &str) -> Result<Program, Diagnostics> {
        Program::compile_with(module, function, CompileOptions::default())
    }

    /// As [`Program::compile`], with optional checks.
    ///
    /// # Errors
    /// As of [`Program::compile`].
    pub fn compile_with(
        module: &IRModule,
        function: &str,
        options: CompileOptions,
    ) -> Result<Program, Diagnostics> {
        let code = compile::compile(module, function, options)?;
        Ok(Program {
            code: Arc::new(code),
            turn: Arc::new(AtomicUsize::new(NOWHERE)),
        })
    }

    /// The position of the program's launches, for another thread that watches them.
    pub fn position(&self) -> Position {
        Position {
            code: self.code.clone(),
            turn: self.turn.clone(),
        }
    }

    /// The function's name.
    pub fn name(&self) -> &str {
        &self.code.name
    }

    /// What each argument of a launch is.
    pub fn params(&self) -> Vec<ParamKind> {
        let kind = |kind: &Kind| match kind {
            Kind::Ptr => ParamKind::Pointer,
            kind => ParamKind::Scalar {
                bits: (kind.bytes() * 8) as u8,
            },
        };
        self.code.params.iter().map(|(_, k)| kind(k)).collect()
    }

    /// Runs a grid to its end, blocks in parallel on rayon's threads.
    ///
    /// # Errors
    /// The first error of the lowest block that has one. Memory holds what was written until then.
    pub fn launch(&self, memory: &Memory, launch: &Launch<'_>, stand_ins: &StandIns) -> Result<Stats, Fault> {
        self.launch_with(memory, launch, stand_ins, &LaunchOptions::default())
    }

    /// The same with options.
    ///
    /// # Errors
    /// As for [`Program::launch`].
    pub fn launch_with(
        &self,
        memory: &Memory,
        launch: &Launch<'_>,
        stand_ins: &StandIns,
        options: &LaunchOptions,
    ) -> Result<Stats, Fault> {
        self.launch_within(memory, launch, stand_ins, options, &[])
    }

    /// The same, with arguments that are parts of allocations: what has the address of one of `windows` among the
    /// arguments may not be left.
    ///
    /// # Errors
    /// As for [`Program::launch`].
    pub fn launch_within(
        &self,
        memory: &Memory,
        launch: &Launch<'_>,
        stand_ins: &StandIns,
        options: &LaunchOptions,
        windows: &[(u64, Window)],
    ) -> Result<Stats, Fault> {
        self.check(launch).map_err(|message| self.refusal(message))?;
        self.turn.store(NOWHERE, Ordering::Relaxed);
        let code = self.code_for(launch);
        let params = self
            .code
            .params
            .iter()
            .zip(launch.args)
            .map(|((_, kind), address)| {
                let storage = (*kind == Kind::Ptr).then(|| memory.find(*address)).flatten()?;
                let offset = address - storage.address;
                Some((storage, offset))
            });
        let params: Vec<_> = params.collect();
        let windows = params.iter().zip(launch.args).map(|(param, address)| {
            let of_it = windows.iter().filter(|(of, _)| of == address && param.is_some());
            of_it.map(|(_, window)| window.clone()).collect()
        });
        let ledger = options
            .check_races
            .then(|| Ledger::new(&code, &params, options.dependent));
        let sheets = params.iter().map(|param| {
            let (storage, _) = param.as_ref()?;
            ledger.as_ref()?.sheet(storage)
        });
        let ctx = Context {
            code: &code,
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
            turn: &self.turn,
            seed: options.seed,
            dependent: options.dependent && options.check_races,
            timeline: options.timeline,
            next: AtomicU64::new(0),
            first_fault: AtomicU64::new(u64::MAX),
        };
        let state = Run {
            total: Group::count(&ctx),
            inner: Mutex::new(Inner::default()),
        };
        let workers = (rayon::current_num_threads() as u64).min(state.total);
        if workers <= 1 {
            state.work(&ctx);
        } else {
            rayon::scope(|scope| {
                for _ in 0..workers {
                    scope.spawn(|_| state.work(&ctx));
                }
            });
        }
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

    /// The code, with a pool of dynamic shared memory (an array without extent) as large as the launch says.
    fn code_for(&self, launch: &Launch<'_>) -> Cow<'_, Code> {
        let shared = &self.code.shared;
        let Some(pool) = shared.iter().position(|a| a.dynamic && a.bytes == 0) else {
            return Cow::Borrowed(&self.code);
        };
        let end = shared.iter().map(|a| a.offset + a.bytes).max().unwrap_or(0);
        let mut code = Code::clone(&self.code);
        code.shared[pool].offset = end.next_multiple_of(POOL_ALIGN);
        code.shared[pool].bytes = launch.shared_bytes;
        Cow::Owned(code)
    }

    fn refusal(&self, message: String) -> Fault {
        FaultReport {
            kind: FaultKind::Launch,
            message,
            kernel: self.code.name.clone(),
            location: None,
            block: [0; 3],
            thread: [0; 3],
            notes: Vec::new(),
            output: String::new(),
        }
        .into()
    }

    /// What does not fit, before anything runs. (Extents are checked by the kernel itself, which knows them.)
    fn check(&self, launch: &Launch<'_>) -> Result<(), String> {
        let code = &self.code;
        if launch.args.len() != code.params.len() {
            return Err(format!(
                "it has {} parameters, and {} arguments were given",
                code.params.len(),
                launch.args.len()
            ));
        }
        let dims = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
        for (name, value) in [
            ("grid", launch.grid),
            ("block", launch.block),
            ("cluster", launch.cluster),
        ] {
            if value.contains(&0) {
                return Err(format!("the {name} dimensions are {}", dims(value)));
            }
        }
        let threads: u64 = launch.block.iter().map(|d| *d as u64).product();
        if threads > MOST_THREADS {
            return Err(format!(
                "a block of {} has {threads} threads, and {MOST_THREADS} is the most",
                dims(launch.block)
            ));
        }
        if let Some(d) = (0..3).find(|d| launch.grid[*d] > MOST_BLOCKS[*d]) {
            return Err(format!(
                "the grid {} has {} blocks along {}, and {} is the most",
                dims(launch.grid),
                launch.grid[d],
                ["x", "y", "z"][d],
                MOST_BLOCKS[d]
            ));
        }
        let blocks = launch.grid.iter().map(|d| u64::from(*d));
        let blocks = blocks.fold(1, u64::saturating_mul);
        if blocks > MOST_RUN {
            return Err(format!(
                "the grid {} has {blocks} blocks, and the simulator runs at most {MOST_RUN}",
                dims(launch.grid)
            ));
        }
        let in_cluster: u64 = launch.cluster.iter().map(|d| u64::from(*d)).product();
        if in_cluster > MOST_IN_CLUSTER {
            return Err(format!(
                "a cluster of {} has {in_cluster} blocks, and {MOST_IN_CLUSTER} is the most",
                dims(launch.cluster)
            ));
        }
        if (0..3).any(|d| !launch.grid[d].is_multiple_of(launch.cluster[d])) {
            return Err(format!(
                "the grid {} is not made of whole clusters {}",
                dims(launch.grid),
                dims(launch.cluster)
            ));
        }
        let dynamic: u64 = code
            .shared
            .iter()
            .filter(|a| a.dynamic)
            .map(|a| a.bytes as u64)
            .sum();
        if dynamic > launch.shared_bytes as u64 {
            return Err(format!(
                "it needs {dynamic} bytes of dynamic shared memory, and the launch gives {}",
                launch.shared_bytes
            ));
        }
        let shared = code.static_shared as u64 + launch.shared_bytes as u64;
        if shared > MOST_SHARED {
            return Err(format!(
                "a block needs {shared} bytes of shared memory, and {MOST_SHARED} is the most"
            ));
        }
        if !code.axes.is_empty() {
            for d in 0..3u8 {
                for (axis, extent) in [
                    (Axis::Block(d), launch.grid[d as usize]),
                    (Axis::Thread(d), launch.block[d as usize]),
                ] {
                    if extent != 1 && !code.axes.contains(&axis) {
                        let name = axis.name();
                        return Err(format!(
                            "{name} has extent {extent} in the launch, and the kernel has no {name}"
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Bytes that a pool of dynamic shared memory is aligned to.
const POOL_ALIGN: u32 = 1024;

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
            let number = ctx.next.fetch_add(1, Ordering::Relaxed);
            if number < self.total {
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
