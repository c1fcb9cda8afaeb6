//! Operations on layouts: each gives a layout whose map from coordinates to places follows from that of its operands.
//!
//! A layout maps a row-major number to a place on each axis; a *group* of iterators is what one dimension of a shape is
//! split over. Extents must be constants where an iterator has to be split; strides, offsets and the bounds of a slice
//! may be expressions. An operation that a layout does not allow gives `None`: the caller names the layout and the
//! shape.

use std::sync::{Arc, LazyLock};

use tirx_arith::{Analyzer, fold};
use tirx_ir::layout::apply::binary;
use tirx_ir::layout::{Axis, Iter, Layout, TileLayout};
use tirx_ir::{BinOp, Expr};

use crate::axes::{self, Pair};

/// Operations on the iterators of a layout.
pub trait TileAlgebra: Sized {
    /// The same map with iterators split so that each dimension of `shape` owns a run of them; where each run begins,
    /// and the end.
    fn group(&self, shape: &[Expr]) -> Option<(TileLayout, Vec<usize>)>;

    /// As [`TileLayout::group`] by constants.
    fn group_by(&self, shape: &[i128]) -> Option<(TileLayout, Vec<usize>)>;

    /// Groups of iterators, as [`TileLayout::group`] gives them, in another order.
    fn permuted_groups(&self, starts: &[usize], order: &[usize]) -> TileLayout;

    /// The same map in its shortest form: no iterators of extent one, adjacent iterators merged where one continues the
    /// other, no zero offsets. With `threads`, places on two nested axes (warps and lanes) are combined on the axis
    /// that both form (threads).
    fn canonical(&self, threads: bool) -> TileLayout;

    /// The layout of the part `ranges` (first coordinate and extent of each dimension) of a `shape`.
    fn slice(&self, shape: &[Expr], ranges: &[(Expr, Expr)], analyzer: &mut Analyzer) -> Option<TileLayout>;

    /// Number of contiguous elements on the memory axis at the end of the row-major order.
    fn contiguous_run(&self) -> i128;
}

impl TileAlgebra for TileLayout {
    fn group(&self, shape: &[Expr]) -> Option<(TileLayout, Vec<usize>)> {
        let mut rest: Vec<Iter> = self.shard.clone();
        let mut groups: Vec<Vec<Iter>> = Vec::with_capacity(shape.len());
        for extent in shape.iter().rev() {
            let mut run: Vec<Iter> = Vec::new();
            let mut need = extent.clone();
            loop {
                let unit_next = rest.last().is_some_and(|i| i.extent.is_int(1));
                if need.is_int(1) && !(unit_next && run.is_empty()) {
                    break;
                }
                let Some(last) = rest.pop() else { break };
                match (need.as_int(), last.extent.as_int()) {
                    // An iterator of extent one, while the dimension still needs more: it contributes nothing.
                    (_, Some(1)) if !need.is_int(1) => {}
                    _ if same(&last.extent, &need) => {
                        run.push(last);
                        need = Expr::constant(need.dtype, 1);
                    }
                    (Some(n), Some(e)) if e > 0 && n % e == 0 => {
                        run.push(last);
                        need = Expr::constant(need.dtype, n / e);
                    }
                    (Some(n), Some(e)) if n > 0 && e % n == 0 => {
                        let (outer, inner) = split(&last, n)?;
                        rest.push(outer);
                        run.push(inner);
                        need = Expr::constant(need.dtype, 1);
                    }
                    // A symbolic dimension may be a product of extents.
                    (None, _) => {
                        let quotient = exact_quotient(&need, &last.extent)?;
                        run.push(last);
                        need = quotient;
                    }
                    _ => return None,
                }
            }
            if !need.is_int(1) {
                return None;
            }
            if run.is_empty() {
                let (axis, stride) = match rest.last() {
                    Some(i) if i.axis.is_memory() => (i.axis.clone(), i.stride.clone()),
                    _ => (Axis::memory(), Expr::int32(1)),
                };
                run.push(unit(extent, axis, stride));
            }
            run.reverse();
            groups.push(run);
        }
        if !rest.iter().all(|i| i.extent.is_int(1)) {
            return None;
        }
        groups.reverse();
        let mut starts = vec![0];
        for run in &groups {
            starts.push(starts[starts.len() - 1] + run.len());
        }
        let layout = TileLayout {
            shard: groups.into_iter().flatten().collect(),
            ..self.clone()
        };
        Some((layout, starts))
    }

    fn group_by(&self, shape: &[i128]) -> Option<(TileLayout, Vec<usize>)> {
        let shape: Vec<Expr> = shape.iter().map(|e| Expr::int32(*e as i32)).collect();
        self.group(&shape)
    }

