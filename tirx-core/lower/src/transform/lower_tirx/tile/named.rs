//! What a name in a condition stands for: `leader: T.let = (warp == 0) & elected`, `elected = T.ptx.elect_sync()`.
//!
//! Kernels compute conditions on scope ids before the `if` that tests them. A bound variable is its value. A scalar of a
//! thread is its value too where the text stores it once, in a statement that runs before: within the same block or
//! around it. Scalars whose address is taken, or that a tile primitive gets, are not followed.

use rustc_hash::FxHashMap;

use crate::intrin::Op;
use crate::ir::{
    Buffer, BufferStore, Expr, ExprKind, Mutator, ScopeIdKind, Stmt, StmtKind, TileArg, Var, Visitor,
};

/// Values with more nodes than this are not followed.
const MAX_SIZE: u32 = 64;

/// The values of names at a place of the walk.
#[derive(Default)]
pub(super) struct Named {
    /// Values, by variable or by the pointer of a scalar's storage.
    values: FxHashMap<Var, Expr>,
    /// The scalars among them, from the outermost block on.
    scalars: Vec<Var>,
    /// How often each storage is written, as [`Writes`] counts.
    writes: FxHashMap<Var, u32>,
}

impl Named {
    /// Before the walk through `body`.
    pub(super) fn from_body(body: &Stmt) -> Named {
        let mut count = Writes(FxHashMap::default());
        count.visit_stmt(body);
        Named {
            writes: count.0,
            ..Named::default()
        }
    }

    /// A place to return to with [`Named::leave`] at the end of a block.
    pub(super) fn enter(&self) -> usize {
        self.scalars.len()
    }

    /// What a block stored is not known behind it: the block may not have run.
    pub(super) fn leave(&mut self, place: usize) {
        for scalar in self.scalars.drain(place..) {
            self.values.remove(&scalar);
        }
    }

    /// `var` is bound to `value`.
    pub(super) fn bind(&mut self, var: &Var, value: &Expr, ids: &FxHashMap<Var, ScopeIdKind>) {
        if let Some(value) = self.followed(value, ids) {
            self.values.insert(var.clone(), value);
        }
    }

    /// A store to a buffer.
    pub(super) fn store(&mut self, store: &BufferStore, ids: &FxHashMap<Var, ScopeIdKind>) {
        let data = &store.buffer.data;
        if is_scalar(&store.buffer)
            && self.writes.get(data) == Some(&1)
            && let Some(value) = self.followed(&store.value, ids)
        {
            self.values.insert(data.clone(), value);
            self.scalars.push(data.clone());
        }
    }

    /// The value in terms of scope ids, if it is one that conditions may depend on.
    fn followed(&self, value: &Expr, ids: &FxHashMap<Var, ScopeIdKind>) -> Option<Expr> {
        let value = self.expand(value);
        if value.size() > MAX_SIZE {
            return None;
        }
        let mut find = OfThreads { ids, found: false };
        find.visit_expr(&value);
        find.found.then_some(value)
    }

    /// An expression with names replaced by what they stand for.
    pub(super) fn expand(&self, expr: &Expr) -> Expr {
        match self.values.is_empty() {
            true => expr.clone(),
            false => Expand(&self.values).expr(expr),
        }
    }
}

/// A scalar of each thread.
fn is_scalar(buffer: &Buffer) -> bool {
    buffer.scope() == "local" && buffer.shape.len() == 1 && buffer.shape[0].is_int(1)
}

struct Expand<'a>(&'a FxHashMap<Var, Expr>);

impl Mutator for Expand<'_> {
    fn expr(&mut self, expr: &Expr) -> Expr {
        let value = match &expr.kind {
            ExprKind::Var(var) => self.0.get(var),
            ExprKind::BufferLoad { buffer, .. } if is_scalar(buffer) => self.0.get(&buffer.data),
            _ => None,
        };
        match value {
            Some(value) if value.dtype == expr.dtype => value.clone(),
            _ => self.walk_expr(expr),
        }
    }
}

/// Whether an expression differs between the threads of a block.
struct OfThreads<'a> {
    ids: &'a FxHashMap<Var, ScopeIdKind>,
    found: bool,
}

impl Visitor for OfThreads<'_> {
    fn visit_expr(&mut self, e: &Expr) {
        self.found |= e.as_var().is_some_and(|var| self.ids.contains_key(var));
        self.found |= e.as_call(Op::PtxElectSync).is_some();
        if !self.found {
            self.walk_expr(e);
        }
    }
}

/// Counts the writes to each storage, by its pointer. A count of 1 means that a single `BufferStore` writes the storage.
struct Writes(FxHashMap<Var, u32>);

impl Writes {
    fn add_store(&mut self, data: &Var) {
        *self.0.entry(data.clone()).or_default() += 1;
    }

    /// The storage may be written any number of times: its address is used, or a tile primitive gets it. Any count above 1 says so.
    fn add_unknown(&mut self, data: &Var) {
        *self.0.entry(data.clone()).or_default() += 2;
    }
}

impl Visitor for Writes {
    fn visit_expr(&mut self, e: &Expr) {
        if let Some([of]) = e.as_call(Op::AddressOf)
            && let ExprKind::BufferLoad { buffer, .. } = &of.kind
        {
            self.add_unknown(&buffer.data);
        }
        if let ExprKind::Var(var) = &e.kind
            && var.dtype().is_handle()
        {
            self.add_unknown(var);
        }
        self.walk_expr(e);
    }

    fn visit_stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::BufferStore(store) => self.add_store(&store.buffer.data),
            StmtKind::Tile(call) => {
                for arg in &call.args {
                    if let TileArg::Region(region) = arg {
                        self.add_unknown(&region.buffer.data);
                    }
                }
            }
            _ => {}
        }
        self.walk_stmt(stmt);
    }
}
