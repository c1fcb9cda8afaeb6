//! Simulated global memory: allocations by address.
//!
//! Storage is a slice of atomic 32-bit words, so blocks of a grid may run in parallel and race on it as they do
//! on a GPU without undefined behaviour in the simulator.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

mod prior;
mod symmetric;

pub(crate) use prior::{Prior, READ, WRITTEN};
pub use symmetric::Symmetric;

/// The first address handed out. Low addresses are never valid, so that small integers are no pointers.
const FIRST_ADDRESS: u64 = 0x0000_7000_0000_0000;
/// Gap between allocations: an access just past one never reaches the next.
const GUARD: u64 = 256;
/// Alignment of every allocation, that of `cudaMalloc`.
const ALIGN: u64 = 256;
/// Number of locks for 64-bit atomics.
const LOCKS: usize = 64;

#[derive(Default)]
struct Registry {
    next: u64,
    by_address: BTreeMap<u64, Weak<Storage>>,
    /// The first part of a symmetric allocation, by the address of its multicast window.
    windows: BTreeMap<u64, Weak<Storage>>,
}

struct Inner {
    registry: RwLock<Registry>,
    /// 64-bit atomics touch two words; the lock of the address makes them atomic.
    locks: Vec<Mutex<()>>,
    /// What the last grid has used, until the host has waited for it.
    prior: Mutex<Option<Arc<Prior>>>,
}

/// Simulated device memory. Clones share it.
///
/// ```
/// # use tirx_sim_machine as tirx_sim;
/// let memory = tirx_sim::Memory::new();
/// let buffer = memory.alloc(1024);
/// buffer.write(0, &1.5f32.to_le_bytes());
/// let mut bytes = [0; 4];
/// buffer.read(0, &mut bytes);
/// assert_eq!(f32::from_le_bytes(bytes), 1.5);
/// ```
#[derive(Clone)]
pub struct Memory(Arc<Inner>);

impl Default for Memory {
    fn default() -> Memory {
        Memory::new()
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let registry = self.0.registry.read().unwrap_or_else(PoisonError::into_inner);
        write!(f, "Memory({} allocations)", registry.by_address.len())
    }
}

impl Memory {
    /// Empty memory.
    pub fn new() -> Memory {
        Memory(Arc::new(Inner {
            registry: RwLock::new(Registry {
                next: FIRST_ADDRESS,
                by_address: BTreeMap::new(),
                windows: BTreeMap::new(),
            }),
            locks: (0..LOCKS).map(|_| Mutex::new(())).collect(),
            prior: Mutex::new(None),
        }))
    }

    /// A new allocation of `bytes` zero bytes. Without memory for it the process ends, as with a `Vec`.
    pub fn alloc(&self, bytes: usize) -> Allocation {
        self.place(bytes, (0..words(bytes)).map(|_| AtomicU32::new(0)).collect())
    }

    /// A new allocation of `bytes` zero bytes; `None` where this machine does not have that much memory.
    pub fn try_alloc(&self, bytes: usize) -> Option<Allocation> {
        let mut zeros = Vec::new();
        zeros.try_reserve_exact(words(bytes)).ok()?;
        zeros.resize_with(words(bytes), || AtomicU32::new(0));
        Some(self.place(bytes, zeros.into_boxed_slice()))
    }

    fn place(&self, bytes: usize, words: Box<[AtomicU32]>) -> Allocation {
        let mut registry = self.0.registry.write().unwrap_or_else(PoisonError::into_inner);
        let address = registry.next;
        registry.next = (address + bytes as u64 + GUARD).next_multiple_of(ALIGN);
        let storage = Arc::new(Storage {
            address,
            bytes,
            words,
            owner: OnceLock::new(),
            siblings: OnceLock::new(),
            memory: Arc::downgrade(&self.0),
        });
        registry.by_address.insert(address, Arc::downgrade(&storage));
        Allocation(storage)
    }

    /// The living allocation that holds `address` (or ends there).
    pub(crate) fn find(&self, address: u64) -> Option<Arc<Storage>> {
        let registry = self.0.registry.read().unwrap_or_else(PoisonError::into_inner);
        let (start, storage) = registry.by_address.range(..=address).next_back()?;
        let storage = storage.upgrade()?;
        (address - start <= storage.bytes as u64).then_some(storage)
    }

    /// The host waits for what has been launched: the next grid starts with nothing under way.
    pub fn synchronize(&self) {
        self.0.prior().take();
    }

