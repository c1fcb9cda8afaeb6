//! Statements.

use std::fmt;
use std::sync::Arc;

use super::expr::contents::Contents;
use super::{AttrValue, Buffer, Expr, IterVar, TileCall, Var};
use crate::source::Span;

/// How a loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(
    missing_docs,
    reason = "the names are the language's: T.serial, T.parallel, …"
)]
pub enum ForKind {
    Serial,
    Parallel,
    Vectorized,
    Unrolled,
    ThreadBinding,
}

/// The key of the [`Attr`](StmtKind::Attr) that `T.hint` makes; its node is a [`Dict`](AttrNode::Dict).
pub const HINT: &str = "tirx_hint";

/// The keyword of a hint that holds its message.
pub const HINT_MESSAGE: &str = "message";

/// The subject of an [`Attr`](StmtKind::Attr).
#[derive(Clone, Debug, PartialEq)]
pub enum AttrNode {
    /// No subject: `T.attr({"key": value})`.
    None,
    /// A name: `T.attr("default", …)`.
    Str(Arc<str>),
    /// A hardware index (`thread_extent`, `virtual_thread`).
    IterVar(IterVar),
    /// A buffer.
    Buffer(Buffer),
    /// A variable or expression.
    Expr(Expr),
    /// A message and keywords about the region, in the order in which they were written:
    /// `T.hint("message", key=value)`.
    Dict(Vec<(Arc<str>, AttrValue)>),
}

/// Which level of the launch hierarchy a scope id counts: parent → child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are the language's: T.cta_id, T.warp_id, …")]
pub enum ScopeIdKind {
    /// kernel → cluster
    ClusterId,
    /// kernel → cta
    CtaId,
    /// cluster → cta
    CtaIdInCluster,
    /// cta pair → cta
    CtaIdInPair,
    /// cta → warpgroup
    WarpgroupId,
    /// cta → warp
    WarpId,
    /// warpgroup → warp
    WarpIdInWg,
    /// cta → thread
    ThreadId,
    /// warpgroup → thread
    ThreadIdInWg,
    /// warp → thread
    LaneId,
}

impl ScopeIdKind {
    /// All kinds with the name `T` gives them.
    pub const ALL: [(ScopeIdKind, &'static str); 10] = [
        (ScopeIdKind::ClusterId, "cluster_id"),
        (ScopeIdKind::CtaId, "cta_id"),
        (ScopeIdKind::CtaIdInCluster, "cta_id_in_cluster"),
        (ScopeIdKind::CtaIdInPair, "cta_id_in_pair"),
        (ScopeIdKind::WarpgroupId, "warpgroup_id"),
        (ScopeIdKind::WarpId, "warp_id"),
        (ScopeIdKind::WarpIdInWg, "warp_id_in_wg"),
        (ScopeIdKind::ThreadId, "thread_id"),
        (ScopeIdKind::ThreadIdInWg, "thread_id_in_wg"),
        (ScopeIdKind::LaneId, "lane_id"),
    ];

    /// The name `T` gives it.
    pub fn name(self) -> &'static str {
        ScopeIdKind::ALL
            .iter()
            .find(|(k, _)| *k == self)
            .map_or("", |(_, n)| n)
    }
}

/// Declared scope ids: `bx, by = T.cta_id([GM, GN])`.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopeIdDef {
    /// What they count.
    pub kind: ScopeIdKind,
    /// One variable per dimension, `int32`.
    pub vars: Vec<Var>,
    /// Their extents; `None` where they are inferred from the siblings.
    pub extents: Option<Vec<Expr>>,
    /// Preferred extents (clusters).
    pub preferred: Option<Vec<Expr>>,
}

/// An attribute of the region `body` (TVM's `AttrStmt`).
#[derive(Clone, Debug)]
pub struct Attr {
    /// Its subject.
    pub node: AttrNode,
    /// Its key: `thread_extent`, `tirx.device_entry`, …
    pub key: Arc<str>,
    /// Its value.
    pub value: Expr,
    /// The region that it applies to.
    pub body: Stmt,
}

