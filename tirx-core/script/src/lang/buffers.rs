//! Creation of buffers: `T.match_buffer`, `T.Buffer`, `T.alloc_*`, `T.decl_buffer`, scalars.

use std::rc::Rc;
use std::sync::Arc;

use super::super::eval::{Interpreter, Param, Value, keyword, optional, required};
use super::call::{Function, MatchedCall, function};
use super::convert;
use super::layouts;
use crate::diagnostic::{Diagnostic, Result};
use crate::ir::{AttrValue, Buffer, BufferNode, DEFAULT_ALIGN, DType, Expr, Stmt, StmtKind, Type, Var};
use crate::layout::Layout;
use crate::source::Span;

const BUFFER: &[Param] = &[
    required("shape"),
    optional("dtype"),
    optional("data"),
    optional("strides"),
    optional("elem_offset"),
    optional("byte_offset"),
    optional("scope"),
    optional("align"),
    optional("offset_factor"),
    optional("layout"),
    optional("allocated_addr"),
    keyword("buffer_type"),
];
const ALLOC: &[Param] = &[
    required("shape"),
    optional("dtype"),
    optional("data"),
    optional("strides"),
    optional("elem_offset"),
    optional("byte_offset"),
    optional("scope"),
    optional("align"),
    optional("offset_factor"),
    optional("layout"),
    optional("allocated_addr"),
    optional("annotations"),
];
/// `T.alloc_shared` and `T.alloc_local`: the scope is fixed.
const ALLOC_IN: &[Param] = &[
    required("shape"),
    optional("dtype"),
    optional("data"),
    optional("strides"),
    optional("elem_offset"),
    optional("byte_offset"),
    keyword("scope"),
    keyword("align"),
    keyword("offset_factor"),
    keyword("layout"),
    keyword("allocated_addr"),
    keyword("annotations"),
];
const MATCH: &[Param] = &[
    required("param"),
    optional("shape"),
    optional("dtype"),
    optional("data"),
    optional("strides"),
    optional("elem_offset"),
    optional("scope"),
    optional("align"),
    optional("offset_factor"),
    optional("layout"),
    keyword("buffer_type"),
];
const SCALAR: &[Param] = &[optional("dtype"), optional("scope")];
const SCALAR_IN: &[Param] = &[optional("dtype")];
const DECL_SCALAR: &[Param] = &[
    required("dtype"),
    required("data"),
    required("scope"),
    optional("elem_offset"),
    optional("byte_offset"),
];

pub(super) static FUNCTIONS: &[Function] = &[
    function("T.match_buffer", MATCH, match_buffer),
    function("T.Buffer", BUFFER, annotation),
    function("T.buffer", BUFFER, annotation),
    function("T.buffer_decl", BUFFER, annotation),
    function("T.alloc_buffer", ALLOC, |i, c| alloc(i, c, "global")),
    function("T.alloc_shared", ALLOC_IN, |i, c| alloc(i, c, "shared")),
    function("T.smem", ALLOC_IN, |i, c| alloc(i, c, "shared")),
    function("T.alloc_local", ALLOC_IN, |i, c| alloc(i, c, "local")),
    function("T.decl_buffer", BUFFER, decl_buffer),
    function("T.alloc_scalar", SCALAR, |i, c| alloc_scalar(i, c, "global")),
    function("T.local_scalar", SCALAR_IN, |i, c| alloc_scalar(i, c, "local")),
    function("T.shared_scalar", SCALAR_IN, |i, c| alloc_scalar(i, c, "shared")),
    function("T.decl_scalar", DECL_SCALAR, decl_scalar),
];

/// Storage scopes that exist.
const SCOPES: [&str; 8] = [
    "global",
    "shared",
    "shared.dyn",
    "local",
    "warp",
    "shared.barrier",
    "tmem",
    "shared.cluster",
];

/// The fields of a buffer declaration, read from a call.
struct Fields {
    shape: Vec<Expr>,
    dtype: DType,
    strides: Vec<Expr>,
    elem_offset: Option<Expr>,
    scope: Arc<str>,
    align: u32,
    offset_factor: u32,
    layout: Option<Layout>,
    allocated_addr: Vec<Expr>,
}

