//! Methods of layouts for decomposition and composition: `layout.slice(…)`, `layout.tile(…)`.

use std::sync::Arc;

use super::super::eval::{Args, Param, Value, optional, required};
use super::call::MatchedCall;
use super::layouts::from_spec;
use super::{convert, linear};
use crate::arith::Analyzer;
use crate::diagnostic::Result;
use crate::ir::{BinOp, Expr};
use crate::layout::apply::binary;
use crate::layout::{Axis, Composition, Iter, Layout, LayoutAlgebra, TileAlgebra, TileLayout};
use crate::source::Span;

/// The implementation of a method.
pub(super) type Method = fn(&Layout, Args, Span) -> Result<Value>;

const GROUP: &[Param] = &[required("shape")];
const SLICE: &[Param] = &[required("shape"), required("region")];
const TILE: &[Param] = &[
    required("outer"),
    required("outer_shape"),
    required("inner_shape"),
];
const SUM: &[Param] = &[required("left"), required("left_shape"), required("right_shape")];
const TILE_TO: &[Param] = &[required("to_shape"), required("current_shape")];
const BY_GROUPS: &[Param] = &[required("seps"), required("perm")];
const BROADCAST: &[Param] = &[required("num"), optional("position"), optional("axis")];

/// The method of this name.
pub(super) fn method(name: &str) -> Option<Method> {
    Some(match name {
        "canonicalize" => |layout, _, _| Ok(Value::Layout(layout.canonical(true))),
        "is_swizzle" => |layout, _, _| {
            let own: Vec<Expr> = layout.tile().shard.iter().map(|i| i.extent.clone()).collect();
            let trivial = Layout::Tile(Arc::new(layout.tile().clone())).is_row_major(&own);
            Ok(Value::Bool(layout.swizzle().is_some() && trivial))
        },
        "group" => group,
        "slice" => slice,
        "tile" => tile,
        "direct_sum" => direct_sum,
        "is_tile_inner" => |l, args, span| part_of(l, args, span, "TileLayout.is_tile_inner"),
        "is_tile_outer" => |l, args, span| part_of(l, args, span, "TileLayout.is_tile_outer"),
        "is_direct_sum_right" => |l, args, span| part_of(l, args, span, "TileLayout.is_direct_sum_right"),
        "is_direct_sum_left" => |l, args, span| part_of(l, args, span, "TileLayout.is_direct_sum_left"),
        "group_many" => group_many,
        "apply_to_shape" => apply_to_shape,
        "tile_to" => tile_to,
        "permute_by_groups" => permute_by_groups,
        "broadcast" => broadcast,
        "get_scope" => super::layout_scopes::get_scope,
        "verify_well_formed" => super::layout_scopes::verify_well_formed,
        "to_psum" => to_psum,
        _ => return None,
    })
}

fn text(layout: &Layout) -> String {
    let iters = |list: &[Iter]| -> String {
        let part = |i: &Iter| {
            let stride = crate::ir::print_expr(&i.stride);
            let axis = if i.axis.is_memory() {
                String::new()
            } else {
                format!(" @ {}", i.axis.0)
            };
            format!("{}:{stride}{axis}", crate::ir::print_expr(&i.extent))
        };
        list.iter().map(part).collect::<Vec<_>>().join(", ")
    };
    format!("({})", iters(&layout.tile().shard))
}

fn shape_text(shape: &[Expr]) -> String {
    let items: Vec<String> = shape.iter().map(crate::ir::print_expr).collect();
    format!("({})", items.join(", "))
}

fn group(layout: &Layout, args: Args, span: Span) -> Result<Value> {
    let call = MatchedCall::new("TileLayout.group", GROUP, false, args, span)?;
    let shape = call.shape("shape")?;
    match layout.tile().group(&shape) {
        Some((grouped, starts)) => Ok(Value::tuple(vec![
            Value::Layout(layout.with_tile(grouped)),
            Value::tuple(starts.into_iter().map(|s| Value::Int(s as i128)).collect()),
        ])),
        None => call.fail(format!(
            "the layout {} can not be grouped by shape {}",
            text(layout),
            shape_text(&shape)
        )),
    }
}

