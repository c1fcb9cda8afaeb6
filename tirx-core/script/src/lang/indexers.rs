//! Views by index: `A.sub[…]`, `A.chunk(…)[…]`, `A.tile(…)[…]`, and `A.rearrange("…")`.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

use super::super::eval::{Args, Interpreter, Object, Slice, Value};
use super::super::typing::{self, Arithmetic, Operand};
use super::call::MatchedCall;
use super::convert;
use super::methods::this;
use super::views::{Change, add, declare, dimension, groups, mul, permuted, product, tile_of};
use crate::arith::Analyzer;
use crate::diagnostic::{Diagnostic, Result, error};
use crate::ir::{Buffer, DType, Expr};
use crate::layout::{Axis, Iter, Layout, TileLayout, axes};
use crate::source::Span;

/// Fixes dimension `dim` at `index` and drops it; `what` is the method's name in messages.
fn dropped(
    interp: &mut Interpreter,
    what: &str,
    buffer: &Buffer,
    dim: usize,
    index: &Expr,
    name: Arc<str>,
    span: Span,
) -> Result<Buffer> {
    if let (Some(i), Some(extent)) = (index.as_int(), buffer.shape[dim].as_int())
        && !(0..extent).contains(&i)
    {
        let message = format!("index {i} is out of range for dimension {dim} of {}", buffer.name);
        return Err(Box::new(
            Diagnostic::new(span, message).label(format!("the extent is {extent}")),
        ));
    }
    let tile = tile_of(what, buffer, span)?;
    let mut groups = groups(what, buffer, &tile, span)?;
    let run = groups.remove(dim);
    let start = Start::in_run(what, &run, index, span)?;
    let mut shape = buffer.shape.clone();
    shape.remove(dim);
    moved(interp, buffer, &tile, shape, groups, start, name, span)
}

/// Where a view begins in its buffer.
struct Start {
    /// In elements. In tensor memory these lie along the columns.
    elements: Expr,
    /// In lanes of tensor memory.
    lanes: Option<Expr>,
}

impl Start {
    /// Distance on an axis.
    fn on(axis: &Axis, distance: Expr) -> Start {
        match &*axis.0 {
            LANES => Start {
                elements: Expr::int32(0).at(distance.span),
                lanes: Some(distance),
            },
            _ => Start {
                elements: distance,
                lanes: None,
            },
        }
    }

    fn and(self, other: Start, span: Span) -> Result<Start> {
        Ok(Start {
            elements: add(self.elements, other.elements, span)?,
            lanes: match (self.lanes, other.lanes) {
                (Some(a), Some(b)) => Some(add(a, b, span)?),
                (a, b) => a.or(b),
            },
        })
    }

    /// Digit `index` of a dimension that is made of `run`.
    fn in_run(what: &str, run: &[Iter], index: &Expr, span: Span) -> Result<Start> {
        let mut rest = index.clone();
        let mut sum: Option<Start> = None;
        for (i, iter) in run.iter().enumerate() {
            if axes::is_hardware(&iter.axis) {
                return error(
                    span,
                    format!("{what}: a dimension spread over threads cannot be indexed"),
                );
            }
            let inner: Vec<Expr> = run[i + 1..].iter().map(|i| i.extent.clone()).collect();
            let digit = if inner.is_empty() {
                rest.clone()
            } else {
                let inner = product(&inner, span)?;
                let digit = typing::binary(
                    Arithmetic::FloorDiv,
                    rest.clone().into(),
                    inner.clone().into(),
                    span,
                )?;
                rest = typing::binary(Arithmetic::FloorMod, rest.into(), inner.into(), span)?;
                digit
            };
            let term = Start::on(&iter.axis, mul(digit, iter.stride.clone(), span)?);
            sum = Some(match sum {
                Some(s) => s.and(term, span)?,
                None => term,
            });
        }
        Ok(sum.unwrap_or_else(|| Start::on(&Axis::memory(), Expr::int32(0).at(span))))
    }
}

/// The axis of tensor memory's lanes.
const LANES: &str = "TLane";

/// Bits of a column of tensor memory.
const COLUMN: i128 = 32;

