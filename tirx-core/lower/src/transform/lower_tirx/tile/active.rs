//! Which threads are active where a tile primitive stands.
//!
//! The active set is a box: a range of lanes, of warps in the CTA and of CTAs in the cluster. A condition on a scope id
//! narrows it for the statements under it: comparisons of an id with a constant, conjunctions of them, and
//! `T.ptx.elect_sync()`, which leaves one lane that nobody knows. What a condition says beyond that is not followed; it
//! narrows nothing, and neither does an `else`.

use std::fmt;

use rustc_hash::FxHashMap;

use crate::intrin::Op;
use crate::ir::{BinOp, ExecScope, Expr, ExprKind, ScopeIdKind, Var};

/// A warp's lanes.
pub(super) const LANES: i128 = 32;
/// A warpgroup's warps.
pub(super) const WARPS: i128 = 4;

/// Consecutive numbers on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// The first; `None` where it is not known (the elected lane).
    pub(super) first: Option<i128>,
    /// How many.
    pub(super) count: i128,
}

impl Range {
    fn whole(count: i128) -> Range {
        Range {
            first: Some(0),
            count,
        }
    }

    /// What `low..high` leaves of it; nothing that is known where its place is not.
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

/// The active threads of a CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Active {
    pub(super) lanes: Range,
    pub(super) warps: Range,
}

impl Active {
    /// All threads of a CTA of so many.
    pub(super) fn all(threads: i128) -> Active {
        Active {
            lanes: Range::whole(LANES.min(threads)),
            warps: Range::whole((threads + LANES - 1) / LANES),
        }
    }

    /// The active set where `condition` holds.
    pub(super) fn under(self, condition: &Expr, ids: &FxHashMap<Var, ScopeIdKind>) -> Active {
        match &condition.kind {
            ExprKind::Binary(BinOp::And, a, b) => self.under(a, ids).under(b, ids),
            ExprKind::Binary(op, a, b) if op.is_comparison() => {
                // `elect_sync() != 0` is what a condition makes of the call.
                if is_elect(a) && b.is_int(0) && *op == BinOp::Ne {
                    return self.elected();
                }
                // `id + 1 == 2` says `id == 1`.
                let ((a, plus_a), (b, plus_b)) = (plain(a), plain(b));
                match (a.as_var(), b.as_int(), b.as_var(), a.as_int()) {
                    (Some(var), Some(value), ..) => self.compared(*op, ids.get(var), value + plus_b - plus_a),
                    (_, _, Some(var), Some(value)) => {
                        let value = value + plus_a - plus_b;
                        let mirrored = match op {
                            BinOp::Lt => BinOp::Gt,
                            BinOp::Le => BinOp::Ge,
                            BinOp::Gt => BinOp::Lt,
                            BinOp::Ge => BinOp::Le,
                            other => *other,
                        };
                        self.compared(mirrored, ids.get(var), value)
                    }
                    _ => self,
                }
            }
            ExprKind::Call { args, .. }
                if condition.dtype.is_bool() && condition.as_call(Op::BitwiseAnd).is_some() =>
            {
                args.iter().fold(self, |active, part| active.under(part, ids))
            }
            ExprKind::Cast(inner) if is_elect(inner) => self.elected(),
            _ if is_elect(condition) => self.elected(),
            _ => self,
        }
    }

    fn elected(self) -> Active {
        let lanes = Range {
            first: None,
            count: 1,
        };
        Active { lanes, ..self }
    }

    fn compared(self, op: BinOp, kind: Option<&ScopeIdKind>, value: i128) -> Active {
        let Some(kind) = kind else { return self };
        const FAR: i128 = 1 << 40;
        let (low, high) = match op {
            BinOp::Eq => (value, value + 1),
            BinOp::Lt => (0, value),
            BinOp::Le => (0, value + 1),
            BinOp::Gt => (value + 1, FAR),
            BinOp::Ge => (value, FAR),
            _ => return self,
        };
        match kind {
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
                // Within one warpgroup; of several nothing is known but how many warps each has.
                Some(first) if first % WARPS + self.warps.count <= WARPS => {
                    let base = first / WARPS * WARPS;
                    Active {
                        warps: self.warps.narrowed(base + low, base + high.min(WARPS)),
                        ..self
                    }
                }
                _ => self,
            },
            ScopeIdKind::ThreadId => self.threads(low, high),
            ScopeIdKind::ThreadIdInWg => match self.warps.first {
                Some(first) if first % WARPS + self.warps.count <= WARPS => {
                    let base = first / WARPS * WARPS * LANES;
                    self.threads(base + low, base + high.min(WARPS * LANES))
                }
                _ => self,
            },
            ScopeIdKind::ClusterId
            | ScopeIdKind::CtaId
            | ScopeIdKind::CtaIdInCluster
            | ScopeIdKind::CtaIdInPair => self,
        }
    }

    /// What threads `low..high` of the CTA are: whole warps, or lanes of one; another set narrows nothing.
    fn threads(self, low: i128, high: i128) -> Active {
        let high = high.min(1 << 20);
        if low % LANES == 0 && high % LANES == 0 {
            return Active {
                warps: self.warps.narrowed(low / LANES, high / LANES),
                ..self
            };
        }
        let (first, last) = (low / LANES, (high - 1) / LANES);
        if first == last {
            return Active {
                warps: self.warps.narrowed(first, first + 1),
                lanes: self.lanes.narrowed(low - first * LANES, high - first * LANES),
            };
        }
        self
    }

    /// Whether every thread of the scope is active; the axis that is narrowed and by how much otherwise.
    pub(super) fn is_full(self, scope: ExecScope, threads: i128) -> Result<(), String> {
        let narrowed = |axis: &str, range: Range, whole: i128| {
            if range == Range::whole(whole) {
                return Ok(());
            }
            Err(format!("{axis} narrowed to {range} vs full [0, {whole})"))
        };
        // Where no thread is, all of them are.
        if scope == ExecScope::Thread || self.lanes.count == 0 || self.warps.count == 0 {
            return Ok(());
        }
        narrowed("laneid", self.lanes, LANES.min(threads))?;
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
                narrowed("wid_in_wg", part, WARPS)
            }
            ExecScope::Cta | ExecScope::Cluster => {
                narrowed("warpid", self.warps, (threads + LANES - 1) / LANES)
            }
        }
    }
}

