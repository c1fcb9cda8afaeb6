//! Who wrote and read each place of shared memory, and which of those accesses are ordered.
//!
//! Time in a warp is counted in *segments*: a segment ends where the warp synchronizes (block barrier, warp
//! barrier, shuffle, atomic). `seen[a][b]` is the first segment of warp `b` that warp `a` is not ordered behind:
//! an access of `b` in an earlier segment happened before what `a` does now. A block barrier lets everyone see
//! everything; a named barrier those who meet; an atomic, or a loop condition that reads what another thread
//! wrote, lets its reader see what the writer did before. Within a warp only a synchronization orders two lanes.
//!
//! Each place has a [`Cell`]: its last write, its last read, and which warps have read it since the last block
//! barrier. That misses races that need a longer memory, and reports none that is not there.

use crate::alu::{FULL, LANES, Lanes32};

/// Warps of the largest block.
pub(crate) const WARPS: usize = 32;

const LANE: u64 = 31;
const ATOMIC: u64 = 1 << 10;
const MULTIPLE: u64 = 1 << 11;
const PC_SHIFT: u32 = 12;
const PC_MASK: u64 = (1 << 20) - 1;
const THREAD: u64 = 1023;
/// Warp and segment of a stamp.
const SEGMENT_AND_WARP: u64 = 0xffff_ffff << 32 | 31 << 5;

/// An access: segment, instruction, flags, warp and lane in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

/// The segment of accesses by threads of other blocks: ordered behind no warp until something orders them all.
const REMOTE: u64 = (u32::MAX as u64 - 1) << 32;

/// Nobody has written: read by a check as if by an access that is never ordered.
pub(crate) const NEVER: Stamp = Stamp(u64::MAX);

impl Stamp {
    pub(crate) fn segment(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(crate) fn warp(self) -> usize {
        (self.0 >> 5 & LANE) as usize
    }

    /// Linear index of the thread (of one of them, where lanes acted together).
    pub(crate) fn thread(self) -> u32 {
        (self.0 & THREAD) as u32
    }

    /// The instruction.
    pub(crate) fn pc(self) -> usize {
        (self.0 >> PC_SHIFT & PC_MASK) as usize
    }

    /// The same access, of a lane.
    #[inline(always)]
    pub(crate) fn of_lane(self, lane: u32) -> Stamp {
        Stamp(self.0 | lane as u64)
    }

    /// This read after `last` of the same warp: of several lanes, if both are of one segment and not of one lane.
    #[inline(always)]
    pub(crate) fn together_with(self, last: Stamp) -> Stamp {
        let difference = last.0 ^ self.0;
        let together = difference & SEGMENT_AND_WARP == 0 && difference & (LANE | MULTIPLE) != 0;
        Stamp(self.0 | if together { MULTIPLE } else { 0 })
    }

    pub(crate) fn is_atomic(self) -> bool {
        self.0 & ATOMIC != 0
    }

    /// Whether this access, by a thread of the block, was of the same thread as `other`.
    pub(crate) fn same_thread(self, other: Stamp) -> bool {
        (self.0 ^ other.0) & THREAD == 0 && self.0 & MULTIPLE == 0 && !self.is_remote()
    }

    /// The same access, to another block's memory.
    fn remote(self) -> Stamp {
        Stamp(self.0 & 0xffff_ffff | REMOTE)
    }

    /// Whether a thread of another block accessed.
    pub(crate) fn is_remote(self) -> bool {
        self.0 >> 32 == REMOTE >> 32
    }
}

/// What is known of one place.
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
}

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    Uninitialized,
    /// Unordered with this write.
    AfterWrite(Stamp),
    /// Unordered with this read.
    AfterRead(Stamp),
}

