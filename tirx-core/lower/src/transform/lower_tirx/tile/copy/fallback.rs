//! `copy` → `fallback`: element by element.
//!
//! **Idea.** A nest of loops over the region's dimensions, run by the first active thread of the scope.
//!
//! **Conditions.** One dtype, layouts, the same extents. Symbolic extents and any storage scopes are fine.
//!
//! **Cost.** One load and one store per element, by one thread; it serves calls that no other variant accepts. Builds
//! and checks warn, with the reasons of the others, unless `dispatch="fallback"` asks for it.

use super::super::call::PrimitiveCall;
use super::super::context::{Context, Warning};
use super::super::decline::Decline;
use super::super::emit::Emit;
use super::super::predicates::wide;
use super::super::variant::{Completion, Emits, Explanation, Plan};
use crate::arith::fold;
use crate::ir::tile::COPY_BY_ONE_THREAD;
use crate::ir::{BinOp, BufferRegion, DType, ExecScope, Expr, Stmt, Var};

/// Both sides, and who copies.
struct OneThread {
    dst: BufferRegion,
    src: BufferRegion,
    scope: ExecScope,
    /// The number of the thread in the scope; at scope thread every one copies.
    thread: Option<i128>,
    /// Whether the call names the variant, so that it needs no warning.
    forced: bool,
}

pub(super) fn plan(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    let (dst, src) = call.moved()?;
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
            )
            .into());
        }
    }
    let thread = if cx.scope == ExecScope::Thread {
        None
    } else {
        cx.thread_count()?;
        Some(first_active(cx)?)
    };
    Ok(Box::new(OneThread {
        dst: dst.clone(),
        src: src.clone(),
        scope: cx.scope,
        thread,
        forced: call.dispatch().is_some(),
    }))
}

impl Emits for OneThread {
    fn explain(&self) -> Explanation {
        let (from, to, scope) = (
            self.src.buffer.scope(),
            self.dst.buffer.scope(),
            self.scope.name(),
        );
        let warning = Warning {
            name: COPY_BY_ONE_THREAD,
            message: format!(
                "this copy from {from} to {to} at scope {scope} goes element by element in one thread, because every faster \
                 variant declines"
            ),
            instead: "`dispatch=\"fallback\"`",
        };
        let who = match self.thread {
            Some(thread) => format!("by thread {thread} of the {scope}"),
            None => "by the calling thread".to_string(),
        };
        Explanation {
            warning: (!self.forced).then_some(warning),
            completion: self.thread.is_none().then_some(Completion::Done),
            ..Explanation::default()
        }
        .line(format!("element by element, {who}"))
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        let span = out.span();
        let (dst, src) = (&self.dst, &self.src);
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
        if let Some(thread) = self.thread {
            let own = fold::cast(out.cx.thread_index(), DType::INT32);
            let condition = Expr::binary(BinOp::Eq, own, Expr::int32(thread as i32));
            body = Stmt::if_else(condition.at(span), body, None, span);
        }
        out.push(body);
    }
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
