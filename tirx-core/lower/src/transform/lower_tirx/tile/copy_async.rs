//! `copy_async` → `ldgsts`: from global to shared memory by `cp.async`.
//!
//! **Idea.** The same partition as `copy` → `gmem_smem` makes; each vector is one `cp.async` of 16, 8 or 4 bytes, which does not
//! pass through registers.
//!
//! **Conditions.** Scope thread, warp, warpgroup or CTA with all threads active; from global to shared memory; constant
//! extents whose product the threads divide; vectors of at least 4 bytes that are contiguous and aligned on both sides.
//! `prefetch_size`, `predicate` and `fill_mode` are those of `T.ptx.cp_async`.
//!
//! **Cost.** `elements / (threads * vector)` instructions a thread. The caller commits and waits:
//! `T.ptx.cp_async.commit_group()`, `T.ptx.cp_async.wait_group(n)`, then a barrier.

use super::build::{address, elements, flat_view, repeat};
use super::context::Context;
use super::copy::partition::partition;
use super::copy::{FULL_SCOPE, SAME_ELEMENTS, SCOPE, operands};
use super::table::{Predicate, Variant};
use crate::intrin::Op;
use crate::ir::{AttrValue, DType, Expr, Stmt, TileCall, TileOp};

pub(super) static VARIANTS: &[Variant] = &[Variant {
    ops: &[TileOp::CopyAsync],
    name: "ldgsts",
    aliases: &[],
    priority: 20,
    only_forced: false,
    predicates: &[
        SCOPE,
        FULL_SCOPE,
        SAME_ELEMENTS,
        Predicate {
            name: "from global to shared memory",
            holds: global_to_shared,
        },
        Predicate {
            name: "the elements divide among the threads",
            holds: divides,
        },
    ],
    lower,
    doc: "cp.async of 16, 8 or 4 bytes, spread over the threads of the scope",
}];

fn global_to_shared(call: &TileCall, _: &mut Context<'_>) -> Result<(), String> {
    let (dst, src) = operands(call)?;
    let (from, to) = (src.buffer.scope(), dst.buffer.scope());
    if from == "global" && to.starts_with("shared") {
        return Ok(());
    }
    Err(format!(
        "unsupported memory scopes src={from} dst={to}; allowed: global->shared*"
    ))
}

fn divides(call: &TileCall, cx: &mut Context<'_>) -> Result<(), String> {
    let (_, src) = operands(call)?;
    let threads = cx.thread_count()?;
    match elements(src) {
        None => Err("non-constant region extent".to_string()),
        Some(n) if n > 0 && n % threads == 0 => Ok(()),
        Some(n) => Err(format!("region size {n} not divisible by thread_cnt={threads}")),
    }
}

fn lower(call: &TileCall, cx: &mut Context<'_>) -> Result<Stmt, String> {
    let (dst, src) = operands(call)?;
    let dtype = src.buffer.dtype;
    let bits = dtype.bits as i128 * dtype.lanes as i128;
    let plan = partition(src, dst, cx.thread_count()?, &[128, 64, 32], cx)?;
    let bytes = plan.vector * bits / 8;
    if ![4, 8, 16].contains(&bytes) {
        return Err(format!(
            "cp.async moves 4, 8 or 16 bytes, but only {bytes} are contiguous and aligned"
        ));
    }
    cx.partition = Some([plan.rounds, plan.threads, plan.vector]);
    let span = cx.span;
    let number = |key: &str| call.config.get(key).and_then(AttrValue::as_int).unwrap_or(-1);
    let predicate = match call.config.get("predicate") {
        Some(AttrValue::Expr(e)) => e.clone().cast(DType::INT32),
        _ => Expr::int32(number("predicate") as i32),
    };
    let fill = call
        .config
        .get("fill_mode")
        .and_then(AttrValue::as_str)
        .unwrap_or("");
    let (flat_global, declare_global) = flat_view(&src.buffer, span);
    let (flat_shared, declare_shared) = flat_view(&dst.buffer, span);
    let thread = cx.thread_index();
    let body = repeat("f", plan.rounds, span, |round| {
        let args = vec![
            address(&flat_shared, vec![plan.shared_at(&round, &thread, cx)], span),
            address(&flat_global, vec![plan.global_at(&round, &thread)], span),
            Expr::int32(bytes as i32),
            Expr::constant(DType::UINT64, 0),
            Expr::int32(0),
            Expr::int32(number("prefetch_size") as i32),
            predicate.clone(),
            Expr::string(fill),
        ];
        Stmt::evaluate(Expr::call(Op::PtxCpAsync, DType::VOID, args).at(span))
    });
    Ok(Stmt::seq([declare_global, declare_shared, body]))
}
