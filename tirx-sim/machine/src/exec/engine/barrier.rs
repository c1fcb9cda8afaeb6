//! The instructions of mbarriers.

use super::instruction::{lanes, misuse};
use super::mbarrier::{Account, MOST, Mbarrier, Released};
use crate::bytecode::{MbarrierInst, MbarrierWhat, PENDING_BITS, SharedArray};
use crate::exec::access::Check;
use crate::exec::address::{self, Target, decode};
use crate::exec::cells::Cells;
use crate::exec::order::{At, Conflict, Kind, Known, Mark, Order, Place, Scope};
use crate::exec::run::Machine;
use crate::exec::{Context, Shared, Status, Trap, thread_of};
use crate::explore::{Object, Touch};
use crate::fault::FaultKind;
use crate::memory::granules;

impl Machine<'_, '_> {
    /// `fence.mbarrier_init`, or a proxy fence: mbarriers that the lanes know of become visible to copies.
    pub(in crate::exec) fn fence_barriers(&mut self, mask: u32) {
        let Shared { engine, order, .. } = &mut *self.shared;
        let issued = engine.issued;
        for barrier in engine.barriers.values_mut() {
            if lanes(mask).any(|lane| initialized(order, barrier, self.id, lane)) {
                barrier.fence(issued);
            }
        }
    }

    /// `fence.mbarrier_init.release.cluster`: the initializations that the lanes know of are released at the cluster barrier
    /// where they arrive next, whatever the memory order of that.
    pub(super) fn release_initializations(&mut self, mask: u32) {
        let Shared { engine, order, .. } = &mut *self.shared;
        for barrier in engine.barriers.values() {
            let known = lanes(mask).filter(|lane| initialized(order, barrier, self.id, *lane));
            let known = known.fold(0, |mask, lane| mask | 1 << lane);
            if known != 0 {
                self.warp.initializations.push((known, barrier.published));
            }
        }
    }

    /// Rank (none for the own block) and byte of an mbarrier.
    pub(in crate::exec) fn barrier_at(
        &self,
        lane: u32,
        address: u64,
        rank: Option<u32>,
    ) -> Check<(Option<u32>, u32)> {
        // An address of shared memory as a number, in 64 bits (`mapa.shared::cluster.u64`).
        let address = match u32::try_from(address) {
            Ok(raw) => address::of_raw(raw, &self.ctx.code.shared, self.peers.rank() as u32),
            Err(_) => address,
        };
        let address = rank.map_or(address, |rank| address::of_rank(address, rank));
        let (rank, array, at) = match decode(address) {
            Target::Shared(array, at) => (None, array, at),
            Target::Cluster(rank, array, at) => (Some(rank), array, at),
            _ => return Err(misuse(lane, "an mbarrier outside of shared memory")),
        };
        let array = self.ctx.code.shared.get(array as usize);
        let Some(array) = array.filter(|a| at >= 0 && at as u64 + 8 <= u64::from(a.bytes)) else {
            let message = match array {
                Some(array) if array.view.is_some() => {
                    let (elements, bytes) = array.extent(array.unit(64));
                    format!(
                        "an mbarrier at shared {}, which has {elements} elements ({bytes} bytes)",
                        array.elements_at(i128::from(at) * 8, 64, array.unit(64))
                    )
                }
                _ => format!("an mbarrier at byte {at} of a shared array that does not reach there"),
            };
            return Err(Trap::new(FaultKind::OutOfBounds, lane, message));
        };
        let byte = array.offset + at as u32;
        if !byte.is_multiple_of(8) {
            let message = format!("an mbarrier at {byte:#x}, which is no multiple of 8");
            return Err(Trap::new(FaultKind::Misaligned, lane, message));
        }
        let own = rank.is_some_and(|r| r as usize == self.peers.rank());
        Ok((rank.filter(|_| !own), byte))
    }

