//! `copy_async` → `dsmem`: from this block's shared memory to another block's of the cluster, by bulk copies.
//!
//! **Idea.** Runs of bytes that are contiguous on both sides are one `cp.async.bulk` each; what is not contiguous is counted
//! by loops. The bytes arrive at the mbarrier of the block that receives them.
//!
//! **Conditions.** Scope thread; `mbar=` and `remote_cta_id=`; runs of a multiple of 16 bytes. Where the two sides are
//! swizzled they are so alike, and the runs consist of whole blocks of the swizzle at equal places of its period.
//!
//! **Cost.** One instruction for each run.

use super::build::{address, flat_view};
use super::call::PrimitiveCall;
use super::context::Context;
use super::decline::Decline;
use super::emit::Emit;
use super::multiples::{is_multiple, may_be_multiple};
use super::operands::bits;
use super::option::{OptionKind, TileOption};
use super::predicates::{ONE_THREAD, memories, same_dtypes};
use super::tensor_copy::{SharedSide, common_runs};
use super::variant::{Completion, Emits, Explanation, Plan, Predicate, Variant};
use crate::intrin::{GpuSet, Op};
use crate::ir::{BinOp, BufferRegion, DType, Expr, ForKind, ForLoop, Stmt, TileOp, Var};
use crate::layout::apply::binary;

pub(super) static VARIANTS: &[Variant] = &[Variant {
    ops: &[TileOp::CopyAsync],
    name: "dsmem",
    arch: GpuSet::least(90),
    options: &[
        TileOption {
            name: "mbar",
            kind: OptionKind::Pointer,
            default: "none",
            doc: "the mbarrier at which the bytes arrive, as its address in this block",
        },
        TileOption {
            name: "remote_cta_id",
            kind: OptionKind::Value,
            default: "none",
            doc: "the rank of the receiving block in its cluster",
        },
    ],
    predicates: &[
        ONE_THREAD,
        Predicate {
            name: "from shared to shared memory",
            holds: |call, _| memories(call, &[("shared", "shared")]),
        },
    ],
    completion: Completion::Mbarrier { bytes: None },
    plan,
    doc: "bulk copies to the shared memory of another block of the cluster",
    ..Variant::DEFAULT
}];

/// The copies of a call.
struct Runs {
    dst: BufferRegion,
    src: BufferRegion,
    mbar: Expr,
    rank: Expr,
    /// Places of the first elements: destination, source.
    at: [Expr; 2],
    /// Bytes of a run.
    bytes: i128,
    /// Count, step in the destination, step in the source, outermost first.
    turns: Vec<[i128; 3]>,
}

fn plan(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    let (dst, src) = call.moved()?;
    let mbar = call
        .option_expr("mbar")
        .ok_or("mbar= is missing: the mbarrier that counts the bytes")?;
    let rank = call
        .option_expr("remote_cta_id")
        .ok_or("remote_cta_id= is missing, the rank of the receiving block")?;
    same_dtypes(dst, src)?;
    let bits = bits(src.buffer.dtype);
    let to = SharedSide::from_region(dst, cx.facts)?;
    let from = SharedSide::from_region(src, cx.facts)?;
    let mut runs = common_runs(&to.iters, &from.iters)
        .ok_or("the rows of the two regions do not split into common runs")?;
    // Innermost first: what is contiguous on both sides is one run.
    runs.sort_by_key(|[_, to, _]| *to);
    let mut run = 1;
    let mut turns = Vec::new();
    for turn in runs {
        match turn {
            [count, to, from] if to == run && from == run && turns.is_empty() => run *= count,
            other => turns.push(other),
        }
    }
    turns.reverse();
    let bytes = run * bits / 8;
    if run * bits % 128 != 0 {
        return Err(format!(
            "only {bytes} bytes are contiguous on both sides, bulk copies move multiples of 16"
        )
        .into());
    }
    if to.swizzle != from.swizzle {
        return Err("the two sides are swizzled differently".into());
    }
    if let Some(swizzle) = to.swizzle {
        let (block, period) = (1i128 << swizzle.block_bits(), 1i128 << swizzle.period_bits());
        let apart = binary(BinOp::Sub, to.offset.clone(), from.offset.clone());
        let steps = turns
            .iter()
            .all(|[_, to, from]| (to - from) % period == 0 && to % block == 0);
        let alike = is_multiple(&apart, period, cx.facts) && is_multiple(&from.offset, block, cx.facts);
        if run % block != 0 || !steps || !alike {
            return Err("the runs are not whole blocks at equal places of the swizzle".into());
        }
    } else {
        let per = 128 / bits.min(128);
        let mut off = |e: &Expr| !may_be_multiple(e, per, cx.facts);
        let steps = turns.iter().any(|[_, to, from]| to % per != 0 || from % per != 0);
        if steps || off(&to.offset) || off(&from.offset) {
            return Err("the runs are not aligned to 16 bytes on both sides".into());
        }
    }
    Ok(Box::new(Runs {
        dst: dst.clone(),
        src: src.clone(),
        mbar,
        rank,
        at: [to.offset, from.offset],
        bytes,
        turns,
    }))
}

impl Runs {
    fn copies(&self) -> i128 {
        self.turns.iter().map(|[count, ..]| count).product()
    }
}

impl Emits for Runs {
    fn explain(&self) -> Explanation {
        Explanation {
            completion: Some(Completion::Mbarrier {
                bytes: Some(self.bytes * self.copies()),
            }),
            ..Explanation::default()
        }
        .line(format!("{} bulk copies of {} bytes", self.copies(), self.bytes))
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        let span = out.span();
        let (to, declare_to) = flat_view(&self.dst.buffer, span);
        let (from, declare_from) = flat_view(&self.src.buffer, span);
        out.push(declare_to);
        out.push(declare_from);
        let vars: Vec<Var> = self
            .turns
            .iter()
            .map(|_| Var::at("run", DType::INT32, span))
            .collect();
        let [mut to_at, mut from_at] = self.at.clone();
        for ([_, to, from], var) in self.turns.iter().zip(&vars) {
            let times = |by: i128| binary(BinOp::Mul, Expr::var(var), Expr::int32(by as i32));
            to_at = binary(BinOp::Add, to_at, times(*to));
            from_at = binary(BinOp::Add, from_at, times(*from));
        }
        let to_at = out.cx.facts.simplify(&to_at);
        let from_at = out.cx.facts.simplify(&from_at);
        let remote = |pointer: Expr| {
            let call = Op::PtxMapa.call();
            call.set("ptr", pointer).set("rank", &self.rank).at(span).build()
        };
        let mut body = Op::PtxCpAsyncBulkSharedToCluster
            .call()
            .set("dst_ptr", remote(address(&to, vec![to_at], span)))
            .set("src_ptr", address(&from, vec![from_at], span))
            .set("size", self.bytes as i32)
            .set("mbar", remote(self.mbar.clone()))
            .at(span)
            .stmt();
        let kind = if self.copies() > 16 {
            ForKind::Serial
        } else {
            ForKind::Unrolled
        };
        for ([count, ..], var) in self.turns.iter().zip(&vars).rev() {
            body = Stmt::new(ForLoop::new(kind, var, Expr::int32(*count as i32), body), span);
        }
        out.push(body);
    }
}
