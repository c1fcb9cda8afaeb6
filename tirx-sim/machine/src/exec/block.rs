//! A block: runs its warps in turn, and detects lack of progress.

use std::collections::BTreeMap;

use super::cells::Cells;
use super::cluster::Peers;
use super::engine::Engine;
use super::named;
use super::order::{Known, Order};
use super::run::{Machine, Stop, state};
use super::schedule::Draws;
use super::shadow::{HeldMemory, Shadows};
use super::wgmma;
use super::{Context, Shared, Status, Strand, Trap, Warp, fault, thread_of};
use crate::alu::LANES;
use crate::bytecode::{AsyncInst, Axis, PartedBarrier, Special};
use crate::explore::Footprint;
use crate::fault::{Fault, FaultKind, FaultNote};
use crate::memory::Symmetric;

pub(super) struct Block {
    /// Its rank in the cluster.
    pub(super) rank: usize,
    pub(super) shared: Shared,
    pub(super) warps: Vec<Warp>,
}

/// Which threads wait where and for what, for a deadlock report.
pub(super) struct Waiting {
    pub(super) pc: usize,
    pub(super) threads: u32,
    /// Linear index of the first of the threads.
    pub(super) first: u32,
    pub(super) what: String,
    pub(super) kind: WaitKind,
    /// The byte of the mbarrier that they wait for.
    pub(super) mbarrier: Option<u32>,
}

/// What threads wait at, the most telling in a report first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WaitKind {
    /// For registers.
    Registers,
    /// For an mbarrier or an operation, or for some threads of the block.
    Here,
    /// At a block barrier.
    Barrier,
    /// In a loop.
    Spin,
    /// For other blocks.
    Blocks,
}

impl Block {
    pub(super) fn new(ctx: &Context<'_>) -> Block {
        let code = ctx.code;
        let threads: u32 = ctx.block.iter().product();
        let shared_bytes = code.shared_end() as usize;
        let mut warps: Vec<Warp> = Vec::new();
        for id in 0..threads.div_ceil(LANES as u32) {
            let count = (threads - id * LANES as u32).min(LANES as u32);
            let mut warp = Warp {
                v32: vec![[0; LANES]; code.v32],
                v64: vec![[0; LANES]; code.v64],
                local: vec![[0; LANES]; code.local_words],
                local_written: vec![0; (code.local_words * 32) >> code.local_granule],
                written: vec![0; code.init_bits.len()],
                exist: u32::MAX >> (LANES as u32 - count),
                ..Warp::default()
            };
            for (register, dim) in &code.thread_index {
                for lane in 0..LANES as u32 {
                    let index = thread_of(ctx, id * LANES as u32 + lane)[*dim as usize];
                    warp.v32[*register as usize][lane as usize] = index;
                }
            }
            warps.push(warp);
        }
        let exist: Vec<u32> = warps.iter().map(|w| w.exist).collect();
        Block {
            rank: 0,
            shared: Shared {
                held: HeldMemory::default(),
                events: Vec::new(),
                recorded: false,
                latest: 0,
                engine: Engine::default(),
                early: super::early::EarlyReads::default(),
                fills: super::fills::Fills::default(),
                operations: false,
                registers: super::registers::Registers::default(),
                words: vec![0; shared_bytes.div_ceil(4) + 1],
                cells: Cells::new(
                    code.fine && ctx.check_races,
                    ((shared_bytes * 8) >> code.granule) + 8,
                ),
                order: Order::new(ctx.check_races, code.fine, &exist, ctx.blocks()),
                named: BTreeMap::new(),
                named_phases: BTreeMap::new(),
                draws: Draws::default(),
                at_barrier: 0,
                output: String::new(),
                lane_ops: 0,
                steps: 0,
                changes: 0,
                warpgroups: warpgroups(warps.len()),
                read_by_groups: BTreeMap::new(),
                bank: super::tcgen05::Bank::default(),
                waited: false,
                last: None,
                sheet: None,
                cluster_arrived: None,
                cluster_near: None,
                cluster_open: None,
                cluster_met: None,
                shared_out: false,
                index: [0; 3],
                linear: 0,
                rank: 0,
                turn: 0,
                in_turn: false,
                exploring: ctx.exploring,
                touched: Footprint::new(),
                may_act: false,
                lane_order: 0,
            },
            warps,
        }
    }

