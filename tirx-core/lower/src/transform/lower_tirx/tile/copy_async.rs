//! `copy_async` → `ldgsts`: from global to shared memory by `cp.async`.
//!
//! **Idea.** The same partition as `copy` → `gmem_smem` makes; each vector is one `cp.async` of 16, 8 or 4 bytes, which does not
//! pass through registers.
//!
//! **Conditions.** Scope thread, warp, warpgroup or CTA with all threads active; from global to shared memory; constant
//! extents whose product the threads divide; vectors of at least 4 bytes that are contiguous and aligned on both sides.
//! `prefetch_size`, `predicate` and `fill_mode` are those of `T.ptx.cp_async`. With `direct=True` the calling thread copies its
//! region of 4, 8 or 16 bytes by one instruction, as the caller promises that it may.
//!
//! **Cost.** `elements / (threads * vector)` instructions per thread. The caller commits and waits:
//! `T.ptx.cp_async.commit_group()`, `T.ptx.cp_async.wait_group(n)`, then a barrier.

use super::build::{address, elements, flat_view, repeat};
use super::context::Context;
use super::copy::partition::partition;
use super::copy::{FULL_SCOPE, SAME_ELEMENTS, SCOPE, operands};
use super::variant::{Completion, OptionKind, Predicate, TileOption, Variant, ready};
use crate::intrin::Op;
use crate::ir::{AttrValue, DType, ExecScope, Expr, Stmt, TileCall, TileOp};

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
            holds: |call, cx| Ok(global_to_shared(call.tile, cx)?),
        },
        Predicate {
            name: "the elements divide among the threads",
            holds: |call, cx| Ok(divides(call.tile, cx)?),
        },
    ],
    options: &[
        TileOption {
            name: "direct",
            kind: OptionKind::Flag,
            default: "False",
            doc: "the calling thread copies its region of 4, 8 or 16 bytes by one instruction",
        },
        TileOption {
            name: "prefetch_size",
            kind: OptionKind::Int,
            default: "-1",
            doc: "bytes around each piece that are prefetched to L2: 64, 128 or 256",
        },
        TileOption {
            name: "predicate",
            kind: OptionKind::Value,
            default: "-1",
            doc: "copies only where it holds",
        },
        TileOption {
            name: "fill_mode",
            kind: OptionKind::Word(&["", "zero"]),
            default: "\"\"",
            doc: "\"zero\" writes zeros where the predicate does not hold",
        },
    ],
    completion: Completion::CommitGroup,
    plan: |call, cx| ready(call, cx, lower),
    doc: "cp.async of 16, 8 or 4 bytes, spread over the threads of the scope",
    ..Variant::DEFAULT
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

/// `direct=True`: the calling thread's region by one instruction, which the caller promises to be contiguous and aligned.
fn direct(call: &TileCall, cx: &Context<'_>) -> Result<i128, String> {
    let (dst, src) = operands(call)?;
    if cx.scope != ExecScope::Thread {
        return Err(format!(
            "direct=True is for scope thread, found {}",
            cx.scope.name()
        ));
    }
    let bits = src.buffer.dtype.bits as i128 * src.buffer.dtype.lanes as i128;
    let elements = elements(dst).ok_or("direct=True needs constant extents")?;
    match elements * bits {
        32 | 64 | 128 => Ok(elements * bits / 8),
        _ => Err(format!(
            "direct=True moves 4, 8 or 16 bytes, found {elements} elements of {bits} bits"
        )),
    }
}

fn lower(call: &TileCall, cx: &mut Context<'_>) -> Result<Stmt, String> {
    let (dst, src) = operands(call)?;
    let dtype = src.buffer.dtype;
    let bits = dtype.bits as i128 * dtype.lanes as i128;
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
    let copy = |to: Expr, from: Expr, bytes: i128| {
        let args = vec![
            to,
            from,
            Expr::int32(bytes as i32),
            Expr::constant(DType::UINT64, 0),
            Expr::int32(0),
            Expr::int32(number("prefetch_size") as i32),
            predicate.clone(),
            Expr::string(fill),
        ];
        Stmt::evaluate(Expr::call(Op::PtxCpAsync, DType::VOID, args).at(span))
    };
    if call
        .config
        .get("direct")
        .and_then(AttrValue::as_int)
        .is_some_and(|v| v != 0)
    {
        let bytes = direct(call, cx)?;
        cx.partition = Some([1, 1, bytes * 8 / bits]);
        let to = address(&dst.buffer, dst.starts(), span);
        return Ok(copy(to, address(&src.buffer, src.starts(), span), bytes));
    }
    let plan = partition(src, dst, cx.thread_count()?, &[128, 64, 32], cx)?;
    let bytes = plan.vector * bits / 8;
    if ![4, 8, 16].contains(&bytes) {
        return Err(format!(
            "cp.async moves 4, 8 or 16 bytes, but only {bytes} are contiguous and aligned"
        ));
    }
    cx.partition = Some([plan.rounds, plan.threads, plan.vector]);
    let (flat_global, declare_global) = flat_view(&src.buffer, span);
    let (flat_shared, declare_shared) = flat_view(&dst.buffer, span);
    let thread = cx.thread_index();
    let body = repeat("f", plan.rounds, span, |round| {
        let to = address(&flat_shared, vec![plan.shared_at(&round, &thread, cx)], span);
        let from = address(&flat_global, vec![plan.global_at(&round, &thread)], span);
        copy(to, from, bytes)
    });
    Ok(Stmt::seq([declare_global, declare_shared, body]))
}
