//! Observing a strand before each instruction: counts, and values at a line. Only launches that ask for it come here.
//!
//! Memory transactions are counted as the hardware makes them: an access of a warp to global memory touches sectors of 32
//! bytes; one to shared memory takes a pass for each different word that some bank has to give, 32 banks of 4 bytes; lanes
//! that access 8 bytes each go in two halves, those that access 16 bytes in four quarters.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use super::Strand;
use super::address::{self, Target};
use super::engine::tile::Tile;
use super::lanes::bits;
use super::place::Spot;
use super::run::Machine;
use crate::alu::LANES;
use crate::bytecode::{Access, AsyncInst, DebugHome, Inst, Operand, Region, TensorInst};
use crate::location::FaultLocation;
use crate::numeric::Kind;
use crate::observe::{Counts, KINDS, MAX_ELEMENTS, MAX_SNAPSHOTS, Named, Observer, Snapshot, StopAt};

/// Bytes of a sector of global memory, of a word of a bank; banks; most bytes of a lane's access.
const SECTOR: u64 = 32;
const WORD: u64 = 4;
const BANKS: u64 = 32;
const WIDEST: u64 = 16;

/// The number of a kind.
fn kind_of(name: &str) -> usize {
    KINDS.iter().position(|kind| *kind == name).unwrap_or(0)
}

/// The kind of an instruction that accesses no memory by lanes; `None` for what the GPU has no instruction for.
fn other_kind(inst: &Inst) -> Option<&'static str> {
    Some(match inst {
        Inst::Step { .. }
        | Inst::Turn { .. }
        | Inst::Spin { .. }
        | Inst::CheckInit { .. }
        | Inst::MarkInit { .. }
        | Inst::ClearInit { .. }
        | Inst::ClearLocal { .. }
        | Inst::Extent { .. }
        | Inst::Converged
        | Inst::LoopBegin { .. }
        | Inst::LoopLatch
        | Inst::Arrive => return None,
        Inst::Jump { .. }
        | Inst::JumpIf { .. }
        | Inst::JumpIfNot { .. }
        | Inst::ForStep32 { .. }
        | Inst::ForStep64 { .. }
        | Inst::If { .. }
        | Inst::LoopTest { .. }
        | Inst::LoopTestS { .. }
        | Inst::Break
        | Inst::Continue
        | Inst::Return
        | Inst::End
        | Inst::Assert { .. }
        | Inst::Print { .. }
        | Inst::CallStandIn { .. } => "control",
        Inst::Shuffle { .. } | Inst::ActiveMask { .. } => "shuffles",
        Inst::WarpSync
        | Inst::CtaSync
        | Inst::CtaSyncReduce(_)
        | Inst::NamedSync { .. }
        | Inst::NamedSyncReduce { .. }
        | Inst::NamedArrive { .. }
        | Inst::ClusterSync
        | Inst::ClusterArrive { .. }
        | Inst::ClusterWait { .. }
        | Inst::GridSync
        | Inst::Fence { .. }
        | Inst::FenceProxy { .. }
        | Inst::FenceAliases
        | Inst::PriorGrid => "barriers",
        Inst::Async { .. } => "asynchronous",
        Inst::Tensor { .. } => "matrix",
        _ => "arithmetic",
    })
}

/// A lane's access: the address and the bytes.
type Touch = (u64, u64);

/// Sectors that a warp's accesses touch, and the least for their bytes.
fn sectors(touches: &[Touch]) -> (u64, u64) {
    let mut sectors = BTreeSet::new();
    let mut places = BTreeSet::new();
    let mut bytes = 0;
    for (address, size) in touches {
        if places.insert((address, size)) {
            bytes += size;
        }
        sectors.extend(address / SECTOR..(address + size).div_ceil(SECTOR));
    }
    (sectors.len() as u64, bytes.div_ceil(SECTOR))
}

/// Counts accesses to global memory that are made together.
fn count_sectors(touches: &[Touch], counts: &mut Counts) {
    let (touched, least) = sectors(touches);
    counts.sectors += touched;
    counts.least_sectors += least;
    counts.global_bytes += touches.iter().map(|(_, bytes)| bytes).sum::<u64>();
}

