//! Blocks that run together on one thread: a cluster, or the grid where its blocks wait for each other.

use super::block::{Block, WaitKind, Waiting};
use super::cluster::{self, Peers};
use super::early::explains;
use super::{Context, Status, Trap, fault};
use crate::fault::{Fault, FaultKind, FaultNote};
use crate::timeline::TimelineEvent;

/// Blocks that may wait for each other.
pub(crate) struct Group {
    pub(super) blocks: Vec<Block>,
    /// The group's number in the launch.
    pub(crate) number: u64,
}

/// The state of a group after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupStop {
    Done,
    /// It waits for memory that another group may write, or lets others run first; whether it made progress.
    Waiting(bool),
}

impl Group {
    /// The storage for the blocks of a group.
    pub(crate) fn new(ctx: &Context<'_>) -> Group {
        let count = if ctx.code.grid_sync {
            ctx.blocks_of_device()
        } else {
            ctx.cluster.iter().map(|d| *d as u64).product()
        };
        Group {
            blocks: (0..count).map(|_| Block::new(ctx)).collect(),
            number: 0,
        }
    }

    /// How many groups a launch has.
    pub(crate) fn count(ctx: &Context<'_>) -> u64 {
        Group::of_device(ctx) * u64::from(ctx.ranks())
    }

    /// How many a device has.
    pub(crate) fn of_device(ctx: &Context<'_>) -> u64 {
        if ctx.code.grid_sync {
            return 1;
        }
        let clusters = |d: usize| (ctx.grid[d] / ctx.cluster[d].max(1)) as u64;
        clusters(0) * clusters(1) * clusters(2)
    }

    /// Resets it to group `number`, about to start.
    pub(crate) fn start(&mut self, ctx: &Context<'_>, number: u64) {
        self.number = number;
        let size = cluster_size(ctx) as u64;
        for (i, block) in self.blocks.iter_mut().enumerate() {
            let which = match ctx.code.grid_sync {
                true => number * ctx.blocks_of_device() + i as u64,
                false => number * size + i as u64,
            };
            block.start(ctx, block_index(ctx, which), which as u32);
        }
    }

    /// Runs, in a turn, until all blocks are done or nothing in the group can continue.
    pub(crate) fn run(&mut self, ctx: &Context<'_>, turn: u64) -> Result<GroupStop, Fault> {
        let mut any = false;
        for block in &mut self.blocks {
            (block.shared.turn, block.shared.in_turn) = (turn, false);
        }
        let size = cluster_size(ctx);
        loop {
            let (mut progress, mut yields) = (false, false);
            for cluster in self.blocks.chunks_mut(size) {
                for at in 0..cluster.len() {
                    if let Some((block, peers)) = Peers::split(cluster, at)
                        && !block.done()
                    {
                        let ran = block.run(ctx, peers);
                        yields |= std::mem::take(&mut block.shared.draws.yields);
                        progress |= ran.map_err(|fault| first_cause(cluster, fault))?;
                    }
                }
            }
            let aborted = ctx.first_fault.load(std::sync::atomic::Ordering::Relaxed) < turn;
            if self.blocks.iter().all(Block::done) || aborted {
                return match early_read(&self.blocks) {
                    Some(early) if !aborted => Err(early.clone()),
                    _ => Ok(GroupStop::Done),
                };
            }
            progress |= self.open_barriers(ctx)?;
            // Compiled code reconverges behind a branch. What the lanes wait for may be in another block of the group; where none
            // of these can go on, it may be lanes of the same warp, such as the holder of a lock.
            progress |= !progress && self.blocks.iter_mut().any(|block| block.run_ahead(ctx));
            if yields {
                return Ok(GroupStop::Waiting(true));
            }
            if !progress {
                return if self.blocks.iter().any(Block::spins) {
                    Ok(GroupStop::Waiting(any))
                } else {
                    Err(self.deadlock(ctx, 0))
                };
            }
            any = true;
        }
    }

