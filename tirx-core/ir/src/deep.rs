//! Deep expressions: generated kernels have chains of thousands of additions, and a chain is as deep as it is long.
//!
//! Walks of expressions are recursive, because that is how they read best. The entries of this crate that users call
//! with a whole module (printing, verifying, comparing, images) run such walks on a thread with a stack that suffices;
//! usual modules stay on the thread of the caller. Dropping a deep expression takes no stack
//! (see `ExprNode`).

use super::{Expr, IRModule, PrimFunc, Stmt, Visitor};

/// Levels that any thread's stack holds.
const SHALLOW: u32 = 600;
/// Stack of one level of a walk, more than unoptimized code takes.
const LEVEL: usize = 24 << 10;

/// The most levels of one expression that the compiler accepts.
pub const MOST_LEVELS: u32 = 20_000;

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
    with_stack((levels.min(2 * MOST_LEVELS) as usize).saturating_mul(LEVEL), walk)
}

/// Runs something on a thread with a stack of so many bytes, and waits for it.
///
/// They are address space, not memory: pages that are not touched cost nothing.
pub fn with_stack<R: Send>(bytes: usize, run: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(bytes);
        let running = thread
            .spawn_scoped(scope, run)
            .expect("address space for a stack is like memory: without it the process cannot go on");
        running
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
