//! Conditions and the threads that they leave.

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
fn a_negated_comparison_is_one() {
    let id = Var::new("w", DType::INT32);
    let ids = FxHashMap::from_iter([(id.clone(), ScopeIdKind::WarpId)]);
    let compared = |op, value| Expr::binary(op, Expr::var(&id), Expr::int32(value));
    let all = Active::all(256);
    let warps = |active: Active| (active.warps.first, active.warps.count);
    assert_eq!(warps(all.under_not(&compared(BinOp::Eq, 0), &ids)), (Some(1), 7));
    assert_eq!(warps(all.under(&compared(BinOp::Ne, 7), &ids)), (Some(0), 7));
    assert_eq!(warps(all.under_not(&compared(BinOp::Lt, 4), &ids)), (Some(4), 4));
    assert_eq!(
        all.under_not(&compared(BinOp::Lt, 4), &ids)
            .is_full(ExecScope::Warpgroup, 256),
        Ok(())
    );
    // Without one in the middle it is no range.
    let middle = all.under(&compared(BinOp::Ne, 3), &ids);
    assert_eq!(middle.is_full(ExecScope::Warp, 256), Ok(()));
    assert_eq!(
        middle.is_full(ExecScope::Cta, 256).unwrap_err(),
        "a condition may leave out warps of the cta"
    );
}

#[test]
fn what_is_not_followed_parts_what_it_tells_apart() {
    let (thread, other) = (Var::new("t", DType::INT32), Var::new("n", DType::INT32));
    let ids = FxHashMap::from_iter([(thread.clone(), ScopeIdKind::ThreadId)]);
    let even = |e: Expr| {
        let rest = Expr::binary(BinOp::FloorMod, e, Expr::int32(2));
        Expr::binary(BinOp::Eq, rest, Expr::int32(0))
    };
    let over = |by: i32| Expr::binary(BinOp::FloorDiv, Expr::var(&thread), Expr::int32(by));
    let full = |condition: Expr, scope| {
        let active = Active::all(256).under(&condition, &ids);
        active.is_full(scope, 256).is_ok()
    };
    assert!(!full(even(Expr::var(&thread)), ExecScope::Warp));
    assert!(full(even(over(32)), ExecScope::Warp) && !full(even(over(32)), ExecScope::Warpgroup));
    assert!(full(even(over(128)), ExecScope::Warpgroup) && !full(even(over(128)), ExecScope::Cta));
    assert!(full(even(Expr::var(&other)), ExecScope::Cta));
    // No threads exist beyond the last one.
    assert!(full(
        Expr::binary(BinOp::Lt, Expr::var(&thread), Expr::int32(300)),
        ExecScope::Cta
    ));
    assert!(!full(
        Expr::binary(BinOp::Lt, Expr::var(&thread), Expr::int32(40)),
        ExecScope::Warp
    ));
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

#[test]
fn a_negation_leaves_out_what_the_condition_names() {
    let [warp, pair] = ["warp", "pair"].map(|name| Var::new(name, DType::INT32));
    let ids = FxHashMap::from_iter([
        (warp.clone(), ScopeIdKind::WarpId),
        (pair.clone(), ScopeIdKind::CtaIdInPair),
    ]);
    let compare = |op: BinOp, id: &Var, value: i32| Expr::binary(op, Expr::var(id), Expr::int32(value));
    let both = Expr::binary(
        BinOp::And,
        compare(BinOp::Eq, &warp, 2),
        compare(BinOp::Eq, &pair, 0),
    );
    let rest = Active::all(256).under_not(&both, &ids);
    assert!(rest.is_full(ExecScope::Cta, 256).is_err());
    let upper = rest.under(&compare(BinOp::Ge, &warp, 4), &ids);
    assert_eq!(upper.is_full(ExecScope::Warpgroup, 256), Ok(()));
    let lower = rest.under(&compare(BinOp::Lt, &warp, 4), &ids);
    assert!(lower.is_full(ExecScope::Warpgroup, 256).is_err());
    // One warp among others.
    let rest = Active::all(256).under_not(&compare(BinOp::Eq, &warp, 2), &ids);
    let upper = rest.under(&compare(BinOp::Ge, &warp, 4), &ids);
    assert_eq!(upper.is_full(ExecScope::Warpgroup, 256), Ok(()));
    assert!(rest.is_full(ExecScope::Cta, 256).is_err());
}
