//! Instructions that issue operations, and those that wait for groups of them.

use std::sync::Arc;

use super::copy::{Bytes, Registers};
use super::tile::{Tile, read_map};
use super::{Class, Completion, Issue};
use crate::alu::LANES;
use crate::bytecode::{AsyncInst, BulkInst, R, StoreInst, TileInst};
use crate::exec::access::Check;
use crate::exec::address::{self, Target, decode};
use crate::exec::order::{Forked, Kind};
use crate::exec::run::Machine;
use crate::exec::{Shared, Status, Trap};
use crate::fault::FaultKind;
use crate::memory::Storage;
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
        for completion in &issue.completions {
            if let Completion::Bytes(Some(rank), byte, bytes) = completion
                && let Some(block) = self.peers.get(*rank)
                && let Some(barrier) = block.shared.engine.barriers.get_mut(byte)
            {
                barrier.issue(*bytes);
            }
        }
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
            AsyncInst::FenceMaps { acquires: true } => self.shared.order.acquire_maps(self.id, mask),
            AsyncInst::FenceMaps { acquires: false } => self.shared.order.release_maps(self.id, mask),
            AsyncInst::Copy {
                to,
                from,
                bytes,
                predicate,
                zeros,
                read,
            } => {
                for lane in lanes(mask) {
                    let on = predicate.is_none_or(|p| self.word(p, lane) != 0);
                    let read = match read.map(|r| self.word(r, lane)) {
                        _ if !on => 0,
                        None => usize::from(*bytes),
                        Some(read) if read <= u32::from(*bytes) => read as usize,
                        Some(read) => {
                            let message =
                                format!("cp.async of {bytes} bytes reads {read} of them (src-size)");
                            return Err(Trap::new(FaultKind::Asynchronous, lane, message));
                        }
                    };
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
                    if read > 0 && from % u64::from(*bytes) != 0 {
                        return Err(Trap::new(FaultKind::Misaligned, lane, message("from", from)));
                    }
                    let work = Bytes {
                        to,
                        from,
                        read,
                        written: *bytes as usize,
                        mask: u16::MAX,
                        reduces: None,
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
            AsyncInst::SetRegisters { count, more } => {
                if !self.set_registers(pc, (*count, *more), mask)? {
                    return Ok(Some(Status::Asleep(id)));
                }
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

    /// The lanes that represent those of a mask in a class.
    pub(super) fn members(&self, class: Class, mask: u32) -> impl Iterator<Item = u32> + use<> {
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

    /// A copy to the blocks of a mask completes at the mbarrier of each: for the report of a block that is not among them.
    fn note_targets(&mut self, pc: usize, lane: u32, ranks: Option<R>, barrier: Option<R>) -> Check {
        let (Some(ranks), Some(barrier)) = (ranks, barrier) else {
            return Ok(());
        };
        let (_, byte) = self.barrier_at(lane, self.wide(barrier, lane), None)?;
        let ranks = self.word(ranks, lane) & 0xffff;
        self.shared.engine.signals(pc, byte, ranks);
        Ok(())
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
        self.note_targets(pc, lane, inst.ranks, inst.barrier)?;
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
                reduces: inst.reduces,
            };
            let class = match inst.barrier {
                Some(_) => Class::Told,
                None => Class::Bulk,
            };
            let issue = Issue {
                class,
                name: match inst.reduces {
                    None => "the bulk copy",
                    Some(_) => "the bulk reduction",
                },
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
                shadows: self.shade_taken(inst.kind, &inst.values, lane as usize),
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

    /// A tensor map describes memory of one allocation; if it has as many elements as that, each is there once.
    fn map_fits(&self, map: &TensorMap, lane: u32) -> Check {
        let Some(storage) = self.ctx.memory.find(map.address) else {
            return Ok(());
        };
        let row = Tile::tensor_row(map);
        let extents = &map.dims[1.min(map.dims.len())..];
        if row == 0 || extents.contains(&0) {
            return Ok(());
        }
        let mut params = self.device.params.iter().zip(&self.ctx.code.params);
        let is_of =
            |param: &Option<(Arc<Storage>, u64)>| matches!(param, Some((of, _)) if Arc::ptr_eq(of, &storage));
        let name = params.find(|(param, _)| is_of(param)).map(|(_, (name, _))| name);
        let name = match name {
            Some(name) => format!("`{}`", name.strip_suffix("_ptr").unwrap_or(name)),
            None => "its tensor".to_string(),
        };
        let shape: Vec<String> = map.dims.iter().map(u64::to_string).collect();
        let strides: Vec<String> = map.strides.iter().map(u64::to_string).collect();
        let map_of = format!(
            "the tensor map of extents ({}) and strides ({}) bytes (the innermost dimension first)",
            shape.join(", "),
            strides.join(", ")
        );
        let spans = extents.iter().zip(&map.strides);
        let covered = spans
            .clone()
            .map(|(n, stride)| u128::from(n - 1) * u128::from(*stride));
        let covered = covered.sum::<u128>() + u128::from(row);
        let first = map.address - storage.address;
        if u128::from(first) + covered > storage.bytes as u128 {
            let message = format!(
                "{map_of} describes {covered} bytes from byte {first} of {name} on, whose memory has {}",
                storage.bytes
            );
            return Err(Trap::new(FaultKind::OutOfBounds, lane, message));
        }
        let count = extents
            .iter()
            .fold(u128::from(row), |all, n| all * u128::from(*n));
        let mut steps: Vec<(u64, u64)> = spans.filter(|(n, _)| **n > 1).map(|(n, s)| (*s, *n)).collect();
        steps.sort_unstable();
        let mut span = u128::from(row);
        for (stride, extent) in steps {
            if u128::from(stride) < span && count == storage.bytes as u128 {
                let message = format!(
                    "{map_of} has as many elements as {name}, and does not describe each of them: with a stride of {stride} bytes its \
                     rows of {span} bytes overlap"
                );
                return Err(misuse(lane, message));
            }
            span += u128::from(stride) * u128::from(extent - 1);
        }
        Ok(())
    }

    fn tile(&mut self, pc: usize, inst: &TileInst, lane: u32) -> Check {
        let map = self.map_of(inst, lane)?;
        self.map_fits(&map, lane)?;
        let shared = self.wide(inst.shared, lane);
        self.aligned(lane, "the shared memory of a tensor copy", shared, 128)?;
        let repeat = map.swizzle.repeat();
        self.holds_pattern(lane, "the swizzled tile of a tensor copy", shared, repeat)?;
        let size = Tile::counted(&map, inst.gather) as u32;
        self.note_targets(pc, lane, inst.ranks, inst.barrier)?;
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
                map_at: self.wide(inst.map, lane),
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

    /// The rank of the block whose shared memory an address is of.
    fn rank_of(&self, address: u64) -> u32 {
        match decode(address) {
            Target::Cluster(rank, ..) => rank,
            _ => self.peers.rank() as u32,
        }
    }
}