/// Passes of a warp's accesses to shared memory, and those without conflicts.
fn passes(touches: &[(u32, Touch)]) -> (u64, u64) {
    let widest = touches.iter().map(|(_, (_, size))| *size).max().unwrap_or(WORD);
    // Lanes that are served together.
    let together = match widest {
        0..=4 => 32,
        5..=8 => 16,
        _ => 8,
    };
    let (mut all, mut least) = (0, 0);
    for group in 0..LANES as u32 / together {
        let mut words = BTreeSet::new();
        for (lane, (address, size)) in touches {
            if lane / together == group {
                words.extend(address / WORD..(address + size).div_ceil(WORD));
            }
        }
        let of_bank = |bank: u64| words.iter().filter(|word| *word % BANKS == bank).count() as u64;
        all += (0..BANKS).map(of_bank).max().unwrap_or(0);
        least += u64::from(!words.is_empty());
    }
    (all, least)
}

/// A value as text.
fn shown(kind: Kind, value: u64) -> String {
    match kind {
        Kind::Bool => (value != 0).to_string(),
        Kind::F64 => f64::from_bits(value).to_string(),
        Kind::Ptr => format!("{value:#x}"),
        Kind::I64 => (value as i64).to_string(),
        Kind::U64 => value.to_string(),
        kind if kind.is_float() => f32::from_bits(value as u32).to_string(),
        kind if kind.is_signed() => (value as u32 as i32).to_string(),
        _ => (value as u32).to_string(),
    }
}

impl Machine<'_, '_> {
    /// Before the instruction at `pc`; `last` is the one that the strand has run before.
    #[cold]
    pub(super) fn observe(
        &mut self,
        observer: &Observer,
        pc: usize,
        last: usize,
        mask: u32,
        strand: &Strand,
    ) {
        if observer.what.coverage {
            self.cover(observer, pc, mask, strand);
        }
        if observer.what.work {
            self.count_work(observer, pc, mask);
        }
        if observer.what.counters || observer.what.work {
            self.count(observer, pc, mask, strand);
        }
        if let Some(stop) = observer.what.stop {
            self.stop_at(observer, stop, pc, last, mask, strand);
        }
    }

    /// Records that threads come to an instruction, and which of them take it if it is a branch.
    fn cover(&self, observer: &Observer, pc: usize, mask: u32, strand: &Strand) {
        let all = |holds: bool| if holds { mask } else { 0 };
        let taken = match self.ctx.code.insts[pc] {
            Inst::If { c, .. } | Inst::LoopTest { c } => Some(mask & bits(&self.warp.v32[c as usize])),
            Inst::JumpIfNot { s, .. } | Inst::LoopTestS { s } => Some(all(strand.scalars[s as usize] != 0)),
            _ => None,
        };
        let counts = taken.map(|taken| (taken.count_ones(), (mask & !taken).count_ones()));
        observer.coverage.come(pc, counts);
    }

    fn count(&mut self, observer: &Observer, pc: usize, mask: u32, strand: &Strand) {
        let code = self.ctx.code;
        let inst = &code.insts[pc];
        let mut counts = Counts::default();
        let s = |register: u16| strand.scalars[register as usize];
        let narrow = |index: u64| i64::from(index as u32 as i32);
        // The access, and the index of each lane.
        let accessed: Option<(u16, [i64; LANES], bool)> = match inst {
            Inst::Load {
                index, plus, access, ..
            }
            | Inst::Store {
                index, plus, access, ..
            } => {
                let at = self.warp.v32[*index as usize]
                    .map(|i| narrow(u64::from(i.wrapping_add(s(*plus) as u32))));
                Some((*access, at, matches!(inst, Inst::Store { .. })))
            }
            Inst::LoadWide {
                index, plus, access, ..
            }
            | Inst::StoreWide {
                index, plus, access, ..
            } => {
                let at = self.warp.v64[*index as usize].map(|i| i.wrapping_add(s(*plus)) as i64);
                Some((*access, at, matches!(inst, Inst::StoreWide { .. })))
            }
            Inst::LoadS {
                index, wide, access, ..
            }
            | Inst::LoadRow {
                index, wide, access, ..
            }
            | Inst::StoreRow {
                index, wide, access, ..
            } => {
                let at = if *wide {
                    s(*index) as i64
                } else {
                    narrow(s(*index))
                };
                Some((*access, [at; LANES], matches!(inst, Inst::StoreRow { .. })))
            }
            Inst::Atomic { id } => {
                let atomic = &code.atomics[*id as usize];
                let at = match atomic.wide {
                    true => {
                        self.warp.v64[atomic.index as usize].map(|i| i.wrapping_add(s(atomic.plus)) as i64)
                    }
                    false => self.warp.v32[atomic.index as usize]
                        .map(|i| narrow(u64::from(i.wrapping_add(s(atomic.plus) as u32)))),
                };
                Some((atomic.access, at, true))
            }
            _ => None,
        };
        let kind = match accessed {
            Some((access, at, writes)) => {
                let name = self.count_access(&code.accesses[access as usize], &at, mask, writes, &mut counts);
                Some(match inst {
                    Inst::Atomic { .. } => "atomics",
                    _ => name,
                })
            }
            // Waits of mbarriers are barriers.
            None => match inst {
                Inst::Async { id } if matches!(code.asynchronous[*id as usize], AsyncInst::Mbarrier(_)) => {
                    Some("barriers")
                }
                Inst::Async { id } => {
                    self.count_copy(&code.asynchronous[*id as usize], mask, &mut counts);
                    other_kind(inst)
                }
                Inst::Tensor { id } => match &code.tensor[*id as usize] {
                    TensorInst::Rows {
                        rows,
                        address,
                        access,
                        ..
                    } => {
                        // A row of 16 bytes for each of the first lanes; 8 rows are a matrix and go together.
                        let lanes = u32::MAX >> (LANES - rows.rows().min(LANES));
                        let at = self.warp.v64[*address as usize].map(|a| a as i64);
                        let access = &code.accesses[*access as usize];
                        Some(self.count_access(access, &at, lanes, rows.store, &mut counts))
                    }
                    TensorInst::WgmmaFence | TensorInst::WgmmaCommit | TensorInst::WgmmaWait { .. } => {
                        Some("barriers")
                    }
                    _ => Some("matrix"),
                },
                inst => other_kind(inst),
            },
        };
        if let Some(kind) = kind {
            counts.instructions[kind_of(kind)] += 1;
        }
        let mut all = observer.counts.lock().unwrap_or_else(PoisonError::into_inner);
        all[pc].add(&counts);
    }