    /// Performs an operation on an mbarrier that a lane may use.
    pub(super) fn with_barrier<T>(
        &mut self,
        lane: u32,
        rank: Option<u32>,
        byte: u32,
        step: impl FnOnce(&mut Mbarrier) -> Result<T, String>,
    ) -> Check<T> {
        let name = barrier_name(self.ctx, byte);
        let shared = match rank {
            None => &mut *self.shared,
            Some(rank) => match self.peers.get(rank) {
                Some(block) if !block.gone() => &mut block.shared,
                _ => {
                    let message =
                        format!("{name} of rank {rank} of the cluster, and no block of this rank runs");
                    return Err(misuse(lane, message));
                }
            },
        };
        let object = Object::Mbarrier(shared.order.block, byte);
        if let Some(trap) = not_an_mbarrier(self.ctx, shared, lane, byte, "") {
            self.shared.touch(object, Touch::Write);
            return Err(trap);
        }
        let Some(barrier) = shared.engine.barriers.get_mut(&byte) else {
            return Err(misuse(lane, name));
        };
        let (init, published) = (barrier.init, barrier.published);
        let before = barrier.counts();
        let result = step(barrier);
        let touch = match result {
            Ok(_) => barrier.touched_since(before),
            Err(_) => Touch::Write,
        };
        shared.changes += 1;
        self.shared.touch(object, touch);
        let result = result.map_err(|message| misuse(lane, format!("{message} ({name})")))?;
        self.shared.changes += 1;
        let order = &self.shared.order;
        if order.check && !order.ordered(init, self.id, lane) && !order.ordered(published, self.id, lane) {
            return Err(self.conflicting(&name, lane, Conflict::Write(init), "uses"));
        }
        Ok(result)
    }

    pub(super) fn mbarrier(
        &mut self,
        pc: usize,
        id: u16,
        inst: &MbarrierInst,
        mask: u32,
    ) -> Check<Option<Status>> {
        let on = |machine: &Self, lane: u32| inst.predicate.is_none_or(|p| machine.word(p, lane) != 0);
        let mask = lanes(mask).filter(|l| on(self, *l)).fold(0, |m, l| m | 1 << l);
        if mask == 0 {
            return Ok(None);
        }
        match inst.what {
            MbarrierWhat::Wait | MbarrierWhat::Test => return self.wait_barrier(pc, id, inst, mask),
            MbarrierWhat::Init => {
                for lane in lanes(mask) {
                    self.init_barrier(pc, inst, lane)?;
                }
            }
            MbarrierWhat::Inval => {
                for lane in lanes(mask) {
                    let (rank, byte) = self.barrier_at(lane, self.wide(inst.barrier, lane), None)?;
                    self.with_barrier(lane, rank, byte, |_| Ok(()))?;
                    self.commutes_with_nothing(byte);
                    self.not_under_a_waiter(lane, byte, "invalidates")?;
                    let ended = self.shared.engine.barriers.remove(&byte);
                    if let (Some(observer), Some(ended)) = (&self.ctx.observer, ended) {
                        observer.coverage.end(ended.init.pc(), ended.phase, ended.seen);
                    }
                    self.shared.engine.invalidated.insert(byte, pc);
                }
            }
            _ => {
                // Lanes at one barrier arrive together.
                let mut rest = mask;
                while rest != 0 {
                    let lane = rest.trailing_zeros();
                    let key = self.target(inst, lane)?;
                    let mut together = 0;
                    for other in lanes(rest) {
                        if self.target(inst, other)? == key {
                            together |= 1 << other;
                        }
                    }
                    rest &= !together;
                    self.arrive_barrier(pc, inst, together, key)?;
                }
            }
        }
        Ok(None)
    }

    /// The barrier of a lane, and its count.
    fn target(&self, inst: &MbarrierInst, lane: u32) -> Check<(Option<u32>, u32, u32)> {
        let remote = inst.remote.map(|r| self.word(r, lane));
        let (rank, byte) = self.barrier_at(lane, self.wide(inst.barrier, lane), remote)?;
        let count = inst.count.map_or(1, |count| self.word(count, lane));
        Ok((rank, byte, count))
    }

