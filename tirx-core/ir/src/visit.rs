//! Reading walks.

use super::{
    Assert, Attr, AttrNode, Buffer, BufferStore, Expr, ExprKind, ForLoop, Stmt, StmtKind, TileArg, TileCall,
    Var,
};

/// Visits every node once per occurrence, in program order. Override what you care about and call the `walk_*`
/// method to go deeper.
pub trait Visitor {
    /// An expression.
    fn visit_expr(&mut self, expr: &Expr) {
        self.walk_expr(expr);
    }

    /// A statement.
    fn visit_stmt(&mut self, stmt: &Stmt) {
        self.walk_stmt(stmt);
    }

    /// A variable that is bound here (loop, `Bind`, `Let`, scope id, thread index).
    fn visit_var_def(&mut self, _var: &Var) {}

    /// A buffer that is declared here; the default visits the expressions of its description.
    fn visit_buffer_def(&mut self, buffer: &Buffer) {
        buffer.for_each_expr(|e| self.visit_expr(e));
    }

    /// A buffer that is read or written here.
    fn visit_buffer_use(&mut self, _buffer: &Buffer) {}

    /// The operands of an expression.
    fn walk_expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Var(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Str(_) => {}
            ExprKind::Cast(a) | ExprKind::Not(a) | ExprKind::Broadcast { value: a, .. } => self.visit_expr(a),
            ExprKind::Binary(_, a, b)
            | ExprKind::Ramp {
                base: a, stride: b, ..
            } => {
                self.visit_expr(a);
                self.visit_expr(b);
            }
            ExprKind::Select(c, t, f) => {
                self.visit_expr(c);
                self.visit_expr(t);
                self.visit_expr(f);
            }
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate,
            } => {
                self.visit_buffer_use(buffer);
                indices.iter().chain(predicate).for_each(|e| self.visit_expr(e));
            }
            ExprKind::Shuffle { vectors, indices } => {
                vectors.iter().chain(indices).for_each(|e| self.visit_expr(e))
            }
            ExprKind::Call { args, .. } => args.iter().for_each(|e| self.visit_expr(e)),
            ExprKind::Let(var, value, body) => {
                self.visit_expr(value);
                self.visit_var_def(var);
                self.visit_expr(body);
            }
        }
    }

    /// The parts of a statement.
    fn walk_stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Bind(var, value) => {
                self.visit_expr(value);
                self.visit_var_def(var);
            }
            StmtKind::Attr(Attr {
                node, value, body, ..
            }) => {
                self.visit_expr(value);
                match node {
                    AttrNode::IterVar(iv) => self.visit_var_def(&iv.var),
                    AttrNode::Buffer(b) => self.visit_buffer_use(b),
                    AttrNode::Expr(e) => self.visit_expr(e),
                    AttrNode::Dict(items) => items
                        .iter()
                        .for_each(|(_, v)| v.for_each_expr(&mut |e| self.visit_expr(e))),
                    AttrNode::None | AttrNode::Str(_) => {}
                }
                self.visit_stmt(body);
            }
            StmtKind::BufferStore(BufferStore {
                buffer,
                indices,
                value,
                predicate,
            }) => {
                self.visit_expr(value);
                self.visit_buffer_use(buffer);
                indices.iter().chain(predicate).for_each(|e| self.visit_expr(e));
            }
            StmtKind::AllocBuffer(buffer, _) | StmtKind::DeclBuffer(buffer) => self.visit_buffer_def(buffer),
            StmtKind::ScopeId(def) => {
                def.extents
                    .iter()
                    .chain(&def.preferred)
                    .flatten()
                    .for_each(|e| self.visit_expr(e));
                def.vars.iter().for_each(|v| self.visit_var_def(v));
            }
            StmtKind::Seq(stmts) => stmts.iter().for_each(|s| self.visit_stmt(s)),
            StmtKind::Evaluate(e) => self.visit_expr(e),
            StmtKind::For(ForLoop {
                var,
                min,
                extent,
                step,
                body,
                ..
            }) => {
                self.visit_expr(min);
                self.visit_expr(extent);
                step.iter().for_each(|e| self.visit_expr(e));
                self.visit_var_def(var);
                self.visit_stmt(body);
            }
            StmtKind::While(condition, body) => {
                self.visit_expr(condition);
                self.visit_stmt(body);
            }
            StmtKind::If(condition, then, otherwise) => {
                self.visit_expr(condition);
                self.visit_stmt(then);
                otherwise.iter().for_each(|s| self.visit_stmt(s));
            }
            StmtKind::Assert(Assert { condition, .. }) => self.visit_expr(condition),
            StmtKind::Tile(call) => self.walk_tile(call),
        }
    }

    /// The parts of a tile primitive.
    fn walk_tile(&mut self, call: &TileCall) {
        for arg in &call.args {
            match arg {
                TileArg::Region(region) => {
                    self.visit_buffer_use(&region.buffer);
                    region.exprs().for_each(|e| self.visit_expr(e));
                }
                TileArg::Expr(e) => self.visit_expr(e),
                TileArg::Lambda(vars, body) => {
                    vars.iter().for_each(|v| self.visit_var_def(v));
                    self.visit_expr(body);
                }
                TileArg::Body(body) => self.visit_stmt(body),
                TileArg::None | TileArg::Axes(_) | TileArg::Operation(_) => {}
            }
        }
        call.workspace.iter().for_each(|(_, b)| self.visit_buffer_use(b));
        for value in call.config.values() {
            value.for_each_expr(&mut |e| self.visit_expr(e));
        }
    }
}

/// Whether `stmt` reads any variable that `pred` accepts (data pointers of used buffers included).
pub fn uses_var(stmt: &Stmt, pred: impl Fn(&Var) -> bool) -> bool {
    struct Uses<F>(F, bool);
    impl<F: Fn(&Var) -> bool> Visitor for Uses<F> {
        fn visit_expr(&mut self, expr: &Expr) {
            if let ExprKind::Var(v) = &expr.kind {
                self.1 |= (self.0)(v);
            }
            self.walk_expr(expr);
        }
        fn visit_buffer_use(&mut self, buffer: &Buffer) {
            self.1 |= (self.0)(&buffer.data);
        }
    }
    let mut uses = Uses(pred, false);
    uses.visit_stmt(stmt);
    uses.1
}

/// Whether evaluating `expr` reads no memory and no machine state and has no side effect, so that it may be evaluated
/// elsewhere, more often or not at all.
pub fn is_pure(expr: &Expr) -> bool {
    expr.is_pure()
}
