//! A block: runs its warps in turn, opens its barriers, and detects lack of progress.

use std::collections::BTreeMap;

use super::cells::Cells;
use super::cluster::Peers;
use super::engine::Engine;
use super::exchange::Arguments;
use super::named::{self, OF_THE_BLOCK};
use super::order::{Known, Order, Place};
use super::run::{Machine, Stop, state};
use super::schedule::Draws;
use super::{Context, Shared, Status, Strand, Trap, Warp, fault, thread_of};
use crate::alu::LANES;
use crate::bytecode::{Axis, Operand, Special};
use crate::explore::Footprint;
use crate::fault::{Fault, FaultKind, FaultNote};
use crate::findings::Excusable;

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
    pub(super) spins: bool,
    /// Whether they wait at a block barrier.
    pub(super) barrier: bool,
}

impl Block {
    pub(super) fn new(ctx: &Context<'_>) -> Block {
        let code = ctx.code;
        let threads: u32 = ctx.block.iter().product();
        let shared_bytes = code.shared.iter().map(|a| a.offset + a.bytes).max().unwrap_or(0) as usize;
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
                events: Vec::new(),
                recorded: false,
                latest: 0,
                engine: Engine::default(),
                fills: super::fills::Fills::default(),
                operations: false,
                registers: BTreeMap::new(),
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
                read_by_groups: BTreeMap::new(),
                bank: super::tcgen05::Bank::default(),
                waited: false,
                last: None,
                sheet: None,
                cluster_arrived: None,
                cluster_open: None,
                cluster_met: None,
                shared_out: false,
                index: [0; 3],
                linear: 0,
                turn: 0,
                in_turn: false,
                exploring: ctx.exploring,
                touched: Footprint::new(),
                may_act: false,
            },
            warps,
        }
    }

    /// Makes it the block at `index`, about to start.
    pub(super) fn start(&mut self, ctx: &Context<'_>, index: [u32; 3], number: u32) {
        let [gx, gy, _] = ctx.grid.map(|d| d as u64);
        let shared = &mut self.shared;
        shared.index = index;
        shared.linear = index[0] as u64 + index[1] as u64 * gx + index[2] as u64 * gx * gy;
        shared.cells.clear();
        let zeroed = !ctx.findings.after.is_empty();
        if zeroed {
            // Reads of what nobody has written give the same in every run.
            shared.words.fill(0);
        }
        let size = super::group::cluster_size(ctx) as u32;
        shared.order.reset(number, (number / size * size, size));
        shared.named.clear();
        shared.named_phases.clear();
        shared.at_barrier = 0;
        shared.draws = Draws::of(ctx.seed ^ shared.linear.wrapping_mul(0x1f83_d9ab_fb41_bd6b));
        shared.sheet = None;
        shared.bank.reset();
        shared.waited = false;
        shared.read_by_groups.clear();
        shared.cluster_arrived = None;
        shared.cluster_open = None;
        shared.cluster_met = None;
        shared.shared_out = false;
        shared.operations = false;
        shared.fills.clear();
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
            warp.stored.clear();
            warp.loading.clear();
            (warp.arrived, warp.owed) = (0, 0);
            warp.initializations.clear();
            let mut scalars = ctx.code.scalars.clone();
            for (register, special) in &ctx.code.specials {
                scalars[*register as usize] = special_value(ctx, index, id, *special);
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
                progress |= self
                    .run_warp(ctx, id, &mut peers)
                    .map_err(|fault| self.behind_parted_barrier(ctx, fault))?;
            }
            progress |= self.release(ctx)?;
            self.shared.engine.tick();
            progress |= self.perform(ctx, &mut peers)?;
            progress |= self.wake(ctx);
            let aborted = ctx.first_fault.load(std::sync::atomic::Ordering::Relaxed) < self.shared.turn;
            if self.done() && !aborted {
                self.drain(ctx, &mut peers)?;
                self.check_end(ctx)?;
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

    /// Lets lanes that wait to reconverge with others continue alone. False where none wait.
    pub(super) fn run_ahead(&mut self) -> bool {
        self.warps.iter_mut().any(Warp::run_ahead)
    }

    /// A race, where threads of the block wait at a barrier that others have skipped: that is the cause.
    fn behind_parted_barrier(&self, ctx: &Context<'_>, fault: Fault) -> Fault {
        if fault.kind != FaultKind::Race {
            return fault;
        }
        let parted = |s: &&Strand| {
            let pc = s.pc.saturating_sub(1);
            matches!(s.status, Status::Barrier(_)) && ctx.code.parted_barriers.contains(&pc)
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
        let (barrier, race) = (ctx.code.location(pc), fault.location.clone());
        let behind = match (&barrier, &race) {
            (Some(barrier), Some(race)) => barrier.file == race.file && barrier.bytes.0 < race.bytes.0,
            _ => false,
        };
        if !behind {
            return fault;
        }
        let message = format!(
            "{waiting} of the block's {} threads wait at a block barrier (cta_sync) within a branch that the others do not take: \
             all of them must come to it",
            self.alive()
        );
        let mut trap = Trap::new(
            FaultKind::BarrierDivergence,
            strand.mask.trailing_zeros() % 32,
            message,
        );
        trap.notes = Vec::new();
        let mut report = (*super::fault(ctx, &self.shared, warp, pc, *trap)).clone();
        report.notes.push(FaultNote {
            message: format!("behind it {}", fault.message),
            location: race,
        });
        report.into()
    }

    /// A block's shared memory exists until it ends: accesses by other blocks must be ordered before that.
    pub(super) fn check_end(&self, ctx: &Context<'_>) -> Result<(), Fault> {
        self.check_barriers(ctx)?;
        self.check_warpgroups(ctx)?;
        if let Some((columns, pc)) = self.shared.bank.leak() {
            let message = format!(
                "the block ends with {columns} columns of tensor memory allocated: tcgen05.dealloc is missing"
            );
            let trap = Trap::new(FaultKind::Asynchronous, 0, message);
            return Err(fault(ctx, &self.shared, 0, pc, *trap));
        }
        if !self.shared.shared_out && !self.shared.operations {
            return Ok(());
        }
        let Cells::Fine(places) = &self.shared.cells else {
            return Ok(());
        };
        let order = &self.shared.order;
        let mut known = order.everything();
        self.shared.cluster_met.iter().for_each(|met| known.join(met));
        let left = |place: &Place| place.left_behind(order.block, &known.all);
        for (mark, wrote) in places.iter().filter_map(left) {
            let does = if wrote { "writes" } else { "reads" };
            if !mark.is_operation() {
                let message = format!(
                    "a thread of another block of the cluster {does} shared memory of this block, which may have ended by then: no \
                     cluster barrier stands between"
                );
                let trap = Trap::new(FaultKind::Race, 0, message);
                return Err(fault(ctx, &self.shared, 0, mark.pc(), *trap));
            }
            let message = format!(
                "the block ends while an asynchronous operation {does} its shared memory: no thread has waited for its completion"
            );
            let trap = Trap::new(FaultKind::Asynchronous, mark.thread() % 32, message);
            let by = (mark.warp(), mark.pc());
            let excused = match wrote {
                true => Err(trap),
                false => super::excuse(ctx, &self.shared, by, Excusable::UnfinishedRead, trap),
            };
            excused.map_err(|trap| fault(ctx, &self.shared, by.0, by.1, *trap))?;
        }
        Ok(())
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

    /// The four warps of a warpgroup issue a wgmma together.
    fn check_warpgroups(&self, ctx: &Context<'_>) -> Result<(), Fault> {
        for (group, warps) in self.warps.chunks(4).enumerate() {
            let counts = warps
                .iter()
                .map(|w| w.wgmma.issued())
                .chain((warps.len()..4).map(|_| (0, 0)));
            let counts: Vec<(u32, usize)> = counts.collect();
            let Some((most, (issued, pc))) = counts.iter().enumerate().max_by_key(|(_, (n, _))| *n) else {
                continue;
            };
            let Some(least) = counts.iter().position(|(n, _)| n < issued) else {
                continue;
            };
            let (most, least) = (group * 4 + most, group * 4 + least);
            let message = format!(
                "warp {most} has issued {issued} wgmma operations, and warp {least} of its warpgroup {}: the four warps of a \
                 warpgroup issue each together",
                counts[least % 4].0
            );
            let trap = Trap::new(FaultKind::Asynchronous, 0, message);
            return Err(fault(ctx, &self.shared, most, *pc, *trap));
        }
        Ok(())
    }

    /// An mbarrier whose expected and copied bytes differ at the end of the block.
    fn check_barriers(&self, ctx: &Context<'_>) -> Result<(), Fault> {
        if let Some(barrier) = self.shared.engine.barriers.values().find(|b| b.bytes != 0) {
            let message = format!(
                "the block ends while phase {} of an mbarrier waits for {}",
                barrier.phase,
                barrier.missing(ctx.code)
            );
            let mark = barrier.init;
            let trap = Trap::new(FaultKind::Asynchronous, mark.thread() % 32, message);
            return Err(fault(ctx, &self.shared, mark.warp(), mark.pc(), *trap));
        }
        Ok(())
    }

    /// Runs each ready strand of a warp until it waits or yields. Gives whether anything made progress.
    fn run_warp(&mut self, ctx: &Context<'_>, id: usize, peers: &mut Peers<'_>) -> Result<bool, Fault> {
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
                shared,
                warp,
                peers: peers.reborrow(),
                id,
                call: 0,
            };
            let stop = match machine.run(&mut strand) {
                Ok(stop) => stop,
                Err(trap) => return Err(fault(ctx, shared, id, strand.pc, *trap)),
            };
            if shared.recorded {
                shared.ran(warp, id, began);
            }
            match stop {
                Stop::Gone => progress = true,
                Stop::Blocked(status) => {
                    progress = true;
                    if let Status::Barrier(_) = status {
                        shared.at_barrier += strand.mask.count_ones();
                        let lane = strand.mask.trailing_zeros() & 31;
                        if let Some(trap) = named::mixed_with_0(shared, id, lane) {
                            return Err(fault(ctx, shared, id, strand.pc.saturating_sub(1), *trap));
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
                    shared.draws.spun();
                    warp.part(&mut strand);
                    let now = state(warp, &strand) ^ shared.changes;
                    progress |= strand.yielded(now);
                    warp.strands.push(strand);
                }
            }
            // A strand that waits for lanes of this warp may now have all of them.
            if warp.strands.iter().any(|s| s.status != Status::Ready) {
                let mut machine = Machine {
                    ctx,
                    shared,
                    warp,
                    peers: peers.reborrow(),
                    id,
                    call: 0,
                };
                match machine.meet_in_warp() {
                    Ok(met) => progress |= met,
                    Err((pc, trap)) => return Err(fault(ctx, shared, id, pc, *trap)),
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

    /// Opens the barriers at which all threads have arrived.
    pub(super) fn release(&mut self, ctx: &Context<'_>) -> Result<bool, Fault> {
        let alive = self.alive();
        let at = |block: &Block, pred: &dyn Fn(Status) -> bool| -> u32 {
            let strands = block.warps.iter().flat_map(|w| &w.strands);
            strands
                .filter(|s| pred(s.status))
                .map(|s| s.mask.count_ones())
                .sum()
        };
        let mut released = false;
        let arrived = at(self, &|s| matches!(s, Status::Barrier(_)));
        if arrived > 0 {
            self.check_barrier_0(ctx)?;
        }
        if arrived > 0 && arrived == alive {
            self.check_all_came(ctx)?;
            self.open_barrier();
            released = true;
        }
        released |= named::open(&mut self.warps, &mut self.shared);
        Ok(released)
    }

    /// The block barrier is named barrier 0: no phase of that may be open while threads wait at it.
    fn check_barrier_0(&self, ctx: &Context<'_>) -> Result<(), Fault> {
        let open = self.shared.named.get(&0).map(named::Arrivals::count);
        let Some((count, threads)) = open.filter(|(count, threads)| count < threads) else {
            return Ok(());
        };
        let mut warps = self.warps.iter().enumerate();
        let found = warps.find_map(|(id, warp)| {
            let mut strands = warp.strands.iter();
            let strand = strands.find(|s| matches!(s.status, Status::Barrier(_)))?;
            Some((id, strand))
        });
        let Some((id, strand)) = found else {
            return Ok(());
        };
        let message = format!("{count} of {threads} threads are at named barrier 0 while {OF_THE_BLOCK}");
        let lane = strand.mask.trailing_zeros() & 31;
        let trap = Trap::new(FaultKind::InvalidBarrier, lane, message);
        Err(fault(ctx, &self.shared, id, strand.pc.saturating_sub(1), *trap))
    }

    /// A block barrier that some threads have skipped is an error, even if the rest could continue.
    fn check_all_came(&self, ctx: &Context<'_>) -> Result<(), Fault> {
        for (id, warp) in self.warps.iter().enumerate() {
            let mut here = warp
                .strands
                .iter()
                .filter(|s| matches!(s.status, Status::Barrier(_)));
            let Some(first) = here.next() else { continue };
            if let Some(other) = here.find(|s| s.pc != first.pc) {
                let message = format!(
                    "lane {} of the warp waits at another block barrier than lane {}: all lanes of a warp come to a barrier \
                     (barrier.sync.aligned) together",
                    other.mask.trailing_zeros(),
                    first.mask.trailing_zeros()
                );
                let mut trap = Trap::new(
                    FaultKind::BarrierDivergence,
                    first.mask.trailing_zeros() % LANES as u32,
                    message,
                );
                trap.notes
                    .push(("the other barrier".to_string(), other.pc.saturating_sub(1)));
                return Err(fault(ctx, &self.shared, id, first.pc.saturating_sub(1), *trap));
            }
        }
        let missing = |w: &Warp| w.exist & !w.alive & !w.returned;
        let count: u32 = self.warps.iter().map(|w| missing(w).count_ones()).sum();
        if count == 0 {
            return Ok(());
        }
        let first = self.warps.iter().enumerate().find(|(_, w)| missing(w) != 0);
        let absent = first.map_or(0, |(id, w)| {
            id as u32 * LANES as u32 + missing(w).trailing_zeros()
        });
        let [x, y, z] = thread_of(ctx, absent);
        for (id, warp) in self.warps.iter().enumerate() {
            if let Some(strand) = warp
                .strands
                .iter()
                .find(|s| matches!(s.status, Status::Barrier(_)))
            {
                let threads = if count == 1 { "thread" } else { "threads" };
                let message = format!(
                    "{count} {threads} of the block ended without reaching this barrier, thread ({x}, {y}, {z}) \
                     the first"
                );
                let lane = strand.mask.trailing_zeros();
                let trap = Trap::new(FaultKind::BarrierDivergence, lane, message);
                return Err(fault(ctx, &self.shared, id, strand.pc.saturating_sub(1), *trap));
            }
        }
        Ok(())
    }

    fn open_barrier(&mut self) {
        self.shared.at_barrier = 0;
        let (mut all, mut any) = (true, false);
        for warp in &self.warps {
            for strand in &warp.strands {
                if let Status::Barrier(Some((_, v, _))) = strand.status {
                    let lanes = &warp.v32[v as usize];
                    for lane in (0..LANES).filter(|l| strand.mask >> l & 1 != 0) {
                        all &= lanes[lane] != 0;
                        any |= lanes[lane] != 0;
                    }
                }
            }
        }
        for strand in self.warps.iter_mut().flat_map(|w| &mut w.strands) {
            if let Status::Barrier(wish) = strand.status {
                if let Some((d, _, wants_all)) = wish {
                    strand.scalars[d as usize] = if wants_all { all } else { any } as u64;
                }
                strand.status = Status::Ready;
            }
        }
        self.warps.iter_mut().for_each(Warp::unite);
        self.shared.order.barrier();
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
                    asleep.push(self.sleeps_for(ctx, id, (inst, mask)));
                }
            }
        }
        let mut asleep = asleep.into_iter();
        for (id, warp) in self.warps.iter().enumerate() {
            for strand in &warp.strands {
                let what = match strand.status {
                    Status::Asleep(_) => asleep.next().flatten().unwrap_or_default(),
                    Status::Ready => "spin in a loop that waits for memory that nobody writes".to_string(),
                    Status::Barrier(_) => "wait at a block barrier".to_string(),
                    Status::Named(barrier, threads) => {
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
                };
                // Lanes that sleep execute the instruction again; the others have passed it.
                let behind = !matches!(strand.status, Status::Asleep(_));
                let pc = strand.pc.saturating_sub(behind as usize);
                let threads = strand.mask.count_ones();
                match out.iter_mut().find(|w| w.pc == pc && w.what == what) {
                    Some(same) => same.threads += threads,
                    None => out.push(Waiting {
                        pc: loop_place(ctx, pc),
                        threads,
                        first: id as u32 * LANES as u32 + strand.mask.trailing_zeros(),
                        what,
                        spins: strand.status == Status::Ready,
                        barrier: matches!(strand.status, Status::Barrier(_)),
                    }),
                }
            }
        }
        out
    }
}

/// The instruction to show for a strand that stopped at `pc`.
fn loop_place(ctx: &Context<'_>, pc: usize) -> usize {
    pc.min(ctx.code.insts.len().saturating_sub(1))
}

impl Machine<'_, '_> {
    /// Resumes strands whose warp barrier or exchange has all its lanes. On an error, gives the instruction.
    pub(super) fn meet_in_warp(&mut self) -> Result<bool, (usize, Box<Trap>)> {
        let mut met = false;
        let alive = self.warp.alive;
        let at_barrier = self
            .warp
            .strands
            .iter()
            .filter(|s| s.status == Status::WarpSync)
            .fold(0, |mask, s| mask | s.mask);
        if at_barrier != 0 && at_barrier == alive {
            for strand in &mut self.warp.strands {
                if strand.status == Status::WarpSync {
                    strand.status = Status::Ready;
                }
            }
            self.warp.unite();
            self.shared.order.warp_sync(self.id);
            met = true;
        }
        let waiting: Vec<(usize, u16, u32)> = self
            .warp
            .strands
            .iter()
            .filter_map(|s| match s.status {
                Status::Exchange(id, needed) => Some((s.pc, id, needed)),
                _ => None,
            })
            .collect();
        for (pc, id, needed) in waiting {
            let is_here = |s: &Strand| s.pc == pc && matches!(s.status, Status::Exchange(i, _) if i == id);
            let here = self
                .warp
                .strands
                .iter()
                .filter(|s| is_here(s))
                .fold(0, |m, s| m | s.mask);
            if here == 0 || needed & self.warp.alive & !here != 0 {
                continue;
            }
            let shuffle = &self.ctx.code.shuffles[id as usize];
            let mut arguments = Arguments::new();
            let mut lanes = 0;
            for strand in self.warp.strands.iter().filter(|s| is_here(s)) {
                // Strands that still wait for others are left out.
                let Status::Exchange(_, theirs) = strand.status else {
                    continue;
                };
                if theirs & self.warp.alive & !here == 0 {
                    self.arguments(shuffle, strand, &mut arguments);
                    lanes |= strand.mask;
                }
            }
            let uniform = self
                .exchange(shuffle, lanes, &arguments)
                .map_err(|trap| (pc - 1, trap))?;
            for strand in &mut self.warp.strands {
                if is_here(strand) && strand.mask & lanes != 0 {
                    strand.status = Status::Ready;
                    if let Operand::S(d) = shuffle.d {
                        strand.scalars[d as usize] = uniform;
                    }
                }
            }
            met = true;
        }
        Ok(met)
    }
}

/// The value of a launch-time scalar.
fn special_value(ctx: &Context<'_>, index: [u32; 3], warp: usize, special: Special) -> u64 {
    let cluster = ctx.cluster.map(|d| d.max(1));
    let value = match special {
        Special::Param(i) => {
            let (_, kind) = &ctx.code.params[i as usize];
            return kind.load(kind.truncate(ctx.args[i as usize]));
        }
        Special::Index(Axis::Block(d)) => index[d as usize],
        Special::Index(Axis::ClusterCta(d)) => index[d as usize] % cluster[d as usize],
        Special::Index(Axis::Cluster(d)) => index[d as usize] / cluster[d as usize],
        Special::Index(Axis::Thread(d)) | Special::WarpThread(d) => {
            thread_of(ctx, (warp * LANES) as u32)[d as usize]
        }
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
