//! Views: the same storage under another shape, dtype or order. Each declares a buffer; none moves data.

use std::sync::Arc;

use super::super::eval::{Interpreter, Value};
use super::super::typing::{self, Arithmetic, Operand};
use super::call::MatchedCall;
use super::convert;
use super::layout_parts;
use super::layouts;
use super::methods::this;
use crate::diagnostic::{Result, error};
use crate::ir::{Buffer, DType, Expr, Stmt, StmtKind};
use crate::layout::{Iter, Layout, TileLayout};
use crate::source::Span;

pub(super) fn mul(a: Expr, b: Expr, span: Span) -> Result<Expr> {
    typing::binary(Arithmetic::Mul, a.into(), b.into(), span)
}

pub(super) fn add(a: Expr, b: Expr, span: Span) -> Result<Expr> {
    typing::binary(Arithmetic::Add, a.into(), b.into(), span)
}

pub(super) fn product(list: &[Expr], span: Span) -> Result<Expr> {
    list.iter()
        .try_fold(Expr::int32(1).at(span), |p, e| mul(p, e.clone(), span))
}

/// The changes that a view makes; `None` keeps the buffer's own.
#[derive(Default)]
pub(super) struct Change {
    pub shape: Vec<Expr>,
    pub layout: Option<Layout>,
    pub dtype: Option<DType>,
    pub elem_offset: Option<Expr>,
}

pub(super) fn declare(
    interp: &mut Interpreter,
    of: &Buffer,
    name: Arc<str>,
    change: Change,
    span: Span,
) -> Result<Buffer> {
    convert::check_reach(&change.shape, &[], span)?;
    let view = of.with(|node| {
        node.name = name;
        node.shape = change.shape;
        node.layout = change.layout;
        // Strides are part of the layout.
        node.strides.clear();
        node.dtype = change.dtype.unwrap_or(node.dtype);
        if let Some(offset) = change.elem_offset {
            node.elem_offset = Some(offset).filter(|e| !e.is_int(0));
        }
        node.span = span;
    });
    interp.emit(Stmt::new(StmtKind::DeclBuffer(view.clone()), span))?;
    Ok(view)
}

fn no_layout<T>(what: &str, buffer: &Buffer, span: Span) -> Result<T> {
    error(
        span,
        format!("{what}: {} has no layout (layout=None)", buffer.name),
    )
}

pub(super) fn tile_of(what: &str, buffer: &Buffer, span: Span) -> Result<Arc<TileLayout>> {
    match Layout::from_buffer(buffer) {
        Some(Layout::Tile(tile) | Layout::Compose(_, tile)) => Ok(tile),
        None => no_layout(what, buffer, span),
    }
}

/// `A.view(8, -1)`, `A.view(8, 4, layout=…)`, `A.view("float16")`.
pub(super) fn view(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let buffer = this(call)?;
    let layout = match call.get("layout") {
        None => None,
        Some((Value::Layout(layout), _)) => Some(layout.clone()),
        Some((value, span)) => match layouts::from_spec(value, span)? {
            Some(layout) => Some(layout),
            None => return call.expected("layout", "a layout"),
        },
    };
    if let [(value @ (Value::Str(_) | Value::DType(_)), span)] = &call.rest[..] {
        if layout.is_some() {
            return call.fail("a dtype and a layout cannot both be given");
        }
        let Some(dtype) = convert::dtype(value, *span)? else {
            return call.fail("expected a dtype");
        };
        return view_as(interp, call, &buffer, dtype).map(Value::Buffer);
    }
    let mut shape = Vec::with_capacity(call.rest.len());
    let mut unknown = None;
    for (i, (value, span)) in call.rest.iter().enumerate() {
        if convert::const_int(value) == Some(-1) {
            if unknown.replace(i).is_some() || layout.is_some() {
                return call.fail("only one extent may be -1, and no extent if a layout is given");
            }
            shape.push(Expr::int32(1).at(*span));
            continue;
        }
        match convert::extent(value, *span) {
            Some(extent) => shape.push(extent?),
            None => return call.fail("extents must be integers: A.view(8, 4)"),
        }
    }
    if shape.is_empty() {
        return call.fail("needs a shape or a dtype");
    }
    let total = product(&buffer.shape, call.span)?;
    let given = product(&shape, call.span)?;
    if let Some(i) = unknown {
        if let (Some(t), Some(g)) = (total.as_int(), given.as_int())
            && (g == 0 || t % g != 0)
        {
            return call.fail(format!("{t} elements do not divide into parts of {g}"));
        }
        shape[i] = typing::binary(Arithmetic::FloorDiv, total.into(), given.into(), call.span)?;
    } else if layout.is_none()
        && let (Some(t), Some(g)) = (total.as_int(), given.as_int())
        // Printed IR expresses a declaration over the front of storage so, or over a pool, whose size is not written.
        && g > t
        && t != 0
    {
        return call.fail(format!(
            "{} has {t} elements but the new shape has {g}",
            buffer.name
        ));
    }
    // The same elements in the same order: of a row-major buffer that is row-major again, in the plain form.
    let keep = || match Layout::from_buffer(&buffer) {
        Some(l) if l.is_row_major(&buffer.shape) => Some(Layout::row_major(&shape)),
        other => other,
    };
    let layout = layout.or_else(keep);
    let change = Change {
        shape,
        layout,
        ..Change::default()
    };
    declare(interp, &buffer, call.names.name_or("buffer"), change, call.span).map(Value::Buffer)
}

