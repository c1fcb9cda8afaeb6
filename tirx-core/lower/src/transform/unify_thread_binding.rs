//! UnifyThreadBinding: binds each hardware index of a launch once.
//!
//! **Idea.** A launch may be written as nested attributes (`T.launch_thread`) or loops (`T.thread_binding`), and may
//! bind the same hardware index several times, nested or one after the other. They all mean the same index, so the
//! launch — from its outermost binding inwards — gets one loop of kind `ThreadBinding` for each index, in order of
//! first appearance, and every other binding becomes that loop's variable.
//!
//! **Invariants.** Bindings of one index in one launch have one extent; two launches side by side stay two. An extent
//! is computed outside the launch, so it may read only what is known there; values bound inside are written out.
//! Virtual threads (`vthread`) are no hardware index and stay.
//!
//! **Cost.** One walk.

use crate::ir::abi::keys;
use rustc_hash::FxHashMap;

use super::PassContext;
use crate::arith::{Analyzer, fold};
use crate::diagnostic::{Diagnostic, Diagnostics, Result};
use crate::ir::{
    Attr, AttrNode, Expr, ExprKind, ForKind, ForLoop, IRModule, IterKind, IterVar, Mutator, PrimFunc, Stmt,
    StmtKind, Var, is_pure, substitute,
};
use crate::source::Span;
use std::sync::Arc;

/// Unifies the bindings of every function.
pub fn run(module: IRModule, _context: &PassContext) -> Result<IRModule, Diagnostics> {
    module.try_map(|func| Ok(unify(func)?))
}

fn unify(func: PrimFunc) -> Result<PrimFunc> {
    let mut pass = Unify::default();
    let body = pass.stmt(&func.body);
    match pass.failed {
        Some(error) => Err(error),
        None => Ok(PrimFunc { body, ..func }),
    }
}

/// One hardware index of the current launch.
struct Axis {
    tag: Arc<str>,
    var: Var,
    extent: Expr,
    span: Span,
}

#[derive(Default)]
struct Unify {
    /// The current launch; `None` on the host.
    launch: Option<Vec<Axis>>,
    /// Replacements for the variables of bindings.
    replaced: FxHashMap<Var, Expr>,
    /// Values bound inside the launch.
    inside: FxHashMap<Var, Expr>,
    failed: Option<Box<Diagnostic>>,
}

impl Unify {
    /// A binding of `tag` around `body`.
    fn bind(
        &mut self,
        tag: &Arc<str>,
        var: &Var,
        min: Option<&Expr>,
        extent: &Expr,
        body: &Stmt,
        span: Span,
    ) -> Stmt {
        let outermost = self.launch.is_none();
        let axes = self.launch.get_or_insert_default();
        let extent = substitute(extent, &|v| self.inside.get(v).cloned());
        let axis = match axes.iter().find(|a| a.tag == *tag) {
            Some(axis) => {
                if !same_extent(&axis.extent, &extent) && self.failed.is_none() {
                    self.failed = Some(Box::new(disagreement(tag, axis, &extent, span)));
                }
                axis.var.clone()
            }
            None => {
                let name = tag.replace('.', "_");
                let axis_var = if var.name() == name {
                    var.clone()
                } else {
                    var.renamed(name)
                };
                axes.push(Axis {
                    tag: tag.clone(),
                    var: axis_var.clone(),
                    extent,
                    span,
                });
                axis_var
            }
        };
        let value = match min {
            Some(min) if !min.is_int(0) => fold::add(self.expr(min), Expr::var(&axis)),
            _ => Expr::var(&axis),
        };
        if *var != axis {
            self.replaced.insert(var.clone(), value);
        }
        let mut body = self.stmt(body);
        if outermost {
            self.inside.clear();
            for axis in self.launch.take().unwrap_or_default().into_iter().rev() {
                body = axis.around(body);
            }
        }
        body
    }
}

impl Axis {
    fn around(self, body: Stmt) -> Stmt {
        let thread = IterVar {
            var: Var::at("", self.var.dtype(), self.span),
            dom: None,
            kind: IterKind::ThreadIndex,
            thread_tag: self.tag,
        };
        let axis = ForLoop {
            min: Expr::constant(self.var.dtype(), 0),
            thread: Some(thread),
            ..ForLoop::new(ForKind::ThreadBinding, &self.var, self.extent, body)
        };
        Stmt::new(axis, self.span)
    }
}

fn same_extent(a: &Expr, b: &Expr) -> bool {
    match (a.as_int(), b.as_int()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b || Analyzer::new().can_prove_equal(a, b),
    }
}