    /// Makes it the block at `index`, about to start.
    pub(super) fn start(&mut self, ctx: &Context<'_>, index: [u32; 3], number: u32) {
        let [gx, gy, _] = ctx.grid.map(|d| d as u64);
        let shared = &mut self.shared;
        shared.index = index;
        let own = index[0] as u64 + index[1] as u64 * gx + index[2] as u64 * gx * gy;
        let blocks = ctx.blocks_of_device() as u32;
        shared.rank = ctx.rank_of(number);
        shared.linear = own + u64::from(shared.rank) * u64::from(blocks);
        shared.cells.clear();
        shared.held.clear();
        let zeroed = !ctx.findings.after.is_empty();
        if zeroed {
            // Reads of what nobody has written give the same in every run.
            shared.words.fill(0);
        }
        let size = super::group::cluster_size(ctx) as u32;
        let device = (shared.rank * blocks, blocks);
        shared.order.reset(number, (number / size * size, size), device);
        shared.named.clear();
        shared.named_phases.clear();
        shared.at_barrier = 0;
        shared.draws = Draws::from_seed(ctx.seed ^ shared.linear.wrapping_mul(0x1f83_d9ab_fb41_bd6b));
        shared.sheet = None;
        shared.bank.reset();
        shared.waited = false;
        shared.warpgroups = warpgroups(self.warps.len());
        shared.read_by_groups.clear();
        shared.cluster_arrived = None;
        shared.cluster_near = None;
        shared.cluster_open = None;
        shared.cluster_met = None;
        shared.shared_out = false;
        shared.operations = false;
        shared.fills.clear();
        shared.early.clear();
        shared.events.clear();
        shared.recorded = ctx.timeline == Some(shared.linear);
        shared.latest = 0;
        shared.registers.clear();
        shared
            .engine
            .reset(ctx.seed ^ shared.linear.wrapping_mul(0x2545_f491_4f6c_dd1d));
        self.rank = number as usize % size as usize;
        shared.output.clear();
        shared.steps = 0;
        for (id, warp) in self.warps.iter_mut().enumerate() {
            warp.local_written.fill(0);
            if zeroed {
                warp.local.fill([0; LANES]);
            }
            warp.written.fill(0);
            warp.joins.clear();
            warp.strands.clear();
            warp.alive = warp.exist;
            warp.time = 0;
            warp.returned = 0;
            warp.wgmma.reset();
            warp.shadows = ctx.accuracy.is_some().then(|| Shadows::new(ctx.code));
            warp.stored.clear();
            warp.loading.clear();
            (warp.arrived, warp.owed) = (0, 0);
            warp.initializations.clear();
            let mut scalars = ctx.code.scalars.clone();
            for (register, special) in &ctx.code.specials {
                scalars[*register as usize] = special_value(ctx, (shared.rank, index), id, *special);
            }
            warp.strands.push(Strand {
                mask: warp.exist,
                ..Strand::fresh(scalars)
            });
        }
    }

    pub(super) fn done(&self) -> bool {
        self.warps.iter().all(|w| w.alive == 0)
    }

    /// Whether its shared memory no longer exists. It stays where the block has read it too early, until its cluster ends: the
    /// write that the block missed may be another block's.
    pub(super) fn gone(&self) -> bool {
        self.done() && self.shared.early.first().is_none()
    }

    pub(super) fn alive(&self) -> u32 {
        self.warps.iter().map(|w| w.alive.count_ones()).sum()
    }

