//! Statements and functions.

use std::sync::Arc;

use super::{Comparison, Outcome, Step};
use crate::ir::{AttrValue, DType, ForLoop, PrimFunc, Stmt, StmtKind, TileArg, TileCall, Type, print_stmt};

impl Comparison {
    pub(super) fn stmt(&mut self, a: &Stmt, b: &Stmt) -> Outcome {
        use StmtKind::*;
        match (&a.kind, &b.kind) {
            (Seq(x), Seq(y)) => {
                for (i, (s, t)) in x.iter().zip(y).enumerate() {
                    self.at(Step::Index(i), |state| state.stmt(s, t))?;
                }
                if x.len() != y.len() {
                    let rest = |list: &[Stmt], n: usize| list.get(n).map_or("the end".into(), print_stmt);
                    let n = x.len().min(y.len());
                    return self.differ(rest(x, n), rest(y, n));
                }
                Ok(())
            }
            (Bind(v, x), Bind(w, y)) => {
                self.field("value", |s| s.expr(x, y))?;
                self.at(Step::Name(v.name_arc()), |s| s.bind(v, w))
            }
            (Attr(x), Attr(y)) => {
                self.field("key", |s| s.same(&x.key, &y.key))?;
                self.field("value", |s| s.expr(&x.value, &y.value))?;
                self.field("node", |s| s.attr_node(&x.key, &x.node, &y.node))?;
                self.field("body", |s| s.stmt(&x.body, &y.body))
            }
            (BufferStore(x), BufferStore(y)) => {
                self.field("buffer", |s| s.buffer_use(&x.buffer, &y.buffer))?;
                self.field("indices", |s| s.exprs(&x.indices, &y.indices))?;
                self.field("value", |s| s.expr(&x.value, &y.value))?;
                self.field("predicate", |s| s.option(&x.predicate, &y.predicate))
            }
            (AllocBuffer(x, m), AllocBuffer(y, n)) => {
                self.buffer(x, y)?;
                let pairs = |list: &'_ [(Arc<str>, AttrValue)]| list.to_vec();
                let (m, n) = (pairs(m), pairs(n));
                self.field("annotations", |s| {
                    s.attrs(m.iter().map(|(k, v)| (k, v)), n.iter().map(|(k, v)| (k, v)))
                })
            }
            (DeclBuffer(x), DeclBuffer(y)) => self.buffer(x, y),
            (ScopeId(x), ScopeId(y)) => {
                self.same(&x.kind, &y.kind)?;
                for (p, q) in [(&x.extents, &y.extents), (&x.preferred, &y.preferred)] {
                    self.same(&p.is_some(), &q.is_some())?;
                    self.exprs(p.as_deref().unwrap_or(&[]), q.as_deref().unwrap_or(&[]))?;
                }
                self.same(&x.vars.len(), &y.vars.len())?;
                x.vars.iter().zip(&y.vars).try_for_each(|(v, w)| self.bind(v, w))
            }
            (Evaluate(x), Evaluate(y)) => self.expr(x, y),
            (For(x), For(y)) => {
                self.field("kind", |s| s.same(&x.kind, &y.kind))?;
                self.field("min", |s| s.expr(&x.min, &y.min))?;
                self.field("extent", |s| s.expr(&x.extent, &y.extent))?;
                self.field("step", |s| s.option(&x.step, &y.step))?;
                let tag = |l: &ForLoop| l.thread.as_ref().map(|t| t.thread_tag.clone());
                self.field("thread", |s| s.same(&tag(x), &tag(y)))?;
                self.field("annotations", |s| {
                    let (a, b) = (&x.annotations, &y.annotations);
                    s.attrs(a.iter().map(|(k, v)| (k, v)), b.iter().map(|(k, v)| (k, v)))
                })?;
                self.field("var", |s| s.bind(&x.var, &y.var))?;
                self.field("body", |s| s.stmt(&x.body, &y.body))
            }
            (While(c, x), While(d, y)) => {
                self.field("condition", |s| s.expr(c, d))?;
                self.field("body", |s| s.stmt(x, y))
            }
            (If(c, x, other_x), If(d, y, other_y)) => {
                self.field("condition", |s| s.expr(c, d))?;
                self.field("then", |s| s.stmt(x, y))?;
                match (other_x, other_y) {
                    (None, None) => Ok(()),
                    (Some(x), Some(y)) => self.field("else", |s| s.stmt(x, y)),
                    _ => self.differ(print_stmt(a), print_stmt(b)),
                }
            }
            (Assert(x), Assert(y)) => {
                self.field("condition", |s| s.expr(&x.condition, &y.condition))?;
                self.field("kind", |s| s.same(&x.kind, &y.kind))?;
                self.field("message", |s| s.same(&x.message, &y.message))
            }
            (Tile(x), Tile(y)) if x.op == y.op && x.args.len() == y.args.len() => self.tile(x, y),
            _ => self.differ(print_stmt(a), print_stmt(b)),
        }
    }

