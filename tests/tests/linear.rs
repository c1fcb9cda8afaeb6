//! What compiling costs grows as the kernel does: allocations, which do not depend on the machine, counted from text to
//! CUDA text. (Walks that allocate nothing are seen by `cargo bench -p tirx-tests --bench stages`.)

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tirx_tests::shapes::SHAPES;
use tirx_tests::{Defines, cuda_text, long_kernel};

/// Allocations of all threads, for the evaluator and the passes have their own, and their bytes.
static COUNT: (AtomicU64, AtomicU64) = (AtomicU64::new(0), AtomicU64::new(0));

/// Held by the test that counts.
static COUNTING: Mutex<()> = Mutex::new(());

struct Counting;

// SAFETY: every call is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above; the pointer came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: as above; the pointer came from `System`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(bytes: usize) {
    COUNT.0.fetch_add(1, Ordering::Relaxed);
    COUNT.1.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// Allocations and their bytes until now.
fn counted() -> (u64, u64) {
    (COUNT.0.load(Ordering::Relaxed), COUNT.1.load(Ordering::Relaxed))
}

/// Allocations and bytes for one kernel.
fn cost(text: &str, entry: &str) -> (u64, u64) {
    let (calls, bytes) = counted();
    cuda_text("shape.py", text, entry, &Defines::new(), "sm_90a").unwrap_or_else(|e| panic!("{e}"));
    let (more, larger) = counted();
    (more - calls, larger - bytes)
}

/// The cost per unit may rise by a quarter at most: lists grow by doubling.
fn is_linear(name: &str, [small, large]: [usize; 2], text: &dyn Fn(usize) -> String, entry: &str) {
    // What another test of this file leaves behind when it fails does not matter here.
    let _only = COUNTING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // Tables that are read once per process do not count for the kernel.
    cost(&text(small), entry);
    let (few, many) = (cost(&text(small), entry), cost(&text(large), entry));
    for (what, few, many) in [("allocations", few.0, many.0), ("bytes", few.1, many.1)] {
        let (before, after) = (few as f64 / small as f64, many as f64 / large as f64);
        assert!(
            after <= before * 1.25,
            "{name}: {before:.1} {what} each for {small}, {after:.1} for {large}"
        );
    }
}

#[test]
fn long_kernels_of_all_kinds_of_statements() {
    is_linear("statements", [200, 3_200], &long_kernel, "long");
}

#[test]
fn kernels_that_are_large_in_one_way() {
    for shape in SHAPES {
        is_linear(shape.name, shape.sizes, &shape.text, "shape");
    }
}