/// The same bytes as elements of another width: the last dimension grows or shrinks.
/// `A.with_dtype("uint32")`: the same elements, read as another dtype that is as wide.
pub(super) fn with_dtype(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let buffer = this(call)?;
    let dtype = call.dtype("dtype")?;
    let bits = |d: DType| d.bits as u32 * d.lanes as u32;
    if bits(dtype) != bits(buffer.dtype) {
        return call.fail_with(
            format!(
                "{dtype} is not as wide as {} of \"{}\"",
                buffer.dtype, buffer.name
            ),
            format!(
                "a view has as many elements as there are then: {}.view(\"{dtype}\")",
                buffer.name
            ),
        );
    }
    view_as(interp, call, &buffer, dtype).map(Value::Buffer)
}

fn view_as(interp: &mut Interpreter, call: &MatchedCall, buffer: &Buffer, dtype: DType) -> Result<Buffer> {
    let span = call.span;
    let bits = |d: DType| d.bits as i128 * d.lanes as i128;
    let (from, to) = (bits(buffer.dtype), bits(dtype));
    let Some((last, outer)) = buffer.shape.split_last() else {
        return call.fail("a buffer without dimensions cannot be viewed as another dtype");
    };
    // Flat storage already has its elements in order.
    let tile = Layout::from_buffer(buffer);
    let packed = |ratio| {
        tile.as_ref()
            .map(|t| layout_parts::pack(t, ratio, span))
            .transpose()
    };
    let unpacked = |ratio| {
        tile.as_ref()
            .map(|t| layout_parts::unpack(t, ratio, span))
            .transpose()
    };
    let by = |op: Arithmetic, e: &Expr, n: i128| typing::binary(op, e.clone().into(), Operand::Int(n), span);
    let (op, ratio, layout) = if to > from && to % from == 0 {
        let ratio = to / from;
        (Arithmetic::FloorDiv, ratio, packed(ratio)?)
    } else if to <= from && from % to == 0 {
        let ratio = from / to;
        (Arithmetic::Mul, ratio, unpacked(ratio)?)
    } else {
        return call.fail(format!(
            "{} of {} cannot be viewed as {dtype}",
            buffer.name, buffer.dtype
        ));
    };
    let mut shape = outer.to_vec();
    shape.push(by(op, last, ratio)?);
    let change = Change {
        shape,
        layout,
        dtype: Some(dtype),
        elem_offset: match &buffer.elem_offset {
            Some(e) => Some(by(op, e, ratio)?),
            None => None,
        },
    };
    declare(interp, buffer, call.names.name_or("buffer"), change, span)
}

/// `A.get_flattened_buffer()`: the storage as one dimension; a buffer that is flat already is itself.
///
/// TVM only describes such a buffer; here it is declared, so that its elements can be read and written.
pub(super) fn flattened(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let buffer = this(call)?;
    let size = match (buffer.strides.first(), buffer.shape.first()) {
        (Some(stride), Some(extent)) => mul(stride.clone(), extent.clone(), call.span)?,
        _ if buffer.shape.len() == 1 => return Ok(Value::Buffer(buffer)),
        _ => product(&buffer.shape, call.span)?,
    };
    let shape = vec![size];
    let change = Change {
        layout: buffer.layout.as_ref().map(|_| Layout::row_major(&shape)),
        shape,
        ..Change::default()
    };
    let plain = buffer.with(|node| node.strides.clear());
    declare(interp, &plain, call.names.name_or("buffer"), change, call.span).map(Value::Buffer)
}

