//! UnrollLoop: replaces `T.unroll` loops of constant length by one copy of the body per iteration.
//!
//! **Idea.** The body is copied once per iteration with the loop variable replaced by its value. Everything that a copy
//! declares (bindings, buffers, inner loop variables) is new in it, so that each is still defined once. A loop without
//! iterations is removed, whatever its kind.
//!
//! A loop that can't be copied stays a `T.unroll` loop, which CUDA prints under `#pragma unroll`: one whose length is
//! not constant, one that `break` or `continue` leaves early, and one annotated `pragma_unroll_explicit = False`.
//! Serial loops stay as they are, unless `pragma_auto_unroll_max_step` around them allows as many statements as the
//! copies make; then they are treated like `T.unroll` loops. Both pragmas are attributes here (LowerTIRxOpaque makes
//! them from a loop's annotations) and are removed.
//!
//! **Cost.** That of the copies. Loops are unrolled inside out; a function may grow to `LARGEST` statements,
//! beyond that the loop is an error.

use rustc_hash::FxHashMap;

use super::PassContext;
use crate::arith::fold;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::intrin::Op;
use crate::ir::{
    Attr, Buffer, Expr, ExprKind, ForKind, ForLoop, IRModule, Mutator, Stmt, StmtKind, Var, Visitor,
};

/// Most statements that unrolling may make.
const LARGEST: usize = 1 << 20;

/// See the [module](self).
pub fn run(module: IRModule, _ctx: &PassContext) -> Result<IRModule, Diagnostics> {
    module.try_map(|mut func| {
        let mut unroller = Unroller {
            explicit: true,
            most_steps: 0,
            error: None,
        };
        func.body = unroller.stmt(&func.body);
        match unroller.error {
            Some(error) => Err(error.into()),
            None => Ok(func),
        }
    })
}

struct Unroller {
    /// Whether loops are copied here rather than left to CUDA's compiler.
    explicit: bool,
    /// Serial loops with at most this many statements over all iterations are unrolled too.
    most_steps: i128,
    error: Option<Diagnostic>,
}

impl Mutator for Unroller {
    fn expr(&mut self, expr: &Expr) -> Expr {
        expr.clone()
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        if let StmtKind::Attr(Attr { key, value, body, .. }) = &stmt.kind
            && let Some(value) = value.as_int()
        {
            let outer = (self.explicit, self.most_steps);
            match &**key {
                "pragma_unroll_explicit" => self.explicit = value != 0,
                "pragma_auto_unroll_max_step" => self.most_steps = value,
                _ => return self.walk_stmt(stmt),
            }
            let body = self.stmt(body);
            (self.explicit, self.most_steps) = outer;
            return body;
        }
        let new = self.walk_stmt(stmt);
        let StmtKind::For(l) = &new.kind else {
            return new;
        };
        let length = l.extent.as_int();
        if length.is_some_and(|n| n <= 0) {
            return Stmt::nop();
        }
        let implicit = l
            .annotations
            .iter()
            .any(|(key, value)| &**key == "pragma_unroll_explicit" && value.as_int() == Some(0));
        let Some(length) = length else { return new };
        let steps = || (count_statements(&l.body) as i128).saturating_mul(length);
        let automatic = l.kind == ForKind::Serial && self.most_steps > 0 && steps() <= self.most_steps;
        if l.kind != ForKind::Unrolled && !automatic || leaves_early(&l.body) {
            return new;
        }
        if implicit || !self.explicit {
            let unrolled = ForLoop {
                kind: ForKind::Unrolled,
                ..l.clone()
            };
            return Stmt::new(unrolled, stmt.span);
        }
        let step = match &l.step {
            None => 1,
            Some(step) => match step.as_int() {
                Some(step) if step > 0 => step,
                _ => return new,
            },
        };
        let turns = (length + step - 1) / step;
        if turns.saturating_mul(count_statements(&l.body) as i128) > LARGEST as i128 {
            let message =
                format!("unrolling this loop of {turns} iterations makes more than {LARGEST} statements");
            let error = Diagnostic::new(stmt.span, message).help("use T.serial, or unroll fewer iterations");
            self.error.get_or_insert(error);
            return new;
        }
        let copies = (0..turns).map(|turn| {
            let offset = Expr::constant(l.var.dtype(), turn * step);
            copy_with(&l.body, &l.var, fold::add(l.min.clone(), offset))
        });
        Stmt::seq(copies)
    }
}

