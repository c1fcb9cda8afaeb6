//! A launch step by step: one actor at a time acts, which the search through all orders chooses (`crate::explore`).
//!
//! All blocks are under way from the beginning. Between two choices everything goes on that depends on no other actor:
//! strands run up to the next instruction that others may react to, barriers open at which all have arrived, copies that
//! signal nobody take effect. Where sides of a branch come to such an instruction they become strands of their own, so that
//! either may act first; lanes at one instruction act together.
//!
//! Which events happened before is kept for each lane: the search need not try the other order of those.

use std::collections::{BTreeMap, BTreeSet};

use super::block::Block;
use super::cluster::Peers;
use super::group::{Group, block_index, cluster_size};
use super::lane_orders::LaneOrders;
use super::run::{Machine, Stop, left, state};
use super::wgmma;
use super::{Context, Status, Turn, Warp, fault};
use crate::alu::{FULL, LANES};
use crate::bytecode::{AsyncInst, Code, Inst, MbarrierWhat};
use crate::explore::{Actor, Events, Exploration, Object, Touch};
use crate::fault::{Fault, FaultNote};

/// Most blocks of a launch: each is in memory from beginning to end.
const MAX_BLOCKS: u64 = 64;
/// Most events of an iteration of a loop that waits for ever that are run for its report.
const MAX_READS: usize = 64;
/// How many of the last events a fault tells.
const TOLD: usize = 6;

/// What a launch did: lane operations and output.
type Done = (u64, String);

/// Runs a launch of so many groups to its end, or until the search leaves it.
pub(crate) fn run(ctx: &Context<'_>, groups: u64, exploration: &Exploration) -> Result<Done, Fault> {
    if let Some(why) = ctx.code.not_explored() {
        exploration.cut(why.to_string());
    }
    let blocks = ctx.blocks();
    let most = MAX_BLOCKS.min(ctx.most_resident() * u64::from(ctx.ranks()));
    if blocks > most {
        exploration.cut(format!(
            "the launch has {blocks} blocks, and {most} is the most that are explored at once"
        ));
    }
    // Also the launches that follow one that was left.
    if exploration.left() {
        return Ok(Done::default());
    }
    let before = exploration.so_far();
    let mut all = Vec::new();
    for number in 0..groups {
        let mut group = Group::new(ctx);
        group.start(ctx, number);
        all.push(group);
    }
    let warps = all.first().map_or(0, |group| group.blocks[0].warps.len());
    let mut steps = Steps {
        ctx,
        exploration,
        groups: all,
        clocks: Clocks {
            warps,
            lanes: vec![before; blocks as usize * warps * LANES],
            operations: BTreeMap::new(),
            commits: BTreeMap::new(),
        },
        polls: Polls::default(),
        ended: BTreeSet::new(),
        trail: Vec::new(),
        stuck: false,
    };
    let result = steps.run();
    if !exploration.is_retracted() {
        steps.note_waits();
    }
    match result {
        Ok(true) => {}
        Ok(false) => exploration.leave(),
        Err(_) if steps.stuck => {}
        Err(_) => exploration.failed(),
    }
    result.map_err(|fault| steps.told(fault))?;
    let harvested = steps.groups.iter_mut().map(Group::harvest);
    Ok(harvested.fold(Done::default(), |(ops, text), (more, said)| {
        (ops + more, text + &said)
    }))
}

/// The events that happened before the next one of each lane, and before each operation was issued.
struct Clocks {
    warps: usize,
    lanes: Vec<Events>,
    operations: BTreeMap<Actor, Events>,
    /// For each warp, those before each `wgmma.commit_group`, and how many groups it has waited for.
    commits: BTreeMap<(u32, usize), (Vec<Events>, u64)>,
}

impl Clocks {
    fn at(&mut self, block: u32, warp: usize, lane: u32) -> &mut Events {
        &mut self.lanes[(block as usize * self.warps + warp) * LANES + lane as usize % LANES]
    }

