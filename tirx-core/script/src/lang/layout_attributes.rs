//! Attributes of layouts: `layout.shard`, `layout.apply(…)`, `layout.size(…)`, `layout.span(…)`.

use std::cell::RefCell;
use std::rc::Rc;

use super::super::eval::{Args, Dict, Object, Value, count, key, keyword, optional, required};
use super::super::typing::{self, Arithmetic};
use super::call::MatchedCall;
use super::convert;
use super::layout_methods;
use super::layout_parts;
use super::layouts::{AxisValue, IterValue, axis_of, integer, number};
use super::views;
use crate::arith::Analyzer;
use crate::diagnostic::{Diagnostic, Result};
use crate::ir::Expr;
use crate::layout::{Axis, Iter, Layout, LayoutAlgebra, TileLayout};
use crate::source::Span;

/// `layout.name`.
pub(super) fn attribute(layout: &Layout, name: &str) -> Result<Option<Value>> {
    if let Layout::Compose(swizzle, tile) = layout {
        match name {
            "per_element" => return Ok(Some(Value::Int(swizzle.per_element.into()))),
            "swizzle_len" => return Ok(Some(Value::Int(swizzle.swizzle_len.into()))),
            "atom_len" => return Ok(Some(Value::Int(swizzle.atom_len.into()))),
            "swizzle_inner" => return Ok(Some(Value::Bool(swizzle.inner))),
            "tile_layout" => return Ok(Some(Value::Layout(Layout::Tile(tile.clone())))),
            _ => {}
        }
    }
    let whole = layout.clone();
    let tile = layout.tile().clone();
    let iters = |list: &[Iter]| {
        Value::list(
            list.iter()
                .map(|i| Value::Object(Rc::new(IterValue(i.clone())) as Rc<dyn Object>))
                .collect(),
        )
    };
    let method = |name: &str, f: fn(&Layout, Args, Span) -> Result<Value>| {
        let tile = whole.clone();
        Value::builtin(format!("TileLayout.{name}"), move |_, args, span| {
            f(&tile, args, span)
        })
    };
    if let Some(run) = layout_methods::method(name) {
        return Ok(Some(method(name, run)));
    }
    Ok(Some(match name {
        "shard" => iters(&tile.shard),
        "replica" => iters(&tile.replica),
        "offset" => {
            let terms = tile.offset.iter().map(|(axis, e)| {
                Value::tuple(vec![Value::Object(Rc::new(AxisValue(axis.clone()))), number(e)])
            });
            Value::list(terms.collect())
        }
        "size" => method("size", size),
        "is_trainium" => method("is_trainium", |layout, _, _| {
            let iters = layout.tile().shard.iter();
            let trainium = |i: &Iter| matches!(&*i.axis.0, "P" | "F" | "Bank");
            Ok(Value::Bool(
                layout.swizzle().is_none() && iters.clone().any(trainium),
            ))
        }),
        "span" => method("span", span_of_axis),
        "storage" => method("storage", |layout, _, _| {
            Ok(Value::Layout(layout_parts::storage(layout)))
        }),
        "is_trivial" => method("is_trivial", |layout, _, _| {
            let shape: Vec<Expr> = layout.tile().shard.iter().map(|i| i.extent.clone()).collect();
            Ok(Value::Bool(layout.is_row_major(&shape)))
        }),
        "apply" => method("apply", apply),
        "pack" => method("pack", |layout, args, span| resize(layout, args, span, "pack")),
        "unpack" => method("unpack", |layout, args, span| {
            resize(layout, args, span, "unpack")
        }),
        "permute_dims" => method("permute_dims", |layout, args, span| {
            let tile = layout.tile();
            let call = MatchedCall::new(
                "TileLayout.permute_dims",
                const { &[required("perm")] },
                false,
                args,
                span,
            )?;
            let perm = call.items("perm", "a list of dimensions")?;
            let order: Option<Vec<usize>> = perm
                .iter()
                .map(|v| {
                    convert::const_int(v)
                        .and_then(|v| usize::try_from(v).ok())
                        .filter(|v| *v < tile.shard.len())
                })
                .collect();
            match order {
                Some(order) if order.len() == tile.shard.len() => {
                    Ok(Value::Layout(layout.with_tile(TileLayout {
                        shard: order.iter().map(|i| tile.shard[*i].clone()).collect(),
                        ..tile.clone()
                    })))
                }
                _ => call.fail(format!(
                    "the permutation must name each of {} iterators once",
                    tile.shard.len()
                )),
            }
        }),
        _ => return Ok(None),
    }))
}