    /// Counts what an asynchronous copy moves, as it is issued.
    fn count_copy(&mut self, inst: &AsyncInst, mask: u32, counts: &mut Counts) {
        let lanes = || (0..LANES as u32).filter(|lane| mask >> lane & 1 != 0);
        let is_global = |address: u64| matches!(address::decode(address), Target::Global(_));
        match inst {
            AsyncInst::Copy {
                to,
                from,
                bytes,
                predicate,
                zeros,
                read,
            } => {
                let size = u64::from(*bytes);
                let (mut global, mut shared) = (Vec::new(), Vec::new());
                for lane in lanes() {
                    let on = predicate.is_none_or(|p| self.warp.v32[p as usize][lane as usize] != 0);
                    let read = read.map_or(size, |r| self.warp.v32[r as usize][lane as usize].into());
                    if on && read > 0 {
                        global.push((self.warp.v64[*from as usize][lane as usize], read));
                    }
                    if on || *zeros {
                        let to = self.offset_of(self.warp.v64[*to as usize][lane as usize]);
                        shared.push((lane, (to, size)));
                    }
                }
                counts.copied_bytes += size * shared.len() as u64;
                counts.shared_bytes += size * shared.len() as u64;
                let (taken, least) = passes(&shared);
                counts.passes += taken;
                counts.least_passes += least;
                count_sectors(&global, counts);
                self.count_lanes(&global, counts.sectors);
            }
            AsyncInst::Bulk(inst) => {
                for lane in lanes().map(|lane| lane as usize) {
                    let bytes = u64::from(self.warp.v32[inst.bytes as usize][lane]);
                    let ends = [inst.from, inst.to].map(|end| self.warp.v64[end as usize][lane]);
                    let ranks = inst
                        .ranks
                        .map_or(1, |r| (self.warp.v32[r as usize][lane] & 0xffff).count_ones());
                    counts.bulk_bytes += bytes * u64::from(ranks);
                    for end in ends.into_iter().filter(|end| is_global(*end)) {
                        count_sectors(&[(end, bytes)], counts);
                        self.count_rows(&[(end, bytes)]);
                    }
                }
            }
            AsyncInst::Tile(inst) => {
                for lane in lanes() {
                    // What is not allowed is reported when the instruction runs.
                    let Ok(map) = self.map_of(inst, lane) else {
                        continue;
                    };
                    let at = inst
                        .at
                        .iter()
                        .map(|r| self.warp.v32[*r as usize][lane as usize] as i32);
                    let rows = Tile::rows(&map, &at.collect::<Vec<_>>(), inst.gather);
                    let bytes: u64 = rows.iter().map(|(_, bytes)| bytes).sum();
                    let ranks = inst.ranks.map_or(1, |r| {
                        (self.warp.v32[r as usize][lane as usize] & 0xffff).count_ones()
                    });
                    counts.bulk_bytes += bytes * u64::from(ranks);
                    count_sectors(&rows, counts);
                    self.count_rows(&rows);
                }
            }
            _ => {}
        }
    }

