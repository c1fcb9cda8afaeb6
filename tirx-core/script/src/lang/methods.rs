//! Attributes and methods of buffers, regions, expressions and dtypes: `A.data`, `A.ptr_to([i])`, `x.astype("int32")`.

use std::rc::Rc;

use super::super::eval::{Args, Interpreter, Value, keyword, optional, required, suggest};
use super::super::typing::{self, Arithmetic, Operand};
use super::call::{Function, MatchedCall, function, variadic};
use super::calls;
use super::convert;
use super::indexers;
use super::layouts;
use super::objects::{BufferType, TypeValue};
use super::views;
use crate::diagnostic::{Diagnostic, Result};
use crate::intrin::Op;
use crate::ir::{Buffer, DType, Expr, ExprKind, Stmt, StmtKind};
use crate::source::Span;

const SELF: &str = "self";

/// Methods of buffers: the first parameter, `self`, is the buffer.
static METHODS: &[Function] = &[
    function("Buffer.scope", const { &[required(SELF)] }, |_, c| {
        Ok(Value::str(this(c)?.scope()))
    }),
    function(
        "Buffer.ptr_to",
        const { &[required(SELF), required("indices")] },
        ptr_to,
    ),
    function(
        "Buffer.vload",
        const {
            &[
                required(SELF),
                required("begin"),
                optional("dtype"),
                optional("predicate"),
            ]
        },
        vload,
    ),
    function(
        "Buffer.vstore",
        const {
            &[
                required(SELF),
                required("begin"),
                required("value"),
                optional("predicate"),
            ]
        },
        vstore,
    ),
    function(
        "Buffer.access_ptr",
        const {
            &[
                required(SELF),
                required("access_mask"),
                optional("ptr_type"),
                optional("content_lanes"),
                optional("offset"),
                optional("extent"),
            ]
        },
        access_ptr,
    ),
    function(
        "Buffer.elem_offset_of",
        const { &[required(SELF), required("indices"), optional("inner")] },
        |i, c| elem_offset_of(i, c).map(Value::Expr),
    ),
    function(
        "Buffer.byte_offset_of",
        const { &[required(SELF), required("indices"), optional("inner")] },
        |i, c| {
            let elements = elem_offset_of(i, c)?;
            let bits = Operand::Int(this(c)?.dtype.bits as i128);
            let scaled = typing::binary(Arithmetic::Mul, elements.into(), bits, c.span)?;
            typing::binary(Arithmetic::FloorDiv, scaled.into(), Operand::Int(8), c.span).map(Value::Expr)
        },
    ),
    function(
        "Buffer.offset_of",
        const { &[required(SELF), required("indices")] },
        offset_of,
    ),
    function("Buffer.is_scalar", const { &[required(SELF)] }, |_, c| {
        let b = this(c)?;
        Ok(Value::Bool(b.shape.len() == 1 && b.shape[0].is_int(1)))
    }),
    function(
        "Buffer.same_as",
        const { &[required(SELF), required("other")] },
        |_, c| {
            let this = this(c)?;
            Ok(Value::Bool(
                c.get("other")
                    .and_then(|(v, _)| convert::buffer(v))
                    .is_some_and(|o| o == this),
            ))
        },
    ),
    variadic(
        "Buffer.view",
        const { &[required(SELF), keyword("layout")] },
        views::view,
    ),
    function(
        "Buffer.with_dtype",
        const { &[required(SELF), required("dtype")] },
        views::with_dtype,
    ),
    variadic(
        "Buffer.local",
        const { &[required(SELF), keyword("layout")] },
        views::local,
    ),
    function(
        "Buffer.get_flattened_buffer",
        const { &[required(SELF)] },
        views::flattened,
    ),
    variadic("Buffer.permute", const { &[required(SELF)] }, views::permute),
    variadic("Buffer.tile", const { &[required(SELF)] }, indexers::tile),
    function(
        "Buffer.chunk",
        const { &[required(SELF), required("spec")] },
        indexers::chunk,
    ),
];

/// The buffer whose method is called.
pub(super) fn this(call: &MatchedCall) -> Result<Buffer> {
    match call.get(SELF) {
        Some((Value::Buffer(b), _)) => Ok(b.clone()),
        _ => call.expected(SELF, "a buffer"),
    }
}

