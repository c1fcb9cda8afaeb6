//! Running bytecode.
//!
//! | file | what it does |
//! |---|---|
//! | `run` | the instruction loop of one strand |
//! | `devices` | the devices of a launch |
//! | `multimem` | loads, stores and reductions through multicast windows |
//! | `control` | divergence: strands split, reconverge, run ahead |
//! | `access` | loads and stores of all lanes |
//! | `place` | one lane's access: where it goes, whether it may |
//! | `local` | local arrays at one index for all lanes |
//! | `blame` | messages about accesses that are not allowed |
//! | `atomic` | atomics |
//! | `lanes` | computations over lanes that are more than one `alu` operation |
//! | `stand_in` | stand-ins for raw CUDA functions |
//! | `fills` | how tiles of shared memory were filled |
//! | `exchange` | shuffles, votes and reductions of a warp |
//! | `cluster` | shared memory of other blocks of the cluster, the cluster's barrier |
//! | `block` | a block: schedules its warps, progress |
//! | `meeting` | block barriers, warp barriers: where threads meet |
//! | `early` | reads of shared memory that nobody has written yet, and what explains them |
//! | `ended` | what must hold when a block ends |
//! | `named` | barriers of some of a block's threads |
//! | `schedule` | in which order the warps and blocks come |
//! | `steps` | a launch step by step, where every order is explored |
//! | `group` | blocks that run together; deadlock reports |
//! | `order` | which accesses happened before which: one order for all memory |
//! | `engine` | asynchronous operations, mbarriers |
//! | `cells` | the histories of shared memory |
//! | `ledger` | the histories of global memory |
//! | `global` | accesses to global memory, checked by them |
//! | `prior` | the grid before a programmatic dependent launch |
//! | `address` | pointers into shared and local arrays |
//! | `alignment` | the alignment that shared arrays are declared with |
//! | `tensor` | matrix rows and `mma.sync` |
//! | `wgmma` | asynchronous products of a warpgroup |
//! | `tcgen05` | tensor memory and the tensor core that works on it |
//! | `observe` | counts, values at a line |
//! | `shadow` | float values without rounding |
//! | `record` | the timeline of a block |
//! | `registers` | `setmaxnreg` |
//! | `print` | `printf` |
//!
//! A *strand* is a set of lanes of one warp at one instruction. A warp starts as one strand. At a divergent branch
//! the strand runs one side, then the other; only when it must wait (for a barrier, another lane, or memory) do the
//! sides become strands of their own, so that the other side can run. Lanes that are done with their side wait for
//! the others where both meet; if nothing else in the block can run, they go on alone, as a GPU's
//! independently scheduled threads may.

mod access;
mod actions;
pub mod address;
mod alignment;
mod atomic;
mod blame;
mod block;
mod cells;
mod cluster;
mod control;
mod devices;
mod early;
mod ended;
pub(crate) mod engine;
mod exchange;
mod fills;
mod global;
mod group;
mod lane_orders;
mod lanes;
mod ledger;
mod local;
mod meeting;
mod multimem;
mod named;
mod observe;
pub(crate) mod order;
mod place;
mod print;
pub(crate) mod prior;
mod record;
mod registers;
mod run;
mod schedule;
mod shadow;
mod stand_in;
pub(crate) mod steps;
mod tcgen05;
mod tensor;
mod wgmma;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use crate::alu::{Lanes32, Lanes64};
use crate::bytecode::{Ballot, Code, Pc};
use crate::explore::{Footprint, Object};
use crate::fault::Stats;
use crate::fault::{Fault, FaultKind, FaultNote, FaultReport};
use crate::findings::{Excusable, Findings};
use crate::memory::{Memory, Storage, Symmetric};
use crate::observe::Observer;
use crate::stand_in::StandIns;
use crate::timeline::Track;
use crate::turns::Turns;

pub(crate) use devices::DeviceArguments;
pub(crate) use group::{Group, GroupStop, deadlock};
pub(crate) use ledger::{Ledger, Sheet};
pub(crate) use shadow::Accuracy;

/// The multiprocessors of the largest GPU that kernels are compiled for (B300), and what each holds (CUDA C++ Programming
/// Guide, "Technical Specifications per Compute Capability").
const MULTIPROCESSORS: u64 = 160;
const THREADS_OF_A_MULTIPROCESSOR: u32 = 2048;
const BLOCKS_OF_A_MULTIPROCESSOR: u32 = 32;
const SHARED_OF_A_MULTIPROCESSOR: u32 = 228 << 10;