/// `layout.apply(i, j)`: the place of a coordinate on each axis. A single coordinate is the row-major number of the
/// element; several are coordinates in `shape`, or in the iterators.
fn apply(layout: &Layout, args: Args, span: Span) -> Result<Value> {
    let call = MatchedCall::new(
        "TileLayout.apply",
        const { &[keyword("shape")] },
        true,
        args,
        span,
    )?;
    let given = call.rest.iter();
    let coordinate = given
        .map(|(value, at)| integer(value, at.or(span)))
        .collect::<Result<Vec<_>>>()?;
    let own: Vec<Expr> = layout.tile().shard.iter().map(|i| i.extent.clone()).collect();
    let (shape, of) = match call.get("shape") {
        _ if coordinate.len() == 1 => (vec![views::product(&own, span)?], "size"),
        Some(_) => (call.shape("shape")?, "shape"),
        None => (own, "layout"),
    };
    if shape.len() != coordinate.len() {
        return call.fail(format!(
            "the {of} has {} but {} given",
            count(shape.len(), "dimension"),
            match coordinate.len() {
                1 => "1 coordinate was".to_string(),
                n => format!("{n} coordinates were"),
            }
        ));
    }
    let mut analyzer = Analyzer::new();
    let mut places = Dict::default();
    for (axis, offset) in layout.offsets(&coordinate, &shape) {
        let offset = number(&analyzer.simplify(&offset).at(span));
        let name = Value::str(&*axis.0);
        let at = key(&name).map_err(|message| Diagnostic::new(span, message))?;
        places.insert(at, name, offset);
    }
    Ok(Value::Dict(Rc::new(RefCell::new(places))))
}

/// `layout.size()`: number of elements; `layout.size("laneid")`: number of places on an axis.
fn size(layout: &Layout, args: Args, span: Span) -> Result<Value> {
    let call = MatchedCall::new(
        "TileLayout.size",
        const { &[optional("axis_name")] },
        false,
        args,
        span,
    )?;
    let axis = match call.get("axis_name") {
        None => None,
        Some((value, _)) => match axis_of(value) {
            Some(axis) => Some(axis),
            None => return call.expected("axis_name", "an axis or its name"),
        },
    };
    let of = |i: &&Iter| axis.as_ref().is_none_or(|axis| i.axis == *axis);
    let one = Expr::int32(1).at(span);
    let product = layout.tile().shard.iter().filter(of).try_fold(one, |p, i| {
        typing::binary(Arithmetic::Mul, p.into(), i.extent.clone().into(), span)
    })?;
    Ok(number(&product))
}

/// `layout.span()` of memory, `layout.span("TCol")` of an axis: the largest place there plus one.
fn span_of_axis(layout: &Layout, args: Args, span: Span) -> Result<Value> {
    let call = MatchedCall::new(
        "TileLayout.span",
        const { &[optional("axis")] },
        false,
        args,
        span,
    )?;
    let axis = match call.get("axis") {
        None => Axis::memory(),
        Some((value, _)) => match axis_of(value) {
            Some(axis) => axis,
            None => return call.expected("axis", "an axis or its name"),
        },
    };
    let last = layout.span_on(&axis).at(span);
    Ok(number(&last))
}

fn resize(layout: &Layout, args: Args, span: Span, which: &'static str) -> Result<Value> {
    let call = MatchedCall::new("TileLayout.pack", const { &[required("num")] }, false, args, span)?;
    let num = call.int("num")?;
    let layout = if which == "pack" {
        layout_parts::pack(layout, num, span)?
    } else {
        layout_parts::unpack(layout, num, span)?
    };
    Ok(Value::Layout(layout))
}
