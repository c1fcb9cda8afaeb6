//! Whether IR is well-formed: what every pass may rely on and must keep.
//!
//! A function is well-formed if
//! * each variable and buffer is declared before it is used, in a scope that holds the use, and not declared again
//!   where it is already in sight;
//! * operands have the dtypes their operator wants, and each node the dtype that follows from its operands;
//! * accesses have one index per dimension, of which at most one is a vector;
//! * calls have the arguments that the table of intrinsics says, and its result;
//! * conditions are scalar bools, loop bounds have the loop variable's dtype, `break` and `continue` are in loops.
//!
//! A division by the constant zero is well-formed: unrolling makes `tx % 0` of `tx % i`, perhaps where no thread gets.
//! One that remains when code is generated is a mistake of the program and is reported there.
//!
//! A violation is a bug of the compiler (or of a hand-made module), so messages speak of IR.

mod buffer;
mod call;
mod expr;
mod scope;
mod stmt;
mod tile;

use rustc_hash::FxHashSet;

use self::scope::Declared;
use super::{AttrValue, Buffer, IRModule, Levels, PrimFunc, Var, with_stack_for};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Span;

/// At most this many errors are collected.
const MOST: usize = 20;

/// Checks every function of a module.
pub fn verify(module: &IRModule) -> Result<(), Diagnostics> {
    let mut all = Vec::new();
    for (name, func) in &module.functions {
        if let Err(errors) = verify_func(name, func) {
            all.extend(errors.0);
        }
    }
    if all.is_empty() {
        Ok(())
    } else {
        Err(Diagnostics(all))
    }
}

/// Checks one function; `name` is for messages.
pub fn verify_func(name: &str, func: &PrimFunc) -> Result<(), Diagnostics> {
    with_stack_for(func.levels(), || well_formed(name, func))
}

fn well_formed(name: &str, func: &PrimFunc) -> Result<(), Diagnostics> {
    let mut verifier = Verifier {
        function: name,
        errors: Vec::new(),
        vars: FxHashSet::default(),
        buffers: FxHashSet::default(),
        scopes: vec![Vec::new()],
        loops: 0,
        span: func.span,
    };
    verifier.function(func);
    if verifier.errors.is_empty() {
        Ok(())
    } else {
        Err(Diagnostics(verifier.errors))
    }
}

struct Verifier<'a> {
    function: &'a str,
    errors: Vec<Diagnostic>,
    /// Visible variables and buffers.
    vars: FxHashSet<Var>,
    buffers: FxHashSet<Buffer>,
    /// What each scope declared, the innermost last.
    scopes: Vec<Vec<Declared>>,
    /// Number of enclosing loops.
    loops: u32,
    /// The span of the statement being checked, for nodes without one.
    span: Span,
}

impl Verifier<'_> {
    fn error(&mut self, span: Span, what: impl FnOnce() -> String) {
        if self.errors.len() < MOST {
            let message = format!("ill-formed IR in {}: {}", self.function, what());
            self.errors.push(Diagnostic::new(span.or(self.span), message));
        }
    }

    fn check(&mut self, holds: bool, span: Span, what: impl FnOnce() -> String) {
        if !holds {
            self.error(span, what);
        }
    }

    fn function(&mut self, func: &PrimFunc) {
        for param in &func.params {
            self.define(param, param.span());
        }
        for (param, buffer) in &func.buffer_map {
            self.check(func.params.contains(param), buffer.span, || {
                format!("buffer {} belongs to no parameter", buffer.name)
            });
            self.check(param.dtype().is_handle(), buffer.span, || {
                format!(
                    "parameter {} of buffer {} is no pointer",
                    param.name(),
                    buffer.name
                )
            });
            // The signature binds the variables that its descriptions mention: the caller's tensors give their values.
            if !self.vars.contains(&buffer.data) {
                self.define(&buffer.data, buffer.span);
            }
            for e in buffer.exprs() {
                self.define_free(e);
            }
            self.description(buffer);
            self.declare(buffer);
        }
        // An attribute keeps what its author wrote: it may name a parameter that a pass has replaced.
        for value in func.attrs.values() {
            if let AttrValue::Expr(e) = value {
                self.scope(|this| {
                    this.define_free(e);
                    this.expr(e);
                });
            }
        }
        self.stmt(&func.body);
    }
}

#[cfg(test)]
mod tests;
