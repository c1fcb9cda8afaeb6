//! Walks of a syntax tree that read it.

use std::sync::Arc;

use crate::ast::*;

pub mod transformer;
mod walks;

use walks::walks;

/// Reads a tree. A method that is not written goes on to the parts.
pub trait Visitor<'a> {
    /// A statement.
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        walk_stmt(self, stmt);
    }

    /// An expression.
    fn visit_expr(&mut self, expr: &'a Expr) {
        walk_expr(self, expr);
    }

    /// The statements of a block.
    fn visit_body(&mut self, body: &'a [Stmt]) {
        for stmt in body {
            self.visit_stmt(stmt);
        }
    }

    /// The parameters of a function.
    fn visit_parameters(&mut self, parameters: &'a Parameters) {
        walk_parameters(self, parameters);
    }

    /// The arguments of a call or a class.
    fn visit_arguments(&mut self, arguments: &'a Arguments) {
        walk_arguments(self, arguments);
    }

    /// A handler of a `try` statement.
    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        walk_except_handler(self, handler);
    }

    /// A pattern.
    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        walk_pattern(self, pattern);
    }
}

walks!(['a,] [Visitor<'a>] [&mut] [&'a] [&] iter shared);

fn shared<T>(definition: &Arc<T>) -> &T {
    definition
}
