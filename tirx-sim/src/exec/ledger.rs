//! Who wrote and read each place of global memory in a launch, and which of those accesses are ordered.
//!
//! Within a block the order is that of shared memory ([`Order`]). Blocks are ordered by what synchronizes them:
//! atomics, loops that wait for memory, cluster and grid barriers, raw functions (which may do any of these). Such
//! an event takes a number from one clock of the launch. What a block did before its event of number *n* is
//! ordered before what another does after its event of a later number, whatever the places: an order that is
//! sometimes too generous, so that races are missed, and none is reported that is not there.
//!
//! A place has the last write and the last reads of two different warps. Only allocations that the kernel stores
//! to are looked after, in pages made when first touched.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use super::shadow::{NEVER, Order, Stamp};
use crate::bytecode::{Code, Inst, Region, WORD};
use crate::memory::Storage;
use crate::memory::granules;

/// Places of a page.
const PAGE: usize = 1024;
/// Most pages of a launch (48 KiB each); what lies beyond is not looked after.
const MOST_PAGES: i64 = 1 << 15;
/// Blocks told apart in what they have published; more share places, which orders more than there is.
const MOST_BLOCKS: u64 = 1 << 20;

/// The last time there is.
const END: u32 = u32::MAX;

/// An access of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Thread, segment of its warp, and instruction.
    pub(crate) stamp: Stamp,
    /// Linear index of the block.
    pub(crate) block: u32,
    /// The launch's clock.
    time: u32,
}

impl Event {
    const NEVER: Event = Event {
        stamp: NEVER,
        block: u32::MAX,
        time: 0,
    };

    fn of_lane(self, lane: u32) -> Event {
        let stamp = self.stamp.of_lane(lane);
        Event { stamp, ..self }
    }

    fn same_warp(self, other: Event) -> bool {
        self.block == other.block && self.stamp.warp() == other.stamp.warp()
    }
}

/// What is known of one place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    write: Event,
    reads: [Event; 2],
}

impl Place {
    const EMPTY: Place = Place {
        write: Event::NEVER,
        reads: [Event::NEVER; 2],
    };
}

/// The access that another is not ordered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conflict {
    Write(Event),
    Read(Event),
}

/// Global memory of one launch.
#[derive(Debug)]
pub(crate) struct Ledger {
    sheets: RwLock<BTreeMap<u64, Arc<Sheet>>>,
    /// log2 of the bits of a place.
    granule: u32,
    clock: AtomicU64,
    /// For each block one more than the clock at its last event.
    published: Box<[AtomicU32]>,
    /// Stores go through pointers, so that any allocation may be written.
    all: bool,
    /// Pages that may still be made.
    room: AtomicI64,
}

/// The places of one allocation.
#[derive(Debug)]
pub(crate) struct Sheet {
    pages: Box<[OnceLock<Option<Page>>]>,
}

type Page = Mutex<Box<[Place]>>;

/// Whose access it is, as far as the lanes of a warp have it in common.
#[derive(Clone, Copy)]
pub(crate) struct Actor<'a> {
    ledger: &'a Ledger,
    order: &'a Order,
    event: Event,
    /// One more than the clock at the block's last event.
    acquired: u32,
}

impl Ledger {
    /// The ledger of a launch of `blocks` blocks; `params` are the allocations behind its parameters.
    pub(crate) fn new(code: &Code, blocks: u64, params: &[Option<(Arc<Storage>, u64)>]) -> Ledger {
        let ledger = Ledger {
            sheets: RwLock::default(),
            granule: code.finest(WORD, |r| matches!(r, Region::Param(_) | Region::Pointer)),
            clock: AtomicU64::new(0),
            published: (0..blocks.min(MOST_BLOCKS)).map(|_| AtomicU32::new(0)).collect(),
            all: stores(code).any(|region| region == Region::Pointer),
            room: AtomicI64::new(MOST_PAGES),
        };
        for region in stores(code) {
            if let Region::Param(p) = region
                && let Some(Some((storage, _))) = params.get(p as usize)
            {
                ledger.add(storage);
            }
        }
        ledger
    }