    fn init_barrier(&mut self, pc: usize, inst: &MbarrierInst, lane: u32) -> Check {
        let (rank, byte, count) = self.target(inst, lane)?;
        let name = barrier_name(self.ctx, byte);
        if rank.is_some() {
            return Err(misuse(lane, format!("initializes {name} of another block")));
        }
        if !(1..=MOST).contains(&count) {
            let message = format!("an mbarrier for {count} arrivals: it counts from 1 to {MOST}");
            return Err(misuse(lane, message));
        }
        self.commutes_with_nothing(byte);
        let order = &self.shared.order;
        let mark = order.mark(self.id, pc, Kind::Plain).with_lanes(1 << lane);
        if let Some(before) = self.shared.engine.barriers.get(&byte) {
            if !initialized(order, before, self.id, lane) && order.check {
                let conflict = Conflict::Write(before.init);
                return Err(self.conflicting(&name, lane, conflict, "initializes"));
            }
            let at = before.init.pc();
            self.not_under_a_waiter(lane, byte, "initializes")?;
            let message = format!("{name} is an mbarrier already: invalidate it first (mbarrier.inval)");
            let mut trap = misuse(lane, message);
            trap.notes.push(("it is initialized here".to_string(), at));
            return Err(trap);
        }
        self.not_under_a_waiter(lane, byte, "initializes")?;
        let beneath = beneath(self.ctx, self.shared, byte);
        let engine = &mut self.shared.engine;
        let published = engine.number(pc, mark, Kind::Copy);
        let mut barrier = Mbarrier::new(count, mark, published);
        barrier.beneath = beneath;
        engine.barriers.insert(byte, barrier);
        engine.invalidated.remove(&byte);
        Ok(())
    }

    /// An mbarrier as patterns of release know it.
    fn at_mbarrier(&mut self, rank: Option<u32>, byte: u32) -> At {
        let own = self.shared.order.block;
        let other = rank.and_then(|rank| self.peers.get(rank));
        At::Mbarrier(other.map_or(own, |block| block.shared.order.block), byte)
    }

    /// Where every order is explored: no operation on an mbarrier of the block commutes with the present one.
    fn commutes_with_nothing(&mut self, byte: u32) {
        let object = Object::Mbarrier(self.shared.order.block, byte);
        self.shared.touch(object, Touch::Write);
    }

