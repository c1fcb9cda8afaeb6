//! Rewriting walks. Unchanged nodes are shared, not copied.

use rustc_hash::FxHashMap;

use super::changed::map_changed;
use super::{
    Assert, Attr, AttrNode, Buffer, BufferStore, Expr, ExprKind, ForLoop, IterVar, ScopeIdDef, Stmt,
    StmtKind, TileArg, TileCall, Var,
};

/// Rebuilds a tree. Override what you change and call the `walk_*` method for the rest. Spans are kept.
///
/// Buffers and bound variables map to themselves by default. A mutator that replaces them must do so at the
/// definition and at every use alike.
pub trait Mutator {
    /// An expression.
    fn expr(&mut self, expr: &Expr) -> Expr {
        self.walk_expr(expr)
    }

    /// A statement.
    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        self.walk_stmt(stmt)
    }

    /// The body of a loop or of an attribute, or a branch of a condition.
    fn body(&mut self, body: &Stmt) -> Stmt {
        self.stmt(body)
    }

    /// A variable that is bound here.
    fn var_def(&mut self, var: &Var) -> Var {
        var.clone()
    }

    /// A buffer that is declared here.
    fn buffer_def(&mut self, buffer: &Buffer) -> Buffer {
        self.buffer_use(buffer)
    }

    /// A buffer that is read or written here.
    fn buffer_use(&mut self, buffer: &Buffer) -> Buffer {
        buffer.clone()
    }

    /// Each expression of a list.
    fn exprs(&mut self, exprs: &[Expr]) -> Vec<Expr> {
        exprs.iter().map(|e| self.expr(e)).collect()
    }

    /// Each element of a list, if any changed; most lists do not change and need no copy.
    fn changed_exprs(&mut self, exprs: &[Expr]) -> Option<Vec<Expr>> {
        map_exprs(exprs, |e| self.expr(e))
    }

    /// Rebuilds an expression from its changed operands. The dtype follows the operands where the kind says so.
    fn walk_expr(&mut self, expr: &Expr) -> Expr {
        let same = |a: &Expr, b: &Expr| a.same_node(b);
        let all_same = |a: &[Expr], b: &[Expr]| a.iter().zip(b).all(|(x, y)| x.same_node(y));
        let keep = || expr.clone();
        let span = expr.span;
        match &expr.kind {
            ExprKind::Var(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Str(_) => keep(),
            ExprKind::Cast(a) => {
                let b = self.expr(a);
                if same(a, &b) {
                    keep()
                } else {
                    b.cast(expr.dtype).at(span)
                }
            }
            ExprKind::Not(a) => {
                let b = self.expr(a);
                if same(a, &b) {
                    keep()
                } else {
                    Expr::logical_not(b).at(span)
                }
            }
            ExprKind::Binary(op, a, b) => {
                let (c, d) = (self.expr(a), self.expr(b));
                if same(a, &c) && same(b, &d) {
                    keep()
                } else {
                    Expr::binary(*op, c, d).at(span)
                }
            }
            ExprKind::Select(c, t, f) => {
                let (c2, t2, f2) = (self.expr(c), self.expr(t), self.expr(f));
                if same(c, &c2) && same(t, &t2) && same(f, &f2) {
                    keep()
                } else {
                    Expr::select(c2, t2, f2).at(span)
                }
            }
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate,
            } => {
                let b = self.buffer_use(buffer);
                let i = self.changed_exprs(indices);
                let p = predicate.as_ref().map(|p| self.expr(p));
                let p_same = predicate.iter().zip(&p).all(|(a, b)| a.same_node(b));
                if b == *buffer && i.is_none() && p_same {
                    return keep();
                }
                let i = i.unwrap_or_else(|| indices.clone());
                let lanes: u16 = i.iter().map(|e| e.dtype.lanes).product();
                let dtype = b.dtype.with_lanes(b.dtype.lanes * lanes);
                Expr::new(
                    ExprKind::BufferLoad {
                        buffer: b,
                        indices: i,
                        predicate: p,
                    },
                    dtype,
                    span,
                )
            }
            ExprKind::Ramp { base, stride, lanes } => {
                let (b, s) = (self.expr(base), self.expr(stride));
                if same(base, &b) && same(stride, &s) {
                    keep()
                } else {
                    Expr::ramp(b, s, *lanes).at(span)
                }
            }
            ExprKind::Broadcast { value, lanes } => {
                let v = self.expr(value);
                if same(value, &v) {
                    keep()
                } else {
                    Expr::broadcast(v, *lanes).at(span)
                }
            }
            ExprKind::Shuffle { vectors, indices } => {
                let (v, i) = (self.exprs(vectors), self.exprs(indices));
                if all_same(vectors, &v) && all_same(indices, &i) {
                    return keep();
                }
                Expr::new(
                    ExprKind::Shuffle {
                        vectors: v,
                        indices: i,
                    },
                    expr.dtype,
                    span,
                )
            }
            ExprKind::Call { op, args } => {
                let Some(a) = self.changed_exprs(args) else {
                    return keep();
                };
                Expr::new(ExprKind::Call { op: *op, args: a }, expr.dtype, span)
            }
            ExprKind::Let(var, value, body) => {
                let v2 = self.expr(value);
                let var2 = self.var_def(var);
                let b2 = self.expr(body);
                if same(value, &v2) && var2 == *var && same(body, &b2) {
                    keep()
                } else {
                    Expr::let_in(&var2, v2, b2).at(span)
                }
            }
        }
    }

    /// Rebuilds a statement from its changed parts. Sequences are spliced and lose their no-ops.
    fn walk_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let changed: Option<StmtKind> = match &stmt.kind {
            StmtKind::Bind(var, value) => {
                let (v, var2) = (self.expr(value), self.var_def(var));
                (!v.same_node(value) || var2 != *var).then_some(StmtKind::Bind(var2, v))
            }
            StmtKind::Attr(attr) => attr.map(self).map(StmtKind::Attr),
            StmtKind::BufferStore(store) => store.map(self).map(StmtKind::BufferStore),
            StmtKind::AllocBuffer(buffer, annotations) => {
                let b = self.buffer_def(buffer);
                (b != *buffer).then(|| StmtKind::AllocBuffer(b, annotations.clone()))
            }
            StmtKind::DeclBuffer(buffer) => {
                let b = self.buffer_def(buffer);
                (b != *buffer).then_some(StmtKind::DeclBuffer(b))
            }
            StmtKind::ScopeId(def) => {
                let extents = def.extents.as_ref().map(|e| self.exprs(e));
                let preferred = def.preferred.as_ref().map(|e| self.exprs(e));
                let vars = def.vars.iter().map(|v| self.var_def(v)).collect();
                let new = ScopeIdDef {
                    kind: def.kind,
                    vars,
                    extents,
                    preferred,
                };
                (new != *def).then_some(StmtKind::ScopeId(new))
            }
            StmtKind::Seq(stmts) => {
                let new = map_changed(stmts, |old| {
                    let new = self.stmt(old);
                    (!new.same_node(old)).then_some(new)
                });
                return new.map_or_else(|| stmt.clone(), Stmt::seq);
            }
            StmtKind::Evaluate(e) => {
                let new = self.expr(e);
                (!new.same_node(e)).then_some(StmtKind::Evaluate(new))
            }
            StmtKind::For(l) => l.map(self).map(StmtKind::For),
            StmtKind::While(condition, body) => {
                let (c, b) = (self.expr(condition), self.body(body));
                (!c.same_node(condition) || !b.same_node(body)).then_some(StmtKind::While(c, b))
            }
            StmtKind::If(condition, then, otherwise) => {
                let (c, t) = (self.expr(condition), self.body(then));
                let o = otherwise.as_ref().map(|s| self.body(s));
                let o_same = otherwise.iter().zip(&o).all(|(a, b)| a.same_node(b));
                let same = c.same_node(condition) && t.same_node(then) && o_same;
                (!same).then_some(StmtKind::If(c, t, o))
            }
            StmtKind::Assert(assert) => assert.map(self).map(StmtKind::Assert),
            StmtKind::Tile(call) => self.tile(call).map(StmtKind::from),
        };
        changed.map_or_else(|| stmt.clone(), |kind| Stmt::new(kind, stmt.span))
    }

    /// A tile primitive rebuilt from its changed parts; `None` if nothing changed.
    fn tile(&mut self, call: &TileCall) -> Option<TileCall> {
        let mut changed = false;
        let mut args = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            args.push(match arg {
                TileArg::Region(region) => {
                    let buffer = self.buffer_use(&region.buffer);
                    changed |= buffer != region.buffer;
                    TileArg::Region(region.map(buffer, |e| {
                        let new = self.expr(e);
                        changed |= !new.same_node(e);
                        new
                    }))
                }
                TileArg::Expr(e) => {
                    let new = self.expr(e);
                    changed |= !new.same_node(e);
                    TileArg::Expr(new)
                }
                TileArg::Lambda(vars, body) => {
                    let vars2: Vec<Var> = vars.iter().map(|v| self.var_def(v)).collect();
                    let new = self.expr(body);
                    changed |= vars2 != *vars || !new.same_node(body);
                    TileArg::Lambda(vars2, new)
                }
                TileArg::Body(body) => {
                    let new = self.stmt(body);
                    changed |= !new.same_node(body);
                    TileArg::Body(new)
                }
                TileArg::None | TileArg::Axes(_) | TileArg::Operation(_) => arg.clone(),
            });
        }
        let mut workspace = Vec::with_capacity(call.workspace.len());
        for (name, buffer) in &call.workspace {
            let new = self.buffer_use(buffer);
            changed |= new != *buffer;
            workspace.push((name.clone(), new));
        }
        let mut config = call.config.clone();
        for value in config.values_mut() {
            *value = value.map_exprs(&mut |e| {
                let new = self.expr(e);
                changed |= !new.same_node(e);
                new
            });
        }
        changed.then(|| TileCall {
            args,
            workspace,
            config,
            ..call.clone()
        })
    }

    /// A hardware index that is bound here.
    fn iter_var(&mut self, iv: &IterVar) -> IterVar {
        let dom = iv
            .dom
            .as_ref()
            .map(|(min, extent)| (self.expr(min), self.expr(extent)));
        IterVar {
            var: self.var_def(&iv.var),
            dom,
            kind: iv.kind,
            thread_tag: iv.thread_tag.clone(),
        }
    }
}

