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
use super::super::call::Call;
use super::super::context::Context;
use super::super::emit::Emit;
use super::super::variant::{Decline, Emits, Explanation, OptionKind, Plan, TileOption};
use super::partition::{Partition, WIDTHS, partition};
use crate::ir::{BufferRegion, Expr, Stmt};

/// The options that copies by threads accept.
pub(super) const OPTIONS: &[TileOption] = &[TileOption {
    name: "vec_len",
    kind: OptionKind::Int,
    default: "by the layouts",
    doc: "no effect, as in TVM: vectors are as long as both layouts allow",
}];

/// The global and the shared side.
fn sides<'a>(call: &Call<'a>) -> Result<(&'a BufferRegion, &'a BufferRegion), Decline> {
    let (dst, src) = call.moved()?;
    match (src.buffer.scope(), dst.buffer.scope()) {
        ("global", to) if to.starts_with("shared") => Ok((src, dst)),
        (from, "global") if from.starts_with("shared") => Ok((dst, src)),
        (from, to) => Err(format!(
            "unsupported memory scopes src={from} dst={to}; allowed: global->shared*, shared*->global"
        )
        .into()),
    }
}

pub(super) fn between_global_and_shared(call: &Call<'_>, _: &mut Context<'_>) -> Result<(), Decline> {
    sides(call).map(drop)
}

pub(super) fn divides(call: &Call<'_>, cx: &mut Context<'_>) -> Result<(), Decline> {
    let (global, _) = sides(call)?;
    let threads = cx.thread_count()?;
    match elements(global) {
        None => Err("non-constant region extent".into()),
        Some(0) => Err("the region is empty".into()),
        Some(n) if n % threads == 0 => Ok(()),
        Some(n) => Err(format!("region size {n} not divisible by thread_cnt={threads}").into()),
    }
}

/// The partition, and both sides.
struct Vectors {
    global: BufferRegion,
    shared: BufferRegion,
    loads_global: bool,
    partition: Partition,
    bytes: i128,
}

pub(super) fn plan(call: &Call<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    let (global, shared) = sides(call)?;
    let dtype = global.buffer.dtype;
    let bits = dtype.bits as i128 * dtype.lanes as i128;
    if bits % 8 != 0 {
        return Err(format!("{dtype} elements are not whole bytes").into());
    }
    let partition = partition(global, shared, cx.thread_count()?, &WIDTHS, cx)?;
    let bytes = partition.vector * bits / 8;
    if bytes > 16 {
        return Err(format!("{dtype} is wider than one instruction").into());
    }
    Ok(Box::new(Vectors {
        global: global.clone(),
        shared: shared.clone(),
        loads_global: std::ptr::eq(call.region("src")?, global),
        partition,
        bytes,
    }))
}

impl Emits for Vectors {
    fn explain(&self) -> Explanation {
        let Partition {
            rounds,
            threads,
            vector,
            ..
        } = self.partition;
        Explanation::partition(rounds, threads, vector)
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        let (span, partition, bytes) = (out.span(), &self.partition, self.bytes);
        let (flat_global, declare_global) = flat_view(&self.global.buffer, span);
        let (flat_shared, declare_shared) = flat_view(&self.shared.buffer, span);
        let (tmp, allocate) = local("tmp", partition.vector, self.global.buffer.dtype, span);
        let register = || address(&tmp, vec![Expr::int32(0)], span);
        let thread = out.cx.thread_index();
        let shared_space = space(self.shared.buffer.scope());
        let body = repeat("f", partition.rounds, span, |round| {
            let g = address(&flat_global, vec![partition.global_at(&round, &thread)], span);
            let s = partition.shared_at(&round, &thread, out.cx);
            let s = address(&flat_shared, vec![s], span);
            let none = CacheHints::default();
            if self.loads_global {
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
        for stmt in [declare_global, declare_shared, allocate, body] {
            out.push(stmt);
        }
    }
}