/// Ranges as `(begin, end)` pairs.
fn slice(layout: &Layout, args: Args, span: Span) -> Result<Value> {
    let call = MatchedCall::new("TileLayout.slice", SLICE, false, args, span)?;
    const PAIRS: &str = "a list of (begin, end)";
    let shape = call.shape("shape")?;
    let mut ranges = Vec::new();
    for item in call.items("region", PAIRS)? {
        let Some([begin, end]) = item
            .as_items()
            .as_deref()
            .map(<[Value]>::to_vec)
            .and_then(|v| <[Value; 2]>::try_from(v).ok())
        else {
            return call.expected("region", PAIRS);
        };
        let (begin, end) = (convert::expr(&begin, span)?, convert::expr(&end, span)?);
        ranges.push((begin.clone(), linear::difference(&end, &begin, span)?));
    }
    if ranges.len() != shape.len() {
        return call.fail(format!("{} ranges for {} dimensions", ranges.len(), shape.len()));
    }
    // TVM slices the canonical form, and gives None where that is not possible.
    Ok(layout
        .canonical(true)
        .slice(&shape, &ranges, &mut Analyzer::new())
        .map_or(Value::None, Value::Layout))
}

fn layout_argument(call: &MatchedCall, name: &str) -> Result<Layout> {
    let (value, at) = call.need(name, "a layout")?;
    match value {
        Value::Layout(layout) => Ok(layout.clone()),
        value => match from_spec(value, at)? {
            Some(layout) => Ok(layout),
            None => call.expected(name, "a layout"),
        },
    }
}

fn tile(layout: &Layout, args: Args, span: Span) -> Result<Value> {
    let call = MatchedCall::new("TileLayout.tile", TILE, false, args, span)?;
    let outer = layout_argument(&call, "outer")?;
    let (outer_shape, inner_shape) = (call.shape("outer_shape")?, call.shape("inner_shape")?);
    tiled(layout, outer.tile(), &outer_shape, &inner_shape, &call)
}

fn tiled(
    layout: &Layout,
    outer: &TileLayout,
    outer_shape: &[Expr],
    inner_shape: &[Expr],
    call: &MatchedCall,
) -> Result<Value> {
    match layout.tile().tiled_by(outer, outer_shape, inner_shape) {
        Some(tiled) => Ok(Value::Layout(layout.with_tile(tiled).canonical(true))),
        None => call.fail(format!(
            "the layout {} of shape {} cannot be tiled by a layout of shape {}",
            text(layout),
            shape_text(inner_shape),
            shape_text(outer_shape)
        )),
    }
}

fn tile_to(layout: &Layout, args: Args, span: Span) -> Result<Value> {
    let call = MatchedCall::new("TileLayout.tile_to", TILE_TO, false, args, span)?;
    let (to, current) = (call.shape("to_shape")?, call.shape("current_shape")?);
    if to.len() != current.len() {
        return call.fail("the two shapes have different ranks");
    }
    let counts: Vec<Expr> = to
        .iter()
        .zip(&current)
        .map(|(to, current)| binary(BinOp::FloorDiv, to.clone(), current.clone()))
        .collect();
    let rows = Layout::row_major(&counts);
    tiled(layout, rows.tile(), &counts, &current, &call)
}

fn direct_sum(layout: &Layout, args: Args, span: Span) -> Result<Value> {
    let call = MatchedCall::new("TileLayout.direct_sum", SUM, false, args, span)?;
    let left = layout_argument(&call, "left")?;
    let (left_shape, right_shape) = (call.shape("left_shape")?, call.shape("right_shape")?);
    match layout.tile().direct_sum(left.tile(), &left_shape, &right_shape) {
        Some(sum) => Ok(Value::Layout(layout.with_tile(sum).canonical(true))),
        None => call.fail("the layouts do not split along the shapes"),
    }
}

const PART: &[Param] = &[required("whole"), required("whole_shape"), required("shape")];

