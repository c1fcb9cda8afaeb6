//! Regions in the threads' own memory: which thread holds which elements.
//!
//! A layout with thread axes gives each element a thread and a place in that thread's memory. The region's elements in
//! row-major order are split over the layout's iterators; a digit of an iterator on a thread axis follows from the
//! calling thread's number on that axis, a digit of one on the memory axis is counted by a loop.

use super::context::Context;
use super::operands::sliced;
use crate::arith::fold;
use crate::ir::{BinOp, BufferRegion, ExecScope, Expr};
use crate::layout::axes::{self, AxisRow, Level};
use crate::layout::{Axis, Iter, TileAlgebra, TileLayout};

/// The distribution of a region over threads.
pub(super) struct Held {
    /// The region's layout, with a run of iterators for each of its dimensions.
    pub(super) layout: TileLayout,
    /// Where each run begins, and the end.
    pub(super) starts: Vec<usize>,
}

/// The axes that number threads, narrowest whole first.
fn thread_axes() -> impl Iterator<Item = (&'static AxisRow, Level, Level)> {
    let rows = axes::of_threads().filter_map(|(row, _)| row.levels().map(|(unit, whole)| (row, unit, whole)));
    let mut all: Vec<_> = rows.collect();
    all.sort_by_key(|(_, _, whole)| *whole);
    all.into_iter()
}

/// The level of the axes that a scope's threads are counted in.
fn level(scope: ExecScope) -> Level {
    match scope {
        ExecScope::Thread => Level::Thread,
        ExecScope::Warp => Level::Warp,
        ExecScope::Warpgroup => Level::Warpgroup,
        ExecScope::Cta => Level::Cta,
        ExecScope::Cluster => Level::Cluster,
    }
}

/// The axis that numbers the threads of a scope.
pub(super) fn axis_of(scope: ExecScope) -> Option<&'static AxisRow> {
    axes::numbering(Level::Thread, level(scope))
}

/// The calling thread's position on an axis.
fn index_on(axis: &Axis, cx: &Context<'_>) -> Option<Expr> {
    let index = cx.threads?.index.clone();
    let constant = |v: i128| Expr::constant(index.dtype, v);
    let row = axes::row(axis)?;
    let number = match row.threads()? {
        1 => index.clone(),
        threads => fold::floordiv(index.clone(), constant(threads)),
    };
    Some(match row.steps() {
        Some(steps) => fold::floormod(number, constant(steps)),
        None => number,
    })
}

/// The iterators over threads, in canonical form.
pub(super) fn over_threads(iters: &[Iter]) -> TileLayout {
    let threads = iters.iter().filter(|i| Held::is_thread(i)).cloned().collect();
    TileLayout::from_shard(threads).canonical(true)
}

impl Held {
    /// The distribution of a region in local memory.
    pub(super) fn from_region(region: &BufferRegion, cx: &mut Context<'_>) -> Result<Held, String> {
        let buffer = &region.buffer;
        let name = &buffer.name;
        let sliced = sliced(region, cx.facts)?;
        if sliced.swizzle().is_some() {
            return Err(format!("the layout of {name} is a swizzle"));
        }
        let sliced = sliced.tile();
        for iter in sliced.shard.iter().chain(&sliced.replica) {
            if iter.axis.is_memory() {
                continue;
            }
            let axis = &iter.axis.0;
            let Some((_, _, whole)) = thread_axes().find(|(row, ..)| row.is(&iter.axis)) else {
                return Err(format!("{name} has the axis {axis}, which numbers no threads"));
            };
            if whole > level(cx.scope) {
                return Err(format!(
                    "{name} is spread over the axis {axis} of a {}, which is wider than the scope {}",
                    whole.name(),
                    cx.scope.name()
                ));
            }
        }
        for (axis, offset) in &sliced.offset {
            if !axis.is_memory() && !offset.is_int(0) {
                return Err(format!(
                    "the region of {name} begins in the middle of the axis {}",
                    axis.0
                ));
            }
        }
        let (layout, starts) = sliced
            .group(&region.extents())
            .ok_or_else(|| format!("the layout of {name} does not split along the region"))?;
        if layout.const_size().is_none() {
            return Err(format!("the extents of {name} are not constant"));
        }
        Ok(Held { layout, starts })
    }

    /// Whether an iterator runs over threads.
    pub(super) fn is_thread(iter: &Iter) -> bool {
        !iter.axis.is_memory()
    }

    /// The calling thread's digit of an iterator on a thread axis.
    pub(super) fn digit(iter: &Iter, cx: &Context<'_>) -> Result<Expr, String> {
        let unknown = || format!("the thread's number on the axis {} is not known", iter.axis.0);
        let index = index_on(&iter.axis, cx).ok_or_else(unknown)?;
        let stride = iter
            .stride
            .as_int()
            .ok_or("a stride over threads is not constant")?;
        let extent = iter
            .extent
            .as_int()
            .ok_or("an extent over threads is not constant")?;
        let constant = |v: i128| Expr::constant(index.dtype, v);
        let number = fold::floordiv(index.clone(), constant(stride));
        Ok(fold::floormod(number, constant(extent)))
    }

