//! Composition of layouts: repeating one at the places of another, adding the places of two, and recovering either
//! operand.
//!
//! Both compositions interleave dimensions: an *outer* layout over `(o0, o1, …)` and an *inner* one over `(i0, i1, …)`
//! make one over `(o0 * i0, o1 * i1, …)`. A *tiling* counts the outer places in spans of the inner layout, a *direct
//! sum* adds places as they are. An operation that recovers an operand composes its result again and compares, so that
//! the result is right by construction.

use std::sync::Arc;

use tirx_ir::layout::apply::binary;
use tirx_ir::layout::{Axis, Iter, Layout, TileLayout};
use tirx_ir::{BinOp, Expr};

use crate::algebra::{LayoutAlgebra, TileAlgebra, add, mul, split_along};

/// Two layouts as one, and one as two.
pub trait Composition: Sized {
    /// The layout with a copy of this one at each place of `outer`, dimension by dimension; the strides of `outer`
    /// count spans of this layout.
    fn tiled_by(&self, outer: &TileLayout, outer_shape: &[Expr], inner_shape: &[Expr]) -> Option<TileLayout>;

    /// Dimension by dimension, `left` outside of this layout: places are added.
    fn direct_sum(&self, left: &TileLayout, left_shape: &[Expr], right_shape: &[Expr]) -> Option<TileLayout>;

    /// The left part of a direct sum of which this layout is the right one.
    fn left_of_sum(&self, sum: &TileLayout, left_shape: &[Expr], right_shape: &[Expr]) -> Option<TileLayout>;

    /// The right part of a direct sum of which this layout is the left one.
    fn right_of_sum(&self, sum: &TileLayout, left_shape: &[Expr], right_shape: &[Expr])
    -> Option<TileLayout>;

    /// The layout of the places of this layout's copies in `tiled`, if that is a tiling of this one.
    fn outer_of(&self, tiled: &TileLayout, outer_shape: &[Expr], inner_shape: &[Expr]) -> Option<TileLayout>;

    /// The layout whose copies form `tiled` at the places of this one, if there is one.
    fn inner_of(&self, tiled: &TileLayout, outer_shape: &[Expr], inner_shape: &[Expr]) -> Option<TileLayout>;
}

impl Composition for TileLayout {
    fn tiled_by(&self, outer: &TileLayout, outer_shape: &[Expr], inner_shape: &[Expr]) -> Option<TileLayout> {
        self.direct_sum(&scaled(outer, |axis| span(self, axis)), outer_shape, inner_shape)
    }

    fn direct_sum(&self, left: &TileLayout, left_shape: &[Expr], right_shape: &[Expr]) -> Option<TileLayout> {
        if left_shape.len() != right_shape.len() {
            return None;
        }
        let (outer, outer_starts) = split_along(left, left_shape)?;
        let (inner, inner_starts) = split_along(self, right_shape)?;
        let mut sum = TileLayout {
            shard: Vec::new(),
            ..inner.clone()
        };
        for dim in 0..left_shape.len() {
            sum.shard
                .extend_from_slice(&outer.shard[outer_starts[dim]..outer_starts[dim + 1]]);
            sum.shard
                .extend_from_slice(&inner.shard[inner_starts[dim]..inner_starts[dim + 1]]);
        }
        sum.replica = left.replica.iter().chain(&self.replica).cloned().collect();
        for (axis, offset) in &left.offset {
            sum = sum.shifted(axis, offset);
        }
        Some(sum)
    }

    fn left_of_sum(&self, sum: &TileLayout, left_shape: &[Expr], right_shape: &[Expr]) -> Option<TileLayout> {
        left_as_written(self, sum, left_shape, right_shape).or_else(|| {
            let (right, sum) = (self.canonical(true), sum.canonical(true));
            left_as_written(&right, &sum, left_shape, right_shape)
        })
    }

    fn right_of_sum(
        &self,
        sum: &TileLayout,
        left_shape: &[Expr],
        right_shape: &[Expr],
    ) -> Option<TileLayout> {
        right_as_written(self, sum, left_shape, right_shape).or_else(|| {
            let (left, sum) = (self.canonical(true), sum.canonical(true));
            right_as_written(&left, &sum, left_shape, right_shape)
        })
    }

    fn outer_of(&self, tiled: &TileLayout, outer_shape: &[Expr], inner_shape: &[Expr]) -> Option<TileLayout> {
        let left = left_as_written(self, tiled, outer_shape, inner_shape)?;
        unscaled(&left, |axis| span(self, axis))
    }

    fn inner_of(&self, tiled: &TileLayout, outer_shape: &[Expr], inner_shape: &[Expr]) -> Option<TileLayout> {
        let (_, inner) = interleaved(tiled, outer_shape, inner_shape)?;
        let part = TileLayout {
            shard: inner,
            replica: tiled.replica.get(self.replica.len()..)?.to_vec(),
            offset: Vec::new(),
        };
        // Spans count the inner layout's offset, which is what is left of the whole one.
        let mut offset = offset_between(tiled, &scaled(self, |axis| span(&part, axis)));
        for (axis, by) in &mut offset {
            let own = self.offset_of(&axis.0);
            if !own.is_int(0) {
                let divisor = add(&own, &Expr::int32(1));
                *by = binary(BinOp::FloorDiv, by.clone(), divisor);
            }
        }
        let candidate = TileLayout { offset, ..part };
        let again = candidate.tiled_by(self, outer_shape, inner_shape)?;
        is_same(&again, tiled).then_some(candidate)
    }
}