    fn arrive_barrier(
        &mut self,
        pc: usize,
        inst: &MbarrierInst,
        mask: u32,
        key: (Option<u32>, u32, u32),
    ) -> Check {
        let (rank, byte, count) = key;
        let lane = mask.trailing_zeros();
        let times = mask.count_ones();
        let arrives = !matches!(inst.what, MbarrierWhat::Expect | MbarrierWhat::Complete);
        self.shared.engine.latest = self.shared.engine.latest.max(self.shared.time(self.warp));
        let cluster = inst.cluster;
        let scope = if cluster { Scope::Cluster } else { Scope::Cta };
        let at = self.at_mbarrier(rank, byte);
        let mark = self
            .shared
            .order
            .mark(self.id, pc, Kind::Cluster)
            .with_lanes(mask);
        let mut fenced: Vec<(Scope, Known)> = Vec::new();
        let released: Option<Known> = arrives.then(|| match inst.relaxed {
            // A relaxed arrival is a strong write of the mbarrier: a fence before it, or an arrival of its thread that releases, makes
            // it a release pattern (PTX ISA, "Release and Acquire Patterns").
            true => {
                for lane in lanes(mask) {
                    let order = &self.shared.order;
                    fenced.extend(order.released(self.id, lane, scope));
                    fenced.extend(order.released_before(self.id, lane, at, scope));
                }
                self.shared.order.published(self.id, mask)
            }
            false => {
                let known = self.shared.order.release(self.id, mask);
                self.shared.order.has_released(self.id, mask, at, scope, &known);
                known
            }
        });
        let state = self.with_barrier(lane, rank, byte, |barrier| {
            let state = barrier.state();
            if arrives && rank.is_some() {
                barrier.arrives_from_far(mark);
            }
            for (scope, known) in &fenced {
                match rank {
                    None => barrier.tell(known, false),
                    Some(_) if *scope == Scope::Cluster => barrier.tell(known, true),
                    Some(_) => barrier.tell(&known.operations(), false),
                }
            }
            match (&released, rank) {
                (None, _) => {}
                (Some(known), None) => barrier.tell(known, false),
                // Threads of two blocks are not within each other's `cta` scope. What operations have done that are complete
                // is ordered for the operations of the other block nevertheless.
                (Some(known), Some(_)) => {
                    barrier.tell(&known.operations(), false);
                    if cluster {
                        barrier.tell(known, true);
                    }
                }
            }
            let arrivals = match inst.what {
                MbarrierWhat::ArriveExpect => times,
                _ => count * times,
            };
            if inst.drops && arrivals <= barrier.pending {
                barrier.drop_arrivals(arrivals);
            }
            let done = match inst.what {
                MbarrierWhat::ArriveExpect => {
                    barrier.expect(count * times)?;
                    barrier.arrive(times)
                }
                MbarrierWhat::Expect => barrier.expect(count * times),
                MbarrierWhat::Complete => barrier.copied(pc, count * times),
                MbarrierWhat::ArriveNoComplete if count * times >= barrier.pending => Err(format!(
                    "arrives {} times with .noComplete, and the phase waits for {} arrivals only",
                    count * times,
                    barrier.pending
                )),
                _ => barrier.arrive(count * times),
            };
            done.map(|()| state)
        })?;
        // It succeeds only in a phase that other arrivals leave open, or it tells how many have come.
        let counts = inst.state.is_some() && self.ctx.code.counts_arrivals;
        if inst.what == MbarrierWhat::ArriveNoComplete || counts {
            let block = match rank {
                None => Some(self.shared.order.block),
                Some(rank) => self.peers.get(rank).map(|block| block.shared.order.block),
            };
            let object = block.map(|block| Object::Mbarrier(block, byte));
            object
                .into_iter()
                .for_each(|object| self.shared.touch(object, Touch::Write));
        }
        if let Some(d) = inst.state {
            // The arrivals of a warp's lanes are one operation: each lane gets the state before it, as on an H200.
            for lane in lanes(mask) {
                self.warp.v64[d as usize][lane as usize] = state;
            }
        }
        Ok(())
    }

    /// An mbarrier that a thread waits for may not be initialized or invalidated.
    fn not_under_a_waiter(&self, lane: u32, byte: u32, verb: &str) -> Check {
        let own = self.id as u32 * 32 + lane;
        let Some((thread, pc)) = self.shared.engine.sleeper(byte, own) else {
            return Ok(());
        };
        let (name, thread) = (barrier_name(self.ctx, byte), self.thread(thread));
        let mut trap = misuse(lane, format!("{verb} {name} while thread {thread} waits for it"));
        trap.notes.push((format!("thread {thread} waits here"), pc));
        Err(trap)
    }