/// An optional operand, rewritten, and whether it is unchanged.
fn optional<M: Mutator + ?Sized>(mutator: &mut M, old: &Option<Expr>) -> (Option<Expr>, bool) {
    let new = old.as_ref().map(|e| mutator.expr(e));
    let same = old.iter().zip(&new).all(|(a, b)| a.same_node(b));
    (new, same)
}

impl Attr {
    /// The attribute with its parts rewritten; `None` if nothing changed.
    pub fn map<M: Mutator + ?Sized>(&self, mutator: &mut M) -> Option<Attr> {
        let value = mutator.expr(&self.value);
        let node = match &self.node {
            AttrNode::IterVar(iv) => AttrNode::IterVar(mutator.iter_var(iv)),
            AttrNode::Buffer(b) => AttrNode::Buffer(mutator.buffer_use(b)),
            AttrNode::Expr(e) => AttrNode::Expr(mutator.expr(e)),
            AttrNode::Dict(items) => AttrNode::Dict(
                items
                    .iter()
                    .map(|(k, v)| (k.clone(), v.map_exprs(&mut |e| mutator.expr(e))))
                    .collect(),
            ),
            AttrNode::None | AttrNode::Str(_) => self.node.clone(),
        };
        let body = mutator.body(&self.body);
        let same = value.same_node(&self.value) && node == self.node && body.same_node(&self.body);
        (!same).then(|| Attr {
            node,
            key: self.key.clone(),
            value,
            body,
        })
    }
}