    pub(super) fn tile(&mut self, a: &TileCall, b: &TileCall) -> Outcome {
        self.field("scope", |s| s.same(&a.scope, &b.scope))?;
        for (i, (x, y)) in a.args.iter().zip(&b.args).enumerate() {
            self.at(Step::Index(i), |s| match (x, y) {
                (TileArg::None, TileArg::None) => Ok(()),
                (TileArg::Region(x), TileArg::Region(y)) => {
                    s.field("buffer", |s| s.buffer_use(&x.buffer, &y.buffer))?;
                    s.field("starts", |s| s.exprs(&x.starts(), &y.starts()))?;
                    s.field("extents", |s| s.exprs(&x.extents(), &y.extents()))
                }
                (TileArg::Expr(x), TileArg::Expr(y)) => s.expr(x, y),
                (TileArg::Axes(x), TileArg::Axes(y)) => s.same(x, y),
                (TileArg::Operation(x), TileArg::Operation(y)) => s.same(x, y),
                (TileArg::Lambda(v, x), TileArg::Lambda(w, y)) => {
                    s.same(&v.len(), &w.len())?;
                    v.iter().zip(w).try_for_each(|(v, w)| s.bind(v, w))?;
                    s.expr(x, y)
                }
                (TileArg::Body(x), TileArg::Body(y)) => s.stmt(x, y),
                _ => s.differ(format!("{x:?}"), format!("{y:?}")),
            })?;
        }
        self.field("workspace", |s| {
            s.same(&a.workspace.len(), &b.workspace.len())?;
            a.workspace.iter().zip(&b.workspace).try_for_each(|(x, y)| {
                s.same(&x.0, &y.0)?;
                s.buffer_use(&x.1, &y.1)
            })
        })?;
        self.field("config", |s| s.attrs(&a.config, &b.config))?;
        self.field("dispatch", |s| s.same(&a.dispatch, &b.dispatch))
    }

    pub(super) fn func(&mut self, a: &PrimFunc, b: &PrimFunc) -> Outcome {
        self.field("params", |s| {
            s.same(&a.params.len(), &b.params.len())?;
            a.params
                .iter()
                .zip(&b.params)
                .try_for_each(|(v, w)| s.at(Step::Name(v.name_arc()), |s| s.bind(v, w)))
        })?;
        for (v, w) in a.params.iter().zip(&b.params) {
            match (a.buffer_of(v), b.buffer_of(w)) {
                (Some(x), Some(y)) => self.buffer(x, y)?,
                (None, None) => {}
                _ => return self.differ(v.name(), w.name()),
            }
        }
        let ret = |f: &PrimFunc| f.ret.clone().unwrap_or(Type::Prim(DType::VOID));
        self.field("ret", |s| s.ty(&ret(a), &ret(b)))?;
        self.field("attrs", |s| s.attrs(&a.attrs, &b.attrs))?;
        self.field("body", |s| s.stmt(&a.body, &b.body))
    }
}
