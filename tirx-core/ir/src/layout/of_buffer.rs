//! Where do the elements of a buffer lie in its storage?
//!
//! A buffer says it by a layout, by strides, or by neither. Allocation, views and the dispatch of tile primitives ask here,
//! so that all of them mean the same places.

use super::{Axis, Iter, Layout, TileLayout};
use crate::ir::{Buffer, Expr};

impl Layout {
    /// The layout of a buffer; `None` for one that has neither a layout nor strides.
    ///
    /// Strides beside the default layout are a layout of their own. A swizzle over one row of elements that is shorter than
    /// the buffer (`T.ComposeLayout(3, 3, 3, T.TileLayout(T.S[512:1]))`, one period) applies to the buffer's elements in order.
    /// Another layout of fewer elements than the buffer goes on along its first iterator, as its offsets do.
    pub fn of(buffer: &Buffer) -> Option<Layout> {
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
        Some(Layout::Tile(TileLayout::of(shard).into()))
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
