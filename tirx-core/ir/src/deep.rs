//! Deep expressions: generated kernels have chains of thousands of additions, and a chain is as deep as it is long.
//!
//! Walks of expressions are recursive, because that is how they read best. The entries of this crate that users call
//! with a whole module (printing, verifying, comparing, images) run such walks on a thread with a stack that suffices;
//! usual modules stay on the thread of the caller. Dropping a deep expression takes no stack
//! (see `ExprNode`).
//!
//! WebAssembly has no threads here: every walk runs on the module's own stack, whose size is an argument of its linker
//! (`playground/`).

use std::cell::Cell;

use super::{Expr, IRModule, PrimFunc, Stmt, Visitor};

/// Levels that any thread's stack holds.
const SHALLOW: u32 = 600;
/// Stack of one level of a walk, more than unoptimized code takes.
const LEVEL: usize = 24 << 10;

/// The most levels of one expression that the compiler accepts.
pub const MAX_LEVELS: u32 = 20_000;

/// What has expressions.
pub trait Levels {
    /// Levels of its deepest expression.
    fn levels(&self) -> u32;
}

/// Finds the deepest expression without entering expressions.
struct Deepest(u32);

impl Visitor for Deepest {
    fn visit_expr(&mut self, expr: &Expr) {
        self.0 = self.0.max(expr.depth());
    }
}

impl Levels for Expr {
    fn levels(&self) -> u32 {
        self.depth()
    }
}

impl Levels for Stmt {
    fn levels(&self) -> u32 {
        let mut deepest = Deepest(0);
        deepest.visit_stmt(self);
        deepest.0
    }
}

impl Levels for PrimFunc {
    fn levels(&self) -> u32 {
        self.body.levels()
    }
}

impl Levels for IRModule {
    fn levels(&self) -> u32 {
        self.functions
            .iter()
            .map(|(_, func)| func.levels())
            .max()
            .unwrap_or(0)
    }
}

/// Runs a walk of expressions of at most `levels` levels with a stack that holds it.
pub fn with_stack_for<R: Send>(levels: u32, walk: impl FnOnce() -> R + Send) -> R {
    if levels <= SHALLOW {
        return walk();
    }
    with_stack((levels.min(2 * MAX_LEVELS) as usize).saturating_mul(LEVEL), walk)
}

/// Runs something with a stack of so many bytes: on this thread, where [`with_stack`] made it and that much is left, otherwise
/// on a new one, for which it waits.
///
/// They are address space, not memory: pages that are not touched cost nothing.
pub fn with_stack<R: Send>(bytes: usize, run: impl FnOnce() -> R + Send) -> R {
    if cfg!(target_family = "wasm") || left() >= bytes {
        return run();
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(bytes + ENTRY);
        let running = thread
            .spawn_scoped(scope, || {
                MADE.set(Some((here(), bytes + ENTRY)));
                run()
            })
            .expect("address space for a stack is like memory: without it the process cannot go on");
        running
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Runs a whole compilation on one thread: the parts of it that ask [`with_stack`] for a stack find it there. A thread for each
/// would have to be started, and gets memory of its own from the allocator.
pub fn on_one_stack<R: Send>(compilation: impl FnOnce() -> R + Send) -> R {
    with_stack(COMPILATION, compilation)
}

/// Stack of the frames around the deepest part, which is asked for beside that of the part.
const ENTRY: usize = 1 << 20;

/// Stack of a compilation: more than any part asks for, by what those need that call the part.
const COMPILATION: usize = 576 << 20;

thread_local! {
    /// Where the stack of a thread of [`with_stack`] begins, and its size.
    static MADE: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// An address in the frame of the caller's caller.
#[inline(never)]
fn here() -> usize {
    let place = 0u8;
    std::ptr::from_ref(std::hint::black_box(&place)).addr()
}

/// Bytes of stack that are left here; none where nobody knows.
fn left() -> usize {
    let (start, size) = MADE.get().unwrap_or_default();
    size.saturating_sub(start.abs_diff(here()) + ENTRY / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_on_the_stack_stays_on_the_thread() {
        let id = || std::thread::current().id();
        let outside = id();
        with_stack(8 << 20, || {
            let made = id();
            assert_ne!(made, outside);
            assert_eq!(with_stack(8 << 20, id), made);
            assert_ne!(with_stack(16 << 20, id), made);
            // What calls uses up is not there any more.
            fn deep(levels: u32) -> std::thread::ThreadId {
                let frame = std::hint::black_box([levels as u8; 4096]);
                let found = match levels {
                    0 => with_stack(8 << 20, || std::thread::current().id()),
                    _ => deep(levels - 1),
                };
                std::hint::black_box(frame);
                found
            }
            assert_ne!(deep(400), made);
        });
        assert_eq!(left(), 0);
    }
}
