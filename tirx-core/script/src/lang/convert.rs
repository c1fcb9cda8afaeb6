//! Conversion of evaluator values to IR.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::eval::Value;
use super::super::typing::{self, Operand};
use super::objects::{self, TargetValue};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::ir::at;
use crate::ir::{AttrValue, Buffer, DEFAULT_ALIGN, DType, ElementType, Expr, ExprKind, Type, is_pure};
use crate::source::Span;

/// The name of a value in a message.
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Str(s) if s.len() <= 40 => format!("the string \"{s}\""),
        Value::Int(v) => format!("the int {v}"),
        Value::Float(v) => format!("the float {v}"),
        Value::Expr(e) => format!("an expression of dtype {}", e.dtype),
        Value::Buffer(b) => format!("the buffer \"{}\"", b.name),
        Value::Unavailable(why) => format!("an unavailable value: {why}"),
        other => other.type_name(),
    }
}

/// A value as an operand; `None` where it cannot be one.
pub(super) fn operand(value: &Value, span: Span) -> Option<Result<Operand>> {
    Some(Ok(match value {
        Value::Expr(e) => Operand::Expr(e.clone().or_at(span)),
        Value::Bool(v) => Operand::Bool(*v),
        Value::Int(v) => Operand::Int(*v),
        Value::Float(v) => Operand::Float(*v),
        Value::MetaVar(inner) => return operand(inner, span),
        Value::Instance(_) => Operand::Int(value.member_number()?.as_int()?),
        Value::Region(region) => return Some(super::access::region_load(region, span).map(Operand::Expr)),
        Value::Buffer(buffer) => Operand::Expr(only_element(buffer, span)?),
        _ => return None,
    }))
}

/// The element of a buffer with one dimension and one element. TVM prints the element by the name of the buffer.
pub(crate) fn only_element(buffer: &Buffer, span: Span) -> Option<Expr> {
    is_single(buffer).then(|| Expr::load(buffer, vec![Expr::int32(0)]).at(span))
}

/// The element that a bare name means as an argument of a call in printed IR. TVM prints the buffer itself as `A.buffer` or
/// `A.source`, unless the buffer has an alignment, a layout, strides or an offset of its own.
pub(crate) fn printed_element(value: &Value, span: Span) -> Option<Value> {
    let Value::Buffer(b) = value else { return None };
    let plain = b.align == DEFAULT_ALIGN
        && b.offset_factor == 1
        && b.strides.is_empty()
        && b.elem_offset.is_none()
        && b.layout.as_ref().is_some_and(|l| l.is_row_major(&b.shape));
    Some(Value::Expr(only_element(b, span).filter(|_| plain)?))
}

/// Whether a buffer has one dimension and one element.
pub(crate) fn is_single(buffer: &Buffer) -> bool {
    matches!(&buffer.shape[..], [one] if one.is_int(1))
}

/// A value as an expression; numbers get their default dtypes.
pub(super) fn expr(value: &Value, span: Span) -> Result<Expr> {
    match operand(value, span) {
        Some(operand) => typing::literal(operand?, span),
        None => {
            let diagnostic =
                Diagnostic::new(span, format!("expected an expression, found {}", describe(value)));
            Err(Box::new(match value {
                Value::Buffer(b) => diagnostic.help(format!("read an element: {}[…]", b.name)),
                _ => diagnostic,
            }))
        }
    }
}

/// A value as an argument of a call of an intrinsic: strings and pointers too.
pub(super) fn argument(value: &Value, span: Span, function: &str) -> Result<Expr> {
    match value {
        Value::Str(s) => Ok(Expr::string(&**s).at(span)),
        Value::Buffer(b) => Ok(Expr::var(&b.data).at(span)),
        Value::DType(d) => Ok(Expr::string(d.to_string()).at(span)),
        other => match operand(other, span) {
            Some(operand) => typing::literal(operand?, span),
            None => error(
                span,
                format!(
                    "{function}: an argument must be an expression, found {}",
                    describe(other)
                ),
            ),
        },
    }
}

/// A compile-time integer.
pub(super) fn const_int(value: &Value) -> Option<i128> {
    match value {
        Value::Expr(e) => e.as_int(),
        Value::MetaVar(inner) => const_int(inner),
        other => other.as_int(),
    }
}

/// A compile-time string, or a string of the IR.
pub(super) fn text(value: &Value) -> Option<Arc<str>> {
    match value {
        Value::Str(s) => Some((&**s).into()),
        Value::Expr(e) => e.as_str().map(Into::into),
        _ => None,
    }
}

