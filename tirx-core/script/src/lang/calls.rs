//! Calls that become call nodes: pointers, extern functions, host builtins, warps, control jumps.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::eval::{Args, Interpreter, Param, Value, keyword, optional, required};
use super::super::typing;
use super::call::{Function, MatchedCall, function, variadic};
use super::convert;
use super::objects::TargetValue;
use crate::diagnostic::{Diagnostic, Result};
use crate::intrin::Op;
use crate::ir::abi::{Target, tensor_map};
use crate::ir::{AttrValue, DType, Expr, ExprKind};
use crate::source::Span;

const X: &[Param] = &[required("x")];
const EXTERN: &[Param] = &[required("dtype"), required("func_name")];
const ENCODE_TILED: &[Param] = &[
    Param {
        required: true,
        ..keyword("descriptor_dtype")
    },
    Param {
        required: true,
        ..keyword("rank")
    },
    keyword("interleave"),
    keyword("swizzle"),
    keyword("l2_promotion"),
    keyword("oob_fill"),
    keyword("force_cu_dtype"),
];
const PACKED: &[Param] = &[required("func_name")];
const LOWERED: &[Param] = &[
    required("func_name"),
    required("value_stack"),
    required("begin"),
    required("end"),
];
const ACCESS: &[Param] = &[
    required("ptype"),
    required("data"),
    required("offset"),
    required("extent"),
    required("rw_mask"),
];
const BYTE_OFFSET: &[Param] = &[required("data"), required("byte_offset"), required("dtype")];
const STRUCT_GET: &[Param] = &[
    required("arr"),
    required("index"),
    required("field"),
    required("dtype"),
];
const TARGET: &[Param] = &[required("target_config"), optional("host")];
const SYNC: &[Param] = &[
    required("storage_scope"),
    optional("is_load"),
    optional("num_blocks"),
];
const SHUFFLE: &[Param] = &[
    required("mask"),
    required("value"),
    required("warp_id"),
    required("width"),
    required("warp_size"),
];
const SHUFFLE_BY: &[Param] = &[
    required("mask"),
    required("value"),
    required("offset"),
    required("width"),
    required("warp_size"),
];
const SHUFFLE_XOR: &[Param] = &[
    required("mask"),
    required("value"),
    required("lane_mask"),
    required("width"),
    required("warp_size"),
];
const PRINT: &[Param] = &[
    required("buffer_var"),
    required("dtype"),
    required("is_string"),
    required("is_scalar"),
    required("dim_num"),
];