impl BufferStore {
    /// The store with its parts rewritten; `None` if nothing changed.
    pub fn map<M: Mutator + ?Sized>(&self, mutator: &mut M) -> Option<BufferStore> {
        let value = mutator.expr(&self.value);
        let buffer = mutator.buffer_use(&self.buffer);
        let indices = mutator.changed_exprs(&self.indices);
        let (predicate, predicate_same) = optional(mutator, &self.predicate);
        let same =
            value.same_node(&self.value) && buffer == self.buffer && indices.is_none() && predicate_same;
        (!same).then(|| BufferStore {
            buffer,
            indices: indices.unwrap_or_else(|| self.indices.clone()),
            value,
            predicate,
        })
    }
}

impl ForLoop {
    /// The loop with its parts rewritten; `None` if nothing changed.
    pub fn map<M: Mutator + ?Sized>(&self, mutator: &mut M) -> Option<ForLoop> {
        let (min, extent) = (mutator.expr(&self.min), mutator.expr(&self.extent));
        let (step, step_same) = optional(mutator, &self.step);
        let var = mutator.var_def(&self.var);
        let thread = self.thread.as_ref().map(|t| mutator.iter_var(t));
        let body = mutator.body(&self.body);
        let same = min.same_node(&self.min)
            && extent.same_node(&self.extent)
            && step_same
            && var == self.var
            && thread == self.thread
            && body.same_node(&self.body);
        (!same).then(|| ForLoop {
            var,
            min,
            extent,
            kind: self.kind,
            thread,
            annotations: self.annotations.clone(),
            step,
            body,
        })
    }
}