/// An expression without the constant that is added to it, and that constant.
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
mod tests {
    use super::*;
    use crate::ir::DType;

    fn under(kind: ScopeIdKind, op: BinOp, value: i32, scope: ExecScope) -> Result<(), String> {
        let id = Var::new("id", DType::INT32);
        let ids = FxHashMap::from_iter([(id.clone(), kind)]);
        let condition = Expr::binary(op, Expr::var(&id), Expr::int32(value));
        Active::all(256).under(&condition, &ids).is_full(scope, 256)
    }

    #[test]
    fn conditions_narrow_as_in_tvm() {
        use ExecScope::*;
        use ScopeIdKind::*;
        let reason = |kind, op, value, scope| under(kind, op, value, scope).unwrap_err();
        assert_eq!(
            reason(WarpId, BinOp::Eq, 0, Cta),
            "warpid narrowed to [0, 1) vs full [0, 8)"
        );
        assert_eq!(
            reason(WarpgroupId, BinOp::Eq, 1, Cta),
            "warpid narrowed to [4, 8) vs full [0, 8)"
        );
        assert_eq!(
            reason(LaneId, BinOp::Lt, 16, Warp),
            "laneid narrowed to [0, 16) vs full [0, 32)"
        );
        assert_eq!(
            reason(WarpId, BinOp::Eq, 0, Warpgroup),
            "wid_in_wg narrowed to [0, 1) vs full [0, 4)"
        );
        assert_eq!(
            reason(ThreadId, BinOp::Eq, 0, Warp),
            "laneid narrowed to [0, 1) vs full [0, 32)"
        );
        assert_eq!(under(WarpgroupId, BinOp::Eq, 1, Warpgroup), Ok(()));
        assert_eq!(under(WarpId, BinOp::Eq, 3, Warp), Ok(()));
        assert_eq!(under(ThreadId, BinOp::Ge, 128, Warpgroup), Ok(()));
        assert_eq!(under(CtaId, BinOp::Eq, 0, Cta), Ok(()));
        assert_eq!(under(LaneId, BinOp::Eq, 0, Thread), Ok(()));
    }

    #[test]
    fn sums_and_conjunctions_of_bits_narrow() {
        let (warp, lane) = (Var::new("w", DType::INT32), Var::new("l", DType::INT32));
        let ids = FxHashMap::from_iter([
            (warp.clone(), ScopeIdKind::WarpId),
            (lane.clone(), ScopeIdKind::LaneId),
        ]);
        let next = Expr::binary(BinOp::Add, Expr::var(&warp), Expr::int32(1));
        let second = Expr::binary(BinOp::Eq, next, Expr::int32(2));
        let active = Active::all(256).under(&second, &ids);
        assert_eq!(
            active.warps,
            Range {
                first: Some(1),
                count: 1
            }
        );
        let first = Expr::binary(BinOp::Eq, Expr::var(&lane), Expr::int32(0));
        let both = Expr::call(Op::BitwiseAnd, DType::BOOL, vec![second, first]);
        let active = Active::all(256).under(&both, &ids);
        assert_eq!(active.warps.count * active.lanes.count, 1);
    }

    #[test]
    fn one_lane_is_elected() {
        let elect = Expr::call(Op::PtxElectSync, DType::UINT32, vec![]);
        let condition = Expr::binary(BinOp::Ne, elect, Expr::constant(DType::UINT32, 0));
        let active = Active::all(64).under(&condition, &FxHashMap::default());
        assert_eq!(
            active.is_full(ExecScope::Warp, 64).unwrap_err(),
            "laneid narrowed to 1 chosen at run time vs full [0, 32)"
        );
    }
}