/// What all blocks of a launch share.
pub(crate) struct Context<'a> {
    pub(crate) code: &'a Code,
    pub(crate) memory: &'a Memory,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: [u32; 3],
    /// The devices of the launch, by rank.
    pub(crate) devices: Vec<DeviceArguments>,
    /// The rank of the first of them.
    pub(crate) first_rank: u32,
    /// The counters of `nvshmem_barrier_all`, one for each rank.
    pub(crate) arrivals: Option<Symmetric>,
    /// The race checker for global memory.
    pub(crate) ledger: Option<Ledger>,
    pub(crate) stand_ins: &'a StandIns,
    pub(crate) check_races: bool,
    /// What raw CUDA functions have released: they may synchronize in ways that the simulator cannot see.
    pub(crate) raw: std::sync::Mutex<Option<order::Known>>,
    pub(crate) step_limit: u64,
    /// The branch or loop that some block reached last, sampled now and then.
    pub(crate) turn: &'a AtomicUsize,
    /// Seed of the schedule.
    pub(crate) seed: u64,
    /// The memory that threads may not use before they have waited for the previous grid.
    pub(crate) before: Option<prior::Before>,
    /// The block whose timeline is wanted.
    pub(crate) timeline: Option<u64>,
    /// Bytes of dynamic shared memory of a block.
    pub(crate) shared_bytes: u32,
    /// The errors of float values, if they are asked for.
    pub(crate) accuracy: Option<Accuracy>,
    /// What is observed of the launch.
    pub(crate) observer: Option<Observer>,
    /// The turns of the groups of blocks.
    pub(crate) turns: Turns<Group>,
    /// The first turn in which a block has faulted; later ones are abandoned.
    pub(crate) first_fault: AtomicU64,
    /// Every order is explored: strands stop before what others may react to.
    pub(crate) exploring: bool,
    /// What the launch goes on after.
    pub(crate) findings: Findings,
    /// The `fence.sc` so far.
    pub(crate) sc_fences: std::sync::Mutex<order::FenceOrder>,
}

impl Context<'_> {
    /// Bytes that are in no allocation, by the tensor parameter that they are next to, if they are near one.
    fn beside_a_tensor(&self, address: u64, bytes: u64) -> Option<String> {
        const NEAR: u64 = 1 << 20;
        let tensors = (self.devices.iter()).flat_map(|device| device.params.iter().zip(&self.code.params));
        let near = tensors.filter_map(|(tensor, (name, _))| {
            let (storage, _) = tensor.as_ref()?;
            let end = storage.address + storage.bytes as u64;
            let before = storage.address.saturating_sub(address);
            let distance = before.max(address.saturating_sub(end));
            (distance < NEAR).then_some((distance, storage, name))
        });
        let (_, storage, name) = near.min_by_key(|(distance, ..)| *distance)?;
        let first = address.wrapping_sub(storage.address) as i64;
        let (last, name) = (first + bytes as i64, name.strip_suffix("_ptr").unwrap_or(name));
        Some(format!(
            "bytes {first} to {last} of `{name}`, whose allocation has {}",
            storage.bytes
        ))
    }

    /// Most blocks that the largest GPU holds at a time: a block that waits for one that has not started waits for one of
    /// these to end.
    pub(crate) fn most_resident(&self) -> u64 {
        let threads: u32 = self.block.iter().product();
        let shared = self.code.static_shared + self.shared_bytes;
        let by_threads = THREADS_OF_A_MULTIPROCESSOR / threads.next_multiple_of(32).max(32);
        let by_shared = SHARED_OF_A_MULTIPROCESSOR.checked_div(shared).unwrap_or(u32::MAX);
        let blocks = by_threads.min(by_shared).clamp(1, BLOCKS_OF_A_MULTIPROCESSOR);
        u64::from(blocks) * MULTIPROCESSORS
    }
}

/// An error of a running strand.
#[derive(Debug)]
pub(crate) struct Trap {
    pub(crate) kind: FaultKind,
    pub(crate) lane: u32,
    pub(crate) message: String,
    /// The instruction to blame, where it is not the one that runs.
    pub(crate) blamed: Option<usize>,
    /// Other instructions involved.
    pub(crate) notes: Vec<(String, usize)>,
}

impl Trap {
    pub(crate) fn new(kind: FaultKind, lane: u32, message: impl Into<String>) -> Box<Trap> {
        Box::new(Trap {
            kind,
            lane,
            message: message.into(),
            blamed: None,
            notes: Vec::new(),
        })
    }

    /// The same, of an instruction that has run before.
    fn blames(mut self: Box<Trap>, pc: usize) -> Box<Trap> {
        self.blamed = Some(pc);
        self
    }
}

/// A place where lanes wait to reconverge.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Frame {
    /// A divergent branch.
    If {
        /// Lanes that have not run their side yet, and where it starts.
        pending: u32,
        other: Pc,
        /// Lanes that have arrived.
        joined: u32,
        join: Pc,
    },
    /// A loop whose lanes leave at different times.
    Loop {
        /// Lanes that wait for the next iteration.
        next: u32,
        latch: Pc,
        /// Lanes that have left.
        left: u32,
        exit: Pc,
    },
    /// The sides of a branch are strands of their own; the outermost frame of each.
    Join(usize),
}