/// The order of events in a block.
#[derive(Debug)]
pub(crate) struct Order {
    segment: [u32; WARPS],
    seen: Vec<[u32; WARPS]>,
    /// Counts block barriers.
    epoch: u32,
    /// Something finer than block barriers has ordered warps.
    fine: bool,
    /// What a warp sees that synchronizes through global memory: all that warps had seen when they last did.
    global: [u32; WARPS],
    /// The first segment of each warp that other blocks of the cluster are not ordered behind.
    revealed: [u32; WARPS],
    /// The segment of each warp when it last arrived at the cluster's barrier.
    arrivals: [u32; WARPS],
    /// Cells that other blocks have accessed since something ordered them.
    remote: Vec<u32>,
    /// A thread has seen what another block wrote to tell that it is done.
    settles: bool,
    /// Whether races are looked for.
    pub(crate) check: bool,
}

impl Order {
    pub(crate) fn new(check: bool) -> Order {
        Order {
            segment: [1; WARPS],
            seen: vec![[1; WARPS]; WARPS],
            epoch: 1,
            fine: false,
            global: [1; WARPS],
            revealed: [1; WARPS],
            arrivals: [1; WARPS],
            remote: Vec::new(),
            settles: false,
            check,
        }
    }

    pub(crate) fn reset(&mut self) {
        *self = Order::new(self.check);
    }

    /// The stamp of an access of a warp, without lane.
    #[inline(always)]
    pub(crate) fn stamp(&self, warp: usize, pc: usize, atomic: bool) -> Stamp {
        let pc = (pc as u64).min(PC_MASK);
        let flag = if atomic { ATOMIC } else { 0 };
        Stamp((self.segment[warp] as u64) << 32 | pc << PC_SHIFT | flag | (warp as u64) << 5)
    }

    /// A block barrier.
    pub(crate) fn barrier(&mut self) {
        self.epoch += 1;
        self.segment.iter_mut().for_each(|s| *s += 1);
        self.seen.fill(self.segment);
    }

    /// The warps of a set (a bit each) meet.
    pub(crate) fn meet(&mut self, warps: u32) {
        self.fine = true;
        let mut all = [0; WARPS];
        let members = || (0..WARPS).filter(move |w| warps >> w & 1 != 0);
        for w in members() {
            self.segment[w] += 1;
            for (a, s) in all.iter_mut().zip(&self.seen[w]) {
                *a = (*a).max(*s);
            }
        }
        for w in members() {
            all[w] = self.segment[w];
        }
        for w in members() {
            self.seen[w] = all;
        }
    }

    /// Lanes of a warp synchronize.
    #[inline]
    pub(crate) fn warp_sync(&mut self, warp: usize) {
        self.segment[warp] += 1;
        self.seen[warp][warp] = self.segment[warp];
    }

    /// `warp` synchronizes through global memory: ordered behind every warp of the block that did before. Another
    /// block may have stood between them, so which place it was does not matter.
    pub(crate) fn publish(&mut self, warp: usize) {
        self.fine = true;
        for (mine, all) in self.seen[warp].iter_mut().zip(&mut self.global) {
            *mine = (*mine).max(*all);
            *all = *mine;
        }
        self.warp_sync(warp);
        self.global[warp] = self.segment[warp];
    }

    /// The first segment of warp `other` that warp `warp` is not ordered behind.
    #[inline(always)]
    pub(crate) fn seen_by(&self, warp: usize, other: usize) -> u32 {
        self.seen[warp][other]
    }

    /// `warp` sees what the writer of `stamp` has done before.
    pub(crate) fn acquire(&mut self, warp: usize, stamp: Stamp) {
        let writer = stamp.warp();
        if stamp.is_remote() {
            self.settles = true;
            return;
        }
        if stamp == NEVER || writer == warp {
            return;
        }
        self.fine = true;
        let theirs = self.seen[writer];
        for (mine, theirs) in self.seen[warp].iter_mut().zip(theirs) {
            *mine = (*mine).max(theirs);
        }
        self.seen[warp][warp] = self.segment[warp];
        let mine = &mut self.seen[warp][writer];
        *mine = (*mine).max(stamp.segment() + 1);
    }

