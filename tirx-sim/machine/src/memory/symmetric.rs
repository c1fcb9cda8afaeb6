//! Memory that every device of a world has: a part on each, with peer addresses and a multicast window.

use std::sync::{Arc, PoisonError};

use super::{ALIGN, Allocation, GUARD, Memory, Storage};

/// An allocation with a part of one size on each device of a world, as NVSHMEM's symmetric heap has them. Clones share it.
///
/// Any device may access any part. The window is one address for all parts, for `multimem` instructions.
#[derive(Clone, Debug)]
pub struct Symmetric {
    parts: Vec<Allocation>,
    window: u64,
}

/// The parts of a symmetric allocation as one of them knows them.
pub(crate) struct Siblings {
    /// The address of each part, by rank.
    parts: Vec<u64>,
}

impl Symmetric {
    /// The part of a rank.
    ///
    /// # Panics
    /// If the world has no such rank, as indexing does.
    pub fn part(&self, rank: u32) -> &Allocation {
        &self.parts[rank as usize]
    }

    /// The parts by rank.
    pub fn parts(&self) -> &[Allocation] {
        &self.parts
    }

    /// The address of the multicast window.
    pub fn window(&self) -> u64 {
        self.window
    }
}

impl Memory {
    /// A new allocation of `bytes` zero bytes that belongs to the device of a rank: no other device may access it.
    pub fn alloc_on(&self, rank: u32, bytes: usize) -> Allocation {
        let allocation = self.alloc(bytes);
        allocation.give_to(rank);
        allocation
    }

    /// The rank that alone may access an address, if there is one.
    pub fn owner(&self, address: u64) -> Option<u32> {
        self.find(address)?.owner.get().copied()
    }

    /// The living allocation that holds an address.
    pub fn allocation_at(&self, address: u64) -> Option<Allocation> {
        self.find(address).map(Allocation)
    }

    /// New memory of `bytes` zero bytes on each of `ranks` devices.
    pub fn alloc_symmetric(&self, ranks: u32, bytes: usize) -> Symmetric {
        let parts: Vec<Allocation> = (0..ranks).map(|_| self.alloc(bytes)).collect();
        let siblings = Arc::new(Siblings {
            parts: parts.iter().map(Allocation::address).collect(),
        });
        let mut registry = self.0.registry.write().unwrap_or_else(PoisonError::into_inner);
        let window = registry.next;
        registry.next = (window + bytes as u64 + GUARD).next_multiple_of(ALIGN);
        for part in &parts {
            let _first = part.0.siblings.set((siblings.clone(), window));
        }
        if let Some(first) = parts.first() {
            registry.windows.insert(window, Arc::downgrade(&first.0));
        }
        Symmetric { parts, window }
    }

    /// The address on the device of a rank that stands for `address`, which is in some part of a symmetric allocation.
    pub(crate) fn on_rank(&self, address: u64, rank: u32) -> Option<u64> {
        let storage = self.find(address)?;
        let (siblings, _) = storage.siblings.get()?;
        let part = siblings.parts.get(rank as usize)?;
        Some(part + (address - storage.address))
    }

    /// The address in the multicast window that stands for `address`.
    pub(crate) fn in_window(&self, address: u64) -> Option<u64> {
        let storage = self.find(address)?;
        let (_, window) = storage.siblings.get()?;
        Some(window + (address - storage.address))
    }

    /// The parts that an address of a window stands for, by rank, with the byte in each; none for another address.
    pub(crate) fn behind_window(&self, address: u64) -> Option<(Vec<Arc<Storage>>, u64)> {
        let registry = self.0.registry.read().unwrap_or_else(PoisonError::into_inner);
        let (window, first) = registry.windows.range(..=address).next_back()?;
        let first = first.upgrade()?;
        let byte = address - window;
        if byte > first.bytes as u64 {
            return None;
        }
        let (siblings, _) = first.siblings.get()?;
        let parts = siblings
            .parts
            .iter()
            .map(|part| registry.by_address.get(part)?.upgrade());
        Some((parts.collect::<Option<_>>()?, byte))
    }
}

impl Allocation {
    /// From now on only the device of a rank may access it. An allocation has one owner: later calls have no effect.
    pub fn give_to(&self, rank: u32) {
        let _first = self.0.owner.set(rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_from_part_to_part_and_through_the_window() {
        let memory = Memory::new();
        let plain = memory.alloc(64);
        let all = memory.alloc_symmetric(3, 64);
        let own = all.part(1).address() + 12;
        assert_eq!(memory.on_rank(own, 2), Some(all.part(2).address() + 12));
        assert_eq!(memory.on_rank(own, 3), None);
        assert_eq!(memory.on_rank(plain.address(), 0), None);
        assert_eq!(memory.in_window(own), Some(all.window() + 12));
        let (parts, byte) = memory
            .behind_window(all.window() + 12)
            .expect("it is in the window");
        assert_eq!((parts.len(), byte), (3, 12));
        assert!(
            memory.find(all.window()).is_none(),
            "a window is no memory of a device"
        );
        assert!(memory.behind_window(own).is_none() && memory.behind_window(plain.address()).is_none());
        assert!(memory.behind_window(all.window() + 65).is_none());
        let window = all.window();
        drop(all);
        drop(parts);
        assert!(memory.behind_window(window).is_none());
    }
}