pub(super) static FUNCTIONS: &[Function] = &[
    function("T.address_of", const { &[required("obj")] }, address_of),
    function("T.tvm_access_ptr", ACCESS, access_ptr),
    function("T.ptr_byte_offset", BYTE_OFFSET, ptr_byte_offset),
    function(
        "T.type_annotation",
        const { &[required("dtype")] },
        type_annotation,
    ),
    variadic("T.buffer_offset", const { &[required("load")] }, buffer_offset),
    variadic("T.call_extern", EXTERN, |_, c| call_extern(c, Op::CallExtern)),
    variadic("T.call_pure_extern", EXTERN, |_, c| {
        call_extern(c, Op::CallPureExtern)
    }),
    variadic("T.call_intrin", EXTERN, call_intrin),
    variadic("T.call_packed", PACKED, call_packed),
    variadic("T.tvm_call_packed", PACKED, call_packed),
    variadic("T.tensormap_encode_tiled", ENCODE_TILED, tensormap_encode_tiled),
    function("T.call_packed_lowered", LOWERED, call_packed_lowered),
    function("T.tvm_call_packed_lowered", LOWERED, call_packed_lowered),
    function("T.tvm_struct_get", STRUCT_GET, struct_get),
    function("T.target", TARGET, target),
    function("T.tvm_storage_sync", SYNC, storage_sync),
    function("T.tvm_warp_shuffle", SHUFFLE, |_, c| {
        shuffle(c, Op::TvmWarpShuffle, "warp_id")
    }),
    function("T.tvm_warp_shuffle_up", SHUFFLE_BY, |_, c| {
        shuffle(c, Op::TvmWarpShuffleUp, "offset")
    }),
    function("T.tvm_warp_shuffle_down", SHUFFLE_BY, |_, c| {
        shuffle(c, Op::TvmWarpShuffleDown, "offset")
    }),
    function("T.tvm_warp_shuffle_xor", SHUFFLE_XOR, |_, c| {
        shuffle(c, Op::TvmWarpShuffleXor, "lane_mask")
    }),
    variadic("T.tvm_thread_allreduce", &[], |_, c| {
        explicit(c, Op::TvmThreadAllreduce, DType::VOID)
    }),
    variadic("T.undef", &[], |_, c| explicit(c, Op::Undef, DType::INT32)),
    variadic("T.large_uint_imm", &[], |_, c| {
        explicit(c, Op::LargeUintImm, DType::UINT64)
    }),
    variadic("T.vectorlow", &[], |_, c| explicit(c, Op::Vectorlow, DType::VOID)),
    variadic("T.vectorhigh", &[], |_, c| {
        explicit(c, Op::Vectorhigh, DType::VOID)
    }),
    variadic("T.vectorcombine", &[], |_, c| {
        explicit(c, Op::Vectorcombine, DType::VOID)
    }),
    variadic("T.dp4a", &[], dp4a),
    variadic("T.print_buffer", PRINT, print_buffer),
    function("T.assume", const { &[required("cond")] }, assume),
    function("T.isnullptr", X, |_, c| {
        let x = c.argument("x")?;
        Ok(Value::Expr(
            Expr::call(Op::IsNullptr, DType::BOOL, vec![x]).at(c.span),
        ))
    }),
];

fn address_of(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let (value, span) = call.need("obj", "a buffer or an element of one")?;
    let target = match value {
        Value::Buffer(b) => {
            let zeros = b.shape.iter().map(|_| Expr::int32(0).at(span)).collect();
            Expr::load(b, zeros).at(span)
        }
        value => match convert::operand(value, span) {
            Some(operand) => typing::literal(operand?, span)?,
            None => return call.expected("obj", "a buffer or an element of one"),
        },
    };
    match &target.kind {
        ExprKind::BufferLoad { .. } | ExprKind::Var(_) => {}
        _ => {
            return call.fail_with(
                "only a buffer, its elements and variables have an address",
                "address an element: A.ptr_to([i])",
            );
        }
    }
    let args = vec![target];
    let dtype = Op::AddressOf.result(&args).unwrap_or(DType::HANDLE);
    Ok(Value::Expr(Expr::call(Op::AddressOf, dtype, args).at(call.span)))
}

/// A dtype as an argument: `T.type_annotation("float32")`, or its short form, the dtype itself.
fn annotation(call: &MatchedCall, name: &str) -> Result<Expr> {
    let (value, span) = call.need(name, "a dtype")?;
    if let Value::Expr(e) = value
        && e.as_call(Op::TypeAnnotation).is_some()
    {
        return Ok(e.clone());
    }
    let dtype = call.dtype(name)?;
    Ok(Expr::call(Op::TypeAnnotation, dtype, vec![]).at(span))
}

fn type_annotation(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    annotation(call, "dtype").map(Value::Expr)
}

fn pointer(call: &MatchedCall, name: &str) -> Result<Expr> {
    let e = call.argument(name)?;
    if !e.dtype.is_handle() || e.as_str().is_some() {
        return call.expected(name, "a pointer");
    }
    Ok(e)
}

fn access_ptr(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let elements = |call: &mut MatchedCall, name: &str| {
        let e = call.expr(name)?;
        if !e.dtype.is_integer() {
            return call.expected(name, "a number of elements, an integer");
        }
        Ok(e)
    };
    let access = Op::TvmAccessPtr
        .call()
        .set("ptype", annotation(call, "ptype")?)
        .set("data", pointer(call, "data")?)
        .set("offset", elements(call, "offset")?)
        .set("extent", elements(call, "extent")?)
        .set("rw_mask", call.expr("rw_mask")?);
    Ok(Value::Expr(access.at(call.span).build()))
}

