//! From a coordinate to a memory offset.
//!
//! The shape's dimensions are matched with runs of shard iterators where their extents agree (the usual case): each
//! coordinate is then split over its own run alone, and a dimension that is one iterator contributes
//! `coordinate * stride` without division. Where a dimension ends within an iterator, and its extent divides, the
//! iterator is taken as two. Where nothing agrees the coordinate is flattened row-major first and split over all
//! iterators. The result is a plain sum; simplifying it is the caller's business.
//!
//! A coordinate may be a vector (`Ramp`); the offset then has as many lanes. Through a run of one iterator a ramp
//! stays a ramp.

use std::borrow::Cow;

use super::{Axis, Iter, Layout, Swizzle};
use crate::fold;
use crate::intrin::Op;
use crate::ir::{BinOp, DType, Expr, ExprKind};

impl Layout {
    /// The offset on the memory axis, in elements, of `coordinate` in a buffer of `shape`; other axes are ignored.
    /// The two slices have one length.
    ///
    /// It is computed in the widest integer type of coordinates and extents.
    pub fn memory_offset(&self, coordinate: &[Expr], shape: &[Expr]) -> Expr {
        let offset = self
            .offset_on(super::MEMORY, coordinate, shape)
            .unwrap_or_else(|| Expr::int32(0));
        match self.swizzle() {
            None => offset,
            Some(swizzle) => swizzle.apply(&offset),
        }
    }

    /// The offset of `coordinate` on each axis that the layout has, in order of writing.
    pub fn offsets(&self, coordinate: &[Expr], shape: &[Expr]) -> Vec<(Axis, Expr)> {
        let tile = self.tile();
        let axes = tile.shard.iter().map(|i| &i.axis);
        let mut all: Vec<(Axis, Expr)> = Vec::new();
        for axis in axes.chain(tile.offset.iter().map(|(axis, _)| axis)) {
            if all.iter().all(|(known, _)| known != axis) {
                let offset = self.offset_on(&axis.0, coordinate, shape);
                let offset = offset.unwrap_or_else(|| Expr::int32(0));
                let offset = match self.swizzle() {
                    Some(swizzle) if axis.is_memory() => swizzle.apply(&offset),
                    _ => offset,
                };
                all.push((axis.clone(), offset));
            }
        }
        all
    }

    /// The offset on one axis, before any swizzle; `None` where nothing of the layout is on it.
    pub(crate) fn offset_on(&self, wanted: &str, coordinate: &[Expr], shape: &[Expr]) -> Option<Expr> {
        let tile = self.tile();
        let coordinate = &in_index_type(coordinate, shape)[..];
        if shape.iter().skip(1).any(|e| e.as_int().is_none()) && tile.is_row_major(shape) {
            return Some(nested(coordinate, shape));
        }
        let mut sum: Option<Expr> = None;
        let refined;
        let groups = match group(shape, &tile.shard) {
            None => {
                refined = refine(shape, &tile.shard);
                refined.as_ref().and_then(|iters| group(shape, iters))
            }
            groups => groups,
        };
        match groups {
            Some(groups) => {
                for (coordinate, run) in coordinate.iter().zip(groups) {
                    split(&mut sum, wanted, coordinate, run);
                }
            }
            None => split(&mut sum, wanted, &row_major(coordinate, shape), &tile.shard),
        }
        for (axis, offset) in &tile.offset {
            if &*axis.0 == wanted {
                accumulate(&mut sum, offset.clone());
            }
        }
        sum
    }

    /// Number of elements between the first and the last that the memory axis reaches, both included. A swizzle moves
    /// elements within aligned blocks, so the span of its iterators is rounded up to a whole block.
    ///
    /// A swizzle moves elements within aligned blocks, so that the span of its iterators is rounded up to one.
    pub fn memory_span(&self) -> Expr {
        let span = self.plain_span();
        match self.swizzle() {
            None => span,
            Some(swizzle) => {
                let block = Expr::constant(span.dtype, 1 << swizzle.block_bits());
                let ceil = fold::sub(fold::add(span, block.clone()), Expr::constant(block.dtype, 1));
                fold::mul(fold::floordiv(ceil, block.clone()), block)
            }
        }
    }

