//! `sum`, `max`, `min` → `local`: each thread reduces the elements that it holds, then lanes exchange results.
//!
//! **Idea.** At scope thread, a loop over the outputs and one over the inputs of each. At wider scopes the layouts say
//! which thread holds what: a thread reduces the part of an output's inputs that is its own. Where a reduced dimension is
//! spread over lanes there are two meanings. An output that is spread over the same lanes holds what each of them has, a
//! partial result, unless `thread_reduce=True`; else the lanes exchange their results by shuffles, and each holds the whole.
//!
//! **Conditions.** All threads of the scope active; both regions local with layouts, or at scope thread not spread over
//! threads. The dimensions that stay are held by the same threads on both sides. Lanes that exchange are of one warp, and
//! their number in each dimension is a power of two.
//!
//! **Cost.** One operation per input that a thread holds, and `log2(lanes)` shuffles per output.

use super::super::build::{flat_view, local, repeat};
use super::super::call::PrimitiveCall;
use super::super::context::Context;
use super::super::decline::Decline;
use super::super::elementwise::coordinate_of;
use super::super::emit::Emit;
use super::super::registers::{Held, over_threads};
use super::super::variant::{Emits, Explanation, Plan};
use super::{Accumulator, Reduces, Reduction, lanes};
use crate::arith::fold;
use crate::ir::{BinOp, ExecScope, Expr, Stmt};
use crate::layout::apply::binary;
use crate::layout::axes::{self, Level};
use crate::layout::{Iter, Layout, TileAlgebra, TileLayout};