fn ptr_byte_offset(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let moved = Op::PtrByteOffset
        .call()
        .set("data", pointer(call, "data")?)
        .set("byte_offset", call.expr("byte_offset")?)
        .set("dtype", annotation(call, "dtype")?);
    Ok(Value::Expr(moved.at(call.span).build()))
}

fn buffer_offset(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let load = match call.get("load") {
        // Printed text has the dtype first.
        Some((Value::Str(_), _)) if !call.rest.is_empty() => call.rest_args()?.remove(0),
        _ => call.expr("load")?,
    };
    if !matches!(load.kind, ExprKind::BufferLoad { .. }) {
        return call.expected("load", "an element of a buffer");
    }
    Ok(Value::Expr(offset_of_element(load).at(call.span)))
}

/// Number of elements before a loaded one.
pub(super) fn offset_of_element(load: Expr) -> Expr {
    let args = vec![load];
    let dtype = Op::BufferOffset.result(&args).unwrap_or(DType::INT32);
    Expr::call(Op::BufferOffset, dtype, args)
}

fn call_extern(call: &mut MatchedCall, op: Op) -> Result<Value> {
    let dtype = call.dtype("dtype")?;
    let name = call.text("func_name")?;
    if name.is_empty() {
        return call.expected("func_name", "the name of a C function");
    }
    let mut args = vec![Expr::string(name).at(call.span)];
    args.extend(call.rest_args()?);
    Ok(Value::Expr(Expr::call(op, dtype, args).at(call.span)))
}

fn call_intrin(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let dtype = call.dtype("dtype")?;
    let name = call.text("func_name")?;
    let Some(op) = Op::from_name(&name) else {
        let near = super::super::eval::suggest(&name, Op::ALL.iter().map(|op| op.name()));
        return match near {
            Some(near) => call.fail_with(
                format!("no intrinsic \"{name}\""),
                format!("did you mean \"{near}\"?"),
            ),
            None => call.fail(format!("no intrinsic \"{name}\"")),
        };
    };
    let args = call.rest_args()?;
    if let Err(message) = op.row().read(&args) {
        // TVM's call node has other operands than ours (`tirx.cuda.ldg` has its dtype): the function that builds it takes them.
        let function = super::namespace::lookup(&format!("T.{}", op.info().script));
        return match function {
            Some(Value::Builtin(function)) => {
                let args = Args {
                    positional: call.rest.clone(),
                    ..Args::default()
                };
                (function.call)(interp, args, call.span)
            }
            _ => call.fail(format!("\"{name}\" {message}")),
        };
    }
    Ok(Value::Expr(Expr::call(op, dtype, args).at(call.span)))
}

fn call_packed(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let mut args = vec![Expr::string(call.text("func_name")?).at(call.span)];
    args.extend(call.rest_args()?);
    Ok(Value::Expr(
        Expr::call(Op::TvmCallPacked, DType::INT32, args).at(call.span),
    ))
}

/// A tensor map as TVM 0.27 writes it. 0.26 calls the function of the host by its name.
fn tensormap_encode_tiled(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let operands = call.rest_args()?;
    let [map, address, arrays @ ..] = &operands[..] else {
        return call.fail(
            "the operands are the tensor map, the address, extents, strides, box extents and element strides",
        );
    };
    let mut args = vec![
        Expr::string(tensor_map::ENCODE).at(call.span),
        map.clone(),
        Expr::string(call.dtype("descriptor_dtype")?.to_string()).at(call.span),
        call.expr("rank")?,
        address.clone(),
    ];
    args.extend(arrays.iter().cloned());
    for name in ["interleave", "swizzle", "l2_promotion", "oob_fill"] {
        args.push(Expr::int32(call.int_or(name, 0)? as i32).at(call.span));
    }
    let forced = call.int_or("force_cu_dtype", -1)?;
    if forced != -1 {
        args.push(Expr::int32(forced as i32).at(call.span));
    }
    Ok(Value::Expr(
        Expr::call(Op::TvmCallPacked, DType::INT32, args).at(call.span),
    ))
}

