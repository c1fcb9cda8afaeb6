//! The histories of places in global memory, for one launch.
//!
//! Only allocations that the kernel may store to are tracked, in pages allocated when first accessed. A page is locked
//! while its places are checked, since blocks run in parallel; an atomic is performed under that lock, so that the
//! value it reads and the order it acquires belong to the same write.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use super::order::{Conflict, Place};
use crate::bytecode::{Code, Inst, Region, WORD};
use crate::memory::{Prior, READ, Storage, WRITTEN, granules};

/// Places of a page.
const PAGE: usize = 1024;
/// Most pages of a launch (48 KiB each); places beyond are not tracked.
const MAX_PAGES: i64 = 1 << 15;
/// The allocation behind a pointer argument, with the byte offset into it.
pub(crate) type Behind = Option<(Arc<Storage>, u64)>;

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
    /// Whether pages keep what their memory held before the launch.
    keeps: bool,
}

/// The places of one allocation.
#[derive(Debug)]
pub(crate) struct Sheet {
    storage: Arc<Storage>,
    pages: Box<[OnceLock<Option<Page>>]>,
}

#[derive(Debug)]
struct Page {
    places: Mutex<Box<[Place]>>,
    /// The words of the memory when the page was first accessed, so before any change of it.
    before: Box<[u32]>,
}

impl Ledger {
    /// The ledger of a launch; `devices` are the allocations behind its parameters, by rank. With `keeps` the memory can be restored.
    pub(crate) fn new(code: &Code, devices: &[&[Behind]], all: bool, keeps: bool) -> Ledger {
        let ledger = Ledger {
            sheets: RwLock::default(),
            granule: code.finest(WORD, |r| matches!(r, Region::Param(_) | Region::Pointer)),
            all: all
                || code.writes_anywhere
                || code.accesses.iter().any(|access| access.window)
                || stores(code).any(|region| region == Region::Pointer),
            room: AtomicI64::new(MAX_PAGES),
            keeps,
        };
        for region in stores(code) {
            let Region::Param(p) = region else { continue };
            let of_devices = devices
                .iter()
                .filter_map(|device| device.get(p as usize)?.as_ref());
            for (storage, _) in of_devices {
                ledger.add(storage);
            }
        }
        ledger
    }

    fn add(&self, storage: &Arc<Storage>) -> Arc<Sheet> {
        let places = ((storage.bytes * 8) >> self.granule) + 1;
        let mut sheets = self.sheets.write().unwrap_or_else(PoisonError::into_inner);
        let sheet = sheets.entry(storage.address).or_insert_with(|| {
            let pages = (0..places.div_ceil(PAGE)).map(|_| OnceLock::new());
            Arc::new(Sheet {
                storage: storage.clone(),
                pages: pages.collect(),
            })
        });
        sheet.clone()
    }

    /// The histories of an allocation, if the kernel may store to it.
    pub(crate) fn sheet(&self, storage: &Arc<Storage>) -> Option<Arc<Sheet>> {
        let sheets = self.sheets.read().unwrap_or_else(PoisonError::into_inner);
        let found = sheets.get(&storage.address).cloned();
        drop(sheets);
        found.or_else(|| self.all.then(|| self.add(storage)))
    }

    /// Puts the memory back that the launch has changed. False where some of it was not tracked, and has not been kept.
    pub(crate) fn restore(&self) -> bool {
        if !self.keeps || self.room.load(Ordering::Relaxed) < 0 {
            return false;
        }
        let sheets = self.sheets.read().unwrap_or_else(PoisonError::into_inner);
        for sheet in sheets.values() {
            for (number, page) in sheet.pages.iter().enumerate() {
                let Some(Some(page)) = page.get() else { continue };
                let words = &sheet.storage.words[self.words(&sheet.storage, number)];
                for (word, before) in words.iter().zip(&page.before) {
                    word.store(*before, Ordering::Relaxed);
                }
            }
        }
        true
    }

    /// The words of an allocation that a page is about.
    fn words(&self, storage: &Storage, page: usize) -> std::ops::Range<usize> {
        let first = ((page * PAGE) << self.granule) / 32;
        let end = first + (PAGE << self.granule) / 32;
        first.min(storage.words.len())..end.min(storage.words.len())
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
                .places
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
            let words = match ledger.keeps {
                true => &self.storage.words[ledger.words(&self.storage, place / PAGE)],
                false => &[],
            };
            room.then(|| Page {
                places: Mutex::new(vec![Place::EMPTY; PAGE].into_boxed_slice()),
                before: words.iter().map(|word| word.load(Ordering::Relaxed)).collect(),
            })
        };
        let page = self.pages.get(place / PAGE)?.get_or_init(make).as_ref()?;
        Some(page.places.lock().unwrap_or_else(PoisonError::into_inner))
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
        let ledger = Ledger::new(&Code::default(), &[], false, true);
        ledger.room.store(1, Ordering::Relaxed);
        let memory = crate::memory::Memory::new();
        let allocation = memory.alloc(4 * PAGE);
        let storage = memory.find(allocation.address()).expect("it is alive");
        let sheet = Sheet {
            storage,
            pages: (0..2).map(|_| OnceLock::new()).collect(),
        };
        assert!(sheet.page(&ledger, 3).is_some());
        assert!(sheet.page(&ledger, PAGE).is_none());
        assert!(sheet.page(&ledger, 4).is_some(), "the page there is");
    }
}