    pub(crate) fn prior(&self) -> Option<Arc<Prior>> {
        self.0.prior().clone()
    }

    /// A grid has ended.
    pub(crate) fn set_prior(&self, prior: Option<Prior>) {
        *self.0.prior() = prior.map(Arc::new);
    }

    /// The lock that makes 64-bit atomics at `address` atomic.
    pub(crate) fn lock(&self, address: u64) -> &Mutex<()> {
        &self.0.locks[(address / 8) as usize % LOCKS]
    }
}

/// The words that hold so many bytes.
fn words(bytes: usize) -> usize {
    bytes.div_ceil(4)
}

impl Inner {
    fn prior(&self) -> MutexGuard<'_, Option<Arc<Prior>>> {
        self.prior.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct Storage {
    pub(crate) address: u64,
    pub(crate) bytes: usize,
    pub(crate) words: Box<[AtomicU32]>,
    /// The rank that alone may access it; any may if there is none.
    pub(crate) owner: OnceLock<u32>,
    /// The parts of the symmetric allocation that it is of, and the address of their window.
    siblings: OnceLock<(Arc<symmetric::Siblings>, u64)>,
    memory: Weak<Inner>,
}

impl Drop for Storage {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.upgrade() {
            let mut registry = memory.registry.write().unwrap_or_else(PoisonError::into_inner);
            registry.by_address.remove(&self.address);
            if let Some((_, window)) = self.siblings.get() {
                registry.windows.remove(window);
            }
        }
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Storage({:#x}, {} bytes)", self.address, self.bytes)
    }
}

impl Storage {
    /// The same bytes in memory of their own, at no address that is found.
    pub(crate) fn copy(&self) -> Storage {
        let words = self
            .words
            .iter()
            .map(|w| AtomicU32::new(w.load(Ordering::Relaxed)));
        Storage {
            address: self.address,
            bytes: self.bytes,
            words: words.collect(),
            owner: OnceLock::new(),
            siblings: OnceLock::new(),
            memory: Weak::new(),
        }
    }

    /// The host reads, or writes over: it has waited for what was launched.
    fn waited_for(&self, writes: bool) {
        if let Some(memory) = self.memory.upgrade() {
            let mut prior = memory.prior();
            if !writes || prior.as_ref().is_some_and(|p| p.knows(self.address)) {
                prior.take();
            }
        }
    }

    /// The `bits` (4, 8, 16, 32 or 64) at bit `at`, which the caller has checked to be inside and aligned.
    #[inline]
    pub(crate) fn load(&self, at: usize, bits: u32) -> u64 {
        let word = self.words[at / 32].load(Ordering::Relaxed);
        match bits {
            32 => word as u64,
            64 => word as u64 | (self.words[at / 32 + 1].load(Ordering::Relaxed) as u64) << 32,
            _ => ((word & part(at, bits)) >> (at % 32)) as u64,
        }
    }

    /// Stores `bits` at bit `at`, checked by the caller.
    #[inline]
    pub(crate) fn store(&self, at: usize, bits: u32, value: u64) {
        let word = &self.words[at / 32];
        match bits {
            32 => word.store(value as u32, Ordering::Relaxed),
            64 => {
                word.store(value as u32, Ordering::Relaxed);
                self.words[at / 32 + 1].store((value >> 32) as u32, Ordering::Relaxed);
            }
            _ => {
                let mask = part(at, bits);
                let bits = ((value as u32) << (at % 32)) & mask;
                // Neighbouring bytes may be written by other blocks at the same time. The closure never fails.
                let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| {
                    Some(old & !mask | bits)
                });
            }
        }
    }
}

/// The places that `bits` from bit `at` on are in; a place has two to the `granule` bits.
#[inline(always)]
pub(crate) fn granules(granule: u32, at: usize, bits: u32) -> Range<usize> {
    at >> granule..(at + bits as usize + (1 << granule) - 1) >> granule
}

/// The bits of a word that fewer than 32 bits at `at` take.
#[inline(always)]
fn part(at: usize, bits: u32) -> u32 {
    ((1 << bits) - 1) << (at % 32)
}

/// The `bits` (4, 8, 16, 32 or 64) at bit `at` of words.
pub(crate) fn load_bits(words: &[u32], at: usize, bits: u32) -> u64 {
    let word = words[at / 32];
    match bits {
        32 => word as u64,
        64 => word as u64 | (words[at / 32 + 1] as u64) << 32,
        _ => ((word & part(at, bits)) >> (at % 32)) as u64,
    }
}

/// Stores `bits` at bit `at` of words.
pub(crate) fn store_bits(words: &mut [u32], at: usize, bits: u32, value: u64) {
    let word = &mut words[at / 32];
    match bits {
        32 => *word = value as u32,
        64 => {
            *word = value as u32;
            words[at / 32 + 1] = (value >> 32) as u32;
        }
        _ => {
            let mask = part(at, bits);
            *word = *word & !mask | ((value as u32) << (at % 32)) & mask;
        }
    }
}

/// A piece of simulated memory, zero when new. Clones share it; the last one frees it.
#[derive(Clone)]
pub struct Allocation(Arc<Storage>);

impl fmt::Debug for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Allocation({:#x}, {} bytes)", self.0.address, self.0.bytes)
    }
}

impl Allocation {
    /// The address of the first byte, a multiple of 256. Kernel arguments that are pointers are such addresses.
    pub fn address(&self) -> u64 {
        self.0.address
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.0.bytes
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.bytes == 0
    }