/// `buffer[indices] = value`.
#[derive(Clone, Debug)]
pub struct BufferStore {
    /// The buffer that is written.
    pub buffer: Buffer,
    /// One index per dimension; the last may be a vector.
    pub indices: Vec<Expr>,
    /// The value; it has as many lanes as the indices select.
    pub value: Expr,
    /// Mask of the lanes to store; `None` stores all.
    pub predicate: Option<Expr>,
}

/// A loop; `break_loop`/`continue_loop` calls refer to the innermost one.
#[derive(Clone, Debug)]
pub struct ForLoop {
    /// Takes `min, min + step, …` below `min + extent`.
    pub var: Var,
    /// First value.
    pub min: Expr,
    /// Length of the range; the number of iterations where `step` is one.
    pub extent: Expr,
    /// How it runs.
    pub kind: ForKind,
    /// The hardware index of a `ThreadBinding` loop.
    pub thread: Option<IterVar>,
    /// Hints to passes.
    pub annotations: Vec<(Arc<str>, AttrValue)>,
    /// Step, where it is not one; positive.
    pub step: Option<Expr>,
    /// What is repeated.
    pub body: Stmt,
}

impl ForLoop {
    /// A loop of `var` over `0..extent` without annotations.
    pub fn new(kind: ForKind, var: &Var, extent: Expr, body: Stmt) -> ForLoop {
        ForLoop {
            var: var.clone(),
            min: Expr::constant(extent.dtype, 0),
            extent,
            kind,
            thread: None,
            annotations: Vec::new(),
            step: None,
            body,
        }
    }
}

/// Stops the function with an error unless the condition holds. A flat statement.
#[derive(Clone, Debug)]
pub struct Assert {
    /// What must hold.
    pub condition: Expr,
    /// `RuntimeError`, `TypeError`, `ValueError`, …
    pub kind: Arc<str>,
    /// Message in parts, to be joined.
    pub message: Vec<Arc<str>>,
}

/// What a statement is. See [`super`] for scopes of declarations.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// An immutable binding (`x: T.let = value`), flat.
    Bind(Var, Expr),
    /// An attribute of a region.
    Attr(Attr),
    /// `buffer[indices] = value`.
    BufferStore(BufferStore),
    /// New storage behind `buffer.data`, flat. Contents are undefined until written.
    AllocBuffer(Buffer, Vec<(Arc<str>, AttrValue)>),
    /// A view over an existing pointer, flat.
    DeclBuffer(Buffer),
    /// Scope ids, flat; gone after LowerTIRx.
    ScopeId(ScopeIdDef),
    /// One after the other. Never holds a `Seq` directly; see [`Stmt::seq`].
    Seq(Vec<Stmt>),
    /// An expression evaluated for its effect.
    Evaluate(Expr),
    /// A loop over a range.
    For(ForLoop),
    /// A loop while the condition holds.
    While(Expr, Stmt),
    /// A branch.
    If(Expr, Stmt, Option<Stmt>),
    /// A check, flat.
    Assert(Assert),
    /// A tile primitive; gone after LowerTIRx.
    Tile(Box<TileCall>),
}

impl From<Attr> for StmtKind {
    fn from(attr: Attr) -> StmtKind {
        StmtKind::Attr(attr)
    }
}

impl From<BufferStore> for StmtKind {
    fn from(store: BufferStore) -> StmtKind {
        StmtKind::BufferStore(store)
    }
}

impl From<ForLoop> for StmtKind {
    fn from(l: ForLoop) -> StmtKind {
        StmtKind::For(l)
    }
}

impl From<Assert> for StmtKind {
    fn from(assert: Assert) -> StmtKind {
        StmtKind::Assert(assert)
    }
}

impl From<TileCall> for StmtKind {
    fn from(call: TileCall) -> StmtKind {
        StmtKind::Tile(Box::new(call))
    }
}

/// A statement with its source text.
#[derive(Debug)]
pub struct StmtNode {
    /// What it is.
    pub kind: StmtKind,
    /// The text it came from.
    pub span: Span,
    contents: Contents,
}

/// A shared statement.
#[derive(Clone)]
pub struct Stmt(Arc<StmtNode>);