    fn add(&self, storage: &Storage) -> Arc<Sheet> {
        let places = ((storage.bytes * 8) >> self.granule) + 1;
        let mut sheets = self.sheets.write().unwrap_or_else(PoisonError::into_inner);
        let sheet = sheets.entry(storage.address).or_insert_with(|| {
            let pages = (0..places.div_ceil(PAGE)).map(|_| OnceLock::new());
            Arc::new(Sheet {
                pages: pages.collect(),
            })
        });
        sheet.clone()
    }

    /// The places of an allocation, if the kernel may store to it.
    pub(crate) fn sheet(&self, storage: &Storage) -> Option<Arc<Sheet>> {
        let sheets = self.sheets.read().unwrap_or_else(PoisonError::into_inner);
        let found = sheets.get(&storage.address).cloned();
        drop(sheets);
        found.or_else(|| self.all.then(|| self.add(storage)))
    }

    /// The places of `size` bytes at an offset.
    #[inline(always)]
    pub(crate) fn places(&self, offset: usize, size: u32) -> std::ops::Range<usize> {
        granules(self.granule, offset, size)
    }

    fn published(&self, block: u32) -> &AtomicU32 {
        &self.published[block as usize % self.published.len()]
    }

    /// A synchronizing event of `block`; its new `acquired`.
    pub(crate) fn synchronize(&self, block: u32) -> u32 {
        let now = time(self.clock.fetch_add(1, Ordering::AcqRel) + 1);
        self.published(block).fetch_max(now, Ordering::AcqRel);
        now
    }

    /// An access of warp `warp` of `block`, whose last event was `acquired`.
    #[inline]
    pub(crate) fn actor<'a>(
        &'a self,
        order: &'a Order,
        stamp: Stamp,
        block: u32,
        acquired: u32,
    ) -> Actor<'a> {
        let time = time(self.clock.load(Ordering::Acquire));
        Actor {
            ledger: self,
            order,
            event: Event { stamp, block, time },
            acquired,
        }
    }
}

/// The clock as events have it. At its end it stands still, and everything is ordered.
fn time(clock: u64) -> u32 {
    clock.min(END as u64) as u32
}

/// The regions that stores go to.
fn stores(code: &Code) -> impl Iterator<Item = Region> {
    code.insts.iter().filter_map(|inst| match inst {
        Inst::Store { access, .. } | Inst::StoreWide { access, .. } => {
            Some(code.accesses[*access as usize].region)
        }
        _ => None,
    })
}

