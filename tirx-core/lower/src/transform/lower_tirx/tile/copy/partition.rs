//! The partition of a copy where neither side determines it: which thread moves which elements, in which vectors.
//!
//! Both layouts are brought into one order, that of falling strides on the far side (global memory, where one side is
//! there), so that neighbouring threads touch neighbouring bytes of it. The order is then cut into
//! `[rounds, threads, vector]`: the widest vector of which every piece is contiguous on both sides, aligned on both sides,
//! and within a chunk of a swizzle.

use super::super::context::Context;
use super::super::digits::split;
use super::super::multiples::is_multiple;
use super::super::operands::{bits, in_memory};
use super::super::swizzle::{Step, swizzled};
use crate::ir::{BufferRegion, Expr};
use crate::layout::{Axis, Iter, Layout, Swizzle, TileAlgebra, TileLayout};

/// See the [module](self).
pub(in super::super) struct Partition {
    /// The far side: elements in the partition's order.
    far: Side,
    /// The near side in the same order.
    near: Side,
    /// Iterations of the loop.
    pub(in super::super) rounds: i128,
    /// Threads.
    pub(in super::super) threads: i128,
    /// Elements per vector.
    pub(in super::super) vector: i128,
}

/// A side of a copy.
struct Side {
    /// Its layout, before its swizzle.
    layout: TileLayout,
    swizzle: Option<Swizzle>,
}

impl Partition {
    /// The offset of the vector of thread `thread` in round `round` on the far side, in elements.
    pub(in super::super) fn far_at(&self, round: &Expr, thread: &Expr, cx: &mut Context<'_>) -> Expr {
        self.place(&self.far, round, thread, cx)
    }

    /// The same on the near side.
    pub(in super::super) fn near_at(&self, round: &Expr, thread: &Expr, cx: &mut Context<'_>) -> Expr {
        self.place(&self.near, round, thread, cx)
    }

    fn place(&self, side: &Side, round: &Expr, thread: &Expr, cx: &mut Context<'_>) -> Expr {
        let layout = &side.layout;
        let Some(swizzle) = side.swizzle else {
            return self.at(layout, round, thread);
        };
        // Iterators over rounds, then those over threads.
        let mut outer = 0;
        let mut covered = 1;
        while covered < self.rounds && outer < layout.shard.len() {
            covered *= layout.shard[outer].extent.as_int().unwrap_or(0);
            outer += 1;
        }
        if covered != self.rounds {
            return swizzle.apply(&cx.facts.simplify(&self.at(layout, round, thread)));
        }
        let (rounds, threads) = layout.shard.split_at(outer);
        let extents: Vec<i128> = rounds.iter().map(|i| i.extent.as_int().unwrap_or(1)).collect();
        let step = |(iter, digit): (&Iter, Expr)| Step {
            digit,
            stride: iter.stride.clone(),
        };
        let steps: Vec<Step> = (rounds.iter().zip(split(round, &extents)).rev())
            .map(step)
            .collect();
        let own = TileLayout::from_shard(threads.to_vec());
        let end = own
            .shard
            .iter()
            .map(|i| Some((i.extent.as_int()? - 1) * i.stride.as_int()?));
        let end = end.sum::<Option<i128>>().map(|last| last + 1);
        let fixed = layout.offset_in_memory();
        let shape = [self.threads, self.vector].map(|e| Expr::int32(e as i32));
        let base = Layout::Tile(own.into()).memory_offset(&[thread.clone(), Expr::int32(0)], &shape);
        swizzled(swizzle, &base, end, &fixed, &steps, cx)
    }

    fn at(&self, layout: &TileLayout, round: &Expr, thread: &Expr) -> Expr {
        let shape = [self.rounds, self.threads, self.vector].map(|e| Expr::int32(e as i32));
        let coordinate = [round.clone(), thread.clone(), Expr::int32(0)];
        Layout::Tile(layout.clone().into()).memory_offset(&coordinate, &shape)
    }
}

/// The widths that one instruction moves, in bits.
pub(in super::super) const WIDTHS: [i128; 5] = [128, 64, 32, 16, 8];

