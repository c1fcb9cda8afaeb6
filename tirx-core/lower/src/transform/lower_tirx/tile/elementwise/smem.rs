//! Elementwise → `smem`: all regions in shared memory.
//!
//! **Idea.** The output's elements in row-major order are cut into `[rounds, threads, vector]`. In each round a thread
//! computes a vector: a vectorized loop over its elements, which becomes vector loads, the operation on each component
//! and a vector store. A barrier of the scope follows.
//!
//! **Conditions.** Scope thread, warp, warpgroup or CTA with all threads active; every region in shared memory, with a
//! layout, of constant extents that broadcast to the output's. The vector is the widest of 128, 64, 32, 16 and 8 bits
//! of the widest element that divides each thread's share and the last extent of every region; if the threads do not
//! divide the elements it is one element, and the last round is done in part.
//!
//! **Cost.** `ceil(elements / (threads * vector))` rounds and one barrier.

use super::super::build::{address, elements, repeat};
use super::super::context::Context;
use super::super::variant::Predicate;
use super::{Plan, coordinate_of};
use crate::arith::fold;
use crate::intrin::Op;
use crate::ir::{BinOp, DType, ExecScope, Expr, ForKind, ForLoop, Stmt, TileCall, Var};

pub(super) const ALL_SHARED: Predicate = Predicate {
    name: "every region in shared memory",
    holds: |call, _| {
        let plan = Plan::of(call.tile)?;
        for region in plan.regions() {
            let buffer = &region.buffer;
            if !buffer.scope().starts_with("shared") {
                return Err(format!("operand scope {} != shared*", buffer.scope()).into());
            }
            if buffer.layout.is_none() {
                return Err("shared operand has no layout".into());
            }
        }
        Ok(())
    },
};

/// Elements per vector.
fn vector(plan: &Plan, total: i128, threads: i128) -> i128 {
    if total % threads != 0 {
        return 1;
    }
    let share = total / threads;
    let last =
        |region: &crate::ir::BufferRegion| region.ranges.last().and_then(|(_, e)| e.as_int()).unwrap_or(1);
    let widest = plan.widest_bits().max(8);
    for bits in [128, 64, 32, 16, 8] {
        let n = bits / widest;
        if n > 0 && share % n == 0 && plan.regions().all(|r| last(r) % n == 0) {
            return n;
        }
    }
    1
}

pub(super) fn lower(call: &TileCall, cx: &mut Context<'_>) -> Result<Stmt, String> {
    let plan = Plan::of(call)?;
    let threads = cx.thread_count()?;
    let total = elements(&plan.dst).ok_or("the extents of the output are not constant")?;
    if total == 0 {
        return Err("the region is empty".to_string());
    }
    // Instructions with an explicit rounding take one element.
    let vector = if plan.rounding.is_some() {
        1
    } else {
        vector(&plan, total, threads)
    };
    let span = cx.span;
    let rounds = (total + vector * threads - 1) / (vector * threads);
    cx.partition = Some([rounds, threads, vector]);
    let thread = cx.thread_index();
    let whole = rounds * vector * threads == total;
    let mut failed = None;
    let body = repeat("s", rounds, span, |round| {
        let first = fold::add(
            fold::mul(round, Expr::int32((vector * threads) as i32)),
            fold::mul(thread.clone(), Expr::int32(vector as i32)),
        );
        let mut one = |number: Expr| {
            let at = coordinate_of(&number, &plan.dst);
            let rounded = plan.rounding.is_some().then(|| {
                let values = plan.values(&at, &number, span);
                plan.instruction(address(&plan.dst.buffer, at.clone(), span), values, false, span)
            });
            let store = match rounded.flatten() {
                Some(instruction) => instruction,
                None => match plan.value(&at, &number, span) {
                    Ok(value) => Stmt::store(&plan.dst.buffer, at, value, span),
                    Err(reason) => {
                        failed = Some(reason);
                        Stmt::nop()
                    }
                },
            };
            if whole {
                return store;
            }
            let inside = Expr::binary(BinOp::Lt, number, Expr::int32(total as i32)).at(span);
            Stmt::if_else(inside, store, None, span)
        };
        if vector == 1 {
            return one(first);
        }
        let lane = Var::at("vec", DType::INT32, span);
        let body = one(fold::add(first, Expr::var(&lane)));
        let extent = Expr::int32(vector as i32);
        Stmt::new(ForLoop::new(ForKind::Vectorized, &lane, extent, body), span)
    });
    if let Some(reason) = failed {
        return Err(reason);
    }
    Ok(Stmt::seq(std::iter::once(body).chain(barrier(cx))))
}

/// The first of the named barriers used for warpgroups, one each: a block has up to eight warpgroups.
const WARPGROUP_BARRIER: i32 = 8;

/// The barrier of the call's scope.
pub(in super::super) fn barrier(cx: &Context<'_>) -> Option<Stmt> {
    let (op, args) = match cx.scope {
        ExecScope::Cta => (Op::CudaCtaSync, vec![]),
        ExecScope::Warpgroup => {
            let number = fold::add(cx.warpgroup(), Expr::int32(WARPGROUP_BARRIER));
            (Op::CudaWarpgroupSync, vec![number])
        }
        ExecScope::Warp => (Op::CudaWarpSync, vec![]),
        ExecScope::Thread | ExecScope::Cluster => return None,
    };
    let span = cx.span;
    Some(Stmt::evaluate(Expr::call(op, DType::VOID, args).at(span)))
}
