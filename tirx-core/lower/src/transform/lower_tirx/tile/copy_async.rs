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

use super::build::{address, flat_view, repeat};
use super::call::PrimitiveCall;
use super::context::Context;
use super::copy::partition::{Partition, partition};
use super::decline::Decline;
use super::emit::Emit;
use super::operands::{bits, elements};
use super::option::{OptionKind, TileOption};
use super::predicates::{DIVIDES, FULL_SCOPE, SAME_ELEMENTS, SCOPE, memories};
use super::variant::{Completion, Emits, Explanation, Plan, Predicate, Variant};
use crate::intrin::{GpuSet, Op};
use crate::ir::{BufferRegion, DType, ExecScope, Expr, Stmt, TileOp};
use crate::source::Span;

pub(super) static VARIANTS: &[Variant] = &[Variant {
    ops: &[TileOp::CopyAsync],
    name: "ldgsts",
    priority: 20,
    arch: GpuSet::least(80),
    predicates: &[
        SCOPE,
        FULL_SCOPE,
        SAME_ELEMENTS,
        Predicate {
            name: "no mbarrier: completion by groups",
            holds: |call, _| match call.option("mbar") {
                None => Ok(()),
                Some(_) => Err("cp.async is waited for by groups, and mbar= asks for an mbarrier".into()),
            },
        },
        Predicate {
            name: "from global to shared memory",
            holds: |call, _| memories(call, &[("global", "shared")]),
        },
        DIVIDES,
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
            doc: "copies only if it holds",
        },
        TileOption {
            name: "fill_mode",
            kind: OptionKind::Word(&["", "zero"]),
            default: "\"\"",
            doc: "\"zero\" writes zeros if the predicate does not hold",
        },
    ],
    completion: Completion::CommitGroup,
    plan,
    doc: "cp.async of 16, 8 or 4 bytes, spread over the threads of the scope",
    ..Variant::DEFAULT
}];

/// `direct=True`: the calling thread's region by one instruction, which the caller promises to be contiguous and aligned.
fn direct(call: &PrimitiveCall<'_>, cx: &Context<'_>) -> Result<i128, Decline> {
    let (dst, src) = call.moved()?;
    if cx.scope != ExecScope::Thread {
        return Err(format!("direct=True is for scope thread, found {}", cx.scope.name()).into());
    }
    let bits = bits(src.buffer.dtype);
    let elements = elements(dst).ok_or("direct=True needs constant extents")?;
    match elements * bits {
        32 | 64 | 128 => Ok(elements * bits / 8),
        _ => Err(
            format!("direct=True moves 4, 8 or 16 bytes, found {elements} elements of {bits} bits").into(),
        ),
    }
}

/// Who copies which pieces.
struct Pieces {
    dst: BufferRegion,
    src: BufferRegion,
    /// `None` for `direct=True`.
    partition: Option<Partition>,
    /// Bytes of a piece.
    bytes: i128,
    bits: i128,
    prefetch_size: i32,
    predicate: Expr,
    fill_mode: String,
}

fn plan(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    let (dst, src) = call.moved()?;
    let dtype = src.buffer.dtype;
    let bits = bits(dtype);
    let (partition, bytes) = if call.option_flag("direct") {
        (None, direct(call, cx)?)
    } else {
        let found = partition(src, dst, cx.thread_count()?, &[128, 64, 32], cx)?;
        let bytes = found.vector * bits / 8;
        if ![4, 8, 16].contains(&bytes) {
            return Err(format!(
                "cp.async moves 4, 8 or 16 bytes, but only {bytes} are contiguous and aligned"
            )
            .into());
        }
        (Some(found), bytes)
    };
    let predicate = match call.option_expr("predicate") {
        Some(e) if e.as_int().is_none() => e.cast(DType::INT32),
        Some(e) => e,
        None => Expr::int32(-1),
    };
    Ok(Box::new(Pieces {
        dst: dst.clone(),
        src: src.clone(),
        partition,
        bytes,
        bits,
        prefetch_size: call.option_int("prefetch_size").unwrap_or(-1) as i32,
        predicate,
        fill_mode: call.option_text("fill_mode").to_string(),
    }))
}

impl Pieces {
    fn copy(&self, to: Expr, from: Expr, span: Span) -> Stmt {
        Op::PtxCpAsync
            .call()
            .set("dst_ptr", to)
            .set("src_ptr", from)
            .set("cp_size", self.bytes as i32)
            .set("prefetch_size", self.prefetch_size)
            .set("predicate", &self.predicate)
            .set("fill_mode", &self.fill_mode)
            .at(span)
            .stmt()
    }
}

impl Emits for Pieces {
    fn explain(&self) -> Explanation {
        match &self.partition {
            Some(p) => Explanation::partition(p.rounds, p.threads, p.vector),
            None => Explanation::partition(1, 1, self.bytes * 8 / self.bits),
        }
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        let span = out.span();
        let Some(partition) = &self.partition else {
            let to = address(&self.dst.buffer, self.dst.starts(), span);
            let from = address(&self.src.buffer, self.src.starts(), span);
            return out.push(self.copy(to, from, span));
        };
        let (flat_global, declare_global) = flat_view(&self.src.buffer, span);
        let (flat_shared, declare_shared) = flat_view(&self.dst.buffer, span);
        let thread = out.cx.thread_index();
        let body = repeat("f", partition.rounds, span, |round| {
            let to = partition.near_at(&round, &thread, out.cx);
            let to = address(&flat_shared, vec![to], span);
            let from = address(
                &flat_global,
                vec![partition.far_at(&round, &thread, out.cx)],
                span,
            );
            self.copy(to, from, span)
        });
        for stmt in [declare_global, declare_shared, body] {
            out.push(stmt);
        }
    }
}
