//! Histories of shared memory where a block synchronizes by block and warp barriers alone.
//!
//! A cell has its last write, its last read, and which warps have read it since the last block barrier. The warps of
//! that set that are not the writer's are unordered with it; within a warp only a warp barrier orders two lanes.

use super::mark::{Kind, Mark};
use super::{Conflict, Order};
use crate::alu::{FULL, LANES, Lanes32};

const LANE: u64 = 31;
const MULTIPLE: u64 = 1 << 10;
const PC_SHIFT: u32 = 11;
const PC_MASK: u64 = (1 << 21) - 1;
const THREAD: u64 = 1023;
/// Warp and segment of a stamp.
const SEGMENT_AND_WARP: u64 = 0xffff_ffff << 32 | 31 << 5;

/// An access: segment, instruction, flag, warp and lane in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

/// Nobody has written: a check reads it as an access that is never ordered.
const NEVER: Stamp = Stamp(u64::MAX);

impl Stamp {
    /// An access of a warp, without lane.
    #[inline(always)]
    pub(crate) fn new(order: &Order, warp: usize, pc: usize) -> Stamp {
        let pc = (pc as u64).min(PC_MASK);
        Stamp((order.segment(warp) as u64) << 32 | pc << PC_SHIFT | (warp as u64) << 5)
    }

    #[inline(always)]
    fn segment(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline(always)]
    fn warp(self) -> usize {
        (self.0 >> 5 & LANE) as usize
    }

    fn mark(self, order: &Order) -> Mark {
        let lane = (self.0 & LANE) as u32;
        let pc = (self.0 >> PC_SHIFT & PC_MASK) as usize;
        Mark::new(
            self.segment(),
            order.block,
            1 << lane,
            pc,
            self.warp(),
            Kind::Plain,
        )
    }

    /// This read after `last` of the same warp: covers several lanes, if both are of one segment and different lanes.
    #[inline(always)]
    fn together_with(self, last: Stamp) -> Stamp {
        let difference = last.0 ^ self.0;
        let together = difference & SEGMENT_AND_WARP == 0 && difference & (LANE | MULTIPLE) != 0;
        Stamp(self.0 | if together { MULTIPLE } else { 0 })
    }

    /// Whether this access was of the same thread as `other`.
    #[inline(always)]
    fn same_thread(self, other: Stamp) -> bool {
        (self.0 ^ other.0) & THREAD == 0 && self.0 & MULTIPLE == 0
    }
}

/// The history of one place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    write: Stamp,
    read: Stamp,
    /// Warps that have read (low half) in the barrier epoch of the high half.
    readers: u64,
}

impl Cell {
    pub(crate) const EMPTY: Cell = Cell {
        write: NEVER,
        read: Stamp(0),
        readers: 0,
    };

    /// Written, and nothing more: where races are not checked.
    pub(crate) fn touch(&mut self) {
        self.write = Stamp(0);
    }
}

/// The result of a failed check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    Uninitialized,
    /// The access is not ordered with another one.
    Conflict(Conflict),
}

impl From<Conflict> for Finding {
    fn from(conflict: Conflict) -> Finding {
        Finding::Conflict(conflict)
    }
}

/// Lane `lane` reads.
#[inline(always)]
pub(crate) fn read(order: &Order, cell: &mut Cell, stamp: Stamp, lane: u32) -> Result<(), Finding> {
    let write = cell.write;
    let warp = stamp.warp();
    let stamp = Stamp(stamp.0 | lane as u64);
    if write.segment() >= order.floor(warp)[write.warp()] {
        if write == NEVER {
            if order.check {
                record(cell, stamp.0, epoch_bits(order), 1 << warp);
            }
            return Err(Finding::Uninitialized);
        }
        if order.check && !write.same_thread(stamp) {
            return Err(Finding::Conflict(Conflict::Write(write.mark(order))));
        }
    }
    if order.check {
        record(cell, stamp.0, epoch_bits(order), 1 << warp);
    }
    Ok(())
}

/// The high half of `Cell::readers` at present.
#[inline(always)]
fn epoch_bits(order: &Order) -> u64 {
    (order.epoch() as u64) << 32
}