    fn permuted_groups(&self, starts: &[usize], order: &[usize]) -> TileLayout {
        let flat: Vec<usize> = order.iter().flat_map(|g| starts[*g]..starts[g + 1]).collect();
        self.permuted(&flat)
    }

    fn canonical(&self, threads: bool) -> TileLayout {
        let wide = |list: &[Iter]| list.iter().filter(|i| !i.extent.is_int(1)).cloned().collect();
        let mut layout = TileLayout {
            shard: wide(&self.shard),
            replica: wide(&self.replica),
            offset: self
                .offset
                .iter()
                .filter(|(_, e)| !e.is_int(0))
                .cloned()
                .collect(),
        };
        if threads {
            fuse_axes(&mut layout);
        }
        layout.shard = fused(&layout.shard);
        if layout.shard.is_empty() {
            // One element, on the axis of the layout.
            let axis = self.shard.first().map_or_else(Axis::memory, |i| i.axis.clone());
            layout.shard.push(Iter {
                axis,
                ..Iter::memory(1, 1)
            });
        }
        layout
    }

    fn slice(&self, shape: &[Expr], ranges: &[(Expr, Expr)], analyzer: &mut Analyzer) -> Option<TileLayout> {
        let written = slice_written(self, shape, ranges, analyzer);
        // A part may begin or end within iterators that form one when merged.
        written.or_else(|| {
            let fused = TileLayout {
                shard: fused(&self.shard),
                ..self.clone()
            };
            slice_written(&fused, shape, ranges, analyzer)
        })
    }

    fn contiguous_run(&self) -> i128 {
        let mut run = 1;
        for iter in self.shard.iter().rev() {
            let Some(extent) = iter.extent.as_int() else { break };
            if extent == 1 {
                continue;
            }
            if !iter.axis.is_memory() || !iter.stride.is_int(run) {
                break;
            }
            run *= extent;
        }
        run
    }
}

/// Operations on layouts with their swizzle.
pub trait LayoutAlgebra: Sized {
    /// The layout of a part of a `shape`; see [`TileLayout::slice`]. A swizzle stays: it acts on the place in the whole.
    fn slice(&self, shape: &[Expr], ranges: &[(Expr, Expr)], analyzer: &mut Analyzer) -> Option<Layout>;

    /// See [`TileLayout::canonical`].
    fn canonical(&self, threads: bool) -> Layout;

    /// Whether both map every coordinate to the same places.
    fn same_map(&self, other: &Layout) -> bool;

    /// The last place that is reached on an axis, plus one: iterators, replicas and the offset, before any swizzle.
    fn span_on(&self, axis: &Axis) -> Expr;
}

impl LayoutAlgebra for Layout {
    fn slice(&self, shape: &[Expr], ranges: &[(Expr, Expr)], analyzer: &mut Analyzer) -> Option<Layout> {
        Some(self.with_tile(self.tile().slice(shape, ranges, analyzer)?))
    }

    fn canonical(&self, threads: bool) -> Layout {
        self.with_tile(self.tile().canonical(threads))
    }

    fn same_map(&self, other: &Layout) -> bool {
        // A swizzle of no bits does nothing.
        let plain = |l: &Layout| match l.swizzle() {
            Some(swizzle) if swizzle.swizzle_len > 0 => l.canonical(true),
            _ => Layout::Tile(Arc::new(l.tile().canonical(true))),
        };
        plain(self) == plain(other)
    }

    fn span_on(&self, axis: &Axis) -> Expr {
        let tile = self.tile();
        let offset = tile.offset_of(&axis.0);
        let mut last: Option<Expr> = (!offset.is_int(0)).then_some(offset);
        for iter in tile.shard.iter().chain(&tile.replica) {
            if iter.axis == *axis && !iter.extent.is_int(1) {
                let steps = fold::sub(iter.extent.clone(), Expr::constant(iter.extent.dtype, 1));
                let reach = mul(&steps, &iter.stride);
                last = Some(match last {
                    None => reach,
                    Some(sum) => add(&sum, &reach),
                });
            }
        }
        match last {
            None => Expr::int32(1),
            Some(last) => add(&last, &Expr::constant(last.dtype, 1)),
        }
    }
}

pub(crate) fn mul(a: &Expr, b: &Expr) -> Expr {
    binary(BinOp::Mul, a.clone(), b.clone())
}

pub(crate) fn add(a: &Expr, b: &Expr) -> Expr {
    binary(BinOp::Add, a.clone(), b.clone())
}