/// A copy of `body` in which `var` is `value` and every declaration is a new one.
pub(super) fn copy_with(body: &Stmt, var: &Var, value: Expr) -> Stmt {
    let mut copy = Copy::default();
    copy.vars.insert(var.clone(), value);
    copy.stmt(body)
}

/// Replaces variables, and gives new identities to declared variables and buffers.
#[derive(Default)]
struct Copy {
    vars: FxHashMap<Var, Expr>,
    buffers: FxHashMap<Buffer, Buffer>,
}

impl Copy {
    fn pointer(&self, var: &Var) -> Var {
        self.vars
            .get(var)
            .and_then(|e| e.as_var())
            .cloned()
            .unwrap_or_else(|| var.clone())
    }

    /// The buffer with its description copied, if that changes it or `fresh` is set.
    fn rebuild(&mut self, buffer: &Buffer, fresh: bool) -> Buffer {
        let data = self.pointer(&buffer.data);
        let new = buffer.map_exprs(data, |e| self.expr(e));
        if fresh && new == *buffer {
            return buffer.with(|_| {});
        }
        new
    }
}

impl Mutator for Copy {
    fn expr(&mut self, expr: &Expr) -> Expr {
        match &expr.kind {
            ExprKind::Var(v) => match self.vars.get(v) {
                Some(value) => value.clone().at(expr.span),
                None => expr.clone(),
            },
            _ => self.walk_expr(expr),
        }
    }

    fn var_def(&mut self, var: &Var) -> Var {
        let new = var.renamed(var.name_arc());
        self.vars.insert(var.clone(), Expr::var(&new));
        new
    }

    fn buffer_use(&mut self, buffer: &Buffer) -> Buffer {
        if let Some(known) = self.buffers.get(buffer) {
            return known.clone();
        }
        let new = self.rebuild(buffer, false);
        self.buffers.insert(buffer.clone(), new.clone());
        new
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
            StmtKind::AllocBuffer(buffer, annotations) => {
                let data = buffer.data.renamed(buffer.data.name_arc());
                self.vars.insert(buffer.data.clone(), Expr::var(&data));
                let new = self.rebuild(buffer, true);
                self.buffers.insert(buffer.clone(), new.clone());
                Stmt::new(StmtKind::AllocBuffer(new, annotations.clone()), stmt.span)
            }
            StmtKind::DeclBuffer(buffer) => {
                let new = self.rebuild(buffer, true);
                self.buffers.insert(buffer.clone(), new.clone());
                Stmt::new(StmtKind::DeclBuffer(new), stmt.span)
            }
            _ => self.walk_stmt(stmt),
        }
    }
}

/// Whether `break` or `continue` in `body` refers to the loop that `body` is of.
pub(super) fn leaves_early(body: &Stmt) -> bool {
    struct Find(bool);
    impl Visitor for Find {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            match &stmt.kind {
                StmtKind::For(_) | StmtKind::While(..) => {}
                StmtKind::Evaluate(e) => {
                    self.0 |= matches!(
                        &e.kind,
                        ExprKind::Call {
                            op: Op::BreakLoop | Op::ContinueLoop,
                            ..
                        }
                    );
                }
                StmtKind::Bind(..) | StmtKind::BufferStore(_) => {}
                _ => self.walk_stmt(stmt),
            }
        }
        fn visit_expr(&mut self, _expr: &Expr) {}
    }
    let mut find = Find(false);
    find.visit_stmt(body);
    find.0
}

fn count_statements(body: &Stmt) -> usize {
    struct Count(usize);
    impl Visitor for Count {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            self.0 += 1;
            self.walk_stmt(stmt);
        }
        fn visit_expr(&mut self, _expr: &Expr) {}
    }
    let mut count = Count(0);
    count.visit_stmt(body);
    count.0
}