    /// The condition under which the calling thread holds a part; `None` where every thread of the launch does. The
    /// digits on each axis must recombine to the thread's position; other threads hold nothing.
    pub(super) fn holds(&self, cx: &Context<'_>) -> Result<Option<Expr>, String> {
        let threads = cx.threads.and_then(|t| t.count);
        let mut all: Option<Expr> = None;
        for (row, unit, _) in thread_axes() {
            let name = row.name;
            let on = |i: &&Iter| row.is(&i.axis) && !i.extent.is_int(1);
            let mut iters: Vec<&Iter> = self.layout.shard.iter().filter(on).collect();
            let spread = self.layout.shard.iter().any(|i| row.is(&i.axis));
            if !spread {
                continue;
            }
            let whole = row.steps().or_else(|| {
                // The last warp of a block may be a part of one; a warpgroup is whole.
                let (threads, one) = (threads?, unit.threads()?);
                let started = if unit == Level::Warp { one - 1 } else { 0 };
                Some((threads + started) / one)
            });
            // Iterators each of which continues the previous one count from zero without a gap.
            iters.sort_by_key(|i| i.stride.as_int());
            let mut counted = Some(1);
            for iter in &iters {
                let next = iter
                    .extent
                    .as_int()
                    .ok_or("an extent over threads is not constant")?;
                counted = counted.filter(|n| iter.stride.is_int(*n)).map(|n| n * next);
            }
            if counted.is_some() && counted == whole {
                continue;
            }
            let axis = Axis(name.into());
            let index = index_on(&axis, cx)
                .ok_or_else(|| format!("the thread's number on the axis {name} is not known"))?;
            let condition = match counted {
                Some(count) => Expr::binary(BinOp::Lt, index.clone(), Expr::constant(index.dtype, count)),
                None => {
                    let mut again = Expr::constant(index.dtype, 0);
                    for iter in iters {
                        let digit = Held::digit(iter, cx)?;
                        let stride = iter
                            .stride
                            .as_int()
                            .ok_or("a stride over threads is not constant")?;
                        let place = fold::mul(digit, Expr::constant(index.dtype, stride));
                        again = fold::add(again, place);
                    }
                    Expr::binary(BinOp::Eq, index, again)
                }
            };
            all = Some(match all {
                None => condition,
                Some(before) => Expr::binary(BinOp::And, before, condition),
            });
        }
        Ok(all.map(|condition| condition.at(cx.span)))
    }

    /// Positions of the iterators on the memory axis in the order of falling strides.
    pub(super) fn memory_order(&self) -> Vec<usize> {
        let shard = &self.layout.shard;
        let mut order: Vec<usize> = (0..shard.len())
            .filter(|i| !Held::is_thread(&shard[*i]) && !shard[*i].extent.is_int(1))
            .collect();
        order.sort_by_key(|i| -shard[*i].stride.as_int().unwrap_or(0));
        order
    }

    /// Whether all threads of the scope hold a part, its own or a copy of what others hold: the iterators over threads
    /// and over copies enumerate the scope's axis without gap or overlap.
    pub(super) fn covers_scope(&self, cx: &Context<'_>) -> Result<(), String> {
        let Some(row) = axis_of(cx.scope) else {
            return Ok(());
        };
        let axis = row.name;
        let scope = cx.scope.name();
        let count = cx.thread_count()?;
        let canonical = self.layout.canonical(true);
        let all = canonical.shard.iter().chain(&canonical.replica);
        let mut iters: Vec<&Iter> = all
            .filter(|i| Held::is_thread(i) && !i.extent.is_int(1))
            .collect();
        if iters.is_empty() {
            return Err(format!(
                "{scope}-scope op needs an operand whose layout carries thread axes ({axis} composing to {count}:1); \
                 got a thread-local view"
            ));
        }
        if let Some(other) = iters.iter().find(|i| !row.is(&i.axis)) {
            return Err(format!(
                "a {scope}-level layout must use only {axis}, found {}",
                other.axis.0
            ));
        }
        iters.sort_by_key(|i| i.stride.as_int());
        let mut running = 1;
        for iter in iters {
            if !iter.stride.is_int(running) {
                return Err(format!("the thread axes do not tile a complete {count}:1"));
            }
            running *= iter.extent.as_int().unwrap_or(0);
        }
        if running != count {
            return Err(format!(
                "the thread axes span {running} threads, not the full {count} of the {scope}"
            ));
        }
        Ok(())
    }
}
