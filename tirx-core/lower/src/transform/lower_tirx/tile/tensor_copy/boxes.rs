//! Which boxes of which tensor map make a copy between a region of global memory and a region of shared memory.
//!
//! **Idea.** Both regions enumerate the same elements in row-major order. Their layouts are split into common *pieces*: runs
//! of digits with one stride in shared memory and one along an axis of the global tensor. Sorted by their shared strides,
//! the first pieces that follow each other without gaps make the box; every other piece is counted by a loop that
//! issues one copy for each of its digits.
//!
//! A piece that is only a part of an axis needs a dimension of the map of its own: the columns of a tile of 128-byte
//! rows, two tiles side by side, are the axis `K` as two dimensions `(64, K / 64)`. That is exact only if the region begins at
//! a multiple of 64 and 64 divides `K`; where that cannot be proved, the outer piece is counted by the loop, so that ragged
//! edges are filled and cut as the hardware does for a dimension.
//!
//! Everything is computed in *units*: elements, or bytes that hold several elements of fewer than 8 bits.
//!
//! Source: CUDA driver API, "Tensor Map Object Management" (limits of boxes, strides and swizzles).

mod dims;

use crate::arith::Analyzer;
use crate::ir::abi::tensor_map::has_data_type;
use crate::ir::{BinOp, BufferRegion, DType, Expr};
use crate::layout::apply::binary;
use crate::layout::{Iter, Layout, Swizzle, TileAlgebra};

use super::super::multiples::{divided, quotient, remainder};
use super::super::operands::{layout, sliced_to};

/// Most dimensions of a tensor map.
const MAX_DIMENSIONS: usize = 5;
/// Most units of a box along one dimension.
const LARGEST_BOX: i128 = 256;
/// The innermost extent of a box is a multiple of this many bytes, and so is every stride of the tensor.
const GRANULE: i128 = 16;
/// Rows of a box that have so many bytes are copied at full speed.
const LONG_ROW: i128 = 128;
/// Shared memory of a tensor copy begins at a multiple of this many bytes.
const SHARED_ALIGNMENT: i128 = 128;

/// What the map counts: one element, or a byte of several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unit {
    /// The dtype of the map.
    pub(super) dtype: DType,
    /// Elements in a unit.
    pub(super) elements: i128,
}

impl Unit {
    /// The unit for elements of a dtype.
    pub(super) fn from_dtype(dtype: DType) -> Result<Unit, String> {
        let plain = |dtype| Ok(Unit { dtype, elements: 1 });
        match (dtype.lanes, dtype.bits) {
            (1, 4) => Ok(Unit {
                dtype: DType::UINT8,
                elements: 2,
            }),
            (1, 8) if !has_data_type(dtype) => plain(DType::UINT8),
            (1, 8 | 16 | 32 | 64) => plain(dtype),
            _ => Err(format!("tensor copies have no elements of dtype {dtype}")),
        }
    }

    /// Units of twice, four and eight times the width, up to 64 bits.
    fn wider(self) -> impl Iterator<Item = Unit> {
        let wide = [DType::UINT16, DType::UINT32, DType::UINT64];
        wide.into_iter()
            .filter(move |w| w.bits > self.dtype.bits)
            .map(move |dtype| Unit {
                dtype,
                elements: self.elements * i128::from(dtype.bits / self.dtype.bits),
            })
    }

    /// Bytes of a unit.
    pub(super) fn bytes(self) -> i128 {
        i128::from(self.dtype.bits) / 8
    }
}

/// A dimension of the tensor map and of its boxes, in units.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Dim {
    /// Extent of the tensor.
    pub(super) extent: Expr,
    /// Units from one index to the next in global memory.
    pub(super) stride: Expr,
    /// Extent of the box.
    pub(super) size: i128,
    /// The box's first index, in the first copy.
    pub(super) at: Expr,
}

/// A loop over copies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Turn {
    /// Copies.
    pub(super) count: i128,
    /// Units from one copy's shared memory to the next's.
    pub(super) shared: i128,
    /// The dimension that advances.
    pub(super) dim: usize,
    /// By how much.
    pub(super) step: i128,
}

