//! Freeing deep trees.

use std::cell::RefCell;

use crate::ast::{Expr, ExprNoneLiteral, ModModule};
use crate::visitor::transformer::{Transformer, walk_expr};
use crate::{TextRange, TextSize};

/// Takes expressions out of the tree.
#[derive(Default)]
struct Taken(RefCell<Vec<Expr>>);

impl Transformer for Taken {
    fn visit_expr(&self, expr: &mut Expr) {
        let range = TextRange::new(TextSize::new(0), TextSize::new(0));
        let nothing = Expr::NoneLiteral(ExprNoneLiteral { range });
        self.0.borrow_mut().push(std::mem::replace(expr, nothing));
    }
}

/// Empties a tree whose expressions may be deeper than the stack: one expression after the other, without recursion.
pub fn free(module: &mut ModModule) {
    let taken = Taken::default();
    taken.visit_body(&mut module.body);
    module.body.clear();
    // Not in the head of the loop, which would hold the borrow.
    let pop = || taken.0.borrow_mut().pop();
    while let Some(mut expr) = pop() {
        walk_expr(&taken, &mut expr);
    }
}