/// A branch whose sides are strands.
#[derive(Clone, Debug, Default)]
struct Join {
    /// The context in which the reconverged strand continues.
    frames: Vec<Frame>,
    joined: u32,
    join: Pc,
    /// Strands that have not arrived.
    open: u32,
    /// Scalars of a strand that has arrived.
    scalars: Vec<u64>,
}

/// Why a strand does not run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Status {
    Ready,
    /// At a block barrier, with a vote or without.
    Barrier(Option<Ballot>),
    /// At a named barrier, which opens for this number of threads.
    Named(u32, u32, Option<Ballot>),
    WarpSync,
    /// At a shuffle, for these lanes.
    Exchange(u16, u32),
    Cluster,
    Grid,
    /// At an asynchronous instruction that waits.
    Asleep(u16),
    /// At a `wgmma.wait_group`, until all warps of the warpgroup have committed so many groups.
    Warpgroup(u64),
}

impl Status {
    /// Whether the strand stands at the instruction and executes it again; others have passed it.
    fn repeats(self) -> bool {
        matches!(self, Status::Asleep(_) | Status::Warpgroup(_))
    }
}

/// Lanes of one warp at one instruction.
#[derive(Clone, Debug)]
struct Strand {
    pc: usize,
    mask: u32,
    frames: Vec<Frame>,
    scalars: Vec<u64>,
    status: Status,
    /// Iterations of waiting loops since it last yielded, and the number after which it does.
    turns: u32,
    patience: u32,
    /// A hash of its state when it last yielded.
    state: u64,
    /// It yielded in this round.
    spun: bool,
    /// Rounds for which it pauses.
    rest: u32,
    /// What it waited for and since when, until it runs again.
    waits: Option<(Status, u64)>,
    /// Where every order is explored: the iteration of a loop that polls in which it is.
    turn: Option<Turn>,
}

/// An iteration of a loop that polls.
#[derive(Clone, Debug)]
struct Turn {
    /// The loop, by its number in `Code::polls`.
    of: u16,
    /// A hash of what the iteration before has left.
    from: u64,
    /// Its first event and its last.
    events: Option<(usize, usize)>,
    /// Whether all events from the first to the last belong to it, and change nothing.
    reads_only: bool,
    /// What it has read.
    reads: BTreeSet<Object>,
}

/// Iterations of a loop that may wait before it yields: most loops that read memory do not wait.
const PATIENCE: u32 = 256;
/// The same once the strand has been seen to wait.
const IMPATIENCE: u32 = 4;

/// Thirty-two threads.
#[derive(Debug, Default)]
struct Warp {
    v32: Vec<Lanes32>,
    v64: Vec<Lanes64>,
    /// Local arrays, by word.
    local: Vec<Lanes32>,
    /// Lanes that have written each byte of local arrays (or half of one).
    local_written: Vec<u32>,
    /// Lanes that have written each tracked promoted element.
    written: Vec<u32>,
    strands: Vec<Strand>,
    joins: Vec<Join>,
    /// Lanes that exist and have not ended.
    alive: u32,
    /// Lanes that have arrived at the cluster's barrier, which has not opened since.
    arrived: u32,
    /// Lanes that have arrived and not waited.
    owed: u32,
    /// Initializations of mbarriers that lanes have fenced (`fence.mbarrier_init`).
    initializations: Vec<(u32, order::Mark)>,
    /// Lanes that ended by `thread_return`.
    returned: u32,
    /// Lanes that exist.
    exist: u32,
    wgmma: wgmma::Operations,
    /// Its values without rounding, if errors are asked for.
    shadows: Option<shadow::Shadows>,
    /// Stores to tensor memory, and loads of it, that are not waited for.
    stored: Vec<tcgen05::Stored>,
    loading: Vec<tcgen05::Loading>,
    /// Instructions that it has run or waited for, and the block's count when its strand started: for the timeline.
    time: u64,
    base: u64,
}

/// A piece of a timeline.
struct Event {
    track: Track,
    name: String,
    pc: usize,
    start: u64,
    end: u64,
}

