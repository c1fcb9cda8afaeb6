//! Structural equality: the same program up to the names of what it binds.
//!
//! Variables and buffers that are bound (parameters, shape variables, loops, bindings, allocations, declarations) are
//! matched pairwise where they are bound; all others must be the same variable. Spans and names take no part, nor do
//! differences of writing: an absent element offset is zero, annotations have no order, a hardware index is its tag.

use crate::ir::abi::keys;
use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{
    AttrNode, AttrValue, Attrs, Buffer, DType, Expr, ExprKind, ForLoop, IRModule, PrimFunc, Stmt, StmtKind,
    TileArg, TileCall, Type, Var, image,
};
use crate::ir::{print_expr, print_stmt};
use crate::layout::Layout;

/// The first difference that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The way to it from the root: `main.body[3].value`.
    pub path: String,
    /// What is there on the left.
    pub left: String,
    /// What is there on the right.
    pub right: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "at {}: `{}` is not `{}`",
            self.path,
            self.left.trim_end(),
            self.right.trim_end()
        )
    }
}

impl std::error::Error for Mismatch {}

/// What can be compared and hashed by structure.
pub trait Structural {
    #[doc(hidden)]
    fn compare(&self, other: &Self, state: &mut Comparison) -> Result<(), Mismatch>;
    #[doc(hidden)]
    fn write(&self, writer: &mut image::Encoder);
}

/// Whether two modules, functions, statements or expressions are the same up to renaming of what they bind.
pub fn structural_equal<T: Structural + ?Sized>(a: &T, b: &T) -> Result<(), Mismatch> {
    a.compare(b, &mut Comparison::default())
}

/// A number that is the same for structurally equal things, on every machine. Variables that nothing binds count by
/// the order in which they occur.
pub fn structural_hash<T: Structural + ?Sized>(a: &T) -> u64 {
    let mut writer = image::Encoder::structural();
    a.write(&mut writer);
    // FNV-1a.
    writer.bytes().iter().fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3)
    })
}

/// A step of the way to a difference.
#[derive(Clone)]
enum Step {
    Field(&'static str),
    Index(usize),
    Name(Arc<str>),
}

/// Which variable of the left is which of the right.
#[derive(Default)]
pub struct Comparison {
    vars: FxHashMap<Var, Var>,
    reverse: FxHashMap<Var, Var>,
    buffers: FxHashMap<Buffer, Buffer>,
    path: Vec<Step>,
}

type Outcome = Result<(), Mismatch>;

impl Comparison {
    fn at<R>(&mut self, step: Step, f: impl FnOnce(&mut Self) -> Result<R, Mismatch>) -> Result<R, Mismatch> {
        self.path.push(step);
        let result = f(self);
        if result.is_ok() {
            self.path.pop();
        }
        result
    }

    fn field<R>(
        &mut self,
        name: &'static str,
        f: impl FnOnce(&mut Self) -> Result<R, Mismatch>,
    ) -> Result<R, Mismatch> {
        self.at(Step::Field(name), f)
    }

