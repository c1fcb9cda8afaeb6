//! NarrowDataType: `int64` loop variables, bindings and indices become `int32` where that provably gives the same
//! values.
//!
//! **Idea.** A *region* is a tree of `int64` arithmetic: an index, both sides of a comparison, an operand of a cast, a
//! bound value, the range of a loop. It can be narrow if every value in it fits `int32`. A variable can be narrow if it
//! and every region it occurs in can; a region that can't makes its variables wide, and these their regions. What is
//! left is rewritten: variables are declared anew as `int32`, casts from 32-bit integers go, and where a narrow region
//! stands in a position that takes an `int64` (a stored value, an argument) it is cast back.
//!
//! Parameters keep their dtype, so everything computed from an `int64` parameter stays wide. Memory does too.
//!
//! **Termination and cost.** Three linear walks: collect regions, spread wideness (each region and variable once),
//! rewrite.

use rustc_hash::{FxHashMap, FxHashSet};

use super::PassContext;
use crate::arith::{Analyzer, ConstIntBound, fold};
use crate::diagnostic::Diagnostics;
use crate::intrin::Op;
use crate::ir::at;
use crate::ir::{
    Attr, AttrNode, BinOp, Buffer, BufferStore, DType, Expr, ExprKind, ForLoop, IRModule, Mutator, PrimFunc,
    Stmt, StmtKind, Var, Visitor,
};

/// See the [module](self).
pub fn run(module: IRModule, _ctx: &PassContext) -> Result<IRModule, Diagnostics> {
    Ok(module.map(narrow_function))
}

fn narrow_function(mut func: PrimFunc) -> PrimFunc {
    let mut collector = Collector {
        analyzer: Analyzer::new(),
        candidates: FxHashSet::default(),
        regions: Vec::new(),
    };
    collector.visit_stmt(&func.body);
    if collector.regions.is_empty() {
        return func;
    }
    let narrow = collector.spread();
    let mut rewriter = Rewriter {
        analyzer: collector.analyzer,
        vars: FxHashMap::default(),
        buffers: FxHashMap::default(),
        narrow,
    };
    func.body = rewriter.stmt(&func.body);
    func
}

fn is_wide_integer(dtype: DType) -> bool {
    dtype.is_int() && dtype.bits == 64
}

fn to_narrow(dtype: DType) -> DType {
    DType::INT32.with_lanes(dtype.lanes)
}

/// A tree of 64-bit arithmetic.
#[derive(Default)]
struct Region {
    wide: bool,
    vars: Vec<Var>,
}

struct Collector {
    analyzer: Analyzer,
    candidates: FxHashSet<Var>,
    regions: Vec<Region>,
}

/// Whether a value fits the narrow dtype.
fn fits(analyzer: &Analyzer, expr: &Expr) -> bool {
    analyzer
        .const_int_bound(expr)
        .is_within(ConstIntBound::of_dtype(DType::INT32))
}

/// The operands that belong to the same region as `expr`; `None` for a leaf that is not arithmetic.
fn inner<'a>(analyzer: &Analyzer, expr: &'a Expr) -> Option<Vec<&'a Expr>> {
    match &expr.kind {
        ExprKind::Int(_) | ExprKind::Var(_) => Some(vec![]),
        ExprKind::Binary(op, a, b) if !op.is_comparison() && !op.is_logical() => Some(vec![a, b]),
        ExprKind::Select(_, t, f) => Some(vec![t, f]),
        ExprKind::Ramp { base, stride, .. } => Some(vec![base, stride]),
        ExprKind::Broadcast { value, .. } => Some(vec![value]),
        ExprKind::Call {
            op: Op::IfThenElse,
            args,
        } => Some(args[at!(IfThenElse.t)..].iter().collect()),
        ExprKind::Call {
            op: Op::BitwiseAnd | Op::BitwiseOr | Op::BitwiseXor,
            args,
        } => Some(args.iter().collect()),
        // A shift by 32 bits or more is invalid for an int32.
        ExprKind::Call {
            op: Op::ShiftLeft | Op::ShiftRight,
            args,
        } if analyzer
            .const_int_bound(&args[at!(ShiftLeft | ShiftRight.y)])
            .is_within(ConstIntBound::new(0, 31)) =>
        {
            Some(args.iter().collect())
        }
        // A cast from a narrower integer ends the region.
        ExprKind::Cast(a) if a.dtype.is_integer() && a.dtype.bits <= 32 => Some(vec![]),
        _ => None,
    }
}