    /// What some lanes know together.
    fn join_lanes(&mut self, block: u32, warp: usize, mask: u32) -> Events {
        let mut all = Events::default();
        for lane in lanes(mask) {
            all.join(self.at(block, warp, lane));
        }
        all
    }

    fn set(&mut self, block: u32, warp: usize, mask: u32, known: &Events) {
        for lane in lanes(mask) {
            self.at(block, warp, lane).clone_from(known);
        }
    }

    /// A warp has run: where it has waited for groups of `wgmma`, the commits of all warps of its warpgroup happened before.
    fn follow_warpgroup(&mut self, block: &Block, warp: usize) {
        let number = block.shared.order.block;
        let (committed, waited) = block.shared.warpgroups[warp / wgmma::WARPS].groups(warp);
        let known = self.commits.get(&(number, warp));
        let (commits, before) = known.map_or((0, 0), |(commits, waited)| (commits.len() as u64, *waited));
        if (committed, waited) == (commits, before) {
            return;
        }
        let mut all = self.join_lanes(number, warp, FULL);
        if waited > before {
            let first = warp / wgmma::WARPS * wgmma::WARPS;
            let others = (first..first + wgmma::WARPS).filter_map(|other| self.commits.get(&(number, other)));
            let seen = others.filter_map(|(commits, _)| commits.get(waited as usize - 1));
            seen.for_each(|events| all.join(events));
            self.set(number, warp, FULL, &all);
        }
        let (commits, before) = self.commits.entry((number, warp)).or_default();
        commits.resize(committed as usize, all);
        *before = waited;
    }

    /// Lanes that have met know what each of them knew.
    fn meet(&mut self, met: &[(u32, usize, u32)]) {
        let mut all = Events::default();
        for (block, warp, mask) in met {
            all.join(&self.join_lanes(*block, *warp, *mask));
        }
        for (block, warp, mask) in met {
            self.set(*block, *warp, *mask, &all);
        }
    }
}

fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    (0..LANES as u32).filter(move |lane| mask >> lane & 1 != 0)
}

/// Loops that poll.
#[derive(Default)]
struct Polls {
    /// What an actor has read since the last iteration.
    read: BTreeMap<Actor, BTreeSet<Object>>,
    /// Actors whose iteration has changed nothing: they go on when one of these changes.
    waiting: BTreeMap<Actor, BTreeSet<Object>>,
    /// Actors that have just ended an iteration of that kind, with the iterations.
    failed: Vec<(Actor, Turn)>,
}

struct Steps<'a, 'c> {
    ctx: &'a Context<'c>,
    exploration: &'a Exploration,
    groups: Vec<Group>,
    clocks: Clocks,
    polls: Polls,
    /// Blocks that have ended.
    ended: BTreeSet<u32>,
    /// Who acted, and where.
    trail: Vec<(Actor, usize)>,
    /// The launch has ended in a deadlock.
    stuck: bool,
}

/// The lanes of a strand as an actor.
fn actor(block: &Block, warp: usize, mask: u32) -> Actor {
    Actor::Lanes {
        block: block.shared.order.block,
        warp: warp as u32,
        lane: mask.trailing_zeros(),
        order: 0,
    }
}

impl Steps<'_, '_> {
    /// Whether the run came to its end, rather than being left as one that repeats others.
    fn run(&mut self) -> Result<bool, Fault> {
        loop {
            self.settle()?;
            if self.retracts() {
                return Ok(false);
            }
            self.polls.waiting.extend(self.exploration.failing());
            let enabled = self.enabled();
            if enabled.is_empty() {
                if self.groups.iter().flat_map(|g| &g.blocks).all(Block::done) {
                    return Ok(true);
                }
                let ctx = self.ctx;
                let mut blocks = self.groups.iter_mut().flat_map(|g| &mut g.blocks);
                if blocks.any(|block| block.run_ahead(ctx)) {
                    continue;
                }
                let stuck = |group: &&mut Group| !group.blocks.iter().all(Block::done);
                if self.groups.iter_mut().any(|group| stuck(&group)) {
                    self.poll_in_vain()?;
                }
                let mut groups: Vec<&mut Group> = self.groups.iter_mut().filter(stuck).collect();
                for group in &mut groups {
                    fall_asleep(self.ctx.code, group);
                }
                if let Some(fault) = super::deadlock(self.ctx, groups.into_iter(), 0) {
                    self.stuck = true;
                    return Err(fault);
                }
                return Ok(true);
            }
            let polling: Vec<Actor> = self.polls.waiting.keys().copied().collect();
            let Some(chosen) = self.exploration.choose(&enabled, &polling) else {
                return Ok(false);
            };
            self.act(chosen)?;
        }
    }