impl Sheet {
    /// The page that holds a place, unless there is no room for more.
    fn page(&self, ledger: &Ledger, place: usize) -> Option<MutexGuard<'_, Box<[Place]>>> {
        let make = || {
            let room = ledger.room.fetch_sub(1, Ordering::Relaxed) > 0;
            room.then(|| Mutex::new(vec![Place::EMPTY; PAGE].into_boxed_slice()))
        };
        let page = self.pages.get(place / PAGE)?.get_or_init(make).as_ref()?;
        Some(page.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Does `step` with each place of `lanes` in turn. Stops at the first conflict and gives its lane.
    #[inline]
    pub(crate) fn each(
        &self,
        ledger: &Ledger,
        lanes: impl Iterator<Item = (u32, usize)>,
        mut step: impl FnMut(&mut Place, u32) -> Result<(), Conflict>,
    ) -> Result<(), (u32, Conflict)> {
        self.each_or_none(ledger, lanes, |place, lane| {
            place.map_or(Ok(()), |place| step(place, lane))
        })
    }

    /// The same, for what must be done where there was no room to look after the place, too.
    #[inline]
    pub(crate) fn each_or_none(
        &self,
        ledger: &Ledger,
        lanes: impl Iterator<Item = (u32, usize)>,
        mut step: impl FnMut(Option<&mut Place>, u32) -> Result<(), Conflict>,
    ) -> Result<(), (u32, Conflict)> {
        let mut current = usize::MAX;
        let mut page = None;
        for (lane, place) in lanes {
            if place / PAGE != current {
                // One lock at a time: two threads that held one and waited for the other's would never go on.
                drop(page.take());
                current = place / PAGE;
                page = self.page(ledger, place);
            }
            let place = page.as_mut().map(|page| &mut page[place % PAGE]);
            step(place, lane).map_err(|conflict| (lane, conflict))?;
        }
        Ok(())
    }
}

impl Actor<'_> {
    /// Whether what `event` did happened before what this does, or is of the same thread.
    #[inline(always)]
    fn ordered(&self, event: Event, me: Event) -> bool {
        if event.block == me.block {
            let seen = self.order.seen_by(me.stamp.warp(), event.stamp.warp());
            return event.stamp.segment() < seen || event.stamp.same_thread(me.stamp);
        }
        event.stamp == NEVER
            || me.time == END
            || event.time < self.acquired
                && event.time < self.ledger.published(event.block).load(Ordering::Acquire)
    }

    /// Lane `lane` reads. A plain read among atomics is none of this check's business: a loop of compare and swap
    /// starts with one.
    #[inline(always)]
    pub(crate) fn read(&self, place: &mut Place, lane: u32) -> Result<(), Conflict> {
        let me = self.event.of_lane(lane);
        let write = place.write;
        if !self.ordered(write, me) && !write.stamp.is_atomic() {
            return Err(Conflict::Write(write));
        }
        let last = place.reads[0];
        if last.same_warp(me) {
            place.reads[0] = Event {
                stamp: me.stamp.together_with(last.stamp),
                ..me
            };
        } else {
            place.reads = [me, last];
        }
        Ok(())
    }

    /// Lane `lane` writes; `same` says that the place holds the value already.
    #[inline(always)]
    pub(crate) fn write(&self, place: &mut Place, lane: u32, same: bool) -> Result<(), Conflict> {
        let me = self.event.of_lane(lane);
        if !same {
            if !self.ordered(place.write, me) {
                return Err(Conflict::Write(place.write));
            }
            if let Some(read) = place.reads.iter().find(|read| !self.ordered(**read, me)) {
                return Err(Conflict::Read(*read));
            }
        }
        place.write = me;
        Ok(())
    }

    /// Lane `lane` updates atomically.
    pub(crate) fn atomic(&self, place: &mut Place, lane: u32) -> Result<(), Conflict> {
        let me = self.event.of_lane(lane);
        let write = place.write;
        if !write.stamp.is_atomic() && !self.ordered(write, me) {
            return Err(Conflict::Write(write));
        }
        place.write = me;
        Ok(())
    }