/// What the warps of a block share.
struct Shared {
    words: Vec<u32>,
    /// The shadows of `words`.
    held: shadow::HeldMemory,
    cells: cells::Cells,
    /// For the timeline, if it is recorded: the events, and when a thread last arrived at a barrier.
    events: Vec<Event>,
    recorded: bool,
    latest: u64,
    /// The tiles that tensor copies have filled.
    fills: fills::Fills,
    /// Operations in flight, mbarriers.
    engine: engine::Engine,
    /// What has been read before it was written.
    early: early::EarlyReads,
    /// Registers per thread, as the warps have asked for them.
    registers: registers::Registers,
    /// Whether operations have been performed.
    operations: bool,
    order: order::Order,
    /// The current phase of each named barrier.
    named: BTreeMap<u32, named::Arrivals>,
    /// The arrivals of the last phase of each named barrier.
    named_phases: BTreeMap<u32, Vec<order::Mark>>,
    /// Threads that wait at the block barrier.
    at_barrier: u32,
    /// The schedule.
    draws: schedule::Draws,
    output: String,
    /// IR operators times active lanes.
    lane_ops: u64,
    steps: u64,
    /// Stores and atomics that may have changed something that another strand waits for.
    changes: u64,
    /// What the warps of each warpgroup do together.
    warpgroups: Vec<wgmma::Warpgroup>,
    /// What operations of warpgroups have read, by warpgroup and operation number.
    read_by_groups: BTreeMap<(usize, u32), wgmma::Operands>,
    /// Whether a thread has waited for the previous grid.
    waited: bool,
    /// Tensor memory.
    bank: tcgen05::Bank,
    /// The allocation last accessed through a pointer.
    last: Option<Arc<Storage>>,
    /// Its address, and its histories where the ledger has them, for the allocation last looked up.
    sheet: Option<(u64, Option<Arc<Sheet>>)>,
    /// What has been released at the cluster's barrier, in the present phase and in the one before.
    cluster_arrived: Option<order::Known>,
    /// The same for the threads of this block alone.
    cluster_near: Option<order::Known>,
    cluster_open: Option<order::Known>,
    /// What threads of the cluster had done when they last met there, whatever memory order they requested.
    cluster_met: Option<order::Known>,
    /// Whether other blocks, or operations of them, have accessed the block's shared memory.
    shared_out: bool,
    index: [u32; 3],
    /// Its linear index, after those of the blocks of earlier ranks.
    linear: u64,
    /// The rank of its device.
    rank: u32,
    /// The turn in which it runs, and whether all turns before that are known to be over.
    turn: u64,
    in_turn: bool,
    /// Where every order is explored (`steps`): what has been touched since it was taken last, and whether the strand that
    /// runs may pass one more instruction that others may react to.
    exploring: bool,
    touched: Footprint,
    may_act: bool,
    /// The order of the lanes at the next atomic (`lane_orders`).
    lane_order: u16,
}

/// Builds the fault of a trap: the block's first cause.
fn fault(ctx: &Context<'_>, shared: &Shared, warp: usize, pc: usize, trap: Trap) -> Fault {
    let others: Vec<usize> = trap.notes.iter().map(|(_, pc)| *pc).collect();
    shared
        .early
        .cause(report(ctx, shared, warp, pc, trap), pc, &others)
}

/// The report of a trap.
fn report(ctx: &Context<'_>, shared: &Shared, warp: usize, pc: usize, trap: Trap) -> Fault {
    let linear = warp as u32 * 32 + trap.lane;
    FaultReport {
        kind: trap.kind,
        message: trap.message,
        kernel: ctx.code.name.clone(),
        location: ctx.code.location(trap.blamed.unwrap_or(pc)),
        rank: (ctx.ranks() > 1).then_some(shared.rank),
        block: shared.index,
        thread: thread_of(ctx, linear),
        notes: trap
            .notes
            .into_iter()
            .map(|(message, pc)| FaultNote {
                message,
                location: ctx.code.location(pc),
            })
            .collect(),
        output: shared.output.clone(),
        stats: Stats::default(),
    }
    .into()
}

/// Notes what the launch goes on after.
///
/// # Errors
/// The trap, where the launch does not go on after it.
fn excuse(
    ctx: &Context<'_>,
    shared: &Shared,
    (warp, pc): (usize, usize),
    finding: Excusable,
    trap: Box<Trap>,
) -> access::Check {
    if !ctx.findings.excuses(finding, trap.kind) {
        return Err(trap);
    }
    let noted = || report(ctx, shared, warp, pc, *trap);
    ctx.findings.note(pc, shared.linear, noted);
    Ok(())
}

/// Notes what is no error, and worth a warning.
fn warn(ctx: &Context<'_>, shared: &Shared, (warp, pc): (usize, usize), trap: Box<Trap>) {
    ctx.findings
        .note(pc, shared.linear, || report(ctx, shared, warp, pc, *trap));
}

/// threadIdx of a linear index.
fn thread_of(ctx: &Context<'_>, linear: u32) -> [u32; 3] {
    let [x, y, _] = ctx.block.map(|d| d.max(1));
    [linear % x, linear / x % y, linear / x / y]
}
