//! `copy` → `fallback`: element by element.
//!
//! **Idea.** A nest of loops over the region's dimensions, run by the first active thread of the scope.
//!
//! **Conditions.** One dtype, layouts, the same extents. Symbolic extents and any storage scopes are fine.
//!
//! **Cost.** One load and one store per element, by one thread; it serves calls that no other variant accepts. Builds
//! and checks warn, with the reasons of the others, unless `dispatch="fallback"` asks for it.

use super::super::context::{Context, Warning};
use super::{operands, wide};
use crate::arith::fold;
use crate::ir::tile::COPY_BY_ONE_THREAD;
use crate::ir::{BinOp, DType, ExecScope, Expr, Stmt, TileCall, Var};

pub(super) fn lower(call: &TileCall, cx: &mut Context<'_>) -> Result<Stmt, String> {
    let (dst, src) = operands(call)?;
    for region in [dst, src] {
        if region
            .buffer
            .layout
            .as_ref()
            .is_some_and(|l| l.has_hardware_axis())
        {
            return Err(format!(
                "{} is spread over threads, so no thread can copy it alone",
                region.buffer.name
            ));
        }
    }
    let span = cx.span;
    // A call that names the variant needs no warning.
    if call.dispatch.is_none() {
        let (from, to, scope) = (src.buffer.scope(), dst.buffer.scope(), cx.scope.name());
        cx.warning = Some(Warning {
            name: COPY_BY_ONE_THREAD,
            message: format!(
                "this copy from {from} to {to} at scope {scope} goes element by element in one thread, because every faster \
                 variant declines"
            ),
            instead: "`dispatch=\"fallback\"`",
        });
    }
    let (d, s) = (wide(dst), wide(src));
    let vars: Vec<Var> = d
        .iter()
        .map(|dim| Var::at("i", dst.ranges[*dim].1.dtype, span))
        .collect();
    let at = |starts: Vec<Expr>, dims: &[usize]| {
        let mut coordinate = starts;
        for (dim, var) in dims.iter().zip(&vars) {
            coordinate[*dim] =
                crate::layout::apply::binary(BinOp::Add, coordinate[*dim].clone(), Expr::var(var));
        }
        coordinate
    };
    let value = Expr::load(&src.buffer, at(src.starts(), &s)).at(span);
    let mut body = Stmt::store(&dst.buffer, at(dst.starts(), &d), value, span);
    for (dim, var) in d.iter().zip(&vars).rev() {
        body = Stmt::for_serial(var, dst.ranges[*dim].1.clone(), body, span);
    }
    if cx.scope == ExecScope::Thread {
        return Ok(body);
    }
    cx.thread_count()?;
    let first = first_active(cx)?;
    let condition = Expr::binary(
        BinOp::Eq,
        fold::cast(cx.thread_index(), DType::INT32),
        Expr::int32(first as i32),
    );
    Ok(Stmt::if_else(condition.at(span), body, None, span))
}

/// The number in the scope of its first active thread.
fn first_active(cx: &Context<'_>) -> Result<i128, String> {
    use super::super::active::{LANES, WARPS};
    let Some(active) = cx.active else {
        return Err("the number of threads of a CTA is not known".to_string());
    };
    let unknown = || "the first active thread is only known at run time".to_string();
    active.is_whole(cx.scope)?;
    if cx.scope == ExecScope::Warpgroup
        && let Some(first) = active.warps.first
        && first % WARPS + active.warps.count > WARPS
        && (first % WARPS != 0 || active.warps.count % WARPS != 0)
    {
        return Err(format!(
            "the active warps {} are parts of several warpgroups",
            active.warps
        ));
    }
    let lane = active.lanes.first.ok_or_else(unknown)?;
    let warp = active.warps.first.ok_or_else(unknown)?;
    Ok(match cx.scope {
        ExecScope::Thread => 0,
        ExecScope::Warp => lane,
        ExecScope::Warpgroup => warp % WARPS * LANES + lane,
        ExecScope::Cta | ExecScope::Cluster => warp * LANES + lane,
    })
}