    fn differ(&self, left: impl Into<String>, right: impl Into<String>) -> Outcome {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Field(name) if path.is_empty() => path.push_str(name),
                Step::Field(name) => path.push_str(&format!(".{name}")),
                Step::Index(i) => path.push_str(&format!("[{i}]")),
                Step::Name(name) if path.is_empty() => path.push_str(name),
                Step::Name(name) => path.push_str(&format!(".{name}")),
            }
        }
        let path = if path.is_empty() { "the root".into() } else { path };
        Err(Mismatch {
            path,
            left: left.into(),
            right: right.into(),
        })
    }

    fn same<T: PartialEq + fmt::Debug>(&self, a: &T, b: &T) -> Outcome {
        if a == b {
            Ok(())
        } else {
            self.differ(format!("{a:?}"), format!("{b:?}"))
        }
    }

    fn ty(&self, a: &Type, b: &Type) -> Outcome {
        if a == b {
            Ok(())
        } else {
            self.differ(type_name(a), type_name(b))
        }
    }

    /// Matches two variables where they are bound.
    fn bind(&mut self, a: &Var, b: &Var) -> Outcome {
        self.ty(a.ty(), b.ty())?;
        if let Some(old) = self.vars.insert(a.clone(), b.clone()) {
            self.reverse.remove(&old);
        }
        self.reverse.insert(b.clone(), a.clone());
        Ok(())
    }

    fn is_free(&self, a: &Var, b: &Var) -> bool {
        !self.vars.contains_key(a) && !self.reverse.contains_key(b)
    }

    fn var(&self, a: &Var, b: &Var) -> Outcome {
        let same = match (self.vars.get(a), self.reverse.get(b)) {
            (Some(x), _) => x == b,
            (None, None) => a == b,
            (None, Some(_)) => false,
        };
        if same {
            Ok(())
        } else {
            self.differ(a.name(), b.name())
        }
    }

    /// As [`Comparison::var`]; two variables that nothing binds are matched from here on.
    fn var_or_bind(&mut self, a: &Var, b: &Var) -> Outcome {
        if a != b && self.is_free(a, b) {
            self.bind(a, b)
        } else {
            self.var(a, b)
        }
    }

    fn exprs(&mut self, a: &[Expr], b: &[Expr]) -> Outcome {
        if a.len() != b.len() {
            let all =
                |list: &[Expr]| format!("[{}]", list.iter().map(print_expr).collect::<Vec<_>>().join(", "));
            return self.differ(all(a), all(b));
        }
        a.iter()
            .zip(b)
            .enumerate()
            .try_for_each(|(i, (x, y))| self.at(Step::Index(i), |s| s.expr(x, y)))
    }

    fn option(&mut self, a: &Option<Expr>, b: &Option<Expr>) -> Outcome {
        let text = |e: &Option<Expr>| e.as_ref().map_or("nothing".into(), print_expr);
        match (a, b) {
            (Some(x), Some(y)) => self.expr(x, y),
            (None, None) => Ok(()),
            _ => self.differ(text(a), text(b)),
        }
    }

    fn expr(&mut self, a: &Expr, b: &Expr) -> Outcome {
        if a.dtype != b.dtype {
            return self.differ(
                format!("{} ({})", print_expr(a), a.dtype),
                format!("{} ({})", print_expr(b), b.dtype),
            );
        }
        use ExprKind::*;
        match (&a.kind, &b.kind) {
            (Var(x), Var(y)) => self.var(x, y),
            (Int(x), Int(y)) if x == y => Ok(()),
            (Float(x), Float(y)) if x.to_bits() == y.to_bits() => Ok(()),
            (Str(x), Str(y)) if x == y => Ok(()),
            (Cast(x), Cast(y)) | (Not(x), Not(y)) => self.field("value", |s| s.expr(x, y)),
            (Binary(op, x1, x2), Binary(other, y1, y2)) if op == other => {
                self.field("a", |s| s.expr(x1, y1))?;
                self.field("b", |s| s.expr(x2, y2))
            }
            (Select(c1, t1, f1), Select(c2, t2, f2)) => {
                self.field("condition", |s| s.expr(c1, c2))?;
                self.field("true_value", |s| s.expr(t1, t2))?;
                self.field("false_value", |s| s.expr(f1, f2))
            }
            (
                BufferLoad {
                    buffer: x,
                    indices: i,
                    predicate: p,
                },
                BufferLoad {
                    buffer: y,
                    indices: j,
                    predicate: q,
                },
            ) => {
                self.field("buffer", |s| s.buffer_use(x, y))?;
                self.field("indices", |s| s.exprs(i, j))?;
                self.field("predicate", |s| s.option(p, q))
            }
            (
                Ramp {
                    base: x,
                    stride: s1,
                    lanes: l,
                },
                Ramp {
                    base: y,
                    stride: s2,
                    lanes: m,
                },
            ) if l == m => {
                self.field("base", |s| s.expr(x, y))?;
                self.field("stride", |s| s.expr(s1, s2))
            }
            (Broadcast { value: x, lanes: l }, Broadcast { value: y, lanes: m }) if l == m => {
                self.field("value", |s| s.expr(x, y))
            }
            (
                Shuffle {
                    vectors: v,
                    indices: i,
                },
                Shuffle {
                    vectors: w,
                    indices: j,
                },
            ) => {
                self.field("vectors", |s| s.exprs(v, w))?;
                self.field("indices", |s| s.exprs(i, j))
            }
            (Call { op, args: x }, Call { op: other, args: y }) if op == other => {
                self.field("args", |s| s.exprs(x, y))
            }
            (Let(v, x, body), Let(w, y, other)) => {
                self.field("value", |s| s.expr(x, y))?;
                self.bind(v, w)?;
                self.field("body", |s| s.expr(body, other))
            }
            _ => self.differ(print_expr(a), print_expr(b)),
        }
    }

    fn buffer_use(&mut self, a: &Buffer, b: &Buffer) -> Outcome {
        match self.buffers.get(a) {
            Some(x) if x == b => Ok(()),
            Some(_) => self.differ(&*a.name, &*b.name),
            None if a == b => Ok(()),
            // Nobody declared either: they are what their descriptions say.
            None => self.buffer(a, b),
        }
    }

    /// Matches two buffers where they are declared.
    fn buffer(&mut self, a: &Buffer, b: &Buffer) -> Outcome {
        let name = Step::Name(a.name.clone());
        self.at(name, |s| {
            s.field("dtype", |s| s.same(&a.dtype, &b.dtype))?;
            s.field("data", |s| s.var_or_bind(&a.data, &b.data))?;
            s.field("shape", |s| s.definitions(&a.shape, &b.shape))?;
            s.field("strides", |s| s.definitions(&a.strides, &b.strides))?;
            s.field("elem_offset", |s| {
                let zero = |b: &Buffer| b.elem_offset.clone().unwrap_or_else(|| Expr::int32(0));
                match (zero(a), zero(b)) {
                    (x, y) if x.is_int(0) && y.is_int(0) => Ok(()),
                    (x, y) => s.definition(&x, &y),
                }
            })?;
            s.field("layout", |s| s.layout(&a.layout, &b.layout))?;
            s.field("align", |s| s.same(&a.align, &b.align))?;
            s.field("offset_factor", |s| s.same(&a.offset_factor, &b.offset_factor))?;
            s.field("allocated_addr", |s| {
                s.exprs(&a.allocated_addr, &b.allocated_addr)
            })
        })?;
        self.buffers.insert(a.clone(), b.clone());
        Ok(())
    }

    /// Expressions of a declaration: a variable alone that nothing has bound is bound by it.
    fn definitions(&mut self, a: &[Expr], b: &[Expr]) -> Outcome {
        if a.len() != b.len() {
            return self.exprs(a, b);
        }
        a.iter()
            .zip(b)
            .enumerate()
            .try_for_each(|(i, (x, y))| self.at(Step::Index(i), |s| s.definition(x, y)))
    }

    fn definition(&mut self, a: &Expr, b: &Expr) -> Outcome {
        struct Bind<'a>(&'a mut Comparison);
        impl Bind<'_> {
            fn walk(&mut self, a: &Expr, b: &Expr) {
                if let (ExprKind::Var(x), ExprKind::Var(y)) = (&a.kind, &b.kind) {
                    if x != y && self.0.is_free(x, y) && x.ty() == y.ty() {
                        // The types agree, so this cannot fail.
                        let _ = self.0.bind(x, y);
                    }
                    return;
                }
                for (x, y) in a.operands().zip(b.operands()) {
                    self.walk(x, y);
                }
            }
        }
        Bind(self).walk(a, b);
        self.expr(a, b)
    }

    fn layout(&mut self, a: &Option<Layout>, b: &Option<Layout>) -> Outcome {
        let (Some(a), Some(b)) = (a, b) else {
            return self.same(&a.is_some(), &b.is_some());
        };
        self.same(&a.swizzle(), &b.swizzle())?;
        let (x, y) = (a.tile(), b.tile());
        let sizes = |t: &crate::layout::TileLayout| (t.shard.len(), t.replica.len(), t.offset.len());
        self.same(&sizes(x), &sizes(y))?;
        for (i, j) in x
            .shard
            .iter()
            .chain(&x.replica)
            .zip(y.shard.iter().chain(&y.replica))
        {
            self.expr(&i.extent, &j.extent)?;
            self.expr(&i.stride, &j.stride)?;
            self.same(&i.axis, &j.axis)?;
        }
        for ((axis, value), (other, other_value)) in x.offset.iter().zip(&y.offset) {
            self.same(axis, other)?;
            self.expr(value, other_value)?;
        }
        Ok(())
    }

    fn attrs<'a>(
        &mut self,
        a: impl IntoIterator<Item = (&'a Arc<str>, &'a AttrValue)>,
        b: impl IntoIterator<Item = (&'a Arc<str>, &'a AttrValue)>,
    ) -> Outcome {
        let sorted = |list: Vec<(&'a Arc<str>, &'a AttrValue)>| {
            let mut list = list;
            list.sort_by_key(|(k, _)| (*k).clone());
            list
        };
        let (a, b) = (sorted(a.into_iter().collect()), sorted(b.into_iter().collect()));
        let keys =
            |list: &[(&Arc<str>, &AttrValue)]| list.iter().map(|(k, _)| (*k).clone()).collect::<Vec<_>>();
        self.same(&keys(&a), &keys(&b))?;
        a.iter()
            .zip(&b)
            .try_for_each(|((key, x), (_, y))| self.at(Step::Name((*key).clone()), |s| s.attr_value(x, y)))
    }

    fn attr_value(&mut self, a: &AttrValue, b: &AttrValue) -> Outcome {
        match (&plain(a), &plain(b)) {
            // A function's attribute may keep the name of a parameter that a pass has replaced.
            (AttrValue::Expr(x), AttrValue::Expr(y)) => self.definition(x, y),
            (AttrValue::Float(x), AttrValue::Float(y)) if x.to_bits() == y.to_bits() => Ok(()),
            (AttrValue::List(x), AttrValue::List(y)) if x.len() == y.len() => x
                .iter()
                .zip(y)
                .enumerate()
                .try_for_each(|(i, (x, y))| self.at(Step::Index(i), |s| s.attr_value(x, y))),
            (AttrValue::Dict(x), AttrValue::Dict(y)) | (AttrValue::Target(x), AttrValue::Target(y)) => {
                self.attrs(x, y)
            }
            (x, y) => self.same(x, y),
        }
    }

    fn stmt(&mut self, a: &Stmt, b: &Stmt) -> Outcome {
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

    fn tile(&mut self, a: &TileCall, b: &TileCall) -> Outcome {
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

    fn attr_node(&mut self, key: &str, a: &AttrNode, b: &AttrNode) -> Outcome {
        match (a, b) {
            (AttrNode::None, AttrNode::None) => Ok(()),
            (AttrNode::Str(x), AttrNode::Str(y)) => self.same(x, y),
            (AttrNode::Buffer(x), AttrNode::Buffer(y)) => self.buffer_use(x, y),
            (AttrNode::Expr(x), AttrNode::Expr(y)) => self.expr(x, y),
            (AttrNode::Dict(x), AttrNode::Dict(y)) => {
                let (x, y) = (x.clone(), y.clone());
                self.attrs(x.iter().map(|(k, v)| (k, v)), y.iter().map(|(k, v)| (k, v)))
            }
            (AttrNode::IterVar(x), AttrNode::IterVar(y)) => {
                if key == keys::THREAD_EXTENT {
                    self.same(&x.thread_tag, &y.thread_tag)?;
                }
                self.var_or_bind(&x.var, &y.var)
            }
            // In text the index stands for itself.
            (AttrNode::IterVar(x), AttrNode::Expr(y)) if y.as_var().is_some() => {
                self.expr(&Expr::var(&x.var), y)
            }
            (AttrNode::Expr(x), AttrNode::IterVar(y)) if x.as_var().is_some() => {
                self.expr(x, &Expr::var(&y.var))
            }
            _ => self.differ(format!("{a:?}"), format!("{b:?}")),
        }
    }

    fn func(&mut self, a: &PrimFunc, b: &PrimFunc) -> Outcome {
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

/// An attribute value without differences of writing: constants as plain values.
pub(super) fn plain(value: &AttrValue) -> AttrValue {
    match value {
        AttrValue::Expr(e) => match &e.kind {
            ExprKind::Int(v) if e.dtype.is_bool() => AttrValue::Bool(*v != 0),
            ExprKind::Int(v) if e.dtype == DType::INT32 => AttrValue::Int(*v as i64),
            ExprKind::Str(s) => AttrValue::Str(s.clone()),
            _ => value.clone(),
        },
        _ => value.clone(),
    }
}

fn type_name(ty: &Type) -> String {
    match ty {
        Type::Prim(dtype) => dtype.to_string(),
        Type::Pointer { element, scope } => format!("pointer to {element} in {scope}"),
        Type::TensorMap => "tensor map".to_string(),
    }
}

impl Structural for Expr {
    fn compare(&self, other: &Self, state: &mut Comparison) -> Outcome {
        state.expr(self, other)
    }
    fn write(&self, writer: &mut image::Encoder) {
        writer.expr(self);
    }
}

impl Structural for Stmt {
    fn compare(&self, other: &Self, state: &mut Comparison) -> Outcome {
        state.stmt(self, other)
    }
    fn write(&self, writer: &mut image::Encoder) {
        writer.stmt(self);
    }
}

impl Structural for PrimFunc {
    fn compare(&self, other: &Self, state: &mut Comparison) -> Outcome {
        state.func(self, other)
    }
    fn write(&self, writer: &mut image::Encoder) {
        writer.func(self);
    }
}

impl Structural for IRModule {
    fn compare(&self, other: &Self, state: &mut Comparison) -> Outcome {
        let names = |m: &IRModule| {
            let mut names: Vec<_> = m.functions.iter().map(|(n, _)| n.clone()).collect();
            names.sort();
            names
        };
        state.same(&names(self), &names(other))?;
        let attrs = |m: &IRModule| -> Attrs { m.attrs.clone() };
        state.field("attrs", |s| s.attrs(&attrs(self), &attrs(other)))?;
        for (name, func) in &self.functions {
            if let Some(other) = other.get(name) {
                state.at(Step::Name(name.clone()), |s| s.func(func, other))?;
            }
        }
        Ok(())
    }
    fn write(&self, writer: &mut image::Encoder) {
        writer.module(self);
    }
}