impl Collector {
    fn collect(&mut self, expr: &Expr, region: &mut Region) {
        region.wide |= !fits(&self.analyzer, expr);
        match inner(&self.analyzer, expr) {
            Some(operands) => {
                for operand in operands {
                    self.collect(operand, region);
                }
                match &expr.kind {
                    ExprKind::Var(v) => region.vars.push(v.clone()),
                    ExprKind::Cast(a) => self.visit_expr(a),
                    ExprKind::Select(c, ..) => self.visit_expr(c),
                    ExprKind::Call {
                        op: Op::IfThenElse,
                        args,
                    } => self.visit_expr(&args[at!(IfThenElse.cond)]),
                    _ => {}
                }
            }
            None => {
                region.wide = true;
                self.walk_expr(expr);
            }
        }
    }

    fn region(&mut self, exprs: &[&Expr], var: Option<&Var>) {
        let mut region = Region::default();
        for expr in exprs {
            self.collect(expr, &mut region);
        }
        region.vars.extend(var.cloned());
        self.regions.push(region);
    }

    /// The variables that can be narrow.
    fn spread(&mut self) -> FxHashSet<Var> {
        let mut regions_of: FxHashMap<&Var, Vec<usize>> = FxHashMap::default();
        for (i, region) in self.regions.iter().enumerate() {
            for var in &region.vars {
                regions_of.entry(var).or_default().push(i);
            }
        }
        let mut wide: Vec<bool> = self
            .regions
            .iter()
            .map(|r| r.wide || r.vars.iter().any(|v| !self.candidates.contains(v)))
            .collect();
        let mut work: Vec<usize> = (0..wide.len()).filter(|i| wide[*i]).collect();
        let mut wide_vars: FxHashSet<&Var> = FxHashSet::default();
        while let Some(region) = work.pop() {
            for var in &self.regions[region].vars {
                if !wide_vars.insert(var) {
                    continue;
                }
                for &other in regions_of.get(var).into_iter().flatten() {
                    if !wide[other] {
                        wide[other] = true;
                        work.push(other);
                    }
                }
            }
        }
        self.candidates
            .iter()
            .filter(|v| !wide_vars.contains(v))
            .cloned()
            .collect()
    }
}

impl Visitor for Collector {
    fn visit_expr(&mut self, expr: &Expr) {
        if is_wide_integer(expr.dtype) {
            return self.region(&[expr], None);
        }
        match &expr.kind {
            ExprKind::Binary(_, a, b) if is_wide_integer(a.dtype) => self.region(&[a, b], None),
            _ => self.walk_expr(expr),
        }
    }

