//! VectorizeLoop: `T.vectorized` loops become vector loads, stores and arithmetic.
//!
//! **Idea.** The loop variable becomes the vector `ramp(min, 1, lanes)`; expressions that depend on it become vectors,
//! all others stay scalars and are broadcast where they are combined with one. Sums and products of a ramp and a scalar
//! stay ramps, so that a contiguous access is seen as one. A binding of a vector value is a vector variable.
//!
//! **Fallbacks.** The loop is a promise that its iterations are independent; where a body cannot be vectorized, or the
//! promise does not hold, the result is still right:
//! - a statement that has no vector form (a condition that differs between lanes, a call that is not elementwise,
//!   effects) becomes a serial loop of its own, its variable named `<name>_s`, as in TVM;
//! - the whole loop becomes serial if its iterations share a place: a buffer allocated in it, a place that all
//!   iterations write with different values or that is read as well (`s[0] = s[0] + A[v]`), `break`, `continue`. (TVM
//!   0.26 vectorizes these and lets the last lane win.)
//!
//! Vectors have at most `MAX_LANES` lanes and `MAX_BITS` bits; a longer loop is split into a serial one around a
//! vectorized one. A vectorized loop inside another is serial. A length that is not constant is an error.
//!
//! **Cost.** Linear: each loop body is scanned once and rebuilt once; loops are done outside in.

use rustc_hash::{FxHashMap, FxHashSet};

use super::PassContext;
use super::unroll_loop::{copy_with, leaves_early};
use crate::arith::{fold, has_effect};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::intrin::Op;
use crate::ir::at;
use crate::ir::{
    Assert, Attr, AttrNode, BinOp, BufferStore, DType, Expr, ExprKind, ForKind, ForLoop, IRModule, Mutator,
    Stmt, StmtKind, Type, Var, Visitor,
};
use crate::source::Span;

/// Most lanes of a vector.
const MAX_LANES: i128 = 16;
/// Most bits of a vector: two 128-bit registers.
const MAX_BITS: i128 = 256;

/// See the [module](self).
pub fn run(module: IRModule, ctx: &PassContext) -> Result<IRModule, Diagnostics> {
    module.try_map(|mut func| {
        let mut pass = Pass {
            serial: ctx.disable_vectorize,
            error: None,
        };
        func.body = pass.stmt(&func.body);
        match pass.error {
            Some(error) => Err(error.into()),
            None => Ok(func),
        }
    })
}

struct Pass {
    /// Makes every vectorized loop serial.
    serial: bool,
    error: Option<Diagnostic>,
}

/// The loop without vectorization.
fn serial(l: &ForLoop, span: Span) -> Stmt {
    let kind = ForKind::Serial;
    Stmt::new(ForLoop { kind, ..l.clone() }, span)
}

impl Mutator for Pass {
    fn expr(&mut self, expr: &Expr) -> Expr {
        expr.clone()
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        let StmtKind::For(l) = &stmt.kind else {
            return self.walk_stmt(stmt);
        };
        if l.kind != ForKind::Vectorized {
            return self.walk_stmt(stmt);
        }
        let ForLoop {
            var,
            min,
            extent,
            step,
            body,
            ..
        } = l;
        if self.serial {
            return self.walk_stmt(&serial(l, stmt.span));
        }
        let Some(length) = extent.as_int() else {
            let error = Diagnostic::new(stmt.span, "the length of a vectorized loop must be constant")
                .help("use T.serial, or T.vectorized over a constant number of lanes inside a T.serial loop");
            self.error.get_or_insert(error);
            return stmt.clone();
        };
        if length <= 0 {
            return Stmt::nop();
        }
        let serial = |pass: &mut Pass| pass.walk_stmt(&serial(l, stmt.span));
        if step.as_ref().is_some_and(|s| !s.is_int(1)) {
            return serial(self);
        }
        if length == 1 {
            let body = copy_with(body, var, min.clone());
            return self.stmt(&body);
        }
        let scan = Scan::from_body(var, body);
        let lanes = scan.lanes(length);
        if scan.shares_a_place || leaves_early(body) || lanes < 2 {
            return serial(self);
        }
        let outer = (lanes < length).then(|| var.renamed(format!("{}_o", var.name())));
        let first = match &outer {
            Some(outer) => fold::add(
                min.clone(),
                fold::mul(Expr::var(outer), Expr::constant(var.dtype(), lanes)),
            ),
            None => min.clone(),
        };
        let mut vectorizer = Vectorizer {
            var: var.clone(),
            first,
            lanes: lanes as u16,
            vectors: FxHashMap::default(),
            stuck: false,
        };
        let body = vectorizer.statement(body);
        if vectorizer.stuck {
            return serial(self);
        }
        match outer {
            None => body,
            Some(outer) => {
                let turns = Expr::constant(var.dtype(), length / lanes);
                Stmt::for_serial(&outer, turns, body, stmt.span)
            }
        }
    }
}