    fn wait_barrier(&mut self, pc: usize, id: u16, inst: &MbarrierInst, mask: u32) -> Check<Option<Status>> {
        let mut done = 0;
        let mut known: Vec<(u32, u32, Released)> = Vec::new();
        for lane in lanes(mask) {
            let (rank, byte) = self.barrier_at(lane, self.wide(inst.barrier, lane), None)?;
            if rank.is_some() {
                return Err(misuse(
                    lane,
                    "waits for an mbarrier of another block: only its own can be waited for",
                ));
            }
            let state = inst.state.map(|state| self.wide(state, lane));
            let parity = match state {
                Some(state) => (state >> PENDING_BITS) as u32 & 1,
                None => inst.count.map_or(0, |count| self.word(count, lane)),
            };
            if parity > 1 {
                return Err(misuse(
                    lane,
                    format!("waits for parity {parity}, which is 0 or 1"),
                ));
            }
            let same = known.iter_mut().find(|(b, ..)| *b == byte);
            // A test changes nothing: a loop of tests alone makes no progress.
            let changes = self.shared.changes;
            let (complete, released) = self.with_barrier(lane, None, byte, |b| {
                let complete = match state {
                    Some(state) => b.has_completed(state)?,
                    None => b.is_complete(parity),
                };
                if complete {
                    b.seen = b.phase;
                }
                Ok((complete, b.complete.clone()))
            })?;
            self.shared.changes = changes;
            let thread = self.id as u32 * 32 + lane;
            if inst.what == MbarrierWhat::Wait {
                match complete {
                    true => self.shared.engine.sleepers.remove(&thread),
                    false => self.shared.engine.sleepers.insert(thread, (byte, pc)),
                };
            }
            if complete {
                done |= 1 << lane;
                let phase = self
                    .shared
                    .engine
                    .barriers
                    .get(&byte)
                    .map_or(0, |b| b.phase.wrapping_sub(1));
                self.shared
                    .engine
                    .waited_at
                    .insert((thread, byte), (parity, phase, inst.relaxed));
                match same {
                    Some((_, lanes, _)) => *lanes |= 1 << lane,
                    None => known.push((byte, 1 << lane, released)),
                }
            }
        }
        if inst.what == MbarrierWhat::Wait && done != mask {
            return Ok(Some(Status::Asleep(id)));
        }
        if inst.what == MbarrierWhat::Wait && self.ctx.exploring {
            self.note_waits(inst, mask)?;
        }
        for (_, lanes, released) in &known {
            let near = released.near.iter().map(|known| (known, Scope::Cta));
            let far = released.far.iter().filter(|_| inst.cluster);
            for (released, scope) in near.chain(far.map(|known| (known, Scope::Cluster))) {
                match inst.relaxed {
                    true => self.shared.order.hear(self.id, *lanes, scope, released),
                    false => self.shared.order.acquire(self.id, *lanes, released),
                }
            }
        }
        if let Some(d) = inst.d {
            for lane in lanes(mask) {
                self.warp.v32[d as usize][lane as usize] = done >> lane & 1;
            }
        }
        Ok(None)
    }

    /// The tests of a wait that is over are a wait.
    fn note_waits(&mut self, inst: &MbarrierInst, mask: u32) -> Check {
        for lane in lanes(mask) {
            let (_, byte) = self.barrier_at(lane, self.wide(inst.barrier, lane), None)?;
            let parity = inst.count.map_or(0, |count| self.word(count, lane));
            let object = Object::Mbarrier(self.shared.order.block, byte);
            self.shared
                .touched
                .retain(|touch| *touch != (object, Touch::Read));
            self.shared.touch(object, Touch::Wait { parity });
        }
        Ok(())
    }

    /// What is wrong with a thread's waits for the mbarrier at which an operation completes.
    pub(in crate::exec) fn wrong_parity(&self, operation: Mark, lane: u32) -> String {
        let engine = &self.shared.engine;
        let Some((byte, issued)) = engine.told_at.get(&super::operation_key(operation)) else {
            return String::new();
        };
        let name = barrier_name(self.ctx, *byte);
        let account = engine.barriers.get(byte).and_then(|b| b.account(*issued));
        match engine.waited_at.get(&(self.id as u32 * 32 + lane, *byte)) {
            None => format!(": it completes at {name}"),
            Some((.., true)) => format!(
                ": it completes at {name}, for which this thread has waited by a relaxed wait, which orders nothing: a \
                 wait that acquires, or a fence after the wait, is missing"
            ),
            Some((_, phase, false))
                if phase.wrapping_add(1) == *issued && account.is_some_and(|of| of.expected == 0) =>
            {
                let before = engine.barriers.get(byte).and_then(|b| b.account(*phase));
                format!(
                    ": it completes at {name}, whose phase {phase} was complete before it was issued: the phase expected {} bytes \
                     (expect_tx), and the next phase expects none",
                    before.unwrap_or_default().expected
                )
            }
            // The wait was for the phase before the first.
            Some((parity, u64::MAX, false)) => format!(
                ": it completes at {name}; this thread's last wait there was for parity {parity}, which needs no completed \
                 phase: the first phase of an mbarrier has parity 0"
            ),
            Some((_, phase, false))
                if phase == issued && account.is_some_and(|of| of.expected < of.issued) =>
            {
                let Account { expected, issued } = account.unwrap_or_default();
                format!(
                    ": it completes at {name}, whose phase {phase} was complete without it: the phase expects {expected} bytes \
                     (expect_tx), and its copies bring {issued}"
                )
            }
            Some((parity, phase, false)) => format!(
                ": it completes at {name}; this thread's last wait there was for parity {parity}, which phase {phase} had \
                 already completed"
            ),
        }
    }
}