/// A dtype: `"float32"`, `T.float32`, a type.
pub(super) fn dtype(value: &Value, span: Span) -> Result<Option<DType>> {
    Ok(match value {
        Value::DType(d) => Some(*d),
        Value::Str(s) => match s.parse::<DType>() {
            Ok(d) => Some(d),
            Err(_) if s.is_empty() => Some(DType::VOID),
            Err(e) => {
                let names = super::dtypes::all_names();
                let near = ElementType::named_elsewhere(s)
                    .map(|row| row.name)
                    .or_else(|| super::super::eval::suggest(s, names.iter().map(String::as_str)));
                let help = match near {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => "dtypes are int8…int64, uint8…uint64, float16/32/64, bfloat16, float8_…, bool, handle; vectors \"float32x4\"".into(),
                };
                return Err(Box::new(Diagnostic::new(span, e.to_string()).help(help)));
            }
        },
        Value::Expr(e) if e.as_str().is_some() => {
            return dtype(&Value::str(e.as_str().unwrap_or("")), span);
        }
        Value::Object(o) => objects::as_type(&**o).map(|t| t.dtype()),
        // `T.handle("float32")` as a type.
        Value::Expr(e) => e.as_var().map(|v| v.dtype()),
        _ => None,
    })
}

/// A type: a dtype, `T.handle("float32", "shared")`, `x.ty`.
pub(super) fn type_of_value(value: &Value, span: Span) -> Result<Option<Type>> {
    Ok(match value {
        Value::Object(o) => objects::as_type(&**o),
        Value::Expr(e) if e.as_var().is_some() => e.as_var().map(|v| v.ty().clone()),
        Value::Builtin(_) => None,
        other => dtype(other, span)?.map(Type::Prim),
    })
}

/// An extent of a shape: a non-negative integer or an integer expression; a string names a new `int32` variable.
pub(super) fn extent(value: &Value, span: Span) -> Option<Result<Expr>> {
    if let Value::Str(name) = value {
        return Some(Ok(
            Expr::var(&crate::ir::Var::at(&**name, DType::INT32, span)).at(span)
        ));
    }
    let e = match operand(value, span)? {
        Ok(operand) => typing::literal(operand, span),
        Err(e) => Err(e),
    };
    Some(e.and_then(|e| {
        if !e.dtype.is_integer() || !e.dtype.is_scalar() {
            return error(span, format!("an extent must be an integer, found {}", e.dtype));
        }
        match e.as_int() {
            Some(v) if v < 0 => error(span, format!("an extent must not be negative, found {v}")),
            _ => Ok(e),
        }
    }))
}

/// Rejects a buffer with more elements than its indices, which have the widest dtype of the extents, can reach.
pub(super) fn check_reach(shape: &[Expr], strides: &[Expr], span: Span) -> Result<()> {
    let extents = || shape.iter().map(|e| e.as_int().unwrap_or(1));
    let count = match strides {
        _ if extents().any(|extent| extent == 0) => 0,
        [] => extents().fold(1, i128::saturating_mul),
        _ => {
            let steps = strides.iter().map(|s| s.as_int().unwrap_or(0));
            let last = |(extent, step): (i128, i128)| (extent - 1).saturating_mul(step);
            extents().zip(steps).map(last).fold(1, i128::saturating_add)
        }
    };
    let index = shape.iter().map(|e| e.dtype).max_by_key(|dtype| dtype.bits);
    let Some((index, most)) = index.and_then(|dtype| Some((dtype, dtype.max_int()?))) else {
        return Ok(());
    };
    if count <= most {
        return Ok(());
    }
    let message = format!("a buffer of {count} elements has more than its {index} indices reach");
    let diagnostic = Diagnostic::new(span, message);
    Err(Box::new(match index.bits < 64 {
        true => diagnostic
            .help("make an extent 64 bits wide, as in T.int64(65536): indices follow the widest extent"),
        false => diagnostic,
    }))
}