fn disagreement(tag: &str, axis: &Axis, extent: &Expr, span: Span) -> Diagnostic {
    let message = match (axis.extent.as_int(), extent.as_int()) {
        (Some(one), Some(other)) => {
            format!("{tag} is bound with extent {other} here and {one} elsewhere in this launch")
        }
        _ => format!("{tag} is bound with two extents in this launch that cannot be proved equal"),
    };
    Diagnostic::new(span, message).note(axis.span, "the other binding")
}

/// A hardware index; other kinds are left alone.
fn is_hardware(tag: &str) -> bool {
    [
        "blockIdx.",
        "threadIdx.",
        "clusterCtaIdx.",
        "preferredClusterCtaIdx.",
    ]
    .iter()
    .any(|prefix| tag.starts_with(prefix))
}

impl Mutator for Unify {
    fn expr(&mut self, expr: &Expr) -> Expr {
        match &expr.kind {
            ExprKind::Var(v) => match self.replaced.get(v) {
                Some(value) => value.clone().at(expr.span),
                None => expr.clone(),
            },
            _ if self.replaced.is_empty() => expr.clone(),
            _ => self.walk_expr(expr),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
            StmtKind::Attr(Attr {
                node: AttrNode::IterVar(iter),
                key,
                value,
                body,
            }) if &**key == keys::THREAD_EXTENT && is_hardware(&iter.thread_tag) => {
                let extent = self.expr(value);
                self.bind(&iter.thread_tag, &iter.var, None, &extent, body, stmt.span)
            }
            StmtKind::For(ForLoop {
                var,
                min,
                extent,
                kind: ForKind::ThreadBinding,
                thread: Some(thread),
                body,
                ..
            }) if is_hardware(&thread.thread_tag) => {
                let extent = self.expr(extent);
                self.bind(&thread.thread_tag, var, Some(min), &extent, body, stmt.span)
            }
            StmtKind::Bind(var, value) if self.launch.is_some() => {
                let new = self.walk_stmt(stmt);
                let value = match &new.kind {
                    StmtKind::Bind(_, value) => value,
                    _ => value,
                };
                if is_pure(value) {
                    let value = substitute(value, &|v| self.inside.get(v).cloned());
                    self.inside.insert(var.clone(), value);
                }
                new
            }
            _ => self.walk_stmt(stmt),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Attrs, DType};

    fn launch(tag: &str, name: &str, extent: i32, body: impl FnOnce(&Var) -> Stmt) -> Stmt {
        let var = Var::new(name, DType::INT32);
        let body = body(&var);
        let iter = IterVar {
            var,
            dom: None,
            kind: IterKind::ThreadIndex,
            thread_tag: tag.into(),
        };
        Stmt::attr(
            AttrNode::IterVar(iter),
            "thread_extent",
            Expr::int32(extent),
            body,
            Span::NONE,
        )
    }

    fn function(body: Stmt) -> PrimFunc {
        PrimFunc {
            params: vec![],
            buffer_map: vec![],
            ret: None,
            attrs: Attrs::new(),
            body,
            span: Span::NONE,
        }
    }

    #[test]
    fn siblings_share_the_index_of_their_launch() {
        let use_it = |v: &Var| Stmt::evaluate(Expr::var(v) + Expr::int32(1));
        let body = launch("blockIdx.x", "b", 4, |_| {
            Stmt::seq([
                launch("threadIdx.x", "t", 16, use_it),
                launch("threadIdx.x", "u", 16, use_it),
            ])
        });
        let unified = unify(function(body)).unwrap();
        let StmtKind::For(ForLoop { var, body, .. }) = &unified.body.kind else {
            panic!()
        };
        assert_eq!(var.name(), "blockIdx_x");
        let StmtKind::For(ForLoop { var, body, .. }) = &body.kind else {
            panic!()
        };
        assert_eq!(var.name(), "threadIdx_x");
        let both = body.as_slice();
        assert_eq!(both.len(), 2);
        for one in both {
            let StmtKind::Evaluate(e) = &one.kind else {
                panic!()
            };
            assert_eq!(*e, Expr::var(var) + Expr::int32(1));
        }
    }

    #[test]
    fn extents_must_agree_within_a_launch() {
        let nothing = |v: &Var| Stmt::evaluate(Expr::var(v));
        let body = launch("blockIdx.x", "b", 4, |_| {
            Stmt::seq([
                launch("threadIdx.x", "t", 32, nothing),
                launch("threadIdx.x", "u", 64, nothing),
            ])
        });
        let error = unify(function(body)).unwrap_err();
        assert_eq!(
            error.message,
            "threadIdx.x is bound with extent 64 here and 32 elsewhere in this launch"
        );
        let apart = Stmt::seq([
            launch("threadIdx.x", "t", 32, nothing),
            launch("threadIdx.x", "u", 64, nothing),
        ]);
        assert_eq!(unify(function(apart)).unwrap().body.as_slice().len(), 2);
    }
}
