//! Visibility: each variable and buffer is declared once, before its uses.

use super::Verifier;
use crate::ir::{Buffer, Expr, Var};
use crate::source::Span;

/// The declarations of a scope, removed where it ends.
pub(super) enum Declared {
    Var(Var),
    Buffer(Buffer),
}

impl Verifier<'_> {
    pub(super) fn scope(&mut self, f: impl FnOnce(&mut Self)) {
        self.scopes.push(Vec::new());
        f(self);
        for declared in self.scopes.pop().unwrap_or_default() {
            match declared {
                Declared::Var(var) => {
                    self.vars.remove(&var);
                }
                Declared::Buffer(buffer) => {
                    self.buffers.remove(&buffer);
                }
            }
        }
    }

    pub(super) fn define(&mut self, var: &Var, span: Span) {
        if !self.vars.insert(var.clone()) {
            self.error(span.or(var.span()), || {
                format!("variable {} is defined twice", var.name())
            });
        } else if let Some(scope) = self.scopes.last_mut() {
            scope.push(Declared::Var(var.clone()));
        }
    }

    pub(super) fn declare(&mut self, buffer: &Buffer) {
        if !self.buffers.insert(buffer.clone()) {
            self.error(buffer.span, || {
                format!("buffer {} is declared twice", buffer.name)
            });
        } else if let Some(scope) = self.scopes.last_mut() {
            scope.push(Declared::Buffer(buffer.clone()));
        }
    }

    pub(super) fn define_free(&mut self, e: &Expr) {
        if let Some(var) = e.as_var() {
            if !self.vars.contains(var) {
                self.define(var, e.span);
            }
            return;
        }
        e.operands().for_each(|e| self.define_free(e));
    }
}
