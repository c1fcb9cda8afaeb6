//! `copy` → `gmem_smem`, `same_memory`, `ragged`: through registers, by all threads of the scope.
//!
//! **Idea.** The region is cut into `[rounds, threads, vector]` (see [`partition`](super::partition)); in each round a
//! thread loads a vector to registers and stores it. A swizzled side gives each vector's address through its swizzle;
//! vectors stay within its chunks. Where the threads do not divide the vectors (`ragged`), a condition leaves out threads of
//! the last round.
//!
//! **Conditions.** Scope thread, warp, warpgroup or CTA with all threads active; constant extents; for `gmem_smem` one side
//! in global and one in shared memory, and the threads divide the elements; for `same_memory` both sides in shared or both in
//! global memory, and no element on both. Offsets and global strides may be symbolic. Vectors of float4 are whole bytes.
//!
//! **Cost.** `ceil(elements / (threads * vector))` loads and stores per thread, of up to 16 bytes. No barrier: readers of
//! elements that other threads copied must synchronize.

use super::super::build::{CacheHints, address, flat_view, load, local, repeat, space, store};
use super::super::call::PrimitiveCall;
use super::super::context::Context;
use super::super::decline::Decline;
use super::super::emit::Emit;
use super::super::operands::{bits, elements};
use super::super::option::TileOption;
use super::super::predicates::memories;
use super::super::variant::{Emits, Explanation, Plan};
use super::partition::{Partition, WIDTHS, partition};
use super::vec_forced::{self, VECTOR_LENGTH};
use crate::arith::fold;
use crate::ir::{BinOp, BufferRegion, DType, Expr, Stmt};

/// The options of copies that have no further ones.
pub(super) const OPTIONS: &[TileOption] = &[VECTOR_LENGTH];

/// Predicate: one side in global and one in shared memory.
pub(super) fn between_global_and_shared(
    call: &PrimitiveCall<'_>,
    _: &mut Context<'_>,
) -> Result<(), Decline> {
    memories(call, &[("global", "shared"), ("shared", "global")])
}

/// Predicate: both sides in shared, or both in global memory, and no element on both.
pub(super) fn within_a_memory(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<(), Decline> {
    let (dst, src) = call.moved()?;
    match (space(src.buffer.scope()), space(dst.buffer.scope())) {
        ("global", "global") | ("shared", "shared") => {}
        _ => return Err("src and dst are in different memories".into()),
    }
    // The threads copy in no order, so that no one may write what another one still has to read.
    if dst.buffer.data == src.buffer.data && !apart(dst, src, cx) {
        return Err(format!("{} and {} may overlap", src.buffer.name, dst.buffer.name).into());
    }
    Ok(())
}

/// Whether two regions are parts of one buffer that have no element in common.
fn apart(a: &BufferRegion, b: &BufferRegion, cx: &mut Context<'_>) -> bool {
    let before = |a: &(Expr, Expr), b: &(Expr, Expr), cx: &mut Context<'_>| {
        let gap = Expr::binary(
            BinOp::Sub,
            b.0.clone(),
            Expr::binary(BinOp::Add, a.0.clone(), a.1.clone()),
        );
        cx.facts.simplify(&gap).as_int().is_some_and(|gap| gap >= 0)
    };
    let same_dtypes = |dim: usize| {
        let ranges = [&a.ranges[dim], &b.ranges[dim]];
        let mut exprs = ranges.iter().flat_map(|(start, extent)| [start, extent]);
        exprs.all(|e| e.dtype == a.ranges[dim].0.dtype)
    };
    a.buffer == b.buffer
        && (0..a.ranges.len()).any(|dim| {
            same_dtypes(dim)
                && (before(&a.ranges[dim], &b.ranges[dim], cx) || before(&b.ranges[dim], &a.ranges[dim], cx))
        })
}

