//! Instructions that issue operations and wait for them, and those of mbarriers.

use super::copy::{Bytes, Registers};
use super::mbarrier::{MOST, Mbarrier, Released};
use super::tile::{Tile, read_map};
use super::{Class, Completion, Issue, Operation, Reach};
use crate::alu::LANES;
use crate::bytecode::{
    AsyncInst, BulkInst, MbarrierInst, MbarrierWhat, PENDING_BITS, R, StoreInst, TileInst,
};
use crate::exec::access::Check;
use crate::exec::address::{self, Target, decode};
use crate::exec::block::Block;
use crate::exec::cluster::Peers;
use crate::exec::order::{Conflict, Forked, Kind, Known, Mark, Order, Space};
use crate::exec::run::Machine;
use crate::exec::{Context, Shared, Status, Trap, fault};
use crate::explore::{Object, Touch};
use crate::fault::{Fault, FaultKind};
use crate::tensor_map::{TENSOR_MAP_BYTES, TensorMap};

/// Lanes of a mask.
pub(super) fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    (0..LANES as u32).filter(move |lane| mask >> lane & 1 != 0)
}

pub(super) fn misuse(lane: u32, message: impl Into<String>) -> Box<Trap> {
    Trap::new(FaultKind::Asynchronous, lane, message)
}

impl Machine<'_, '_> {
    pub(super) fn wide(&self, register: R, lane: u32) -> u64 {
        self.warp.v64[register as usize][lane as usize % LANES]
    }

    pub(super) fn word(&self, register: R, lane: u32) -> u32 {
        self.warp.v32[register as usize][lane as usize % LANES]
    }

    /// Issues an operation of a lane.
    pub(in crate::exec) fn issue(&mut self, pc: usize, lane: u32, issue: Issue) {
        let known = self.shared.order.release(self.id, 1 << lane);
        let forked = Forked {
            known,
            mark: self.shared.order.mark(self.id, pc, issue.proxy),
            after: Vec::new(),
        };
        let time = self.shared.time(self.warp);
        self.shared.engine.issue(issue, (self.id, lane), pc, forked, time);
    }

