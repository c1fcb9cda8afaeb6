//! Elementwise → `reg`, `reg_packed`: all regions in the threads' own memory.
//!
//! **Idea.** The output's layout says which thread holds which elements. Every input's layout is brought into the same
//! order; each thread then computes the elements that it holds, in a loop over its own memory. If several threads hold
//! copies of an input (`R[32 : 1 @ laneid]`), each reads its own copy; if they hold copies of the output, each computes
//! its own.
//!
//! **Conditions.** All threads of the scope active; every region local with a layout; at a scope of more than one thread
//! all of them hold a part of the output or a copy; each thread holds the inputs of its elements: threads that hold
//! different parts of the output hold the same parts of the input, or copies of one part.
//!
//! `reg_packed` takes neighbouring pairs of float32, each at an even place.
//!
//! **Cost.** One operation per element, or with `reg_packed` one per pair; no barrier.

use super::super::build::{address, flat_view, repeat};
use super::super::call::{Operand, PrimitiveCall};
use super::super::context::Context;
use super::super::decline::Decline;
use super::super::digits::split;
use super::super::emit::Emit;
use super::super::multiples::is_multiple;
use super::super::operands::sliced_tile;
use super::super::predicates::all_in;
use super::super::registers::{Held, over_threads};
use super::super::variant::{Emits, Explanation, Plan, Predicate};
use super::Elementwise;
use crate::arith::fold;
use crate::intrin::Op;
use crate::ir::{Buffer, BufferRegion, Expr, Stmt};
use crate::layout::{Axis, Iter, Layout, TileAlgebra, TileLayout};

pub(super) const ALL_LOCAL: Predicate = Predicate {
    name: "every region in local memory",
    holds: |call, _| {
        let plan = Elementwise::from_call(call)?;
        all_in("local", plan.regions())
    },
};

/// An input's layout over the output's elements: broadcast dimensions keep their position.
fn lifted(region: &BufferRegion, dst: &BufferRegion, cx: &mut Context<'_>) -> Result<TileLayout, Decline> {
    let name = &region.buffer.name;
    let (grouped, starts) = sliced_tile(region, cx.facts)?
        .tile()
        .group(&region.extents())
        .ok_or_else(|| format!("the layout of {name} does not split along the region"))?;
    let still = |extent: &Expr| Iter {
        extent: extent.clone(),
        stride: Expr::int32(0),
        axis: Axis::memory(),
    };
    let pad = dst.ranges.len() - region.ranges.len();
    let mut shard: Vec<Iter> = dst.ranges[..pad].iter().map(|(_, e)| still(e)).collect();
    for (dim, (_, extent)) in region.ranges.iter().enumerate() {
        let out = &dst.ranges[pad + dim].1;
        if extent.as_int() == out.as_int() {
            shard.extend_from_slice(&grouped.shard[starts[dim]..starts[dim + 1]]);
        } else {
            shard.push(still(out));
        }
    }
    Ok(TileLayout { shard, ..grouped })
}

/// What a thread holds of a region, in the order in which it visits the elements.
struct Own {
    buffer: Buffer,
    layout: Layout,
}

impl Own {
    fn new(buffer: &Buffer, iters: Vec<Iter>, offset: Expr) -> Own {
        let layout = TileLayout::from_shard(iters).shifted(&Axis::memory(), &offset);
        Own {
            buffer: buffer.clone(),
            layout: Layout::Tile(layout.into()),
        }
    }
}

/// Each thread's elements.
struct Elements {
    call: Elementwise,
    held: Held,
    /// Positions of the output's iterators on the memory axis, outermost first.
    order: Vec<usize>,
    digits: Vec<Option<Expr>>,
    dst: Own,
    /// For each source that is a region.
    inputs: Vec<Option<Own>>,
    total: i128,
    threads: i128,
    /// Whether one instruction computes two elements.
    pairs: bool,
}

pub(super) fn plan(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    Ok(Box::new(elements(call, cx)?))
}

/// Two elements at a time.
pub(super) fn plan_packed(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    let own = elements(call, cx)?;
    if !own.call.has_pairs() {
        return Err("not every operand is float32".into());
    }
    if !pairs(own.dst.layout.tile(), cx) {
        return Err("a thread's elements are no adjacent pairs at even places".into());
    }
    Ok(Box::new(Elements { pairs: true, ..own }))
}

