//! The histories of a block's shared memory, place by place.

use std::ops::Range;

use super::Shared;
use super::global::{POLL, TELL};
use super::order::coarse::{Finding, Stamp};
use super::order::pages::Pages;
use super::order::{Kind, Order, Place, Strong};
use super::schedule::Draws;
use crate::alu::Lanes32;
use crate::bytecode::Access;
use crate::explore::Object;

/// The history of each place.
pub(super) enum Cells {
    /// Where block and warp barriers are the only order, or races are not checked.
    Coarse(Pages),
    Fine(Vec<Place>),
}

impl Cells {
    pub(super) fn new(fine: bool, places: usize) -> Cells {
        match fine {
            true => Cells::Fine(vec![Place::EMPTY; places]),
            false => Cells::Coarse(Pages::new(places)),
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Cells::Coarse(pages) => pages.clear(),
            Cells::Fine(places) => places.fill(Place::EMPTY),
        }
    }

    /// Lanes of a warp read, each its place. On an error, with the lane.
    #[inline(always)]
    pub(super) fn read_lanes(
        &mut self,
        order: &Order,
        (warp, pc): (usize, usize),
        (first, at): (usize, &Lanes32),
        mask: u32,
        lenient: bool,
    ) -> Result<(), (u32, Finding)> {
        match self {
            Cells::Coarse(pages) => pages.read_lanes(order, first, at, Stamp::new(order, warp, pc), mask),
            Cells::Fine(places) => {
                let mark = order.mark(warp, pc, Kind::Plain);
                for lane in (0..32u32).filter(|l| mask >> l & 1 != 0) {
                    let place = &mut places[first + at[lane as usize] as usize];
                    let written = place.is_written();
                    place
                        .read(order, mark.with_lanes(1 << lane), lane, lenient)
                        .map_err(|conflict| (lane, conflict.into()))?;
                    if !written {
                        return Err((lane, Finding::Uninitialized));
                    }
                }
                Ok(())
            }
        }
    }

    /// A lane writes a place.
    #[inline(always)]
    pub(super) fn write(
        &mut self,
        order: &Order,
        (warp, pc): (usize, usize),
        at: usize,
        lane: u32,
        same: bool,
    ) -> Result<(), Finding> {
        match self {
            Cells::Coarse(pages) => pages.write(order, at, Stamp::new(order, warp, pc), lane, same),
            Cells::Fine(places) => {
                let mark = order.mark(warp, pc, Kind::Plain).with_lanes(1 << lane);
                places[at].write(order, mark, lane, same).map_err(Finding::from)
            }
        }
    }
}

impl Shared {
    /// A lane of one of the block's warps reads places.
    pub(super) fn read_places(
        &mut self,
        warp: usize,
        pc: usize,
        lane: u32,
        places: Range<usize>,
        access: &Access,
    ) -> Result<(), Finding> {
        if access.poll {
            return self.strong_places(warp, pc, lane, places, POLL);
        }
        let Shared { cells, order, .. } = self;
        match cells {
            Cells::Coarse(pages) => {
                let stamp = Stamp::new(order, warp, pc);
                places
                    .into_iter()
                    .try_for_each(|at| pages.read(order, at, stamp, lane))
            }
            Cells::Fine(cells) => {
                let mark = order.mark(warp, pc, Kind::Plain).with_lanes(1 << lane);
                for place in &mut cells[places] {
                    let written = place.is_written();
                    place.read(order, mark, lane, access.swapped)?;
                    if !written {
                        return Err(Finding::Uninitialized);
                    }
                }
                Ok(())
            }
        }
    }

    /// A lane of one of the block's warps writes places.
    pub(super) fn write_places(
        &mut self,
        warp: usize,
        pc: usize,
        lane: u32,
        places: Range<usize>,
        access: &Access,
        same: bool,
    ) -> Result<(), Finding> {
        if access.polled {
            return self.strong_places(warp, pc, lane, places, Strong { same, ..TELL });
        }
        let Shared { cells, order, .. } = self;
        for at in places {
            cells.write(order, (warp, pc), at, lane, same)?;
        }
        Ok(())
    }