impl std::ops::Deref for Stmt {
    type Target = StmtNode;
    fn deref(&self) -> &StmtNode {
        &self.0
    }
}

impl fmt::Debug for Stmt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl Stmt {
    /// A statement.
    pub fn new(kind: impl Into<StmtKind>, span: Span) -> Stmt {
        let kind = kind.into();
        let contents = Contents::of_stmt(&kind);
        Stmt(Arc::new(StmtNode { kind, span, contents }))
    }

    pub(crate) fn contents(&self) -> Contents {
        self.contents
    }

    /// Whether it has a call of an intrinsic.
    pub fn has_call(&self) -> bool {
        self.contents.has(Contents::CALLS)
    }

    /// The same as [`Expr::has_narrow_float`].
    pub fn has_narrow_float(&self) -> bool {
        self.contents.has(Contents::NARROW_FLOATS)
    }

    /// Statements in order: nested sequences are spliced, no-ops dropped, one statement stands alone.
    /// An empty list gives a no-op.
    pub fn seq(stmts: impl IntoIterator<Item = Stmt>) -> Stmt {
        fn push(out: &mut Vec<Stmt>, stmt: Stmt) {
            match &stmt.kind {
                StmtKind::Seq(inner) => inner.iter().for_each(|s| push(out, s.clone())),
                _ if stmt.is_nop() => {}
                _ => out.push(stmt),
            }
        }
        let stmts = stmts.into_iter();
        let mut out = Vec::with_capacity(stmts.size_hint().0);
        stmts.for_each(|s| push(&mut out, s));
        match out.len() {
            0 => Stmt::nop(),
            1 => out.remove(0),
            _ => {
                let span = out.iter().fold(Span::NONE, |s, stmt| s.or(stmt.span));
                Stmt::new(StmtKind::Seq(out), span)
            }
        }
    }

    /// Does nothing.
    pub fn nop() -> Stmt {
        Stmt::new(StmtKind::Evaluate(Expr::int32(0)), Span::NONE)
    }

    /// Whether it evaluates a constant, or is an empty sequence.
    pub fn is_nop(&self) -> bool {
        match &self.kind {
            StmtKind::Evaluate(e) => e.as_int().is_some(),
            StmtKind::Seq(stmts) => stmts.is_empty(),
            _ => false,
        }
    }

    /// An expression evaluated for its effect.
    pub fn evaluate(expr: Expr) -> Stmt {
        let span = expr.span;
        Stmt::new(StmtKind::Evaluate(expr), span)
    }

    /// A store.
    pub fn store(buffer: &Buffer, indices: Vec<Expr>, value: Expr, span: Span) -> Stmt {
        let store = BufferStore {
            buffer: buffer.clone(),
            indices,
            value,
            predicate: None,
        };
        Stmt::new(store, span)
    }

    /// A binding.
    pub fn bind(var: &Var, value: Expr, span: Span) -> Stmt {
        Stmt::new(StmtKind::Bind(var.clone(), value), span)
    }

    /// A region with an attribute.
    pub fn attr(node: AttrNode, key: impl Into<Arc<str>>, value: Expr, body: Stmt, span: Span) -> Stmt {
        let key = key.into();
        let attr = Attr {
            node,
            key,
            value,
            body,
        };
        Stmt::new(attr, span)
    }

    /// A serial loop from zero.
    pub fn for_serial(var: &Var, extent: Expr, body: Stmt, span: Span) -> Stmt {
        Stmt::new(ForLoop::new(ForKind::Serial, var, extent, body), span)
    }

    /// A branch.
    pub fn if_else(condition: Expr, then: Stmt, otherwise: Option<Stmt>, span: Span) -> Stmt {
        Stmt::new(StmtKind::If(condition, then, otherwise), span)
    }

    /// The statements of a sequence; of another statement, itself.
    pub fn as_slice(&self) -> &[Stmt] {
        match &self.kind {
            StmtKind::Seq(stmts) => stmts,
            _ => std::slice::from_ref(self),
        }
    }

    /// Whether both are the same node in memory.
    pub fn same_node(&self, other: &Stmt) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