    pub(super) fn open_barriers(&mut self, ctx: &Context<'_>) -> Result<bool, Fault> {
        let mut opened = false;
        for cluster in self.blocks.chunks_mut(cluster_size(ctx)) {
            opened |= cluster::open(ctx, cluster)?;
        }
        if self.blocks.iter().any(|b| !b.done()) && self.blocks.iter().all(|b| b.all_at(Status::Grid)) {
            self.check_all_at_grid(ctx)?;
            open_all(&mut self.blocks, Status::Grid);
            opened = true;
        }
        Ok(opened)
    }

    /// A barrier of the grid counts each block: one that has ended never comes to it.
    fn check_all_at_grid(&self, ctx: &Context<'_>) -> Result<(), Fault> {
        let Some(absent) = self.blocks.iter().find(|b| b.done()) else {
            return Ok(());
        };
        let [x, y, z] = absent.shared.index;
        let waits = self
            .blocks
            .iter()
            .find_map(|b| Some((b, b.first_at(Status::Grid)?)));
        let Some((block, (warp, lane, pc))) = waits else {
            return Ok(());
        };
        let message = format!(
            "block ({x}, {y}, {z}) has ended without reaching this barrier of the grid: the other blocks wait for it for ever"
        );
        let trap = Trap::new(FaultKind::BarrierDivergence, lane, message);
        Err(fault(ctx, &block.shared, warp, pc, *trap))
    }

    /// Blocks of a group.
    pub(crate) fn blocks_of(ctx: &Context<'_>) -> u64 {
        match ctx.code.grid_sync {
            true => ctx.blocks_of_device(),
            false => cluster_size(ctx) as u64,
        }
    }

    /// The report of a deadlock: which threads wait where and for what. `not_started` groups have not started.
    pub(crate) fn deadlock(&mut self, ctx: &Context<'_>, not_started: u64) -> Fault {
        if let Some(early) = early_read(&self.blocks) {
            return early.clone();
        }
        let size = cluster_size(ctx);
        let mut stuck: Vec<Stuck> = Vec::new();
        for at in 0..self.blocks.len() {
            if self.blocks[at].done() {
                continue;
            }
            let mut waiting = self.blocks[at].waiting(ctx);
            let cluster = &self.blocks[at / size * size..at / size * size + size];
            let left_out = left_out(cluster, at % size, &waiting);
            // What explains the others comes first.
            waiting.sort_by_key(|w| {
                let explained = left_out
                    .as_ref()
                    .is_some_and(|(byte, _)| w.mbarrier == Some(*byte));
                let parted = w.kind == WaitKind::Barrier && ctx.code.parted_barrier(w.pc).is_some();
                match w.kind {
                    WaitKind::Registers => 0,
                    _ if parted => 1,
                    _ if explained => 2,
                    kind => 3 + kind as u32,
                }
            });
            let kind = waiting.first().map(|w| w.kind);
            stuck.push(Stuck {
                at,
                kind,
                waiting,
                left_out,
            });
        }
        let count = stuck.len();
        // The block that waits for something of its own, if there is one: others wait for it.
        let main = stuck
            .into_iter()
            .min_by_key(|s| (s.left_out.is_none(), s.kind, s.at));
        let Some(Stuck {
            at,
            waiting,
            left_out,
            ..
        }) = main
        else {
            let trap = Trap::new(FaultKind::Deadlock, 0, "nothing can run");
            return fault(ctx, &self.blocks[0].shared, 0, 0, *trap);
        };
        let block = &self.blocks[at];
        let main = waiting.first();
        let parted = main.filter(|w| w.kind == WaitKind::Barrier && ctx.code.parted_barrier(w.pc).is_some());
        let (pc, first) = main.map_or((0, 0), |w| (w.pc, w.first));
        let says = |w: &Waiting| match (w.threads, w.what.split_once(' ')) {
            (1, Some((verb, rest))) => format!("1 thread {verb}s {rest}"),
            (n, _) => format!("{n} threads {}", w.what),
        };
        let parts: Vec<String> = waiting.iter().map(says).collect();
        let others = match count {
            1 => String::new(),
            2 => " (another block waits too)".to_string(),
            n => format!(" ({} other blocks wait too)", n - 1),
        };
        let mut message = format!("{STUCK}{}{others}", parts.join("; "));
        let mut kind = FaultKind::Deadlock;
        if let Some(at) = parted {
            let all = block.alive();
            message = format!(
                "{} of the block's {all} wait at a block barrier (cta_sync) within a branch that other threads do not \
                 take: all threads must come to the barrier; {message}",
                at.threads
            );
            kind = FaultKind::BarrierDivergence;
        }
        if not_started > 0 {
            message = format!(
                "{message}; {} blocks have not started, since a GPU holds {} of these at a time at most: blocks may only wait \
                 for blocks that are sure to run",
                not_started * Self::blocks_of(ctx),
                ctx.most_resident()
            );
        }
        let mut trap = Trap::new(kind, first % 32, message);
        let rank = at % size;
        trap.notes = left_out
            .iter()
            .flat_map(|(_, by)| by)
            .map(|(pc, ranks)| left_out_by(*pc, *ranks, rank))
            .collect();
        trap.notes
            .extend(waiting.iter().filter(|w| w.pc != pc).map(|w| (says(w), w.pc)));
        fault(ctx, &block.shared, (first / 32) as usize, pc, *trap)
    }