    /// Runs an asynchronous instruction. Gives the status to wait with, where the strand has to.
    pub(in crate::exec) fn asynchronous(&mut self, pc: usize, id: u16, mask: u32) -> Check<Option<Status>> {
        let code = self.ctx.code;
        let inst = &code.asynchronous[id as usize];
        match inst {
            AsyncInst::Mbarrier(inst) => return self.mbarrier(pc, id, inst, mask),
            AsyncInst::FenceInit => {
                self.fence_barriers(mask);
                self.release_initializations(mask);
            }
            AsyncInst::Copy {
                to,
                from,
                bytes,
                predicate,
                zeros,
            } => {
                for lane in lanes(mask) {
                    let on = predicate.is_none_or(|p| self.word(p, lane) != 0);
                    if !on && !zeros {
                        continue;
                    }
                    let (to, from) = (self.wide(*to, lane), self.wide(*from, lane));
                    let message = |what, address| {
                        format!(
                            "cp.async of {bytes} bytes {what} {address:#x}, which is no multiple of {bytes}"
                        )
                    };
                    if !self.offset_of(to).is_multiple_of(u64::from(*bytes)) {
                        return Err(Trap::new(
                            FaultKind::Misaligned,
                            lane,
                            message("to", self.offset_of(to)),
                        ));
                    }
                    if on && from % u64::from(*bytes) != 0 {
                        return Err(Trap::new(FaultKind::Misaligned, lane, message("from", from)));
                    }
                    let work = Bytes {
                        to,
                        from,
                        read: if on { *bytes as usize } else { 0 },
                        written: *bytes as usize,
                        mask: u16::MAX,
                    };
                    let issue = Issue {
                        class: Class::Copy,
                        name: "the asynchronous copy (cp.async)",
                        proxy: Kind::Copy,
                        work: Some(Box::new(work)),
                        completions: Vec::new(),
                        in_order: false,
                    };
                    self.issue(pc, lane, issue);
                }
            }
            AsyncInst::ArriveWhenCopied { barrier, noinc } => {
                for lane in lanes(mask) {
                    let address = self.wide(*barrier, lane);
                    let (rank, byte) = self.barrier_at(lane, address, None)?;
                    if !noinc {
                        self.with_barrier(lane, rank, byte, |b| {
                            b.pending += 1;
                            Ok(())
                        })?;
                    }
                    let issue = Issue {
                        class: Class::Copy,
                        name: "the arrival of cp.async",
                        proxy: Kind::Copy,
                        work: None,
                        completions: vec![Completion::Arrive(rank, byte, 1)],
                        in_order: true,
                    };
                    self.issue(pc, lane, issue);
                }
            }
            AsyncInst::Bulk(inst) => {
                for lane in lanes(mask) {
                    self.bulk(pc, inst, lane)?;
                }
            }
            AsyncInst::Store(inst) => {
                for lane in lanes(mask) {
                    self.store_async(pc, inst, lane)?;
                }
            }
            AsyncInst::Tile(inst) => {
                for lane in lanes(mask) {
                    self.tile(pc, inst, lane)?;
                }
            }
            AsyncInst::Commit(class) => {
                for lane in self.members(*class, mask) {
                    self.shared.engine.commit(*class, self.id as u32 * 32 + lane);
                }
            }
            AsyncInst::Wait { class, left, read } => {
                let own = self.id as u32 * 32;
                let engine = &self.shared.engine;
                let done = |lane: u32| match left {
                    Some(left) => engine.complete(*class, own + lane, *left as usize),
                    None => engine.all_complete(*class, own + lane),
                };
                if !self.members(*class, mask).all(done) {
                    return Ok(Some(Status::Asleep(id)));
                }
                for lane in self.members(*class, mask) {
                    let Shared { engine, order, .. } = &mut *self.shared;
                    if left.is_none() {
                        engine.commit(*class, own + lane);
                    }
                    let marks = engine.retire(*class, own + lane, left.unwrap_or(0) as usize, *read);
                    if marks.is_empty() {
                        continue;
                    }
                    let who = if *class == Class::Matrix { mask } else { 1 << lane };
                    order.learn(self.id, who, &marks);
                }
            }
            AsyncInst::TryCancel {
                handle,
                barrier,
                multicast,
            } => {
                for lane in lanes(mask) {
                    let at = [self.wide(*handle, lane), self.wide(*barrier, lane)];
                    self.try_cancel(pc, at, *multicast, lane)?;
                }
            }
            AsyncInst::Queried { found } => {
                let refused = lanes(mask).any(|lane| self.word(*found, lane) == 0);
                self.shared.engine.refused |= refused;
            }
            AsyncInst::Remote(inst) => self.remote(pc, inst, mask)?,
            AsyncInst::RemoteFence => {
                for lane in lanes(mask) {
                    let known = self.shared.order.release(self.id, 1 << lane);
                    self.shared.engine.fence_remote(self.id as u32 * 32 + lane, known);
                }
            }
        }
        Ok(None)
    }

    /// `fence.mbarrier_init`, or a proxy fence: mbarriers that the lanes know of become visible to copies.
    pub(in crate::exec) fn fence_barriers(&mut self, mask: u32) {
        let Shared { engine, order, .. } = &mut *self.shared;
        for barrier in engine.barriers.values_mut() {
            barrier.fenced |= lanes(mask).any(|lane| initialized(order, barrier, self.id, lane));
        }
    }

    /// `fence.mbarrier_init.release.cluster`: the initializations that the lanes know of are released at the cluster barrier
    /// where they arrive next, whatever the memory order of that.
    fn release_initializations(&mut self, mask: u32) {
        let Shared { engine, order, .. } = &mut *self.shared;
        for barrier in engine.barriers.values() {
            let known = lanes(mask).filter(|lane| initialized(order, barrier, self.id, *lane));
            let known = known.fold(0, |mask, lane| mask | 1 << lane);
            if known != 0 {
                self.warp.initializations.push((known, barrier.published));
            }
        }
    }