/// What a thread holds of an input, in the order of the output's elements. `layout` is the input's over these elements.
fn own_input(
    region: &BufferRegion,
    layout: &TileLayout,
    held: &Held,
    order: &[usize],
    digits: &[Option<Expr>],
) -> Result<Own, Decline> {
    let name = &region.buffer.name;
    let shard = &held.layout.shard;
    let extents: Vec<Expr> = shard.iter().map(|i| i.extent.clone()).collect();
    let (grouped, starts) = layout
        .group(&extents)
        .ok_or_else(|| format!("the layouts of {name} and of the output have no common iterators"))?;
    let run = |i: usize| &grouped.shard[starts[i]..starts[i + 1]];
    let elsewhere = || {
        Decline::from(format!(
            "{name} has its elements in other threads than the output"
        ))
    };
    // Threads that hold different parts of the output hold either the corresponding parts of the input, or all of the
    // input's elements along the iterator. For the latter, and for copies of the output, the input needs copies.
    let (mut apart, mut parts, mut copies) = (Vec::new(), Vec::new(), held.layout.replica.clone());
    let mut offset = grouped.offset_in_memory();
    for (i, digit) in digits.iter().enumerate() {
        let Some(digit) = digit else { continue };
        let (over, within): (Vec<Iter>, Vec<Iter>) = run(i)
            .iter()
            .filter(|iter| !iter.extent.is_int(1))
            .cloned()
            .partition(Held::is_thread);
        match (over.is_empty(), within.is_empty()) {
            (false, true) => {
                apart.push(shard[i].clone());
                parts.extend(over);
            }
            (false, false) => return Err(elsewhere()),
            (true, _) => {
                copies.push(shard[i].clone());
                let along = Layout::Tile(TileLayout::from_shard(within).into());
                let place = along.memory_offset(std::slice::from_ref(digit), &extents[i..=i]);
                offset = fold::add(offset, place);
            }
        }
    }
    let mine: Vec<Iter> = order.iter().flat_map(|i| run(*i).to_vec()).collect();
    if over_threads(&parts) != over_threads(&apart) || mine.iter().any(Held::is_thread) {
        return Err(elsewhere());
    }
    if sorted(&copies) != sorted(&grouped.replica) {
        if parts.is_empty() && grouped.replica.is_empty() {
            let copies: Vec<String> = sorted(&copies)
                .iter()
                .map(|i| {
                    let number = |e: &Expr| e.as_int().map_or_else(|| "…".to_string(), |n| n.to_string());
                    format!("R[{} : {} @ {}]", number(&i.extent), number(&i.stride), i.axis.0)
                })
                .collect();
            return Err(format!(
                "the layout of {name} does not say that all threads hold {name}; add {} to its layout",
                copies.join(" + ")
            )
            .into());
        }
        return Err(elsewhere());
    }
    Ok(Own::new(&region.buffer, mine, offset))
}

/// Iterators over threads, in canonical form without their order.
fn sorted(iters: &[Iter]) -> Vec<Iter> {
    let by_stride =
        |iters: &mut Vec<Iter>| iters.sort_by_key(|i| (i.axis.0.clone(), -i.stride.as_int().unwrap_or(0)));
    let mut iters: Vec<Iter> = iters.iter().filter(|i| Held::is_thread(i)).cloned().collect();
    by_stride(&mut iters);
    let mut whole = over_threads(&iters).shard;
    whole.retain(|i| !i.extent.is_int(1));
    by_stride(&mut whole);
    whole
}