/// The other layout of a tiling or a direct sum of which this one is a part; `None` where it is not.
fn part_of(layout: &Layout, args: Args, span: Span, full: &'static str) -> Result<Value> {
    // The parameters are named differently in each of the four methods; they are given by position.
    let call = MatchedCall::new(full, PART, false, args, span)?;
    let name = full.trim_start_matches("TileLayout.");
    let whole = layout_argument(&call, "whole")?;
    let (all, own) = (call.shape("whole_shape")?, call.shape("shape")?);
    let is_sum = name.starts_with("is_direct_sum");
    let own_is_inner = matches!(name, "is_tile_inner" | "is_direct_sum_right");
    // A sum names its interleaved dimensions, a tiling those of the whole.
    let mut other = Vec::new();
    if is_sum {
        if all.len() != 2 * own.len() {
            return call.fail("the interleaved shape has two extents per dimension");
        }
        other.extend(all.iter().skip(usize::from(!own_is_inner)).step_by(2).cloned());
    } else {
        if all.len() != own.len() {
            return call.fail("the two shapes have different ranks");
        }
        for (whole, part) in all.iter().zip(&own) {
            if let (Some(whole), Some(part)) = (whole.as_int(), part.as_int())
                && (part == 0 || whole % part != 0)
            {
                return Ok(Value::None);
            }
            other.push(binary(BinOp::FloorDiv, whole.clone(), part.clone()));
        }
    }
    let (outer, inner) = if own_is_inner {
        (&other, &own)
    } else {
        (&own, &other)
    };
    let (part, whole_tile) = (layout.tile(), whole.tile());
    let found = match name {
        "is_tile_inner" => part.outer_of(whole_tile, outer, inner),
        "is_tile_outer" => part.inner_of(whole_tile, outer, inner),
        "is_direct_sum_right" => part.left_of_sum(whole_tile, outer, inner),
        _ => part.right_of_sum(whole_tile, outer, inner),
    };
    // The swizzle belongs to the inner layout.
    let fits = if own_is_inner {
        layout.swizzle() == whole.swizzle()
    } else {
        layout.swizzle().is_none()
    };
    let result = |tile: TileLayout| {
        let tile = if own_is_inner {
            Layout::Tile(Arc::new(tile))
        } else {
            whole.with_tile(tile)
        };
        Value::Layout(tile)
    };
    Ok(found.filter(|_| fits).map_or(Value::None, result))
}

/// One grouping by several shapes: iterators are split wherever one of them ends a dimension.
fn group_many(layout: &Layout, args: Args, span: Span) -> Result<Value> {
    let call = MatchedCall::new(
        "TileLayout.group_many",
        const { &[required("shapes")] },
        false,
        args,
        span,
    )?;
    let mut tile = layout.tile().clone();
    let mut shapes = Vec::new();
    for item in call.items("shapes", "a list of shapes")? {
        let extents: Option<Vec<Expr>> = item
            .as_items()
            .map(|list| list.iter().map(|v| convert::expr(v, span).ok()).collect())
            .unwrap_or_default();
        let Some(extents) = extents else {
            return call.expected("shapes", "a list of shapes");
        };
        shapes.push(extents);
    }
    // Each pass splits further; afterwards every shape falls between iterators.
    for shape in shapes.iter().chain(&shapes) {
        match tile.group(shape) {
            Some((grouped, _)) => tile = grouped,
            None => {
                return call.fail(format!(
                    "the layout {} can not be grouped by shape {}",
                    text(layout),
                    shape_text(shape)
                ));
            }
        }
    }
    let mut all = Vec::new();
    for shape in &shapes {
        let Some((_, starts)) = tile.group(shape) else {
            return call.fail("the shapes end dimensions within each other's iterators");
        };
        all.push(Value::list(
            starts.into_iter().map(|s| Value::Int(s as i128)).collect(),
        ));
    }
    Ok(Value::tuple(vec![
        Value::Layout(layout.with_tile(tile)),
        Value::list(all),
    ]))
}

/// The digit of each iterator for a coordinate of a shape.
fn apply_to_shape(layout: &Layout, args: Args, span: Span) -> Result<Value> {
    let params = const { &[required("coord"), required("input_shape")] };
    let call = MatchedCall::new("TileLayout.apply_to_shape", params, false, args, span)?;
    let (coordinate, shape) = (call.shape("coord")?, call.shape("input_shape")?);
    if coordinate.len() != shape.len() {
        return call.fail("coord and input_shape have different ranks");
    }
    let tile = layout.tile();
    let (tile, starts, coordinate) = match tile.group(&shape) {
        Some((grouped, starts)) => (grouped, starts, coordinate),
        None => {
            let flat = crate::layout::apply::row_major(&coordinate, &shape);
            (tile.clone(), vec![0, tile.shard.len()], vec![flat])
        }
    };
    let mut analyzer = Analyzer::new();
    let mut digits = Vec::new();
    for (run, at) in starts.windows(2).zip(coordinate) {
        let mut rest = at;
        let mut own = Vec::new();
        for (depth, iter) in tile.shard[run[0]..run[1]].iter().enumerate().rev() {
            if depth == 0 {
                own.push(rest.clone());
            } else {
                own.push(binary(BinOp::FloorMod, rest.clone(), iter.extent.clone()));
                rest = binary(BinOp::FloorDiv, rest, iter.extent.clone());
            }
        }
        own.reverse();
        digits.extend(own);
    }
    let number = |e: &Expr| super::layouts::number(&analyzer.simplify(e).at(span));
    Ok(Value::list(digits.iter().map(number).collect()))
}