    /// A loop waits for what the place holds: its writer may have written it to be waited for, so what the writer
    /// did before is ordered before what comes now. The writer, if it is of this block.
    pub(crate) fn poll(&self, place: &Place) -> Option<Stamp> {
        let write = place.write;
        if write.stamp == NEVER {
            return None;
        }
        if write.block == self.event.block {
            return Some(write.stamp);
        }
        self.ledger.synchronize(write.block);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> Ledger {
        Ledger::new(&Code::default(), 4, &[])
    }

    /// A lane 0 access of warp 0 of a block.
    fn actor<'a>(ledger: &'a Ledger, order: &'a Order, block: u32, acquired: u32, atomic: bool) -> Actor<'a> {
        ledger.actor(order, order.stamp(0, 5, atomic), block, acquired)
    }

    #[test]
    fn blocks_are_not_ordered_by_running_one_after_the_other() {
        let (ledger, order) = (ledger(), Order::new(true));
        let mut place = Place::EMPTY;
        let first = actor(&ledger, &order, 0, 0, false);
        let second = actor(&ledger, &order, 1, 0, false);
        assert_eq!(first.write(&mut place, 0, false), Ok(()));
        assert_eq!(first.read(&mut place, 0), Ok(()), "its own");
        assert!(
            matches!(first.read(&mut place, 1), Err(Conflict::Write(_))),
            "another lane's"
        );
        assert!(matches!(second.read(&mut place, 0), Err(Conflict::Write(e)) if e.block == 0));
        assert!(matches!(
            second.write(&mut place, 0, false),
            Err(Conflict::Write(_))
        ));
        assert_eq!(second.write(&mut place, 0, true), Ok(()), "the same value");
    }

    #[test]
    fn a_write_after_reads_of_others_is_a_conflict() {
        let (ledger, order) = (ledger(), Order::new(true));
        let mut place = Place::EMPTY;
        assert_eq!(actor(&ledger, &order, 1, 0, false).read(&mut place, 0), Ok(()));
        assert_eq!(actor(&ledger, &order, 2, 0, false).read(&mut place, 0), Ok(()));
        let third = actor(&ledger, &order, 2, 0, false);
        assert!(matches!(third.write(&mut place, 0, false), Err(Conflict::Read(e)) if e.block == 1));
    }

    #[test]
    fn atomics_carry_order_from_block_to_block() {
        let (ledger, order) = (ledger(), Order::new(true));
        let (mut data, mut counter) = (Place::EMPTY, Place::EMPTY);
        assert_eq!(
            actor(&ledger, &order, 0, 0, false).write(&mut data, 0, false),
            Ok(())
        );
        assert_eq!(actor(&ledger, &order, 0, 0, true).atomic(&mut counter, 0), Ok(()));
        let before = ledger.synchronize(0);
        assert_eq!(actor(&ledger, &order, 1, 0, true).atomic(&mut counter, 0), Ok(()));
        assert!(
            actor(&ledger, &order, 1, 0, false).read(&mut data, 0).is_err(),
            "not yet"
        );
        let acquired = ledger.synchronize(1);
        assert!(acquired > before);
        assert_eq!(
            actor(&ledger, &order, 1, acquired, false).read(&mut data, 0),
            Ok(())
        );
        assert_eq!(
            actor(&ledger, &order, 2, 0, false).read(&mut counter, 0),
            Ok(()),
            "a plain read"
        );
        assert!(
            actor(&ledger, &order, 2, 0, false)
                .write(&mut counter, 0, false)
                .is_err(),
            "a plain write among atomics"
        );
    }

    #[test]
    fn who_waits_for_a_flag_sees_what_its_writer_did() {
        let (ledger, order) = (ledger(), Order::new(true));
        let (mut data, mut flag) = (Place::EMPTY, Place::EMPTY);
        let producer = actor(&ledger, &order, 3, 0, false);
        assert_eq!(producer.write(&mut data, 0, false), Ok(()));
        assert_eq!(producer.write(&mut flag, 0, false), Ok(()));
        assert_eq!(
            actor(&ledger, &order, 0, 0, false).poll(&flag),
            None,
            "not of this block"
        );
        let acquired = ledger.synchronize(0);
        assert_eq!(
            actor(&ledger, &order, 0, acquired, false).read(&mut data, 0),
            Ok(())
        );
        assert!(actor(&ledger, &order, 1, 0, false).read(&mut data, 0).is_err());
    }

    #[test]
    fn room_is_bounded() {
        let ledger = ledger();
        ledger.room.store(1, Ordering::Relaxed);
        let sheet = Sheet {
            pages: (0..2).map(|_| OnceLock::new()).collect(),
        };
        assert!(sheet.page(&ledger, 3).is_some());
        assert!(sheet.page(&ledger, PAGE).is_none());
        assert!(sheet.page(&ledger, 4).is_some(), "the page there is");
    }
}