fn call_packed_lowered(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let lowered = Op::TvmCallPackedLowered
        .call()
        .set("func_name", Expr::string(call.text("func_name")?))
        .set("value_stack", call.argument("value_stack")?)
        .set("begin", call.expr("begin")?)
        .set("end", call.expr("end")?);
    Ok(Value::Expr(lowered.at(call.span).build()))
}

fn struct_get(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let get = Op::TvmStructGet
        .call()
        .set("arr", call.argument("arr")?)
        .set("index", call.expr("index")?)
        .set("field", call.expr("field")?)
        .dtype(call.dtype("dtype")?);
    Ok(Value::Expr(get.at(call.span).build()))
}

fn target(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let (value, span) = call.need("target_config", "a dictionary or the name of a target")?;
    let named = |kind: &str| [("kind".into(), AttrValue::Str(kind.into()))].into();
    let mut config = match value {
        Value::Str(kind) => named(kind),
        value @ Value::Dict(_) => convert::attr_dict(value, span)?,
        _ => return call.expected("target_config", "a dictionary or the name of a target"),
    };
    if let Some(AttrValue::Str(kind)) = config.get("host") {
        let mut host = named(kind);
        Target::complete(&mut host);
        config.insert("host".into(), AttrValue::Dict(host));
    }
    Target::complete(&mut config);
    check_target(&config, span.or(call.span))?;
    if let Some((host, span)) = call.get("host") {
        let host = match host {
            Value::Str(kind) => AttrValue::Dict(named(kind)),
            host => convert::attr(host, span)?,
        };
        let host = match host {
            AttrValue::Target(mut fields) | AttrValue::Dict(mut fields) => {
                Target::complete(&mut fields);
                check_target(&fields, span.or(call.span))?;
                AttrValue::Dict(fields)
            }
            _ => return call.expected("host", "a dictionary or the name of a target"),
        };
        if config.insert("host".into(), host).is_some() {
            return call.fail("the host is given twice");
        }
    }
    Ok(Value::Object(std::rc::Rc::new(TargetValue(config))))
}

/// Rejects a target that names no supported kind of machine.
fn check_target(fields: &BTreeMap<Arc<str>, AttrValue>, span: Span) -> Result<()> {
    const HELP: &str =
        "as in T.target({\"kind\": \"cuda\", \"arch\": \"sm_90a\"}); the host's kind is \"llvm\"";
    const OTHERS: [&str; 9] = [
        "metal", "vulkan", "opencl", "rocm", "webgpu", "hexagon", "trn", "nvptx", "hip",
    ];
    let refuse = |message: String| Err(Box::new(Diagnostic::new(span, message).help(HELP)));
    let kind = match fields.get("kind") {
        None => return refuse("the target has no kind".into()),
        Some(kind) => match kind.as_str() {
            Some(kind) => kind,
            None => return refuse("the kind of a target must be a text".into()),
        },
    };
    match kind {
        "cuda" | "llvm" | "c" => {}
        other if OTHERS.contains(&other) => {
            return refuse(format!(
                "targets of kind \"{other}\" are not supported: this compiler makes code for CUDA"
            ));
        }
        other => return refuse(format!("unknown kind of target \"{other}\"")),
    }
    match fields.get("host") {
        Some(AttrValue::Dict(host) | AttrValue::Target(host)) => check_target(host, span)?,
        Some(_) => return refuse("the host of a target must be a target".into()),
        None => {}
    }
    match fields.get("arch") {
        Some(arch) if kind == "cuda" => match arch.as_str() {
            Some(arch) if is_arch(arch) => Ok(()),
            Some(arch) => refuse(format!("unknown architecture \"{arch}\" of a CUDA target")),
            None => refuse("the architecture of a CUDA target must be a text".into()),
        },
        _ => Ok(()),
    }
}

