//! The active threads at a tile primitive.
//!
//! The active set is a box: a range of lanes and of warps in the CTA. A condition on a scope id narrows it for the
//! statements under it: comparisons of an id with a constant, conjunctions of them, and `T.ptx.elect_sync()`, which
//! leaves one lane whose number is not known at compile time, as `T.filter(lane, …)` does; an `else` is under the
//! negation. For any other condition on scope ids only its granularity is known: `warp % 2 == 0` excludes whole warps,
//! so a warp is still complete and the CTA is not. Conditions without a scope id exclude no threads.

use std::fmt;

use rustc_hash::FxHashMap;

use crate::intrin::Op;
use crate::ir::at;
use crate::ir::{BinOp, ExecScope, Expr, ExprKind, ScopeIdKind, Var, Visitor};
use crate::layout::axes::{self, Level};

/// A warp's lanes.
pub(super) const LANES: i128 = 32;
/// A warpgroup's warps.
pub(super) const WARPS: i128 = 4;

/// Consecutive numbers on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// The first number; `None` where it is not known at compile time (the elected lane).
    pub(super) first: Option<i128>,
    /// Length.
    pub(super) count: i128,
}

impl Range {
    fn whole(count: i128) -> Range {
        Range {
            first: Some(0),
            count,
        }
    }

    /// The intersection with `low..high`; unchanged where the position is not known.
    fn narrowed(self, low: i128, high: i128) -> Range {
        let Some(first) = self.first else { return self };
        let start = first.max(low);
        let end = (first + self.count).min(high);
        Range {
            first: Some(start),
            count: (end - start).max(0),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first {
            Some(first) => write!(f, "[{first}, {})", first + self.count),
            None => write!(f, "{} chosen at run time", self.count),
        }
    }
}

/// The granularity at which a condition may exclude threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    Thread,
    Warp,
    Warpgroup,
    Cta,
}

impl Unit {
    fn from_scope_id(kind: ScopeIdKind) -> Unit {
        match kind {
            ScopeIdKind::LaneId | ScopeIdKind::ThreadId | ScopeIdKind::ThreadIdInWg => Unit::Thread,
            ScopeIdKind::WarpId | ScopeIdKind::WarpIdInWg => Unit::Warp,
            ScopeIdKind::WarpgroupId => Unit::Warpgroup,
            ScopeIdKind::ClusterId
            | ScopeIdKind::CtaId
            | ScopeIdKind::CtaIdInCluster
            | ScopeIdKind::CtaIdInPair => Unit::Cta,
        }
    }
}

/// The active threads of a CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Active {
    pub(super) lanes: Range,
    pub(super) warps: Range,
    /// Units of this size may be partly excluded, in the warps of `doubt`.
    parts: Unit,
    /// The first of these warps, and the end.
    doubt: (i128, i128),
}

impl Active {
    /// All threads of a CTA of `threads` threads.
    pub(super) fn all(threads: i128) -> Active {
        Active {
            lanes: Range::whole(LANES.min(threads)),
            warps: Range::whole((threads + LANES - 1) / LANES),
            parts: Unit::Cta,
            doubt: (0, 0),
        }
    }

    /// The active set under `condition`.
    pub(super) fn under(self, condition: &Expr, ids: &Ids) -> Active {
        match &condition.kind {
            ExprKind::Binary(BinOp::And, a, b) => self.under(a, ids).under(b, ids),
            ExprKind::Binary(op, a, b) if op.is_comparison() => {
                // The form that a condition gives `elect_sync()`.
                if is_elect(a) && b.is_int(0) && *op == BinOp::Ne {
                    return self.elected();
                }
                let followed =
                    compared_id(*op, a, b, ids).and_then(|(op, kind, value)| self.compared(op, kind, value));
                followed.unwrap_or_else(|| self.parted(condition, ids))
            }
            ExprKind::Call { args, .. }
                if condition.dtype.is_bool() && condition.as_call(Op::BitwiseAnd).is_some() =>
            {
                args.iter().fold(self, |active, part| active.under(part, ids))
            }
            ExprKind::Call { op: Op::Filter, args } => {
                let id = &args[at!(Filter.var)];
                let active = self.under(&args[at!(Filter.pred)], ids);
                match id.as_var().and_then(|var| ids.get(var)) {
                    Some(ScopeIdKind::LaneId) if active.lanes.count != 1 => active.elected(),
                    _ => active.parted(id, ids),
                }
            }
            ExprKind::Cast(inner) if is_elect(inner) => self.elected(),
            _ if is_elect(condition) => self.elected(),
            _ => self.parted(condition, ids),
        }
    }