    /// Lane operations since the last call, and the blocks' output in order.
    pub(crate) fn harvest(&mut self) -> (u64, String) {
        let mut output = String::new();
        let mut lane_ops = 0;
        for block in &mut self.blocks {
            lane_ops += std::mem::take(&mut block.shared.lane_ops);
            output.push_str(&std::mem::take(&mut block.shared.output));
        }
        (lane_ops, output)
    }

    /// The timeline events of the recorded block since the last call.
    pub(crate) fn timeline(&mut self, ctx: &Context<'_>) -> Vec<TimelineEvent> {
        let events = self
            .blocks
            .iter_mut()
            .flat_map(|b| std::mem::take(&mut b.shared.events));
        let told = events.map(|event| TimelineEvent {
            track: event.track,
            name: event.name,
            location: ctx.code.location(event.pc),
            start: event.start,
            end: event.end.max(event.start),
        });
        told.collect()
    }

    /// Linear index of the group's first block.
    pub(crate) fn first_block(&self) -> u64 {
        self.blocks.iter().map(|b| b.shared.linear).min().unwrap_or(0)
    }
}

/// The report of a deadlock of these groups: that of the first, with a note for each other rank. `not_started` groups have not
/// started.
pub(crate) fn deadlock<'g>(
    ctx: &Context<'_>,
    groups: impl Iterator<Item = &'g mut Group>,
    not_started: u64,
) -> Option<Fault> {
    let mut stuck: Vec<&mut Group> = groups.collect();
    stuck.sort_by_key(|group| group.first_block());
    let first = stuck.first_mut()?.deadlock(ctx, not_started);
    if ctx.ranks() == 1 {
        return Some(first);
    }
    let mut report = (*first).clone();
    let mut told = vec![report.rank];
    for group in &mut stuck[1..] {
        let fault = group.deadlock(ctx, 0);
        if told.contains(&fault.rank) {
            continue;
        }
        told.push(fault.rank);
        let (message, [x, y, z]) = (&fault.message, fault.block);
        let message = message.strip_prefix(STUCK).unwrap_or(message);
        let rank = fault.rank.unwrap_or(0);
        report.notes.push(FaultNote {
            message: format!("rank {rank}, block ({x}, {y}, {z}): {message}"),
            location: fault.location.clone(),
        });
    }
    let absent = (0..ctx.ranks()).find_map(|rank| {
        let ended = not_started == 0 && !told.contains(&Some(rank));
        let (own, most) = ctx.barriers_of(rank)?;
        (ended && own < most).then_some((rank, own, most))
    });
    if let Some((rank, own, most)) = absent {
        report.kind = FaultKind::BarrierDivergence;
        report.message = format!(
            "rank {rank} has ended after {own} barriers of all ranks (nvshmem.barrier_all), and others wait for it at number {most}: {}",
            report.message
        );
    }
    Some(report.into())
}