    /// Loops that have polled in vain wait. Gives whether an earlier state of the run is where one of them shall wait.
    fn retracts(&mut self) -> bool {
        for (who, turn) in std::mem::take(&mut self.polls.failed) {
            if let Some((first, _)) = turn.events
                && self.exploration.retract(who, first, &turn.reads)
            {
                return true;
            }
            self.polls.waiting.insert(who, turn.reads);
        }
        false
    }

    /// At the end of a run: waits that are not over may have been, had they come earlier.
    fn note_waits(&mut self) {
        let ctx = self.ctx;
        for block in self.groups.iter_mut().flat_map(|group| &mut group.blocks) {
            let number = block.shared.order.block;
            for warp in 0..block.warps.len() {
                for at in 0..block.warps[warp].strands.len() {
                    let strand = &block.warps[warp].strands[at];
                    let mask = strand.mask;
                    let inst = match strand.status {
                        Status::Asleep(inst) => Some(inst),
                        Status::Ready => wait_of(ctx.code, strand.pc),
                        _ => None,
                    };
                    let Some(inst) = inst.filter(|_| ctx.code.acts(strand.pc)) else {
                        continue;
                    };
                    let who = actor(block, warp, mask);
                    if block.sleeps_for(ctx, warp, (inst, mask)).is_some() {
                        let footprint = block.touched_by_wait(ctx, warp, (inst, mask));
                        let known = self.clocks.join_lanes(number, warp, mask);
                        self.exploration.waits(who, &footprint, &known);
                    }
                }
            }
        }
    }

    /// Nobody can act any more: loops that poll and wait before their next iteration make it, for the report.
    fn poll_in_vain(&mut self) -> Result<(), Fault> {
        let ctx = self.ctx;
        for who in self.polls.waiting.keys().copied().collect::<Vec<_>>() {
            // An iteration reads several objects at most.
            for _ in 0..MAX_READS {
                let blocks = self
                    .groups
                    .iter_mut()
                    .flat_map(|group| group.blocks.chunks_mut(cluster_size(ctx)));
                let Actor::Lanes { block: number, .. } = who else {
                    continue;
                };
                let here = |cluster: &&mut [Block]| cluster.iter().any(|b| b.shared.order.block == number);
                let Some(cluster) = blocks.into_iter().find(here) else {
                    break;
                };
                let at = cluster.iter().position(|b| b.shared.order.block == number);
                let Some((block, mut peers)) = Peers::split(cluster, at.unwrap_or(0)) else {
                    break;
                };
                let Some((warp, index)) = strand_of(block, who) else {
                    break;
                };
                let strand = &block.warps[warp].strands[index];
                if strand.status != Status::Ready || !ctx.code.acts(strand.pc) {
                    break;
                }
                block.shared.may_act = true;
                let ran = run_strand(ctx, block, &mut peers, (warp, index), &mut self.polls);
                block.shared.may_act = false;
                ran?;
            }
        }
        Ok(())
    }

