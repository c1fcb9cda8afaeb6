//! Which reads of shared memory need no check of their cells?
//!
//! Most kernels write shared memory, meet at a block barrier, and then read it many times. A page of 64 places that
//! nobody has written since the last block barrier is *quiet*: whatever was written there is ordered before each read,
//! and a bit for each place says whether it was written at all. A read of quiet pages goes to a log. The next block
//! barrier drops the log, since reads before it conflict with nothing later; a write to a page in the log first enters
//! the log into the cells ([`coarse`]), which then hold what they would have held without the log.

use super::Order;
use super::coarse::{self, Cell, Finding, Stamp};
use crate::alu::{FULL, LANES, Lanes32};

/// log2 of the places of a page.
const PAGE: usize = 6;
/// Reads in the log after which it is entered into the cells anyway.
const MOST: usize = 2048;
/// log2 of the places that the log can name.
const NAMED: u32 = u16::BITS;

/// A read by lanes of a warp.
#[derive(Debug)]
struct Logged {
    stamp: Stamp,
    mask: u32,
    places: [u16; LANES],
}

/// The histories of a block's shared memory.
#[derive(Debug)]
pub(crate) struct Pages {
    cells: Vec<Cell>,
    /// One bit per place that has been written, one word per page.
    written: Vec<u64>,
    /// One bit per page: `full`, all of it has been written; `loud`, some of it has been written since the last block
    /// barrier; `logged`, it is in the log.
    full: Vec<u64>,
    loud: Vec<u64>,
    logged: Vec<u64>,
    log: Vec<Logged>,
    /// The epoch of `loud`, `logged` and `log`.
    epoch: u32,
}

impl Pages {
    pub(crate) fn new(places: usize) -> Pages {
        let pages = (places >> PAGE) + 1;
        let bits = || vec![0; (pages >> 6) + 1];
        Pages {
            cells: vec![Cell::EMPTY; places],
            written: vec![0; pages],
            full: bits(),
            loud: bits(),
            logged: bits(),
            log: Vec::new(),
            epoch: 0,
        }
    }

    /// A new block starts.
    pub(crate) fn clear(&mut self) {
        self.cells.fill(Cell::EMPTY);
        self.written.fill(0);
        self.full.fill(0);
        self.forget();
        self.epoch = 0;
    }

    fn forget(&mut self) {
        self.loud.fill(0);
        self.logged.fill(0);
        self.log.clear();
    }

    /// Follows the block's barriers.
    #[inline(always)]
    fn follow(&mut self, order: &Order) {
        if self.epoch != order.epoch() {
            self.epoch = order.epoch();
            self.forget();
        }
    }

    #[inline(always)]
    fn is_set(bits: &[u64], page: usize) -> bool {
        bits[page >> 6] >> (page & 63) & 1 != 0
    }

    /// Whether some page of `low..=high` is set.
    #[inline(always)]
    fn any(bits: &[u64], low: usize, high: usize) -> bool {
        if low >> 6 == high >> 6 {
            let upto = u64::MAX >> (63 - (high & 63));
            return bits[low >> 6] & upto & u64::MAX << (low & 63) != 0;
        }
        (low..=high).any(|page| Pages::is_set(bits, page))
    }

    /// Whether all pages of `low..=high` are.
    #[inline(always)]
    fn all(bits: &[u64], low: usize, high: usize) -> bool {
        if low >> 6 == high >> 6 {
            let these = u64::MAX >> (63 - (high & 63)) & u64::MAX << (low & 63);
            return bits[low >> 6] & these == these;
        }
        (low..=high).all(|page| Pages::is_set(bits, page))
    }

    /// Whether a place has been written.
    #[inline(always)]
    pub(crate) fn is_written(&self, at: usize) -> bool {
        self.written[at >> PAGE] >> (at & 63) & 1 != 0
    }

    #[inline(always)]
    fn note_written(&mut self, at: usize) {
        let page = at >> PAGE;
        self.written[page] |= 1 << (at & 63);
        if self.written[page] == u64::MAX {
            self.full[page >> 6] |= 1 << (page & 63);
        }
    }

