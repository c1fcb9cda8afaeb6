//! Walks of a syntax tree that change it.

use std::sync::Arc;

use super::walks::walks;
use crate::ast::*;

/// Changes a tree. A method that is not written goes on to the parts.
pub trait Transformer {
    /// A statement.
    fn visit_stmt(&self, stmt: &mut Stmt) {
        walk_stmt(self, stmt);
    }

    /// An expression.
    fn visit_expr(&self, expr: &mut Expr) {
        walk_expr(self, expr);
    }

    /// The statements of a block.
    fn visit_body(&self, body: &mut [Stmt]) {
        for stmt in body {
            self.visit_stmt(stmt);
        }
    }

    /// The parameters of a function.
    fn visit_parameters(&self, parameters: &mut Parameters) {
        walk_parameters(self, parameters);
    }

    /// The arguments of a call or a class.
    fn visit_arguments(&self, arguments: &mut Arguments) {
        walk_arguments(self, arguments);
    }

    /// A handler of a `try` statement.
    fn visit_except_handler(&self, handler: &mut ExceptHandler) {
        walk_except_handler(self, handler);
    }

    /// A pattern.
    fn visit_pattern(&self, pattern: &mut Pattern) {
        walk_pattern(self, pattern);
    }
}

walks!([] [Transformer] [&] [&mut] [&mut] iter_mut own);

/// A definition that is shared is copied before it changes.
fn own<T: Clone>(definition: &mut Arc<T>) -> &mut T {
    Arc::make_mut(definition)
}