    /// Lane `lane` reads.
    #[inline(always)]
    pub(crate) fn read(&self, cell: &mut Cell, stamp: Stamp, lane: u32) -> Result<(), Finding> {
        let write = cell.write;
        let warp = stamp.warp();
        let stamp = Stamp(stamp.0 | lane as u64);
        if write.segment() >= self.seen[warp][write.warp()] {
            if write == NEVER {
                return Err(Finding::Uninitialized);
            }
            if self.check && !write.same_thread(stamp) {
                return Err(Finding::AfterWrite(write));
            }
        }
        if self.check {
            self.record_read(cell, stamp);
        }
        Ok(())
    }

    /// The high half of `Cell::readers` at present.
    #[inline(always)]
    fn epoch_bits(&self) -> u64 {
        (self.epoch as u64) << 32
    }

    #[inline(always)]
    fn record_read(&self, cell: &mut Cell, stamp: Stamp) {
        record(cell, stamp.0, self.epoch_bits(), 1 << stamp.warp());
    }

    /// All lanes of `mask` read, each its place: `read` for a whole warp. On an error, with the lane.
    #[inline(always)]
    pub(crate) fn read_lanes(
        &self,
        cells: &mut [Cell],
        places: &Lanes32,
        stamp: Stamp,
        mask: u32,
    ) -> Result<(), (u32, Finding)> {
        let doubtful = match (mask == FULL, self.check) {
            (true, true) => self.read_all::<true, true>(cells, places, stamp, mask),
            (true, false) => self.read_all::<true, false>(cells, places, stamp, mask),
            (false, true) => self.read_all::<false, true>(cells, places, stamp, mask),
            (false, false) => self.read_all::<false, false>(cells, places, stamp, mask),
        };
        if !doubtful {
            return Ok(());
        }
        // Rare: places that the warp itself has written since it last synchronized, and errors.
        let seen = &self.seen[stamp.warp()];
        for lane in (0..LANES as u32).filter(|l| mask >> l & 1 != 0) {
            let write = cells[places[lane as usize] as usize].write;
            if write.segment() < seen[write.warp()] {
                continue;
            }
            if write == NEVER {
                return Err((lane, Finding::Uninitialized));
            }
            if self.check && !write.same_thread(Stamp(stamp.0 | lane as u64)) {
                return Err((lane, Finding::AfterWrite(write)));
            }
        }
        Ok(())
    }

    /// Whether any write read from may be unordered.
    #[inline(always)]
    fn read_all<const ALL: bool, const CHECK: bool>(
        &self,
        cells: &mut [Cell],
        places: &Lanes32,
        stamp: Stamp,
        mask: u32,
    ) -> bool {
        let seen = self.seen[stamp.warp()];
        let (epoch, bit) = (self.epoch_bits(), 1 << stamp.warp());
        let mut doubtful = false;
        let mut last = u32::MAX;
        for (lane, place) in places.iter().enumerate() {
            if !ALL && mask >> lane & 1 == 0 {
                continue;
            }
            let cell = &mut cells[*place as usize];
            if *place == last {
                // What several lanes read together is looked at once.
                if CHECK {
                    cell.read.0 |= MULTIPLE;
                }
                continue;
            }
            last = *place;
            doubtful |= cell.write.segment() >= seen[cell.write.warp()];
            if CHECK {
                record(cell, stamp.0 | lane as u64, epoch, bit);
            }
        }
        doubtful
    }

    /// A loop condition of `warp` polls the place.
    pub(crate) fn poll(&mut self, cell: &mut Cell, warp: usize) -> Result<(), Finding> {
        if cell.write == NEVER {
            return Err(Finding::Uninitialized);
        }
        self.acquire(warp, cell.write);
        Ok(())
    }

    /// Lane `lane` writes; `same` says that the place holds the value already.
    #[inline(always)]
    pub(crate) fn write(&self, cell: &mut Cell, stamp: Stamp, lane: u32, same: bool) -> Result<(), Finding> {
        let stamp = Stamp(stamp.0 | lane as u64);
        if self.check {
            let warp = stamp.warp();
            let write = cell.write;
            let unordered = write.segment() >= self.seen[warp][write.warp()] && write != NEVER;
            if unordered && !same && !write.same_thread(stamp) {
                return Err(Finding::AfterWrite(write));
            }
            self.check_reads(cell, stamp)?;
        }
        cell.write = stamp;
        Ok(())
    }