fn fields(
    interp: &mut Interpreter,
    call: &MatchedCall,
    default_scope: &str,
    parameter: bool,
) -> Result<Fields> {
    let shape = call.shape("shape")?;
    let dtype = call.dtype_or("dtype", DType::FLOAT32)?;
    if dtype.is_void() {
        return call.fail("a buffer cannot have dtype void");
    }
    let scope = call.text_or("scope", default_scope)?;
    check_scope(call, &scope)?;
    let strides = strides(call, &shape)?;
    convert::check_reach(&shape, &strides, call.span)?;
    let align = match call.int_or("align", 0)? {
        v if v <= 0 => DEFAULT_ALIGN,
        v if (v as u128).is_power_of_two() && v <= 1 << 20 => v as u32,
        v => return call.fail(format!("align must be a power of two in bytes, found {v}")),
    };
    let offset_factor = match call.int_or("offset_factor", 0)? {
        v if (0..=u32::MAX as i128).contains(&v) => v as u32,
        v => return call.fail(format!("offset_factor must not be negative, found {v}")),
    };
    let mut elem_offset = elem_offset(call, dtype)?;
    // A parameter's offset is read from the tensor; in the body it would have no value.
    if parameter && elem_offset.is_none() && offset_factor != 0 {
        let index = shape.first().map_or(DType::INT32, |e| e.dtype);
        elem_offset = Some(Expr::var(&Var::at("elem_offset", index, call.span)).at(call.span));
    }
    let layout = layout(interp, call, &shape)?;
    let allocated_addr = allocated_addr(call)?;
    Ok(Fields {
        shape,
        dtype,
        strides,
        elem_offset: elem_offset.filter(|e| !e.is_int(0)),
        scope,
        align,
        offset_factor: offset_factor.max(1),
        layout,
        allocated_addr,
    })
}

/// Rejects a parameter whose description reads memory: the host evaluates it before the launch.
pub fn check_parameter(buffer: &Buffer) -> Result<()> {
    let Some(e) = buffer.exprs().into_iter().find(|e| !e.is_pure()) else {
        return Ok(());
    };
    let help =
        "write an extent as a name that the tensor gives (n = T.int32()), or pass it as a scalar parameter";
    let message = "the description of a parameter cannot read memory";
    Err(Box::new(
        Diagnostic::new(e.span.or(buffer.span), message).help(help),
    ))
}

/// The memory of a kernel's parameters: of views of them alone.
const PARAMETERS: &str = "param";

fn check_scope(call: &MatchedCall, scope: &str) -> Result<()> {
    if scope == PARAMETERS && call.get("data").is_some() {
        return Ok(());
    }
    if SCOPES.contains(&scope)
        || scope.starts_with("wmma.")
        || scope.starts_with("trn.")
        || scope.starts_with("metal.")
    {
        return match scope {
            s if s.starts_with("wmma.") => call.fail("WMMA fragments are not supported yet (tensor cores)"),
            s if s.starts_with("trn.") => {
                call.fail("scopes of Trainium are not supported: this compiler targets CUDA")
            }
            s if s.starts_with("metal.") => {
                call.fail("scopes of Metal are not supported: this compiler targets CUDA")
            }
            _ => Ok(()),
        };
    }
    let near = match scope {
        "smem" | "__shared__" => Some("shared"),
        "dynamic" | "smem.dyn" => Some("shared.dyn"),
        "register" | "registers" | "reg" | "rmem" => Some("local"),
        "gmem" | "device" | "__global__" => Some("global"),
        _ => super::super::eval::suggest(scope, SCOPES),
    };
    let help = match near {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("scopes are {}", SCOPES[..5].join(", ")),
    };
    call.fail_with(format!("unknown scope \"{scope}\""), help)
}

