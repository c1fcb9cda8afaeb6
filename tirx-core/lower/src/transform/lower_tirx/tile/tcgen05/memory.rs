//! Regions of tensor memory: their address, and the lane and column of each element.

use super::super::context::Context;
use super::super::multiples::{quotient, remainder};
use super::super::operands::bits;
use super::super::places::{Places, Tables};
use crate::arith::fold;
use crate::ir::{BufferRegion, DType, Expr};
use crate::layout::Axis;
use crate::layout::axes::{self, AxisRow, Memory, TENSOR_COLUMN, TENSOR_LANE};

/// Bits of a cell.
pub(super) const CELL: i128 = 32;

/// A region of tensor memory.
pub(super) struct TensorMemory {
    /// Address of the buffer: lane in the upper half, column in the lower.
    base: Expr,
    /// The first element's lane.
    lane: Expr,
    /// The first element's place along the columns, in elements.
    column: Expr,
    /// Bits of an element.
    pub(super) bits: i128,
    /// Lanes of elements, from the first.
    pub(super) lanes: Tables,
    /// Places along the columns, in bits, from the first.
    pub(super) columns: Tables,
    /// Extents of the dimensions.
    pub(super) extents: Vec<i128>,
    /// Copies of each element, in lanes: number and distance.
    pub(super) copies: Vec<(i128, i128)>,
}

impl TensorMemory {
    /// The places of a region in scope `tmem`.
    pub(super) fn from_region(region: &BufferRegion, cx: &mut Context<'_>) -> Result<TensorMemory, String> {
        let buffer = &region.buffer;
        let name = &buffer.name;
        if buffer.scope() != "tmem" {
            return Err(format!(
                "{name} is in {} memory, not in tensor memory",
                buffer.scope()
            ));
        }
        let Some(base) = buffer.allocated_addr.first() else {
            return Err(format!("{name} has no address in tensor memory (allocated_addr)"));
        };
        let places = Places::from_region(region, cx)?;
        let memory = |axis: &Axis| axes::row(axis).and_then(AxisRow::memory);
        if let Some(other) = places.axes().find(|a| memory(a) != Some(Memory::Tensor)) {
            return Err(format!(
                "the layout of {name} has the axis {}; tensor memory has {} and {}",
                other.0, TENSOR_LANE.name, TENSOR_COLUMN.name
            ));
        }
        let bits = bits(buffer.dtype);
        let mut columns = places.tables(TENSOR_COLUMN);
        columns.iter_mut().flatten().for_each(|place| *place *= bits);
        if !places.copies(TENSOR_COLUMN).is_empty() {
            return Err(format!("the layout of {name} repeats elements along the columns"));
        }
        // A view of some of the columns (`buffer.sub[…]`) has its first one as the buffer's offset.
        let column = places.first(TENSOR_COLUMN);
        let column = match &buffer.elem_offset {
            Some(offset) if !offset.is_int(0) => {
                let offset = match offset.dtype == column.dtype {
                    true => offset.clone(),
                    false => offset.clone().cast(column.dtype),
                };
                cx.facts.simplify(&fold::add(column, offset))
            }
            _ => column,
        };
        Ok(TensorMemory {
            base: base.clone(),
            lane: places.first(TENSOR_LANE),
            column,
            bits,
            lanes: places.tables(TENSOR_LANE),
            columns,
            copies: places.copies(TENSOR_LANE),
            extents: places.extents,
        })
    }

    /// The first element's column in cells, and its place within the cell, in elements.
    pub(super) fn first_column(&self, cx: &mut Context<'_>) -> (Expr, Expr) {
        let per = CELL / self.bits;
        (
            quotient(&self.column, per, cx.facts),
            remainder(&self.column, per, cx.facts),
        )
    }

    /// The same region with 64 rows in the lanes where instructions of 64 rows have them, 16 to each warp's lanes, if its layout
    /// has them in the first 64 lanes. That layout is how kernels declare such rows: it is TVM's for A, and a part of a buffer of 128 rows.
    pub(super) fn spread(&self) -> Option<TensorMemory> {
        let at = self.extents.iter().position(|extent| *extent == 64)?;
        let others = self.lanes.iter().enumerate().filter(|(dim, _)| *dim != at);
        let alone = others
            .into_iter()
            .all(|(_, table)| table.iter().all(|lane| *lane == 0));
        let mut lanes = self.lanes.clone();
        lanes[at] = spread(&self.lanes[at])?;
        (alone && self.lane.is_int(0)).then(|| TensorMemory {
            base: self.base.clone(),
            lane: self.lane.clone(),
            column: self.column.clone(),
            bits: self.bits,
            columns: self.columns.clone(),
            extents: self.extents.clone(),
            copies: self.copies.clone(),
            lanes,
        })
    }

    /// The first element's place along the columns, in elements.
    pub(super) fn first_element(&self) -> &Expr {
        &self.column
    }

    /// The first element's lane.
    pub(super) fn first_lane(&self) -> &Expr {
        &self.lane
    }

    /// The address `lane` lanes and `column` cells after the first element.
    pub(super) fn address(&self, lane: i128, column: i128, cx: &mut Context<'_>) -> Expr {
        let (first, _) = self.first_column(cx);
        self.address_at(first, lane, column, cx)
    }

    /// The address of a column, in cells from the buffer's, and of the lane `lane` lanes after the first element.
    pub(super) fn address_at(&self, first: Expr, lane: i128, column: i128, cx: &mut Context<'_>) -> Expr {
        let constant = |v: i128| Expr::int32(v as i32);
        let int = |e: &Expr| {
            if e.dtype == DType::INT32 {
                e.clone()
            } else {
                e.clone().cast(DType::INT32)
            }
        };
        let lanes = fold::mul(fold::add(int(&self.lane), constant(lane)), constant(1 << 16));
        let columns = fold::add(int(&first), constant(column));
        let moved = cx.facts.simplify(&fold::add(columns, lanes));
        let base = unsigned(&self.base);
        if moved.is_int(0) {
            return base;
        }
        fold::add(base, unsigned(&moved))
    }
}

/// The lanes of 64 rows that are in the first 64 lanes, as [`TensorMemory::spread`] says.
pub(super) fn spread(lanes: &[i128]) -> Option<Vec<i128>> {
    let first = lanes.len() == 64 && lanes.iter().enumerate().all(|(row, lane)| *lane == row as i128);
    first.then(|| lanes.iter().map(|row| row / 16 * 32 + row % 16).collect())
}

fn unsigned(e: &Expr) -> Expr {
    match e.as_int() {
        Some(value) => Expr::constant(DType::UINT32, value),
        None if e.dtype == DType::UINT32 => e.clone(),
        None => e.clone().cast(DType::UINT32),
    }
}