/// The partition of a copy between `far` and `near`, whose regions have the same elements.
pub(in super::super) fn partition(
    far: &BufferRegion,
    near: &BufferRegion,
    threads: i128,
    widths: &[i128],
    cx: &mut Context<'_>,
) -> Result<Partition, String> {
    let bits = bits(far.buffer.dtype);
    let (g, s) = (in_memory(far, cx.facts)?, in_memory(near, cx.facts)?);
    let (far_swizzle, near_swizzle) = (g.swizzle(), s.swizzle());
    let (g, s) = in_one_order(g.tile().clone(), s.tile().clone())?;
    let total = g.const_size().ok_or("region extents are not constant")?;
    if total % threads != 0 {
        return Err(format!(
            "region size {total} not divisible by thread_cnt={threads}"
        ));
    }
    let base = [far, near].map(|r| r.buffer.elem_offset.clone());
    let align = far.buffer.align.min(near.buffer.align) as i128 * 8;
    for width in widths {
        let vector = width / bits;
        if vector * bits != *width || *width > align {
            continue;
        }
        let swizzles = [far_swizzle, near_swizzle];
        if swizzles.iter().flatten().any(|s| vector > 1 << s.per_element) {
            continue;
        }
        if let Some((g, s)) = cut(&g, &s, threads, vector)
            && aligned(&g, &s, base.iter().flatten(), vector, cx)
        {
            return Ok(Partition {
                rounds: total / (threads * vector),
                far: Side {
                    layout: g,
                    swizzle: far_swizzle,
                },
                near: Side {
                    layout: s,
                    swizzle: near_swizzle,
                },
                threads,
                vector,
            });
        }
    }
    if !widths.iter().any(|w| *w <= bits) {
        return Err("no vector of a width that the instruction takes is contiguous and aligned".to_string());
    }
    Ok(Partition {
        rounds: total / threads,
        far: Side {
            layout: g,
            swizzle: far_swizzle,
        },
        near: Side {
            layout: s,
            swizzle: near_swizzle,
        },
        threads,
        vector: 1,
    })
}

/// Both sides in the order of falling strides of the first.
fn in_one_order(g: TileLayout, s: TileLayout) -> Result<(TileLayout, TileLayout), String> {
    let extents: Vec<Expr> = g.shard.iter().map(|i| i.extent.clone()).collect();
    let strides: Option<Vec<i128>> = g.shard.iter().map(|i| i.stride.as_int()).collect();
    let mut order: Vec<usize> = (0..g.shard.len()).collect();
    // Strides that are not known at compile time are assumed to be those of a row-major tensor.
    if let Some(strides) = strides {
        order.sort_by_key(|i| -strides[*i]);
    }
    if let Some((s, starts)) = s.group(&extents) {
        let s = s.permuted_groups(&starts, &order).canonical(false);
        return Ok((g.permuted(&order).canonical(false), s));
    }
    // The near side's iterators may be coarser.
    let extents: Vec<Expr> = s.shard.iter().map(|i| i.extent.clone()).collect();
    match g.group(&extents) {
        Some((g, _)) => Ok((g, s)),
        None => Err("the two layouts have no common iterators".to_string()),
    }
}

/// Both sides with iterators for vectors and threads; `None` where vectors are not contiguous or extents do not divide.
fn cut(g: &TileLayout, s: &TileLayout, threads: i128, vector: i128) -> Option<(TileLayout, TileLayout)> {
    let mut iters = if vector == 1 {
        let mut all = g.shard.clone();
        all.push(Iter {
            axis: Axis::memory(),
            ..Iter::memory(1, 1)
        });
        all
    } else {
        crate::layout::carved(&g.shard, vector)?
    };
    let last = iters.pop()?;
    if vector > 1 && !(last.stride.is_int(1) && last.extent.is_int(vector)) {
        return None;
    }
    let mut iters = crate::layout::carved(&iters, threads)?;
    iters.push(last);
    let g = TileLayout {
        shard: iters,
        ..g.clone()
    };
    let extents: Vec<Expr> = g.shard.iter().map(|i| i.extent.clone()).collect();
    let (s, _) = s.group(&extents)?;
    (s.contiguous_run() % vector == 0 || vector == 1).then_some((g, s))
}

/// Whether each vector is aligned to its length.
fn aligned<'a>(
    g: &TileLayout,
    s: &TileLayout,
    base: impl Iterator<Item = &'a Expr>,
    vector: i128,
    cx: &mut Context<'_>,
) -> bool {
    if vector == 1 {
        return true;
    }
    // The innermost iterators make the vector itself.
    let outside = |layout: &TileLayout| -> Vec<Expr> {
        let mut left = vector;
        let mut terms = Vec::new();
        for iter in layout.shard.iter().rev() {
            match iter.extent.as_int() {
                Some(extent) if left > 1 => left /= extent.max(1),
                _ if iter.extent.is_int(1) => {}
                _ => terms.push(iter.stride.clone()),
            }
        }
        terms.extend(layout.offset.iter().map(|(_, e)| e.clone()));
        terms
    };
    let mut terms = outside(g);
    terms.extend(outside(s));
    terms.extend(base.cloned());
    terms.iter().all(|term| is_multiple(term, vector, cx.facts))
}
