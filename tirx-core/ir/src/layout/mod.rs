//! Layouts: how a logical coordinate becomes a physical one.
//!
//! A [`TileLayout`] splits the row-major flattened coordinate over its *shard* iterators: iterator `i` of extent
//! `e` contributes `digit * stride` on its axis. The axis `m` is memory, in elements; others are hardware axes
//! (`laneid`, `warpid`, `tid_in_wg`, …). *Replica* iterators give further places that hold the same element; `offset` is added on
//! each axis. Written `T.TileLayout(T.S[(4, 8):(8, 1)])`.
//!
//! Here is what a layout is and which place it gives a coordinate; operations on layouts are the crate `tirx-layout`.

pub mod apply;
mod of_buffer;

use std::sync::Arc;

use crate::ir::changed::map_changed;
use crate::ir::{Expr, substitute};

/// The memory axis, in text.
pub const MEMORY: &str = "m";

/// An axis of a layout: `m` is memory (elements).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Axis(pub Arc<str>);

impl Axis {
    /// The memory axis.
    pub fn memory() -> Axis {
        Axis(MEMORY.into())
    }

    /// Whether it is the memory axis.
    pub fn is_memory(&self) -> bool {
        &*self.0 == MEMORY
    }
}

/// One iterator: `extent` digits that step by `stride` on `axis`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Iter {
    /// How many digits.
    pub extent: Expr,
    /// Step of one digit, in elements of the axis.
    pub stride: Expr,
    /// Where it steps.
    pub axis: Axis,
}

/// Shard, replica and offset. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct TileLayout {
    /// Iterators of the element's coordinate, outermost first.
    pub shard: Vec<Iter>,
    /// Iterators over places with copies.
    pub replica: Vec<Iter>,
    /// Constant offsets by axis, in order of writing.
    pub offset: Vec<(Axis, Expr)>,
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
}

impl TileLayout {
    /// A layout of iterators alone.
    pub fn from_shard(shard: Vec<Iter>) -> TileLayout {
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

    /// The offset in memory; zero where there is none.
    pub fn offset_in_memory(&self) -> Expr {
        let found = self.offset.iter().find(|(axis, _)| axis.is_memory());
        found.map_or_else(|| Expr::int32(0), |(_, e)| e.clone())
    }

    /// The layout with `by` added to the offset on an axis.
    pub fn shifted(mut self, axis: &Axis, by: &Expr) -> TileLayout {
        if by.is_int(0) {
            return self;
        }
        match self.offset.iter_mut().find(|(a, _)| a == axis) {
            Some((_, offset)) => *offset = apply::binary(crate::ir::BinOp::Add, offset.clone(), by.clone()),
            None => self.offset.push((axis.clone(), by.clone())),
        }
        self
    }

    /// Whether it is one row of `shape` after the other, without an offset.
    pub fn is_row_major(&self, shape: &[Expr]) -> bool {
        let mut iters = self.shard.iter().rev();
        self.shard.len() == shape.len()
            && self.offset.is_empty()
            && self.replica.is_empty()
            && row_major_strides(shape, |extent, stride| {
                iters
                    .next()
                    .is_some_and(|i| i.axis.is_memory() && i.extent == *extent && i.stride == *stride)
            })
    }

    /// The iterators in another order.
    pub fn permuted(&self, order: &[usize]) -> TileLayout {
        TileLayout {
            shard: order.iter().map(|i| self.shard[*i].clone()).collect(),
            ..self.clone()
        }
    }
}

/// An exclusive-or of address bits: `T.ComposeLayout(per_element, swizzle_len, atom_len, layout)`.
///
/// Elements move in chunks of `2^per_element`. Of the chunk's number, the `swizzle_len` bits from bit `atom_len` on are
/// exclusive-ored into the lowest `swizzle_len` bits (`inner`), or the lowest ones into those.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Swizzle {
    /// Elements of a chunk, as a power of two.
    pub per_element: u32,
    /// Number of bits that are exclusive-ored.
    pub swizzle_len: u32,
    /// How far the two groups of bits are apart; at least `swizzle_len`.
    pub atom_len: u32,
    /// Whether the lower bits are the ones that change.
    pub inner: bool,
}