    #[inline(always)]
    fn check_reads(&self, cell: &Cell, stamp: Stamp) -> Result<(), Finding> {
        let read = cell.read;
        if read.is_remote() {
            return Err(Finding::AfterRead(read));
        }
        let warp = stamp.warp();
        let recent = cell.readers >> 32 == self.epoch as u64;
        if recent && cell.readers as u32 & !(1 << warp) != 0 {
            // Of several readers only the last is known in detail; a finer order than that of barriers may
            // hold for the others.
            let known = read.warp() != warp && read.segment() >= self.seen[warp][read.warp()];
            if known || (!self.fine && read.warp() == warp) {
                return Err(Finding::AfterRead(read));
            }
        }
        let own = (read.0 ^ stamp.0) & SEGMENT_AND_WARP == 0;
        if own && recent && !read.same_thread(stamp) {
            return Err(Finding::AfterRead(read));
        }
        Ok(())
    }

    /// An atomic of lane `lane`: ordered behind the atomic before it, whoever made that.
    pub(crate) fn atomic(&mut self, cell: &mut Cell, stamp: Stamp, lane: u32) -> Result<(), Finding> {
        let write = cell.write;
        if write == NEVER {
            return Err(Finding::Uninitialized);
        }
        let stamp = Stamp(stamp.0 | lane as u64);
        if write.is_atomic() {
            self.acquire(stamp.warp(), write);
        } else if self.check {
            let unordered = write.segment() >= self.seen[stamp.warp()][write.warp()];
            if unordered && !write.same_thread(stamp) {
                return Err(Finding::AfterWrite(write));
            }
        }
        if self.check {
            self.check_reads(cell, stamp)?;
        }
        cell.write = stamp;
        Ok(())
    }
}

/// Accesses of other blocks of the cluster. They are ordered with those of the block's own threads by what orders
/// blocks as a whole, and not looked at among each other.
impl Order {
    /// What the block's threads have done so far is ordered before what other blocks do from now on.
    pub(crate) fn reveal(&mut self) {
        self.segment.iter_mut().for_each(|s| *s += 1);
        self.revealed = self.segment;
    }

    /// What other blocks have done so far is ordered before what the block's threads do from now on; nothing if only
    /// `asked` for and no thread has seen a sign of it.
    pub(crate) fn settle(&mut self, cells: &mut [Cell], asked: bool) {
        if !std::mem::take(&mut self.settles) && asked {
            return;
        }
        for cell in self.remote.drain(..) {
            let cell = &mut cells[cell as usize];
            if cell.write.is_remote() {
                cell.write = Stamp(cell.write.0 & 0xffff_ffff);
            }
            if cell.read.is_remote() {
                cell.read = Stamp(0);
            }
        }
    }

    /// A warp arrives at the cluster's barrier.
    pub(crate) fn arrive(&mut self, warp: usize) {
        self.segment[warp] += 1;
        self.arrivals[warp] = self.segment[warp];
    }

    /// All have arrived: other blocks see what was done before.
    pub(crate) fn open(&mut self) {
        for (mine, theirs) in self.revealed.iter_mut().zip(self.arrivals) {
            *mine = (*mine).max(theirs);
        }
    }

    /// A warp goes on from the cluster's barrier.
    pub(crate) fn wait(&mut self, warp: usize) {
        let arrivals = self.arrivals;
        self.join(1 << warp, &arrivals);
    }

    /// What a warp has done that arrives at a named barrier: merged into that of those before it.
    pub(crate) fn arrive_named(&mut self, warp: usize, before: &mut [u32; WARPS]) {
        self.segment[warp] += 1;
        for (mine, theirs) in before.iter_mut().zip(self.seen[warp]) {
            *mine = (*mine).max(theirs);
        }
        before[warp] = self.segment[warp];
    }