/// The boxes of a copy.
#[derive(Clone, Debug)]
pub(super) struct Boxes {
    pub(super) unit: Unit,
    /// `CUtensorMapSwizzle`.
    pub(super) swizzle: u32,
    /// Innermost first.
    pub(super) dims: Vec<Dim>,
    /// Outermost first.
    pub(super) turns: Vec<Turn>,
    /// Offset of the first copy's shared memory, in elements, before any swizzle and apart from the buffer's own offset.
    pub(super) shared_at: Expr,
}

/// An axis of the global tensor: an iterator of its layout.
#[derive(Clone, Debug)]
struct Axis {
    extent: Expr,
    stride: Expr,
    at: Expr,
    copied: i128,
}

/// Digits with one stride on each side.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    axis: usize,
    /// Distance of its digits on the axis.
    step: i128,
    extent: i128,
    /// Distance of its digits in shared memory.
    shared: i128,
}

/// The swizzle mode of tensor maps that a layout's swizzle is: 0 none, 1 to 3 for 32, 64 and 128 bytes.
pub(super) fn swizzle_mode(swizzle: Option<Swizzle>, bits: u32) -> Result<u32, String> {
    let Some(swizzle) = swizzle.filter(|s| s.swizzle_len > 0) else {
        return Ok(0);
    };
    let chunk = (1i128 << swizzle.per_element) * i128::from(bits);
    if chunk != 128 {
        return Err(format!(
            "the swizzle moves chunks of {chunk} bits, tensor copies move chunks of 16 bytes"
        ));
    }
    if swizzle.atom_len != 3 || swizzle.swizzle_len > 3 {
        return Err(format!(
            "tensor copies swizzle 1 to 3 bits of the chunk by those 3 bits above, found {} by those {} above",
            swizzle.swizzle_len, swizzle.atom_len
        ));
    }
    if !swizzle.inner {
        return Err(
            "the swizzle changes the upper bits, tensor copies change the lower ones (swizzle_inner)".into(),
        );
    }
    Ok(swizzle.swizzle_len)
}

/// The layout of a region, in memory alone and without its swizzle.
fn in_memory(layout: &Layout, name: &str) -> Result<(), String> {
    if layout.has_hardware_axis() || layout.tile().offset.iter().any(|(axis, _)| !axis.is_memory()) {
        return Err(format!("{name} is spread over threads"));
    }
    if !layout.tile().replica.is_empty() {
        return Err(format!("the layout of {name} holds elements several times"));
    }
    Ok(())
}

/// A region of shared memory.
pub(in super::super) struct SharedSide {
    /// Extents and strides of its iterators, in row-major order.
    pub(in super::super) iters: Vec<(i128, i128)>,
    /// The place of its first element, before any swizzle.
    pub(in super::super) offset: Expr,
    /// The swizzle of its buffer.
    pub(in super::super) swizzle: Option<Swizzle>,
    /// Bits of an element.
    bits: u32,
}

impl SharedSide {
    /// The swizzle as a mode of tensor maps.
    pub(super) fn mode(&self) -> Result<u32, String> {
        swizzle_mode(self.swizzle, self.bits)
    }

    /// The region in shared memory.
    pub(in super::super) fn from_region(
        region: &BufferRegion,
        facts: &mut Analyzer,
    ) -> Result<SharedSide, String> {
        let buffer = &region.buffer;
        let name = &buffer.name;
        let layout = layout(region)?;
        in_memory(&layout, name)?;
        let bits = u32::from(buffer.dtype.bits) * u32::from(buffer.dtype.lanes);
        let swizzle = layout.swizzle().filter(|s| s.swizzle_len > 0);
        let ranges = constant_extents(region, facts)?;
        let sliced = sliced_to(region, &ranges, facts)?;
        let tile = sliced.tile().canonical(false);
        let mut iters = Vec::new();
        for iter in tile.shard.iter().filter(|i| !i.extent.is_int(1)) {
            match (iter.extent.as_int(), iter.stride.as_int()) {
                (Some(extent), Some(stride)) => iters.push((extent, stride)),
                _ => return Err(format!("extents and strides of {name} are not constants")),
            }
        }
        let offset = facts.simplify(&tile.offset_in_memory());
        Ok(SharedSide {
            iters,
            offset,
            swizzle,
            bits,
        })
    }
}