    /// Runs until nothing in the block can continue. Gives whether anything made progress.
    pub(super) fn run(&mut self, ctx: &Context<'_>, mut peers: Peers<'_>) -> Result<bool, Fault> {
        let mut any = false;
        loop {
            let mut progress = false;
            let warps = self.warps.len();
            for id in ctx.warps_in_turn(&mut self.shared, warps) {
                match self.run_warp(ctx, id, &mut peers) {
                    Ok(went_on) => progress |= went_on,
                    Err((pc, fault)) => return Err(self.behind_parted_barrier(ctx, &mut peers, pc, fault)),
                }
                if let Some((pc, early)) = self.shared.early.latest()
                    && ctx.code.parted_barriers.iter().any(|b| b.end <= pc)
                {
                    return Err(self.behind_parted_barrier(ctx, &mut peers, pc, early));
                }
            }
            progress |= self.release(ctx)?;
            self.shared.engine.tick();
            progress |= self.perform(ctx, &mut peers)?;
            progress |= self.wake(ctx);
            let aborted = ctx.first_fault.load(std::sync::atomic::Ordering::Relaxed) < self.shared.turn;
            if self.done() && !aborted {
                self.drain(ctx, &mut peers)?;
                if self.gone() || peers.others().all(|(_, block)| block.done()) {
                    self.check_end(ctx)?;
                }
            }
            if self.done() || aborted {
                return Ok(true);
            }
            if !progress && !self.shared.engine.is_idle() {
                self.shared.engine.hurry();
                progress = self.perform(ctx, &mut peers)?;
            }
            if !progress {
                return Ok(any);
            }
            any = true;
            if self.shared.draws.yields {
                return Ok(true);
            }
        }
    }

    /// Lets lanes that wait for others of their warp continue alone: those that wait to reconverge, and those whose mbarrier is
    /// complete while another lane's is not. False where none wait.
    pub(super) fn run_ahead(&mut self, ctx: &Context<'_>) -> bool {
        self.warps.iter_mut().any(Warp::run_ahead) || self.wake_some(ctx)
    }

    /// A race, or a read of what others have not written yet, where threads of the block wait at a barrier that the thread at
    /// `fault_pc` has skipped: that is the cause.
    fn behind_parted_barrier(
        &mut self,
        ctx: &Context<'_>,
        peers: &mut Peers<'_>,
        fault_pc: usize,
        fault: Fault,
    ) -> Fault {
        let skipped = |barrier: &PartedBarrier| barrier.end <= fault_pc;
        let caused = matches!(fault.kind, FaultKind::Race | FaultKind::Uninitialized);
        if !caused || !ctx.code.parted_barriers.iter().any(skipped) {
            return fault;
        }
        // The others may not have come there yet. The run ends with this fault or that of the barrier: their own are none.
        for id in 0..self.warps.len() {
            let _later = self.run_warp(ctx, id, peers);
        }
        let parted = |s: &&Strand| {
            // A strand that waits stands behind its barrier.
            let barrier = ctx.code.parted_barrier(s.pc.saturating_sub(1));
            matches!(s.status, Status::Barrier(_)) && barrier.is_some_and(skipped)
        };
        let mut warps = self.warps.iter().enumerate();
        let Some((warp, strand)) = warps.find_map(|(id, w)| Some((id, w.strands.iter().find(parted)?)))
        else {
            return fault;
        };
        let pc = strand.pc.saturating_sub(1);
        let waiting = self
            .warps
            .iter()
            .flat_map(|w| &w.strands)
            .filter(|s| s.pc == strand.pc);
        let waiting: u32 = waiting.map(|s| s.mask.count_ones()).sum();
        let message = format!(
            "{waiting} of the block's {} threads wait at a block barrier (cta_sync) within a branch that other \
             threads do not take: all threads must come to the barrier",
            ctx.block.iter().product::<u32>()
        );
        let mut trap = Trap::new(
            FaultKind::BarrierDivergence,
            strand.mask.trailing_zeros() % 32,
            message,
        );
        trap.notes = Vec::new();
        let mut report = (*super::report(ctx, &self.shared, warp, pc, *trap)).clone();
        report.notes.push(FaultNote {
            message: format!("behind it {}", fault.message),
            location: fault.location.clone(),
        });
        report.into()
    }