    /// `setmaxnreg`: the register file of a multiprocessor has 64 Ki registers.
    pub(in crate::exec) fn set_registers(&mut self, count: u16, mask: u32) -> Check {
        let lane = mask.trailing_zeros() % 32;
        if !(24..=256).contains(&count) || !count.is_multiple_of(8) {
            let message = format!("setmaxnreg {count}: the count must be a multiple of 8 from 24 to 256");
            return Err(misuse(lane, message));
        }
        if mask != self.warp.alive {
            return Err(misuse(
                lane,
                "setmaxnreg by some lanes of a warp: all of them do it together",
            ));
        }
        let registers = &mut self.shared.registers;
        registers.insert(self.id, count);
        let warps = self.ctx.block.iter().product::<u32>().div_ceil(LANES as u32) as usize;
        let sum: u32 = registers.values().map(|r| u32::from(*r) * LANES as u32).sum();
        if registers.len() == warps && sum > 1 << 16 {
            let message = format!(
                "setmaxnreg {count}: the warps of the block ask for {sum} registers together, and there are {}",
                1 << 16
            );
            return Err(misuse(lane, message));
        }
        Ok(())
    }

    /// The lanes that represent those of a mask in a class.
    fn members(&self, class: Class, mask: u32) -> impl Iterator<Item = u32> + use<> {
        lanes(if class == Class::Matrix { 1 } else { mask })
    }

    /// The byte of a shared address in a block's shared memory; other addresses as they are.
    pub(in crate::exec) fn offset_of(&self, address: u64) -> u64 {
        match decode(address) {
            Target::Shared(array, at) | Target::Cluster(_, array, at) => {
                let start = self.ctx.code.shared.get(array as usize).map_or(0, |a| a.offset);
                (i64::from(start) + at) as u64
            }
            _ => address,
        }
    }

    /// The ranks of a multicast mask; the own block without.
    fn targets(&self, mask: Option<R>, lane: u32) -> Vec<Option<u32>> {
        match mask {
            None => vec![None],
            Some(mask) => {
                let mask = self.word(mask, lane) & 0xffff;
                (0..16).filter(|r| mask >> r & 1 != 0).map(Some).collect()
            }
        }
    }

    fn bulk(&mut self, pc: usize, inst: &BulkInst, lane: u32) -> Check {
        let (to, from) = (self.wide(inst.to, lane), self.wide(inst.from, lane));
        let bytes = self.word(inst.bytes, lane);
        if !bytes.is_multiple_of(16) {
            return Err(misuse(
                lane,
                format!("a bulk copy of {bytes} bytes: the size must be a multiple of 16"),
            ));
        }
        self.aligned(lane, "the source of a bulk copy", from, 16)?;
        self.aligned(lane, "the destination of a bulk copy", to, 16)?;
        let mask = inst.mask.map_or(u16::MAX, |mask| self.word(mask, lane) as u16);
        let [left, right] = inst.ignored.map(|r| r.map_or(0, |r| self.word(r, lane)));
        if left.max(right) > 15 || left + right > bytes {
            let message = format!(
                "a bulk copy of {bytes} bytes without {left} at its beginning and {right} at its end: at most 15 are left out"
            );
            return Err(misuse(lane, message));
        }
        let moved = (bytes - left - right) as usize;
        // A copy to several blocks is complete in each by itself.
        for rank in self.targets(inst.ranks, lane) {
            let to = rank.map_or(to, |rank| address::of_rank(to, rank));
            let mut completions = Vec::new();
            if let Some(barrier) = inst.barrier {
                let (rank, byte) = self.barrier_at(lane, self.wide(barrier, lane), rank)?;
                completions.push(Completion::Bytes(rank, byte, bytes));
            }
            let work = Bytes {
                to: to + u64::from(left),
                from: from + u64::from(left),
                read: moved,
                written: moved,
                mask,
            };
            let class = match inst.barrier {
                Some(_) => Class::Told,
                None => Class::Bulk,
            };
            let issue = Issue {
                class,
                name: "the bulk copy",
                proxy: Kind::Engine,
                work: Some(Box::new(work)),
                completions,
                in_order: false,
            };
            self.issue(pc, lane, issue);
        }
        Ok(())
    }