/// The ranges of a region, with extents that are constants once simplified as such.
pub(super) fn constant_extents(
    region: &BufferRegion,
    facts: &mut Analyzer,
) -> Result<Vec<(Expr, Expr)>, String> {
    let simple = |(d, (begin, extent)): (usize, &(Expr, Expr))| {
        let simple = facts.simplify(extent);
        match simple.as_int() {
            Some(_) => Ok((begin.clone(), simple)),
            None => Err(format!(
                "the extent of dimension {d} of the region of {} is not a constant",
                region.buffer.name
            )),
        }
    };
    region.ranges.iter().enumerate().map(simple).collect()
}

/// The boxes of a copy between `global` and `shared`. With `wider` several elements may be counted as one wider element,
/// where rows are short or more than one copy would be needed: the data is only moved.
pub(super) fn boxes(
    global: &BufferRegion,
    shared: &BufferRegion,
    wider: bool,
    facts: &mut Analyzer,
) -> Result<Boxes, String> {
    let unit = Unit::from_dtype(global.buffer.dtype)?;
    let side = SharedSide::from_region(shared, facts)?;
    let axes = axes(global, facts)?;
    let mut pieces =
        pieces(&axes, &side.iters).ok_or("the rows of the two regions do not split into common boxes")?;
    pieces.sort_by_key(|p| p.shared);
    let mut best = boxes_of_units(&side, &axes, &pieces, unit, facts);
    if wider && side.swizzle.is_none() {
        for unit in unit.wider() {
            if best.as_ref().is_ok_and(|b| b.effort() == (1, 1)) {
                break;
            }
            if let Ok(other) = boxes_of_units(&side, &axes, &pieces, unit, facts)
                && best.as_ref().map_or(true, |b| other.effort() < b.effort())
            {
                best = Ok(other);
            }
        }
    }
    best
}

/// The same with a certain unit.
fn boxes_of_units(
    side: &SharedSide,
    axes: &[Axis],
    pieces: &[Piece],
    unit: Unit,
    facts: &mut Analyzer,
) -> Result<Boxes, String> {
    let swizzle = side.mode()?;
    let (mut axes, mut pieces) = (axes.to_vec(), pieces.to_vec());
    in_units(&mut axes, &mut pieces, unit, facts)?;
    let row = match swizzle {
        0 => LARGEST_BOX,
        mode => ((GRANULE << mode) / unit.bytes()).min(LARGEST_BOX),
    };
    let pieces = within_limits(&pieces, row, unit);
    let mut reason = String::new();
    // The more pieces are in the box, the fewer copies there are.
    for boxed in (1..=dense(&pieces)).rev() {
        let made = dimensions(&axes, &pieces, boxed, facts).and_then(|(dims, turns)| {
            let mut boxes = Boxes {
                unit,
                swizzle,
                dims,
                turns,
                shared_at: side.offset.clone(),
            };
            boxes.merge(row, facts);
            boxes.legal(facts).map(|()| boxes)
        });
        match made {
            Ok(boxes) => return Ok(boxes),
            Err(why) => reason = why,
        }
    }
    Err(reason)
}

fn constant(like: &Expr, value: i128) -> Expr {
    Expr::constant(like.dtype.element(), value)
}

fn scaled(e: &Expr, by: i128) -> Expr {
    binary(BinOp::Mul, e.clone(), constant(e, by))
}

/// The axes of the global region, in row-major order.
fn axes(region: &BufferRegion, facts: &mut Analyzer) -> Result<Vec<Axis>, String> {
    let buffer = &region.buffer;
    let name = &buffer.name;
    let layout = layout(region)?;
    in_memory(&layout, name)?;
    if layout.swizzle().is_some_and(|s| s.swizzle_len > 0) {
        return Err(format!("{name}, in global memory, is swizzled"));
    }
    let ranges = constant_extents(region, facts)?;
    let (grouped, starts) = layout
        .tile()
        .group(&buffer.shape)
        .ok_or_else(|| format!("the layout of {name} does not split along its shape"))?;
    let mut all = Vec::new();
    for (d, (begin, extent)) in ranges.iter().enumerate() {
        let run = &grouped.shard[starts[d]..starts[d + 1]];
        let copied = extent.as_int().unwrap_or(0);
        if copied < 1 {
            return Err(format!("the region of {name} is empty"));
        }
        let axes = axes_of_dimension(run, begin, copied, facts).ok_or_else(|| {
            format!("the region of {name} begins or ends within an iterator of its layout (dimension {d})")
        })?;
        all.extend(axes);
    }
    Ok(all)
}