fn strides(call: &MatchedCall, shape: &[Expr]) -> Result<Vec<Expr>> {
    if call.get("strides").is_none() {
        return Ok(Vec::new());
    }
    let index = shape.first().map_or(DType::INT32, |e| e.dtype);
    let mut strides = Vec::new();
    for item in call.items("strides", "a tuple of integers")? {
        strides.push(match (&item, convert::operand(&item, call.span)) {
            (Value::Str(name), _) => Expr::var(&Var::at(&**name, index, call.span)).at(call.span),
            (_, Some(operand)) if operand.as_ref().is_ok_and(|o| o.dtype().is_integer()) => {
                super::super::typing::literal(operand?, call.span)?
            }
            _ => return call.expected("strides", "a tuple of integers"),
        });
    }
    if !strides.is_empty() && strides.len() != shape.len() {
        return call.fail(format!(
            "{} strides were given for {} dimensions",
            strides.len(),
            shape.len()
        ));
    }
    Ok(strides)
}

fn elem_offset(call: &MatchedCall, dtype: DType) -> Result<Option<Expr>> {
    let elements = integer(call, "elem_offset")?;
    let Some(bytes) = integer(call, "byte_offset")? else {
        return Ok(elements);
    };
    if elements.is_some() {
        return call.fail("elem_offset and byte_offset cannot both be given");
    }
    if let Some(v) = bytes.as_int()
        && v * 8 % i128::from(dtype.bits) != 0
    {
        return call.fail(format!("byte offset {v} is no multiple of the size of {dtype}"));
    }
    use super::super::typing::{Arithmetic, Operand, binary};
    let bits = binary(Arithmetic::Mul, bytes.into(), Operand::Int(8), call.span)?;
    binary(
        Arithmetic::FloorDiv,
        bits.into(),
        Operand::Int(dtype.bits as i128),
        call.span,
    )
    .map(Some)
}

/// The location of a buffer in tensor memory: a column, or several numbers.
fn allocated_addr(call: &MatchedCall) -> Result<Vec<Expr>> {
    let Some((value, _)) = call.get("allocated_addr") else {
        return Ok(Vec::new());
    };
    if value.as_items().is_none() {
        return Ok(integer(call, "allocated_addr")?.into_iter().collect());
    }
    let items = call.items("allocated_addr", "an integer or a list of integers")?;
    let numbers = items.iter().map(|item| convert::expr(item, call.span));
    numbers.collect()
}

fn integer(call: &MatchedCall, name: &str) -> Result<Option<Expr>> {
    match call.opt_expr(name)? {
        Some(e) if !e.dtype.is_integer() => call.expected(name, "an integer"),
        other => Ok(other),
    }
}

fn layout(interp: &mut Interpreter, call: &MatchedCall, shape: &[Expr]) -> Result<Option<Layout>> {
    let given = call.get("layout").map(|(v, _)| v.clone());
    match given {
        None if call.given("layout") => Ok(None),
        None => Ok(default_layout(interp, shape, call.span)),
        Some(Value::Str(s)) if &*s == "default" => Ok(default_layout(interp, shape, call.span)),
        Some(Value::Layout(layout)) => Ok(Some(layout)),
        Some(value) => match layouts::from_spec(&value, call.span)? {
            Some(layout) => Ok(Some(layout)),
            None => call.expected("layout", "a layout, \"default\" or None"),
        },
    }
}

/// Row-major, unless the kernel is written for schedules.
fn default_layout(interp: &mut Interpreter, shape: &[Expr], span: Span) -> Option<Layout> {
    match interp.function_mut("a buffer", span) {
        Ok(f) if f.is_s_tir => None,
        _ => Some(Layout::row_major(shape)),
    }
}

fn build(fields: Fields, name: Arc<str>, data: Option<Var>, span: Span) -> Buffer {
    let data = data.unwrap_or_else(|| {
        let ty = Type::pointer(fields.dtype, fields.scope.clone());
        Var::at(format!("{name}_ptr"), ty, span)
    });
    Buffer::new(BufferNode {
        view: None,
        name,
        data,
        dtype: fields.dtype,
        shape: fields.shape,
        strides: fields.strides,
        elem_offset: fields.elem_offset,
        layout: fields.layout,
        align: fields.align,
        offset_factor: fields.offset_factor,
        allocated_addr: fields.allocated_addr,
        span,
    })
}

