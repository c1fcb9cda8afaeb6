//! Operations on layouts that views need: elements of another width, the memory part, runs of iterators per dimension.

use std::sync::Arc;

use super::super::typing::{self, Arithmetic, Operand};
use crate::diagnostic::{Diagnostic, Result};
use crate::ir::{DType, Expr};
use crate::layout::axes::is_hardware;
use crate::layout::{Axis, Iter, Layout, Swizzle, TileLayout};
use crate::source::Span;

/// The iterators on memory axes alone.
pub(super) fn storage(layout: &Layout) -> Layout {
    let tile = layout.tile();
    let keep = |list: &[Iter]| list.iter().filter(|i| !is_hardware(&i.axis)).cloned().collect();
    layout.with_tile(TileLayout {
        shard: keep(&tile.shard),
        replica: keep(&tile.replica),
        offset: tile
            .offset
            .iter()
            .filter(|(a, _)| !is_hardware(a))
            .cloned()
            .collect(),
    })
}

/// The swizzle for elements `num` times as wide (`wider`) or as narrow: chunks keep their size in bytes.
fn resized(layout: &Layout, tile: TileLayout, num: i128, wider: bool, span: Span) -> Result<Layout> {
    let Some(swizzle) = layout.swizzle() else {
        return Ok(Layout::Tile(Arc::new(tile)));
    };
    let bits = num.max(1).trailing_zeros();
    let per_element = if wider {
        swizzle.per_element.checked_sub(bits)
    } else {
        Some(swizzle.per_element + bits)
    };
    match per_element {
        Some(per_element) if num.count_ones() == 1 => {
            let swizzle = Swizzle {
                per_element,
                ..swizzle
            };
            Ok(Layout::Compose(swizzle, Arc::new(tile)))
        }
        _ => crate::diagnostic::error(
            span,
            format!(
                "a swizzle of chunks of {} elements cannot be resized by {num}",
                1 << swizzle.per_element
            ),
        ),
    }
}

/// The layout of elements `num` times as wide.
pub(super) fn pack(layout: &Layout, num: i128, span: Span) -> Result<Layout> {
    let tile = layout.tile();
    let fits = |i: &Iter| {
        i.stride.is_int(1) && !is_hardware(&i.axis) && i.extent.as_int().is_some_and(|e| e % num == 0)
    };
    if num < 1 || !tile.shard.last().is_some_and(fits) {
        let diagnostic = Diagnostic::new(span, format!("the layout cannot be packed by {num}"));
        return Err(Box::new(
            diagnostic.label("the last dimension must be contiguous and divisible"),
        ));
    }
    let by = |e: &Expr| typing::binary(Arithmetic::FloorDiv, e.clone().into(), Operand::Int(num), span);
    let mut shard = tile.shard.clone();
    if let Some((last, outer)) = shard.split_last_mut() {
        last.extent = by(&last.extent)?;
        for iter in outer {
            iter.stride = by(&iter.stride)?;
        }
    }
    let tile = TileLayout {
        shard,
        ..tile.clone()
    };
    resized(layout, tile, num, true, span)
}

/// The layout of elements `num` times as narrow.
pub(super) fn unpack(layout: &Layout, num: i128, span: Span) -> Result<Layout> {
    let tile = layout.tile();
    let mut shard = tile.shard.clone();
    for iter in &mut shard {
        iter.stride = typing::binary(
            Arithmetic::Mul,
            iter.stride.clone().into(),
            Operand::Int(num),
            span,
        )?;
    }
    shard.push(Iter {
        extent: typing::constant(DType::INT32, num, span)?,
        stride: Expr::int32(1).at(span),
        axis: Axis::memory(),
    });
    let tile = TileLayout {
        shard,
        ..tile.clone()
    };
    resized(layout, tile, num, false, span)
}