    /// Lets everything go on that depends on no actor.
    fn settle(&mut self) -> Result<(), Fault> {
        let (ctx, clocks, polls, ended) = (self.ctx, &mut self.clocks, &mut self.polls, &mut self.ended);
        loop {
            let mut moved = false;
            for group in &mut self.groups {
                for cluster in group.blocks.chunks_mut(cluster_size(ctx)) {
                    for at in 0..cluster.len() {
                        if let Some((block, peers)) = Peers::split(cluster, at) {
                            moved |= settle_block(ctx, block, peers, clocks, polls, ended)?;
                        }
                    }
                }
                let waiting = |group: &Group| -> Vec<_> {
                    let over = |status| matches!(status, Status::Cluster | Status::Grid);
                    group.blocks.iter().flat_map(|block| at(block, over)).collect()
                };
                let before = waiting(group);
                if !before.is_empty() && group.open_barriers(ctx)? {
                    let after = waiting(group);
                    let met: Vec<_> = before.into_iter().filter(|one| !after.contains(one)).collect();
                    clocks.meet(&met);
                    moved |= !met.is_empty();
                }
            }
            if !moved {
                return Ok(());
            }
        }
    }

    /// Who could act.
    fn enabled(&mut self) -> Vec<Actor> {
        let ctx = self.ctx;
        let mut all = Vec::new();
        for block in self.groups.iter_mut().flat_map(|group| &mut group.blocks) {
            let number = block.shared.order.block;
            if self.ended.contains(&number) {
                continue;
            }
            for warp in 0..block.warps.len() {
                for at in 0..block.warps[warp].strands.len() {
                    let strand = &block.warps[warp].strands[at];
                    let (mask, pc, status) = (strand.mask, strand.pc, strand.status);
                    let who = actor(block, warp, mask);
                    let awaits = match status {
                        Status::Asleep(inst) => Some(inst),
                        Status::Ready if ctx.code.acts(pc) => wait_of(ctx.code, pc),
                        _ => continue,
                    };
                    let blocked =
                        awaits.is_some_and(|inst| block.sleeps_for(ctx, warp, (inst, mask)).is_some());
                    if blocked || self.polls.waiting.contains_key(&who) {
                        continue;
                    }
                    all.push(who);
                    if status == Status::Ready {
                        let warp = &block.warps[warp];
                        let orders = LaneOrders::at_instruction(ctx.code, warp, &warp.strands[at]);
                        all.extend((1..orders.count).map(|order| who.in_order(order)));
                        if let Some(lanes) = orders.crowd {
                            self.exploration.sampled(format!(
                                "{lanes} lanes of a warp update one location by one instruction, and {} of their orders are tried",
                                orders.count
                            ));
                        }
                    }
                }
            }
            for operation in block.shared.engine.in_flight() {
                if operation.free {
                    all.push(Actor::Operation {
                        block: number,
                        number: operation.number,
                    });
                }
            }
        }
        all
    }

    /// One actor acts.
    fn act(&mut self, who: Actor) -> Result<(), Fault> {
        let ctx = self.ctx;
        let (Actor::Lanes { block: number, .. } | Actor::Operation { block: number, .. }) = who;
        let size = cluster_size(ctx);
        let mut clusters = self
            .groups
            .iter_mut()
            .flat_map(|group| group.blocks.chunks_mut(size));
        let here = |cluster: &&mut [Block]| cluster.iter().any(|block| block.shared.order.block == number);
        let Some(cluster) = clusters.find(here) else {
            return Ok(());
        };
        let at = cluster
            .iter()
            .position(|block| block.shared.order.block == number)
            .unwrap_or(0);
        let Some((block, mut peers)) = Peers::split(cluster, at) else {
            return Ok(());
        };
        block.shared.touched.clear();
        match who {
            Actor::Lanes { order, .. } => {
                let Some((warp, index)) = strand_of(block, who) else {
                    return Ok(());
                };
                let strand = &mut block.warps[warp].strands[index];
                let (mask, pc) = (strand.mask, strand.pc);
                self.trail.push((who, pc));
                let who = who.in_order(0);
                let mut known = self.clocks.join_lanes(number, warp, mask);
                strand.status = Status::Ready;
                if let Some(turn) = &mut strand.turn {
                    turn.acts(self.exploration.depth());
                }
                (block.shared.may_act, block.shared.lane_order) = (true, order);
                let ran = run_strand(ctx, block, &mut peers, (warp, index), &mut self.polls);
                (block.shared.may_act, block.shared.lane_order) = (false, 0);
                if let Some((object, touch)) = ctx.code.touches(pc, number) {
                    block.shared.touch(object, touch);
                }
                let footprint = std::mem::take(&mut block.shared.touched);
                self.polls.note(who, &footprint);
                self.exploration.acted(footprint, &mut known);
                self.clocks.set(number, warp, mask, &known);
                self.clocks.follow_warpgroup(block, warp);
                ran
            }
            Actor::Operation { number: which, .. } => {
                let Some(mut operation) = block.shared.engine.take(which) else {
                    return Ok(());
                };
                self.trail.push((who, operation.pc));
                let result = block.perform_one(ctx, &mut peers, &mut operation);
                let footprint = std::mem::take(&mut block.shared.touched);
                self.polls.note(who, &footprint);
                let mut known = self.clocks.operations.remove(&who).unwrap_or_default();
                self.exploration.acted(footprint, &mut known);
                result.map_err(|trap| fault(ctx, &block.shared, operation.warp, operation.pc, *trap))
            }
        }
    }