/// `sm_90`, `sm_90a`, `sm_120f`.
fn is_arch(arch: &str) -> bool {
    let number = arch
        .strip_prefix("sm_")
        .map(|rest| rest.strip_suffix(['a', 'f']).unwrap_or(rest));
    number.is_some_and(|n| (2..=3).contains(&n.len()) && n.bytes().all(|b| b.is_ascii_digit()))
}

fn storage_sync(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let mut args = vec![Expr::string(call.text("storage_scope")?).at(call.span)];
    args.push(
        call.opt_expr("is_load")?
            .unwrap_or_else(|| Expr::bool(false).at(call.span)),
    );
    args.push(
        call.opt_expr("num_blocks")?
            .unwrap_or_else(|| Expr::int32(-1).at(call.span)),
    );
    Ok(Value::Expr(
        Expr::call(Op::TvmStorageSync, DType::VOID, args).at(call.span),
    ))
}

fn shuffle(call: &mut MatchedCall, op: Op, lane: &str) -> Result<Value> {
    let value = call.expr("value")?;
    for name in ["mask", lane, "width", "warp_size"] {
        if !call.expr(name)?.dtype.is_integer() {
            return call.expected(name, "an integer");
        }
    }
    let dtype = value.dtype;
    let args = vec![
        call.expr("mask")?,
        value,
        call.expr(lane)?,
        call.expr("width")?,
        call.expr("warp_size")?,
    ];
    Ok(Value::Expr(Expr::call(op, dtype, args).at(call.span)))
}

/// A call whose dtype is the first argument, or `default` where it is left out.
fn explicit(call: &mut MatchedCall, op: Op, default: DType) -> Result<Value> {
    let mut dtype = default;
    if let Some((first, span)) = call.rest.first()
        && matches!(first, Value::Str(_) | Value::DType(_))
        && let Some(d) = convert::dtype(first, *span)?
    {
        dtype = d;
        call.rest.remove(0);
    }
    let args = call.rest_args()?;
    if let Err(message) = op.row().read(&args) {
        return call.fail(format!("{message} after the dtype"));
    }
    if op == Op::Undef || op == Op::LargeUintImm || op == Op::TvmThreadAllreduce || !dtype.is_void() {
        return Ok(Value::Expr(Expr::call(op, dtype, args).at(call.span)));
    }
    call.fail("the dtype of the result comes first")
}

fn dp4a(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    if matches!(call.rest.first(), Some((Value::Str(_), _))) {
        return explicit(call, Op::Dp4a, DType::INT32);
    }
    // By position: two vectors and an optional accumulator.
    if call.rest.len() == 2 {
        call.rest.push((Value::Int(0), call.span));
    }
    explicit(call, Op::Dp4a, DType::INT32)
}

fn print_buffer(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let dtype = call.dtype("dtype")?;
    let data = call.argument("buffer_var")?;
    // The row has no names for these, and for the extents that follow them.
    let mut args = Vec::new();
    for flag in ["is_string", "is_scalar"] {
        args.push(typing::cast(call.operand(flag)?, DType::BOOL, call.span)?);
    }
    args.push(typing::cast(call.operand("dim_num")?, DType::UINT32, call.span)?);
    // The extents are given one by one or as one tuple.
    let flat: Vec<Value> = match &call.rest[..] {
        [(value, _)] if value.as_items().is_some() => value.as_items().unwrap_or_default(),
        rest => rest.iter().map(|(v, _)| v.clone()).collect(),
    };
    for value in &flat {
        match convert::extent(value, call.span) {
            Some(extent) => args.push(extent?),
            None => return call.expected("shape", "an extent"),
        }
    }
    let print = Op::PrintBuffer.call().set("buffer_var", data);
    let print = print.set("dtype", &dtype.to_string()).list("rest", args);
    Ok(Value::Expr(print.at(call.span).build()))
}

fn assume(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let condition = call.expr("cond")?;
    if condition.dtype != DType::BOOL {
        return call.expected("cond", "a bool expression");
    }
    Ok(Value::Expr(
        Expr::call(Op::Assume, DType::BOOL, vec![condition]).at(call.span),
    ))
}