/// The address in tensor memory `elements` elements along the columns after a buffer's.
fn columns_after(buffer: &Buffer, address: &Expr, elements: &Expr, span: Span) -> Result<Expr> {
    if elements.is_int(0) {
        return Ok(address.clone());
    }
    let bits = i128::from(buffer.dtype.bits) * i128::from(buffer.dtype.lanes);
    let by = |op: Arithmetic, e: &Expr, n: i128| typing::binary(op, e.clone().into(), Operand::Int(n), span);
    let distance = by(Arithmetic::Mul, elements, bits)?;
    let mut facts = Analyzer::new();
    let rest = by(Arithmetic::FloorMod, &distance, COLUMN)?;
    if !facts.simplify(&rest).is_int(0) {
        let message = format!(
            "a view of {} must begin at a whole column of tensor memory, which is {COLUMN} bits wide",
            buffer.name
        );
        let label = format!("elements have {bits} bits");
        return Err(Box::new(Diagnostic::new(span, message).label(label)));
    }
    let columns = facts.simplify(&by(Arithmetic::FloorDiv, &distance, COLUMN)?);
    add(address.clone(), columns, span)
}

#[allow(clippy::too_many_arguments, reason = "a private step of two functions")]
fn moved(
    interp: &mut Interpreter,
    buffer: &Buffer,
    tile: &TileLayout,
    shape: Vec<Expr>,
    groups: Vec<Vec<Iter>>,
    start: Start,
    name: Arc<str>,
    span: Span,
) -> Result<Buffer> {
    let mut tile = TileLayout {
        shard: groups.into_iter().flatten().collect(),
        ..tile.clone()
    };
    if let Some(lanes) = start.lanes.filter(|lanes| !lanes.is_int(0)) {
        match tile.offset.iter_mut().find(|(axis, _)| &*axis.0 == LANES) {
            Some((_, base)) => *base = add(base.clone(), lanes, span)?,
            None => tile.offset.push((Axis(LANES.into()), lanes)),
        }
    }
    let offset = start.elements;
    if let ("tmem", Some(address)) = (buffer.scope(), buffer.allocated_addr.first()) {
        let address = columns_after(buffer, address, &offset, span)?;
        let change = Change {
            shape,
            layout: Some(match Layout::from_buffer(buffer) {
                Some(Layout::Compose(swizzle, _)) => Layout::Compose(swizzle, Arc::new(tile)),
                _ => Layout::Tile(Arc::new(tile)),
            }),
            ..Change::default()
        };
        let part = buffer.with(|node| node.allocated_addr[0] = address);
        return declare(interp, &part, name, change, span);
    }
    let layout = Layout::from_buffer(buffer);
    if let Some(Layout::Compose(swizzle, _)) = layout {
        // The swizzle acts on places in the whole storage, so the offset becomes an offset of the layout.
        match tile.offset.iter_mut().find(|(axis, _)| axis.is_memory()) {
            Some((_, base)) => *base = add(base.clone(), offset, span)?,
            None => tile.offset.push((Axis::memory(), offset)),
        }
        let change = Change {
            shape,
            layout: Some(Layout::Compose(swizzle, Arc::new(tile))),
            elem_offset: buffer.elem_offset.clone(),
            dtype: None,
        };
        return declare(interp, buffer, name, change, span);
    }
    let elem_offset = match &buffer.elem_offset {
        Some(base) => add(base.clone(), offset, span)?,
        None => offset,
    };
    let change = Change {
        shape,
        layout: Some(Layout::Tile(Arc::new(tile))),
        elem_offset: Some(elem_offset),
        dtype: None,
    };
    declare(interp, buffer, name, change, span)
}