    fn plain_span(&self) -> Expr {
        let tile = self.tile();
        let mut last: Option<Expr> = None;
        for iter in tile.shard.iter().chain(&tile.replica) {
            if iter.axis.is_memory() && !iter.extent.is_int(1) {
                let steps = fold::sub(iter.extent.clone(), Expr::constant(iter.extent.dtype, 1));
                accumulate(&mut last, binary(BinOp::Mul, steps, iter.stride.clone()));
            }
        }
        for (axis, offset) in &tile.offset {
            if axis.is_memory() {
                accumulate(&mut last, offset.clone());
            }
        }
        match last {
            None => Expr::int32(1),
            Some(last) => {
                let one = Expr::constant(last.dtype, 1);
                fold::add(last, one)
            }
        }
    }

    /// Whether an iterator runs on another axis than memory.
    pub fn has_hardware_axis(&self) -> bool {
        self.tile().shard.iter().any(|i| !i.axis.is_memory())
    }
}

impl Swizzle {
    /// The bits of an offset that an exclusive-or changes, and all lower bits: the swizzle moves elements within blocks
    /// of this size.
    pub fn block_bits(&self) -> u32 {
        let upper = if self.inner { 0 } else { self.atom_len };
        self.per_element + self.swizzle_len + upper
    }

    /// The bits of an offset that take part: the swizzle repeats with this period.
    pub fn period_bits(&self) -> u32 {
        self.per_element + self.swizzle_len + self.atom_len
    }

    /// The place that offset `at` is mapped to.
    pub fn apply_const(&self, at: i128) -> i128 {
        let chunk = at >> self.per_element;
        let low = (1i128 << self.swizzle_len) - 1;
        let mixed = if self.inner {
            chunk ^ ((chunk & (low << self.atom_len)) >> self.atom_len)
        } else {
            chunk ^ ((chunk & low) << self.atom_len)
        };
        (mixed << self.per_element) | (at & ((1 << self.per_element) - 1))
    }

    /// The place that offset `at` is mapped to, as an expression. Chunks and places within them are computed
    /// separately, so that a vector within a chunk stays one.
    pub fn apply(&self, at: &Expr) -> Expr {
        if let Some(at) = at.as_int() {
            return Expr::constant(at_dtype(at), self.apply_const(at));
        }
        let lanes = at.dtype.lanes;
        let constant = |v: i128| Expr::constant(at.dtype.element(), v);
        let bits = |op: Op, a: Expr, b: i128| {
            let b = if lanes == 1 {
                constant(b)
            } else {
                Expr::broadcast(constant(b), lanes)
            };
            Expr::call(op, at.dtype, vec![a, b])
        };
        let size = constant(1 << self.per_element);
        let low = (1i128 << self.swizzle_len) - 1;
        let atom = i128::from(self.atom_len);
        let chunk = binary(BinOp::FloorDiv, at.clone(), size.clone());
        let other = if self.inner {
            bits(
                Op::ShiftRight,
                bits(Op::BitwiseAnd, chunk.clone(), low << self.atom_len),
                atom,
            )
        } else {
            bits(Op::ShiftLeft, bits(Op::BitwiseAnd, chunk.clone(), low), atom)
        };
        let mixed = Expr::call(Op::BitwiseXor, at.dtype, vec![chunk, other]);
        let first = bits(Op::ShiftLeft, mixed, i128::from(self.per_element));
        binary(BinOp::Add, first, binary(BinOp::FloorMod, at.clone(), size))
    }
}

