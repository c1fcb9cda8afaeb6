//! `T.ptx.ld`, `T.ptx.st`, `T.ptx.atom_scalar`, …: as users write them, with keywords, and as they are printed, with
//! all arguments in order.

use super::super::eval::{Interpreter, Param, Value, keyword, optional, required};
use super::call::{Call, Function, function, variadic};
use super::convert;
use crate::diagnostic::Result;
use crate::intrin::Op;
use crate::intrin::memory::{Form, MemoryInstruction};
use crate::ir::{DType, Expr, ExprKind, Type};

/// All that any of them takes by name.
const LOAD: &[Param] = &[
    keyword("addr"),
    keyword("return_type"),
    keyword("ptx_type"),
    keyword("dst"),
    keyword("weak"),
    keyword("sem"),
    keyword("scope"),
    keyword("space"),
    keyword("cop"),
    keyword("vec"),
    keyword("cache_hint"),
    keyword("cache_policy"),
    keyword("l1_evict"),
    keyword("l2_evict"),
    keyword("prefetch_size"),
];
const STORE: &[Param] = &[
    keyword("ptx_type"),
    keyword("src"),
    keyword("weak"),
    keyword("sem"),
    keyword("scope"),
    keyword("space"),
    keyword("cop"),
    keyword("vec"),
    keyword("cache_hint"),
    keyword("cache_policy"),
    keyword("l1_evict"),
    keyword("l2_evict"),
];
const UPDATE: &[Param] = &[
    keyword("op"),
    keyword("ptx_type"),
    keyword("sem"),
    keyword("scope"),
    keyword("space"),
    keyword("cache_hint"),
    keyword("cache_policy"),
];
const LDG32: &[Param] = &[
    required("reg"),
    required("guard"),
    required("addr"),
    required("local_addr"),
];
const BULK: &[Param] = &[
    required("ptr"),
    required("num_bytes"),
    optional("weak"),
    optional("space"),
];
const MAPA: &[Param] = &[
    required("ptr"),
    required("rank"),
    optional("space"),
    optional("ptx_type"),
    optional("return_type"),
];

macro_rules! accesses {
    ($params:ident: $($name:literal $op:ident),*) => {
        [$(variadic($name, $params, |_, c| access(c, Op::$op))),*]
    };
}

pub(super) static LOADS: &[Function] = &accesses![LOAD:
    "T.ptx.ld" PtxLd, "T.ptx.ld_global_nc" PtxLdGlobalNc, "T.ptx.ld_relaxed" PtxLdRelaxed,
    "T.ptx.ld_acquire" PtxLdAcquire, "T.ptx.ld_volatile" PtxLdVolatile, "T.ptx.ld_mmio" PtxLdMmio];
pub(super) static STORES: &[Function] = &accesses![STORE:
    "T.ptx.st" PtxSt, "T.ptx.st_relaxed" PtxStRelaxed, "T.ptx.st_release" PtxStRelease,
    "T.ptx.st_volatile" PtxStVolatile, "T.ptx.st_mmio" PtxStMmio];
pub(super) static UPDATES: &[Function] = &accesses![UPDATE:
    "T.ptx.atom_scalar" PtxAtomScalar, "T.ptx.red_scalar" PtxRedScalar];
pub(super) static OTHERS: &[Function] = &[
    function(
        "T.ptx.ld_global_acquire",
        const { &[required("res"), required("addr")] },
        ld_global_acquire,
    ),
    function("T.ptx.ldg32", LDG32, ldg32),
    function("T.ptx.st_bulk", BULK, st_bulk),
    function("T.ptx.mapa", MAPA, mapa),
    function(
        "T.ptx.map_shared_rank",
        const { &[required("ptr"), required("rank")] },
        mapa,
    ),
];