/// A dimension of a shape by the iterators of its layout.
fn axes_of_dimension(run: &[Iter], begin: &Expr, copied: i128, facts: &mut Analyzer) -> Option<Vec<Axis>> {
    let mut axes = Vec::new();
    let (mut left, mut begin) = (copied, facts.simplify(begin));
    for (position, iter) in run.iter().enumerate().rev() {
        let (at, here) = if position == 0 {
            (begin.clone(), left)
        } else {
            let extent = iter.extent.as_int()?;
            let here = if left % extent == 0 { extent } else { left };
            if extent % here != 0 {
                return None;
            }
            // The region stays within one period of this iterator.
            divided(&begin, here, facts)?;
            let at = remainder(&begin, extent, facts);
            begin = quotient(&begin, extent, facts);
            (at, here)
        };
        left /= here;
        axes.push(Axis {
            extent: iter.extent.clone(),
            stride: iter.stride.clone(),
            at,
            copied: here,
        });
    }
    axes.reverse();
    Some(axes)
}

/// The common pieces of the global axes and of the shared iterators, both in row-major order.
fn pieces(axes: &[Axis], shared: &[(i128, i128)]) -> Option<Vec<Piece>> {
    let mut found = Vec::new();
    let mut axis = axes.len();
    // What is left of the current axis, and the digits of it that are done.
    let (mut left, mut step) = (1, 1);
    for &(extent, stride) in shared.iter().rev() {
        let (mut need, mut stride) = (extent, stride);
        while need > 1 {
            while left == 1 {
                axis = axis.checked_sub(1)?;
                (left, step) = (axes[axis].copied, 1);
            }
            let extent = match (need % left, left % need) {
                (0, _) => left,
                (_, 0) => need,
                _ => return None,
            };
            found.push(Piece {
                axis,
                step,
                extent,
                shared: stride,
            });
            (need, stride) = (need / extent, stride * extent);
            (left, step) = (left / extent, step * extent);
        }
    }
    let rest = axes[..axis].iter().all(|a| a.copied == 1);
    (left == 1 && rest).then_some(found)
}

/// The common runs of two regions of shared memory: count, stride in the first, stride in the second.
pub(in super::super) fn common_runs(a: &[(i128, i128)], b: &[(i128, i128)]) -> Option<Vec<[i128; 3]>> {
    let axis = |(extent, stride): &(i128, i128)| Axis {
        extent: Expr::int32(*extent as i32),
        stride: Expr::int32(*stride as i32),
        at: Expr::int32(0),
        copied: *extent,
    };
    let axes: Vec<Axis> = b.iter().map(axis).collect();
    let run = |p: &Piece| [p.extent, p.shared, p.step * b[p.axis].1];
    Some(pieces(&axes, a)?.iter().map(run).collect())
}

/// Elements of fewer than 8 bits as bytes.
fn in_units(axes: &mut [Axis], pieces: &mut [Piece], unit: Unit, facts: &mut Analyzer) -> Result<(), String> {
    let Some(first) = pieces.first().copied() else {
        return Err("a tensor copy moves at least 16 bytes, found one element".to_string());
    };
    let name = "the innermost dimension";
    if first.shared != 1 {
        return Err(format!("{name} is not contiguous in shared memory"));
    }
    if first.step != 1 || !axes[first.axis].stride.is_int(1) {
        return Err(format!("{name} of the tile is not contiguous in global memory"));
    }
    let per = unit.elements;
    if per == 1 {
        return Ok(());
    }
    let whole = || format!("{name} does not consist of whole bytes");
    for (i, axis) in axes.iter_mut().enumerate() {
        if i == first.axis {
            axis.extent = divided(&axis.extent, per, facts).ok_or_else(whole)?;
            axis.at = divided(&axis.at, per, facts).ok_or_else(whole)?;
            axis.copied /= per;
        } else {
            axis.stride = divided(&axis.stride, per, facts).ok_or_else(whole)?;
        }
    }
    for (i, piece) in pieces.iter_mut().enumerate() {
        let inner = if i == 0 { piece.extent } else { piece.shared };
        if inner % per != 0 {
            return Err(whole());
        }
        if i == 0 {
            piece.extent /= per;
        } else {
            piece.shared /= per;
            if piece.axis == first.axis {
                piece.step /= per;
            }
        }
    }
    Ok(())
}