    /// A fault with the last events before it.
    fn told(&self, error: Fault) -> Fault {
        let mut report = (*error).clone();
        let from = self.trail.len().saturating_sub(TOLD);
        if from > 0 {
            let message = format!(
                "in this order {} synchronizing operations came first, and then:",
                from
            );
            report.notes.push(FaultNote {
                message,
                location: None,
            });
        }
        for (who, pc) in &self.trail[from..] {
            let (block, what) = match who {
                Actor::Lanes {
                    block, warp, lane, ..
                } => (block, format!("warp {warp} from lane {lane} on")),
                Actor::Operation { block, .. } => {
                    (block, "the asynchronous operation that was issued".to_string())
                }
            };
            let [x, y, z] = block_index(self.ctx, u64::from(*block));
            let rank = self.ctx.rank_name(*block);
            let verb = match who {
                Actor::Lanes { order: 0, .. } => "acts here",
                Actor::Lanes { .. } => "acts here, its lanes in another order",
                Actor::Operation { .. } => "here is complete",
            };
            report.notes.push(FaultNote {
                message: format!("block ({x}, {y}, {z}){rank}: {what} {verb}"),
                location: self.ctx.code.location(*pc),
            });
        }
        report.into()
    }
}

impl Polls {
    /// What an actor has touched: who polls it goes on.
    fn note(&mut self, who: Actor, footprint: &[(Object, Touch)]) {
        let reads = footprint
            .iter()
            .filter(|(_, touch)| *touch == Touch::Read)
            .map(|(object, _)| *object);
        self.read.entry(who).or_default().extend(reads);
        for (object, _) in footprint.iter().filter(|(_, touch)| touch.changes()) {
            self.waiting.retain(|_, polled| !polled.contains(object));
        }
        if footprint.iter().any(|(object, _)| *object == Object::Host) {
            self.waiting.clear();
        }
    }
}

/// The strand of an actor that may act: its warp and its number in that.
fn strand_of(block: &Block, who: Actor) -> Option<(usize, usize)> {
    let Actor::Lanes { warp, lane, .. } = who else {
        return None;
    };
    let acts = |strand: &super::Strand| {
        strand.mask.trailing_zeros() == lane && matches!(strand.status, Status::Ready | Status::Asleep(_))
    };
    let strands = &block.warps.get(warp as usize)?.strands;
    Some((warp as usize, strands.iter().position(acts)?))
}

impl Turn {
    /// Whether it has only read, and left everything to the next iteration as it was.
    fn changed_nothing(&self, ctx: &Context<'_>, warp: &Warp, strand: &super::Strand) -> bool {
        let of = &ctx.code.polls[self.of as usize];
        let ends = matches!(ctx.code.insts[strand.pc - 1], Inst::Spin { id } if id == self.of);
        ends && of.quiet
            && self.events.is_some()
            && self.reads_only
            && left(ctx.code, warp, strand, self.of) == self.from
    }

