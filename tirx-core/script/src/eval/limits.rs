//! Limits on what a kernel file may use. A hostile file ends in an error, never in a crash.

use super::Interpreter;
use crate::diagnostic::{Diagnostic, Result};
use crate::ir::Expr;
use crate::source::Span;

/// A limit, or the smaller one used in fuzzing: inputs that exhaust a limit find nothing and take long.
const fn limit(real: u64, fuzzing: u64) -> u64 {
    if cfg!(fuzzing) { fuzzing } else { real }
}

/// Bytes of a kernel file.
pub const SOURCE_BYTES: usize = 8 << 20;
/// Evaluated Python expressions and statements.
pub const STEPS: u64 = limit(10_000_000, 50_000);
/// Statements of one kernel.
pub const STATEMENTS: usize = limit(250_000, 2_000) as usize;
/// Blocks within blocks, and regions within one block.
pub const NESTING: usize = 120;
/// Levels of one IR expression.
pub const EXPR_DEPTH: u32 = limit(crate::ir::MAX_LEVELS as u64, 600) as u32;
/// Nodes of one IR expression, shared ones counted each time they are reached.
pub const EXPR_SIZE: u64 = limit(1 << 20, 1 << 12);
/// Python calls within calls.
pub const CALLS: usize = 200;
/// Evaluations within evaluations; with [`STACK`] about 64 KiB each.
pub const DEPTH: usize = limit(4000, 400) as usize;
/// Stack of an evaluation (reserved; used as needed).
pub const STACK: usize = 256 << 20;
/// Items of one list, tuple, set, dictionary or range that is expanded; bytes of one text.
pub const ITEMS: usize = limit(4 << 20, 1 << 16) as usize;
/// Lists, functions, objects and other values that may hold values. Each may hold the one before: freeing such a chain
/// takes as many stack frames, about 600 bytes each without optimization.
pub const OBJECTS: usize = limit(300_000, 20_000) as usize;
/// Bits of an integer of compile-time Python without its sign: that of [`Value::Int`](super::Value::Int).
pub const INTEGER_BITS: u64 = 127;
/// Of the syntax tree.
pub const PYTHON: tirx_python::Limits = tirx_python::Limits {
    nesting: limit(2_000, 200) as u32,
    levels: limit(50_000, 2_000) as u32,
    blocks: 60,
};
/// Stack of the parser for what goes beyond [`tirx_python::Limits::STACK`].
pub const PARSER_STACK: usize = 256 << 20;

/// How much of the limits an evaluation has used.
#[derive(Default)]
pub(super) struct Used {
    pub(super) steps: u64,
    pub(super) objects: usize,
    /// Evaluations within evaluations.
    pub(super) depth: usize,
    /// Whether a limit was exceeded: no `except` catches that.
    pub(super) fatal: bool,
}

impl Interpreter {
    /// An error that `try`/`except` does not catch.
    pub fn limit<T>(&mut self, span: Span, message: impl Into<String>) -> Result<T> {
        self.limits.fatal = true;
        Err(Box::new(Diagnostic::new(span, message).help(
            "limits keep builds from running away; see docs/reference/language.md",
        )))
    }

    /// Counts one step of evaluation.
    pub(super) fn step(&mut self, span: Span) -> Result<()> {
        self.limits.steps += 1;
        if self.limits.steps > STEPS {
            return self.limit(span, format!("evaluation took more than {STEPS} steps"));
        }
        Ok(())
    }

    /// Counts a value that may hold values.
    pub(super) fn count_object(&mut self, span: Span) -> Result<()> {
        self.limits.objects += 1;
        if self.limits.objects > OBJECTS {
            return self.limit(
                span,
                format!("more than {OBJECTS} lists, functions and other objects were made"),
            );
        }
        Ok(())
    }

    /// Refuses containers and texts that grow too large.
    pub fn check_items(&mut self, count: usize, span: Span) -> Result<()> {
        if count > ITEMS {
            return self.limit(span, format!("a value grew beyond {ITEMS} items"));
        }
        self.limits.steps += count as u64 / 16;
        Ok(())
    }

    /// Refuses expressions that grow too large.
    pub(super) fn check_expr(&mut self, expr: &Expr, span: Span) -> Result<()> {
        if expr.depth() > EXPR_DEPTH {
            return self.limit(
                span,
                format!("an expression is nested more than {EXPR_DEPTH} deep"),
            );
        }
        if u64::from(expr.size()) > EXPR_SIZE {
            return self.limit(span, format!("an expression grew beyond {EXPR_SIZE} operations"));
        }
        Ok(())
    }
}