fn bound(buffer: &Buffer, method: &'static Function) -> Value {
    let buffer = buffer.clone();
    Value::builtin(method.name, move |interp, mut args: Args, span| {
        args.positional.insert(0, (Value::Buffer(buffer.clone()), span));
        method.call(interp, args, span)
    })
}

const BUFFER_FIELDS: [&str; 14] = [
    "data",
    "dtype",
    "shape",
    "strides",
    "elem_offset",
    "byte_offset",
    "data_alignment",
    "offset_factor",
    "layout",
    "name",
    "allocated_addr",
    "ty",
    "sub",
    "rearrange",
];

/// What a buffer has: names with signatures, which are empty for fields.
pub(super) fn documented() -> Vec<(String, String)> {
    let methods = METHODS.iter().map(|method| {
        let signature = method.signature();
        let own = signature
            .trim_start_matches('(')
            .strip_prefix(SELF)
            .unwrap_or_default();
        (
            method.name.to_string(),
            format!("({}", own.trim_start_matches(", ")),
        )
    });
    let fields = BUFFER_FIELDS
        .iter()
        .map(|field| (format!("Buffer.{field}"), String::new()));
    methods.chain(fields).collect()
}

/// `buffer.name`.
pub(super) fn buffer(buffer: &Buffer, name: &str, span: Span) -> Result<Value> {
    let numbers = |list: &[Expr]| Value::tuple(list.iter().map(layouts::number).collect());
    Ok(match name {
        "data" => Value::Expr(Expr::var(&buffer.data).at(span)),
        "dtype" => Value::DType(buffer.dtype),
        "shape" => numbers(&buffer.shape),
        "strides" => numbers(&buffer.strides),
        "elem_offset" => buffer.elem_offset.as_ref().map_or(Value::Int(0), layouts::number),
        "byte_offset" => match &buffer.elem_offset {
            None => Value::Int(0),
            Some(e) => {
                let bits = Operand::Int(buffer.dtype.bits as i128);
                let scaled = typing::binary(Arithmetic::Mul, e.clone().into(), bits, span)?;
                Value::Expr(typing::binary(
                    Arithmetic::FloorDiv,
                    scaled.into(),
                    Operand::Int(8),
                    span,
                )?)
            }
        },
        "data_alignment" => Value::Int(buffer.align as i128),
        "offset_factor" => Value::Int(buffer.offset_factor as i128),
        "layout" => buffer.layout.clone().map_or(Value::None, Value::Layout),
        "name" => Value::str(&*buffer.name),
        "allocated_addr" => numbers(&buffer.allocated_addr),
        "ty" => Value::Object(Rc::new(BufferType(buffer.clone()))),
        "sub" => indexers::sub(buffer),
        "rearrange" => indexers::rearrange(buffer),
        // TVM prints the element of such a buffer by the buffer's name, and the buffer as `.buffer` (0.26) or `.source` (0.27).
        "buffer" | "source" if convert::is_single(buffer) => Value::Buffer(buffer.clone()),
        _ => {
            let method = METHODS
                .iter()
                .find(|m| m.name.strip_prefix("Buffer.") == Some(name));
            if let Some(method) = method {
                return Ok(bound(buffer, method));
            }
            let names = METHODS
                .iter()
                .filter_map(|m| m.name.strip_prefix("Buffer."))
                .chain(BUFFER_FIELDS);
            if let Some(help) = array_method(name) {
                let message = format!("a buffer has no attribute \"{name}\"");
                return Err(Box::new(Diagnostic::new(span, message).help(help)));
            }
            return no_attribute("a buffer", name, names, span);
        }
    })
}

/// The equivalent for a method that arrays of other libraries have.
fn array_method(name: &str) -> Option<&'static str> {
    Some(match name {
        "reshape" | "flatten" | "ravel" => "to see the elements in another shape, use .view(shape…)",
        "transpose" | "T" | "swapaxes" => "to see the axes in another order, use .permute(1, 0)",
        "astype" | "to" => "convert an element: T.cast(buffer[i], dtype)",
        "size" | "numel" => "multiply the extents of .shape",
        "data_ptr" => "the pointer is .data; that of an element .ptr_to([i])",
        _ => return None,
    })
}