    /// Written, and nothing more: where races are not checked.
    pub(crate) fn touch(&mut self, at: usize) {
        self.cells[at].touch();
        self.note_written(at);
    }

    /// Enters the log into the cells.
    #[cold]
    fn enter(&mut self) {
        let epoch = self.epoch;
        for read in std::mem::take(&mut self.log) {
            for (lane, place) in read.places.iter().enumerate() {
                if read.mask >> lane & 1 != 0 {
                    coarse::record_read(&mut self.cells[*place as usize], read.stamp, lane as u32, epoch);
                }
            }
        }
        self.logged.fill(0);
    }

    /// All lanes of `mask` read, each its place from `first` on. On an error, with the lane.
    #[inline(always)]
    pub(crate) fn read_lanes(
        &mut self,
        order: &Order,
        first: usize,
        places: &Lanes32,
        stamp: Stamp,
        mask: u32,
    ) -> Result<(), (u32, Finding)> {
        self.follow(order);
        // Lanes that do not read take the place of one that does.
        let mut at = *places;
        if mask != FULL {
            let other = places[mask.trailing_zeros() as usize % LANES];
            for (lane, at) in at.iter_mut().enumerate() {
                *at = if mask >> lane & 1 != 0 { *at } else { other };
            }
        }
        // SSE2 has the least and the largest of 16-bit numbers, not of 32-bit ones.
        let mut named = [0; LANES];
        let mut beyond = 0;
        for (named, at) in named.iter_mut().zip(&at) {
            let place = (first as u32).wrapping_add(*at);
            *named = place as u16;
            beyond |= place;
        }
        let (mut least, mut most) = ([u16::MAX; 8], [0; 8]);
        for part in named.chunks_exact(8) {
            for i in 0..8 {
                least[i] = least[i].min(part[i]);
                most[i] = most[i].max(part[i]);
            }
        }
        for half in [4, 2, 1] {
            for i in 0..half {
                least[i] = least[i].min(least[i + half]);
                most[i] = most[i].max(most[i + half]);
            }
        }
        let (low, high) = (least[0], most[0]);
        let mut pages = (usize::from(low) >> PAGE, usize::from(high) >> PAGE);
        if beyond >> NAMED != 0 {
            let places = || at.iter().map(|at| first + *at as usize);
            pages = (
                places().min().unwrap_or(0) >> PAGE,
                places().max().unwrap_or(0) >> PAGE,
            );
        }
        if beyond >> NAMED != 0 || Pages::any(&self.loud, pages.0, pages.1) {
            if Pages::any(&self.logged, pages.0, pages.1) {
                self.enter();
            }
            return coarse::read_lanes(order, &mut self.cells[first..], places, stamp, mask);
        }
        // Rows of two operands meet in few places: where lanes read the first and the last place alone, these are looked up.
        let two = || {
            let mut others = 0;
            for place in &named {
                others |= u16::from(*place != low) & u16::from(*place != high);
            }
            others == 0 && self.is_written(low.into()) && self.is_written(high.into())
        };
        if !Pages::all(&self.full, pages.0, pages.1) && !two() {
            let missing =
                |lane: &u32| mask >> lane & 1 != 0 && !self.is_written(first + at[*lane as usize] as usize);
            if let Some(lane) = (0..LANES as u32).find(missing) {
                if order.check {
                    self.note(&named, stamp, mask, pages);
                }
                return Err((lane, Finding::Uninitialized));
            }
        }
        if order.check {
            self.note(&named, stamp, mask, pages);
        }
        Ok(())
    }

    #[inline(always)]
    fn note(&mut self, places: &[u16; LANES], stamp: Stamp, mask: u32, (low, high): (usize, usize)) {
        if self.log.len() >= MOST {
            self.enter();
        }
        self.log.push(Logged {
            stamp,
            mask,
            places: *places,
        });
        for page in low..=high {
            self.logged[page >> 6] |= 1 << (page & 63);
        }
    }

    /// An access to a single place comes after the log.
    #[inline(always)]
    fn settle(&mut self, order: &Order, at: usize) {
        self.follow(order);
        if Pages::is_set(&self.logged, at >> PAGE) {
            self.enter();
        }
    }