/// The dtype of a constant offset.
fn at_dtype(value: i128) -> DType {
    if i32::try_from(value).is_ok() {
        DType::INT32
    } else {
        DType::INT64
    }
}

/// The product of `factors`; one of none.
pub fn product(factors: &[Expr]) -> Expr {
    let all = factors.iter().cloned();
    all.reduce(|a, b| binary(BinOp::Mul, a, b))
        .unwrap_or_else(|| Expr::int32(1))
}

/// `Σ coordinate[i] * strides[i]`.
pub fn strided_offset(coordinate: &[Expr], strides: &[Expr]) -> Expr {
    let mut sum = None;
    for (c, s) in in_index_type(coordinate, strides).iter().zip(strides) {
        accumulate(&mut sum, scale(c, s));
    }
    sum.unwrap_or_else(|| Expr::int32(0))
}

/// `(z * h + y) * w + x`: each extent once, where products of them would have to be computed.
fn nested(coordinate: &[Expr], shape: &[Expr]) -> Expr {
    let mut offset: Option<Expr> = None;
    for (c, extent) in coordinate.iter().zip(shape) {
        offset = Some(match offset {
            None => c.clone(),
            Some(outer) => binary(BinOp::Add, binary(BinOp::Mul, outer, extent.clone()), c.clone()),
        });
    }
    offset.unwrap_or_else(|| Expr::int32(0))
}

/// The position of `coordinate` in row-major order of `shape`.
pub fn row_major(coordinate: &[Expr], shape: &[Expr]) -> Expr {
    let rows = Layout::row_major(shape);
    let mut sum = None;
    for (c, iter) in in_index_type(coordinate, shape).iter().zip(&rows.tile().shard) {
        accumulate(&mut sum, scale(c, &iter.stride));
    }
    sum.unwrap_or_else(|| Expr::int32(0))
}

/// Coordinates in the widest type of themselves and `others`.
fn in_index_type(coordinate: &[Expr], others: &[Expr]) -> Vec<Expr> {
    let all = coordinate.iter().chain(others).map(|e| e.dtype.element());
    match all.reduce(wider) {
        Some(dtype) => coordinate.iter().map(|c| cast_index(c.clone(), dtype)).collect(),
        None => Vec::new(),
    }
}

/// Which run of iterators each dimension is split over; `None` where the extents do not agree.
fn group<'a>(shape: &[Expr], iters: &'a [Iter]) -> Option<Vec<&'a [Iter]>> {
    let mut rest = iters;
    let mut groups = Vec::with_capacity(shape.len());
    for extent in shape {
        // The shortest run whose extents multiply to the dimension's; unit iterators may lead it.
        let mut length = 0;
        let mut product = Expr::constant(extent.dtype, 1);
        while !same_extent(&product, extent) || (length == 0 && extent.is_int(1) && unit(rest)) {
            let next = rest.get(length)?;
            product = binary(BinOp::Mul, product, next.extent.clone());
            length += 1;
            if same_extent(&product, extent) {
                break;
            }
        }
        groups.push(&rest[..length]);
        rest = &rest[length..];
    }
    rest.iter().all(|i| i.extent.is_int(1)).then_some(groups)
}

/// The same iterators, those within which a dimension ends taken apart there; `None` where extents are not known, do not
/// divide, or have different products.
fn refine(shape: &[Expr], iters: &[Iter]) -> Option<Vec<Iter>> {
    let mut dims = shape.iter().rev().map(Expr::as_int);
    let mut left = 1;
    let mut parts = Vec::with_capacity(iters.len() + shape.len());
    for iter in iters.iter().rev() {
        let (mut extent, mut stride) = (iter.extent.as_int()?, iter.stride.clone());
        while extent > 1 {
            while left == 1 {
                left = dims.next()??;
            }
            let part = extent.min(left);
            if part < 1 || extent % part != 0 || left % part != 0 {
                return None;
            }
            let count = Expr::constant(iter.extent.dtype, part);
            parts.push(Iter {
                extent: count.clone(),
                stride: stride.clone(),
                axis: iter.axis.clone(),
            });
            stride = scale(&stride, &count);
            (extent, left) = (extent / part, left / part);
        }
    }
    parts.reverse();
    (left == 1 && dims.all(|d| d == Some(1))).then_some(parts)
}