    /// Lanes access global memory together, in so many sectors.
    fn count_lanes(&self, touches: &[Touch], sectors: u64) {
        if let Some(observer) = self.ctx.observer.as_ref().filter(|observer| observer.what.work) {
            observer.working.add(|work| work.lane_sectors += sectors);
            observer.working.access(self.shared.order.block, touches);
        }
    }

    /// A bulk or tensor copy accesses global memory.
    fn count_rows(&self, touches: &[Touch]) {
        if let Some(observer) = self.ctx.observer.as_ref().filter(|observer| observer.what.work) {
            observer.working.copy(touches);
        }
    }

    /// Counts a warp's access; gives its kind.
    fn count_access(
        &mut self,
        access: &Access,
        at: &[i64; LANES],
        mask: u32,
        writes: bool,
        counts: &mut Counts,
    ) -> &'static str {
        let size = u64::from(access.kind.bits()) * u64::from(access.count);
        let (mut global, mut shared, mut local) = (Vec::new(), Vec::new(), 0);
        for lane in (0..LANES as u32).filter(|lane| mask >> lane & 1 != 0) {
            // What is not allowed is reported when the instruction runs.
            let Ok(spot) = self.locate(access, lane, at[lane as usize], "accesses") else {
                continue;
            };
            let bytes = size.div_ceil(8);
            match spot {
                Spot::Global(storage, bit) => global.push((storage.address + bit as u64 / 8, bytes)),
                Spot::Shared(bit) | Spot::Far(_, bit) => shared.push((lane, (bit as u64 / 8, bytes))),
                Spot::Local(_) => local += bytes,
            }
        }
        let chunks = size.div_ceil(8).div_ceil(WIDEST).max(1);
        let chunk = |(address, bytes): Touch, number: u64| {
            let done = number * WIDEST;
            (address + done, (bytes - done.min(bytes)).min(WIDEST))
        };
        for number in 0..chunks {
            let part: Vec<Touch> = global.iter().map(|touch| chunk(*touch, number)).collect();
            let (touched, least) = sectors(&part);
            counts.sectors += touched;
            counts.least_sectors += least;
            let part: Vec<(u32, Touch)> = shared
                .iter()
                .map(|(lane, touch)| (*lane, chunk(*touch, number)))
                .collect();
            let (taken, least) = passes(&part);
            counts.passes += taken;
            counts.least_passes += least;
        }
        self.count_lanes(&global, counts.sectors);
        counts.global_bytes += global.iter().map(|(_, bytes)| bytes).sum::<u64>();
        counts.shared_bytes += shared.iter().map(|(_, (_, bytes))| bytes).sum::<u64>();
        counts.local_bytes += local;
        match (access.region, writes) {
            (Region::Local(_), _) => "local",
            (Region::Shared(_), false) => "shared loads",
            (Region::Shared(_), true) => "shared stores",
            (_, writes) if !shared.is_empty() && global.is_empty() => match writes {
                true => "shared stores",
                false => "shared loads",
            },
            (_, false) => "global loads",
            (_, true) => "global stores",
        }
    }

    /// Records the values of all names where a strand comes to the line.
    fn stop_at(
        &mut self,
        observer: &Observer,
        stop: StopAt,
        pc: usize,
        last: usize,
        mask: u32,
        strand: &Strand,
    ) {
        let code = self.ctx.code;
        // The line, where the instruction is in it or in an inline function that it calls; and the calls around the line.
        let line = |pc: usize| {
            let location = code.locations.get(*code.places.get(pc)? as usize)?.as_ref()?;
            let at = std::iter::once(location).chain(location.calls());
            at.into_iter()
                .find(|at| at.line == stop.line)
                .map(FaultLocation::key)
        };
        let comes = match (line(pc), line(last)) {
            (Some(here), Some(before)) => here != before || pc <= last,
            (here, _) => here.is_some(),
        };
        if !comes || self.shared.linear != stop.block {
            return;
        }
        let lanes = match stop.thread {
            Some(thread) if thread as usize / LANES != self.id => 0,
            Some(thread) => mask & 1 << (thread as usize % LANES),
            None => mask,
        };
        let mut snapshots = observer.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        if lanes == 0 || snapshots.len() >= MAX_SNAPSHOTS {
            return;
        }
        let mut values: Vec<Named> = Vec::new();
        for known in &code.names {
            if !(known.range.0 as usize <= pc && pc < known.range.1 as usize) {
                continue;
            }
            // A later declaration of the name hides an earlier one.
            let hidden = |named: &Named| {
                named.name == known.name || named.name.starts_with(&format!("{}[", known.name))
            };
            values.retain(|named| !hidden(named));
            let register = |register: u16, lane: u32| match known.kind.wide() {
                true => self.warp.v64[register as usize][lane as usize],
                false => u64::from(self.warp.v32[register as usize][lane as usize]),
            };
            let in_lanes = |name: String, value: &dyn Fn(u32) -> u64| {
                let lanes = (0..LANES as u32).filter(|lane| lanes >> lane & 1 != 0);
                Named {
                    name,
                    lanes: lanes.map(|lane| (lane, shown(known.kind, value(lane)))).collect(),
                    shared: false,
                }
            };
            match &known.home {
                DebugHome::Register(Operand::S(at)) => values.push(Named {
                    name: known.name.clone(),
                    lanes: vec![(
                        lanes.trailing_zeros(),
                        shown(known.kind, strand.scalars[*at as usize]),
                    )],
                    shared: true,
                }),
                DebugHome::Register(Operand::V(at)) => {
                    values.push(in_lanes(known.name.clone(), &|lane| register(*at, lane)));
                }
                DebugHome::Registers(all) => {
                    for (index, at) in all.iter().take(MAX_ELEMENTS).enumerate() {
                        let name = match all.len() {
                            1 => known.name.clone(),
                            _ => format!("{}[{index}]", known.name),
                        };
                        values.push(in_lanes(name, &|lane| register(*at, lane)));
                    }
                }
                DebugHome::Shared(array) => {
                    let array = &code.shared[*array as usize];
                    let bits = known.kind.bits();
                    let lanes_of = u64::from(u32::from(array.element) / bits.max(1)).max(1);
                    let elements = array
                        .view
                        .as_ref()
                        .map(|view| &view.elements)
                        .filter(|_| lanes_of == 1);
                    let count = match elements {
                        Some(elements) => elements.count() as usize,
                        None => (array.bytes * 8 / bits.max(1)) as usize,
                    };
                    for index in 0..count.min(MAX_ELEMENTS) {
                        let place = elements.map_or(index as i64, |elements| elements.place(index as u64));
                        let bit = place as usize * bits as usize;
                        if place < 0 || bit + bits as usize > array.bytes as usize * 8 {
                            continue;
                        }
                        let bit = array.offset as usize * 8 + bit;
                        let bits = crate::memory::load_bits(&self.shared.words, bit, bits);
                        values.push(Named {
                            name: match elements {
                                Some(elements) => elements.name(&known.name, index as i64),
                                None => format!("{}[{index}]", known.name),
                            },
                            lanes: vec![(lanes.trailing_zeros(), shown(known.kind, known.kind.load(bits)))],
                            shared: true,
                        });
                    }
                }
            }
        }
        snapshots.push(Snapshot {
            location: code.location(pc),
            block: self.shared.index,
            warp: self.id as u32,
            mask: lanes,
            values,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_and_passes_are_those_of_the_hardware() {
        let global =
            |stride: u64, size: u64| sectors(&(0..32).map(|lane| (lane * stride, size)).collect::<Vec<_>>());
        assert_eq!(global(4, 4), (4, 4));
        assert_eq!(global(8, 4), (8, 4));
        assert_eq!(global(128, 4), (32, 4));
        assert_eq!(global(0, 4), (1, 1));
        assert_eq!(global(16, 16), (16, 16));
        let shared = |stride: u64, size: u64| {
            passes(
                &(0..32)
                    .map(|lane| (lane, (u64::from(lane) * stride, size)))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(shared(4, 4), (1, 1));
        assert_eq!(shared(8, 4), (2, 1));
        assert_eq!(shared(128, 4), (32, 1));
        assert_eq!(shared(132, 4), (1, 1));
        assert_eq!(shared(0, 4), (1, 1));
        assert_eq!(shared(2, 2), (1, 1));
        assert_eq!(shared(8, 8), (2, 2));
        assert_eq!(shared(16, 16), (4, 4));
        assert_eq!(shared(32, 16), (8, 4));
    }
}
