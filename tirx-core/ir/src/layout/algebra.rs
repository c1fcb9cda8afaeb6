//! Operations on layouts: each gives a layout whose map from coordinates to places follows from that of its operands.
//!
//! A layout maps a row-major number to a place on each axis; a *group* of iterators is what one dimension of a shape is
//! split over. Extents must be constants where an iterator has to be split; strides, offsets and the bounds of a slice
//! may be expressions. An operation that a layout does not allow gives `None`: the caller names the layout and the
//! shape.

use super::apply::binary;
use super::{Axis, Iter, Layout, TileLayout};
use crate::fold;
use crate::{BinOp, Expr};

/// Questions that slicing asks about its bounds. The analyzer of `tirx-arith` answers them.
pub trait Facts {
    /// The expression in its simplest form.
    fn simplified(&mut self, e: &Expr) -> Expr;
    /// Whether it is less than `bound`.
    fn is_less(&mut self, e: &Expr, bound: i128) -> bool;
}

/// Pairs of axes that form one: axis, axis within it, places of the second per step of the first, combined axis.
const FUSED: [(&str, &str, i128, &str); 4] = [
    ("wid_in_wg", "laneid", 32, "tid_in_wg"),
    ("warpid", "laneid", 32, "tx"),
    ("wgid", "tid_in_wg", 128, "tx"),
    ("wgid", "wid_in_wg", 4, "warpid"),
];

pub(super) fn mul(a: &Expr, b: &Expr) -> Expr {
    binary(BinOp::Mul, a.clone(), b.clone())
}

