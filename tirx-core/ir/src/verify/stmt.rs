//! Statements: the dtypes that they take, and what they declare.

use super::Verifier;
use crate::ir::abi::keys;
use crate::ir::{
    Assert, Attr, AttrNode, BufferStore, DType, Expr, ForKind, ForLoop, ScopeIdDef, Stmt, StmtKind, Type,
    print_expr, print_stmt,
};
use crate::source::Span;

impl Verifier<'_> {
    pub(super) fn stmt(&mut self, stmt: &Stmt) {
        let outer = self.span;
        self.span = stmt.span.or(outer);
        match &stmt.kind {
            StmtKind::Bind(var, value) => {
                self.expr(value);
                self.bound(stmt.span, var, value);
                self.define(var, stmt.span);
            }
            StmtKind::Attr(Attr {
                node,
                key,
                value,
                body,
            }) => self.attr(node, key, value, body),
            StmtKind::BufferStore(BufferStore {
                buffer,
                indices,
                value,
                predicate,
            }) => {
                self.expr(value);
                self.exprs(indices);
                predicate.iter().for_each(|p| self.expr(p));
                let place = self.access(stmt.span, buffer, indices, predicate.as_ref());
                self.check(value.dtype == place, stmt.span, || {
                    format!(
                        "a {} is stored to a place of {place} in `{}`",
                        value.dtype,
                        print_stmt(stmt).trim_end()
                    )
                });
            }
            StmtKind::AllocBuffer(buffer, _) => {
                self.define(&buffer.data, buffer.span);
                self.description(buffer);
                let pointer = matches!(buffer.data.ty(), Type::Pointer { .. });
                self.check(pointer, buffer.span, || {
                    format!("the data of buffer {} is no typed pointer", buffer.name)
                });
                self.declare(buffer);
            }
            StmtKind::DeclBuffer(buffer) => {
                if !self.vars.contains(&buffer.data) {
                    // Tensor memory has addresses instead of pointers.
                    self.check(buffer.scope() == "tmem", buffer.span, || {
                        format!("the data of buffer {} is used outside of its scope", buffer.name)
                    });
                    self.define(&buffer.data, buffer.span);
                }
                // The extent of a flat view is not computed: in a kernel it may mention variables that only the host
                // knows.
                if buffer.shape.len() == 1 {
                    buffer.shape.iter().for_each(|e| self.define_free(e));
                }
                self.description(buffer);
                self.declare(buffer);
            }
            StmtKind::ScopeId(def) => self.scope_id(def, stmt.span),
            StmtKind::Seq(stmts) => {
                for stmt in stmts {
                    self.check(!matches!(stmt.kind, StmtKind::Seq(_)), stmt.span, || {
                        "a Seq within a Seq".into()
                    });
                    self.stmt(stmt);
                }
            }
            StmtKind::Evaluate(e) => self.expr(e),
            StmtKind::For(ForLoop {
                var,
                min,
                extent,
                kind,
                thread,
                step,
                body,
                ..
            }) => {
                for bound in [Some(min), Some(extent), step.as_ref()].into_iter().flatten() {
                    self.expr(bound);
                    self.check(bound.dtype == var.dtype(), stmt.span, || {
                        format!(
                            "loop over {} {} is bounded by a {}",
                            var.dtype(),
                            var.name(),
                            bound.dtype
                        )
                    });
                }
                let integer = var.dtype().is_integer() && var.dtype().is_scalar();
                self.check(integer, stmt.span, || {
                    format!("loop variable {} is {}", var.name(), var.dtype())
                });
                self.check(
                    thread.is_some() == (*kind == ForKind::ThreadBinding),
                    stmt.span,
                    || {
                        format!(
                            "loop over {} is {kind:?} and its hardware index {thread:?}",
                            var.name()
                        )
                    },
                );
                self.loops += 1;
                self.scope(|s| {
                    s.define(var, stmt.span);
                    s.stmt(body);
                });
                self.loops -= 1;
            }
            StmtKind::While(condition, body) => {
                self.condition(condition);
                self.loops += 1;
                self.body(body);
                self.loops -= 1;
            }
            StmtKind::If(condition, then, otherwise) => {
                self.condition(condition);
                self.body(then);
                otherwise.iter().for_each(|s| self.body(s));
            }
            StmtKind::Assert(Assert { condition, .. }) => self.condition(condition),
            StmtKind::Tile(call) => self.tile(call, stmt.span),
        }
        self.span = outer;
    }

    pub(super) fn body(&mut self, body: &Stmt) {
        self.scope(|s| s.stmt(body));
    }

    pub(super) fn condition(&mut self, e: &Expr) {
        self.expr(e);
        self.check(e.dtype == DType::BOOL, e.span, || {
            format!("condition `{}` is {}", print_expr(e), e.dtype)
        });
    }

    pub(super) fn attr(&mut self, node: &AttrNode, key: &str, value: &Expr, body: &Stmt) {
        self.expr(value);
        self.scope(|s| {
            match node {
                AttrNode::IterVar(iter_var) => {
                    // A region may bind an index that an outer region binds already: it is the same hardware index.
                    if !s.vars.contains(&iter_var.var) {
                        s.define(&iter_var.var, iter_var.var.span());
                    }
                    let extent = value.dtype.is_integer() && value.dtype.is_scalar();
                    s.check(extent || key != keys::THREAD_EXTENT, value.span, || {
                        format!("the extent of {} is {}", iter_var.thread_tag, value.dtype)
                    });
                }
                AttrNode::Expr(e) => s.expr(e),
                AttrNode::Dict(items) => items
                    .iter()
                    .for_each(|(_, v)| v.for_each_expr(&mut |e| s.expr(e))),
                AttrNode::Buffer(_) | AttrNode::None | AttrNode::Str(_) => {}
            }
            s.stmt(body);
        });
    }

    pub(super) fn scope_id(&mut self, def: &ScopeIdDef, span: Span) {
        for list in [&def.extents, &def.preferred].into_iter().flatten() {
            self.exprs(list);
            let ok = list.len() == def.vars.len() && list.iter().all(|e| e.dtype.is_integer());
            self.check(ok, span, || {
                format!(
                    "extents of T.{} do not fit its {} ids",
                    def.kind.name(),
                    def.vars.len()
                )
            });
        }
        def.vars.iter().for_each(|v| self.define(v, span));
    }
}