/// Who has last written each place of the memory of an mbarrier.
fn beneath(ctx: &Context<'_>, shared: &Shared, byte: u32) -> Vec<Mark> {
    let Cells::Fine(places) = &shared.cells else {
        return Vec::new();
    };
    let places = &places[granules(ctx.code.granule, byte as usize * 8, 64)];
    places.iter().map(Place::last_write).collect()
}

/// The error of memory that is no mbarrier, or no longer is one: nobody has initialized it, it has been invalidated, or something
/// else has been written over it. `who` uses it, where it is not a thread.
pub(super) fn not_an_mbarrier(
    ctx: &Context<'_>,
    shared: &Shared,
    lane: u32,
    byte: u32,
    who: &str,
) -> Option<Box<Trap>> {
    let name = barrier_name(ctx, byte);
    let Some(barrier) = shared.engine.barriers.get(&byte) else {
        let invalidated = shared.engine.invalidated.get(&byte);
        let why = match invalidated {
            Some(_) => "it has been invalidated (mbarrier.inval)",
            None => "nobody has initialized it (mbarrier.init)",
        };
        let message = match who {
            "" => format!("{name} is no mbarrier: {why}"),
            who => format!("{who} completes at {name}, which is no mbarrier: {why}"),
        };
        let mut trap = misuse(lane, message);
        trap.notes
            .extend(invalidated.map(|pc| ("invalidated here".to_string(), *pc)));
        return Some(trap);
    };
    overwritten(ctx, shared, byte, barrier).map(|(_, trap)| trap)
}

/// The error of a write over a valid mbarrier, and who has written.
pub(in crate::exec) fn overwritten(
    ctx: &Context<'_>,
    shared: &Shared,
    byte: u32,
    barrier: &Mbarrier,
) -> Option<(Mark, Box<Trap>)> {
    let now = beneath(ctx, shared, byte);
    let (by, _) = now
        .iter()
        .zip(&barrier.beneath)
        .find(|(now, before)| now != before)?;
    let who = match by.is_operation() {
        true => "an asynchronous operation".to_string(),
        false => {
            let [x, y, z] = thread_of(ctx, by.thread());
            format!("thread ({x}, {y}, {z})")
        }
    };
    let message = format!(
        "{who} writes over {}, which is valid: only operations of mbarriers may access it until it is invalidated \
         (mbarrier.inval)",
        barrier_name(ctx, byte)
    );
    let mut trap = misuse(by.thread() % 32, message).blames(by.pc());
    trap.notes
        .push(("the mbarrier is initialized here".to_string(), barrier.init.pc()));
    Some((*by, trap))
}

/// The name of an mbarrier in messages.
pub(in crate::exec) fn barrier_name(ctx: &Context<'_>, byte: u32) -> String {
    let holds = |a: &SharedArray| byte >= a.offset && byte - a.offset < a.bytes;
    let begins = |a: &SharedArray| holds(a) && a.element == 64 && (byte - a.offset).is_multiple_of(8);
    if let Some(view) = ctx.code.view_at(begins) {
        let bit = i128::from(byte - view.offset) * 8;
        return format!("the mbarrier {}", view.elements_at(bit, 64, 64));
    }
    match ctx.code.shared.iter().find(|a| a.view.is_none() && holds(a)) {
        Some(array) if array.bytes % 8 == 0 => {
            format!("the mbarrier `{}[{}]`", array.name, (byte - array.offset) / 8)
        }
        Some(array) => format!("the mbarrier at byte {} of `{}`", byte - array.offset, array.name),
        None => format!("the mbarrier at {byte:#x}"),
    }
}

/// Whether a lane is ordered behind the initialization of an mbarrier.
fn initialized(order: &Order, barrier: &Mbarrier, warp: usize, lane: u32) -> bool {
    order.ordered(barrier.init, warp, lane) || order.ordered(barrier.published, warp, lane)
}
