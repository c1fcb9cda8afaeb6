//! StmtSimplify: simplifies every expression with the facts known at its position.
//!
//! **Idea.** One walk in program order feeds the analyzer: thread indices and loop variables have ranges, pure bindings
//! (`T.let`) stand for their values, conditions hold in the branches they guard. Each expression is simplified there. A
//! condition that becomes constant selects its branch; a store of the value that is already there is removed. Bindings
//! stay, though their uses are replaced: an unused one costs nothing in CUDA.
//!
//! **Memory.** A binding or condition that reads memory is no fact (a later store may change it): it is neither put
//! in the place of its variable nor assumed. (TVM 0.26 assumes such conditions, which is wrong after a store.)
//!
//! **Termination and cost.** Each statement is visited once; the work is that of the analyzer per expression. A
//! binding is only put in place while its expanded value is small (`LARGEST_INLINED`), so a chain of bindings that
//! double each other stays linear.

use super::PassContext;
use crate::arith::{Analyzer, fold};
use crate::diagnostic::Diagnostics;
use crate::intrin::Op;
use crate::ir::abi::keys;
use crate::ir::abi::runs_on_device;
use crate::ir::{
    Assert, Attr, AttrNode, BinOp, BufferStore, Expr, ExprKind, ForKind, ForLoop, IRModule, Mutator,
    PrimFunc, Stmt, StmtKind,
};

/// Most nodes of a value that replaces a variable.
const LARGEST_INLINED: u32 = 128;

/// See the [module](self).
pub fn run(module: IRModule, _ctx: &PassContext) -> Result<IRModule, Diagnostics> {
    Ok(module.map(simplified))
}

/// The same for device functions alone: part of their finalization.
pub fn run_on_device(module: IRModule, _ctx: &PassContext) -> Result<IRModule, Diagnostics> {
    Ok(module.map(|func| {
        if runs_on_device(&func) {
            simplified(func)
        } else {
            func
        }
    }))
}

fn simplified(mut func: PrimFunc) -> PrimFunc {
    let mut simplifier = Simplifier {
        analyzer: Analyzer::new(),
    };
    func.body = simplifier.stmt(&func.body);
    func
}

struct Simplifier {
    analyzer: Analyzer,
}

/// The condition inside `likely(...)`.
fn without_likely(condition: &Expr) -> &Expr {
    match condition.as_call(Op::Likely) {
        Some([inner]) => inner,
        _ => condition,
    }
}

impl Simplifier {
    fn body_under(&mut self, condition: &Expr, body: &Stmt) -> Stmt {
        let scope = self.analyzer.enter_constraint(condition);
        let body = self.stmt(body);
        self.analyzer.leave(scope);
        body
    }

    /// A `for` loop, in which the range of its variable is known.
    fn loop_body(&mut self, var: &crate::ir::Var, min: &Expr, extent: &Expr, body: &Stmt) -> Stmt {
        let scope = self.analyzer.scope();
        if extent.as_int().is_none() {
            // The body runs, so the loop has at least one iteration.
            let zero = Expr::constant(extent.dtype, 0);
            let runs = Expr::binary(BinOp::Lt, zero, extent.clone());
            self.analyzer.assume(&runs);
        }
        self.analyzer.bind(var, min, extent);
        let body = self.stmt(body);
        self.analyzer.leave(scope);
        body
    }
}

/// Whether the store writes the value that it reads from the same place.
fn stores_itself(stmt: &Stmt) -> bool {
    let StmtKind::BufferStore(BufferStore {
        buffer,
        indices,
        value,
        predicate,
    }) = &stmt.kind
    else {
        return false;
    };
    matches!(
        &value.kind,
        ExprKind::BufferLoad { buffer: from, indices: at, predicate: of }
            if from == buffer && at == indices && of == predicate && !indices.iter().any(crate::arith::has_effect)
    )
}

/// Whether the named value carries less information than its expression: operations on small floats are computed in
/// float32, and rounded where their result is stored.
fn rounds(value: &Expr) -> bool {
    let operation = !matches!(
        value.kind,
        ExprKind::Var(_) | ExprKind::Float(_) | ExprKind::Cast(_)
    );
    value.dtype.is_small_float() && operation
}