    fn visit_stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Bind(var, value) if is_wide_integer(var.dtype()) && is_wide_integer(value.dtype) => {
                self.region(&[value], Some(var));
                self.analyzer.bind_facts_of(var, value);
                self.candidates.insert(var.clone());
            }
            StmtKind::Bind(var, value) => {
                self.visit_expr(value);
                self.analyzer.bind_facts_of(var, value);
            }
            StmtKind::Attr(Attr {
                node: AttrNode::IterVar(iv),
                value,
                body,
                ..
            }) => {
                self.visit_expr(value);
                let zero = Expr::constant(iv.var.dtype(), 0);
                self.analyzer
                    .bind(&iv.var, &zero, &fold::cast(value.clone(), iv.var.dtype()));
                self.visit_stmt(body);
            }
            StmtKind::For(ForLoop {
                var,
                min,
                extent,
                step,
                thread,
                body,
                ..
            }) => {
                // Only bounds are asked for: they are asked again when the whole function is known.
                self.analyzer.bind_range(var, min, extent);
                if is_wide_integer(var.dtype()) {
                    let end = fold::add(min.clone(), extent.clone());
                    let mut all = vec![min, extent, &end];
                    all.extend(step);
                    self.region(&all, Some(var));
                    if thread.is_none() {
                        self.candidates.insert(var.clone());
                    }
                } else {
                    [Some(min), Some(extent), step.as_ref()]
                        .into_iter()
                        .flatten()
                        .for_each(|e| self.visit_expr(e));
                }
                self.visit_stmt(body);
            }
            _ => self.walk_stmt(stmt),
        }
    }

    fn visit_buffer_def(&mut self, buffer: &Buffer) {
        buffer.for_each_expr(|e| self.visit_expr(e));
    }
}

struct Rewriter {
    analyzer: Analyzer,
    narrow: FxHashSet<Var>,
    vars: FxHashMap<Var, Var>,
    buffers: FxHashMap<Buffer, Buffer>,
}

impl Rewriter {
    fn is_narrow(&self, expr: &Expr) -> bool {
        let leaf = match &expr.kind {
            ExprKind::Var(v) => self.narrow.contains(v),
            _ => true,
        };
        leaf && fits(&self.analyzer, expr)
            && inner(&self.analyzer, expr)
                .is_some_and(|operands| operands.into_iter().all(|e| self.is_narrow(e)))
    }

    /// A narrow region in its new dtype.
    fn narrowed(&mut self, expr: &Expr) -> Expr {
        let dtype = to_narrow(expr.dtype);
        let result = match &expr.kind {
            ExprKind::Int(v) => Expr::constant(dtype, *v),
            ExprKind::Var(v) => self.vars.get(v).map_or_else(|| expr.clone(), Expr::var),
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (self.narrowed(a), self.narrowed(b));
                fold::binary(*op, a, b)
            }
            ExprKind::Select(c, t, f) => {
                let (c, t, f) = (self.expr(c), self.narrowed(t), self.narrowed(f));
                Expr::select(c, t, f)
            }
            ExprKind::Ramp { base, stride, lanes } => {
                let (base, stride) = (self.narrowed(base), self.narrowed(stride));
                Expr::ramp(base, stride, *lanes)
            }
            ExprKind::Broadcast { value, lanes } => Expr::broadcast(self.narrowed(value), *lanes),
            ExprKind::Call { op, args } => {
                let args = args.iter().enumerate().map(|(place, arg)| {
                    let chooses = *op == Op::IfThenElse && place == at!(IfThenElse.cond);
                    if chooses {
                        self.expr(arg)
                    } else {
                        self.narrowed(arg)
                    }
                });
                let args = args.collect();
                Expr::call(*op, dtype, args)
            }
            ExprKind::Cast(a) => {
                let a = self.expr(a);
                fold::cast(a, dtype)
            }
            _ => expr.clone(),
        };
        result.at(expr.span)
    }

    /// A region in a position that takes any integer.
    fn index(&mut self, expr: &Expr) -> Expr {
        if is_wide_integer(expr.dtype) && self.is_narrow(expr) {
            self.narrowed(expr)
        } else {
            self.expr(expr)
        }
    }

    /// The operands of a region that stays wide.
    fn wide(&mut self, expr: &Expr) -> Expr {
        self.walk_expr(expr)
    }
}

