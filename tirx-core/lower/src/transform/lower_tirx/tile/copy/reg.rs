//! `copy` → `reg`: between the threads' own memory and global or shared memory.
//!
//! **Idea.** The layout of the local side says which thread holds which elements ([`registers`](super::super::registers)).
//! The other side's layout is brought into the same order; digits over threads give each thread its base address, and
//! the digits over its memory are a loop of vectors, as wide as elements lie next to each other on both sides.
//!
//! **Conditions.** All threads of the scope active; one side local, the other global or shared; the local layout without
//! swizzle, on thread axes not wider than the scope, and not beginning in the middle of one. `cache="nc"` and its like
//! are honoured on loads from global memory.
//!
//! **Cost.** One load or store per vector, no other registers.

use super::super::build::{CacheHints, address, flat_view, load, repeat, space, store};
use super::super::call::PrimitiveCall;
use super::super::context::Context;
use super::super::decline::Decline;
use super::super::digits::split;
use super::super::emit::Emit;
use super::super::multiples::is_multiple;
use super::super::operands::{bits, in_memory};
use super::super::registers::Held;
use super::super::swizzle::{Step, swizzled};
use super::super::variant::{Completion, Emits, Explanation, Plan};
use super::partition::WIDTHS;
use super::vec_forced;
use crate::arith::fold;
use crate::ir::{BinOp, BufferRegion, Expr, Stmt};
use crate::layout::apply::binary;
use crate::layout::{Layout, Swizzle, TileAlgebra, TileLayout};

/// The local and the other side.
fn sides<'a>(call: &PrimitiveCall<'a>) -> Result<(&'a BufferRegion, &'a BufferRegion), Decline> {
    let (dst, src) = call.moved()?;
    let (to, from) = (space(dst.buffer.scope()), space(src.buffer.scope()));
    match (from, to) {
        ("local", "global" | "shared") => Ok((src, dst)),
        ("global" | "shared", "local") => Ok((dst, src)),
        _ => Err(format!(
            "unsupported memory scopes src={} dst={}; one must be local, the other global or shared",
            src.buffer.scope(),
            dst.buffer.scope()
        )
        .into()),
    }
}

pub(super) fn with_registers(call: &PrimitiveCall<'_>, _: &mut Context<'_>) -> Result<(), Decline> {
    sides(call).map(drop)
}

/// A loop over a thread's elements: iterations, and the strides on both sides.
#[derive(Clone)]
struct Atom {
    extent: i128,
    far: Expr,
    near: i128,
}

/// Which vectors a thread moves.
struct Moves {
    local: BufferRegion,
    other: BufferRegion,
    /// Whether the local side is written.
    loads: bool,
    hints: CacheHints,
    swizzle: Option<Swizzle>,
    /// Base of the other side: the part that depends on the thread, its exclusive bound, the common part.
    far_base: Expr,
    far_end: Option<i128>,
    fixed: Expr,
    /// Base of the local side.
    near_base: Expr,
    /// The loops around the vectors, outermost first.
    outer: Vec<Atom>,
    rounds: i128,
    threads: i128,
    vector: i128,
    bytes: i128,
    /// Under which condition the thread holds a part.
    holds: Option<Expr>,
}

pub(super) fn plan(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    let (local, other) = sides(call)?;
    let loads = std::ptr::eq(call.region("dst")?, local);
    let dtype = local.buffer.dtype;
    let bits = bits(dtype);
    if bits > 128 {
        return Err(format!("{dtype} elements are not moved by one instruction").into());
    }
    let held = Held::from_region(local, cx)?;
    let sliced = in_memory(other, cx.facts)?;
    let swizzle = sliced.swizzle();
    let extents: Vec<Expr> = held.layout.shard.iter().map(|i| i.extent.clone()).collect();
    let (far, starts) = sliced
        .tile()
        .group(&extents)
        .ok_or("the two layouts have no common iterators")?;
    let run = |i: usize| far.shard[starts[i]..starts[i + 1]].to_vec();

    // The base addresses, which depend on the thread.
    let fixed = far.offset_in_memory();
    let mut far_base = Expr::int32(0);
    let mut far_end = Some(1);
    let near_base = held.layout.offset_in_memory();
    for (i, iter) in held.layout.shard.iter().enumerate() {
        if Held::is_thread(iter) {
            let digit = Held::digit(iter, cx)?;
            let part = Layout::Tile(TileLayout::from_shard(run(i)).into());
            let at = part.memory_offset(&[digit], std::slice::from_ref(&iter.extent));
            far_base = binary(BinOp::Add, far_base, at);
            for iter in run(i) {
                let last = iter
                    .extent
                    .as_int()
                    .zip(iter.stride.as_int())
                    .map(|(e, s)| (e - 1) * s);
                far_end = far_end.zip(last).map(|(end, last)| end + last);
            }
        }
    }
    let far_base = cx.facts.simplify(&far_base);

    // The loops, outermost first.
    let mut atoms: Vec<Atom> = Vec::new();
    for i in held.memory_order() {
        let near = held.layout.shard[i]
            .stride
            .as_int()
            .ok_or("a local stride is not constant")?;
        let iters = run(i);
        let mut inner = 1;
        let mut parts = Vec::new();
        for iter in iters.iter().rev() {
            let extent = iter.extent.as_int().ok_or("an extent is not constant")?;
            if extent > 1 {
                parts.push(Atom {
                    extent,
                    far: iter.stride.clone(),
                    near: near * inner,
                });
            }
            inner *= extent;
        }
        parts.reverse();
        atoms.extend(parts);
    }
    let mut chosen = (1, atoms.clone());
    for width in WIDTHS {
        let vector = width / bits;
        let fits =
            vector > 1 && vector * bits == width && swizzle.is_none_or(|s| vector <= 1 << s.per_element);
        if fits
            && let Some(outer) = without_vector(&atoms, vector)
            && aligned(&outer, [&far_base, &near_base, &fixed], other, vector, cx)
        {
            chosen = (vector, outer);
            break;
        }
    }
    let (vector, outer) = chosen;
    if vector * bits % 8 != 0 {
        return Err(format!(
            "{dtype} elements are moved by whole bytes, which do not lie in one piece on both sides"
        )
        .into());
    }
    let hints = vec_forced::hints(call)?;
    Ok(Box::new(Moves {
        local: local.clone(),
        other: other.clone(),
        loads,
        hints,
        swizzle,
        far_base,
        far_end,
        fixed,
        near_base,
        rounds: outer.iter().map(|a| a.extent).product(),
        outer,
        threads: cx.thread_count()?,
        vector,
        bytes: vector * bits / 8,
        holds: held.holds(cx)?,
    }))
}