fn scaled(e: &Expr, by: i128) -> Expr {
    if by == 1 {
        return e.clone();
    }
    mul(e, &Expr::constant(e.dtype, by))
}

fn same(a: &Expr, b: &Expr) -> bool {
    match (a.as_int(), b.as_int()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

fn unit(like: &Expr, axis: Axis, stride: Expr) -> Iter {
    Iter {
        extent: Expr::constant(like.dtype, 1),
        stride,
        axis,
    }
}

/// The outer and inner parts of an iterator of which `inner` digits stay together.
fn split(iter: &Iter, inner: i128) -> Option<(Iter, Iter)> {
    let extent = iter.extent.as_int()?;
    if inner < 1 || extent % inner != 0 {
        return None;
    }
    let outer = Iter {
        extent: Expr::constant(iter.extent.dtype, extent / inner),
        stride: scaled(&iter.stride, inner),
        axis: iter.axis.clone(),
    };
    let part = Iter {
        extent: Expr::constant(iter.extent.dtype, inner),
        ..iter.clone()
    };
    Some((outer, part))
}

/// As [`TileLayout::group`]; where the iterators as written do not split along the shape, adjacent ones that
/// continue each other are merged first.
pub(crate) fn split_along(tile: &TileLayout, shape: &[Expr]) -> Option<(TileLayout, Vec<usize>)> {
    tile.group(shape).or_else(|| {
        let fused = TileLayout {
            shard: fused(&tile.shard),
            ..tile.clone()
        };
        fused.group(shape)
    })
}

/// Places on the two axes of each pair as places on the axis that both are together.
fn fuse_axes(layout: &mut TileLayout) {
    static PAIRS: LazyLock<Vec<Pair>> = LazyLock::new(|| axes::pairs().collect());
    for pair in &*PAIRS {
        let (outer, inner) = (pair.outer.name, pair.inner.name);
        let is_on = |this: &TileLayout, axis: &str| {
            let mut iters = this.shard.iter().chain(&this.replica);
            iters.any(|i| &*i.axis.0 == axis) || this.offset.iter().any(|(a, _)| &*a.0 == axis)
        };
        let spread = |axis: &str| layout.shard.iter().any(|i| &*i.axis.0 == axis);
        if !is_on(layout, outer) || !is_on(layout, inner) || !(spread(outer) || spread(inner)) {
            continue;
        }
        for (axis, step) in [(outer, pair.count), (inner, 1)] {
            for iter in layout.shard.iter_mut().chain(&mut layout.replica) {
                if &*iter.axis.0 == axis {
                    iter.stride = scaled(&iter.stride, step);
                    iter.axis = Axis(pair.both.name.into());
                }
            }
            if let Some(at) = layout.offset.iter().position(|(a, _)| &*a.0 == axis) {
                let (_, by) = layout.offset.remove(at);
                let moved = std::mem::take(layout).shifted(&Axis(pair.both.name.into()), &scaled(&by, step));
                *layout = moved;
            }
        }
    }
}

fn slice_written(
    tile: &TileLayout,
    shape: &[Expr],
    ranges: &[(Expr, Expr)],
    analyzer: &mut Analyzer,
) -> Option<TileLayout> {
    let (grouped, starts) = tile.group(shape)?;
    let mut sliced = TileLayout {
        shard: Vec::new(),
        ..tile.clone()
    };
    for (dim, (begin, extent)) in ranges.iter().enumerate() {
        let run = &grouped.shard[starts[dim]..starts[dim + 1]];
        if begin.is_int(0) && same(extent, &shape[dim]) {
            sliced.shard.extend_from_slice(run);
            continue;
        }
        let (iters, offsets) = slice_run(run, begin, extent, analyzer)?;
        sliced.shard.extend(iters);
        for (axis, offset) in offsets {
            sliced = sliced.shifted(&axis, &offset);
        }
    }
    for (_, offset) in &mut sliced.offset {
        *offset = analyzer.simplify(offset);
    }
    Some(sliced)
}

/// Splits off the last `chunk` elements as iterators of their own, splitting at most one iterator.
pub fn carved(iters: &[Iter], chunk: i128) -> Option<Vec<Iter>> {
    let mut left = chunk;
    let mut work = iters.to_vec();
    for at in (0..work.len()).rev() {
        let extent = work[at].extent.as_int()?;
        if extent == left {
            return Some(work);
        }
        if extent < left {
            if left % extent != 0 {
                return None;
            }
            left /= extent;
            continue;
        }
        let (outer, inner) = split(&work[at], left)?;
        work[at] = outer;
        work.insert(at + 1, inner);
        return Some(work);
    }
    (left == 1).then_some(work)
}

/// `whole / part` where `part` is visibly a factor.
fn exact_quotient(whole: &Expr, part: &Expr) -> Option<Expr> {
    if same(whole, part) {
        return Some(Expr::constant(whole.dtype, 1));
    }
    let (a, b) = whole.as_binary(BinOp::Mul)?;
    if same(a, part) {
        return Some(b.clone());
    }
    if same(b, part) {
        return Some(a.clone());
    }
    if let Some(rest) = exact_quotient(a, part) {
        return Some(mul(&rest, b));
    }
    Some(mul(a, &exact_quotient(b, part)?))
}

fn fused(iters: &[Iter]) -> Vec<Iter> {
    let mut parts: Vec<Iter> = Vec::with_capacity(iters.len());
    for inner in iters.iter().filter(|i| !i.extent.is_int(1)) {
        match parts.last_mut() {
            Some(outer)
                if outer.axis == inner.axis && same(&outer.stride, &mul(&inner.stride, &inner.extent)) =>
            {
                outer.extent = mul(&outer.extent, &inner.extent);
                outer.stride = inner.stride.clone();
            }
            _ => parts.push(inner.clone()),
        }
    }
    parts
}

type Offsets = Vec<(Axis, Expr)>;

/// The iterators and offsets of digits `begin .. begin + extent` of a dimension that `run` makes.
fn slice_run(
    run: &[Iter],
    begin: &Expr,
    extent: &Expr,
    analyzer: &mut Analyzer,
) -> Option<(Vec<Iter>, Offsets)> {
    let (last, outer) = run.split_last()?;
    let moved = |digit: &Expr| {
        let by = mul(digit, &last.stride);
        if by.is_int(0) {
            Vec::new()
        } else {
            vec![(last.axis.clone(), by)]
        }
    };
    if outer.iter().all(|i| i.extent.is_int(1)) {
        let kept = Iter {
            extent: extent.clone(),
            ..last.clone()
        };
        return Some((vec![kept], moved(begin)));
    }
    let size = last.extent.as_int()?;
    let count = extent.as_int()?;
    let divisor = Expr::constant(begin.dtype, size);
    let digit = analyzer.simplify(&binary(BinOp::FloorMod, begin.clone(), divisor.clone()));
    let carry = analyzer.simplify(&binary(BinOp::FloorDiv, begin.clone(), divisor));
    if digit.is_int(0) && count % size == 0 {
        let rest = Expr::constant(extent.dtype, count / size);
        let (mut iters, offsets) = slice_run(outer, &carry, &rest, analyzer)?;
        iters.push(last.clone());
        return Some((iters, offsets));
    }
    let end = add(&digit, &Expr::constant(digit.dtype, count));
    let within = match end.as_int() {
        Some(end) => end <= size,
        None => count <= size && (count == 1 || analyzer.can_prove_less(&end, size + 1)),
    };
    if within {
        // All in one step of the next outer iterator.
        let one = Expr::constant(extent.dtype, 1);
        let (mut iters, mut offsets) = slice_run(outer, &carry, &one, analyzer)?;
        // What is left of the outer ones is one element, which is on no axis of its own.
        for iter in iters.iter_mut().filter(|iter| iter.extent.is_int(1)) {
            iter.axis = last.axis.clone();
        }
        iters.push(Iter {
            extent: extent.clone(),
            ..last.clone()
        });
        offsets.extend(moved(&digit));
        return Some((iters, offsets));
    }
    // Half in one step of the next outer iterator and half in the next.
    let (digit, carry) = (digit.as_int()?, carry.as_int()?);
    let first = size - digit;
    let next = outer.iter().rev().find(|i| !i.extent.is_int(1))?;
    if count != 2 * first
        || next.axis != last.axis
        || (carry % next.extent.as_int()?) + 1 >= next.extent.as_int()?
    {
        return None;
    }
    let one = Expr::constant(extent.dtype, 1);
    let start = Expr::constant(begin.dtype, carry);
    let (mut iters, mut offsets) = slice_run(outer, &start, &one, analyzer)?;
    let back = Expr::constant(last.stride.dtype, digit);
    iters.push(Iter {
        extent: Expr::constant(extent.dtype, 2),
        stride: binary(BinOp::Sub, next.stride.clone(), mul(&back, &last.stride)),
        axis: last.axis.clone(),
    });
    iters.push(Iter {
        extent: Expr::constant(extent.dtype, first),
        ..last.clone()
    });
    offsets.extend(moved(&Expr::constant(begin.dtype, digit)));
    Some((iters, offsets))
}
