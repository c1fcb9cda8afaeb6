//! Answers `T.cuda.target_is(…)`: each is true or false for the target of its function, and of an `if` only the branch that holds
//! is left, so that a kernel may have code for one GPU beside code for another.
//!
//! Where the GPUs of a compilation give different answers, the context says so, and each gets code of its own.

use super::PassContext;
use crate::intrin::Op;
use crate::ir::{BinOp, DType, Expr, ExprKind, Gpu, Mutator, PrimFunc, Stmt, StmtKind, Visitor, fold};

/// A function with its choices made.
pub(super) fn resolved(func: &PrimFunc, context: &PassContext) -> Option<Stmt> {
    let mut asks = Asks(false);
    asks.visit_stmt(&func.body);
    if !asks.0 {
        return None;
    }
    let targets = context.targets(func);
    let mut choose = Choose {
        gpus: targets.iter().map(|target| target.gpu).collect(),
        differ: false,
    };
    let body = choose.stmt(&func.body);
    if choose.differ {
        context.separated.set(true);
    }
    Some(body)
}

/// Finds a question.
struct Asks(bool);

impl Visitor for Asks {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        if stmt.has_call() {
            self.walk_stmt(stmt);
        }
    }

    fn visit_expr(&mut self, expr: &Expr) {
        if !expr.has_call() {
            return;
        }
        self.0 |= expr.as_call(Op::CudaTargetIs).is_some();
        // Its value is a truth value: only conditions hold it.
        self.walk_expr(expr);
    }
}

/// Answers for the first of the GPUs.
struct Choose {
    gpus: Vec<Gpu>,
    differ: bool,
}

impl Choose {
    /// Whether the code is for `name`.
    fn answer(&mut self, name: &str) -> bool {
        let Ok(named) = name.parse::<Gpu>() else {
            return false;
        };
        let first = self.gpus.first().is_some_and(|gpu| named.includes(*gpu));
        self.differ |= self.gpus.iter().any(|gpu| named.includes(*gpu) != first);
        first
    }
}

impl Mutator for Choose {
    fn expr(&mut self, expr: &Expr) -> Expr {
        if let Some([name]) = expr.as_call(Op::CudaTargetIs)
            && let Some(name) = name.as_str()
        {
            return Expr::bool(self.answer(name)).at(expr.span);
        }
        let new = self.walk_expr(expr);
        if new.same_node(expr) || new.dtype != DType::BOOL {
            return new;
        }
        match &new.kind {
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) => {
                fold::binary(*op, a.clone(), b.clone()).at(new.span)
            }
            ExprKind::Not(a) => fold::not(a.clone()).at(new.span),
            _ => new,
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        if let StmtKind::If(condition, then, otherwise) = &stmt.kind {
            let chosen = self.expr(condition);
            // A condition that the kernel's text decides stays.
            if let (None, Some(value)) = (condition.as_int(), chosen.as_int()) {
                return match (value != 0, otherwise) {
                    (true, _) => self.stmt(then),
                    (false, Some(otherwise)) => self.stmt(otherwise),
                    (false, None) => Stmt::nop(),
                };
            }
        }
        self.walk_stmt(stmt)
    }
}
