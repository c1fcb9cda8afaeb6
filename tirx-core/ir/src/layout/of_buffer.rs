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
            return Some(layout);
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