impl Assert {
    /// The check with its condition rewritten; `None` if nothing changed.
    pub fn map<M: Mutator + ?Sized>(&self, mutator: &mut M) -> Option<Assert> {
        let condition = mutator.expr(&self.condition);
        (!condition.same_node(&self.condition)).then(|| Assert {
            condition,
            ..self.clone()
        })
    }
}

/// The list with `f` applied to each expression; `None` if all stay the same nodes.
pub(crate) fn map_exprs(list: &[Expr], mut f: impl FnMut(&Expr) -> Expr) -> Option<Vec<Expr>> {
    map_changed(list, |old| {
        let new = f(old);
        (!new.same_node(old)).then_some(new)
    })
}

/// Replaces variables, also inside buffer descriptions: a buffer whose description changes becomes a new one,
/// the same at each use.
struct Substitute<'a, F> {
    map: &'a F,
    buffers: FxHashMap<Buffer, Buffer>,
}

impl<F: Fn(&Var) -> Option<Expr>> Mutator for Substitute<'_, F> {
    fn expr(&mut self, expr: &Expr) -> Expr {
        match &expr.kind {
            // The replacement takes the span of the use that it replaces.
            ExprKind::Var(v) => (self.map)(v).map_or_else(|| expr.clone(), |e| e.at(expr.span)),
            _ => self.walk_expr(expr),
        }
    }

    fn buffer_use(&mut self, buffer: &Buffer) -> Buffer {
        if let Some(known) = self.buffers.get(buffer) {
            return known.clone();
        }
        let data = (self.map)(&buffer.data)
            .and_then(|e| e.as_var().cloned())
            .unwrap_or_else(|| buffer.data.clone());
        let new = buffer.map_exprs(data, |e| self.expr(e));
        self.buffers.insert(buffer.clone(), new.clone());
        new
    }
}

/// `expr` with variables replaced where `map` gives something.
pub fn substitute(expr: &Expr, map: &impl Fn(&Var) -> Option<Expr>) -> Expr {
    Substitute {
        map,
        buffers: FxHashMap::default(),
    }
    .expr(expr)
}

/// `stmt` with variables replaced where `map` gives something. Bound variables are not renamed: the map must not
/// name variables that `stmt` binds.
pub fn substitute_stmt(stmt: &Stmt, map: &impl Fn(&Var) -> Option<Expr>) -> Stmt {
    Substitute {
        map,
        buffers: FxHashMap::default(),
    }
    .stmt(stmt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::DType;
    use crate::source::{FileId, Span};

    #[test]
    fn what_replaces_a_variable_stands_where_the_variable_stood() {
        let (declared, used) = (Span::new(FileId(1), 0, 4), Span::new(FileId(1), 20, 22));
        let tx = Var::at("tx", DType::INT32, declared);
        let index = Var::new("threadIdx_x", DType::INT32);
        let replaced = substitute(&Expr::var(&tx).at(used), &|_| {
            Some(Expr::var(&index).at(declared))
        });
        assert_eq!((replaced.as_var(), replaced.span), (Some(&index), used));
    }
}