    /// A lane of one of the block's warps accesses places strongly.
    pub(super) fn strong_places(
        &mut self,
        warp: usize,
        pc: usize,
        lane: u32,
        places: Range<usize>,
        access: Strong,
    ) -> Result<(), Finding> {
        for place in places.clone() {
            self.touched_strongly(Object::Shared(self.order.block, place), access.writes);
        }
        let Shared { cells, order, .. } = self;
        strong(cells, order, warp, pc, lane, places, access)
    }

    /// The same for an element that other blocks of the cluster access too, whose bits are `now`: where the read misses the
    /// last write of another block, gives what it sees.
    pub(super) fn strong_element(
        &mut self,
        (warp, pc, lane): (usize, usize, u32),
        places: Range<usize>,
        access: Strong,
        now: u64,
        misses: bool,
    ) -> Result<Option<u64>, Finding> {
        for place in places.clone() {
            self.touched_strongly(Object::Shared(self.order.block, place), access.writes);
        }
        let Shared {
            cells, order, draws, ..
        } = self;
        strong_element(
            cells,
            (order, draws),
            (warp, pc, lane),
            places,
            access,
            now,
            misses,
        )
    }
}

/// A lane of a warp of the order's block accesses an element of the cluster's shared memory strongly. If it `misses`
/// writes, a read may miss the last write of another block ([`Place::missed`]), and gives what it sees instead of the bits that
/// are there `now`.
pub(super) fn strong_element(
    cells: &mut Cells,
    (order, draws): (&mut Order, &mut Draws),
    (warp, pc, lane): (usize, usize, u32),
    places: Range<usize>,
    access: Strong,
    now: u64,
    misses: bool,
) -> Result<Option<u64>, Finding> {
    let first = places.start;
    let mut before = None;
    if let (Cells::Fine(cells), true) = (&mut *cells, misses) {
        let place = &mut cells[first];
        if access.writes {
            let keeps = !access.same && place.is_written() && place.releases_nothing();
            before = keeps.then_some(now);
        } else {
            if let Some(before) = place.missed(order, warp, lane)
                && draws.misses()
            {
                return Ok(Some(before));
            }
            place.seen(order.block);
        }
    }
    strong(cells, order, warp, pc, lane, places, access)?;
    if let (Cells::Fine(cells), true) = (cells, misses)
        && access.writes
    {
        let mark = order.mark(warp, pc, Kind::Plain).with_lanes(1 << lane);
        cells[first].replaced(before, mark);
    }
    Ok(None)
}

/// A lane of a warp of the order's block accesses places, which may be another block's, strongly.
pub(super) fn strong(
    cells: &mut Cells,
    order: &mut Order,
    warp: usize,
    pc: usize,
    lane: u32,
    places: Range<usize>,
    access: Strong,
) -> Result<(), Finding> {
    match cells {
        Cells::Coarse(pages) => {
            for at in places {
                if access.reads && !pages.is_written(at) {
                    return Err(Finding::Uninitialized);
                }
                if access.writes {
                    pages.touch(at);
                }
            }
        }
        Cells::Fine(cells) => {
            let mark = order.mark(warp, pc, Kind::Plain).with_lanes(1 << lane);
            for place in &mut cells[places] {
                let written = place.is_written();
                place.strong(order, mark, lane, access)?;
                if access.reads && !written {
                    return Err(Finding::Uninitialized);
                }
            }
        }
    }
    Ok(())
}

/// A lane of a warp of the order's block reads or writes places of another block's shared memory.
pub(super) fn plain(
    cells: &mut Cells,
    order: &Order,
    warp: usize,
    pc: usize,
    lane: u32,
    places: Range<usize>,
    written: Option<bool>,
) -> Result<(), Finding> {
    match cells {
        Cells::Coarse(pages) => {
            for at in places {
                match written {
                    Some(_) => pages.touch(at),
                    None if !pages.is_written(at) => return Err(Finding::Uninitialized),
                    None => {}
                }
            }
        }
        Cells::Fine(cells) => {
            let mark = order.mark(warp, pc, Kind::Plain).with_lanes(1 << lane);
            for place in &mut cells[places] {
                match written {
                    Some(same) => place.write(order, mark, lane, same)?,
                    None => {
                        let written = place.is_written();
                        place.read(order, mark, lane, false)?;
                        if !written {
                            return Err(Finding::Uninitialized);
                        }
                    }
                }
            }
        }
    }
    Ok(())
}
