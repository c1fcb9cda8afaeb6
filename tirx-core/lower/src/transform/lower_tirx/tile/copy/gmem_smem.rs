//! `copy` → `gmem_smem`: between global and shared memory, by all threads of the scope.
//!
//! **Idea.** The region is cut into `[rounds, threads, vector]` (see [`partition`](super::partition)); in each round a
//! thread loads a vector to registers and stores it. A swizzled shared side gives each vector's address through the
//! swizzle; vectors stay within its chunks.
//!
//! **Conditions.** Scope thread, warp, warpgroup or CTA with all threads active; one side in global and one in shared
//! memory; constant extents whose product the threads divide. Offsets and global strides may be symbolic.
//!
//! **Cost.** `elements / (threads * vector)` loads and stores per thread, of up to 16 bytes. No barrier: readers of
//! elements that other threads copied must synchronize.

use super::super::build::{CacheHints, address, elements, flat_view, load, local, repeat, space, store};
use super::super::context::Context;
use super::operands;
use super::partition::{WIDTHS, partition};
use crate::ir::{BufferRegion, Expr, Stmt, TileCall};

/// The global and the shared side.
fn sides(call: &TileCall) -> Result<(&BufferRegion, &BufferRegion), String> {
    let (dst, src) = operands(call)?;
    match (src.buffer.scope(), dst.buffer.scope()) {
        ("global", to) if to.starts_with("shared") => Ok((src, dst)),
        (from, "global") if from.starts_with("shared") => Ok((dst, src)),
        (from, to) => Err(format!(
            "unsupported memory scopes src={from} dst={to}; allowed: global->shared*, shared*->global"
        )),
    }
}

pub(super) fn between_global_and_shared(call: &TileCall, _: &mut Context<'_>) -> Result<(), String> {
    sides(call).map(drop)
}

pub(super) fn divides(call: &TileCall, cx: &mut Context<'_>) -> Result<(), String> {
    let (global, _) = sides(call)?;
    let threads = cx.thread_count()?;
    match elements(global) {
        None => Err("non-constant region extent".to_string()),
        Some(0) => Err("the region is empty".to_string()),
        Some(n) if n % threads == 0 => Ok(()),
        Some(n) => Err(format!("region size {n} not divisible by thread_cnt={threads}")),
    }
}

pub(super) fn lower(call: &TileCall, cx: &mut Context<'_>) -> Result<Stmt, String> {
    let (global, shared) = sides(call)?;
    let loads_global = std::ptr::eq(call.region(1).unwrap_or(shared), global);
    let dtype = global.buffer.dtype;
    let bits = dtype.bits as i128 * dtype.lanes as i128;
    if bits % 8 != 0 {
        return Err(format!("{dtype} elements are not whole bytes"));
    }
    let plan = partition(global, shared, cx.thread_count()?, &WIDTHS, cx)?;
    cx.partition = Some([plan.rounds, plan.threads, plan.vector]);
    let span = cx.span;
    let bytes = plan.vector * bits / 8;
    if bytes > 16 {
        return Err(format!("{dtype} is wider than one instruction"));
    }
    let (flat_global, declare_global) = flat_view(&global.buffer, span);
    let (flat_shared, declare_shared) = flat_view(&shared.buffer, span);
    let (tmp, allocate) = local("tmp", plan.vector, dtype, span);
    let register = || address(&tmp, vec![Expr::int32(0)], span);
    let thread = cx.thread_index();
    let shared_space = space(shared.buffer.scope());
    let body = repeat("f", plan.rounds, span, |round| {
        let g = address(&flat_global, vec![plan.global_at(&round, &thread)], span);
        let s = address(&flat_shared, vec![plan.shared_at(&round, &thread, cx)], span);
        let none = CacheHints::default();
        if loads_global {
            Stmt::seq([
                load(register(), g, "global", bytes, &none, span),
                store(s, register(), shared_space, bytes, span),
            ])
        } else {
            Stmt::seq([
                load(register(), s, shared_space, bytes, &none, span),
                store(g, register(), "global", bytes, span),
            ])
        }
    });
    Ok(Stmt::seq([declare_global, declare_shared, allocate, body]))
}