fn no_attribute<'a>(
    of: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    span: Span,
) -> Result<Value> {
    let diagnostic = Diagnostic::new(span, format!("{of} has no attribute \"{name}\""));
    Err(Box::new(match suggest(name, known) {
        Some(near) => diagnostic.help(format!("did you mean \"{near}\"?")),
        None => diagnostic,
    }))
}

/// `expression.name`.
pub(super) fn expression(e: &Expr, name: &str, span: Span) -> Result<Value> {
    Ok(match (name, &e.kind) {
        ("dtype", _) => Value::DType(e.dtype),
        ("ty", _) => Value::Object(Rc::new(TypeValue(convert::expr_type(e)))),
        ("astype", _) => {
            let e = e.clone();
            Value::builtin("astype", move |_, args, span| {
                let call = MatchedCall::new("astype", const { &[required("dtype")] }, false, args, span)?;
                typing::cast(e.clone().into(), call.dtype("dtype")?, span).map(Value::Expr)
            })
        }
        ("equal", _) => {
            let e = e.clone();
            Value::builtin("equal", move |_, args, span| {
                let call = MatchedCall::new("equal", const { &[required("other")] }, false, args, span)?;
                typing::compare(
                    crate::ir::BinOp::Eq,
                    e.clone().into(),
                    call.operand("other")?,
                    span,
                )
                .map(Value::Expr)
            })
        }
        ("same_as", _) => {
            let e = e.clone();
            Value::builtin("same_as", move |_, args, span| {
                let call = MatchedCall::new("same_as", const { &[required("other")] }, false, args, span)?;
                let other = call.get("other").and_then(|(v, _)| v.as_expr().cloned());
                Ok(Value::Bool(other.is_some_and(|o| o == e)))
            })
        }
        ("name", ExprKind::Var(v)) => Value::str(v.name()),
        ("value", ExprKind::Int(v)) => Value::Int(*v),
        ("value", ExprKind::Float(v)) => Value::Float(*v),
        ("value", ExprKind::Str(s)) => Value::str(&**s),
        ("buffer" | "source", ExprKind::BufferLoad { buffer, .. }) => Value::Buffer(buffer.clone()),
        ("indices", ExprKind::BufferLoad { indices, .. }) => {
            Value::tuple(indices.iter().map(layouts::number).collect())
        }
        // A scalar denotes its element; attributes of buffers apply to it as well.
        (_, ExprKind::BufferLoad { buffer: b, .. }) if b.shape.len() == 1 && b.shape[0].is_int(1) => {
            return buffer(b, name, span);
        }
        _ => {
            let known = ["dtype", "ty", "astype", "equal", "same_as", "name", "value"];
            return no_attribute(&format!("an expression of dtype {}", e.dtype), name, known, span);
        }
    })
}

/// `dtype.name`.
pub(super) fn dtype(d: DType, name: &str, span: Span) -> Result<Value> {
    Ok(match name {
        "bits" => Value::Int(d.bits as i128),
        "lanes" => Value::Int(d.lanes as i128),
        "dtype" => Value::DType(d),
        "itemsize" => Value::Int(d.bytes() as i128),
        "name" => Value::str(d.to_string()),
        "is_integer" => Value::Bool(d.is_integer()),
        "is_float" => Value::Bool(d.is_floating()),
        "is_bool" => Value::Bool(d.is_bool()),
        "is_handle" => Value::Bool(d.is_handle() || d.is_void()),
        "with_lanes" => Value::builtin("DataType.with_lanes", move |_, args, span| {
            let call = MatchedCall::new(
                "DataType.with_lanes",
                const { &[required("lanes")] },
                false,
                args,
                span,
            )?;
            match u16::try_from(call.int("lanes")?) {
                Ok(lanes) if lanes > 0 => Ok(Value::DType(d.with_lanes(lanes))),
                _ => call.expected("lanes", "a number of lanes"),
            }
        }),
        _ => {
            const KNOWN: [&str; 10] = [
                "bits",
                "lanes",
                "dtype",
                "itemsize",
                "name",
                "is_integer",
                "is_float",
                "is_bool",
                "is_handle",
                "with_lanes",
            ];
            return no_attribute(&format!("dtype {d}"), name, KNOWN, span);
        }
    })
}