    /// `st.async` and `red.async`. They are operations of the generic proxy, as `cp.async` is.
    fn store_async(&mut self, pc: usize, inst: &StoreInst, lane: u32) -> Check {
        let (to, barrier) = (self.wide(inst.to, lane), self.wide(inst.barrier, lane));
        let (name, what) = match inst.reduces {
            None => ("the asynchronous store (st.async)", "the destination of st.async"),
            Some(_) => (
                "the asynchronous reduction (red.async)",
                "the destination of red.async",
            ),
        };
        let size = inst.kind.bits() / 8;
        let mut bytes = Vec::new();
        for register in &inst.values {
            let value = match inst.kind.wide() {
                true => self.wide(*register, lane),
                false => self.word(*register, lane).into(),
            };
            bytes.extend_from_slice(&inst.kind.store(value).to_le_bytes()[..size as usize]);
        }
        self.aligned(lane, what, to, bytes.len() as u64)?;
        if self.rank_of(to) != self.rank_of(barrier) {
            let message = format!(
                "{what} is shared memory of rank {} of the cluster, and its mbarrier is of rank {}: both are of one block",
                self.rank_of(to),
                self.rank_of(barrier)
            );
            return Err(misuse(lane, message));
        }
        let (rank, byte) = self.barrier_at(lane, barrier, None)?;
        let completions = vec![Completion::Bytes(rank, byte, bytes.len() as u32)];
        let issue = Issue {
            class: Class::Told,
            name,
            proxy: Kind::Copy,
            work: Some(Box::new(Registers {
                to,
                bytes,
                reduces: inst.reduces.map(|op| (op, inst.kind)),
            })),
            completions,
            in_order: false,
        };
        self.issue(pc, lane, issue);
        Ok(())
    }