/// The modifiers that a user gives, or what holds without.
fn modifier(call: &Call, form: &Form, name: &str, destinations: usize, has_cache: bool) -> Result<Expr> {
    let flag = |set: bool| Expr::int32(set.into()).at(call.span);
    let default = match (name, form.op) {
        ("weak", _) => {
            return Ok(flag(call.flag(name, false)?));
        }
        ("has_cache", _) => return Ok(flag(has_cache)),
        ("to_dst", _) => return Ok(Expr::int32(destinations as i32).at(call.span)),
        ("from_src", _) => return Ok(flag(call.get("src").is_some())),
        ("return_type", _) => return Ok(Expr::string(return_type(call)?).at(call.span)),
        ("ptx_type", _) => {
            let text = match call.rest.get(2) {
                Some((value, _)) if loads(form) => convert::text(value),
                _ => Some(call.text(name)?),
            };
            return match text {
                Some(text) => Ok(Expr::string(text).at(call.span)),
                None => call.fail("ptx_type must be a string such as \"u32\""),
            };
        }
        ("space", Op::PtxSt) => "shared",
        ("space", _) => "global",
        ("scope", Op::PtxLdMmio | Op::PtxStMmio) => "sys",
        ("scope", Op::PtxAtomScalar | Op::PtxRedScalar) => "",
        ("scope", _) => "gpu",
        // The only order that PTX has for them.
        ("sem", Op::PtxLdMmio | Op::PtxStMmio) => "relaxed",
        _ => "",
    };
    Ok(Expr::string(call.text_or(name, default)?).at(call.span))
}

fn loads(form: &Form) -> bool {
    form.fields.contains(&"return_type")
}

fn return_type(call: &Call) -> Result<String> {
    let dtype = match call.rest.get(1) {
        Some((value, span)) => convert::dtype(value, span.or(call.span))?,
        None => Some(call.dtype("return_type")?),
    };
    match dtype {
        Some(dtype) => Ok(dtype.to_string()),
        None => call.fail("return_type must be a dtype such as \"uint32\""),
    }
}

/// A cache policy by name, or by value; whether there is one.
fn policy(call: &Call) -> Result<(Expr, bool)> {
    if let Some(policy) = call.opt_expr("cache_policy")? {
        return Ok((policy.cast(DType::UINT64), true));
    }
    let value: i128 = match &*call.text_or("cache_hint", "")? {
        "" => 0,
        "evict_normal" => 0x1000_0000_0000_0000,
        "evict_first" => 0x12F0_0000_0000_0000,
        "evict_last" => 0x14F0_0000_0000_0000,
        other => {
            return call.fail_with(
                format!("no cache policy is known as \"{other}\""),
                "evict_normal, evict_first and evict_last are; others are given by cache_policy=",
            );
        }
    };
    Ok((Expr::constant(DType::UINT64, value).at(call.span), value != 0))
}

fn access(call: &mut Call, op: Op) -> Result<Value> {
    let Some(form) = Form::of(op) else {
        return call.fail("is no access to memory");
    };
    let update = form.fields.contains(&"op");
    // Printed IR has everything in order.
    let printed = match (loads(form), update) {
        (true, _) => call.rest.len() > 3,
        (_, true) => call.get("op").is_none(),
        _ => call.get("ptx_type").is_none(),
    };
    let args = if printed {
        call.rest_args()?
    } else {
        written(call, form)?
    };
    let dtype = match MemoryInstruction::of(op, &args) {
        Ok(Some(instruction)) => instruction.result,
        Ok(None) => DType::VOID,
        Err(message) => return call.fail(message),
    };
    Ok(Value::Expr(Expr::call(op, dtype, args).at(call.span)))
}

/// The arguments in order, from what the user wrote.
fn written(call: &Call, form: &Form) -> Result<Vec<Expr>> {
    let mut args = Vec::new();
    let mut destinations = 0;
    if loads(form) {
        if let Some((value, span)) = call.get("dst") {
            for item in value.as_items().unwrap_or_else(|| vec![value.clone()]) {
                args.push(convert::argument(&item, span.or(call.span), call.function)?);
            }
            destinations = args.len();
        }
        args.push(match call.rest.first() {
            Some((value, span)) => convert::argument(value, span.or(call.span), call.function)?,
            None => call.argument("addr")?,
        });
    } else {
        args = call.rest_args()?;
        if call.get("src").is_some() {
            args.push(call.argument("src")?);
        }
    }
    let (policy, has_cache) = policy(call)?;
    if form.has_policy(destinations > 0) {
        args.push(policy);
    }
    for name in form.fields {
        args.push(modifier(call, form, name, destinations, has_cache)?);
    }
    Ok(args)
}