/// The memory accesses of a loop body, as far as vectorization depends on them.
struct Scan {
    /// The loop variable and bindings that depend on it.
    varying: FxHashSet<Var>,
    /// Stores to a place that is the same in all iterations: the place, and whether the value differs.
    fixed_stores: Vec<(Var, bool)>,
    reads: FxHashSet<Var>,
    shares_a_place: bool,
    /// The widest element that is loaded, stored or converted, in bits.
    widest: u8,
    /// Whether the walk is inside an index.
    in_index: bool,
}

impl Scan {
    fn from_body(var: &Var, body: &Stmt) -> Scan {
        let mut scan = Scan {
            varying: FxHashSet::from_iter([var.clone()]),
            fixed_stores: Vec::new(),
            reads: FxHashSet::default(),
            shares_a_place: false,
            widest: 8,
            in_index: false,
        };
        scan.visit_stmt(body);
        scan.shares_a_place |= scan
            .fixed_stores
            .iter()
            .any(|(place, differs)| *differs || scan.reads.contains(place));
        scan
    }

    /// How many lanes a vector gets: the most that divide the loop's length.
    fn lanes(&self, length: i128) -> i128 {
        [16, 8, 4, 2]
            .into_iter()
            .find(|l| *l <= MAX_LANES && length % l == 0 && l * self.widest as i128 <= MAX_BITS)
            .unwrap_or(1)
    }

    fn varies(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Var(v) => self.varying.contains(v),
            ExprKind::Binary(_, a, b) => self.varies(a) || self.varies(b),
            _ => expr.operands().any(|e| self.varies(e)),
        }
    }
}

impl Visitor for Scan {
    fn visit_expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate,
            } => {
                self.reads.insert(buffer.data.clone());
                // An index that is uniform, or the base of a ramp, does not become a vector.
                if !self.in_index || self.varies(expr) {
                    self.widest = self.widest.max(buffer.dtype.bits);
                }
                let outside = std::mem::replace(&mut self.in_index, true);
                indices.iter().for_each(|index| self.visit_expr(index));
                self.in_index = outside;
                predicate.iter().for_each(|p| self.visit_expr(p));
                return;
            }
            ExprKind::Cast(_) if !self.in_index => self.widest = self.widest.max(expr.dtype.bits),
            ExprKind::Let(var, value, _) if self.varies(value) => {
                self.varying.insert(var.clone());
            }
            _ => {}
        }
        self.walk_expr(expr);
    }

    fn visit_stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Bind(var, value) if self.varies(value) => {
                self.varying.insert(var.clone());
            }
            StmtKind::BufferStore(BufferStore {
                buffer,
                indices,
                value,
                predicate,
            }) => {
                self.widest = self.widest.max(buffer.dtype.bits);
                if !indices.iter().any(|i| self.varies(i)) {
                    let differs = self.varies(value);
                    self.fixed_stores.push((buffer.data.clone(), differs));
                }
                self.visit_expr(value);
                predicate.iter().for_each(|p| self.visit_expr(p));
                self.in_index = true;
                indices.iter().for_each(|index| self.visit_expr(index));
                self.in_index = false;
                return;
            }
            StmtKind::AllocBuffer(..) | StmtKind::ScopeId(_) | StmtKind::Tile(_) => {
                self.shares_a_place = true;
            }
            StmtKind::DeclBuffer(buffer) => {
                self.shares_a_place |=
                    buffer.exprs().into_iter().any(|e| self.varies(e)) || self.varying.contains(&buffer.data);
            }
            _ => {}
        }
        self.walk_stmt(stmt);
    }
}