/// The pointer given as `data`: a variable, or an expression that is bound to one first.
fn data(interp: &mut Interpreter, call: &MatchedCall, name: &str) -> Result<Option<Var>> {
    let Some((value, span)) = call.get("data") else {
        return Ok(None);
    };
    let e = match value {
        Value::Buffer(_) => {
            return call.fail_with(
                "parameter \"data\" must be a pointer",
                "a buffer's pointer is its .data",
            );
        }
        value => match convert::operand(value, span) {
            Some(operand) => super::super::typing::literal(operand?, span)?,
            None => return call.expected("data", "a pointer"),
        },
    };
    if !e.dtype.is_handle() {
        return call.expected("data", "a pointer");
    }
    // An untyped pointer points to what is declared over it.
    let ty = match convert::expr_type(&e) {
        Type::Prim(_) => {
            let scope = call.text_or("scope", "global")?;
            Type::pointer(call.dtype_or("dtype", DType::FLOAT32)?, scope)
        }
        ty => ty,
    };
    if let Some(var) = e.as_var()
        && (*var.ty() == ty || matches!(&ty, Type::Pointer { scope, .. } if &**scope == "global"))
    {
        return Ok(Some(var.clone()));
    }
    let var = Var::at(format!("{name}_ptr"), ty, call.span);
    interp.emit(Stmt::bind(&var, e, call.span))?;
    Ok(Some(var))
}

fn match_buffer(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let (param, at) = call.need("param", "a T.handle parameter of the kernel")?;
    let param = match param {
        Value::Region(_) | Value::Buffer(_) => {
            return call.fail_with(
                "matching a part of a buffer belongs to schedulable TIR and is not supported",
                "declare a view: T.decl_buffer(shape, dtype, data=…, elem_offset=…)",
            );
        }
        value => match value.as_expr().and_then(|e| e.as_var()) {
            Some(var) => var.clone(),
            None => return call.expected("param", "a T.handle parameter of the kernel"),
        },
    };
    if call.get("shape").is_none() {
        return call.fail("the shape must be given");
    }
    if !param.dtype().is_handle() {
        let message = format!(
            "{} is a parameter of dtype {}, not a pointer",
            param.name(),
            param.dtype()
        );
        return call.fail_with(message, format!("declare it as {}: T.handle", param.name()));
    }
    let fields = fields(interp, call, "global", true)?;
    let name = call.names.name_or(param.name());
    let data = data(interp, call, &name)?;
    let buffer = build(fields, name, data, call.span);
    let function = interp.function_mut("T.match_buffer", call.span)?;
    if !function.params.contains(&param) {
        return call.fail(format!("{} is not a parameter of the kernel", param.name()));
    }
    if let Some((_, first)) = function.buffer_map.iter().find(|(v, _)| *v == param) {
        let message = format!("T.match_buffer: {} is already matched to a buffer", param.name());
        let diagnostic = Diagnostic::new(at.or(call.span), message);
        return Err(Box::new(diagnostic.note(first.span, "it was matched here")));
    }
    check_parameter(&buffer)?;
    function.buffer_map.push((param, buffer.clone()));
    Ok(Value::Buffer(buffer))
}

/// `T.Buffer(...)`: a description; as an annotation, of a parameter.
fn annotation(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let fields = fields(interp, call, "global", true)?;
    let name = call.names.name_or("buffer");
    let data = match call.get("data") {
        Some((value, _)) => match value.as_expr().and_then(|e| e.as_var()) {
            Some(var) if var.dtype().is_handle() => Some(var.clone()),
            _ => return call.expected("data", "a pointer variable"),
        },
        None => None,
    };
    Ok(Value::Buffer(build(fields, name, data, call.span)))
}