/// An element as its address: what an instruction writes, or reads under a condition of its own.
fn element(call: &Call, name: &str, expected: &str) -> Result<Expr> {
    let e = call.argument(name)?;
    match &e.kind {
        ExprKind::BufferLoad { .. } => {
            Ok(Expr::call(Op::AddressOf, DType::HANDLE, vec![e.clone()]).at(e.span))
        }
        _ if e.dtype.is_handle() && e.as_str().is_none() => Ok(e),
        _ => call.expected(name, expected),
    }
}

fn pointer(call: &Call, name: &str, expected: &str) -> Result<Expr> {
    let e = call.argument(name)?;
    if !e.dtype.is_handle() || e.as_str().is_some() {
        return call.expected(name, expected);
    }
    Ok(e)
}

fn ld_global_acquire(_interp: &mut Interpreter, call: &mut Call) -> Result<Value> {
    const EXPECTED: &str = "an element of 32 or 64 bits of integers, such as r or A[i]";
    let to = element(call, "res", EXPECTED)?;
    let dtype = pointee(&to);
    if ![DType::INT32, DType::UINT32, DType::INT64, DType::UINT64].contains(&dtype) {
        return call.expected("res", EXPECTED);
    }
    let args = vec![to, pointer(call, "addr", "a pointer such as A.ptr_to([i])")?];
    Ok(Value::Expr(
        Expr::call(Op::PtxLdGlobalAcquire, DType::VOID, args).at(call.span),
    ))
}

fn ldg32(_interp: &mut Interpreter, call: &mut Call) -> Result<Value> {
    let array = pointer(call, "reg", "the pointer of an array of float32, such as r.data")?;
    let from = element(call, "addr", "an element of float32 such as A[i]")?;
    if pointee(&from) != DType::FLOAT32 {
        return call.expected("addr", "an element of float32 such as A[i]");
    }
    let args = vec![array, call.expr("guard")?, from, call.expr("local_addr")?];
    Ok(Value::Expr(
        Expr::call(Op::PtxLdg32, DType::VOID, args).at(call.span),
    ))
}

fn st_bulk(_interp: &mut Interpreter, call: &mut Call) -> Result<Value> {
    let space = call.text_or("space", "shared::cta")?;
    if !["", "shared::cta"].contains(&&*space) {
        return call.fail(format!(
            "space must be \"\" or \"shared::cta\", found \"{space}\""
        ));
    }
    let args = vec![
        pointer(call, "ptr", "a pointer to shared memory such as S.ptr_to([0])")?,
        call.expr("num_bytes")?,
        Expr::int32(call.flag("weak", false)?.into()).at(call.span),
        Expr::string(space).at(call.span),
    ];
    Ok(Value::Expr(
        Expr::call(Op::PtxStBulk, DType::VOID, args).at(call.span),
    ))
}

/// The dtype behind a pointer, as far as it is known.
fn pointee(pointer: &Expr) -> DType {
    match convert::expr_type(pointer) {
        Type::Pointer { element, .. } => element,
        Type::Prim(_) | Type::TensorMap => DType::VOID,
    }
}

fn mapa(_interp: &mut Interpreter, call: &mut Call) -> Result<Value> {
    let space = call.text_or("space", "")?;
    let ptx = call.text_or("ptx_type", "u64")?;
    let dtype = call.dtype_or("return_type", DType::UINT64)?;
    let fits = match (&*space, &*ptx) {
        ("" | "shared::cluster", "u64") => dtype == DType::UINT64,
        ("shared::cluster", "u32") => dtype == DType::UINT32,
        _ => false,
    };
    if !fits {
        return call.fail_with(
            format!("there is no mapa of space \"{space}\" and type {ptx} that gives {dtype}"),
            "the address of a generic pointer is u64 and uint64; space \"shared::cluster\" has u32 and uint32 too",
        );
    }
    let pointer = call.argument("ptr")?;
    if !pointer.dtype.is_handle() {
        return call.expected("ptr", "a pointer to shared memory");
    }
    let args = vec![
        pointer,
        call.expr("rank")?,
        Expr::string(space).at(call.span),
        Expr::string(ptx).at(call.span),
        Expr::string(dtype.to_string()).at(call.span),
    ];
    Ok(Value::Expr(Expr::call(Op::PtxMapa, dtype, args).at(call.span)))
}