/// The left part of a sum, with the axes of both layouts as they are written. A sum may have the axes of its threads as one where
/// `right` has several: then neither is found.
fn left_as_written(
    right: &TileLayout,
    sum: &TileLayout,
    left_shape: &[Expr],
    right_shape: &[Expr],
) -> Option<TileLayout> {
    let (outer, _) = interleaved(sum, left_shape, right_shape)?;
    let replicas = sum.replica.len().checked_sub(right.replica.len())?;
    let left = TileLayout {
        shard: outer,
        replica: sum.replica[..replicas].to_vec(),
        offset: offset_between(sum, right),
    };
    let again = right.direct_sum(&left, left_shape, right_shape)?;
    is_same(&again, sum).then_some(left)
}

/// The right part of a sum, in the same way.
fn right_as_written(
    left: &TileLayout,
    sum: &TileLayout,
    left_shape: &[Expr],
    right_shape: &[Expr],
) -> Option<TileLayout> {
    let (_, inner) = interleaved(sum, left_shape, right_shape)?;
    let right = TileLayout {
        shard: inner,
        replica: sum.replica.get(left.replica.len()..)?.to_vec(),
        offset: offset_between(sum, left),
    };
    let again = right.direct_sum(left, left_shape, right_shape)?;
    is_same(&again, sum).then_some(right)
}

/// Places on each axis scaled by the factor that `by` gives for it.
fn scaled(layout: &TileLayout, by: impl Fn(&Axis) -> Expr) -> TileLayout {
    let scale = |i: &Iter| Iter {
        stride: mul(&i.stride, &by(&i.axis)),
        ..i.clone()
    };
    TileLayout {
        shard: layout.shard.iter().map(scale).collect(),
        replica: layout.replica.iter().map(scale).collect(),
        offset: layout
            .offset
            .iter()
            .map(|(axis, e)| (axis.clone(), mul(e, &by(axis))))
            .collect(),
    }
}

/// The reverse of [`scaled`]; `None` where a place is not a multiple.
fn unscaled(layout: &TileLayout, by: impl Fn(&Axis) -> Expr) -> Option<TileLayout> {
    let part = |e: &Expr, axis: &Axis| -> Option<Expr> {
        let by = by(axis);
        match (e.as_int(), by.as_int()) {
            (Some(e), Some(by)) if by != 0 && e % by != 0 => None,
            _ => Some(binary(BinOp::FloorDiv, e.clone(), by)),
        }
    };
    let iters = |list: &[Iter]| -> Option<Vec<Iter>> {
        let scale = |i: &Iter| {
            // An iterator of extent one: its stride has no effect.
            let stride = if i.extent.is_int(1) {
                i.stride.clone()
            } else {
                part(&i.stride, &i.axis)?
            };
            Some(Iter { stride, ..i.clone() })
        };
        list.iter().map(scale).collect()
    };
    Some(TileLayout {
        shard: iters(&layout.shard)?,
        replica: iters(&layout.replica)?,
        offset: layout
            .offset
            .iter()
            .map(|(axis, e)| Some((axis.clone(), part(e, axis)?)))
            .collect::<Option<_>>()?,
    })
}

/// `a - b`, axis by axis.
fn offset_between(a: &TileLayout, b: &TileLayout) -> Vec<(Axis, Expr)> {
    let mut all = a.offset.clone();
    for (axis, by) in &b.offset {
        match all.iter_mut().find(|(known, _)| known == axis) {
            Some((_, offset)) => *offset = binary(BinOp::Sub, offset.clone(), by.clone()),
            None => all.push((axis.clone(), binary(BinOp::Sub, Expr::int32(0), by.clone()))),
        }
    }
    all.retain(|(_, e)| !e.is_int(0));
    all
}

/// Distance between copies of this layout on an axis: one where its elements are not spread over the axis.
fn span(tile: &TileLayout, axis: &Axis) -> Expr {
    if !tile.canonical(false).shard.iter().any(|i| i.axis == *axis) {
        return Expr::int32(1);
    }
    Layout::Tile(Arc::new(tile.clone())).span_on(axis)
}

/// The iterators of the outer and of the inner parts of dimensions.
fn interleaved(
    tile: &TileLayout,
    outer_shape: &[Expr],
    inner_shape: &[Expr],
) -> Option<(Vec<Iter>, Vec<Iter>)> {
    let shape: Vec<Expr> = outer_shape
        .iter()
        .zip(inner_shape)
        .flat_map(|(outer, inner)| [outer.clone(), inner.clone()])
        .collect();
    let (grouped, starts) = split_along(tile, &shape)?;
    let (mut outer, mut inner) = (Vec::new(), Vec::new());
    for (dim, run) in starts.windows(2).enumerate() {
        let part = if dim % 2 == 0 { &mut outer } else { &mut inner };
        part.extend_from_slice(&grouped.shard[run[0]..run[1]]);
    }
    Some((outer, inner))
}

fn is_same(tile: &TileLayout, other: &TileLayout) -> bool {
    tile.canonical(true) == other.canonical(true)
}