/// One index per dimension, as a tuple.
fn indices(call: &MatchedCall, name: &str) -> Result<Value> {
    let buffer = this(call)?;
    let items = call.items(name, "a list of indices")?;
    if items.len() != buffer.shape.len() {
        return call.fail(format!(
            "{} has {} but {} given",
            buffer.name,
            super::super::eval::count(buffer.shape.len(), "dimension"),
            match items.len() {
                1 => "1 index was".to_string(),
                n => format!("{n} indices were"),
            }
        ));
    }
    Ok(Value::tuple(items))
}

/// The element at the indices.
fn element(interp: &Interpreter, call: &MatchedCall, name: &str) -> Result<Expr> {
    let buffer = this(call)?;
    match super::access::load(interp, &buffer, &indices(call, name)?, call.span)? {
        Value::Expr(e) => Ok(e),
        _ => call.expected(name, "a list of indices, without slices"),
    }
}

fn ptr_to(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let buffer = this(call)?;
    let load = match super::access::address(interp, &buffer, &indices(call, "indices")?, call.span)? {
        Value::Expr(e) => e,
        _ => return call.expected("indices", "a list of indices, without slices"),
    };
    Ok(Value::Expr(
        Expr::call(Op::AddressOf, DType::HANDLE, vec![load]).at(call.span),
    ))
}

/// The last index widened to `lanes` elements.
fn vector_index(call: &MatchedCall, buffer: &Buffer, wanted: DType) -> Result<Value> {
    if wanted.element() != buffer.dtype.element() {
        return call.fail_with(
            format!(
                "cannot access {} of dtype {} as {wanted}",
                buffer.name, buffer.dtype
            ),
            format!("view it first: {}.view(\"{}\")", buffer.name, wanted.element()),
        );
    }
    if !wanted.lanes.is_multiple_of(buffer.dtype.lanes) {
        return call.fail(format!(
            "{wanted} is no multiple of {}, the dtype of {}",
            buffer.dtype, buffer.name
        ));
    }
    let lanes = wanted.lanes / buffer.dtype.lanes;
    let Value::Tuple(items) = indices(call, "begin")? else {
        return call.expected("begin", "a list of indices");
    };
    let mut items = items.to_vec();
    if lanes > 1
        && let Some(last) = items.last_mut()
    {
        let base = convert::expr(last, call.span)?;
        // An index that already has the lanes (printed IR) is unchanged.
        if base.dtype.is_scalar() {
            let one = Expr::constant(base.dtype, 1).at(call.span);
            *last = Value::Expr(Expr::ramp(base, one, lanes).at(call.span));
        }
    }
    Ok(Value::tuple(items))
}

fn vload(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let buffer = this(call)?;
    let dtype = call.dtype_or("dtype", buffer.dtype)?;
    let index = vector_index(call, &buffer, dtype)?;
    let loaded = super::access::load(interp, &buffer, &index, call.span)?;
    let (Some(predicate), Value::Expr(e)) = (call.opt_expr("predicate")?, &loaded) else {
        return Ok(loaded);
    };
    let ExprKind::BufferLoad { buffer, indices, .. } = &e.kind else {
        return Ok(loaded);
    };
    let kind = ExprKind::BufferLoad {
        buffer: buffer.clone(),
        indices: indices.clone(),
        predicate: Some(predicate_for(call, predicate, e.dtype)?),
    };
    Ok(Value::Expr(Expr::new(kind, e.dtype, call.span)))
}

fn predicate_for(call: &MatchedCall, predicate: Expr, dtype: DType) -> Result<Expr> {
    if predicate.dtype != DType::BOOL.with_lanes(dtype.lanes) {
        return call.expected("predicate", &format!("bool with {} lanes", dtype.lanes));
    }
    Ok(predicate)
}

/// Emits the store immediately, at the position of the statement in the kernel.
fn vstore(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let buffer = this(call)?;
    let value = call.expr("value")?;
    let wanted = buffer.dtype.element().with_lanes(value.dtype.lanes);
    let is_literal = !matches!(call.get("value"), Some((Value::Expr(_), _)));
    if value.dtype != wanted && !is_literal {
        let message = format!(
            "Buffer.vstore: cannot store {} in {} of dtype {}",
            value.dtype, buffer.name, buffer.dtype
        );
        let d = Diagnostic::new(call.span, message);
        return Err(Box::new(
            d.help(format!("cast the value: T.cast(x, \"{wanted}\")")),
        ));
    }
    let index = vector_index(call, &buffer, wanted)?;
    let predicate = match call.opt_expr("predicate")? {
        Some(p) => Some(predicate_for(call, p, value.dtype)?),
        None => None,
    };
    let stmt = super::access::store_stmt(interp, &buffer, &index, &Value::Expr(value), predicate, call.span)?;
    debug_assert!(matches!(stmt.kind, StmtKind::BufferStore(_)));
    interp.emit(Stmt::new(stmt.kind.clone(), call.span))?;
    Ok(Value::None)
}

