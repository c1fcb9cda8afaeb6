//! What is known of the variables of an index, and the index made simpler by it.

use rustc_hash::FxHashMap;

use crate::arith::fold;
use crate::intrin::Effect;
use crate::ir::{BinOp, Expr, ExprKind, Mutator, Var, Visitor};

/// Values of immutable variables that are in force.
#[derive(Default)]
pub(super) struct Facts {
    values: FxHashMap<Var, Expr>,
}

impl Facts {
    /// `var` takes `extent` values from `min`.
    pub(super) fn bind_range(&mut self, _var: &Var, _min: &Expr, _extent: &Expr) {}

    /// `var` is `value`. A value that reads memory or has effects is not remembered.
    pub(super) fn bind_value(&mut self, var: &Var, value: &Expr) {
        if is_pure(value) && var.dtype().is_integer() {
            let value = self.simplify(value);
            self.values.insert(var.clone(), value);
        }
    }

    /// The same value, simpler.
    pub(super) fn simplify(&mut self, index: &Expr) -> Expr {
        Fold { values: &self.values }.expr(index)
    }
}

/// Whether evaluating `expr` reads no memory and does nothing else.
pub(super) fn is_pure(expr: &Expr) -> bool {
    struct Pure(bool);
    impl Visitor for Pure {
        fn visit_expr(&mut self, expr: &Expr) {
            match &expr.kind {
                ExprKind::BufferLoad { .. } => self.0 = false,
                ExprKind::Call { op, .. } => self.0 &= op.effect() <= Effect::Pure,
                _ => {}
            }
            if self.0 {
                self.walk_expr(expr);
            }
        }
    }
    let mut pure = Pure(true);
    pure.visit_expr(expr);
    pure.0
}

struct Fold<'a> {
    values: &'a FxHashMap<Var, Expr>,
}

impl Mutator for Fold<'_> {
    fn expr(&mut self, expr: &Expr) -> Expr {
        match &expr.kind {
            ExprKind::Var(v) => self.values.get(v).cloned().unwrap_or_else(|| expr.clone()),
            ExprKind::Binary(op, a, b) if !matches!(op, BinOp::And | BinOp::Or) => {
                let (a, b) = (self.expr(a), self.expr(b));
                fold::binary(*op, a, b).or_at(expr.span)
            }
            _ => self.walk_expr(expr),
        }
    }
}