/// Calls `f` with each extent and its stride in row-major order, the innermost first, as long as it gives true. Gives
/// whether it always did.
fn row_major_strides(shape: &[Expr], mut f: impl FnMut(&Expr, &Expr) -> bool) -> bool {
    let mut outer: Option<Expr> = None;
    for (i, extent) in shape.iter().enumerate().rev() {
        let stride = outer.unwrap_or_else(|| Expr::constant(extent.dtype, 1));
        if !f(extent, &stride) {
            return false;
        }
        outer = match i {
            0 => None,
            _ if i + 1 == shape.len() => Some(extent.clone()),
            _ => Some(apply::binary(crate::ir::BinOp::Mul, stride, extent.clone())),
        };
    }
    true
}

/// A layout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Strided iterators.
    Tile(Arc<TileLayout>),
    /// Strided iterators whose memory offset is then swizzled.
    Compose(Swizzle, Arc<TileLayout>),
}

impl Layout {
    /// The iterators, before any swizzle.
    pub fn tile(&self) -> &TileLayout {
        match self {
            Layout::Tile(tile) | Layout::Compose(_, tile) => tile,
        }
    }

    /// The swizzle, where there is one.
    pub fn swizzle(&self) -> Option<Swizzle> {
        match self {
            Layout::Tile(_) => None,
            Layout::Compose(swizzle, _) => Some(*swizzle),
        }
    }

    /// The same swizzle over other iterators.
    pub fn with_tile(&self, tile: TileLayout) -> Layout {
        match self {
            Layout::Tile(_) => Layout::Tile(Arc::new(tile)),
            Layout::Compose(swizzle, _) => Layout::Compose(*swizzle, Arc::new(tile)),
        }
    }

    /// Compact row-major on the memory axis: the default layout.
    pub fn row_major(shape: &[Expr]) -> Layout {
        let mut shard: Vec<Iter> = Vec::with_capacity(shape.len());
        row_major_strides(shape, |extent, stride| {
            shard.push(Iter {
                extent: extent.clone(),
                stride: stride.clone(),
                axis: Axis::memory(),
            });
            true
        });
        shard.reverse();
        Layout::Tile(Arc::new(TileLayout {
            shard,
            ..TileLayout::default()
        }))
    }

    /// Whether it is what [`Layout::row_major`] gives for `shape`.
    pub fn is_row_major(&self, shape: &[Expr]) -> bool {
        matches!(self, Layout::Tile(tile) if tile.is_row_major(shape))
    }

    /// Calls `f` with every expression in it.
    pub fn for_each_expr<'a>(&'a self, mut f: impl FnMut(&'a Expr)) {
        let tile = self.tile();
        for iter in tile.shard.iter().chain(&tile.replica) {
            f(&iter.extent);
            f(&iter.stride);
        }
        tile.offset.iter().for_each(|(_, e)| f(e));
    }

    /// Every expression in it, in this order.
    pub fn exprs(&self) -> Vec<&Expr> {
        let mut all = Vec::new();
        self.for_each_expr(|e| all.push(e));
        all
    }

    /// The layout with each expression changed by `f`.
    pub fn map_exprs(&self, f: &mut impl FnMut(&Expr) -> Expr) -> Layout {
        let tile = self.tile();
        let mut iters = |list: &[Iter]| {
            map_changed(list, |i| {
                let (extent, stride) = (f(&i.extent), f(&i.stride));
                let same = extent.same_node(&i.extent) && stride.same_node(&i.stride);
                (!same).then(|| Iter {
                    extent,
                    stride,
                    axis: i.axis.clone(),
                })
            })
        };
        let (shard, replica) = (iters(&tile.shard), iters(&tile.replica));
        let offset = map_changed(&tile.offset, |(axis, old)| {
            let new = f(old);
            (!new.same_node(old)).then(|| (axis.clone(), new))
        });
        if shard.is_none() && replica.is_none() && offset.is_none() {
            return self.clone();
        }
        self.with_tile(TileLayout {
            shard: shard.unwrap_or_else(|| tile.shard.clone()),
            replica: replica.unwrap_or_else(|| tile.replica.clone()),
            offset: offset.unwrap_or_else(|| tile.offset.clone()),
        })
    }

    /// The layout with variables replaced.
    pub fn substitute(&self, map: &impl Fn(&crate::ir::Var) -> Option<Expr>) -> Layout {
        self.map_exprs(&mut |e| substitute(e, map))
    }
}