fn elem_offset_of(interp: &Interpreter, call: &mut MatchedCall) -> Result<Expr> {
    let load = element(interp, call, "indices")?;
    let inner = !matches!(call.get("inner"), Some((Value::Bool(false), _)));
    let offset = calls::offset_of_element(load).at(call.span);
    match this(call)?.elem_offset.clone() {
        Some(base) if !inner => typing::binary(Arithmetic::Add, base.into(), offset.into(), call.span),
        _ => Ok(offset),
    }
}

fn offset_of(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let buffer = this(call)?;
    let ExprKind::BufferLoad { indices, .. } = &element(interp, call, "indices")?.kind else {
        return call.expected("indices", "a list of indices");
    };
    let offset = if buffer.strides.is_empty() {
        crate::layout::apply::row_major(indices, &buffer.shape)
    } else {
        crate::layout::apply::strided_offset(indices, &buffer.strides)
    };
    Ok(Value::list(vec![layouts::number(&offset.at(call.span))]))
}

fn access_ptr(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let buffer = this(call)?;
    let (mask, _) = call.need("access_mask", "\"r\", \"w\" or \"rw\"")?;
    let mask = match mask {
        Value::Str(s) if !s.is_empty() && s.chars().all(|c| c == 'r' || c == 'w') => {
            s.contains('r') as i32 + 2 * s.contains('w') as i32
        }
        value => match convert::const_int(value) {
            Some(v) if (1..=3).contains(&v) => v as i32,
            _ => return call.expected("access_mask", "\"r\", \"w\" or \"rw\""),
        },
    };
    let span = call.span;
    let lanes = call.int_or("content_lanes", 1)?;
    if !(1..=64).contains(&lanes) || buffer.dtype.lanes > 64 {
        return call.fail(format!("content_lanes must be from 1 to 64, found {lanes}"));
    }
    let mut offset = match call.opt_expr("offset")? {
        Some(e) => e,
        None => Expr::int32(0).at(span),
    };
    let own = buffer
        .elem_offset
        .clone()
        .unwrap_or_else(|| Expr::int32(0).at(span));
    let mul = |a: Expr, b: Expr| typing::binary(Arithmetic::Mul, a.into(), b.into(), span);
    let sub = |a: Expr, b: Expr| typing::binary(Arithmetic::Sub, a.into(), b.into(), span);
    let mut extent = match call.opt_expr("extent")? {
        Some(e) => e,
        None => {
            // Everything from the offset to the end.
            let total = match (buffer.strides.first(), buffer.shape.first()) {
                (Some(stride), Some(extent)) => mul(stride.clone(), extent.clone())?,
                _ => buffer
                    .shape
                    .iter()
                    .cloned()
                    .reduce(|a, b| mul(a.clone(), b).unwrap_or(a))
                    .unwrap_or_else(|| Expr::int32(1).at(span)),
            };
            sub(total, offset.clone())?
        }
    };
    let mut element = buffer.dtype;
    offset = typing::binary(Arithmetic::Add, own.into(), offset.into(), span)?;
    if lanes > 1 {
        let by = |e: Expr| typing::binary(Arithmetic::FloorDiv, e.into(), Operand::Int(lanes), span);
        offset = by(offset)?;
        if call.get("extent").is_none() {
            extent = by(extent)?;
        }
        element = element.with_lanes(element.lanes * lanes as u16);
    }
    let access = Op::TvmAccessPtr
        .call()
        .set("ptype", Expr::call(Op::TypeAnnotation, element, vec![]))
        .set("data", Expr::var(&buffer.data))
        .set("offset", offset)
        .set("extent", extent)
        .set("rw_mask", mask);
    Ok(Value::Expr(access.at(span).build()))
}