impl Mutator for Rewriter {
    fn expr(&mut self, expr: &Expr) -> Expr {
        match &expr.kind {
            ExprKind::Int(_) => expr.clone(),
            _ if is_wide_integer(expr.dtype) => {
                // Only worthwhile if a variable changes; otherwise the cast back would cost more.
                let uses = |v: &Var| self.vars.contains_key(v);
                if self.is_narrow(expr) && mentions(expr, &uses) {
                    let dtype = expr.dtype;
                    return self.narrowed(expr).cast(dtype).at(expr.span);
                }
                self.wide(expr)
            }
            ExprKind::Binary(op, a, b) if is_wide_integer(a.dtype) => {
                if self.is_narrow(a) && self.is_narrow(b) {
                    let (a, b) = (self.narrowed(a), self.narrowed(b));
                    return fold::binary(*op, a, b).at(expr.span);
                }
                self.walk_expr(expr)
            }
            ExprKind::Cast(a) if is_wide_integer(a.dtype) => {
                let new = self.index(a);
                if new.same_node(a) {
                    expr.clone()
                } else {
                    fold::cast(new, expr.dtype).at(expr.span)
                }
            }
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate,
            } => {
                let new: Vec<Expr> = indices.iter().map(|i| self.index(i)).collect();
                let from = self.buffer_use(buffer);
                let p = predicate.as_ref().map(|p| self.expr(p));
                let same = new.iter().zip(indices).all(|(a, b)| a.same_node(b))
                    && p.iter().zip(predicate).all(|(a, b)| a.same_node(b));
                if same && from == *buffer {
                    return expr.clone();
                }
                let kind = ExprKind::BufferLoad {
                    buffer: from,
                    indices: new,
                    predicate: p,
                };
                Expr::new(kind, expr.dtype, expr.span)
            }
            _ => self.walk_expr(expr),
        }
    }

    /// In the description of a buffer a narrowed variable is cast back.
    fn buffer_use(&mut self, buffer: &Buffer) -> Buffer {
        if self.vars.is_empty() {
            return buffer.clone();
        }
        if let Some(known) = self.buffers.get(buffer) {
            return known.clone();
        }
        let new = buffer.map_exprs(buffer.data.clone(), |e| self.expr(e));
        self.buffers.insert(buffer.clone(), new.clone());
        new
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
            StmtKind::Bind(var, value) if self.narrow.contains(var) => {
                let value = self.narrowed(value);
                let new = var.retyped(to_narrow(var.dtype()));
                self.vars.insert(var.clone(), new.clone());
                Stmt::bind(&new, value, stmt.span)
            }
            StmtKind::For(l) if self.narrow.contains(&l.var) => {
                let (min, extent) = (self.narrowed(&l.min), self.narrowed(&l.extent));
                let step = l.step.as_ref().map(|s| self.narrowed(s));
                let var = l.var.retyped(DType::INT32);
                self.vars.insert(l.var.clone(), var.clone());
                let new = ForLoop {
                    var,
                    min,
                    extent,
                    step,
                    body: self.stmt(&l.body),
                    ..l.clone()
                };
                Stmt::new(new, stmt.span)
            }
            StmtKind::BufferStore(BufferStore {
                buffer,
                indices,
                value,
                predicate,
            }) => {
                let new_value = self.expr(value);
                let to = self.buffer_use(buffer);
                let new: Vec<Expr> = indices.iter().map(|i| self.index(i)).collect();
                let p = predicate.as_ref().map(|p| self.expr(p));
                let same = new_value.same_node(value)
                    && new.iter().zip(indices).all(|(a, b)| a.same_node(b))
                    && p.iter().zip(predicate).all(|(a, b)| a.same_node(b));
                if same && to == *buffer {
                    return stmt.clone();
                }
                let new = BufferStore {
                    buffer: to,
                    indices: new,
                    value: new_value,
                    predicate: p,
                };
                Stmt::new(new, stmt.span)
            }
            _ => self.walk_stmt(stmt),
        }
    }
}

fn mentions(expr: &Expr, pred: &impl Fn(&Var) -> bool) -> bool {
    match &expr.kind {
        ExprKind::Var(v) => pred(v),
        ExprKind::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul, a, b) => {
            mentions(a, pred) || mentions(b, pred)
        }
        _ => expr.operands().any(|e| mentions(e, pred)),
    }
}