    /// The tensor map of a tensor copy.
    pub(in crate::exec) fn map_of(&self, inst: &TileInst, lane: u32) -> Check<TensorMap> {
        let mut bytes = [0; TENSOR_MAP_BYTES];
        let address = self.wide(inst.map, lane);
        let storage = self.ctx.memory.find(address);
        let Some(storage) = storage.filter(|s| (address - s.address) as usize + bytes.len() <= s.bytes)
        else {
            return Err(misuse(
                lane,
                "the tensor map is no address of 128 bytes in memory",
            ));
        };
        let first = (address - storage.address) as usize;
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = storage.load((first + i) * 8, 8) as u8;
        }
        read_map(&bytes).map_err(|m| misuse(lane, format!("{m} ({address:#x})")))
    }

    fn tile(&mut self, pc: usize, inst: &TileInst, lane: u32) -> Check {
        let map = self.map_of(inst, lane)?;
        let shared = self.wide(inst.shared, lane);
        self.aligned(lane, "the shared memory of a tensor copy", shared, 128)?;
        let repeat = map.swizzle.repeat();
        self.holds_pattern(lane, "the swizzled tile of a tensor copy", shared, repeat)?;
        let size = Tile::bytes(&map, inst.gather) as u32;
        for rank in self.targets(inst.ranks, lane) {
            let mut completions = Vec::new();
            if let Some(barrier) = inst.barrier {
                let address = self.wide(barrier, lane);
                let told = match rank {
                    Some(rank) if inst.pair => Some(rank & !1 | self.rank_of(address) & 1),
                    rank => rank,
                };
                let (rank, byte) = self.barrier_at(lane, address, told)?;
                completions.push(Completion::Bytes(rank, byte, size));
            }
            let tile = Tile {
                map: map.clone(),
                direction: inst.direction,
                shared: rank.map_or(shared, |rank| address::of_rank(shared, rank)),
                at: inst.at.iter().map(|r| self.word(*r, lane) as i32).collect(),
                gather: inst.gather,
            };
            tile.check().map_err(|m| misuse(lane, m))?;
            let class = match inst.barrier {
                Some(_) => Class::Told,
                None => Class::Bulk,
            };
            let issue = Issue {
                class,
                name: "the tensor copy",
                proxy: Kind::Engine,
                work: Some(Box::new(tile)),
                completions,
                in_order: false,
            };
            self.issue(pc, lane, issue);
        }
        Ok(())
    }

    /// Rank (none for the own block) and byte of an mbarrier.
    pub(in crate::exec) fn barrier_at(
        &self,
        lane: u32,
        address: u64,
        rank: Option<u32>,
    ) -> Check<(Option<u32>, u32)> {
        let address = rank.map_or(address, |rank| address::of_rank(address, rank));
        let (rank, array, at) = match decode(address) {
            Target::Shared(array, at) => (None, array, at),
            Target::Cluster(rank, array, at) => (Some(rank), array, at),
            _ => return Err(misuse(lane, "an mbarrier outside of shared memory")),
        };
        let array = self.ctx.code.shared.get(array as usize);
        let Some(array) = array.filter(|a| at >= 0 && at as u64 + 8 <= u64::from(a.bytes)) else {
            let message = format!("an mbarrier at byte {at} of a shared array that does not reach there");
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

    /// The rank of the block whose shared memory an address is of.
    fn rank_of(&self, address: u64) -> u32 {
        match decode(address) {
            Target::Cluster(rank, ..) => rank,
            _ => self.peers.rank() as u32,
        }
    }

    /// Performs an operation on an mbarrier that a lane may use.
    fn with_barrier<T>(
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
                Some(block) if !block.done() => &mut block.shared,
                _ => {
                    let message = format!("{name} of rank {rank} of the cluster, where no block runs");
                    return Err(misuse(lane, message));
                }
            },
        };
        let Some(barrier) = shared.engine.barriers.get_mut(&byte) else {
            let message = format!("{name} is no mbarrier: nobody has initialized it (mbarrier.init)");
            return Err(misuse(lane, message));
        };
        let (init, published) = (barrier.init, barrier.published);
        let before = barrier.counts();
        let result = step(barrier).map_err(|message| misuse(lane, format!("{message} ({name})")))?;
        let touch = barrier.touched_since(before);
        let object = Object::Mbarrier(shared.order.block, byte);
        shared.changes += 1;
        self.shared.touch(object, touch);
        self.shared.changes += 1;
        let order = &self.shared.order;
        if order.check && !order.ordered(init, self.id, lane) && !order.ordered(published, self.id, lane) {
            return Err(self.conflicting(&name, lane, Conflict::Write(init), "uses"));
        }
        Ok(result)
    }

    fn mbarrier(&mut self, pc: usize, id: u16, inst: &MbarrierInst, mask: u32) -> Check<Option<Status>> {
        let on = |machine: &Self, lane: u32| inst.predicate.is_none_or(|p| machine.word(p, lane) != 0);
        let mask = lanes(mask).filter(|l| on(self, *l)).fold(0, |m, l| m | 1 << l);
        if mask == 0 {
            return Ok(None);
        }
        match inst.what {
            MbarrierWhat::Wait | MbarrierWhat::Test => return self.wait_barrier(id, inst, mask),
            MbarrierWhat::Init => {
                for lane in lanes(mask) {
                    self.init_barrier(pc, inst, lane)?;
                }
            }
            MbarrierWhat::Inval => {
                for lane in lanes(mask) {
                    let (rank, byte) = self.barrier_at(lane, self.wide(inst.barrier, lane), None)?;
                    self.with_barrier(lane, rank, byte, |_| Ok(()))?;
                    self.shared.engine.barriers.remove(&byte);
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
        let order = &self.shared.order;
        let mark = order.mark(self.id, pc, Kind::Plain).of(1 << lane);
        if let Some(before) = self.shared.engine.barriers.get(&byte) {
            if !initialized(order, before, self.id, lane) && order.check {
                let conflict = Conflict::Write(before.init);
                return Err(self.conflicting(&name, lane, conflict, "initializes"));
            }
            let message = format!("{name} is an mbarrier already: invalidate it first (mbarrier.inval)");
            return Err(misuse(lane, message));
        }
        let engine = &mut self.shared.engine;
        let published = engine.number(pc, mark, Kind::Copy);
        engine
            .barriers
            .insert(byte, Mbarrier::new(count, mark, published));
        let object = Object::Mbarrier(self.shared.order.block, byte);
        self.shared.touch(object, Touch::Write { phase: 0 });
        Ok(())
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
        let released: Option<Known> = arrives.then(|| match inst.relaxed {
            true => self.shared.order.published(self.id, mask),
            false => self.shared.order.release(self.id, mask),
        });
        let cluster = inst.cluster;
        let state = self.with_barrier(lane, rank, byte, |barrier| {
            let state = barrier.state();
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
        if let Some(d) = inst.state {
            // The lanes arrive one by one, within one phase.
            let each = match inst.what {
                MbarrierWhat::ArriveExpect => 1,
                _ => u64::from(count),
            };
            for (before, lane) in lanes(mask).enumerate() {
                self.warp.v64[d as usize][lane as usize] = state - each * before as u64;
            }
        }
        Ok(())
    }

    fn wait_barrier(&mut self, id: u16, inst: &MbarrierInst, mask: u32) -> Check<Option<Status>> {
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
                Ok((complete, b.complete.clone()))
            })?;
            self.shared.changes = changes;
            if complete {
                done |= 1 << lane;
                let thread = self.id as u32 * 32 + lane;
                let phase = self
                    .shared
                    .engine
                    .barriers
                    .get(&byte)
                    .map_or(0, |b| b.phase.wrapping_sub(1));
                self.shared
                    .engine
                    .waited_at
                    .insert((thread, byte), (parity, phase));
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
            let far = released.far.iter().filter(|_| inst.cluster);
            for released in released.near.iter().chain(far) {
                match inst.relaxed {
                    true => self.shared.order.hear(self.id, *lanes, released),
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
        let Some(byte) = engine.told_at.get(&operation.pc()) else {
            return String::new();
        };
        let name = barrier_name(self.ctx, *byte);
        match engine.waited_at.get(&(self.id as u32 * 32 + lane, *byte)) {
            None => format!(": it completes at {name}"),
            Some((parity, phase)) => format!(
                ": it completes at {name}, where this thread has waited for parity {parity} last, which phase {phase} had \
                 completed before"
            ),
        }
    }

    /// Whether a sleeping strand can continue; otherwise what it waits for.
    fn awake(&self, id: u16, mask: u32) -> Result<(), String> {
        match &self.ctx.code.asynchronous[id as usize] {
            AsyncInst::Wait { class, left, .. } => {
                let engine = &self.shared.engine;
                let own = self.id as u32 * 32;
                for lane in self.members(*class, mask) {
                    let done = match left {
                        Some(left) => engine.complete(*class, own + lane, *left as usize),
                        None => engine.all_complete(*class, own + lane),
                    };
                    if !done {
                        return Err("wait for asynchronous operations to complete".to_string());
                    }
                }
                Ok(())
            }
            AsyncInst::Mbarrier(inst) => {
                for lane in lanes(mask) {
                    if inst.predicate.is_some_and(|p| self.word(p, lane) == 0) {
                        continue;
                    }
                    let Ok((_, byte)) = self.barrier_at(lane, self.wide(inst.barrier, lane), None) else {
                        return Ok(());
                    };
                    let parity = inst.count.map_or(0, |count| self.word(count, lane));
                    let Some(barrier) = self.shared.engine.barriers.get(&byte) else {
                        return Ok(());
                    };
                    if !barrier.is_complete(parity) {
                        return Err(format!(
                            "wait for parity {parity} of {}, whose phase {} (parity {}) waits for {}",
                            barrier_name(self.ctx, byte),
                            barrier.phase,
                            barrier.phase & 1,
                            barrier.missing(self.ctx.code)
                        ));
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// The name of an mbarrier in messages.
fn barrier_name(ctx: &Context<'_>, byte: u32) -> String {
    let holds = ctx
        .code
        .shared
        .iter()
        .find(|a| byte >= a.offset && byte < a.offset + a.bytes);
    match holds {
        Some(array) if array.bytes % 8 == 0 => {
            format!("the mbarrier `{}[{}]`", array.name, (byte - array.offset) / 8)
        }
        Some(array) => format!("the mbarrier at byte {} of `{}`", byte - array.offset, array.name),
        None => format!("the mbarrier at {byte:#x}"),
    }
}

impl Block {
    /// What sleeping strands of a warp wait for, of those that cannot continue.
    pub(in crate::exec) fn sleeps_for(
        &mut self,
        ctx: &Context<'_>,
        warp: usize,
        (id, mask): (u16, u32),
    ) -> Option<String> {
        let machine = Machine {
            ctx,
            shared: &mut self.shared,
            warp: &mut self.warps[warp],
            peers: Peers::none(self.rank),
            id: warp,
            call: 0,
        };
        machine.awake(id, mask).err()
    }

    /// Wakes the strands whose wait is over. Gives whether there were any.
    pub(in crate::exec) fn wake(&mut self, ctx: &Context<'_>) -> bool {
        let mut any = false;
        for warp in 0..self.warps.len() {
            for at in 0..self.warps[warp].strands.len() {
                let strand = &self.warps[warp].strands[at];
                let Status::Asleep(id) = strand.status else {
                    continue;
                };
                let mask = strand.mask;
                if self.sleeps_for(ctx, warp, (id, mask)).is_none() {
                    self.warps[warp].strands[at].status = Status::Ready;
                    any = true;
                }
            }
        }
        any
    }

    /// Performs the operations that are due. Gives whether there were any.
    pub(in crate::exec) fn perform(
        &mut self,
        ctx: &Context<'_>,
        peers: &mut Peers<'_>,
    ) -> Result<bool, Fault> {
        let mut any = false;
        while let Some(mut operation) = self.shared.engine.next() {
            any = true;
            let result = self.perform_one(ctx, peers, &mut operation);
            if let Err(trap) = result {
                return Err(fault(ctx, &self.shared, operation.warp, operation.pc, *trap));
            }
        }
        Ok(any)
    }

    pub(in crate::exec) fn perform_one(
        &mut self,
        ctx: &Context<'_>,
        peers: &mut Peers<'_>,
        operation: &mut Operation,
    ) -> Check {
        let commits = operation.work.is_none() && operation.forked.mark.kind() == Kind::Engine;
        if let Some(mut work) = operation.work.take() {
            let mut reach = Reach {
                ctx,
                shared: &mut self.shared,
                peers: peers.reborrow(),
                operation,
            };
            work.run(&mut reach)?;
            if self.shared.recorded {
                let (warp, pc) = (operation.warp, operation.pc);
                self.shared.performed(warp, pc, operation.name, operation.time);
            }
            self.shared.operations = true;
        }
        let mut known = Known::nothing(ctx.blocks());
        if commits {
            // Matrix operations are ordered behind what their thread knew; so is a thread that observes the commit.
            known.join(&operation.forked.known);
        }
        let (own, after) = (operation.forked.mark, &operation.forked.after);
        for mark in after.iter().copied().chain([own, own.written()]) {
            known.learn(mark);
            if commits {
                known.told.learn(mark);
            }
        }
        for completion in &operation.completions {
            let (Completion::Bytes(rank, byte, count) | Completion::Arrive(rank, byte, count)) = completion;
            let name = barrier_name(ctx, *byte);
            let shared = match rank.filter(|r| *r as usize != peers.rank()) {
                None => &mut self.shared,
                Some(rank) => match peers.get(rank) {
                    Some(block) if !block.done() => &mut block.shared,
                    _ => {
                        let message = format!(
                            "{} completes at {name} of rank {rank}, where no block runs",
                            operation.name
                        );
                        return Err(misuse(operation.lane, message));
                    }
                },
            };
            shared.changes += 1;
            let checks = shared.order.check;
            let Some(barrier) = shared.engine.barriers.get_mut(byte) else {
                let message = format!(
                    "{} completes at {name}, which nobody has initialized",
                    operation.name
                );
                return Err(misuse(operation.lane, message));
            };
            let before = barrier.counts();
            let forked = &operation.forked;
            if checks && !forked.ordered(barrier.init) && !forked.ordered(barrier.published) {
                let message = format!(
                    "{} completes at {name}, and no barrier orders the mbarrier's initialization (mbarrier.init) before it was \
                     issued",
                    operation.name
                );
                return Err(Trap::new(FaultKind::Race, operation.lane, message));
            }
            if checks
                && !barrier.fenced
                && own.kind() == Kind::Engine
                && !visible(&operation.forked, barrier.init)
            {
                let message = format!(
                    "{} completes at {name}, whose initialization no fence has made visible to the async proxy \
                     (fence.mbarrier_init or fence.proxy.async)",
                    operation.name
                );
                return Err(misuse(operation.lane, message));
            }
            barrier.tell(&known, false);
            let done = match completion {
                Completion::Bytes(..) => barrier.copied(operation.pc, *count),
                Completion::Arrive(..) => barrier.arrive(*count),
            };
            done.map_err(|m| misuse(operation.lane, format!("{} {m} ({name})", operation.name)))?;
            let touch = barrier.touched_since(before);
            let object = Object::Mbarrier(shared.order.block, *byte);
            self.shared.touch(object, touch);
        }
        Ok(())
    }
}

/// Whether a lane is ordered behind the initialization of an mbarrier.
fn initialized(order: &Order, barrier: &Mbarrier, warp: usize, lane: u32) -> bool {
    order.ordered(barrier.init, warp, lane) || order.ordered(barrier.published, warp, lane)
}

fn visible(forked: &Forked, mark: Mark) -> bool {
    forked.known.fenced[Space::Shared as usize].unknown(mark) == 0
}
