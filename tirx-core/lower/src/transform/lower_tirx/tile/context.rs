//! The context of a call, as a variant sees it.

use rustc_hash::{FxHashMap, FxHashSet};

use super::active::{Active, LANES, WARPS};
use super::decline::Decline;
use crate::arith::{Analyzer, fold};
use crate::ir::{ExecScope, Expr, ExprKind, ScopeIdKind, Var, Visitor, is_pure, substitute};
use crate::source::Span;
use crate::transform::Target;

/// The threads of a launch.
#[derive(Clone)]
pub(in super::super) struct Threads {
    /// The number of the calling thread in its CTA.
    pub(in super::super) index: Expr,
    /// How many a CTA has, where that is known.
    pub(in super::super) count: Option<i128>,
}

/// The launch, as variants see it.
pub(in super::super) struct LaunchContext {
    /// Its threads; `None` where the kernel binds them itself.
    pub(in super::super) threads: Option<Threads>,
    /// What each scope id counts.
    pub(in super::super) ids: FxHashMap<Var, ScopeIdKind>,
    /// Ranges of scope ids, where they are known.
    pub(in super::super) extents: Vec<(Var, Expr)>,
    /// The values that are bound in the region, in terms of what the host knows.
    pub(in super::super) inside: FxHashMap<Var, Expr>,
    /// Variables that exist inside the launch only.
    pub(in super::super) of_threads: FxHashSet<Var>,
}

/// See the [module](self).
pub(super) struct Context<'a> {
    /// The GPUs that the kernel is compiled for.
    pub(super) targets: &'a [Target],
    /// The launch.
    pub(super) launch: &'a LaunchContext,
    /// The launch's threads; `None` where the kernel binds them itself.
    pub(super) threads: Option<&'a Threads>,
    /// The active threads.
    pub(super) active: Option<Active>,
    /// Facts about the visible variables.
    pub(super) facts: &'a mut Analyzer,
    /// The scope of the call.
    pub(super) scope: ExecScope,
    /// The call's place.
    pub(super) span: Span,
    /// Whether a variant suits some of the GPUs and not others.
    pub(super) separates: bool,
}

/// A warning that the variant is probably not what was wanted.
pub(super) struct Warning {
    /// Its name.
    pub(super) name: &'static str,
    /// A description of what the variant does; the reasons why the others declined are added.
    pub(super) message: String,
    /// How a call requests the variant explicitly.
    pub(super) instead: &'static str,
}

impl Context<'_> {
    /// Number of threads in the scope.
    pub(super) fn thread_count(&self) -> Result<i128, String> {
        match (self.scope, self.threads) {
            (ExecScope::Thread, _) => Ok(1),
            (ExecScope::Warp, _) => Ok(32),
            (ExecScope::Warpgroup, _) => Ok(128),
            (ExecScope::Cta, Some(threads)) => threads
                .count
                .ok_or_else(|| "the number of threads of a CTA is not known".to_string()),
            (ExecScope::Cta, None) => Err("the kernel declares no scope ids".to_string()),
            (ExecScope::Cluster, _) => Err("unsupported exec_scope cluster".to_string()),
        }
    }

    /// Whether every thread of `scope` is active; otherwise what leaves some out.
    pub(super) fn is_full(&self, scope: ExecScope) -> Result<(), String> {
        match (self.active, self.threads.and_then(|t| t.count)) {
            (Some(active), Some(threads)) => active.is_full(scope, threads),
            _ => Err("the number of threads of a CTA is not known".to_string()),
        }
    }

    /// The number of the calling thread in the scope.
    pub(super) fn thread_index(&self) -> Expr {
        let index = self.threads.map_or_else(|| Expr::int32(0), |t| t.index.clone());
        match self.scope {
            ExecScope::Thread => Expr::int32(0),
            ExecScope::Warp => fold::floormod(index, Expr::int32(32)),
            ExecScope::Warpgroup => fold::floormod(index, Expr::int32(128)),
            ExecScope::Cta | ExecScope::Cluster => index,
        }
        .at(self.span)
    }

    /// The number of the calling thread's warpgroup in the CTA.
    pub(super) fn warpgroup(&self) -> Expr {
        let count = self.threads.and_then(|t| t.count);
        let only = self
            .active
            .filter(|a| a.warps.count <= WARPS)
            .and_then(|a| a.warps.first);
        match (only, self.threads) {
            _ if count.is_some_and(|count| count <= WARPS * LANES) => Expr::int32(0),
            (Some(first), _) if first % WARPS == 0 => Expr::int32((first / WARPS) as i32),
            (_, Some(threads)) => fold::floordiv(threads.index.clone(), Expr::int32((WARPS * LANES) as i32)),
            _ => Expr::int32(0),
        }
        .at(self.span)
    }

    /// An expression as the host can compute it before the launch: with the names that are bound inside the device region
    /// replaced by their values.
    ///
    /// # Errors
    /// It depends on what exists inside the launch only.
    pub(super) fn on_host(&self, e: &Expr) -> Result<Expr, Decline> {
        let outside = substitute(e, &|v| self.launch.inside.get(v).cloned());
        struct Find<'a>(&'a LaunchContext, Option<String>);
        impl Visitor for Find<'_> {
            fn visit_expr(&mut self, e: &Expr) {
                if let ExprKind::Var(v) = &e.kind
                    && self.0.of_threads.contains(v)
                {
                    self.1.get_or_insert(v.name().to_string());
                }
                self.walk_expr(e);
            }
        }
        let mut find = Find(self.launch, None);
        find.visit_expr(&outside);
        match find.1 {
            Some(name) => Err(format!(
                "the host cannot compute an expression of {name}, which has its value inside the launch"
            )
            .into()),
            None if !is_pure(&outside) => {
                Err("the host cannot compute an expression that reads memory of the kernel".into())
            }
            None => Ok(outside),
        }
    }
}