/// Restricts dimension `dim` to `start .. start + length`.
fn narrowed(
    interp: &mut Interpreter,
    buffer: &Buffer,
    dim: usize,
    start: &Expr,
    length: &Expr,
    name: Arc<str>,
    span: Span,
) -> Result<Buffer> {
    if let (Some(s), Some(l), Some(e)) = (start.as_int(), length.as_int(), buffer.shape[dim].as_int())
        && (s < 0 || l < 1 || s + l > e)
    {
        let message = format!(
            "the range {s}:{} is out of range for dimension {dim} of {}",
            s + l,
            buffer.name
        );
        return Err(Box::new(
            Diagnostic::new(span, message).label(format!("the extent is {e}")),
        ));
    }
    let tile = tile_of("sub", buffer, span)?;
    let mut groups = groups("sub", buffer, &tile, span)?;
    let run = &mut groups[dim];
    let mut divide = start.clone();
    let mut kept = length.clone();
    if run.len() > 1 {
        let inner: Vec<Expr> = run[1..].iter().map(|i| i.extent.clone()).collect();
        let inner = product(&inner, span)?;
        let (Some(n), Some(s), Some(l)) = (inner.as_int(), start.as_int(), length.as_int()) else {
            return error(
                span,
                "sub: a range of a dimension made of several parts must be constant",
            );
        };
        if s % n != 0 || l % n != 0 {
            return error(
                span,
                format!(
                    "sub: the range {s}:{} must start and end at multiples of {n}",
                    s + l
                ),
            );
        }
        divide = Expr::constant(start.dtype, s / n).at(span);
        kept = Expr::constant(length.dtype, l / n).at(span);
    }
    let outer = &mut run[0];
    if axes::is_hardware(&outer.axis) && !start.is_int(0) {
        return error(
            span,
            "sub: a dimension spread over threads cannot be narrowed from its middle",
        );
    }
    let start = Start::on(&outer.axis, mul(divide, outer.stride.clone(), span)?);
    outer.extent = kept;
    let mut shape = buffer.shape.clone();
    shape[dim] = length.clone();
    moved(interp, buffer, &tile, shape, groups, start, name, span)
}

fn reshaped(
    interp: &mut Interpreter,
    buffer: &Buffer,
    shape: Vec<Expr>,
    name: Arc<str>,
    span: Span,
) -> Result<Buffer> {
    let layout = Layout::from_buffer(buffer);
    let change = Change {
        shape,
        layout,
        ..Change::default()
    };
    declare(interp, buffer, name, change, span)
}

/// `A.sub`: indexing it gives a view.
pub(super) fn sub(buffer: &Buffer) -> Value {
    Value::Object(Rc::new(Indexer {
        buffer: buffer.clone(),
        kind: IndexerKind::Sub,
    }))
}

/// `A.chunk(spec)`.
pub(super) fn chunk(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let buffer = this(call)?;
    let items = call.items("spec", "one entry a dimension")?;
    if items.len() != buffer.shape.len() {
        return call.fail(format!(
            "{} entries for {} dimensions",
            items.len(),
            buffer.shape.len()
        ));
    }
    let mut counts = Vec::new();
    for item in &items {
        counts.push(match (item, convert::const_int(item)) {
            (Value::None, _) => None,
            (_, Some(n)) if n > 0 => Some(n),
            _ => return call.expected("spec", "None or a positive int for each dimension"),
        });
    }
    let kind = IndexerKind::Chunk(counts);
    Ok(Value::Object(Rc::new(Indexer { buffer, kind })))
}

/// `A.tile(dim, factors)`, `A.tile((dim, factors), …)`.
pub(super) fn tile(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let buffer = this(call)?;
    let rest: Vec<Value> = call.rest.iter().map(|(v, _)| v.clone()).collect();
    let pairs = match &rest[..] {
        [dim, factors] if convert::const_int(dim).is_some() => {
            vec![Value::tuple(vec![dim.clone(), factors.clone()])]
        }
        _ => rest,
    };
    let mut specs = Vec::new();
    for pair in &pairs {
        let items = pair.as_items().unwrap_or_default();
        let spec = match &items[..] {
            [dim, factors] => convert::const_int(dim)
                .and_then(|d| dimension(d, buffer.shape.len()))
                .zip(factors.as_items()),
            _ => None,
        };
        match spec {
            Some((dim, factors)) if !factors.is_empty() && specs.iter().all(|(d, _)| *d != dim) => {
                specs.push((dim, factors));
            }
            _ => return call.fail("needs a dimension and its factors, such as A.tile(0, (4, -1))"),
        }
    }
    if specs.is_empty() {
        return call.fail("needs a dimension and its factors, such as A.tile(0, (4, -1))");
    }
    let kind = IndexerKind::Tile(specs);
    Ok(Value::Object(Rc::new(Indexer { buffer, kind })))
}