pub(super) fn add(a: &Expr, b: &Expr) -> Expr {
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

impl Iter {
    /// An iterator of constants on the memory axis.
    pub fn memory(extent: i128, stride: i128) -> Iter {
        Iter {
            extent: Expr::int32(extent as i32),
            stride: Expr::int32(stride as i32),
            axis: Axis::memory(),
        }
    }

    /// The outer and inner parts of an iterator of which `inner` digits stay together.
    fn split(&self, inner: i128) -> Option<(Iter, Iter)> {
        let extent = self.extent.as_int()?;
        if inner < 1 || extent % inner != 0 {
            return None;
        }
        let outer = Iter {
            extent: Expr::constant(self.extent.dtype, extent / inner),
            stride: scaled(&self.stride, inner),
            axis: self.axis.clone(),
        };
        let part = Iter {
            extent: Expr::constant(self.extent.dtype, inner),
            ..self.clone()
        };
        Some((outer, part))
    }
}

impl TileLayout {
    /// A layout of iterators alone.
    pub fn of(shard: Vec<Iter>) -> TileLayout {
        TileLayout {
            shard,
            ..TileLayout::default()
        }
    }

    /// The product of the extents, where they are constants.
    pub fn const_size(&self) -> Option<i128> {
        self.shard.iter().map(|i| i.extent.as_int()).product()
    }

    /// The extents of the iterators, where they are constants.
    pub fn const_extents(&self) -> Option<Vec<i128>> {
        self.shard.iter().map(|i| i.extent.as_int()).collect()
    }

    /// The offset on an axis; zero where there is none.
    pub fn offset_of(&self, axis: &str) -> Expr {
        let found = self.offset.iter().find(|(a, _)| &*a.0 == axis);
        found.map_or_else(|| Expr::int32(0), |(_, e)| e.clone())
    }

    /// The layout with `by` added to the offset on an axis.
    pub fn shifted(mut self, axis: &Axis, by: &Expr) -> TileLayout {
        if by.is_int(0) {
            return self;
        }
        match self.offset.iter_mut().find(|(a, _)| a == axis) {
            Some((_, offset)) => *offset = add(offset, by),
            None => self.offset.push((axis.clone(), by.clone())),
        }
        self
    }

    /// The same map with iterators split so that each dimension of `shape` owns a run of them; where each run begins,
    /// and the end.
    pub fn group(&self, shape: &[Expr]) -> Option<(TileLayout, Vec<usize>)> {
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
                        let (outer, inner) = last.split(n)?;
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

    /// As [`TileLayout::group`]; where the iterators as written do not split along the shape, adjacent ones that
    /// continue each other are merged first.
    pub(super) fn split_along(&self, shape: &[Expr]) -> Option<(TileLayout, Vec<usize>)> {
        self.group(shape).or_else(|| {
            let fused = TileLayout {
                shard: fused(&self.shard),
                ..self.clone()
            };
            fused.group(shape)
        })
    }

    /// As [`TileLayout::group`] by constants.
    pub fn group_by(&self, shape: &[i128]) -> Option<(TileLayout, Vec<usize>)> {
        let shape: Vec<Expr> = shape.iter().map(|e| Expr::int32(*e as i32)).collect();
        self.group(&shape)
    }

    /// The iterators in another order.
    pub fn permuted(&self, order: &[usize]) -> TileLayout {
        TileLayout {
            shard: order.iter().map(|i| self.shard[*i].clone()).collect(),
            ..self.clone()
        }
    }

    /// Groups of iterators, as [`TileLayout::group`] gives them, in another order.
    pub fn permuted_groups(&self, starts: &[usize], order: &[usize]) -> TileLayout {
        let flat: Vec<usize> = order.iter().flat_map(|g| starts[*g]..starts[g + 1]).collect();
        self.permuted(&flat)
    }

    /// The same map in its shortest form: no iterators of extent one, adjacent iterators merged where one continues the
    /// other, no zero offsets. With `threads`, places on two nested axes (warps and lanes) are combined on the axis
    /// that both form (threads).
    pub fn canonical(&self, threads: bool) -> TileLayout {
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
            layout.fuse_axes();
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

    /// Places on the two axes of a pair of [`FUSED`] as places on the combined axis.
    fn fuse_axes(&mut self) {
        for (outer, inner, count, whole) in FUSED {
            let is_on = |this: &TileLayout, axis: &str| {
                let mut iters = this.shard.iter().chain(&this.replica);
                iters.any(|i| &*i.axis.0 == axis) || this.offset.iter().any(|(a, _)| &*a.0 == axis)
            };
            let spread = |axis: &str| self.shard.iter().any(|i| &*i.axis.0 == axis);
            if !is_on(self, outer) || !is_on(self, inner) || !(spread(outer) || spread(inner)) {
                continue;
            }
            for (axis, step) in [(outer, count), (inner, 1)] {
                for iter in self.shard.iter_mut().chain(&mut self.replica) {
                    if &*iter.axis.0 == axis {
                        iter.stride = scaled(&iter.stride, step);
                        iter.axis = Axis(whole.into());
                    }
                }
                if let Some(at) = self.offset.iter().position(|(a, _)| &*a.0 == axis) {
                    let (_, by) = self.offset.remove(at);
                    let moved = std::mem::take(self).shifted(&Axis(whole.into()), &scaled(&by, step));
                    *self = moved;
                }
            }
        }
    }

    /// The layout of the part `ranges` (first coordinate and extent of each dimension) of a `shape`.
    pub fn slice(
        &self,
        shape: &[Expr],
        ranges: &[(Expr, Expr)],
        facts: &mut dyn Facts,
    ) -> Option<TileLayout> {
        let written = self.slice_written(shape, ranges, facts);
        // A part may begin or end within iterators that form one when merged.
        written.or_else(|| {
            let fused = TileLayout {
                shard: fused(&self.shard),
                ..self.clone()
            };
            fused.slice_written(shape, ranges, facts)
        })
    }

    fn slice_written(
        &self,
        shape: &[Expr],
        ranges: &[(Expr, Expr)],
        facts: &mut dyn Facts,
    ) -> Option<TileLayout> {
        let (grouped, starts) = self.group(shape)?;
        let mut sliced = TileLayout {
            shard: Vec::new(),
            ..self.clone()
        };
        for (dim, (begin, extent)) in ranges.iter().enumerate() {
            let run = &grouped.shard[starts[dim]..starts[dim + 1]];
            if begin.is_int(0) && same(extent, &shape[dim]) {
                sliced.shard.extend_from_slice(run);
                continue;
            }
            let (iters, offsets) = slice_run(run, begin, extent, facts)?;
            sliced.shard.extend(iters);
            for (axis, offset) in offsets {
                sliced = sliced.shifted(&axis, &offset);
            }
        }
        for (_, offset) in &mut sliced.offset {
            *offset = facts.simplified(offset);
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
            let (outer, inner) = work[at].split(left)?;
            work[at] = outer;
            work.insert(at + 1, inner);
            return Some(work);
        }
        (left == 1).then_some(work)
    }

    /// Number of contiguous elements on the memory axis at the end of the row-major order.
    pub fn contiguous_run(&self) -> i128 {
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

impl Layout {
    /// The layout of a part of a `shape`; see [`TileLayout::slice`]. A swizzle stays: it acts on the place in the whole.
    pub fn slice(&self, shape: &[Expr], ranges: &[(Expr, Expr)], facts: &mut dyn Facts) -> Option<Layout> {
        Some(self.with_tile(self.tile().slice(shape, ranges, facts)?))
    }

    /// See [`TileLayout::canonical`].
    pub fn canonical(&self, threads: bool) -> Layout {
        self.with_tile(self.tile().canonical(threads))
    }

    /// Whether both map every coordinate to the same places.
    pub fn same_map(&self, other: &Layout) -> bool {
        // A swizzle of no bits does nothing.
        let plain = |l: &Layout| match l.swizzle() {
            Some(swizzle) if swizzle.swizzle_len > 0 => l.canonical(true),
            _ => Layout::Tile(std::sync::Arc::new(l.tile().canonical(true))),
        };
        plain(self) == plain(other)
    }

    /// The last place that is reached on an axis, plus one: iterators, replicas and the offset, before any swizzle.
    pub fn span_on(&self, axis: &Axis) -> Expr {
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
    facts: &mut dyn Facts,
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
    let digit = facts.simplified(&binary(BinOp::FloorMod, begin.clone(), divisor.clone()));
    let carry = facts.simplified(&binary(BinOp::FloorDiv, begin.clone(), divisor));
    if digit.is_int(0) && count % size == 0 {
        let rest = Expr::constant(extent.dtype, count / size);
        let (mut iters, offsets) = slice_run(outer, &carry, &rest, facts)?;
        iters.push(last.clone());
        return Some((iters, offsets));
    }
    let end = add(&digit, &Expr::constant(digit.dtype, count));
    let within = match end.as_int() {
        Some(end) => end <= size,
        None => count <= size && (count == 1 || facts.is_less(&end, size + 1)),
    };
    if within {
        // All in one step of the next outer iterator.
        let one = Expr::constant(extent.dtype, 1);
        let (mut iters, mut offsets) = slice_run(outer, &carry, &one, facts)?;
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
    let (mut iters, mut offsets) = slice_run(outer, &start, &one, facts)?;
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