/// No vector form.
struct NoVector;

type Vectorized = Result<Expr, NoVector>;

struct Vectorizer {
    var: Var,
    /// Value of the variable in the first lane.
    first: Expr,
    lanes: u16,
    /// Bindings that became vectors.
    vectors: FxHashMap<Var, Var>,
    /// A statement without a vector form uses one of them: vectorization is abandoned.
    stuck: bool,
}

impl Vectorizer {
    /// A scalar in all lanes; a vector as it is.
    fn broadcast(&self, expr: Expr) -> Expr {
        if expr.dtype.is_vector() {
            expr
        } else {
            Expr::broadcast(expr, self.lanes)
        }
    }

    fn all(&self, exprs: &[Expr]) -> Result<Vec<Expr>, NoVector> {
        exprs.iter().map(|e| self.expr(e)).collect()
    }

    /// The expression, a vector where it depends on the lane.
    fn expr(&self, expr: &Expr) -> Vectorized {
        let unchanged = |new: &[Expr], old: &[&Expr]| new.iter().zip(old).all(|(a, b)| a.same_node(b));
        let span = expr.span;
        let result = match &expr.kind {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Str(_) => return Ok(expr.clone()),
            ExprKind::Var(v) if *v == self.var => {
                let one = Expr::constant(v.dtype(), 1);
                Expr::ramp(self.first.clone(), one, self.lanes)
            }
            ExprKind::Var(v) => {
                return Ok(self
                    .vectors
                    .get(v)
                    .map_or_else(|| expr.clone(), |v| Expr::var(v).at(span)));
            }
            ExprKind::Binary(op, a, b) => {
                let (x, y) = (self.expr(a)?, self.expr(b)?);
                if x.same_node(a) && y.same_node(b) {
                    return Ok(expr.clone());
                }
                // The right operand of a lazy operator may only be readable where the left one allows it.
                if op.is_logical() && reads_memory(&y) {
                    return Err(NoVector);
                }
                self.binary(*op, x, y)
            }
            ExprKind::Not(a) => {
                let x = self.expr(a)?;
                if x.same_node(a) {
                    return Ok(expr.clone());
                }
                Expr::logical_not(x)
            }
            ExprKind::Cast(a) => {
                let x = self.expr(a)?;
                if x.same_node(a) {
                    return Ok(expr.clone());
                }
                x.cast(expr.dtype.with_lanes(self.lanes))
            }
            ExprKind::Select(c, t, f) => {
                let new = [self.expr(c)?, self.expr(t)?, self.expr(f)?];
                if unchanged(&new, &[c, t, f]) {
                    return Ok(expr.clone());
                }
                let [c, t, f] = new.map(|e| self.broadcast(e));
                Expr::select(c, t, f)
            }
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate,
            } => {
                let new = self.all(indices)?;
                if unchanged(&new, &indices.iter().collect::<Vec<_>>()) {
                    return Ok(expr.clone());
                }
                if predicate.is_some() || !self.is_access(&new, buffer.dtype) {
                    return Err(NoVector);
                }
                Expr::load(buffer, new)
            }
            ExprKind::Call { op, args } => {
                let new = self.all(args)?;
                if unchanged(&new, &args.iter().collect::<Vec<_>>()) {
                    return if has_effect(expr) {
                        Err(NoVector)
                    } else {
                        Ok(expr.clone())
                    };
                }
                match op {
                    Op::IfThenElse => {
                        if new[at!(IfThenElse.cond)].dtype.is_vector() {
                            return Err(NoVector);
                        }
                        let mut args = new;
                        for arm in [at!(IfThenElse.t), at!(IfThenElse.f)] {
                            args[arm] = self.broadcast(args[arm].clone());
                        }
                        let dtype = args[at!(IfThenElse.t)].dtype;
                        Expr::call(*op, dtype, args)
                    }
                    _ if op.traits().elementwise && expr.dtype.is_scalar() => {
                        let args = new.into_iter().map(|e| self.broadcast(e)).collect();
                        Expr::call(*op, expr.dtype.with_lanes(self.lanes), args)
                    }
                    _ => return Err(NoVector),
                }
            }
            ExprKind::Ramp { .. }
            | ExprKind::Broadcast { .. }
            | ExprKind::Shuffle { .. }
            | ExprKind::Let(..) => {
                for operand in expr.operands() {
                    if !self.expr(operand)?.same_node(operand) {
                        return Err(NoVector);
                    }
                }
                return Ok(expr.clone());
            }
        };
        Ok(result.at(span))
    }

    /// At most one index is a vector, the last, into scalar elements.
    fn is_access(&self, indices: &[Expr], element: DType) -> bool {
        let leading = indices.split_last().map_or(&[][..], |(_, rest)| rest);
        element.is_scalar() && leading.iter().all(|i| i.dtype.is_scalar())
    }

    fn binary(&self, op: BinOp, a: Expr, b: Expr) -> Expr {
        let parts = |e: &Expr| match &e.kind {
            ExprKind::Ramp { base, stride, .. } => Some((base.clone(), stride.clone())),
            _ => None,
        };
        let (ramp_a, ramp_b) = (parts(&a), parts(&b));
        let ramp = |base, stride: Expr| Expr::ramp(base, stride, self.lanes);
        let scalar = |e: &Expr| e.dtype.is_scalar();
        match (op, ramp_a, ramp_b) {
            (BinOp::Add | BinOp::Sub, Some((x, s)), None) if scalar(&b) => {
                return ramp(fold::binary(op, x, b), s);
            }
            (BinOp::Add, None, Some((y, s))) if scalar(&a) => return ramp(fold::add(a, y), s),
            (BinOp::Sub, None, Some((y, s))) if scalar(&a) => {
                let zero = Expr::constant(s.dtype, 0);
                return ramp(fold::sub(a, y), fold::sub(zero, s));
            }
            (BinOp::Add | BinOp::Sub, Some((x, s)), Some((y, t))) => {
                let stride = fold::binary(op, s, t);
                let base = fold::binary(op, x, y);
                return match stride.is_int(0) {
                    true => Expr::broadcast(base, self.lanes),
                    false => ramp(base, stride),
                };
            }
            (BinOp::Mul, Some((x, s)), None) if b.as_int().is_some_and(|c| c > 0) => {
                return ramp(fold::mul(x, b.clone()), fold::mul(s, b));
            }
            (BinOp::Mul, None, Some((y, s))) if a.as_int().is_some_and(|c| c > 0) => {
                return ramp(fold::mul(a.clone(), y), fold::mul(a, s));
            }
            _ => {}
        }
        Expr::binary(op, self.broadcast(a), self.broadcast(b))
    }

    /// The statement in vector form, or as a serial loop over the lanes.
    fn statement(&mut self, stmt: &Stmt) -> Stmt {
        match self.vector_statement(stmt) {
            Ok(new) => new,
            Err(NoVector) => self.serial(stmt),
        }
    }

    fn serial(&mut self, stmt: &Stmt) -> Stmt {
        if crate::ir::uses_var(stmt, |v| self.vectors.contains_key(v)) {
            self.stuck = true;
        }
        let lane = self.var.renamed(format!("{}_s", self.var.name()));
        let body = copy_with(stmt, &self.var, fold::add(self.first.clone(), Expr::var(&lane)));
        let lanes = Expr::constant(self.var.dtype(), self.lanes as i128);
        Stmt::for_serial(&lane, lanes, SerialInside.stmt(&body), stmt.span)
    }

    fn scalar(&self, expr: &Expr) -> Vectorized {
        let new = self.expr(expr)?;
        if new.dtype.lanes == expr.dtype.lanes {
            Ok(new)
        } else {
            Err(NoVector)
        }
    }

    fn vector_statement(&mut self, stmt: &Stmt) -> Result<Stmt, NoVector> {
        let span = stmt.span;
        Ok(match &stmt.kind {
            StmtKind::Seq(stmts) => Stmt::seq(stmts.iter().map(|s| self.statement(s)).collect::<Vec<_>>()),
            StmtKind::Bind(var, value) => {
                let new = self.expr(value);
                match new {
                    Ok(new) if new.same_node(value) => stmt.clone(),
                    Ok(new) => {
                        let vector = var.retyped(Type::Prim(new.dtype));
                        self.vectors.insert(var.clone(), vector.clone());
                        Stmt::bind(&vector, new, span)
                    }
                    // The following statements need the binding, so it cannot become a loop of its own.
                    Err(NoVector) => {
                        self.stuck = true;
                        stmt.clone()
                    }
                }
            }
            StmtKind::BufferStore(BufferStore {
                buffer,
                indices,
                value,
                predicate,
            }) => {
                let (at, what) = (self.all(indices)?, self.expr(value)?);
                let place_varies = at.iter().zip(indices).any(|(a, b)| !a.same_node(b));
                if !place_varies {
                    // The scan has shown that nothing reads the place.
                    return if what.same_node(value) {
                        Ok(stmt.clone())
                    } else {
                        Err(NoVector)
                    };
                }
                if predicate.is_some() || !self.is_access(&at, buffer.dtype) {
                    return Err(NoVector);
                }
                Stmt::store(buffer, at, self.broadcast(what), span)
            }
            StmtKind::If(condition, then, otherwise) => {
                let c = self.scalar(condition)?;
                let then = self.statement(then);
                let otherwise = otherwise.as_ref().map(|s| self.statement(s));
                Stmt::if_else(c, then, otherwise, span)
            }
            StmtKind::For(l) => {
                let (min, extent) = (self.scalar(&l.min)?, self.scalar(&l.extent)?);
                let step = l.step.as_ref().map(|s| self.scalar(s)).transpose()?;
                let body = self.statement(&l.body);
                let kind = match l.kind {
                    ForKind::Vectorized => ForKind::Serial,
                    kind => kind,
                };
                let new = ForLoop {
                    min,
                    extent,
                    kind,
                    step,
                    body,
                    ..l.clone()
                };
                Stmt::new(new, span)
            }
            StmtKind::Attr(Attr {
                node,
                key,
                value,
                body,
            }) => {
                let value = self.scalar(value)?;
                if let AttrNode::Dict(items) = node {
                    let mut stays = true;
                    for (_, word) in items {
                        word.for_each_expr(&mut |e| stays &= self.expr(e).is_ok_and(|new| new.same_node(e)));
                    }
                    if !stays {
                        return Err(NoVector);
                    }
                }
                let body = self.statement(body);
                Stmt::attr(node.clone(), key.clone(), value, body, span)
            }
            StmtKind::Evaluate(e) => {
                let new = self.expr(e)?;
                if new.same_node(e) {
                    stmt.clone()
                } else {
                    Stmt::evaluate(new).clone()
                }
            }
            StmtKind::Assert(Assert { condition, .. }) => {
                if !self.expr(condition)?.same_node(condition) {
                    return Err(NoVector);
                }
                stmt.clone()
            }
            StmtKind::DeclBuffer(_) => stmt.clone(),
            StmtKind::While(..) | StmtKind::AllocBuffer(..) | StmtKind::ScopeId(_) | StmtKind::Tile(_) => {
                return Err(NoVector);
            }
        })
    }
}

/// Vectorized loops inside a lane are serial.
struct SerialInside;

impl Mutator for SerialInside {
    fn expr(&mut self, expr: &Expr) -> Expr {
        expr.clone()
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
            StmtKind::For(l) if l.kind == ForKind::Vectorized => self.walk_stmt(&serial(l, stmt.span)),
            _ => self.walk_stmt(stmt),
        }
    }
}

fn reads_memory(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::BufferLoad { .. }) || expr.operands().any(reads_memory)
}
