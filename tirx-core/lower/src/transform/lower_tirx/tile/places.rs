//! Where the elements of a region lie, as numbers.
//!
//! The instructions of tensor cores and tensor memory touch elements in a fixed pattern. Whether a region has the
//! pattern is not read off the form of its layout but computed: the place of each coordinate, on each axis, relative to
//! the region's first element. Layouts that are written in different ways and mean the same are thereby the same.
//!
//! A place is the sum of one term for each dimension, so that a table for each dimension holds all of it.

use super::context::Context;
use super::digits::place;
use super::operands::sliced;
use crate::ir::{BufferRegion, Expr};
use crate::layout::axes::{self, AxisRow, Level};
use crate::layout::{Axis, Swizzle, TileAlgebra, TileLayout};

/// The places of a region's elements.
pub(super) struct Places {
    /// The extents of the dimensions that have more than one coordinate.
    pub(super) extents: Vec<i128>,
    /// The layout of the region; its iterators are grouped by dimension.
    layout: TileLayout,
    /// The iterators of each of these dimensions.
    runs: Vec<std::ops::Range<usize>>,
    /// The swizzle of offsets in memory.
    pub(super) swizzle: Option<Swizzle>,
}

/// Terms of a place on one axis: one table for each dimension.
pub(super) type Tables = Vec<Vec<i128>>;

impl Places {
    /// The places of a region whose extents are constants.
    pub(super) fn from_region(region: &BufferRegion, cx: &mut Context<'_>) -> Result<Places, String> {
        let buffer = &region.buffer;
        let name = &buffer.name;
        let sliced = sliced(region, cx.facts)?;
        let extents = region
            .const_extents()
            .ok_or_else(|| format!("the extents of the region of {name} are not constant"))?;
        let grouped = sliced.tile().group_by(&extents);
        let (layout, starts) =
            grouped.ok_or_else(|| format!("the layout of {name} does not split along the region"))?;
        for iter in layout.shard.iter().chain(&layout.replica) {
            if iter.extent.as_int().is_none() || iter.stride.as_int().is_none() {
                return Err(format!("the layout of {name} has strides that are not constant"));
            }
        }
        let wide = (0..extents.len()).filter(|d| extents[*d] != 1);
        Ok(Places {
            runs: wide.clone().map(|d| starts[d]..starts[d + 1]).collect(),
            extents: wide.map(|d| extents[d]).collect(),
            layout,
            swizzle: sliced.swizzle().filter(|s| s.swizzle_len > 0),
        })
    }

    /// The first element's place on an axis.
    pub(super) fn first(&self, axis: AxisRow) -> Expr {
        self.layout.offset_of(axis.name)
    }

    /// The axes that elements lie on.
    pub(super) fn axes(&self) -> impl Iterator<Item = &Axis> {
        let iters = self.layout.shard.iter().chain(&self.layout.replica);
        iters.filter(|i| !i.extent.is_int(1)).map(|i| &i.axis)
    }

    /// Copies of each element on an axis: number and distance, innermost last.
    pub(super) fn copies(&self, axis: AxisRow) -> Vec<(i128, i128)> {
        let on = self.layout.replica.iter().filter(|i| axis.is(&i.axis));
        on.filter_map(|i| i.extent.as_int().zip(i.stride.as_int()))
            .filter(|(extent, _)| *extent != 1)
            .collect()
    }

    /// The numbers of the threads that hold elements, as terms for each dimension: threads of a warpgroup, say. `name` is
    /// the buffer's.
    ///
    /// # Errors
    /// Elements lie on another axis than those of the threads of `whole`, are repeated, or begin in the middle of one.
    pub(super) fn threads(&self, whole: Level, name: &str) -> Result<Tables, String> {
        let known = |axis: &Axis| axes::within(whole).any(|(row, _)| row.is(axis));
        if let Some(axis) = self.axes().find(|a| !a.is_memory() && !known(a)) {
            let axes: Vec<&str> = axes::within(whole).map(|(row, _)| row.name).collect();
            return Err(format!(
                "{name} has the axis {}; the threads of a {} are on {}",
                axis.0,
                whole.name(),
                axes.join(", ")
            ));
        }
        let mut sums: Tables = self.extents.iter().map(|e| vec![0; *e as usize]).collect();
        for (row, threads) in axes::within(whole) {
            let axis = row.name;
            if !self.first(*row).is_int(0) {
                return Err(format!(
                    "the region of {name} begins in the middle of the axis {axis}"
                ));
            }
            if !self.copies(*row).is_empty() {
                return Err(format!("{name} is repeated over the axis {axis}"));
            }
            for (sum, place) in sums.iter_mut().flatten().zip(self.tables(*row).iter().flatten()) {
                *sum += place * threads;
            }
        }
        Ok(sums)
    }

    /// The terms of places on an axis.
    pub(super) fn tables(&self, axis: AxisRow) -> Tables {
        let run = |(extent, run): (&i128, &std::ops::Range<usize>)| -> Vec<i128> {
            let iters = &self.layout.shard[run.clone()];
            let digits: Vec<(i128, i128)> = iters
                .iter()
                .map(|i| {
                    let stride = if axis.is(&i.axis) {
                        i.stride.as_int()
                    } else {
                        Some(0)
                    };
                    (i.extent.as_int().unwrap_or(1), stride.unwrap_or(0))
                })
                .collect();
            (0..*extent)
                .map(|coordinate| place(coordinate, digits.iter()))
                .collect()
        };
        self.extents.iter().zip(&self.runs).map(run).collect()
    }
}

/// One table for several dimensions that are counted as one, row-major.
pub(super) fn joined(tables: &[&Vec<i128>]) -> Vec<i128> {
    tables.iter().fold(vec![0], |outer, inner| {
        let sum = |o: &i128| inner.iter().map(|i| o + i).collect::<Vec<_>>();
        outer.iter().flat_map(sum).collect()
    })
}