    /// An event belongs to it.
    fn acts(&mut self, event: usize) {
        self.events = match self.events {
            None => Some((event, event)),
            Some((first, last)) => {
                self.reads_only &= last + 1 == event;
                Some((first, event))
            }
        };
    }

    /// What its last event has touched.
    fn touched(&mut self, footprint: &[(Object, Touch)]) {
        self.reads_only &= footprint
            .iter()
            .all(|(_, touch)| matches!(touch, Touch::Read | Touch::Same));
        self.reads.extend(footprint.iter().map(|(object, _)| *object));
    }
}

/// Strands before a wait that is not over wait there, for the report.
fn fall_asleep(code: &Code, group: &mut Group) {
    let warps = group.blocks.iter_mut().flat_map(|block| &mut block.warps);
    for strand in warps.flat_map(|warp| &mut warp.strands) {
        if let (Status::Ready, Some(inst)) = (strand.status, wait_of(code, strand.pc)) {
            strand.status = Status::Asleep(inst);
        }
    }
}

/// The lanes of a block that wait at a kind of barrier.
fn at(block: &Block, is: impl Fn(Status) -> bool) -> Vec<(u32, usize, u32)> {
    let number = block.shared.order.block;
    let warps = block.warps.iter().enumerate();
    let strands = warps.flat_map(|(id, warp)| warp.strands.iter().map(move |strand| (id, strand)));
    strands
        .filter(|(_, s)| is(s.status))
        .map(|(id, s)| (number, id, s.mask))
        .collect()
}

/// The asynchronous instruction that waits for an mbarrier.
pub(super) fn wait_of(code: &Code, pc: usize) -> Option<u16> {
    let Inst::Async { id } = code.insts[pc] else {
        return None;
    };
    match &code.asynchronous[id as usize] {
        AsyncInst::Mbarrier(inst) if inst.what == MbarrierWhat::Wait => Some(id),
        _ => None,
    }
}

fn settle_block(
    ctx: &Context<'_>,
    block: &mut Block,
    mut peers: Peers<'_>,
    clocks: &mut Clocks,
    polls: &mut Polls,
    ended: &mut BTreeSet<u32>,
) -> Result<bool, Fault> {
    let number = block.shared.order.block;
    if ended.contains(&number) {
        return Ok(false);
    }
    let mut any = false;
    loop {
        let mut moved = false;
        for warp in 0..block.warps.len() {
            let goes_on = |block: &Block| {
                block.warps[warp].strands.iter().position(|strand| {
                    strand.status == Status::Ready
                        && !ctx.code.acts(strand.pc)
                        && !polls.waiting.contains_key(&actor(block, warp, strand.mask))
                })
            };
            if let Some(index) = goes_on(block) {
                run_strand(ctx, block, &mut peers, (warp, index), polls)?;
                clocks.follow_warpgroup(block, warp);
                moved = true;
            }
        }
        for warp in 0..block.warps.len() {
            for at in 0..block.warps[warp].strands.len() {
                let strand = &block.warps[warp].strands[at];
                let (mask, pc) = (strand.mask, strand.pc);
                // Waits for groups of a thread's own operations; those for mbarriers are events.
                let over = match strand.status {
                    Status::Asleep(inst) if !ctx.code.acts(pc) => {
                        block.sleeps_for(ctx, warp, (inst, mask)).is_none()
                    }
                    status => block.warpgroup_is_here(warp, status),
                };
                if over {
                    block.warps[warp].strands[at].status = Status::Ready;
                    moved = true;
                }
            }
        }
        let at_barrier = |status| matches!(status, Status::Barrier(_));
        let mut before = vec![at(block, at_barrier)];
        for id in 0..16 {
            before.push(at(
                block,
                |status| matches!(status, Status::Named(at, ..) if at == id),
            ));
        }
        if block.release(ctx)? {
            for waited in before {
                let opened: Vec<_> = waited
                    .into_iter()
                    .filter(|(_, warp, mask)| {
                        let mut strands = block.warps[*warp].strands.iter();
                        strands.any(|s| s.status == Status::Ready && s.mask & mask != 0)
                    })
                    .collect();
                clocks.meet(&opened);
            }
            moved = true;
        }
        for operation in block.shared.engine.in_flight() {
            let who = Actor::Operation {
                block: number,
                number: operation.number,
            };
            let (warp, lane) = operation.issuer;
            if operation.signals {
                if !clocks.operations.contains_key(&who) {
                    let known = clocks.at(number, warp, lane).clone();
                    clocks.operations.insert(who, known);
                }
            } else if operation.free
                && let Some(mut operation) = block.shared.engine.take(operation.number)
            {
                let result = block.perform_one(ctx, &mut peers, &mut operation);
                result.map_err(|trap| fault(ctx, &block.shared, operation.warp, operation.pc, *trap))?;
                moved = true;
            }
        }
        if block.done() {
            let left = block.shared.engine.in_flight();
            // Operations that signal are events, even of a block whose threads have ended.
            if left.is_empty() {
                block.check_end(ctx)?;
                ended.insert(number);
                return Ok(true);
            }
        }
        any |= moved;
        if !moved {
            return Ok(any);
        }
    }
}

