//! Dtypes as values: `T.float32`, `T.f32`, `T.int32()`, `T.float32(x)`, `T.handle("float32", "shared")`.

use super::super::eval::{Annotation, Args, Interpreter, Param, Value, optional, required};
use super::super::typing::{self, Operand};
use super::call::{Function, MatchedCall, function};
use super::convert;
use crate::diagnostic::{Diagnostic, Result, error};
use crate::ir::{DType, ELEMENT_TYPES, Expr, Type, TypeCode, Var};
use crate::source::Span;

const SHORT: [(&str, &str); 14] = [
    ("i8", "int8"),
    ("i16", "int16"),
    ("i32", "int32"),
    ("i64", "int64"),
    ("u8", "uint8"),
    ("u16", "uint16"),
    ("u32", "uint32"),
    ("u64", "uint64"),
    ("f16", "float16"),
    ("f32", "float32"),
    ("f64", "float64"),
    ("bf16", "bfloat16"),
    ("boolean", "bool"),
    ("TensorMap", "handle"),
];

/// `T.<name>`, if it is a dtype.
pub(super) fn lookup(name: &str) -> Option<DType> {
    let name = match SHORT.iter().find(|(short, _)| *short == name) {
        Some(("TensorMap", _)) => return None,
        Some((_, long)) => long,
        None => name,
    };
    name.parse().ok()
}

/// The scalar names and the vector names with usual lane counts.
pub(super) fn all_names() -> Vec<String> {
    let mut names: Vec<String> = vec!["handle".into(), "void".into()];
    let bases = ELEMENT_TYPES
        .iter()
        .filter(|row| row.bits > 1 && row.code != TypeCode::Handle);
    for base in bases.map(|row| row.name) {
        names.push(base.to_string());
        names.extend([2, 4, 8, 16, 32, 64].map(|lanes| format!("{base}x{lanes}")));
    }
    names
}

/// The short names.
pub(super) fn short_names() -> impl Iterator<Item = &'static str> {
    SHORT
        .iter()
        .map(|(short, _)| *short)
        .filter(|s| *s != "TensorMap")
}

/// `dtype(args)`.
pub(super) fn call(dtype: DType, args: Args, span: Span) -> Result<Value> {
    if dtype.is_handle() {
        const PARAMS: &[Param] = &[optional("dtype"), optional("storage_scope")];
        let call = MatchedCall::new("T.handle", PARAMS, false, args, span)?;
        return handle(&call);
    }
    const PARAMS: &[Param] = &[optional("expr")];
    let call = MatchedCall::new("T.<dtype>", PARAMS, false, args, span).map_err(|mut e| {
        e.message = e.message.replace("T.<dtype>", &format!("T.{dtype}"));
        e.help = e.help.map(|h| h.replace("T.<dtype>", &format!("T.{dtype}")));
        e
    })?;
    let Some((value, at)) = call.get("expr") else {
        let var = Var::at(call.names.name_or("v"), dtype, span);
        return Ok(Value::Expr(Expr::var(&var).at(span)));
    };
    let at = at.or(span);
    let operand = match value {
        Value::Str(text) => match python_float(text) {
            Some(v) => Operand::Float(v),
            None => {
                let diagnostic = Diagnostic::new(at, format!("T.{dtype}: \"{text}\" is no number"));
                return Err(Box::new(
                    diagnostic.help("the strings are \"inf\", \"-inf\" and \"nan\""),
                ));
            }
        },
        value => match convert::operand(value, at) {
            Some(operand) => operand?,
            None => {
                let found = convert::describe(value);
                return error(
                    at,
                    format!("T.{dtype}: expected a number or expression, found {found}"),
                );
            }
        },
    };
    typing::cast(operand, dtype, span).map(Value::Expr)
}

/// What Python's `float(text)` accepts.
fn python_float(text: &str) -> Option<f64> {
    text.trim().replace('_', "").parse().ok()
}

fn handle(call: &MatchedCall) -> Result<Value> {
    if let Some((value, _)) = call.get("dtype")
        && let Some(name) = value.as_str()
        && ["TensorMap", "tensormap", "CUtensorMap", "cuTensorMap"].contains(&name)
    {
        return tensor_map(call);
    }
    let scope = call.text_or("storage_scope", "global")?;
    let ty = match call.get("dtype") {
        None if &*scope == "global" => Type::Prim(DType::HANDLE),
        None => Type::pointer(DType::VOID, scope),
        Some(_) => match call.dtype("dtype")? {
            d if d.is_void() && &*scope == "global" => Type::Prim(DType::HANDLE),
            d => Type::pointer(d, scope),
        },
    };
    let var = Var::at(call.names.name_or("v"), ty, call.span);
    Ok(Value::Expr(Expr::var(&var).at(call.span)))
}

pub(super) static FUNCTIONS: &[Function] = &[
    function("T.TensorMap", &[], |_, call| tensor_map(call)),
    function("tvm.DataType", const { &[required("dtype")] }, |_, call| {
        call.dtype("dtype").map(Value::DType)
    }),
];

/// `T.TensorMap()`: a parameter, or the type of a variable.
fn tensor_map(call: &MatchedCall) -> Result<Value> {
    let var = Var::at(call.names.name_or("v"), Type::TensorMap, call.span);
    Ok(Value::Expr(Expr::var(&var).at(call.span)))
}

/// `dtype[extents]`: a local buffer as an annotation.
pub(super) fn subscript(dtype: DType, index: &Value, span: Span) -> Result<Value> {
    let items = index.as_items().unwrap_or_else(|| vec![index.clone()]);
    let mut shape = Vec::new();
    for item in &items {
        match convert::extent(item, span) {
            Some(extent) => shape.push(extent?),
            None => {
                let found = convert::describe(item);
                return error(span, format!("T.{dtype}[…]: expected extents, found {found}"));
            }
        }
    }
    convert::check_reach(&shape, &[], span)?;
    Ok(Value::Annotation(std::rc::Rc::new(Annotation::LocalVector(
        dtype, shape,
    ))))
}

/// `T.let[type]`.
pub(super) fn let_annotation(_interp: &mut Interpreter, index: &Value, span: Span) -> Result<Value> {
    match convert::type_of_value(index, span)? {
        Some(ty) => Ok(Value::Annotation(std::rc::Rc::new(Annotation::Let(Some(ty))))),
        None => {
            let found = convert::describe(index);
            let diagnostic = Diagnostic::new(span, format!("T.let[…]: expected a type, found {found}"));
            Err(Box::new(diagnostic.help(
                "write T.let[T.int32] or T.let[T.handle(\"float32\", \"shared\")]",
            )))
        }
    }
}