enum IndexerKind {
    Sub,
    Chunk(Vec<Option<i128>>),
    Tile(Vec<(usize, Vec<Value>)>),
}

/// A view that is made when it is indexed.
struct Indexer {
    buffer: Buffer,
    kind: IndexerKind,
}

impl Object for Indexer {
    fn type_name(&self) -> &str {
        "view of a buffer"
    }

    fn subscript(&self, interp: &mut Interpreter, index: &Value, span: Span) -> Result<Value> {
        let items = index.as_items().unwrap_or_else(|| vec![index.clone()]);
        match &self.kind {
            IndexerKind::Sub => sub_index(interp, &self.buffer, &items, span).map(Value::Buffer),
            IndexerKind::Chunk(counts) => chunk_index(interp, &self.buffer, counts, &items, span),
            IndexerKind::Tile(specs) => {
                tile_index(interp, &self.buffer, specs, &items, span).map(Value::Buffer)
            }
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn unnamed() -> Arc<str> {
    "buffer".into()
}

fn sub_index(interp: &mut Interpreter, of: &Buffer, items: &[Value], span: Span) -> Result<Buffer> {
    if items.len() > of.shape.len() {
        return error(
            span,
            format!("sub: {} indices for {} dimensions", items.len(), of.shape.len()),
        );
    }
    let mut buffer = of.clone();
    let mut dim = 0;
    for item in items {
        let Value::Slice(slice) = item else {
            buffer = dropped(
                interp,
                "sub",
                &buffer,
                dim,
                &convert::expr(item, span)?,
                unnamed(),
                span,
            )?;
            continue;
        };
        let Slice { start, stop, step } = &**slice;
        let first = match start {
            Value::None => Expr::int32(0).at(span),
            v => convert::expr(v, span)?,
        };
        match convert::const_int(step) {
            _ if matches!(step, Value::None) => {}
            Some(1) => {}
            Some(n) if n > 1 => {
                let extent = buffer.shape[dim].as_int();
                let Some(extent) = extent.filter(|e| e % n == 0 && matches!(stop, Value::None)) else {
                    return error(
                        span,
                        format!("sub: a step of {n} needs a whole dimension divisible by it"),
                    );
                };
                if first.as_int().is_some_and(|f| !(0..n).contains(&f)) {
                    return error(
                        span,
                        format!("sub: the start of a stepped slice must be from 0 to {}", n - 1),
                    );
                }
                let mut shape = buffer.shape.clone();
                let dtype = shape[dim].dtype;
                shape[dim] = Expr::constant(dtype, extent / n).at(span);
                shape.insert(dim + 1, Expr::constant(dtype, n).at(span));
                let split = reshaped(interp, &buffer, shape, unnamed(), span)?;
                buffer = dropped(interp, "sub", &split, dim + 1, &first, unnamed(), span)?;
                dim += 1;
                continue;
            }
            _ => return error(span, "sub: the step of a slice must be a positive constant"),
        }
        if !matches!((start, stop), (Value::None, Value::None)) {
            let last = match stop {
                Value::None => buffer.shape[dim].clone(),
                v => convert::expr(v, span)?,
            };
            let length = super::linear::difference(&last, &first, span)?;
            buffer = narrowed(interp, &buffer, dim, &first, &length, unnamed(), span)?;
        }
        dim += 1;
    }
    Ok(buffer)
}

fn chunk_index(
    interp: &Interpreter,
    buffer: &Buffer,
    counts: &[Option<i128>],
    items: &[Value],
    span: Span,
) -> Result<Value> {
    if items.len() > counts.len() {
        return error(
            span,
            format!("chunk: {} indices for {} dimensions", items.len(), counts.len()),
        );
    }
    let mut index = Vec::with_capacity(items.len());
    for (dim, item) in items.iter().enumerate() {
        let Some(count) = counts[dim] else {
            index.push(item.clone());
            continue;
        };
        if matches!(item, Value::Slice(_)) {
            return error(
                span,
                format!("chunk: dimension {dim} takes the number of a chunk, not a slice"),
            );
        }
        let pick = convert::expr(item, span)?;
        let extent = buffer.shape[dim].clone();
        let size = typing::binary(Arithmetic::FloorDiv, extent.into(), Operand::Int(count), span)?;
        let start = mul(pick, size.clone(), span)?;
        let stop = add(start.clone(), size, span)?;
        index.push(Value::Slice(Rc::new(Slice {
            start: Value::Expr(start),
            stop: Value::Expr(stop),
            step: Value::None,
        })));
    }
    super::access::load(interp, buffer, &Value::tuple(index), span)
}

fn tile_index(
    interp: &mut Interpreter,
    of: &Buffer,
    specs: &[(usize, Vec<Value>)],
    items: &[Value],
    span: Span,
) -> Result<Buffer> {
    let wanted: usize = specs.iter().map(|(_, f)| f.len()).sum();
    if items.len() != wanted {
        return error(
            span,
            format!("tile: {wanted} factors but {} indices", items.len()),
        );
    }
    let mut parts = Vec::new();
    let mut rest = items;
    for (dim, factors) in specs {
        let (picks, more) = rest.split_at(factors.len());
        parts.push((*dim, factors, picks));
        rest = more;
    }
    // From the last dimension on, so that earlier dimensions keep their numbers.
    parts.sort_by_key(|(dim, ..)| std::cmp::Reverse(*dim));
    let mut buffer = of.clone();
    for (dim, factors, picks) in parts {
        let whole = |v: &Value| matches!(v, Value::Slice(s) if matches!((&s.start, &s.stop, &s.step), (Value::None, Value::None, Value::None)));
        let kept = picks.iter().filter(|p| whole(p)).count();
        if kept == picks.len() {
            return error(
                span,
                format!("tile: no factor of dimension {dim} is picked; use view to split it"),
            );
        }
        let mut shape = buffer.shape.clone();
        let extent = shape.remove(dim);
        let mut split = Vec::new();
        let mut unknown = None;
        for (i, factor) in factors.iter().enumerate() {
            if convert::const_int(factor) == Some(-1) && unknown.replace(i).is_none() {
                split.push(Expr::int32(1).at(span));
            } else {
                split.push(convert::expr(factor, span)?);
            }
        }
        if let Some(i) = unknown {
            let known = product(&split, span)?;
            if let (Some(e), Some(k)) = (extent.as_int(), known.as_int())
                && (k <= 0 || e % k != 0)
            {
                let message = format!("tile: the {e} elements of dimension {dim} are not divisible by {k}");
                return error(span, message);
            }
            split[i] = typing::binary(Arithmetic::FloorDiv, extent.into(), known.into(), span)?;
        } else if let (Some(e), Some(k)) = (extent.as_int(), product(&split, span)?.as_int())
            && e != k
        {
            let message = format!("tile: the factors of dimension {dim} make {k} elements, but it has {e}");
            return error(span, message);
        }
        shape.splice(dim..dim, split);
        buffer = reshaped(interp, &buffer, shape, unnamed(), span)?;
        for (i, pick) in picks.iter().enumerate().rev() {
            if !whole(pick) {
                buffer = dropped(
                    interp,
                    "tile",
                    &buffer,
                    dim + i,
                    &convert::expr(pick, span)?,
                    unnamed(),
                    span,
                )?;
            }
        }
        if kept >= 2 {
            let mut shape = buffer.shape.clone();
            let merged = product(&shape[dim..dim + kept], span)?;
            shape.splice(dim..dim + kept, [merged]);
            buffer = reshaped(interp, &buffer, shape, unnamed(), span)?;
        }
    }
    Ok(buffer)
}

/// `A.rearrange("(a b) c -> a c b", a=4)`.
pub(super) fn rearrange(buffer: &Buffer) -> Value {
    let buffer = buffer.clone();
    Value::builtin("Buffer.rearrange", move |interp, args: Args, span| {
        let pattern = match args.positional.first() {
            Some((Value::Str(s), _)) if args.positional.len() == 1 => s.to_string(),
            _ => return error(span, "rearrange needs a pattern such as \"(a b) c -> a c b\""),
        };
        let mut sizes = Vec::new();
        for (name, value, at) in &args.keyword {
            match convert::const_int(value) {
                Some(v) if v > 0 => sizes.push((name.to_string(), v)),
                _ => {
                    return error(
                        *at,
                        format!("rearrange: the size of \"{name}\" must be a positive int"),
                    );
                }
            }
        }
        rearranged(interp, &buffer, &pattern, &sizes, args.name_or("buffer"), span).map(Value::Buffer)
    })
}

fn pattern_side(side: &str) -> Option<Vec<Vec<String>>> {
    let mut groups = Vec::new();
    let mut rest = side.trim();
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('(') {
            let (group, more) = inner.split_once(')')?;
            groups.push(group.split_whitespace().map(String::from).collect());
            rest = more.trim_start();
        } else {
            let end = rest
                .find(|c: char| c.is_whitespace() || c == '(')
                .unwrap_or(rest.len());
            groups.push(vec![rest[..end].to_string()]);
            rest = rest[end..].trim_start();
        }
    }
    Some(groups)
}

fn rearranged(
    interp: &mut Interpreter,
    buffer: &Buffer,
    pattern: &str,
    sizes: &[(String, i128)],
    name: Arc<str>,
    span: Span,
) -> Result<Buffer> {
    let fail = |message: String| error(span, format!("rearrange \"{pattern}\": {message}"));
    let sides = pattern
        .split_once("->")
        .and_then(|(l, r)| Some((pattern_side(l)?, pattern_side(r)?)));
    let Some((from, to)) = sides else {
        return fail("write it as \"axes -> axes\"".into());
    };
    if from.len() != buffer.shape.len() {
        return fail(format!(
            "the left side has {} groups for {} dimensions",
            from.len(),
            buffer.shape.len()
        ));
    }
    let mut known: Vec<(String, i128)> = Vec::new();
    for (group, extent) in from.iter().zip(&buffer.shape) {
        let Some(extent) = extent.as_int() else {
            return fail("the shape must be constant".into());
        };
        let given = |axis: &String| sizes.iter().find(|(n, _)| n == axis).map(|(_, v)| *v);
        let product: i128 = group.iter().filter_map(given).product();
        let unknown: Vec<&String> = group.iter().filter(|a| given(a).is_none()).collect();
        match &unknown[..] {
            [] if product != extent => {
                return fail(format!("a group has {product} elements, its dimension {extent}"));
            }
            [_] if extent % product != 0 => return fail(format!("{extent} is not divisible by {product}")),
            [] | [_] => {}
            _ => return fail("all but one axis of a group need a size".into()),
        }
        for axis in group {
            known.push((axis.clone(), given(axis).unwrap_or(extent / product.max(1))));
        }
    }
    let order: Option<Vec<usize>> = to
        .iter()
        .flatten()
        .map(|a| known.iter().position(|(n, _)| n == a))
        .collect();
    let Some(order) = order.filter(|o| o.len() == known.len() && (0..o.len()).all(|d| o.contains(&d))) else {
        return fail("both sides must name the same axes".into());
    };
    let constant = |v: i128| typing::constant(DType::INT32, v, span);
    let split = known
        .iter()
        .map(|(_, v)| constant(*v))
        .collect::<Result<Vec<_>>>()?;
    let view = reshaped(interp, buffer, split, unnamed(), span)?;
    let view = permuted(interp, &view, &order, unnamed(), span)?;
    let size = |axis: &String| known.iter().find(|(n, _)| n == axis).map_or(1, |(_, v)| *v);
    let merged = to
        .iter()
        .map(|group| constant(group.iter().map(size).product()))
        .collect::<Result<Vec<_>>>()?;
    reshaped(interp, &view, merged, name, span)
}
