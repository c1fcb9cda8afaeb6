//! The scale factors of a block-scaled product, in tensor memory.
//!
//! A factor of 8 bits scales a block of k of a row. The factors of rows `r`, `r + 32`, … are in the lanes `r % 32`, repeated
//! in each of the four groups of 32 lanes, in columns one after the other; a column has the factors of up to four blocks. An
//! instruction takes those of its one, two or four blocks from a byte that its descriptor says.

use super::super::context::Context;
use super::super::multiples::{is_multiple, quotient, remainder};
use super::memory::{CELL, TensorMemory};
use crate::arith::fold;
use crate::intrin::Op;
use crate::ir::{BufferRegion, DType, Expr};

/// Bits of a factor.
const FACTOR: i128 = 8;

/// The factors of A or B.
pub(super) struct Scales {
    memory: TensorMemory,
    /// Place of each row and of each factor of a row along the columns, in bits.
    rows: Vec<i128>,
    factors: Vec<i128>,
    /// Factors of an instruction.
    blocks: i128,
    /// Whether all instructions along k use the same factors.
    shared: bool,
}

impl Scales {
    /// The factors of a product of at least `rows` rows whose `steps` instructions along k take `blocks` factors each.
    pub(super) fn from_region(
        region: &BufferRegion,
        rows: i128,
        steps: i128,
        blocks: i128,
        cx: &mut Context<'_>,
    ) -> Result<Scales, String> {
        let name = &region.buffer.name;
        let mut memory = TensorMemory::from_region(region, cx)?;
        if memory.bits != FACTOR {
            return Err(format!(
                "{name} has elements of {} bits, and scale factors have 8",
                memory.bits
            ));
        }
        // One factor for each row may be a region of one dimension.
        if memory.extents.len() == 1 {
            memory.extents.push(1);
            memory.lanes.push(vec![0]);
            memory.columns.push(vec![0]);
        }
        let ([row_lanes, factor_lanes], [row_columns, factor_columns]) =
            (&memory.lanes[..], &memory.columns[..])
        else {
            return Err(format!("the region of {name} has more than rows and factors"));
        };
        let place = |r: usize| (r as i128 % 32, r as i128 / 32 * CELL);
        let fits = row_lanes
            .iter()
            .zip(row_columns)
            .enumerate()
            .all(|(r, (l, c))| (*l, *c) == place(r))
            && factor_lanes.iter().all(|lane| *lane == 0)
            && memory.copies == [(4, 32)]
            && memory.first_lane().is_int(0);
        if !fits {
            return Err(format!(
                "the layout of {name} is not that of scale factors: row r in lane r % 32 of each warp's lanes, and column \
                 r / 32; sf_tmem_layout and TMEMPool.alloc_sf give it"
            ));
        }
        if (row_lanes.len() as i128) < rows {
            return Err(format!(
                "{name} has {} rows, and the product {rows}",
                row_lanes.len()
            ));
        }
        let count = factor_columns.len() as i128;
        if count != blocks && count != blocks * steps {
            return Err(format!(
                "{name} has {count} factors for each row; {steps} instructions with {blocks} each take {}",
                blocks * steps
            ));
        }
        // The factors of an instruction are consecutive bytes of a column.
        let consecutive = factor_columns.chunks(blocks as usize).all(|chunk| {
            let mut all = chunk.iter().enumerate();
            all.all(|(i, place)| *place == chunk[0] + i as i128 * FACTOR) && chunk[0] % (blocks * FACTOR) == 0
        });
        if !consecutive {
            return Err(format!(
                "the {blocks} factors of an instruction are not consecutive in {name}"
            ));
        }
        if !is_multiple(memory.first_element(), blocks, cx.facts) {
            return Err(format!(
                "the region of {name} does not begin with the first of {blocks} factors"
            ));
        }
        Ok(Scales {
            rows: row_columns.clone(),
            factors: factor_columns.clone(),
            shared: count == blocks && steps > 1,
            memory,
            blocks,
        })
    }

    /// The address of the factors of the rows from `row` on, for instruction `step` along k, and the byte of the first.
    pub(super) fn at(&self, row: i128, step: i128, cx: &mut Context<'_>) -> (Expr, Expr) {
        let first = if self.shared { 0 } else { step * self.blocks };
        let bits = self.rows[row as usize] + self.factors[first as usize];
        let start = self.memory.first_element();
        let place = fold::add(start.clone(), Expr::constant(start.dtype, bits / FACTOR));
        let per = CELL / FACTOR;
        let (cell, byte) = (quotient(&place, per, cx.facts), remainder(&place, per, cx.facts));
        (self.memory.address_at(cell, 0, 0, cx), byte)
    }
}

/// The instruction descriptor with the bytes of the scale factors of A (bits 29 and 30) and B (bits 4 and 5).
pub(super) fn with_bytes(descriptor: &Expr, bytes: Option<(Expr, Expr)>) -> Expr {
    let Some((a, b)) = bytes else {
        return descriptor.clone();
    };
    let word = |v: i128| Expr::constant(DType::UINT32, v);
    let call = |op: Op, x: Expr, y: Expr| match (op, x.as_int(), y.as_int()) {
        (Op::BitwiseAnd, Some(x), Some(y)) => word(x & y),
        (Op::BitwiseOr, Some(x), Some(y)) => word(x | y),
        (Op::ShiftLeft, Some(x), Some(y)) => word(x << y),
        (Op::BitwiseOr, _, Some(0)) => x,
        _ => Expr::call(op, DType::UINT32, vec![x, y]),
    };
    let field = |e: Expr, at: i128| {
        let e = match e.as_int() {
            Some(v) => word(v),
            None => e.cast(DType::UINT32),
        };
        call(Op::ShiftLeft, e, word(at))
    };
    let ids = call(Op::BitwiseOr, field(a, 29), field(b, 4));
    let cleared = match descriptor.as_int() {
        Some(_) => descriptor.clone(),
        None => call(Op::BitwiseAnd, descriptor.clone(), word(!0x6000_0030u32 as i128)),
    };
    call(Op::BitwiseOr, cleared, ids)
}
