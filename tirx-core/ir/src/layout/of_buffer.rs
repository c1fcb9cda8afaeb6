//! Where do the elements of a buffer lie in its storage?
//!
//! A buffer says it by a layout, by strides, or by neither. Allocation, views and the dispatch of tile primitives ask here,
//! so that all of them mean the same places.

use super::{Axis, Iter, Layout, TileLayout};
use crate::ir::{Buffer, Expr, View};

impl Layout {
    /// The layout of a buffer; `None` for one that has neither a layout nor strides.
    ///
    /// Strides beside the default layout are a layout of their own. A swizzle over one row of elements that is shorter than
    /// the buffer (`T.ComposeLayout(3, 3, 3, T.TileLayout(T.S[512:1]))`, one period) applies to the buffer's elements in order.
    /// Another layout of fewer elements than the buffer goes on along its first iterator, as its offsets do.
    pub fn from_buffer(buffer: &Buffer) -> Option<Layout> {
        let plain = |l: &Layout| l.is_row_major(&buffer.shape);
        if buffer.strides.is_empty() || !buffer.layout.as_ref().is_none_or(plain) {
            let layout = buffer.layout.clone()?;
            if let Layout::Compose(swizzle, tile) = &layout {
                let own: Vec<Expr> = tile.shard.iter().map(|i| i.extent.clone()).collect();
                let elements: Option<i128> = buffer.shape.iter().map(Expr::as_int).product();
                let in_order = tile.replica.is_empty() && Layout::Tile(tile.clone()).is_row_major(&own);
                if in_order && tile.const_size() != elements {
                    let rows = TileLayout {
                        offset: tile.offset.clone(),
                        ..Layout::row_major(&buffer.shape).tile().clone()
                    };
                    return Some(Layout::Compose(*swizzle, rows.into()));
                }
            }
            return Some(long_enough(layout, &buffer.shape));
        }
        let iter = |(extent, stride): (&Expr, &Expr)| Iter {
            extent: extent.clone(),
            stride: stride.clone(),
            axis: Axis::memory(),
        };
        let shard = buffer.shape.iter().zip(&buffer.strides).map(iter).collect();
        Some(Layout::Tile(TileLayout::from_shard(shard).into()))
    }
}

/// A layout in memory whose first iterator is so long that the layout has an element for each of a buffer's.
fn long_enough(layout: Layout, shape: &[Expr]) -> Layout {
    let tile = layout.tile();
    let elements: Option<i128> = shape.iter().map(Expr::as_int).product();
    let longer = match (elements, tile.const_size()) {
        (Some(elements), Some(size @ 1..)) if size < elements && !layout.has_hardware_axis() => {
            tile.shard.first().and_then(|first| {
                let others = size / first.extent.as_int()?;
                let extent = (elements + others - 1) / others;
                Some(Expr::constant(first.extent.dtype, extent))
            })
        }
        _ => None,
    };
    let Some(extent) = longer else { return layout };
    let mut tile = tile.clone();
    tile.shard[0].extent = extent;
    layout.with_tile(tile)
}

impl View {
    /// The view of a declaration over shared memory; `None` if its offset, its extents or its strides are no constants.
    pub fn from_buffer(buffer: &Buffer) -> Option<View> {
        if !matches!(buffer.scope(), "shared" | "shared.dyn") {
            return None;
        }
        let number = |e: &Expr| u64::try_from(e.as_int()?).ok();
        let element = buffer.dtype.storage_bits() as u32 * u32::from(buffer.dtype.lanes.max(1));
        let shape = buffer.shape.iter().map(number).collect::<Option<Vec<_>>>()?;
        let elements = shape.iter().try_fold(1u64, |n, extent| n.checked_mul(*extent))?;
        let offset = buffer.elem_offset.as_ref().map_or(Some(0), number)?;
        let mut reach = elements;
        let (mut steps, mut first, mut swizzle) = (Vec::new(), 0, None);
        if let Some(layout) = Layout::from_buffer(buffer)
            && !layout.is_row_major(&buffer.shape)
        {
            let tile = layout.tile();
            let step = |iter: &Iter| {
                let stride = i64::try_from(iter.stride.as_int()?).ok()?;
                (iter.axis.is_memory() && stride >= 0).then_some((number(&iter.extent)?, stride))
            };
            steps = tile.shard.iter().map(step).collect::<Option<_>>()?;
            tile.replica.iter().map(step).collect::<Option<Vec<_>>>()?;
            first = i64::try_from(number(&tile.offset_in_memory())?).ok()?;
            swizzle = layout.swizzle();
            reach = number(&layout.memory_span())?;
            // The last row of declared strides is as long as the others.
            if let (Some(stride), Some(extent)) = (buffer.strides.first(), shape.first()) {
                reach = reach.max(number(stride)?.checked_mul(*extent)?);
            }
        }
        let bits = |elements: u64| elements.checked_mul(u64::from(element));
        let start = bits(offset).filter(|bits| bits % 8 == 0)? / 8;
        let bytes = bits(reach)?.div_ceil(8);
        let view = View {
            name: buffer.name.clone(),
            start,
            bytes,
            element,
            shape,
            steps,
            first,
            swizzle,
        };
        view.is_small().then_some(view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{DType, Var};
    use std::sync::Arc;

    use crate::layout::Swizzle;
    use crate::source::Span;

    fn shared(shape: &[i32], change: impl FnOnce(&mut crate::ir::BufferNode)) -> Option<View> {
        let shape = shape.iter().map(|n| Expr::int32(*n)).collect();
        View::from_buffer(&Buffer::fresh("A", shape, DType::FLOAT32, "shared.dyn", Span::NONE).with(change))
    }

    #[test]
    fn a_view_reaches_as_far_as_its_elements() {
        let plain = shared(&[4, 8], |n| n.elem_offset = Some(Expr::int32(64))).unwrap();
        assert_eq!((plain.start, plain.bytes, plain.steps.len()), (256, 128, 0));
        let padded = shared(&[4, 8], |n| n.strides = vec![Expr::int32(9), Expr::int32(1)]).unwrap();
        assert_eq!((padded.bytes, padded.steps), (144, vec![(4, 9), (8, 1)]));
        let transposed = |swizzle: Option<Swizzle>| {
            let tile = Arc::new(TileLayout::from_shard(vec![
                Iter::memory(4, 1),
                Iter::memory(8, 4),
            ]));
            shared(&[4, 8], |n| {
                n.layout = Some(match swizzle {
                    None => Layout::Tile(tile),
                    Some(swizzle) => Layout::Compose(swizzle, tile),
                });
            })
        };
        assert_eq!(transposed(None).unwrap().bytes, 128);
        let swizzle = Swizzle {
            per_element: 3,
            swizzle_len: 3,
            atom_len: 3,
            inner: true,
        };
        assert_eq!(transposed(Some(swizzle)).unwrap().bytes, 256);
    }

    #[test]
    fn only_constants_in_shared_memory_are_a_view() {
        let at = Var::new("at", DType::INT32);
        assert_eq!(shared(&[4], |n| n.elem_offset = Some(Expr::var(&at))), None);
        assert_eq!(shared(&[0], |_| {}), None);
        let threads = Iter {
            axis: Axis("laneid".into()),
            ..Iter::memory(4, 1)
        };
        let spread = Layout::Tile(TileLayout::from_shard(vec![threads]).into());
        assert_eq!(shared(&[4], |n| n.layout = Some(spread)), None);
        let global = Buffer::fresh("A", vec![Expr::int32(4)], DType::FLOAT32, "global", Span::NONE);
        assert_eq!(View::from_buffer(&global), None);
    }
}