    /// Performs the operations that are still in flight at the end of the block.
    pub(super) fn drain(&mut self, ctx: &Context<'_>, peers: &mut Peers<'_>) -> Result<(), Fault> {
        while !self.shared.engine.is_idle() {
            self.shared.engine.hurry();
            if !self.perform(ctx, peers)? {
                break;
            }
        }
        Ok(())
    }

    /// Runs each ready strand of a warp until it waits or yields. Gives whether anything made progress; where a
    /// thread is at fault, the instruction with it.
    fn run_warp(
        &mut self,
        ctx: &Context<'_>,
        id: usize,
        peers: &mut Peers<'_>,
    ) -> Result<bool, (usize, Fault)> {
        let mut progress = false;
        let shared = &mut self.shared;
        let warp = &mut self.warps[id];
        while let Some(i) = warp
            .strands
            .iter()
            .position(|s| s.status == Status::Ready && !s.spun && s.rest == 0)
        {
            let mut strand = warp.strands.remove(i);
            let began = strand.pc;
            if shared.recorded {
                shared.resume(ctx, warp, id, &mut strand);
            }
            let mut machine = Machine {
                ctx,
                device: &ctx.devices[shared.rank as usize],
                shared,
                warp,
                peers: peers.reborrow(),
                id,
                call: 0,
            };
            let stop = machine.run(&mut strand);
            if shared.recorded {
                shared.ran(warp, id, began);
            }
            let stop = match stop {
                Ok(stop) => stop,
                Err(trap) => return Err((strand.pc, fault(ctx, shared, id, strand.pc, *trap))),
            };
            match stop {
                Stop::Gone => progress = true,
                Stop::Blocked(status) => {
                    progress = true;
                    if let Status::Barrier(_) = status {
                        shared.at_barrier += strand.mask.count_ones();
                        let lane = strand.mask.trailing_zeros() & 31;
                        if let Some(trap) = named::mixed_with_0(shared, id, lane) {
                            let pc = strand.pc.saturating_sub(1);
                            return Err((pc, fault(ctx, shared, id, pc, *trap)));
                        }
                    }
                    strand.status = status;
                    strand.waits = Some((status, warp.time));
                    shared.latest = shared.latest.max(warp.time);
                    warp.part(&mut strand);
                    warp.strands.push(strand);
                }
                Stop::Paused(rounds) => {
                    progress = true;
                    (strand.spun, strand.rest) = (true, rounds);
                    warp.strands.push(strand);
                }
                Stop::Spun => {
                    warp.part(&mut strand);
                    let now = state(warp, &strand) ^ shared.changes;
                    if strand.yielded(now) {
                        progress = true;
                        shared.draws.spun();
                    }
                    warp.strands.push(strand);
                }
            }
            // A strand that waits for lanes of this warp may now have all of them.
            if warp.strands.iter().any(|s| s.status != Status::Ready) {
                let mut machine = Machine {
                    ctx,
                    device: &ctx.devices[shared.rank as usize],
                    shared,
                    warp,
                    peers: peers.reborrow(),
                    id,
                    call: 0,
                };
                match machine.meet_in_warp() {
                    Ok(met) => progress |= met,
                    Err((pc, trap)) => return Err((pc, fault(ctx, shared, id, pc, *trap))),
                }
            }
        }
        for strand in &mut warp.strands {
            strand.spun = false;
            progress |= strand.rest > 0;
            strand.rest = strand.rest.saturating_sub(1);
        }
        Ok(progress)
    }