    /// The active set under the negation of `condition`.
    pub(super) fn under_not(self, condition: &Expr, ids: &Ids) -> Active {
        let negated = match &condition.kind {
            ExprKind::Binary(op, a, b) => compared_id(*op, a, b, ids).and_then(|(op, kind, value)| {
                let op = match op {
                    BinOp::Lt => BinOp::Ge,
                    BinOp::Le => BinOp::Gt,
                    BinOp::Gt => BinOp::Le,
                    BinOp::Ge => BinOp::Lt,
                    BinOp::Eq => BinOp::Ne,
                    BinOp::Ne => BinOp::Eq,
                    _ => return None,
                };
                self.compared(op, kind, value)
            }),
            _ => None,
        };
        // Threads for which the condition may hold, and no others, may be excluded.
        negated.unwrap_or_else(|| self.parted_within(condition, self.under(condition, ids).warps, ids))
    }

    /// The active set under a condition that is not analyzed.
    fn parted(self, condition: &Expr, ids: &Ids) -> Active {
        self.parted_within(condition, self.warps, ids)
    }

    /// The same for a condition that excludes threads of some warps at most.
    fn parted_within(self, condition: &Expr, warps: Range, ids: &Ids) -> Active {
        let mut find = Parts {
            ids,
            parts: Unit::Cta,
        };
        find.visit_expr(condition);
        if find.parts == Unit::Cta {
            return self;
        }
        let (low, high) = match warps.first {
            Some(first) => (first, first + warps.count),
            None => (0, i128::MAX),
        };
        let doubt = match self.doubt {
            (from, to) if from < to => (from.min(low), to.max(high)),
            _ => (low, high),
        };
        Active {
            parts: self.parts.min(find.parts),
            doubt,
            ..self
        }
    }

    fn elected(self) -> Active {
        let lanes = Range {
            first: None,
            count: 1,
        };
        Active { lanes, ..self }
    }