    /// The warps of a set see what others have done before.
    pub(crate) fn join(&mut self, warps: u32, before: &[u32; WARPS]) {
        self.fine = true;
        for warp in (0..WARPS).filter(|w| warps >> w & 1 != 0) {
            for (mine, theirs) in self.seen[warp].iter_mut().zip(before) {
                *mine = (*mine).max(*theirs);
            }
        }
    }

    fn unseen(&self, stamp: Stamp) -> bool {
        !stamp.is_remote() && stamp.segment() >= self.revealed[stamp.warp()]
    }

    /// Another block reads cell number `at`; `poll` says that it waits for what it reads.
    pub(crate) fn remote_read(
        &mut self,
        cell: &mut Cell,
        at: usize,
        stamp: Stamp,
        poll: bool,
    ) -> Result<(), Finding> {
        if cell.write == NEVER {
            return Err(Finding::Uninitialized);
        }
        if poll {
            self.reveal();
        } else if self.check {
            if self.unseen(cell.write) {
                return Err(Finding::AfterWrite(cell.write));
            }
            self.note(cell, at);
            cell.read = stamp.remote();
        }
        Ok(())
    }

    /// Another block writes cell number `at`; `same` says that it holds the value already.
    pub(crate) fn remote_write(
        &mut self,
        cell: &mut Cell,
        at: usize,
        stamp: Stamp,
        same: bool,
    ) -> Result<(), Finding> {
        if self.check {
            if cell.write != NEVER && !same && self.unseen(cell.write) {
                return Err(Finding::AfterWrite(cell.write));
            }
            if self.unseen(cell.read) {
                return Err(Finding::AfterRead(cell.read));
            }
        }
        self.note(cell, at);
        // Where nobody looks for races the cell is written, and that is all.
        cell.write = if self.check {
            stamp.remote()
        } else {
            Stamp(stamp.0 & 0xffff_ffff)
        };
        Ok(())
    }

    /// An access of another block that nothing orders before what follows here: the end of the block. Whether it wrote.
    pub(crate) fn unsettled(&self, cells: &[Cell]) -> Option<(Stamp, bool)> {
        if self.settles {
            return None;
        }
        let cells = self.remote.iter().map(|at| &cells[*at as usize]);
        let mut accesses = cells.flat_map(|cell| [(cell.read, false), (cell.write, true)]);
        accesses.find(|(stamp, _)| stamp.is_remote())
    }

    fn note(&mut self, cell: &Cell, at: usize) {
        if self.check && !cell.write.is_remote() && !cell.read.is_remote() {
            self.remote.push(at as u32);
        }
    }

    /// Another block updates cell number `at` atomically.
    pub(crate) fn remote_atomic(&mut self, cell: &mut Cell, at: usize, stamp: Stamp) -> Result<(), Finding> {
        if cell.write == NEVER {
            return Err(Finding::Uninitialized);
        }
        if cell.write.is_atomic() {
            self.reveal();
        }
        self.remote_write(cell, at, stamp, false)
    }
}