fn alloc(interp: &mut Interpreter, call: &mut MatchedCall, scope: &str) -> Result<Value> {
    if call.get("data").is_some() {
        return call.fail_with(
            "an allocation makes its own pointer",
            "a view over an existing one: T.decl_buffer(shape, dtype, data=…)",
        );
    }
    let fields = fields(interp, call, scope, false)?;
    let annotations = annotations(call)?;
    let buffer = build(fields, call.names.name_or("buffer"), None, call.span);
    interp.emit(Stmt::new(
        StmtKind::AllocBuffer(buffer.clone(), annotations),
        call.span,
    ))?;
    Ok(Value::Buffer(buffer))
}

/// The dictionary given as `annotations`, in order of keys.
pub(super) fn annotations(call: &MatchedCall) -> Result<Vec<(Arc<str>, AttrValue)>> {
    match call.get("annotations") {
        None => Ok(Vec::new()),
        Some((value @ Value::Dict(_), span)) => Ok(convert::attr_dict(value, span.or(call.span))?
            .into_iter()
            .collect()),
        Some(_) => call.expected("annotations", "a dictionary with string keys"),
    }
}

fn decl_buffer(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let name = call.names.name_or("buffer");
    let Some(data) = data(interp, call, &name)? else {
        let fields = fields(interp, call, "global", false)?;
        let buffer = build(fields, name, None, call.span);
        interp.emit(Stmt::new(
            StmtKind::AllocBuffer(buffer.clone(), Vec::new()),
            call.span,
        ))?;
        return Ok(Value::Buffer(buffer));
    };
    let scope = pointer_scope(&data);
    if let Some((value, _)) = call.get("scope")
        && let Some(said) = value.as_str()
        && said != &*scope
        && said != "global"
    {
        return call.fail(format!(
            "scope is \"{said}\" but the pointer {} is of scope \"{scope}\"",
            data.name()
        ));
    }
    let fields = fields(interp, call, &scope, false)?;
    let buffer = build(fields, name, Some(data), call.span);
    interp.emit(Stmt::new(StmtKind::DeclBuffer(buffer.clone()), call.span))?;
    Ok(Value::Buffer(buffer))
}

fn pointer_scope(data: &Var) -> Arc<str> {
    match data.ty() {
        Type::Pointer { scope, .. } => scope.clone(),
        Type::Prim(_) | Type::TensorMap => "global".into(),
    }
}

/// A scalar denotes its element, so the value is bound as it is.
fn scalar(buffer: &Buffer, span: Span) -> Value {
    let load = Expr::load(buffer, vec![Expr::int32(0).at(span)]).at(span);
    Value::MetaVar(Rc::new(Value::Expr(load)))
}

fn alloc_scalar(interp: &mut Interpreter, call: &mut MatchedCall, scope: &str) -> Result<Value> {
    let dtype = call.dtype_or("dtype", DType::FLOAT32)?;
    let scope = call.text_or("scope", scope)?;
    check_scope(call, &scope)?;
    let shape = vec![Expr::int32(1)];
    let buffer = Buffer::fresh(call.names.name_or("buffer"), shape, dtype, &scope, call.span);
    interp.emit(Stmt::new(
        StmtKind::AllocBuffer(buffer.clone(), Vec::new()),
        call.span,
    ))?;
    Ok(scalar(&buffer, call.span))
}

fn decl_scalar(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let dtype = call.dtype("dtype")?;
    let name = call.names.name_or("buffer");
    let Some(data) = data(interp, call, &name)? else {
        return call.expected("data", "a pointer");
    };
    let scope = call.text("scope")?;
    check_scope(call, &scope)?;
    let shape = vec![Expr::int32(1)];
    let fields = Fields {
        dtype,
        strides: Vec::new(),
        elem_offset: elem_offset(call, dtype)?.filter(|e| !e.is_int(0)),
        scope,
        align: DEFAULT_ALIGN,
        offset_factor: 1,
        layout: Some(Layout::row_major(&shape)),
        shape,
        allocated_addr: Vec::new(),
    };
    let buffer = build(fields, name, Some(data), call.span);
    interp.emit(Stmt::new(StmtKind::DeclBuffer(buffer.clone()), call.span))?;
    Ok(scalar(&buffer, call.span))
}