/// The beginning of the message of a deadlock.
const STUCK: &str = "no thread can run any more: ";

/// A block of which no thread can go on.
struct Stuck {
    at: usize,
    /// What it waits for: the most telling of its waits.
    kind: Option<WaitKind>,
    waiting: Vec<Waiting>,
    /// The byte of an mbarrier that it waits for, and the instructions that signal those of other blocks only.
    left_out: Option<(u32, Vec<(usize, u32)>)>,
}

/// The mbarrier that a block of a cluster waits for while an instruction signals those of other blocks, and not its own.
fn left_out(cluster: &[Block], rank: usize, waiting: &[Waiting]) -> Option<(u32, Vec<(usize, u32)>)> {
    waiting.iter().filter_map(|w| w.mbarrier).find_map(|byte| {
        let engines = cluster.iter().map(|block| &block.shared.engine);
        let mut by: Vec<_> = engines
            .flat_map(|engine| engine.leaves_out(byte, rank as u32))
            .collect();
        by.sort_unstable();
        by.dedup();
        (!by.is_empty()).then_some((byte, by))
    })
}

/// The note of an instruction that signals the blocks of some ranks.
fn left_out_by(pc: usize, ranks: u32, rank: usize) -> (String, usize) {
    let told: Vec<String> = (0..16)
        .filter(|r| ranks >> r & 1 != 0)
        .map(|r| r.to_string())
        .collect();
    let note = format!(
        "this signals the mbarriers of rank {} of the cluster (mask {ranks:#b}), and not that of rank {rank}, which waits",
        told.join(", ")
    );
    (note, pc)
}

/// The index of a block in its device's grid by its number in the launch, which counts cluster by cluster.
pub(super) fn block_index(ctx: &Context<'_>, number: u64) -> [u32; 3] {
    let number = number % ctx.blocks_of_device().max(1);
    let cluster = ctx.cluster.map(|d| d.max(1) as u64);
    let clusters = [0, 1, 2].map(|d| (ctx.grid[d] as u64 / cluster[d]).max(1));
    let size = cluster[0] * cluster[1] * cluster[2];
    let (at, within) = (split(number / size, clusters), split(number % size, cluster));
    [0, 1, 2].map(|d| (at[d] * cluster[d] + within[d]) as u32)
}

/// Blocks of a cluster.
pub(super) fn cluster_size(ctx: &Context<'_>) -> usize {
    ctx.cluster.iter().map(|d| (*d).max(1) as usize).product()
}

/// Lets all threads go on that wait at a barrier over several blocks.
fn open_all(blocks: &mut [Block], status: Status) {
    let released: Vec<_> = blocks.iter_mut().map(|b| b.shared.order.release_all()).collect();
    let all = released.into_iter().reduce(|mut all, known| {
        all.join(&known);
        all
    });
    for block in blocks {
        block.open(status, all.as_ref());
    }
}

/// The first read of shared memory that nobody had written.
fn early_read(blocks: &[Block]) -> Option<&Fault> {
    blocks.iter().find_map(|block| block.shared.early.first())
}

/// The cause of a fault in a cluster: what its blocks do behind a read that came too early may follow from it.
fn first_cause(cluster: &[Block], fault: Fault) -> Fault {
    match early_read(cluster) {
        Some(early) if !explains(&fault) => early.clone(),
        _ => fault,
    }
}

/// Coordinates of a linear index.
fn split(linear: u64, [x, y, _]: [u64; 3]) -> [u64; 3] {
    [linear % x, linear / x % y, linear / x / y]
}
