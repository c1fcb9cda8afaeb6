//! The context of a call, as a variant sees it.

use super::active::{Active, LANES, WARPS};
use crate::arith::{Analyzer, fold};
use crate::ir::{ExecScope, Expr};
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

/// See the [module](self).
pub(super) struct Context<'a> {
    /// The GPUs that the kernel is compiled for.
    pub(super) targets: &'a [Target],
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
    /// The partition that a variant chose: rounds, threads, elements per vector.
    pub(super) partition: Option<[i128; 3]>,
    /// A warning of the variant, shown if it is chosen.
    pub(super) warning: Option<Warning>,
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

    /// Whether the lowest target has at least this compute capability, as `90`.
    pub(super) fn has_capability(&self, least: u32) -> bool {
        self.targets.iter().all(|t| t.compute_capability() >= least)
    }
}