/// All lanes of `mask` read, each its place: `read` for a whole warp. On an error, with the lane.
#[inline(always)]
pub(crate) fn read_lanes(
    order: &Order,
    cells: &mut [Cell],
    places: &Lanes32,
    stamp: Stamp,
    mask: u32,
) -> Result<(), (u32, Finding)> {
    let doubtful = match (mask == FULL, order.check) {
        (true, true) => read_all::<true, true>(order, cells, places, stamp, mask),
        (true, false) => read_all::<true, false>(order, cells, places, stamp, mask),
        (false, true) => read_all::<false, true>(order, cells, places, stamp, mask),
        (false, false) => read_all::<false, false>(order, cells, places, stamp, mask),
    };
    if !doubtful {
        return Ok(());
    }
    // The rare cases: places that the warp itself has written since it last synchronized, and errors.
    let seen = order.floor(stamp.warp());
    for lane in (0..LANES as u32).filter(|l| mask >> l & 1 != 0) {
        let write = cells[places[lane as usize] as usize].write;
        if write.segment() < seen[write.warp()] {
            continue;
        }
        if write == NEVER {
            return Err((lane, Finding::Uninitialized));
        }
        if order.check && !write.same_thread(Stamp(stamp.0 | lane as u64)) {
            return Err((lane, Finding::Conflict(Conflict::Write(write.mark(order)))));
        }
    }
    Ok(())
}

/// Whether any write read from may be unordered.
#[inline(always)]
fn read_all<const ALL: bool, const CHECK: bool>(
    order: &Order,
    cells: &mut [Cell],
    places: &Lanes32,
    stamp: Stamp,
    mask: u32,
) -> bool {
    let seen = *order.floor(stamp.warp());
    let (epoch, warp_bit) = (epoch_bits(order), 1 << stamp.warp());
    let mut doubtful = false;
    let mut last = u32::MAX;
    for (lane, place) in places.iter().enumerate() {
        if !ALL && mask >> lane & 1 == 0 {
            continue;
        }
        let cell = &mut cells[*place as usize];
        if *place == last {
            // What several lanes read together is checked once.
            if CHECK {
                cell.read.0 |= MULTIPLE;
            }
            continue;
        }
        last = *place;
        doubtful |= cell.write.segment() >= seen[cell.write.warp()];
        if CHECK {
            record(cell, stamp.0 | lane as u64, epoch, warp_bit);
        }
    }
    doubtful
}

/// Records a read of this epoch that was allowed.
pub(crate) fn record_read(cell: &mut Cell, stamp: Stamp, lane: u32, epoch: u32) {
    record(
        cell,
        stamp.0 | lane as u64,
        (epoch as u64) << 32,
        1 << stamp.warp(),
    );
}

/// Lane `lane` writes; `same` says that the place holds the value already.
#[inline(always)]
pub(crate) fn write(
    order: &Order,
    cell: &mut Cell,
    stamp: Stamp,
    lane: u32,
    same: bool,
) -> Result<(), Finding> {
    let stamp = Stamp(stamp.0 | lane as u64);
    if order.check {
        let warp = stamp.warp();
        let write = cell.write;
        let unordered = write.segment() >= order.floor(warp)[write.warp()] && write != NEVER;
        if unordered && !same && !write.same_thread(stamp) {
            return Err(Finding::Conflict(Conflict::Write(write.mark(order))));
        }
        check_reads(order, cell, stamp)?;
    }
    cell.write = stamp;
    Ok(())
}

/// An error if a read of this epoch is not ordered before the write `stamp`: a read by another warp, or by another lane of the same
/// warp since its last warp barrier.
#[inline(always)]
fn check_reads(order: &Order, cell: &Cell, stamp: Stamp) -> Result<(), Finding> {
    if cell.readers >> 32 != order.epoch() as u64 {
        return Ok(());
    }
    let (read, warp) = (cell.read, stamp.warp());
    let others = cell.readers as u32 & !(1 << warp) != 0;
    let own = (read.0 ^ stamp.0) & SEGMENT_AND_WARP == 0 && !read.same_thread(stamp);
    if others || own {
        return Err(Finding::Conflict(Conflict::Read(read.mark(order))));
    }
    Ok(())
}

/// Records a read. `epoch` is the current epoch in the high half, `warp_bit` has the reading warp's bit in the low half, as in
/// [`Cell::readers`]. A block barrier, which starts an epoch, orders all earlier reads: they are dropped.
#[inline(always)]
fn record(cell: &mut Cell, stamp: u64, epoch: u64, warp_bit: u64) {
    cell.read = Stamp(stamp).together_with(cell.read);
    let is_same_epoch = cell.readers >> 32 == epoch >> 32;
    let readers = if is_same_epoch { cell.readers } else { epoch };
    cell.readers = readers | warp_bit;
}
