//! Device regions: collects their scope ids and wraps each region in its launch.

use crate::ir::abi::keys;
use rustc_hash::{FxHashMap, FxHashSet};

use super::hierarchy::Declared;
use super::scope_ids::{Resolved, resolve};
use super::tile::{self, Decision};
use crate::diagnostic::{Diagnostic, Result};
use crate::ir::{
    Attr, AttrNode, Expr, ExprKind, ForKind, ForLoop, IterKind, IterVar, Mutator, PrimFunc, Stmt, StmtKind,
    Var, Visitor, is_pure, substitute,
};
use crate::source::Span;
use crate::transform::Target;

/// The key of the attribute that `T.device_entry()` makes.
const DEVICE_ENTRY: &str = keys::DEVICE_ENTRY;

/// The function with its device regions wrapped in launches.
pub(super) fn lower(func: PrimFunc, targets: &[Target], decisions: &mut Vec<Decision>) -> Result<PrimFunc> {
    let mut regions = Regions {
        targets,
        decisions,
        failed: None,
    };
    let body = regions.stmt(&func.body);
    match regions.failed {
        Some(error) => Err(error),
        None => Ok(PrimFunc { body, ..func }),
    }
}

/// Walks the host part.
struct Regions<'a> {
    targets: &'a [Target],
    decisions: &'a mut Vec<Decision>,
    failed: Option<Box<Diagnostic>>,
}

impl Mutator for Regions<'_> {
    fn expr(&mut self, expr: &Expr) -> Expr {
        expr.clone()
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        if self.failed.is_some() {
            return stmt.clone();
        }
        match &stmt.kind {
            StmtKind::Attr(Attr { key, body, .. }) if &**key == DEVICE_ENTRY => {
                wrap(body, stmt.span, self.targets, self.decisions).unwrap_or_else(|error| {
                    self.failed = Some(error);
                    stmt.clone()
                })
            }
            // A region that binds its threads itself.
            StmtKind::Attr(Attr {
                node: AttrNode::IterVar(_),
                key,
                ..
            }) if &**key == keys::THREAD_EXTENT => without_tiles(stmt, self.targets, self.decisions)
                .unwrap_or_else(|error| {
                    self.failed = Some(error);
                    stmt.clone()
                }),
            StmtKind::Tile(call) => {
                let message = format!("tile primitive {} outside a device region", call.op.name());
                let error = Diagnostic::new(stmt.span, message)
                    .help("write T.device_entry() before the first tile primitive");
                self.failed = Some(Box::new(error));
                stmt.clone()
            }
            StmtKind::ScopeId(def) => {
                let name = def.kind.name();
                let error = Diagnostic::new(stmt.span, format!("T.{name} outside a device region"))
                    .help("write T.device_entry() before the first scope id");
                self.failed = Some(Box::new(error));
                stmt.clone()
            }
            _ => self.walk_stmt(stmt),
        }
    }
}

/// A region without scope ids, its tile primitives lowered: those at scope thread are possible.
fn without_tiles(region: &Stmt, targets: &[Target], decisions: &mut Vec<Decision>) -> Result<Stmt> {
    if tile::first_call(region).is_none() {
        return Ok(region.clone());
    }
    let launch = tile::LaunchContext {
        threads: None,
        ids: FxHashMap::default(),
        extents: Vec::new(),
        inside: FxHashMap::default(),
        of_threads: FxHashSet::default(),
    };
    let lowered = tile::lower_region(region, &launch, targets, decisions)?;
    Ok(Stmt::seq(lowered.host.into_iter().chain([lowered.body])))
}