    /// Lane `lane` reads a place.
    #[inline(always)]
    pub(crate) fn read(&mut self, order: &Order, at: usize, stamp: Stamp, lane: u32) -> Result<(), Finding> {
        self.settle(order, at);
        coarse::read(order, &mut self.cells[at], stamp, lane)
    }

    /// Lane `lane` writes a place; `same` says that it holds the value already.
    #[inline(always)]
    pub(crate) fn write(
        &mut self,
        order: &Order,
        at: usize,
        stamp: Stamp,
        lane: u32,
        same: bool,
    ) -> Result<(), Finding> {
        self.settle(order, at);
        let page = at >> PAGE;
        self.loud[page >> 6] |= 1 << (page & 63);
        coarse::write(order, &mut self.cells[at], stamp, lane, same)?;
        self.note_written(at);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Conflict;
    use super::*;

    const ALL: u32 = u32::MAX;

    /// A block of two warps.
    fn order() -> Order {
        Order::new(true, false, &[ALL, ALL], 1)
    }

    fn write(
        order: &Order,
        pages: &mut Pages,
        warp: usize,
        places: std::ops::Range<usize>,
    ) -> Result<(), Finding> {
        for at in places {
            pages.write(order, at, Stamp::new(order, warp, 7), at as u32 % 32, false)?;
        }
        Ok(())
    }

    fn read(
        order: &Order,
        pages: &mut Pages,
        warp: usize,
        first: u32,
        mask: u32,
    ) -> Result<(), (u32, Finding)> {
        let places = std::array::from_fn(|lane| first + lane as u32);
        pages.read_lanes(order, 0, &places, Stamp::new(order, warp, 9), mask)
    }

    #[test]
    fn reads_in_the_log_are_found_by_the_next_write() {
        let (mut order, mut pages) = (order(), Pages::new(256));
        write(&order, &mut pages, 0, 0..128).unwrap();
        assert!(matches!(
            read(&order, &mut pages, 1, 0, ALL),
            Err((0, Finding::Conflict(Conflict::Write(_))))
        ));
        order.barrier();
        assert_eq!(read(&order, &mut pages, 1, 32, ALL), Ok(()));
        assert_eq!(pages.log.len(), 1, "the pages are quiet");
        // Another page: nobody has read it.
        assert_eq!(write(&order, &mut pages, 0, 64..65), Ok(()));
        assert_eq!(pages.log.len(), 1);
        assert!(matches!(
            write(&order, &mut pages, 0, 40..41),
            Err(Finding::Conflict(Conflict::Read(m))) if m.warp() == 1
        ));
        order.barrier();
        assert_eq!(write(&order, &mut pages, 0, 40..41), Ok(()));
    }

    #[test]
    fn lanes_of_one_warp_are_in_each_others_way() {
        let (mut order, mut pages) = (order(), Pages::new(128));
        write(&order, &mut pages, 0, 0..64).unwrap();
        order.barrier();
        assert_eq!(read(&order, &mut pages, 0, 0, 0xff), Ok(()));
        assert_eq!(
            write(&order, &mut pages, 0, 3..4),
            Ok(()),
            "lane 3 alone has read it"
        );
        assert_eq!(
            write(&order, &mut pages, 0, 40..41),
            Ok(()),
            "lane 8 has not read"
        );
        let stamp = Stamp::new(&order, 0, 11);
        assert!(pages.write(&order, 5, stamp, 4, false).is_err(), "lane 5 has");
        order.warp_sync(0);
        let stamp = Stamp::new(&order, 0, 11);
        assert_eq!(pages.write(&order, 5, stamp, 4, false), Ok(()));
    }

    #[test]
    fn places_that_nobody_has_written_are_told() {
        let (mut order, mut pages) = (order(), Pages::new(128));
        write(&order, &mut pages, 0, 0..40).unwrap();
        order.barrier();
        assert_eq!(read(&order, &mut pages, 0, 8, ALL), Ok(()));
        assert_eq!(
            read(&order, &mut pages, 0, 20, ALL),
            Err((20, Finding::Uninitialized))
        );
        assert_eq!(
            read(&order, &mut pages, 0, 20, 0xffff),
            Ok(()),
            "those lanes do not read"
        );
    }
}