    /// Whether all threads that have not ended wait at a barrier over several blocks.
    pub(super) fn all_at(&self, status: Status) -> bool {
        let mut strands = self.warps.iter().flat_map(|w| &w.strands);
        let lanes: u32 = strands
            .by_ref()
            .filter(|s| s.status == status)
            .map(|s| s.mask.count_ones())
            .sum();
        lanes == self.alive()
    }

    /// The first warp and lane that wait at a barrier over several blocks, and the instruction.
    pub(super) fn first_at(&self, status: Status) -> Option<(usize, u32, usize)> {
        self.warps.iter().enumerate().find_map(|(id, warp)| {
            let strand = warp.strands.iter().find(|s| s.status == status)?;
            Some((id, strand.mask.trailing_zeros() % 32, strand.pc.saturating_sub(1)))
        })
    }

    pub(super) fn open(&mut self, status: Status, released: Option<&Known>) {
        for strand in self.warps.iter_mut().flat_map(|w| &mut w.strands) {
            if strand.status == status {
                strand.status = Status::Ready;
            }
        }
        if let Some(released) = released {
            self.shared.order.acquire_all(released);
        }
    }

    /// Whether a strand spins in a loop rather than waits at an instruction.
    pub(super) fn spins(&self) -> bool {
        let mut strands = self.warps.iter().flat_map(|w| &w.strands);
        strands.any(|s| s.status == Status::Ready)
    }

    /// Which threads wait where.
    pub(super) fn waiting(&mut self, ctx: &Context<'_>) -> Vec<Waiting> {
        let mut out: Vec<Waiting> = Vec::new();
        let mut asleep = Vec::new();
        for id in 0..self.warps.len() {
            for at in 0..self.warps[id].strands.len() {
                let strand = &self.warps[id].strands[at];
                let (status, mask) = (strand.status, strand.mask);
                if let Status::Asleep(inst) = status {
                    let byte = self.awaited_mbarrier(ctx, id, (inst, mask));
                    asleep.push((self.sleeps_for(ctx, id, (inst, mask)), byte));
                }
            }
        }
        let mut asleep = asleep.into_iter();
        for (id, warp) in self.warps.iter().enumerate() {
            for strand in &warp.strands {
                let mut mbarrier = None;
                let what = match strand.status {
                    Status::Asleep(_) => {
                        let (what, byte) = asleep.next().unwrap_or_default();
                        mbarrier = byte;
                        what.unwrap_or_default()
                    }
                    Status::Ready if ctx.code.is_barrier_of_ranks(strand.pc) => {
                        "wait at a barrier of all ranks (nvshmem.barrier_all)".to_string()
                    }
                    Status::Ready => "spin in a loop that waits for memory that nobody writes".to_string(),
                    Status::Barrier(_) => "wait at a block barrier".to_string(),
                    Status::Named(barrier, threads, _) => {
                        format!("wait at named barrier {barrier} for {threads} threads")
                    }
                    Status::WarpSync => "wait at a warp barrier for the other lanes".to_string(),
                    Status::Exchange(_, needed) => {
                        let missing: Vec<String> = (0..LANES as u32)
                            .filter(|l| (needed & !strand.mask) >> l & 1 != 0)
                            .map(|l| l.to_string())
                            .collect();
                        format!("wait to exchange values with lanes {}", missing.join(", "))
                    }
                    Status::Cluster => "wait at a cluster barrier".to_string(),
                    Status::Grid => "wait at a grid barrier".to_string(),
                    Status::Warpgroup(groups) => {
                        let group = &self.shared.warpgroups[id / wgmma::WARPS];
                        let first = id / wgmma::WARPS * wgmma::WARPS;
                        let missing: Vec<usize> = group
                            .missing(groups)
                            .into_iter()
                            .map(|warp| first + warp)
                            .collect();
                        let gone = |warp: &&usize| **warp >= self.warps.len() || group.has_ended(**warp);
                        let gone = match missing.iter().find(gone) {
                            Some(warp) if *warp >= self.warps.len() => format!(" (there is no warp {warp})"),
                            Some(warp) => format!(" (warp {warp} has ended)"),
                            None => String::new(),
                        };
                        let (warps, have) = match missing.len() {
                            1 => ("warp", "has"),
                            _ => ("warps", "have"),
                        };
                        let missing: Vec<String> = missing.iter().map(usize::to_string).collect();
                        format!(
                            "wait for a wgmma group that {warps} {} of the warpgroup {have} not committed{gone}",
                            missing.join(", ")
                        )
                    }
                };
                let behind = !strand.status.repeats();
                let pc = strand.pc.saturating_sub(behind as usize);
                let threads = strand.mask.count_ones();
                match out.iter_mut().find(|w| w.pc == pc && w.what == what) {
                    Some(same) => same.threads += threads,
                    None => out.push(Waiting {
                        pc: loop_place(ctx, pc),
                        threads,
                        first: id as u32 * LANES as u32 + strand.mask.trailing_zeros(),
                        what,
                        kind: match strand.status {
                            Status::Ready if ctx.code.is_barrier_of_ranks(strand.pc) => WaitKind::Blocks,
                            Status::Ready => WaitKind::Spin,
                            Status::Barrier(_) => WaitKind::Barrier,
                            Status::Cluster | Status::Grid => WaitKind::Blocks,
                            Status::Asleep(id) if is_for_registers(ctx, id) => WaitKind::Registers,
                            _ => WaitKind::Here,
                        },
                        mbarrier,
                    }),
                }
            }
        }
        out
    }
}