/// The region in its launch; a region without scope ids is unchanged.
fn wrap(region: &Stmt, span: Span, targets: &[Target], decisions: &mut Vec<Decision>) -> Result<Stmt> {
    let mut collect = Collect::default();
    let body = collect.stmt(region);
    if let Some(error) = collect.failed {
        return Err(error);
    }
    if collect.declared.is_empty() {
        if !has_launch(&body) {
            return Err(Box::new(
                Diagnostic::new(span, "the kernel does not declare its number of threads")
                    .help("declare scope ids, as in bx = T.cta_id([1]); tx = T.thread_id([128])"),
            ));
        }
        return without_tiles(&body, targets, decisions);
    }
    let resolved = resolve(&collect.declared)?;
    let (body, host) = if tile::first_call(&body).is_none() {
        (body, Vec::new())
    } else {
        let mut launch = tile_launch(&collect.declared, &resolved);
        launch.inside = collect.inside;
        launch.of_threads = collect.of_threads;
        let lowered = tile::lower_region(&body, &launch, targets, decisions)?;
        (lowered.body, lowered.host)
    };

    let mut uses = Uses::default();
    uses.visit_stmt(&body);
    let keep = |var: &Var, reads_warp: bool| !reads_warp || uses.0.contains(var);
    let mut stmts = Vec::new();
    if resolved
        .values
        .iter()
        .any(|(var, _, _, reads)| *reads && keep(var, true))
    {
        let (var, value) = &resolved.warp_id;
        stmts.push(Stmt::bind(var, value.clone(), span));
    }
    for (var, value, span, reads_warp) in &resolved.values {
        if keep(var, *reads_warp) {
            stmts.push(Stmt::bind(var, value.clone(), *span));
        }
    }
    stmts.push(body);
    let mut launch = Stmt::seq(stmts);
    for axis in resolved.axes.into_iter().rev() {
        let iter_var = IterVar {
            var: axis.var,
            dom: None,
            kind: IterKind::ThreadIndex,
            thread_tag: axis.tag.into(),
        };
        launch = Stmt::attr(
            AttrNode::IterVar(iter_var),
            keys::THREAD_EXTENT,
            axis.extent,
            launch,
            axis.span.or(span),
        );
    }
    Ok(Stmt::seq(host.into_iter().chain([launch])))
}

/// The launch, as variants of tile primitives see it.
fn tile_launch(declared: &[Declared], resolved: &Resolved) -> tile::LaunchContext {
    let mut launch = tile::LaunchContext {
        threads: Some(tile::Threads {
            index: resolved.thread.clone(),
            count: resolved.threads,
        }),
        ids: FxHashMap::default(),
        extents: Vec::new(),
        inside: FxHashMap::default(),
        of_threads: FxHashSet::default(),
    };
    for one in declared {
        for (dim, var) in one.def.vars.iter().enumerate() {
            launch.ids.insert(var.clone(), one.def.kind);
            if let Some(extent) = one.def.extents.as_ref().and_then(|e| e.get(dim)) {
                launch.extents.push((var.clone(), extent.clone()));
            }
        }
    }
    for axis in &resolved.axes {
        launch.extents.push((axis.var.clone(), axis.extent.clone()));
    }
    launch
}

/// Names in extents and memory sizes are replaced by their values up to this many nodes: each may double the size.
pub(in crate::transform) const LARGEST_WRITTEN_OUT: u32 = 4096;

/// Removes the scope ids from a region. An extent that reads a value bound inside the region is expanded, since the
/// launch stands outside.
#[derive(Default)]
struct Collect {
    declared: Vec<Declared>,
    inside: FxHashMap<Var, Expr>,
    /// Variables that exist inside the launch only: ids and loop variables.
    of_threads: FxHashSet<Var>,
    failed: Option<Box<Diagnostic>>,
}

impl Collect {
    fn extents(&mut self, extents: &Option<Vec<Expr>>, span: Span) -> Option<Vec<Expr>> {
        let extents = extents.as_ref()?;
        let outside = extents.iter().map(|e| {
            let written_out = substitute(e, &|v| self.inside.get(v).cloned());
            if !is_pure(&written_out) && self.failed.is_none() {
                let error = Diagnostic::new(e.span.or(span), "this launch extent reads memory")
                    .label("the host computes launch extents, before the kernel runs")
                    .help("pass the number as a scalar parameter (n: T.int32), or take it from the shape of a tensor");
                self.failed = Some(Box::new(error));
            }
            if written_out.size() > LARGEST_WRITTEN_OUT {
                let error = Diagnostic::new(e.span.or(span), "this launch extent is too large with its names written out")
                    .help("compute it before T.device_entry(), or pass it as a scalar parameter");
                self.failed.get_or_insert(Box::new(error));
                return e.clone();
            }
            let mut uses = Uses::default();
            uses.visit_expr(&written_out);
            let name = uses.0.iter().filter(|v| self.of_threads.contains(v)).map(Var::name).min();
            if let Some(name) = name
                && self.failed.is_none()
            {
                let message = format!("this launch extent depends on {name}, which has its value inside the launch");
                let error = Diagnostic::new(e.span.or(span), message)
                    .label("the host computes launch extents, before the kernel runs");
                self.failed = Some(Box::new(error));
            }
            written_out
        });
        Some(outside.collect())
    }
}