impl Mutator for Simplifier {
    fn expr(&mut self, expr: &Expr) -> Expr {
        self.analyzer.simplify(expr)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
            StmtKind::Bind(var, value) => {
                let new = self.expr(value);
                let small = new.size() <= LARGEST_INLINED && !rounds(&new);
                let stands = !new.dtype.is_handle() || new.as_str().is_some();
                if crate::arith::is_pure_and_memory_free(&new) && stands && small {
                    self.analyzer.bind_value(var, &new);
                } else {
                    self.analyzer.bind_facts_of(var, &new);
                }
                if new.same_node(value) {
                    stmt.clone()
                } else {
                    Stmt::bind(var, new, stmt.span)
                }
            }
            StmtKind::Attr(Attr {
                node,
                key,
                value,
                body,
            }) => {
                let new = self.expr(value);
                let body2 = match node {
                    AttrNode::IterVar(iv) if matches!(&**key, keys::THREAD_EXTENT | keys::VIRTUAL_THREAD) => {
                        let zero = Expr::constant(iv.var.dtype(), 0);
                        let extent = fold::cast(new.clone(), iv.var.dtype());
                        self.loop_body(&iv.var, &zero, &extent, body)
                    }
                    _ => self.stmt(body),
                };
                if new.same_node(value) && body2.same_node(body) {
                    return stmt.clone();
                }
                Stmt::attr(node.clone(), key.clone(), new, body2, stmt.span)
            }
            StmtKind::For(l) => {
                let (m, e) = (self.expr(&l.min), self.expr(&l.extent));
                let s = l.step.as_ref().map(|s| self.expr(s));
                // A thread index keeps its name even where it is always zero.
                let body = if l.kind == ForKind::ThreadBinding && e.is_int(1) {
                    let scope = self.analyzer.scope();
                    self.analyzer.bind_value(&l.var, &m);
                    let body = self.stmt(&l.body);
                    self.analyzer.leave(scope);
                    body
                } else {
                    let vectorized = l.kind == ForKind::Vectorized;
                    let around = vectorized.then(|| self.analyzer.within_lanes(true));
                    let body = self.loop_body(&l.var, &m, &e, &l.body);
                    if let Some(around) = around {
                        self.analyzer.within_lanes(around);
                    }
                    body
                };
                let unchanged = m.same_node(&l.min)
                    && e.same_node(&l.extent)
                    && s.iter().zip(&l.step).all(|(a, b)| a.same_node(b))
                    && body.same_node(&l.body);
                if unchanged {
                    return stmt.clone();
                }
                let new = ForLoop {
                    min: m,
                    extent: e,
                    step: s,
                    body,
                    ..l.clone()
                };
                Stmt::new(new, stmt.span)
            }
            StmtKind::If(condition, then, otherwise) => {
                let c = self.expr(condition);
                let real = without_likely(&c);
                match real.as_int() {
                    Some(0) => return otherwise.as_ref().map_or_else(Stmt::nop, |s| self.stmt(s)),
                    Some(_) => return self.stmt(then),
                    None => {}
                }
                let t = self.body_under(real, then);
                let o = otherwise.as_ref().map(|s| {
                    let not = fold::not(real.clone());
                    self.body_under(&not, s)
                });
                let o = o.filter(|s| !s.is_nop());
                if t.is_nop() && o.is_none() && !crate::arith::has_effect(&c) {
                    return Stmt::nop();
                }
                let same_else = match (&o, otherwise) {
                    (Some(a), Some(b)) => a.same_node(b),
                    (None, None) => true,
                    _ => false,
                };
                if c.same_node(condition) && t.same_node(then) && same_else {
                    return stmt.clone();
                }
                Stmt::if_else(c, t, o, stmt.span)
            }
            StmtKind::While(condition, body) => {
                let c = self.expr(condition);
                if c.is_int(0) {
                    return Stmt::nop();
                }
                let b = self.stmt(body);
                if c.same_node(condition) && b.same_node(body) {
                    return stmt.clone();
                }
                Stmt::new(StmtKind::While(c, b), stmt.span)
            }
            StmtKind::Assert(Assert { condition, .. }) => {
                let new = self.walk_stmt(stmt);
                // An assertion's condition holds from here on; the walk leaves the scopes around this statement.
                let condition = match &new.kind {
                    StmtKind::Assert(Assert { condition, .. }) => condition,
                    _ => condition,
                };
                let _ = self.analyzer.enter_constraint(condition);
                new
            }
            StmtKind::BufferStore(_) => {
                let new = self.walk_stmt(stmt);
                if stores_itself(&new) { Stmt::nop() } else { new }
            }
            _ => self.walk_stmt(stmt),
        }
    }
}