/// `A.local(…)`: the calling thread's own elements.
pub(super) fn local(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let buffer = this(call)?;
    let span = call.span;
    let given = match call.get("layout") {
        None => None,
        Some((Value::Layout(layout), _)) => Some(layout.clone()),
        Some((value, at)) => match layouts::from_spec(value, at)? {
            Some(layout) => Some(layout),
            None => return call.expected("layout", "a layout"),
        },
    };
    let mut shape = Vec::new();
    for (value, at) in &call.rest {
        match convert::extent(value, *at) {
            Some(extent) => shape.push(extent?),
            None => return call.fail("extents must be integers: A.local(2, 4)"),
        }
    }
    if shape.is_empty() || given.is_none() {
        let Some(layout) = Layout::from_buffer(&buffer) else {
            return no_layout(call.function, &buffer, span);
        };
        let storage = layout_parts::storage(&layout);
        let extents: Vec<Expr> = storage.tile().shard.iter().map(|i| i.extent.clone()).collect();
        let count = if given.is_none() {
            storage.memory_span()
        } else {
            product(&extents, span)?
        };
        if shape.is_empty() {
            shape.push(count.at(span));
        } else {
            let total = product(&shape, span)?;
            let equal = total == count || total.as_int().is_some() && total.as_int() == count.as_int();
            if !equal {
                let show = |e: &Expr| {
                    e.as_int()
                        .map_or("a symbolic number of".to_string(), |v| v.to_string())
                };
                return call.fail(format!(
                    "the shape has {} elements but each thread holds {}",
                    show(&total),
                    show(&count)
                ));
            }
        }
    }
    let change = Change {
        layout: Some(given.unwrap_or_else(|| Layout::row_major(&shape))),
        shape,
        ..Change::default()
    };
    declare(interp, &buffer, call.names.name_or("buffer"), change, span).map(Value::Buffer)
}

pub(super) fn permuted(
    interp: &mut Interpreter,
    buffer: &Buffer,
    order: &[usize],
    name: Arc<str>,
    span: Span,
) -> Result<Buffer> {
    let tile = tile_of("permute", buffer, span)?;
    let groups = groups("permute", buffer, &tile, span)?;
    let change = Change {
        shape: order.iter().map(|d| buffer.shape[*d].clone()).collect(),
        layout: Layout::from_buffer(buffer).map(|layout| {
            layout.with_tile(TileLayout {
                shard: order.iter().flat_map(|d| groups[*d].clone()).collect(),
                ..(*tile).clone()
            })
        }),
        ..Change::default()
    };
    declare(interp, buffer, name, change, span)
}

pub(super) fn groups(what: &str, buffer: &Buffer, tile: &TileLayout, span: Span) -> Result<Vec<Vec<Iter>>> {
    match layout_parts::group(tile, &buffer.shape, span)? {
        Some(groups) => Ok(groups),
        None => error(
            span,
            format!(
                "{what}: the layout of {} does not split along its dimensions",
                buffer.name
            ),
        ),
    }
}

/// `A.permute(1, 0)`.
pub(super) fn permute(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let buffer = this(call)?;
    let rank = buffer.shape.len();
    let order: Option<Vec<usize>> = call
        .rest
        .iter()
        .map(|(v, _)| convert::const_int(v).and_then(|v| dimension(v, rank)))
        .collect();
    let valid = order.filter(|o| o.len() == rank && (0..rank).all(|d| o.contains(&d)));
    let Some(order) = valid else {
        return call.fail(format!(
            "needs each of the {rank} dimensions once, such as A.permute(1, 0)"
        ));
    };
    permuted(interp, &buffer, &order, call.names.name_or("buffer"), call.span).map(Value::Buffer)
}

/// A dimension, negative ones from the end.
pub(super) fn dimension(v: i128, rank: usize) -> Option<usize> {
    let v = if v < 0 { v + rank as i128 } else { v };
    usize::try_from(v).ok().filter(|v| *v < rank)
}