    /// Copies bytes from `offset` on into `out`.
    ///
    /// # Panics
    /// Where the range is not inside the allocation, as slice indexing does.
    pub fn read(&self, offset: usize, out: &mut [u8]) {
        assert!(
            offset <= self.len() && out.len() <= self.len() - offset,
            "read of {} bytes at {offset} in an allocation of {} bytes",
            out.len(),
            self.len()
        );
        self.0.waited_for(false);
        let (mut at, mut rest) = (offset, out);
        while !rest.is_empty() {
            let word = self.0.words[at / 4].load(Ordering::Relaxed).to_le_bytes();
            let count = (4 - at % 4).min(rest.len());
            let (head, tail) = rest.split_at_mut(count);
            head.copy_from_slice(&word[at % 4..at % 4 + count]);
            at += count;
            rest = tail;
        }
    }

    /// Copies `bytes` into the allocation from `offset` on.
    ///
    /// # Panics
    /// Where the range is not inside the allocation, as slice indexing does.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(
            offset <= self.len() && bytes.len() <= self.len() - offset,
            "write of {} bytes at {offset} in an allocation of {} bytes",
            bytes.len(),
            self.len()
        );
        self.0.waited_for(true);
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            if at % 4 == 0 && rest.len() >= 4 {
                let word = u32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]]);
                self.0.words[at / 4].store(word, Ordering::Relaxed);
                at += 4;
                rest = &rest[4..];
            } else {
                self.0.store(at * 8, 8, rest[0] as u64);
                at += 1;
                rest = &rest[1..];
            }
        }
    }

    /// Copies the whole of this allocation to the start of `other`.
    ///
    /// # Panics
    /// Where `other` is smaller.
    pub fn copy_to(&self, other: &Allocation) {
        let mut bytes = vec![0; self.len()];
        self.read(0, &mut bytes);
        other.write(0, &bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_was_written_at_any_offset() {
        let memory = Memory::new();
        let a = memory.alloc(13);
        let data: Vec<u8> = (1..=13).collect();
        a.write(0, &data);
        a.write(3, &[99, 98, 97, 96, 95, 94, 93]);
        let mut out = [0; 13];
        a.read(0, &mut out);
        assert_eq!(out, [1, 2, 3, 99, 98, 97, 96, 95, 94, 93, 11, 12, 13]);
        let b = memory.alloc(16);
        a.copy_to(&b);
        let mut out = [0; 2];
        b.read(12, &mut out);
        assert_eq!(out, [13, 0]);
    }

    #[test]
    fn addresses_are_aligned_found_and_forgotten() {
        let memory = Memory::new();
        let a = memory.alloc(100);
        let b = memory.alloc(1);
        assert_eq!(a.address() % 256, 0);
        assert_eq!(b.address() % 256, 0);
        assert_eq!(
            memory.find(a.address() + 50).map(|s| s.address),
            Some(a.address())
        );
        assert!(memory.find(a.address() + 101).is_none());
        let (address, clone) = (a.address(), a.clone());
        drop(a);
        assert!(memory.find(address).is_some());
        drop(clone);
        assert!(memory.find(address).is_none());
        assert!(memory.find(b.address()).is_some());
    }
}