impl Emits for Moves {
    fn explain(&self) -> Explanation {
        Explanation {
            completion: self.loads.then_some(Completion::Done),
            ..Explanation::partition(self.rounds, self.threads, self.vector)
        }
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        let span = out.span();
        let (flat_far, declare_far) = flat_view(&self.other.buffer, span);
        let (flat_near, declare_near) = flat_view(&self.local.buffer, span);
        let far_space = space(self.other.buffer.scope());
        let body = repeat("f", self.rounds, span, |f| {
            let (mut far_at, mut near_at) = (
                binary(BinOp::Add, self.far_base.clone(), self.fixed.clone()),
                self.near_base.clone(),
            );
            let mut steps = Vec::new();
            let extents: Vec<i128> = self.outer.iter().map(|atom| atom.extent).collect();
            for (atom, digit) in self.outer.iter().zip(split(&f, &extents)).rev() {
                far_at = binary(
                    BinOp::Add,
                    far_at,
                    binary(BinOp::Mul, digit.clone(), atom.far.clone()),
                );
                near_at = binary(
                    BinOp::Add,
                    near_at,
                    fold::mul(digit.clone(), Expr::constant(digit.dtype, atom.near)),
                );
                steps.push(Step {
                    digit,
                    stride: atom.far.clone(),
                });
            }
            if let Some(swizzle) = self.swizzle {
                far_at = swizzled(swizzle, &self.far_base, self.far_end, &self.fixed, &steps, out.cx);
            }
            let far = address(&flat_far, vec![far_at], span);
            let near = address(&flat_near, vec![near_at], span);
            match self.loads {
                true => load(near, far, far_space, self.bytes, &self.hints, span),
                false => store(far, near, far_space, self.bytes, span),
            }
        });
        // A thread that holds no part may load unused elements, but must not store to another thread's.
        let body = match self.holds {
            Some(condition) if !self.loads => Stmt::if_else(condition, body, None, span),
            _ => body,
        };
        for stmt in [declare_far, declare_near, body] {
            out.push(stmt);
        }
    }
}

/// The loops around vectors of the given length; `None` where vectors are not contiguous on both sides.
fn without_vector(atoms: &[Atom], vector: i128) -> Option<Vec<Atom>> {
    let mut outer = atoms.to_vec();
    let mut done = 1;
    while done < vector {
        let last = outer.last_mut()?;
        if !last.far.is_int(done) || last.near != done {
            return None;
        }
        if done * last.extent <= vector {
            done *= last.extent;
            outer.pop();
            continue;
        }
        let part = vector / done;
        if last.extent % part != 0 {
            return None;
        }
        *last = Atom {
            extent: last.extent / part,
            far: Expr::constant(last.far.dtype, done * part),
            near: done * part,
        };
        done = vector;
    }
    (done == vector).then_some(outer)
}

/// Whether each vector is aligned to its length on both sides.
fn aligned(
    outer: &[Atom],
    bases: [&Expr; 3],
    other: &BufferRegion,
    vector: i128,
    cx: &mut Context<'_>,
) -> bool {
    let mut divides = |e: &Expr| is_multiple(e, vector, cx.facts);
    outer.iter().all(|a| divides(&a.far) && a.near % vector == 0)
        && bases.into_iter().all(&mut divides)
        && other.buffer.elem_offset.iter().all(&mut divides)
}