/// Runs a strand up to the next instruction at which it waits or acts.
fn run_strand(
    ctx: &Context<'_>,
    block: &mut Block,
    peers: &mut Peers<'_>,
    (id, index): (usize, usize),
    polls: &mut Polls,
) -> Result<(), Fault> {
    let mut strand = block.warps[id].strands.remove(index);
    let number = block.shared.order.block;
    let (shared, warp) = (&mut block.shared, &mut block.warps[id]);
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
    let stop = stop.map_err(|trap| fault(ctx, machine.shared, id, strand.pc, *trap))?;
    // The iteration may have ended, and the next one has no event yet.
    if let Some(turn) = strand.turn.as_mut().filter(|turn| turn.events.is_some()) {
        turn.touched(&machine.shared.touched);
    }
    match stop {
        Stop::Gone => {}
        Stop::Blocked(status) => {
            if let Status::Barrier(_) = status {
                machine.shared.at_barrier += strand.mask.count_ones();
                let lane = strand.mask.trailing_zeros() & 31;
                if let Some(trap) = super::named::mixed_with_0(machine.shared, id, lane) {
                    return Err(fault(ctx, machine.shared, id, strand.pc.saturating_sub(1), *trap));
                }
            }
            strand.status = status;
            machine.warp.part(&mut strand);
            machine.warp.strands.push(strand);
        }
        Stop::Paused(_) => {
            machine.warp.part(&mut strand);
            machine.warp.strands.push(strand);
        }
        Stop::Spun => {
            machine.warp.part(&mut strand);
            let now = state(machine.warp, &strand);
            let lane = strand.mask.trailing_zeros();
            let who = Actor::Lanes {
                block: number,
                warp: id as u32,
                lane,
                order: 0,
            };
            let mut read = polls.read.remove(&who).unwrap_or_default();
            read.extend(machine.shared.touched.iter().map(|(object, _)| *object));
            let turn = strand.turn.take();
            match turn.filter(|turn| turn.changed_nothing(ctx, machine.warp, &strand)) {
                Some(turn) => polls.failed.push((who, turn)),
                None if strand.state == now => {
                    polls.waiting.insert(who, read);
                }
                None => {}
            }
            strand.state = now;
            machine.warp.strands.push(strand);
        }
    }
    if machine.warp.strands.iter().any(|s| s.status != Status::Ready) {
        let met = machine.meet_in_warp();
        met.map_err(|(pc, trap)| fault(ctx, machine.shared, id, pc, *trap))?;
    }
    Ok(())
}
