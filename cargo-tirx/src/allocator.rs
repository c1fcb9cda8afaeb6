//! The memory of the tool. A compilation makes and frees hundreds of thousands of nodes of a few sizes, and the system's
//! allocator, which must serve any program, would take a quarter of its instructions.
//!
//! A command that compiles one kernel and ends says [`keep_freed`]. From then on a small block that is freed goes to a list of its
//! size, from which the next one of that size is taken; where the list is empty, it is cut from a large block. Nothing goes back
//! to the system before the process ends. Each thread has lists of its own, and takes them with it when it ends: a compilation
//! is one thread ([`tirx_core::ir::on_one_stack`]). All other commands, which may run for long and on many threads, have the
//! system's allocator.

#![expect(unsafe_code, reason = "the interface of allocators is unsafe")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sizes of small blocks are multiples of it, and so are their addresses.
const STEP: usize = 16;
/// Size of the largest small block.
const LARGEST: usize = 1024;
/// Size of the blocks that small ones are cut from.
const CHUNK: usize = 256 << 10;

/// Whether freed memory is kept. It is never set back: a block of the system's may be kept, and a kept one is never the system's.
static KEEPS: AtomicBool = AtomicBool::new(false);

/// Keeps freed memory for the rest of the process.
pub(crate) fn keep_freed() {
    KEEPS.store(true, Ordering::Relaxed);
}

/// The blocks of a thread.
struct Blocks {
    /// Freed blocks by size: each holds the address of the next one.
    freed: [Cell<*mut u8>; LARGEST / STEP + 1],
    /// What is left of the large block that new ones are cut from.
    rest: Cell<*mut u8>,
    left: Cell<usize>,
}

thread_local! {
    static BLOCKS: Blocks = const {
        Blocks {
            freed: [const { Cell::new(null_mut()) }; LARGEST / STEP + 1],
            rest: Cell::new(null_mut()),
            left: Cell::new(0),
        }
    };
}

impl Blocks {
    /// A block of `steps` steps; null where the system has no memory.
    fn take(&self, steps: usize) -> *mut u8 {
        let head = &self.freed[steps];
        let block = head.get();
        if !block.is_null() {
            // SAFETY: a block in a list is unused and holds the address of the next, which `give` wrote.
            head.set(unsafe { block.cast::<*mut u8>().read() });
            return block;
        }
        let size = steps * STEP;
        if self.left.get() < size {
            // SAFETY: the size is not zero.
            let chunk = unsafe { System.alloc(Layout::new::<[u128; CHUNK / STEP]>()) };
            if chunk.is_null() {
                return chunk;
            }
            self.rest.set(chunk);
            self.left.set(CHUNK);
        }
        let block = self.rest.get();
        self.left.set(self.left.get() - size);
        // SAFETY: `size` bytes were left, so that the end of the block is in the chunk or at its end.
        self.rest.set(unsafe { block.add(size) });
        block
    }

    /// Puts an unused block of `steps` steps on its list.
    fn give(&self, block: *mut u8, steps: usize) {
        let head = &self.freed[steps];
        // SAFETY: nobody uses the block any more; it has at least STEP bytes and is aligned to STEP, more than an address takes.
        unsafe { block.cast::<*mut u8>().write(head.get()) };
        head.set(block);
    }
}

/// The steps of a small block.
fn steps(layout: Layout) -> Option<usize> {
    let small = layout.size() <= LARGEST && layout.align() <= STEP;
    small.then(|| layout.size().div_ceil(STEP).max(1))
}

/// The layout by which the system gives and takes a small block: its full size, since it may be kept and used again.
fn whole(steps: usize) -> Layout {
    // SAFETY: STEP is a power of two, and the size is small.
    unsafe { Layout::from_size_align_unchecked(steps * STEP, STEP) }
}

/// See the [module](self).
pub(crate) struct Allocator;

// SAFETY: a small block has its whole number of steps, whether the system gave it or `Blocks` cut it, and is in one place at a
// time: in use or in one list. All other blocks are the system's, by the caller's layout.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match steps(layout) {
            Some(steps) if KEEPS.load(Ordering::Relaxed) => BLOCKS.with(|blocks| blocks.take(steps)),
            // SAFETY: the size is not zero.
            Some(steps) => unsafe { System.alloc(whole(steps)) },
            // SAFETY: the caller's promises are those that `System` asks for.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match steps(layout) {
            Some(steps) if KEEPS.load(Ordering::Relaxed) => BLOCKS.with(|blocks| blocks.give(block, steps)),
            // SAFETY: nothing was ever kept, so the block came from `System` by this layout.
            Some(steps) => unsafe { System.dealloc(block, whole(steps)) },
            // SAFETY: as above.
            None => unsafe { System.dealloc(block, layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if steps(layout).is_none() {
            // SAFETY: the caller's promises are those that `System` asks for.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: the caller's promises; the block has as many bytes.
        unsafe {
            let block = self.alloc(layout);
            if !block.is_null() {
                block.write_bytes(0, layout.size());
            }
            block
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the size is one of a layout.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (steps(layout), steps(new)) {
            (Some(before), Some(after)) if before == after => block,
            // SAFETY: both are the system's.
            (None, None) => unsafe { System.realloc(block, layout, size) },
            // SAFETY: the new block is another one, and both have the bytes that are copied.
            _ => unsafe {
                let copy = self.alloc(new);
                if !copy.is_null() {
                    copy.copy_from_nonoverlapping(block, layout.size().min(size));
                    self.dealloc(block, layout);
                }
                copy
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of the system and kept ones, grown and shrunk over the bound between small and large, on two threads.
    #[test]
    fn blocks_keep_what_was_written() {
        fn fill(seed: usize) -> Vec<Vec<u8>> {
            let size = |i: usize| (i * 37 + seed * 11) % 2100;
            (0..600).map(|i| vec![(i + seed) as u8; size(i)]).collect()
        }
        fn check(seed: usize, mut all: Vec<Vec<u8>>) {
            for round in 0..3 {
                for (i, bytes) in all.iter_mut().enumerate() {
                    let expected = (i + seed) as u8;
                    assert!(bytes.iter().all(|b| *b == expected), "{i} in {round}");
                    bytes.resize((i * 91 + round * 517) % 2100, expected);
                    bytes.shrink_to_fit();
                }
                assert!(vec![0u8; 900].iter().all(|b| *b == 0));
            }
        }
        let before = fill(1);
        keep_freed();
        check(1, before);
        check(2, fill(2));
        let elsewhere = std::thread::spawn(|| fill(3)).join().expect("it does not panic");
        check(3, elsewhere);
        let aligned = vec![1u128; 3];
        assert_eq!(aligned.as_ptr().addr() % 16, 0);
    }
}