/// The pieces, cut where a box may not be larger: the first one at `inner` units.
fn within_limits(pieces: &[Piece], inner: i128, unit: Unit) -> Vec<Piece> {
    let mut cut = Vec::new();
    for (i, piece) in pieces.iter().enumerate() {
        let mut rest = *piece;
        let mut most = if i == 0 { inner } else { LARGEST_BOX };
        while rest.extent > most {
            let allowed =
                |n: &i128| rest.extent % n == 0 && (!cut.is_empty() || n * unit.bytes() % GRANULE == 0);
            let size = (1..=most).rev().find(allowed).unwrap_or(1);
            if size == 1 {
                break;
            }
            cut.push(Piece { extent: size, ..rest });
            rest = Piece {
                extent: rest.extent / size,
                step: rest.step * size,
                shared: rest.shared * size,
                ..rest
            };
            most = LARGEST_BOX;
        }
        cut.push(rest);
    }
    cut
}

/// How many of the first pieces follow each other without gaps, none larger than a box.
fn dense(pieces: &[Piece]) -> usize {
    let mut next = 1;
    let fits = |p: &&Piece| {
        let fits = p.shared == next && p.extent <= LARGEST_BOX;
        next = p.shared * p.extent;
        fits
    };
    pieces.iter().take_while(fits).count()
}

/// The dimensions of the map and the loops, where the first `boxed` pieces make the box.
fn dimensions(
    axes: &[Axis],
    pieces: &[Piece],
    boxed: usize,
    facts: &mut Analyzer,
) -> Result<(Vec<Dim>, Vec<Turn>), String> {
    // (axis, first digit) of each dimension, with its place in the order of shared memory.
    let mut parts: Vec<(usize, i128, usize)> = Vec::new();
    for (place, piece) in pieces[..boxed].iter().enumerate() {
        parts.push((piece.axis, piece.step, place));
    }
    for axis in (0..axes.len()).rev() {
        if !parts.iter().any(|(a, step, _)| *a == axis && *step == 1) {
            parts.push((axis, 1, usize::MAX));
        }
    }
    let mut dims = Vec::new();
    for (axis, step, place) in &parts {
        let from = &axes[*axis];
        let inner = |(a, s, _): &&(usize, i128, usize)| a == axis && s > step;
        let next = parts.iter().filter(inner).map(|(_, s, _)| *s).min();
        let last = parts.iter().filter(|(a, ..)| a == axis).map(|(_, s, _)| *s).max();
        let last = last.unwrap_or(1);
        let split = || {
            format!(
                "it cannot be proved that the region begins, and its dimension ends, at a multiple of {last}"
            )
        };
        let at = divided(&from.at, last, facts).ok_or_else(split)?;
        let extent = divided(&from.extent, last, facts).ok_or_else(split)?;
        dims.push(Dim {
            extent: match next {
                Some(next) => Expr::int32((next / step) as i32),
                None => extent,
            },
            stride: scaled(&from.stride, *step),
            size: pieces.get(*place).map_or(1, |p| p.extent),
            at: match next {
                Some(_) => Expr::int32(0),
                None => at,
            },
        });
    }
    let mut turns = Vec::new();
    for piece in pieces[boxed..].iter().rev() {
        let on = |(a, s, _): &&(usize, i128, usize)| *a == piece.axis && piece.step % s == 0;
        let dim = parts.iter().filter(on).max_by_key(|(_, s, _)| *s);
        let Some(dim) = dim.and_then(|d| parts.iter().position(|p| p == d)) else {
            return Err("the loop over boxes has no dimension of its own".to_string());
        };
        turns.push(Turn {
            count: piece.extent,
            shared: piece.shared,
            dim,
            step: piece.step / parts[dim].1,
        });
    }
    Ok((dims, turns))
}

#[cfg(test)]
mod tests;