/// The iterators split so that each dimension of `shape` owns a run of them; `None` where the shape does not align.
pub(super) fn group(tile: &TileLayout, shape: &[Expr], span: Span) -> Result<Option<Vec<Vec<Iter>>>> {
    let mut rest = tile.shard.clone();
    let mut groups = Vec::with_capacity(shape.len());
    for extent in shape.iter().rev() {
        let mut run = Vec::new();
        let mut need = extent.clone();
        loop {
            let unit = rest.last().is_some_and(|i| i.extent.is_int(1));
            if need.is_int(1) && !(unit && run.is_empty()) {
                break;
            }
            let Some(last) = rest.pop() else { return Ok(None) };
            match (need.as_int(), last.extent.as_int()) {
                _ if last.extent == need => {
                    run.push(last);
                    need = Expr::int32(1);
                }
                (Some(n), Some(e)) if e > 0 && n % e == 0 => {
                    run.push(last);
                    need = Expr::constant(need.dtype, n / e).at(span);
                }
                (Some(n), Some(e)) if n > 0 && e % n == 0 => {
                    let step = |k: i128| {
                        typing::binary(Arithmetic::Mul, last.stride.clone().into(), Operand::Int(k), span)
                    };
                    rest.push(Iter {
                        extent: Expr::constant(last.extent.dtype, e / n).at(span),
                        stride: step(n)?,
                        axis: last.axis.clone(),
                    });
                    run.push(Iter {
                        extent: need.clone(),
                        stride: last.stride.clone(),
                        axis: last.axis.clone(),
                    });
                    need = Expr::int32(1);
                }
                _ => return Ok(None),
            }
        }
        // A dimension of one element, which no iterator represents.
        if run.is_empty() {
            run.push(Iter {
                extent: Expr::constant(extent.dtype, 1).at(span),
                stride: Expr::constant(extent.dtype, 1).at(span),
                axis: Axis::memory(),
            });
        }
        run.reverse();
        groups.push(run);
    }
    groups.reverse();
    Ok(rest.iter().all(|i| i.extent.is_int(1)).then_some(groups))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile(iters: &[(i32, i32)]) -> TileLayout {
        TileLayout {
            shard: iters
                .iter()
                .map(|(e, s)| Iter {
                    extent: Expr::int32(*e),
                    stride: Expr::int32(*s),
                    axis: Axis::memory(),
                })
                .collect(),
            ..TileLayout::default()
        }
    }

    fn grouped(iters: &[(i32, i32)], shape: &[i32]) -> Option<Vec<Vec<(i128, i128)>>> {
        let shape: Vec<Expr> = shape.iter().map(|e| Expr::int32(*e)).collect();
        let groups = group(&tile(iters), &shape, Span::NONE).unwrap()?;
        let pair = |i: &Iter| (i.extent.as_int().unwrap(), i.stride.as_int().unwrap());
        Some(groups.iter().map(|run| run.iter().map(pair).collect()).collect())
    }

    #[test]
    fn shapes_split_iterators() {
        // 16 rows of 16 seen as (64, 4).
        assert_eq!(
            grouped(&[(16, 16), (16, 1)], &[64, 4]),
            Some(vec![vec![(16, 16), (4, 4)], vec![(4, 1)]])
        );
        assert_eq!(
            grouped(&[(1, 8), (8, 1)], &[1, 8]),
            Some(vec![vec![(1, 8)], vec![(8, 1)]])
        );
        assert_eq!(grouped(&[(4, 8), (8, 1)], &[3, 8]), None);
    }

    #[test]
    fn packing_divides_strides() {
        let layout = |iters: &[(i32, i32)]| Layout::Tile(Arc::new(tile(iters)));
        let packed = pack(&layout(&[(4, 8), (8, 1)]), 2, Span::NONE).unwrap();
        assert_eq!(packed, layout(&[(4, 4), (4, 1)]));
        let unpacked = unpack(&layout(&[(4, 8), (8, 1)]), 2, Span::NONE).unwrap();
        assert_eq!(unpacked, layout(&[(4, 16), (8, 2), (2, 1)]));
        assert!(pack(&layout(&[(4, 1), (8, 4)]), 2, Span::NONE).is_err());
    }
}