/// The warpgroups of a block with so many warps.
fn warpgroups(warps: usize) -> Vec<wgmma::Warpgroup> {
    let groups = warps.div_ceil(wgmma::WARPS);
    (0..groups).map(|_| wgmma::Warpgroup::default()).collect()
}

/// Whether an asynchronous instruction waits for registers.
fn is_for_registers(ctx: &Context<'_>, id: u16) -> bool {
    matches!(ctx.code.asynchronous[id as usize], AsyncInst::SetRegisters { .. })
}

/// The instruction to show for a strand that stopped at `pc`.
fn loop_place(ctx: &Context<'_>, pc: usize) -> usize {
    pc.min(ctx.code.insts.len().saturating_sub(1))
}

/// The value of a launch-time scalar.
fn special_value(ctx: &Context<'_>, (rank, index): (u32, [u32; 3]), warp: usize, special: Special) -> u64 {
    let cluster = ctx.cluster.map(|d| d.max(1));
    let value = match special {
        Special::Param(i) => {
            let (_, kind) = &ctx.code.params[i as usize];
            return kind.load(kind.truncate(ctx.devices[rank as usize].args[i as usize]));
        }
        Special::Index(Axis::Block(d)) => index[d as usize],
        Special::Index(Axis::ClusterCta(d)) => index[d as usize] % cluster[d as usize],
        Special::Index(Axis::Cluster(d)) => index[d as usize] / cluster[d as usize],
        Special::Index(Axis::Thread(d)) | Special::WarpThread(d) => {
            thread_of(ctx, (warp * LANES) as u32)[d as usize]
        }
        Special::Rank => rank,
        Special::Ranks => ctx.ranks(),
        Special::Arrivals => {
            return ctx
                .arrivals
                .as_ref()
                .map_or(0, |arrivals| arrivals.part(rank).address());
        }
        Special::ArrivalsWindow => return ctx.arrivals.as_ref().map_or(0, Symmetric::window),
        Special::WarpId => warp as u32,
        Special::GridDim(d) => ctx.grid[d as usize],
        Special::BlockDim(d) => ctx.block[d as usize],
        Special::ClusterDim(d) => cluster[d as usize],
        Special::ClusterRank => {
            let [x, y, z] = [0, 1, 2].map(|d| index[d] % cluster[d]);
            x + cluster[0] * (y + cluster[1] * z)
        }
    };
    value as u64
}