fn elements(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<Elements, Decline> {
    let call = Elementwise::from_call(call)?;
    let held = Held::from_region(&call.dst, cx)?;
    held.covers_scope(cx)?;
    let order = held.memory_order();
    let digits: Vec<Option<Expr>> = held
        .layout
        .shard
        .iter()
        .map(|i| Held::is_thread(i).then(|| Held::digit(i, cx)).transpose())
        .collect::<Result<_, _>>()?;
    let dst = Own::new(
        &call.dst.buffer,
        order.iter().map(|i| held.layout.shard[*i].clone()).collect(),
        held.layout.offset_in_memory(),
    );
    let mut inputs = Vec::new();
    for source in &call.sources {
        let Operand::Region(region) = source else {
            inputs.push(None);
            continue;
        };
        let layout = lifted(region, &call.dst, cx)?;
        let name = &region.buffer.name;
        for (axis, offset) in &layout.offset {
            if !axis.is_memory() && !offset.is_int(0) {
                return Err(
                    format!("the region of {name} begins in the middle of the axis {}", axis.0).into(),
                );
            }
        }
        inputs.push(Some(own_input(region, &layout, &held, &order, &digits)?));
    }
    Ok(Elements {
        total: order
            .iter()
            .map(|i| held.layout.shard[*i].extent.as_int().unwrap_or(1))
            .product(),
        threads: cx.thread_count()?,
        pairs: false,
        call,
        held,
        order,
        digits,
        dst,
        inputs,
    })
}

impl Emits for Elements {
    fn explain(&self) -> Explanation {
        let plan = Explanation::partition(self.total, self.threads, 1);
        match self.pairs {
            true => plan.line("two elements per instruction"),
            false => plan,
        }
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        let span = out.span();
        let call = &self.call;
        let mut flat = |own: &Own| {
            let (flat, declare) = flat_view(&own.buffer, span);
            out.push(declare);
            flat
        };
        let dst = flat(&self.dst);
        let inputs: Vec<Option<Buffer>> = self
            .inputs
            .iter()
            .map(|own| own.as_ref().map(&mut flat))
            .collect();
        let shape = [Expr::int32(self.total as i32)];
        let place = |own: &Own, f: &Expr| vec![own.layout.memory_offset(std::slice::from_ref(f), &shape)];
        let values_at = |f: &Expr| -> Vec<Expr> {
            let own = call.sources.iter().zip(self.inputs.iter().zip(&inputs));
            own.map(|(source, own)| match (source, own) {
                (Operand::Scalar(e), _) => e.clone(),
                (_, (Some(own), Some(flat))) => Expr::load(flat, place(own, f)).at(span),
                (Operand::Region(region), _) => Expr::load(&region.buffer, region.starts()).at(span),
            })
            .collect()
        };
        let instruction = |f: &Expr, values: Vec<Expr>, pair: bool| {
            let to = address(&dst, place(&self.dst, f), span);
            call.instruction(to, values, pair, span)
        };
        if self.pairs {
            out.push(repeat("f", self.total / 2, span, |f| {
                let first = fold::mul(f, Expr::int32(2));
                let second = fold::add(first.clone(), Expr::int32(1));
                let both = values_at(&first).into_iter().zip(values_at(&second));
                let packed = both.map(|(a, b)| {
                    let pair = Op::CudaMakeFloat2.call().set("x", a).set("y", b);
                    pair.at(span).build()
                });
                // `has_pairs` has checked that the instruction exists.
                instruction(&first, packed.collect(), true).unwrap_or_else(Stmt::nop)
            }));
            return;
        }
        out.push(repeat("f", self.total, span, |f| {
            let values = values_at(&f);
            if call.rounding.is_some()
                && let Some(rounded) = instruction(&f, values.clone(), false)
            {
                return rounded;
            }
            let coordinate = coordinate(&self.held, &self.order, &self.digits, &f);
            let value = call.value_of(&values, &coordinate);
            Stmt::store(&dst, place(&self.dst, &f), value, span)
        }));
    }
}

/// Whether a thread's elements form adjacent pairs, each at an even offset.
fn pairs(own: &TileLayout, cx: &mut Context<'_>) -> bool {
    let Some((last, outer)) = own.shard.split_last() else {
        return false;
    };
    let mut even = |e: &Expr| is_multiple(e, 2, cx.facts);
    last.stride.is_int(1)
        && last.extent.as_int().is_some_and(|e| e % 2 == 0)
        && outer.iter().all(|i| even(&i.stride))
        && even(&own.offset_in_memory())
}

/// The coordinate in the region of the calling thread's element `f`.
fn coordinate(held: &Held, order: &[usize], digits: &[Option<Expr>], f: &Expr) -> Vec<Expr> {
    let shard = &held.layout.shard;
    let mut of_iter: Vec<Expr> = digits
        .iter()
        .map(|d| d.clone().unwrap_or_else(|| Expr::int32(0)))
        .collect();
    let extents: Vec<i128> = order
        .iter()
        .map(|i| shard[*i].extent.as_int().unwrap_or(1))
        .collect();
    for (i, digit) in order.iter().zip(split(f, &extents)) {
        of_iter[*i] = digit;
    }
    let dims = held.starts.windows(2);
    dims.map(|run| {
        (run[0]..run[1]).fold(Expr::int32(0), |sum, i| {
            let extent = Expr::int32(shard[i].extent.as_int().unwrap_or(1) as i32);
            fold::add(fold::mul(sum, extent), of_iter[i].clone())
        })
    })
    .collect()
}
