//! LowerTIRxOpaque: removes what remains of the language above plain TIR.
//!
//! **Phases**, in one walk: loops of kind `ThreadBinding` become `thread_extent` attributes again, the form in which
//! the later passes and code generation know the launch; loops that run once and carry no annotation become their
//! body, with the variable replaced by its only value; `pragma_*` annotations of a loop become attributes around it.
//!
//! **Invariants.** A loop whose body leaves it by `break` or `continue` stays a loop.
//!
//! **Cost.** One walk, and one more of the body of each loop that runs once.

use crate::ir::abi::keys;
use rustc_hash::FxHashMap;

use super::PassContext;
use crate::diagnostic::{Diagnostics, Result};
use crate::intrin::Op;
use crate::ir::{
    AttrNode, AttrValue, Expr, ExprKind, ForKind, ForLoop, IRModule, IterKind, IterVar, Mutator, PrimFunc,
    Stmt, StmtKind, Var, Visitor,
};

/// Lowers every function.
pub fn run(module: IRModule, _context: &PassContext) -> Result<IRModule, Diagnostics> {
    Ok(module.map(|func| {
        let body = Opaque::default().stmt(&func.body);
        PrimFunc { body, ..func }
    }))
}

#[derive(Default)]
struct Opaque {
    /// The single values of the variables of removed loops.
    values: FxHashMap<Var, Expr>,
}

impl Mutator for Opaque {
    fn expr(&mut self, expr: &Expr) -> Expr {
        match &expr.kind {
            ExprKind::Var(v) => match self.values.get(v) {
                Some(value) => value.clone().at(expr.span),
                None => expr.clone(),
            },
            _ if self.values.is_empty() => expr.clone(),
            _ => self.walk_expr(expr),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        let StmtKind::For(l) = &stmt.kind else {
            return self.walk_stmt(stmt);
        };
        if let (ForKind::ThreadBinding, Some(thread)) = (l.kind, &l.thread) {
            let iter = IterVar {
                var: l.var.clone(),
                dom: None,
                kind: IterKind::ThreadIndex,
                thread_tag: thread.thread_tag.clone(),
            };
            let key = if thread.thread_tag.starts_with("vthread") {
                keys::VIRTUAL_THREAD
            } else {
                keys::THREAD_EXTENT
            };
            let extent = self.expr(&l.extent);
            let body = self.stmt(&l.body);
            return Stmt::attr(AttrNode::IterVar(iter), key, extent, body, stmt.span);
        }
        if l.extent.is_int(1) && l.annotations.is_empty() && !jumps(&l.body) {
            let value = self.expr(&l.min);
            self.values.insert(l.var.clone(), value);
            return self.stmt(&l.body);
        }
        // How many turns to unroll is what the loop's own text says: `#pragma unroll 2`.
        let becomes_attribute = |key: &str| key.starts_with("pragma_") && key != "pragma_unroll_factor";
        if !l.annotations.iter().any(|(key, _)| becomes_attribute(key)) {
            return self.walk_stmt(stmt);
        }
        let (pragmas, annotations): (Vec<_>, Vec<_>) = l
            .annotations
            .iter()
            .cloned()
            .partition(|(key, value)| becomes_attribute(key) && to_expr(value).is_some());
        let plain = ForLoop {
            annotations,
            ..l.clone()
        };
        let mut result = self.walk_stmt(&Stmt::new(plain, stmt.span));
        for (key, value) in pragmas.into_iter().rev() {
            if let Some(value) = to_expr(&value) {
                result = Stmt::attr(AttrNode::None, key, value, result, stmt.span);
            }
        }
        result
    }
}

fn to_expr(value: &AttrValue) -> Option<Expr> {
    match value {
        AttrValue::Bool(v) => Some(Expr::bool(*v)),
        AttrValue::Int(v) => Some(Expr::constant(crate::ir::DType::INT32, *v as i128)),
        AttrValue::Str(s) => Some(Expr::string(s.clone())),
        AttrValue::Expr(e) => Some(e.clone()),
        _ => None,
    }
}

/// Whether `body` has a `break` or `continue` of the loop around it.
fn jumps(body: &Stmt) -> bool {
    struct Jumps(bool);
    impl Visitor for Jumps {
        fn visit_expr(&mut self, _: &Expr) {}
        fn visit_stmt(&mut self, stmt: &Stmt) {
            match &stmt.kind {
                // Inner loops have their own.
                StmtKind::For(_) | StmtKind::While(..) => {}
                StmtKind::Evaluate(e) => {
                    self.0 |= e.as_call(Op::BreakLoop).is_some() || e.as_call(Op::ContinueLoop).is_some()
                }
                _ => self.walk_stmt(stmt),
            }
        }
    }
    let mut jumps = Jumps(false);
    jumps.visit_stmt(body);
    jumps.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Attr, DType};
    use crate::source::Span;

    fn lower(stmt: &Stmt) -> Stmt {
        Opaque::default().stmt(stmt)
    }

    #[test]
    fn a_loop_that_runs_once_is_its_body() {
        let i = Var::new("i", DType::INT32);
        let once = |body: Stmt| Stmt::for_serial(&i, Expr::int32(1), body, Span::NONE);
        let lowered = lower(&once(Stmt::evaluate(Expr::var(&i) + Expr::int32(2))));
        let StmtKind::Evaluate(e) = &lowered.kind else {
            panic!("{lowered:?}")
        };
        assert_eq!(*e, Expr::int32(0) + Expr::int32(2));

        let leaves = once(Stmt::evaluate(Expr::call(Op::BreakLoop, DType::VOID, vec![])));
        assert!(matches!(lower(&leaves).kind, StmtKind::For(_)));
    }

    #[test]
    fn pragmas_become_attributes() {
        let i = Var::new("i", DType::INT32);
        let kind = StmtKind::For(ForLoop {
            var: i.clone(),
            min: Expr::int32(0),
            extent: Expr::int32(4),
            kind: ForKind::Serial,
            thread: None,
            annotations: vec![
                ("foo".into(), AttrValue::Int(1)),
                ("pragma_unroll_factor".into(), AttrValue::Int(2)),
                ("pragma_unroll_explicit".into(), AttrValue::Bool(true)),
            ],
            step: None,
            body: Stmt::evaluate(Expr::var(&i)),
        });
        let lowered = lower(&Stmt::new(kind, Span::NONE));
        let StmtKind::Attr(Attr { key, body, .. }) = &lowered.kind else {
            panic!("{lowered:?}")
        };
        assert_eq!(&**key, "pragma_unroll_explicit");
        let StmtKind::For(ForLoop { annotations, .. }) = &body.kind else {
            panic!("{body:?}")
        };
        // The CUDA text of the loop reads the factor.
        assert_eq!(annotations.len(), 2);
    }
}
