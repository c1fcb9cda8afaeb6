//! The histories of places in global memory, for one launch.
//!
//! Only allocations that the kernel may store to are tracked, in pages allocated when first accessed. A page is locked
//! while its places are checked, since blocks run in parallel; an atomic is performed under that lock, so that the
//! value it reads and the order it acquires belong to the same write.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use super::order::{Conflict, Place};
use super::prior::{Prior, READ, WRITTEN};
use crate::bytecode::{Code, Inst, Region, WORD};
use crate::memory::Storage;
use crate::memory::granules;

/// Places of a page.
const PAGE: usize = 1024;
/// Most pages of a launch (48 KiB each); places beyond are not tracked.
const MOST_PAGES: i64 = 1 << 15;
/// Global memory of one launch.
#[derive(Debug)]
pub(crate) struct Ledger {
    sheets: RwLock<BTreeMap<u64, Arc<Sheet>>>,
    /// log2 of the bits of a place.
    granule: u32,
    /// Stores go through pointers, so that any allocation may be written.
    all: bool,
    /// Pages that may still be allocated.
    room: AtomicI64,
}

/// The places of one allocation.
#[derive(Debug)]
pub(crate) struct Sheet {
    pages: Box<[OnceLock<Option<Page>>]>,
}

type Page = Mutex<Box<[Place]>>;

impl Ledger {
    /// The ledger of a launch; `params` are the allocations behind its parameters.
    pub(crate) fn new(code: &Code, params: &[Option<(Arc<Storage>, u64)>], all: bool) -> Ledger {
        let ledger = Ledger {
            sheets: RwLock::default(),
            granule: code.finest(WORD, |r| matches!(r, Region::Param(_) | Region::Pointer)),
            all: all || code.writes_anywhere || stores(code).any(|region| region == Region::Pointer),
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

    /// The histories of an allocation, if the kernel may store to it.
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
}

impl Ledger {
    /// What the launch has used of memory, for the one after it.
    pub(crate) fn into_prior(self) -> Prior {
        let how = |place: &Place| {
            let written = if place.is_written() { WRITTEN } else { 0 };
            written | if place.is_read() { READ } else { 0 }
        };
        let page = |page: &OnceLock<Option<Page>>| {
            let places = page
                .get()?
                .as_ref()?
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            Some(places.iter().map(how).collect())
        };
        let sheets = self.sheets.into_inner().unwrap_or_else(PoisonError::into_inner);
        let used = sheets.into_iter();
        Prior {
            granule: self.granule,
            used: used
                .map(|(address, sheet)| (address, sheet.pages.iter().map(page).collect()))
                .collect(),
            page: PAGE,
            before: BTreeMap::new(),
        }
    }
}

/// The regions that stores go to.
fn stores(code: &Code) -> impl Iterator<Item = Region> {
    code.insts.iter().filter_map(|inst| match inst {
        Inst::Store { access, .. } | Inst::StoreWide { access, .. } => {
            Some(code.accesses[*access as usize].region)
        }
        Inst::Atomic { id } => {
            let access = code.atomics[*id as usize].access;
            Some(code.accesses[access as usize].region)
        }
        _ => None,
    })
}

impl Sheet {
    /// The page that holds a place, unless the limit of pages is reached.
    fn page(&self, ledger: &Ledger, place: usize) -> Option<MutexGuard<'_, Box<[Place]>>> {
        let make = || {
            let room = ledger.room.fetch_sub(1, Ordering::Relaxed) > 0;
            room.then(|| Mutex::new(vec![Place::EMPTY; PAGE].into_boxed_slice()))
        };
        let page = self.pages.get(place / PAGE)?.get_or_init(make).as_ref()?;
        Some(page.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Applies `step` to each place of `lanes` in turn. Stops at the first conflict and gives its lane.
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

    /// The same, for work that must also be done where places are not tracked.
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
                // One lock at a time: two threads that each held one and waited for the other's would deadlock.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_bounded() {
        let ledger = Ledger::new(&Code::default(), &[], false);
        ledger.room.store(1, Ordering::Relaxed);
        let sheet = Sheet {
            pages: (0..2).map(|_| OnceLock::new()).collect(),
        };
        assert!(sheet.page(&ledger, 3).is_some());
        assert!(sheet.page(&ledger, PAGE).is_none());
        assert!(sheet.page(&ledger, 4).is_some(), "the page there is");
    }
}
