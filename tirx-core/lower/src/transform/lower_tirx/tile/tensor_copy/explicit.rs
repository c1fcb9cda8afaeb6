//! `copy_async` → `tma_explicit`: the region as one box of the global buffer as it is declared.
//!
//! **Idea.** The dimensions of the global buffer are those of the tensor map, the extents of its region are the box, and the
//! starts are the coordinates, so that the caller decides what the instruction does: a box that reaches beyond the tensor, a
//! gather of four rows, one of several tensors chosen by a condition.
//!
//! **Conditions.** The global layout has one iterator for each dimension of the shape, the innermost of stride one; the
//! region of shared memory is contiguous (under a swizzle of tensor copies), and has as many bytes as the box.

use super::super::call::PrimitiveCall;
use super::super::context::Context;
use super::super::decline::Decline;
use super::super::operands::layout;
use super::super::variant::Plan;
use super::boxes::{Boxes, Dim, SharedSide, Unit, constant_extents};
use super::options::Options;
use super::{Copies, Sides, tensor_map};
use crate::arith::Analyzer;
use crate::intrin::Op;
use crate::ir::{AttrValue, Buffer, BufferRegion, Expr, ExprKind};

pub(super) fn plan(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    let sides = Sides::from_call(call)?;
    let options = Options::read(call, &sides)?;
    let gather = gather(call, &sides)?;
    let side = SharedSide::from_region(sides.shared, cx.facts)?;
    let total = match &side.iters[..] {
        [(extent, 1)] => *extent,
        _ => {
            return Err(format!(
                "the region of {} is not contiguous, which one copy needs",
                sides.shared.buffer.name
            )
            .into());
        }
    };
    let boxes = region_as_box(sides.global, &side, cx.facts)?;
    boxes.legal(cx.facts)?;
    if gather.is_some() && boxes.dims[1].size != 1 {
        return Err(
            "a gather takes one row of global memory, A[0:1, …], and four rows of shared memory".into(),
        );
    }
    let bytes = boxes.bytes() * if gather.is_some() { 4 } else { 1 };
    let held = total * i128::from(sides.shared.buffer.dtype.bits) / 8;
    if held != bytes {
        return Err(format!("the copy moves {bytes} bytes, its region of shared memory has {held}").into());
    }
    let mut maps = Vec::new();
    for (condition, buffer) in selector(call, &sides)? {
        let global = BufferRegion {
            buffer,
            ranges: sides.global.ranges.clone(),
        };
        let other = region_as_box(&global, &side, cx.facts)?;
        let sizes = |b: &Boxes| b.dims.iter().map(|d| d.size).collect::<Vec<_>>();
        if other.unit != boxes.unit || sizes(&other) != sizes(&boxes) {
            return Err(Decline::mistake(
                format!(
                    "{} in src_selector has another dtype or rank than the source",
                    global.buffer.name
                ),
                "all sources of one copy have boxes of one form",
            ));
        }
        other.legal(cx.facts)?;
        maps.push((Some(condition), tensor_map(&global, &other, &options, cx)?));
    }
    maps.push((None, tensor_map(sides.global, &boxes, &options, cx)?));
    Ok(Box::new(Copies {
        shared: sides.shared.clone(),
        load: sides.load,
        maps,
        boxes,
        gather,
        options,
        bytes,
    }))
}

/// The map's dimensions and the box, as the buffer and the region say.
fn region_as_box(global: &BufferRegion, side: &SharedSide, facts: &mut Analyzer) -> Result<Boxes, String> {
    let buffer = &global.buffer;
    let name = &buffer.name;
    let unit = Unit::from_dtype(buffer.dtype)?;
    let layout = layout(global)?;
    let tile = layout.tile();
    let same = tile.shard.len() == buffer.shape.len()
        && tile
            .shard
            .iter()
            .zip(&buffer.shape)
            .all(|(i, e)| i.axis.is_memory() && facts.can_prove_equal(&i.extent, e));
    if layout.swizzle().is_some() || !tile.replica.is_empty() || !same {
        return Err(format!(
            "the layout of {name} must have one iterator in memory for each dimension"
        ));
    }
    let ranges = constant_extents(global, facts)?;
    let mut dims = Vec::new();
    for ((range, iter), extent) in ranges.iter().zip(&tile.shard).zip(&buffer.shape).rev() {
        let (begin, size) = range;
        dims.push(Dim {
            extent: extent.clone(),
            stride: iter.stride.clone(),
            size: size.as_int().unwrap_or(0),
            at: begin.clone(),
        });
    }
    let Some(inner) = dims.first_mut() else {
        return Err(format!("{name} has no dimension"));
    };
    if !facts.can_prove_equal(&inner.stride, &Expr::constant(inner.stride.dtype, 1)) {
        return Err(format!("the innermost dimension of {name} is not contiguous"));
    }
    let mut boxes = Boxes {
        unit,
        swizzle: side.mode()?,
        dims,
        turns: Vec::new(),
        shared_at: side.offset.clone(),
    };
    boxes.in_units(facts)?;
    Ok(boxes)
}

/// The rows of a gather.
fn gather(call: &PrimitiveCall<'_>, sides: &Sides<'_>) -> Result<Option<[Expr; 4]>, Decline> {
    let mistake = || {
        Decline::mistake(
            "gather4 takes the numbers of four rows of a tensor of two dimensions",
            "Tx.copy_async(S[0:4, 0:64], A[0:1, 0:64], dispatch=\"tma_explicit\", gather4=[r0, r1, r2, r3], mbar=…)",
        )
    };
    let Some(value) = call.option("gather4") else {
        return Ok(None);
    };
    let AttrValue::List(rows) = value else {
        return Err(mistake());
    };
    let rows: Option<Vec<Expr>> = rows.iter().map(expr).collect();
    let rows = rows.and_then(|rows| <[Expr; 4]>::try_from(rows).ok());
    match rows {
        Some(rows) if sides.global.buffer.shape.len() == 2 => Ok(Some(rows)),
        _ => Err(mistake()),
    }
}

fn expr(value: &AttrValue) -> Option<Expr> {
    match value {
        AttrValue::Expr(e) if e.dtype.is_integer() || e.dtype.is_bool() => Some(e.clone()),
        value => value
            .as_int()
            .and_then(|v| i32::try_from(v).ok())
            .map(Expr::int32),
    }
}

/// Conditions, and the buffers that replace the source where they hold.
fn selector(call: &PrimitiveCall<'_>, sides: &Sides<'_>) -> Result<Vec<(Expr, Buffer)>, Decline> {
    let mistake = || {
        Decline::mistake(
            "src_selector takes pairs of a condition and a buffer in global memory of the source's shape",
            "src_selector=[(block >= count, other)]",
        )
    };
    let pairs = match call.option("src_selector") {
        None => return Ok(Vec::new()),
        Some(AttrValue::List(pairs)) => pairs,
        Some(_) => return Err(mistake()),
    };
    let pair = |pair: &AttrValue| -> Option<(Expr, Buffer)> {
        let AttrValue::List(pair) = pair else { return None };
        let [condition, AttrValue::Expr(source)] = &pair[..] else {
            return None;
        };
        let [load] = source.as_call(Op::AddressOf)? else {
            return None;
        };
        let ExprKind::BufferLoad { buffer, .. } = &load.kind else {
            return None;
        };
        let fits = buffer.scope() == "global" && buffer.shape.len() == sides.global.buffer.shape.len();
        fits.then(|| Some((expr(condition)?, buffer.clone())))?
    };
    pairs.iter().map(|p| pair(p).ok_or_else(mistake)).collect()
}