/// Predicate: in global or shared memory on both sides.
pub(super) fn in_memory(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<(), Decline> {
    between_global_and_shared(call, cx).or_else(|_| within_a_memory(call, cx))
}

/// The partition, and both sides.
struct Vectors {
    /// The global side, or the source where both are in one memory.
    far: BufferRegion,
    near: BufferRegion,
    loads_far: bool,
    partition: Partition,
    threads: i128,
    /// How many vectors there are, where the threads do not divide them. Each is a round of the partition, by one thread.
    ragged: Option<i128>,
    bytes: i128,
    hints: CacheHints,
}

/// A plan whose threads divide the elements.
pub(super) fn plan(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    vectors(call, false, cx)
}

/// A plan for any number of elements.
pub(super) fn plan_ragged(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    match elements(call.region("src")?) {
        None => Err("non-constant region extent".into()),
        Some(0) => Err("the region is empty".into()),
        Some(_) => vectors(call, true, cx),
    }
}

fn vectors(call: &PrimitiveCall<'_>, ragged: bool, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    let (dst, src) = call.moved()?;
    let loads_far = dst.buffer.scope() != "global" || src.buffer.scope() == "global";
    let (far, near) = if loads_far { (src, dst) } else { (dst, src) };
    let dtype = far.buffer.dtype;
    let bits = bits(dtype);
    let threads = cx.thread_count()?;
    let partition = partition(far, near, if ragged { 1 } else { threads }, &WIDTHS, cx)?;
    // Two halves of a byte that threads copy alone are a race, and no instruction moves one.
    if partition.vector * bits % 8 != 0 {
        let message =
            format!("{dtype} elements are moved by whole bytes, which do not lie in one piece on both sides");
        return Err(message.into());
    }
    let bytes = partition.vector * bits / 8;
    if bytes > 16 {
        return Err(format!("{dtype} is wider than one instruction").into());
    }
    Ok(Box::new(Vectors {
        far: far.clone(),
        near: near.clone(),
        loads_far,
        ragged: ragged.then_some(partition.rounds),
        partition,
        threads,
        bytes,
        hints: vec_forced::hints(call)?,
    }))
}

impl Emits for Vectors {
    fn explain(&self) -> Explanation {
        let Partition { rounds, vector, .. } = self.partition;
        match self.ragged {
            None => Explanation::partition(rounds, self.threads, vector),
            Some(vectors) => {
                let rounds = (vectors + self.threads - 1) / self.threads;
                let last = vectors - (rounds - 1) * self.threads;
                Explanation::partition(rounds, self.threads, vector)
                    .line(format!("the last round by {last} threads"))
            }
        }
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        let (span, partition, bytes) = (out.span(), &self.partition, self.bytes);
        let (flat_far, declare_far) = flat_view(&self.far.buffer, span);
        let (flat_near, declare_near) = flat_view(&self.near.buffer, span);
        let (tmp, allocate) = local("tmp", partition.vector, self.far.buffer.dtype, span);
        let register = || address(&tmp, vec![Expr::int32(0)], span);
        let thread = out.cx.thread_index();
        let (far_space, near_space) = (space(self.far.buffer.scope()), space(self.near.buffer.scope()));
        let mut moved = |round: &Expr, thread: &Expr| {
            let far = partition.far_at(round, thread, out.cx);
            let near = partition.near_at(round, thread, out.cx);
            let far = address(&flat_far, vec![far], span);
            let near = address(&flat_near, vec![near], span);
            let (from, from_space, to, to_space) = match self.loads_far {
                true => (far, far_space, near, near_space),
                false => (near, near_space, far, far_space),
            };
            Stmt::seq([
                load(register(), from, from_space, bytes, &self.hints, span),
                store(to, register(), to_space, bytes, span),
            ])
        };
        let body = match self.ragged {
            None => repeat("f", partition.rounds, span, |round| moved(&round, &thread)),
            Some(vectors) => {
                let thread = fold::cast(thread, DType::INT32);
                let rounds = (vectors + self.threads - 1) / self.threads;
                repeat("f", rounds, span, |round| {
                    let first = fold::mul(round, Expr::int32(self.threads as i32));
                    let number = fold::add(first, thread.clone());
                    let inside = Expr::binary(BinOp::Lt, number.clone(), Expr::int32(vectors as i32));
                    Stmt::if_else(inside.at(span), moved(&number, &Expr::int32(0)), None, span)
                })
            }
        };
        for stmt in [declare_far, declare_near, allocate, body] {
            out.push(stmt);
        }
    }
}