impl Mutator for Collect {
    fn expr(&mut self, expr: &Expr) -> Expr {
        expr.clone()
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
            StmtKind::ScopeId(def) => {
                let mut def = def.clone();
                def.extents = self.extents(&def.extents, stmt.span);
                def.preferred = self.extents(&def.preferred, stmt.span);
                self.of_threads.extend(def.vars.iter().cloned());
                self.declared.push(Declared { def, span: stmt.span });
                Stmt::nop()
            }
            StmtKind::For(ForLoop { var, .. }) => {
                self.of_threads.insert(var.clone());
                self.walk_stmt(stmt)
            }
            StmtKind::Bind(var, value) => {
                let value = substitute(value, &|v| self.inside.get(v).cloned());
                self.inside.insert(var.clone(), value);
                stmt.clone()
            }
            StmtKind::Attr(Attr { key, body, .. }) if &**key == DEVICE_ENTRY => {
                if self.failed.is_none() {
                    let error = Diagnostic::new(stmt.span, "T.device_entry() inside a device region");
                    self.failed = Some(Box::new(error));
                }
                body.clone()
            }
            _ => self.walk_stmt(stmt),
        }
    }
}

/// Whether the region binds threads itself, by `T.launch_thread` or `T.thread_binding`.
fn has_launch(region: &Stmt) -> bool {
    struct Find(bool);
    impl Visitor for Find {
        fn visit_expr(&mut self, _: &Expr) {}
        fn visit_stmt(&mut self, stmt: &Stmt) {
            match &stmt.kind {
                StmtKind::Attr(Attr { key, .. }) if &**key == keys::THREAD_EXTENT => self.0 = true,
                StmtKind::For(ForLoop {
                    kind: ForKind::ThreadBinding,
                    ..
                }) => self.0 = true,
                _ if self.0 => {}
                _ => self.walk_stmt(stmt),
            }
        }
    }
    let mut find = Find(false);
    find.visit_stmt(region);
    find.0
}

/// The variables that are read.
#[derive(Default)]
struct Uses(FxHashSet<Var>);

impl Visitor for Uses {
    fn visit_expr(&mut self, expr: &Expr) {
        if let ExprKind::Var(v) = &expr.kind {
            self.0.insert(v.clone());
        }
        self.walk_expr(expr);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Attrs, DType, ScopeIdDef, ScopeIdKind};

    fn region(kind: ScopeIdKind, extent: Expr, body: impl FnOnce(&Var) -> Stmt) -> Stmt {
        let var = Var::new("x", DType::INT32);
        let rest = body(&var);
        let def = ScopeIdDef {
            kind,
            vars: vec![var],
            extents: Some(vec![extent]),
            preferred: None,
        };
        Stmt::seq([Stmt::new(StmtKind::ScopeId(def), Span::NONE), rest])
    }

    fn function(region: Stmt) -> PrimFunc {
        PrimFunc {
            params: vec![],
            buffer_map: vec![],
            ret: None,
            attrs: Attrs::new(),
            body: Stmt::attr(AttrNode::None, DEVICE_ENTRY, Expr::bool(true), region, Span::NONE),
            span: Span::NONE,
        }
    }

    #[test]
    fn an_unread_warp_id_is_not_computed() {
        let unused = function(region(ScopeIdKind::WarpId, Expr::int32(4), |_| Stmt::nop()));
        let lowered = lower(unused, &[], &mut Vec::new()).unwrap();
        let StmtKind::Attr(Attr { key, value, body, .. }) = &lowered.body.kind else {
            panic!("{:?}", lowered.body)
        };
        assert_eq!((&**key, value.as_int()), ("thread_extent", Some(128)));
        assert!(body.is_nop());

        let used = function(region(ScopeIdKind::WarpId, Expr::int32(4), |x| {
            Stmt::evaluate(Expr::var(x))
        }));
        let lowered = lower(used, &[], &mut Vec::new()).unwrap();
        let StmtKind::Attr(Attr { body, .. }) = &lowered.body.kind else {
            panic!("{:?}", lowered.body)
        };
        assert_eq!(body.as_slice().len(), 3);
    }

    #[test]
    fn extents_bound_inside_are_written_out() {
        let n = Var::new("n", DType::INT32);
        let m = Var::new("m", DType::INT32);
        let double = Expr::var(&n) * Expr::int32(2);
        let body = Stmt::seq([
            Stmt::bind(&m, double.clone(), Span::NONE),
            region(ScopeIdKind::ThreadId, Expr::var(&m), |_| Stmt::nop()),
        ]);
        let lowered = lower(function(body), &[], &mut Vec::new()).unwrap();
        let StmtKind::Attr(Attr { value, .. }) = &lowered.body.kind else {
            panic!("{:?}", lowered.body)
        };
        assert_eq!(*value, double);
    }

    #[test]
    fn a_scope_id_needs_a_device_region() {
        let mut func = function(Stmt::nop());
        func.body = region(ScopeIdKind::ThreadId, Expr::int32(4), |_| Stmt::nop());
        assert_eq!(
            lower(func, &[], &mut Vec::new()).unwrap_err().message,
            "T.thread_id outside a device region"
        );
    }
}