    /// The active set under a comparison of an id with a constant; `None` where that is not a box.
    fn compared(self, op: BinOp, kind: ScopeIdKind, value: i128) -> Option<Active> {
        const FAR: i128 = 1 << 40;
        let (low, high) = match op {
            BinOp::Eq => (value, value + 1),
            BinOp::Lt => (0, value),
            BinOp::Le => (0, value + 1),
            BinOp::Gt => (value + 1, FAR),
            BinOp::Ge => (value, FAR),
            // An inequality with the first or the last value leaves a range.
            BinOp::Ne => {
                let (first, count) = self.counted(kind)?;
                match value - first {
                    0 => (value + 1, FAR),
                    at if at == count - 1 => (0, value),
                    at if at < 0 || at >= count => return Some(self),
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some(match kind {
            ScopeIdKind::LaneId => Active {
                lanes: self.lanes.narrowed(low, high),
                ..self
            },
            ScopeIdKind::WarpId => Active {
                warps: self.warps.narrowed(low, high),
                ..self
            },
            ScopeIdKind::WarpgroupId => Active {
                warps: self.warps.narrowed(low * WARPS, high.saturating_mul(WARPS)),
                ..self
            },
            ScopeIdKind::WarpIdInWg => match self.warps.first {
                // Within one warpgroup only: several warpgroups would each have a range of their own.
                Some(first) if first % WARPS + self.warps.count <= WARPS => {
                    let base = first / WARPS * WARPS;
                    Active {
                        warps: self.warps.narrowed(base + low, base + high.min(WARPS)),
                        ..self
                    }
                }
                _ if low <= 0 && high >= WARPS => self,
                _ => return None,
            },
            ScopeIdKind::ThreadId => self.threads(low, high)?,
            ScopeIdKind::ThreadIdInWg => match self.warps.first {
                Some(first) if first % WARPS + self.warps.count <= WARPS => {
                    let base = first / WARPS * WARPS * LANES;
                    self.threads(base + low, base + high.min(WARPS * LANES))?
                }
                _ if low <= 0 && high >= WARPS * LANES => self,
                _ => return None,
            },
            ScopeIdKind::ClusterId
            | ScopeIdKind::CtaId
            | ScopeIdKind::CtaIdInCluster
            | ScopeIdKind::CtaIdInPair => self,
        })
    }

    /// The range of an id over the active threads: the first value and the number of values; `None` where they are no
    /// range.
    fn counted(self, kind: ScopeIdKind) -> Option<(i128, i128)> {
        let warps = self.warps;
        let first = warps.first;
        Some(match kind {
            ScopeIdKind::LaneId => (self.lanes.first?, self.lanes.count),
            ScopeIdKind::WarpId => (first?, warps.count),
            ScopeIdKind::WarpgroupId if first? % WARPS == 0 && warps.count % WARPS == 0 => {
                (first? / WARPS, warps.count / WARPS)
            }
            ScopeIdKind::WarpIdInWg if first? % WARPS + warps.count <= WARPS => (first? % WARPS, warps.count),
            ScopeIdKind::ThreadId if self.lanes == Range::whole(LANES) => {
                (first? * LANES, warps.count * LANES)
            }
            _ => return None,
        })
    }

    /// Threads `low..high` of the CTA as a box: whole warps, or lanes of one; `None` where they are neither.
    fn threads(self, low: i128, high: i128) -> Option<Active> {
        // No threads exist beyond the last active warp.
        let end = (self.warps.first? + self.warps.count) * LANES;
        let (low, high) = (low.max(0), high.min(end));
        if low % LANES == 0 && high % LANES == 0 {
            return Some(Active {
                warps: self.warps.narrowed(low / LANES, high / LANES),
                ..self
            });
        }
        let (first, last) = (low / LANES, (high - 1) / LANES);
        (first == last).then(|| Active {
            warps: self.warps.narrowed(first, first + 1),
            lanes: self.lanes.narrowed(low - first * LANES, high - first * LANES),
            ..self
        })
    }

    /// Whether every unit of a scope that has active threads is complete, except for the bounds of the box.
    pub(super) fn is_whole(self, scope: ExecScope) -> Result<(), String> {
        let least = match scope {
            ExecScope::Thread => Unit::Thread,
            ExecScope::Warp => Unit::Warp,
            ExecScope::Warpgroup => Unit::Warpgroup,
            ExecScope::Cta | ExecScope::Cluster => Unit::Cta,
        };
        let doubted = match self.warps.first {
            Some(first) => first < self.doubt.1 && self.doubt.0 < first + self.warps.count,
            None => true,
        };
        let parted = match self.parts {
            parts if parts >= least || !doubted => return Ok(()),
            Unit::Thread => "threads",
            Unit::Warp => "warps",
            Unit::Warpgroup | Unit::Cta => "warpgroups",
        };
        Err(format!(
            "a condition may leave out {parted} of the {}",
            scope.name()
        ))
    }

    /// Whether every thread of the scope is active; otherwise the axis that is narrowed and its range.
    pub(super) fn is_full(self, scope: ExecScope, threads: i128) -> Result<(), String> {
        let narrowed = |unit: Level, of: Level, range: Range, whole: i128| {
            if range == Range::whole(whole) {
                return Ok(());
            }
            let axis = axes::numbering(unit, of).map_or("an axis", |row| row.name);
            Err(format!("{axis} narrowed to {range} vs full [0, {whole})"))
        };
        // An empty active set needs no check.
        if scope == ExecScope::Thread || self.lanes.count == 0 || self.warps.count == 0 {
            return Ok(());
        }
        self.is_whole(scope)?;
        narrowed(Level::Thread, Level::Warp, self.lanes, LANES.min(threads))?;
        match scope {
            ExecScope::Thread | ExecScope::Warp => Ok(()),
            ExecScope::Warpgroup => {
                let Some(first) = self.warps.first else {
                    return Err(format!("warpid narrowed to {}", self.warps));
                };
                if first % WARPS == 0 && self.warps.count % WARPS == 0 && self.warps.count > 0 {
                    return Ok(());
                }
                let part = Range {
                    first: Some(first % WARPS),
                    count: self.warps.count,
                };
                narrowed(Level::Warp, Level::Warpgroup, part, WARPS)
            }
            ExecScope::Cta | ExecScope::Cluster => {
                narrowed(Level::Warp, Level::Cta, self.warps, (threads + LANES - 1) / LANES)
            }
        }
    }
}

/// The scope ids of a launch, by variable.
type Ids = FxHashMap<Var, ScopeIdKind>;

/// A comparison of a scope id with a constant, normalized to `id OP constant`: `id + 1 == 2` becomes `id == 1`.
fn compared_id(op: BinOp, a: &Expr, b: &Expr, ids: &Ids) -> Option<(BinOp, ScopeIdKind, i128)> {
    if !op.is_comparison() {
        return None;
    }
    let ((a, plus_a), (b, plus_b)) = (plain(a), plain(b));
    match (id_of(a, ids), b.as_int(), id_of(b, ids), a.as_int()) {
        (Some(kind), Some(value), ..) => Some((op, kind, value + plus_b - plus_a)),
        (_, _, Some(kind), Some(value)) => {
            let mirrored = match op {
                BinOp::Lt => BinOp::Gt,
                BinOp::Le => BinOp::Ge,
                BinOp::Gt => BinOp::Lt,
                BinOp::Ge => BinOp::Le,
                other => other,
            };
            Some((mirrored, kind, value + plus_a - plus_b))
        }
        _ => None,
    }
}

/// The scope id that an expression computes, of its variables or of others: `warpgroup * 4 + warp_in_warpgroup`.
fn id_of(e: &Expr, ids: &Ids) -> Option<ScopeIdKind> {
    use ScopeIdKind::{LaneId, ThreadId, ThreadIdInWg, WarpId, WarpIdInWg, WarpgroupId};
    let part = |e: &Expr, by: &Expr| Some((id_of(e, ids)?, by.as_int()?));
    match &e.kind {
        ExprKind::Var(var) => ids.get(var).copied(),
        // Ids are small and not negative: no conversion changes them.
        ExprKind::Cast(inner) if e.dtype.is_integer() && e.dtype.bits >= 16 => id_of(inner, ids),
        ExprKind::Binary(BinOp::Add, a, b) => {
            let scaled = |e: &Expr| match &e.kind {
                ExprKind::Binary(BinOp::Mul, id, by) => part(id, by).or_else(|| part(by, id)),
                _ => None,
            };
            let (outer, inner) = match (scaled(a), scaled(b)) {
                (Some(outer), None) => (outer, id_of(b, ids)?),
                (None, Some(outer)) => (outer, id_of(a, ids)?),
                _ => return None,
            };
            match (outer, inner) {
                ((WarpgroupId, WARPS), WarpIdInWg) => Some(WarpId),
                ((WarpId, LANES), LaneId) | ((WarpgroupId, 128), ThreadIdInWg) => Some(ThreadId),
                ((WarpIdInWg, LANES), LaneId) => Some(ThreadIdInWg),
                _ => None,
            }
        }
        ExprKind::Binary(op @ (BinOp::FloorDiv | BinOp::FloorMod), id, by) => match (op, part(id, by)?) {
            (BinOp::FloorDiv, (ThreadId, LANES)) => Some(WarpId),
            (BinOp::FloorDiv, (ThreadId, 128) | (WarpId, WARPS)) => Some(WarpgroupId),
            (BinOp::FloorDiv, (ThreadIdInWg, LANES)) => Some(WarpIdInWg),
            (BinOp::FloorMod, (ThreadId | ThreadIdInWg, LANES)) => Some(LaneId),
            (BinOp::FloorMod, (ThreadId, 128)) => Some(ThreadIdInWg),
            (BinOp::FloorMod, (WarpId, WARPS)) => Some(WarpIdInWg),
            _ => None,
        },
        // The value of the first lane, which all lanes of a warp have.
        ExprKind::Call {
            op: Op::CudaShflSync,
            args,
        } => {
            id_of(&args[at!(CudaShflSync.var)], ids).filter(|kind| Unit::from_scope_id(*kind) > Unit::Thread)
        }
        _ => None,
    }
}

/// The finest granularity at which an expression may differ between threads.
struct Parts<'a> {
    ids: &'a Ids,
    parts: Unit,
}

impl Visitor for Parts<'_> {
    fn visit_expr(&mut self, e: &Expr) {
        let whole = |e: &Expr| {
            let ExprKind::Binary(BinOp::FloorDiv, id, by) = &e.kind else {
                return None;
            };
            let kind = *self.ids.get(id.as_var()?)?;
            match (kind, by.as_int()?) {
                (ScopeIdKind::ThreadId, by) if by % (WARPS * LANES) == 0 => Some(Unit::Warpgroup),
                (ScopeIdKind::ThreadId | ScopeIdKind::ThreadIdInWg, by) if by % LANES == 0 => {
                    Some(Unit::Warp)
                }
                (ScopeIdKind::WarpId, by) if by % WARPS == 0 => Some(Unit::Warpgroup),
                _ => None,
            }
        };
        let unit = match e.as_var() {
            Some(var) => self.ids.get(var).map(|kind| Unit::from_scope_id(*kind)),
            None if is_elect(e) => Some(Unit::Thread),
            None => whole(e),
        };
        match unit {
            Some(unit) => self.parts = self.parts.min(unit),
            None => self.walk_expr(e),
        }
    }
}

/// An expression split into a part and the constant added to it.
fn plain(e: &Expr) -> (&Expr, i128) {
    match &e.kind {
        ExprKind::Binary(BinOp::Add, a, b) => match (a.as_int(), b.as_int()) {
            (_, Some(by)) => (a, by),
            (Some(by), _) => (b, by),
            _ => (e, 0),
        },
        ExprKind::Binary(BinOp::Sub, a, b) => match b.as_int() {
            Some(by) => (a, -by),
            None => (e, 0),
        },
        _ => (e, 0),
    }
}

fn is_elect(e: &Expr) -> bool {
    e.as_call(Op::PtxElectSync).is_some()
}

#[cfg(test)]
mod tests;