fn unit(iters: &[Iter]) -> bool {
    iters.first().is_some_and(|i| i.extent.is_int(1))
}

fn same_extent(a: &Expr, b: &Expr) -> bool {
    match (a.as_int(), b.as_int()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

/// Adds what `coordinate` contributes, split over `run`: digit times stride on the wanted axis.
fn split(sum: &mut Option<Expr>, wanted: &str, coordinate: &Expr, run: &[Iter]) {
    let run = &fused(run)[..];
    // The product of the extents right of the iterator; the outermost digit needs no remainder.
    let mut right = Vec::with_capacity(run.len());
    let mut product: Option<Expr> = None;
    for iter in run.iter().rev() {
        right.push(product.clone());
        product = Some(match product {
            None => iter.extent.clone(),
            Some(p) => binary(BinOp::Mul, p, iter.extent.clone()),
        });
    }
    right.reverse();
    for (position, iter) in run.iter().enumerate() {
        // A digit of extent one is zero, unless the run has no other iterator: then it is the coordinate itself.
        if &*iter.axis.0 != wanted || iter.extent.is_int(1) && run.len() > 1 {
            continue;
        }
        let mut digit = coordinate.clone();
        if let Some(divisor) = &right[position] {
            digit = binary(BinOp::FloorDiv, digit, divisor.clone());
        }
        if run[..position].iter().any(|i| !i.extent.is_int(1)) {
            digit = binary(BinOp::FloorMod, digit, iter.extent.clone());
        }
        accumulate(sum, scale(&digit, &iter.stride));
    }
}

/// The same iterators, adjacent ones that continue each other merged: merged digits need no division.
fn fused(run: &[Iter]) -> Cow<'_, [Iter]> {
    let goes_on = |outer: &Iter, inner: &Iter| {
        let span = binary(BinOp::Mul, inner.stride.clone(), inner.extent.clone());
        outer.axis == inner.axis && same_extent(&outer.stride, &span)
    };
    if !run.windows(2).any(|pair| goes_on(&pair[0], &pair[1])) {
        return Cow::Borrowed(run);
    }
    let mut parts: Vec<Iter> = Vec::with_capacity(run.len());
    for inner in run {
        match parts.last_mut() {
            Some(outer) if goes_on(outer, inner) => {
                outer.extent = binary(BinOp::Mul, outer.extent.clone(), inner.extent.clone());
                outer.stride = inner.stride.clone();
            }
            _ => parts.push(inner.clone()),
        }
    }
    Cow::Owned(parts)
}

fn accumulate(sum: &mut Option<Expr>, term: Expr) {
    *sum = Some(match sum.take() {
        None => term,
        Some(sum) => binary(BinOp::Add, sum, term),
    });
}

/// `value * factor`; a ramp stays one.
fn scale(value: &Expr, factor: &Expr) -> Expr {
    binary(BinOp::Mul, value.clone(), factor.clone())
}

/// A folded node of two index expressions whose widths and lanes may differ: the wider integer wins, scalars are
/// broadcast, and a ramp absorbs a scalar that is added to it or scales it.
pub fn binary(op: BinOp, a: Expr, b: Expr) -> Expr {
    let element = wider(a.dtype.element(), b.dtype.element());
    let (a, b) = (cast_index(a, element), cast_index(b, element));
    if a.dtype.lanes == b.dtype.lanes {
        return match (op, &a.kind, &b.kind) {
            (
                BinOp::Add,
                ExprKind::Ramp { base, stride, lanes },
                ExprKind::Ramp {
                    base: c, stride: d, ..
                },
            ) => Expr::ramp(
                fold::add(base.clone(), c.clone()),
                fold::add(stride.clone(), d.clone()),
                *lanes,
            ),
            (BinOp::Mul, ExprKind::Ramp { base, stride, lanes }, ExprKind::Broadcast { value, .. }) => {
                Expr::ramp(
                    fold::mul(base.clone(), value.clone()),
                    fold::mul(stride.clone(), value.clone()),
                    *lanes,
                )
            }
            (op, ExprKind::Broadcast { value: x, lanes }, ExprKind::Broadcast { value: y, .. }) => {
                Expr::broadcast(fold::binary(op, x.clone(), y.clone()), *lanes)
            }
            (BinOp::Add, ExprKind::Ramp { base, stride, lanes }, ExprKind::Broadcast { value, .. }) => {
                Expr::ramp(fold::add(base.clone(), value.clone()), stride.clone(), *lanes)
            }
            (BinOp::Add, ExprKind::Broadcast { value, .. }, ExprKind::Ramp { base, stride, lanes }) => {
                Expr::ramp(fold::add(value.clone(), base.clone()), stride.clone(), *lanes)
            }
            _ => fold::binary(op, a, b),
        };
    }
    let lanes = a.dtype.lanes.max(b.dtype.lanes);
    let widen = |e: Expr| {
        if e.dtype.lanes == lanes {
            e
        } else {
            Expr::broadcast(e, lanes)
        }
    };
    binary(op, widen(a), widen(b))
}

/// The element type that holds both index types.
fn wider(a: DType, b: DType) -> DType {
    match a.bits.cmp(&b.bits) {
        std::cmp::Ordering::Less => b,
        std::cmp::Ordering::Greater => a,
        std::cmp::Ordering::Equal if a.is_uint() => b,
        std::cmp::Ordering::Equal => a,
    }
}

/// `index` with another element type; ramps are converted part by part.
pub fn cast_index(index: Expr, element: DType) -> Expr {
    if index.dtype.element() == element {
        return index;
    }
    let span = index.span;
    match &index.kind {
        ExprKind::Ramp { base, stride, lanes } => Expr::ramp(
            cast_index(base.clone(), element),
            cast_index(stride.clone(), element),
            *lanes,
        )
        .at(span),
        ExprKind::Broadcast { value, lanes } => {
            Expr::broadcast(cast_index(value.clone(), element), *lanes).at(span)
        }
        _ => {
            let dtype = element.with_lanes(index.dtype.lanes);
            fold::cast(index, dtype)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::TileLayout;
    use super::*;
    use crate::ir::{Var, substitute};
    use std::sync::Arc;

    fn layout(iters: &[(i32, i32)]) -> Layout {
        let shard = iters
            .iter()
            .map(|(e, s)| Iter {
                extent: Expr::int32(*e),
                stride: Expr::int32(*s),
                axis: Axis::memory(),
            })
            .collect();
        Layout::Tile(Arc::new(TileLayout {
            shard,
            ..TileLayout::default()
        }))
    }

    fn fold_all(e: &Expr) -> i128 {
        match &e.kind {
            ExprKind::Int(v) => *v,
            ExprKind::Binary(op, a, b) => {
                fold::eval_int(*op, e.dtype, fold_all(a), fold_all(b)).expect("no division by zero")
            }
            _ => panic!("{e:?}"),
        }
    }

    /// Every offset by the definition: the flattened coordinate's mixed-radix digits times strides.
    #[test]
    fn agrees_with_the_definition() {
        type Case<'a> = (&'a [i32], &'a [(i32, i32)]);
        let cases: &[Case<'_>] = &[
            (&[4, 8], &[(4, 8), (8, 1)]),
            (&[4, 8], &[(4, 1), (8, 4)]),
            (&[4, 8], &[(4, 16), (8, 1)]),
            (&[64, 4], &[(8, 4), (8, 32), (4, 1)]),
            (&[4, 8], &[(8, 4), (4, 1)]),
            (&[1, 4, 1], &[(4, 3)]),
            (&[1, 4], &[(1, 7), (4, 1)]),
            (&[6, 4], &[(3, 2), (8, 10)]),
            (&[8, 8, 8], &[(4, 1), (8, 4), (16, 32)]),
            (&[2, 2, 8, 2, 8], &[(4, 1), (8, 4), (16, 32)]),
            (&[4, 6], &[(6, 1), (4, 6)]),
            (&[1, 24, 1], &[(6, 1), (4, 6)]),
            (&[64, 2], &[(4, 40), (8, 4), (2, 2), (2, 1)]),
        ];
        for (shape, iters) in cases {
            let layout = layout(iters);
            let vars: Vec<Var> = shape.iter().map(|_| Var::new("i", DType::INT32)).collect();
            let shape_exprs: Vec<Expr> = shape.iter().map(|s| Expr::int32(*s)).collect();
            let coordinate: Vec<Expr> = vars.iter().map(Expr::var).collect();
            let offset = layout.memory_offset(&coordinate, &shape_exprs);
            let total: i32 = shape.iter().product();
            for flat in 0..total {
                let mut rest = flat;
                let mut at = vec![0; shape.len()];
                for (i, extent) in shape.iter().enumerate().rev() {
                    at[i] = rest % extent;
                    rest /= extent;
                }
                let value = substitute(&offset, &|v| {
                    vars.iter().position(|w| w == v).map(|i| Expr::int32(at[i]))
                });
                let mut expected = 0;
                let mut rest = flat;
                for (extent, stride) in iters.iter().rev() {
                    expected += rest % extent * stride;
                    rest /= extent;
                }
                assert_eq!(fold_all(&value), expected as i128, "{shape:?} {iters:?} {at:?}");
            }
        }
    }

    #[test]
    fn an_iterator_in_which_a_dimension_ends_is_two() {
        let vars: Vec<Var> = ["a", "b", "c"].map(|n| Var::new(n, DType::INT32)).into();
        let coordinate: Vec<Expr> = vars.iter().map(Expr::var).collect();
        let shape = [4, 4, 32].map(Expr::int32);
        let offset = layout(&[(4, 1), (8, 4), (16, 32)]).memory_offset(&coordinate, &shape);
        let text = crate::ir::print_expr(&offset);
        assert_eq!(text, "a + b * 8 + c // 16 * 4 + c % 16 * 32");
    }

    #[test]
    fn iterators_that_go_on_are_one() {
        let i = Var::new("i", DType::INT32);
        let offset =
            layout(&[(4, 40), (8, 4), (2, 2), (2, 1)]).memory_offset(&[Expr::var(&i)], &[Expr::int32(128)]);
        let text = crate::ir::print_expr(&offset);
        assert_eq!(text, "i // 32 * 40 + i % 32");
    }

    #[test]
    fn a_ramp_stays_a_ramp() {
        let i = Var::new("i", DType::INT32);
        let ramp = Expr::ramp(Expr::int32(0), Expr::int32(1), 4);
        let offset = layout(&[(64, 4), (4, 1)])
            .memory_offset(&[Expr::var(&i), ramp], &[Expr::int32(64), Expr::int32(4)]);
        let ExprKind::Ramp { base, stride, lanes } = &offset.kind else {
            panic!("{offset:?}")
        };
        assert_eq!(*base, Expr::var(&i) * Expr::int32(4));
        assert!(stride.is_int(1) && *lanes == 4);
    }

    #[test]
    fn span_of_a_padded_layout() {
        assert!(layout(&[(4, 16), (8, 1)]).memory_span().is_int(56));
        assert!(layout(&[]).memory_span().is_int(1));
    }
}
