//! Which places a grid has used, for the grid that may start before it has ended.

use std::collections::BTreeMap;

use super::{Storage, granules};

/// A place that a grid has written, or read.
pub(crate) const WRITTEN: u8 = 1;
pub(crate) const READ: u8 = 2;

/// The places that a grid has used.
#[derive(Debug, Default)]
pub(crate) struct Prior {
    /// log2 of the bits of a place.
    pub(crate) granule: u32,
    /// Pages of flags ([`WRITTEN`], [`READ`]) for each place, by the address of the allocation.
    pub(crate) used: BTreeMap<u64, Vec<Option<Box<[u8]>>>>,
    /// Places of a page.
    pub(crate) page: usize,
    /// The contents of allocations before the grid.
    pub(crate) before: BTreeMap<u64, Storage>,
}

impl Prior {
    /// Whether the grid has used an allocation.
    pub(crate) fn knows(&self, address: u64) -> bool {
        self.used.contains_key(&address)
    }

    /// The use of the grid that an access conflicts with.
    pub(crate) fn conflict(&self, storage: &Storage, at: usize, bits: u32, writes: bool) -> Option<u8> {
        let pages = self.used.get(&storage.address)?;
        let how = granules(self.granule, at, bits)
            .filter_map(|place| pages.get(place / self.page)?.as_ref()?.get(place % self.page))
            .fold(0, |all, how| all | how);
        match how {
            how if how & WRITTEN != 0 => Some(WRITTEN),
            how if writes && how & READ != 0 => Some(READ),
            _ => None,
        }
    }
}