/// Notes a read; `epoch` and `bit` are the epoch and the warp as `Cell::readers` has them.
#[inline(always)]
fn record(cell: &mut Cell, stamp: u64, epoch: u64, bit: u64) {
    cell.read = Stamp(stamp).together_with(cell.read);
    let before = if (cell.readers ^ epoch) >> 32 == 0 {
        cell.readers
    } else {
        epoch
    };
    cell.readers = before | bit;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(order: &Order, cell: &mut Cell, warp: usize, lane: u32) -> Result<(), Finding> {
        order.write(cell, order.stamp(warp, 7, false), lane, false)
    }

    fn read(order: &Order, cell: &mut Cell, warp: usize, lane: u32) -> Result<(), Finding> {
        order.read(cell, order.stamp(warp, 9, false), lane)
    }

    #[test]
    fn a_barrier_orders_writes_before_reads() {
        let mut order = Order::new(true);
        let mut cell = Cell::EMPTY;
        assert_eq!(read(&order, &mut cell, 0, 0), Err(Finding::Uninitialized));
        assert_eq!(write(&order, &mut cell, 0, 3), Ok(()));
        assert_eq!(read(&order, &mut cell, 0, 3), Ok(()), "its own write");
        assert!(matches!(read(&order, &mut cell, 0, 4), Err(Finding::AfterWrite(s)) if s.thread() == 3));
        assert!(matches!(read(&order, &mut cell, 2, 3), Err(Finding::AfterWrite(s)) if s.pc() == 7));
        order.barrier();
        assert_eq!(read(&order, &mut cell, 2, 3), Ok(()));
        assert!(matches!(write(&order, &mut cell, 1, 0), Err(Finding::AfterRead(s)) if s.thread() == 67));
        order.barrier();
        assert_eq!(write(&order, &mut cell, 1, 0), Ok(()));
    }

    #[test]
    fn a_warp_barrier_orders_the_warp_alone() {
        let mut order = Order::new(true);
        let mut cell = Cell::EMPTY;
        assert_eq!(write(&order, &mut cell, 1, 0), Ok(()));
        order.warp_sync(1);
        assert_eq!(read(&order, &mut cell, 1, 5), Ok(()));
        assert!(read(&order, &mut cell, 0, 5).is_err());
        assert!(write(&order, &mut cell, 1, 6).is_err(), "lane 5 has just read");
        order.warp_sync(1);
        assert_eq!(write(&order, &mut cell, 1, 6), Ok(()));
    }

    #[test]
    fn meetings_and_polls_carry_order_on() {
        let mut order = Order::new(true);
        let (mut data, mut flag) = (Cell::EMPTY, Cell::EMPTY);
        assert_eq!(write(&order, &mut data, 0, 0), Ok(()));
        order.meet(0b11);
        assert_eq!(read(&order, &mut data, 1, 0), Ok(()));
        assert!(read(&order, &mut data, 2, 0).is_err());
        assert_eq!(write(&order, &mut flag, 1, 0), Ok(()));
        assert_eq!(order.poll(&mut flag, 2), Ok(()));
        assert_eq!(read(&order, &mut data, 2, 0), Ok(()), "through warp 1");
    }

    #[test]
    fn other_blocks_are_ordered_by_what_orders_blocks() {
        let mut order = Order::new(true);
        let mut cells = [Cell::EMPTY; 2];
        let theirs = order.stamp(0, 3, false);
        assert_eq!(write(&order, &mut cells[0], 0, 0), Ok(()));
        let mut cell = cells[0];
        assert!(matches!(
            order.remote_read(&mut cell, 0, theirs, false),
            Err(Finding::AfterWrite(s)) if s.pc() == 7
        ));
        order.reveal();
        assert_eq!(order.remote_read(&mut cell, 0, theirs, false), Ok(()));
        let race = write(&order, &mut cell, 0, 0);
        assert!(matches!(race, Err(Finding::AfterRead(s)) if s.is_remote()));
        cells[0] = cell;
        let mut cell = cells[1];
        assert_eq!(order.remote_write(&mut cell, 1, theirs, false), Ok(()));
        assert!(matches!(read(&order, &mut cell, 0, 0), Err(Finding::AfterWrite(s)) if s.is_remote()));
        cells[1] = cell;
        order.settle(&mut cells, false);
        assert_eq!(read(&order, &mut cells[1], 0, 0), Ok(()));
        assert_eq!(write(&order, &mut cells[0], 0, 0), Ok(()));
    }

    #[test]
    fn atomics_do_not_race_with_each_other() {
        let mut order = Order::new(true);
        let mut cell = Cell::EMPTY;
        assert_eq!(write(&order, &mut cell, 0, 0), Ok(()));
        order.barrier();
        let stamp = order.stamp(0, 1, true);
        assert_eq!(order.atomic(&mut cell, stamp, 0), Ok(()));
        assert_eq!(order.atomic(&mut cell, stamp, 1), Ok(()));
        let stamp = order.stamp(1, 1, true);
        assert_eq!(order.atomic(&mut cell, stamp, 0), Ok(()));
        assert!(
            read(&order, &mut cell, 3, 0).is_err(),
            "a plain read among atomics"
        );
    }
}
