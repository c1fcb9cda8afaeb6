//! A lack of memory ends in a message: an allocation that fails tells the page before the module stops.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen(raw_module = "./signals.js")]
extern "C" {
    /// Notes that memory is exhausted; the module stops next.
    #[wasm_bindgen(js_name = outOfMemory)]
    fn out_of_memory(bytes: f64);
}

struct Telling;

#[global_allocator]
static ALLOCATOR: Telling = Telling;

fn told(pointer: *mut u8, bytes: usize) -> *mut u8 {
    if pointer.is_null() {
        out_of_memory(bytes as f64);
    }
    pointer
}

// SAFETY: each function is the system allocator's own; `told` passes the pointer on and allocates nothing.
unsafe impl GlobalAlloc for Telling {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        told(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        told(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `realloc`.
        told(unsafe { System.realloc(pointer, layout, bytes) }, bytes)
    }
}