/// A value as the value of an attribute or annotation.
pub(crate) fn attr(value: &Value, span: Span) -> Result<AttrValue> {
    Ok(match value {
        Value::None => AttrValue::None,
        Value::Bool(v) => AttrValue::Bool(*v),
        Value::Int(v) => match i64::try_from(*v) {
            Ok(v) => AttrValue::Int(v),
            Err(_) => return error(span, format!("{v} does not fit int64")),
        },
        Value::Float(v) => AttrValue::Float(*v),
        Value::Str(s) => AttrValue::Str((&**s).into()),
        Value::DType(d) => AttrValue::Str(d.to_string().into()),
        Value::Tuple(_) | Value::List(_) => {
            let items = value.as_items().unwrap_or_default();
            AttrValue::List(items.iter().map(|v| attr(v, span)).collect::<Result<_>>()?)
        }
        Value::Dict(_) => AttrValue::Dict(attr_dict(value, span)?),
        Value::Expr(e) => match &e.kind {
            // Constants of the default dtypes are the same as the plain Python value.
            ExprKind::Int(v) if e.dtype.is_bool() => AttrValue::Bool(*v != 0),
            ExprKind::Int(v) if e.dtype == DType::INT32 => AttrValue::Int(*v as i64),
            ExprKind::Float(v) if e.dtype == DType::FLOAT32 => AttrValue::Float(*v),
            ExprKind::Str(s) => AttrValue::Str(s.clone()),
            _ if !is_pure(e) => return error(e.span.or(span), "an attribute cannot read memory"),
            _ => AttrValue::Expr(e.clone()),
        },
        Value::MetaVar(inner) => attr(inner, span)?,
        Value::Object(o) => match o.as_any().downcast_ref::<TargetValue>() {
            Some(target) => AttrValue::Target(target.0.clone()),
            None => return error(span, format!("{} cannot be an attribute", value.type_name())),
        },
        other => return error(span, format!("{} cannot be an attribute", other.type_name())),
    })
}

/// A dictionary with string keys as attributes.
pub(super) fn attr_dict(value: &Value, span: Span) -> Result<BTreeMap<Arc<str>, AttrValue>> {
    let Value::Dict(dict) = value else {
        return error(span, format!("expected a dictionary, found {}", describe(value)));
    };
    let mut out = BTreeMap::new();
    for (key, value) in dict.borrow().iter() {
        let Some(name) = text(key) else {
            return error(span, format!("keys must be strings, found {}", describe(key)));
        };
        out.insert(name, attr(value, span)?);
    }
    Ok(out)
}

/// The type of an expression: for a pointer what it points to and where, as far as it is known, else its dtype.
pub fn expr_type(e: &Expr) -> Type {
    use crate::intrin::Op;
    let untyped = Type::Prim(DType::HANDLE);
    let scope_of = |e: &Expr| match expr_type(e) {
        Type::Pointer { scope, .. } => scope,
        Type::Prim(_) | Type::TensorMap => "global".into(),
    };
    match &e.kind {
        ExprKind::Var(v) => v.ty().clone(),
        ExprKind::Call {
            op: Op::AddressOf,
            args,
        } => {
            let place = &args[at!(AddressOf.obj)];
            match &place.kind {
                ExprKind::BufferLoad { buffer, .. } => Type::pointer(buffer.dtype, buffer.scope()),
                _ => Type::pointer(place.dtype, "global"),
            }
        }
        ExprKind::Call {
            op: Op::TvmAccessPtr,
            args,
        } => {
            let element = args[at!(TvmAccessPtr.ptype)].dtype;
            Type::pointer(element, scope_of(&args[at!(TvmAccessPtr.data)]))
        }
        ExprKind::Call {
            op: Op::PtrByteOffset,
            args,
        } => {
            let element = args[at!(PtrByteOffset.dtype)].dtype;
            Type::pointer(element, scope_of(&args[at!(PtrByteOffset.data)]))
        }
        ExprKind::Call {
            op: Op::HandleAddByteOffset,
            args,
        } => match expr_type(&args[at!(HandleAddByteOffset.data)]) {
            Type::Pointer { scope, .. } if &*scope != "global" => Type::pointer(DType::VOID, scope),
            _ => untyped,
        },
        ExprKind::Call {
            op: Op::TvmStackAlloca,
            args,
        } => match args[at!(TvmStackAlloca.dtype)].as_str() {
            Some("shape") => Type::pointer(DType::INT64, "global"),
            Some("arg_tcode") => Type::pointer(DType::INT32, "global"),
            Some("tensormap") => Type::TensorMap,
            _ => untyped,
        },
        _ => Type::Prim(e.dtype),
    }
}

/// The buffer that a value means: itself, or the one behind a scalar.
pub(super) fn buffer(value: &Value) -> Option<Buffer> {
    match value {
        Value::Buffer(b) => Some(b.clone()),
        Value::MetaVar(inner) => buffer(inner),
        Value::Expr(e) => match &e.kind {
            ExprKind::BufferLoad { buffer, .. } => Some(buffer.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// A dtype given as a value of the file.
pub(crate) fn dtype_value(value: &Value, span: Span) -> Result<Value> {
    match dtype(value, span)? {
        Some(dtype) => Ok(Value::DType(dtype)),
        None => error(span, format!("expected a dtype, found {}", describe(value))),
    }
}