fn permute_by_groups(layout: &Layout, args: Args, span: Span) -> Result<Value> {
    let call = MatchedCall::new("TileLayout.permute_by_groups", BY_GROUPS, false, args, span)?;
    let numbers = |name: &str| -> Result<Vec<usize>> {
        let items = call.items(name, "a list of integers")?;
        let number = |v: &Value| convert::const_int(v).and_then(|v| usize::try_from(v).ok());
        match items.iter().map(number).collect() {
            Some(numbers) => Ok(numbers),
            None => call.expected(name, "a list of integers"),
        }
    };
    let (starts, order) = (numbers("seps")?, numbers("perm")?);
    let mut sorted = order.clone();
    sorted.sort_unstable();
    let groups = starts.len().saturating_sub(1);
    let count = layout.tile().shard.len();
    let rising = starts.windows(2).all(|w| w[0] <= w[1])
        && starts.first() == Some(&0)
        && starts.last() == Some(&count);
    if !rising || !sorted.into_iter().eq(0..groups) {
        return call.fail(format!(
            "seps and perm do not name each of {count} iterators once"
        ));
    }
    Ok(Value::Layout(
        layout.with_tile(layout.tile().permuted_groups(&starts, &order)),
    ))
}

/// Elements of a bank of Trainium's accumulators.
const BANK: i128 = 512;

/// Converts columns of a Trainium layout to banks: `F` becomes `Bank` and `F` within one.
fn to_psum(layout: &Layout, args: Args, span: Span) -> Result<Value> {
    let call = MatchedCall::new("TileLayout.to_psum", &[], false, args, span)?;
    let mut shard = Vec::new();
    let iter = |extent: i128, stride: i128, axis: &str| Iter {
        extent: Expr::int32(extent as i32),
        stride: Expr::int32(stride as i32),
        axis: Axis(axis.into()),
    };
    for i in &layout.tile().shard {
        if &*i.axis.0 != "F" {
            shard.push(i.clone());
            continue;
        }
        match (i.extent.as_int(), i.stride.as_int()) {
            (Some(extent), Some(stride)) if stride % BANK == 0 => {
                shard.push(iter(extent, stride / BANK, "Bank"));
            }
            (Some(extent), Some(stride)) if stride > 0 && BANK % stride == 0 && extent < BANK / stride => {
                shard.push(i.clone());
            }
            (Some(extent), Some(stride))
                if stride > 0 && BANK % stride == 0 && extent % (BANK / stride) == 0 =>
            {
                shard.push(iter(extent / (BANK / stride), 1, "Bank"));
                shard.push(iter(BANK / stride, stride, "F"));
            }
            _ => {
                return call.fail(format!(
                    "the columns of the layout {} do not fall into banks of {BANK} elements",
                    text(layout)
                ));
            }
        }
    }
    Ok(Value::Layout(Layout::Tile(Arc::new(TileLayout::from_shard(
        shard,
    )))))
}

fn broadcast(layout: &Layout, args: Args, span: Span) -> Result<Value> {
    let call = MatchedCall::new("TileLayout.broadcast", BROADCAST, false, args, span)?;
    let num = call.int("num")?;
    let position = call.int_or("position", -1)?;
    let mut tile = layout.tile().clone();
    let count = tile.shard.len() as i128;
    let at = if position < 0 {
        count + 1 + position
    } else {
        position
    }
    .clamp(0, count) as usize;
    if !(1..=i128::from(i32::MAX)).contains(&num) {
        return call.fail(format!("num must be positive, found {num}"));
    }
    let iter = Iter {
        extent: Expr::int32(num as i32),
        stride: Expr::int32(0),
        axis: match call.get("axis") {
            None => Axis::memory(),
            Some((value, _)) => match super::layouts::axis_of(value) {
                Some(axis) => axis,
                None => return call.expected("axis", "an axis or its name"),
            },
        },
    };
    tile.shard.insert(at, iter);
    Ok(Value::Layout(layout.with_tile(tile)))
}