pub(super) fn reachable(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<(), Decline> {
    let (dst, src) = call.moved()?;
    if [dst, src].iter().all(|r| r.buffer.scope().starts_with("shared")) {
        return Err(format!("{} and {} are in shared memory", dst.buffer.name, src.buffer.name).into());
    }
    for region in [dst, src] {
        let buffer = &region.buffer;
        let spread = buffer.layout.as_ref().is_some_and(|l| l.has_hardware_axis());
        if cx.scope == ExecScope::Thread {
            if spread {
                return Err(format!("{} is spread over threads", buffer.name).into());
            }
        } else if buffer.scope() != "local" {
            return Err(format!("{} is in {}, not in local memory", buffer.name, buffer.scope()).into());
        }
        if buffer.layout.is_none() {
            return Err(format!("{} has no layout", buffer.name).into());
        }
    }
    Ok(())
}

pub(super) fn plan(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    let reduction = Reduction::from_call(call)?;
    if cx.scope == ExecScope::Thread {
        reduction.check_size()?;
        return Ok(Box::new(Alone { reduction }));
    }
    together(reduction, call.option_flag("thread_reduce"), cx)
}

/// All inputs of an output into the register: the first, then the others.
fn gathered(acc: &Accumulator<'_>, inputs: i128, old: Option<Expr>, load: &dyn Fn(&Expr) -> Expr) -> Stmt {
    let plan = acc.plan;
    let (first, from) = match old {
        Some(old) => (old, 0),
        None if plan.op == Reduces::Sum && inputs == 0 => (plan.zero.clone(), 0),
        None => (plan.converted(load(&Expr::int32(0))), 1),
    };
    let mut all = vec![acc.set(first)];
    if inputs > from {
        all.push(repeat("r", inputs - from, plan.span, |turn| {
            acc.add(load(&fold::add(turn, Expr::int32(from as i32))))
        }));
    }
    Stmt::seq(all)
}

/// A thread by itself.
struct Alone {
    reduction: Reduction,
}

impl Emits for Alone {
    fn explain(&self) -> Explanation {
        Explanation::partition(self.reduction.outputs, 1, 1)
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        let plan = &self.reduction;
        let span = plan.span;
        let (register, allocate) = local("acc", 1, plan.dtype(), span);
        let acc = Accumulator {
            plan,
            buffer: &register,
        };
        out.push(allocate);
        out.push(repeat("s", plan.outputs, span, |output| {
            let place = coordinate_of(&output, &plan.dst);
            let old = Expr::load(&plan.dst.buffer, place.clone()).at(span);
            let load = |input: &Expr| Expr::load(&plan.src.buffer, plan.source(&output, input)).at(span);
            let gather = gathered(&acc, plan.inputs, plan.accumulates.then_some(old), &load);
            Stmt::seq([gather, Stmt::store(&plan.dst.buffer, place, acc.value(), span)])
        }));
    }
}

fn is_spread(iters: &[Iter]) -> bool {
    iters.iter().any(|i| Held::is_thread(i) && !i.extent.is_int(1))
}

/// Each thread reduces what it holds, then lanes exchange.
struct Together {
    reduction: Reduction,
    src: Held,
    dst: Held,
    /// A thread's iterators: the kept dimensions of both sides in one order, the reduced ones of the input.
    outer_src: Vec<Iter>,
    outer_dst: Vec<Iter>,
    inner: Vec<Iter>,
    /// The bits of the lane number over which lanes exchange.
    masks: Vec<i128>,
    outputs: i128,
    inputs: i128,
    threads: i128,
}

/// How many elements iterators count.
fn size(iters: &[Iter]) -> i128 {
    iters.iter().map(|i| i.extent.as_int().unwrap_or(1)).product()
}

fn together(reduction: Reduction, thread_reduce: bool, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    let (src, dst) = (
        Held::from_region(&reduction.src, cx)?,
        Held::from_region(&reduction.dst, cx)?,
    );
    let rank = reduction.src.ranges.len();
    // The dimension of the output that a dimension of the input becomes.
    let kept: Vec<usize> = (0..rank).filter(|d| !reduction.reduced[*d]).collect();
    let of_output: Vec<Option<usize>> = if reduction.dst.ranges.len() == rank {
        (0..rank).map(Some).collect()
    } else if reduction.dst.ranges.len() == kept.len() {
        (0..rank).map(|d| kept.iter().position(|k| *k == d)).collect()
    } else {
        return Err(
            "the output has other dimensions than the input, with or without the reduced ones".into(),
        );
    };
    // A thread's iterators: the kept dimensions of both sides in one order, the reduced ones of the input.
    let (mut outer_src, mut outer_dst, mut inner) = (Vec::new(), Vec::new(), Vec::new());
    let mut masks = Vec::new();
    for (dim, output_dim) in of_output.into_iter().enumerate() {
        let own = &src.layout.shard[src.starts[dim]..src.starts[dim + 1]];
        let output = match output_dim {
            Some(d) => &dst.layout.shard[dst.starts[d]..dst.starts[d + 1]],
            None => &[],
        };
        if reduction.reduced[dim] {
            inner.extend(own.iter().filter(|i| !Held::is_thread(i)).cloned());
            let kept_apart = is_spread(output);
            if kept_apart && over_threads(output) != over_threads(own) {
                return Err(format!(
                    "mismatch dst/src layout for reduction: dimension {dim} is spread otherwise"
                )
                .into());
            }
            let held: i128 = output
                .iter()
                .filter(|i| !Held::is_thread(i))
                .map(|i| i.extent.as_int().unwrap_or(0))
                .product();
            if held != 1 {
                return Err(format!(
                    "mismatch dst/src layout for reduction: dimension {dim} of the output is not reduced"
                )
                .into());
            }
            if is_spread(own) && (thread_reduce || !kept_apart) {
                masks.extend(
                    lanes_of(own).map_err(|why| format!("{why}{}", layout_that_works(&reduction, own)))?,
                );
            }
            continue;
        }
        let extents: Vec<Expr> = own.iter().map(|i| i.extent.clone()).collect();
        let mismatch =
            || format!("mismatch dst/src layout for reduction: dimension {dim} is held by other threads");
        let (output, starts) = TileLayout::from_shard(output.to_vec())
            .group(&extents)
            .ok_or_else(mismatch)?;
        for (iter, run) in own.iter().zip(starts.windows(2)) {
            let run = &output.shard[run[0]..run[1]];
            if Held::is_thread(iter) && !iter.extent.is_int(1) {
                if over_threads(run) != over_threads(std::slice::from_ref(iter)) {
                    return Err(mismatch().into());
                }
                continue;
            }
            if is_spread(run) {
                return Err(mismatch().into());
            }
            outer_src.push(iter.clone());
            outer_dst.extend(run.iter().filter(|i| !Held::is_thread(i)).cloned());
        }
    }
    masks.sort_unstable();
    if !masks.is_empty() {
        reduction.check_exchange()?;
    }
    Ok(Box::new(Together {
        src,
        dst,
        outputs: size(&outer_src),
        inputs: size(&inner),
        outer_src,
        outer_dst,
        inner,
        masks,
        threads: cx.thread_count()?,
        reduction,
    }))
}

impl Emits for Together {
    fn explain(&self) -> Explanation {
        let plan = Explanation::partition(self.outputs, self.threads, 1);
        match self.masks.len() {
            0 => plan,
            n => plan.line(format!("{n} shuffles per output")),
        }
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        let plan = &self.reduction;
        let span = plan.span;
        let (register, allocate) = local("acc", 1, plan.dtype(), span);
        let acc = Accumulator {
            plan,
            buffer: &register,
        };
        let (flat_src, declare_src) = flat_view(&plan.src.buffer, span);
        let (flat_dst, declare_dst) = flat_view(&plan.dst.buffer, span);
        let along = |iters: &[Iter], number: &Expr| {
            let total = Expr::int32(size(iters) as i32);
            Layout::Tile(TileLayout::from_shard(iters.to_vec()).into())
                .memory_offset(std::slice::from_ref(number), std::slice::from_ref(&total))
        };
        let sum = |a: Expr, b: Expr| binary(BinOp::Add, a, b);
        let body = repeat("s", self.outputs, span, |output| {
            let place = vec![sum(
                self.dst.layout.offset_in_memory(),
                along(&self.outer_dst, &output),
            )];
            let from = sum(
                self.src.layout.offset_in_memory(),
                along(&self.outer_src, &output),
            );
            let old = Expr::load(&flat_dst, place.clone()).at(span);
            let load = |input: &Expr| {
                Expr::load(&flat_src, vec![sum(from.clone(), along(&self.inner, input))]).at(span)
            };
            // The exchanged value excludes the output's old value, which every lane has.
            let exchanges = !self.masks.is_empty();
            let first = (plan.accumulates && !exchanges).then(|| old.clone());
            let mut all = vec![gathered(&acc, self.inputs, first, &load)];
            all.extend(acc.exchange(&self.masks, lanes(self.threads)));
            let value = match plan.accumulates && exchanges {
                true => plan.combined(old, acc.value()),
                false => acc.value(),
            };
            all.push(Stmt::store(&flat_dst, place, value, span));
            Stmt::seq(all)
        });
        for stmt in [allocate, declare_src, declare_dst, body] {
            out.push(stmt);
        }
    }
}

/// A layout of the input in which each thread holds all inputs of its outputs, as part of a message.
fn layout_that_works(reduction: &Reduction, spread: &[Iter]) -> String {
    let axis = spread
        .iter()
        .find(|i| Held::is_thread(i))
        .map(|i| &*i.axis.0)
        .or_else(|| axes::numbering(Level::Thread, Level::Warp).map(|row| row.name))
        .unwrap_or_default();
    let extents = reduction.src.const_extents().unwrap_or_default();
    let mut strides = vec![String::new(); extents.len()];
    let (mut threads, mut registers) = (1, 1);
    for (dim, extent) in extents.iter().enumerate().rev() {
        let (next, on) = match reduction.reduced[dim] {
            true => (&mut registers, String::new()),
            false => (&mut threads, format!("@{axis}")),
        };
        strides[dim] = format!("{next}{on}");
        *next *= *extent;
    }
    let extents: Vec<String> = extents.iter().map(ToString::to_string).collect();
    format!(
        "; each thread can reduce its own elements in TileLayout(S[({}) : ({})]), or both sides may be in shared memory",
        extents.join(", "),
        strides.join(", ")
    )
}

/// The bits of the lane number that iterators over lanes count.
fn lanes_of(iters: &[Iter]) -> Result<Vec<i128>, String> {
    let mut masks = Vec::new();
    for iter in iters.iter().filter(|i| Held::is_thread(i) && !i.extent.is_int(1)) {
        let axis = &iter.axis;
        let (Some(extent), Some(stride)) = (iter.extent.as_int(), iter.stride.as_int()) else {
            return Err("an extent or a stride over threads is not constant".to_string());
        };
        let counts_threads = axes::row(axis).and_then(|row| row.threads()) == Some(1);
        let within_a_warp = counts_threads && extent * stride <= 32;
        if !within_a_warp {
            return Err(format!(
                "a reduced dimension is spread over the axis {} beyond a warp",
                axis.0
            ));
        }
        if extent.count_ones() != 1 || stride.count_ones() != 1 {
            return Err(format!(
                "a reduced dimension is spread over {extent} lanes by {stride}, no powers of two"
            ));
        }
        masks.extend((0..extent.trailing_zeros()).map(|bit| stride << bit));
    }
    Ok(masks)
}
