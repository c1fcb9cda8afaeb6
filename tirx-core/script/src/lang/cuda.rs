//! `T.cuda.*`: functions with arguments that are derived from others, and short names.

use super::super::eval::{Interpreter, Param, Value, keyword, optional, required};
use super::super::typing::{self, Operand};
use super::call::{Function, MatchedCall, function, variadic};
use super::{convert, rows};
use crate::diagnostic::Result;
use crate::intrin::Op;
use crate::ir::{DType, Expr, Type};

const WARP: &[Param] = &[required("value"), optional("width")];
const CTA: &[Param] = &[required("value"), required("num_warps"), required("scratch")];
const FUNC: &[Param] = &[
    required("func_name"),
    keyword("source_code"),
    keyword("return_type"),
];
const LDG: &[Param] = &[
    required("addr"),
    required("dtype"),
    keyword("dst"),
    keyword("vec"),
];

pub(super) static FUNCTIONS: &[Function] = &[
    function(
        "T.cuda.atomic_add",
        const { &[required("res_addr"), required("value")] },
        atomic_add,
    ),
    function(
        "T.cuda.atomic_cas",
        const { &[required("ptr"), required("old_val"), required("new_val")] },
        atomic_cas,
    ),
    variadic("T.cuda.ldg", LDG, ldg),
    variadic("T.cuda.func_call", FUNC, func_call),
    function("T.cuda.warp_sum", WARP, |_, c| warp_reduce(c, "sum")),
    function("T.cuda.warp_max", WARP, |_, c| warp_reduce(c, "max")),
    function("T.cuda.warp_min", WARP, |_, c| warp_reduce(c, "min")),
    function("T.cuda.cta_sum", CTA, |_, c| cta_reduce(c, "sum")),
    function("T.cuda.cta_max", CTA, |_, c| cta_reduce(c, "max")),
    function("T.cuda.cta_min", CTA, |_, c| cta_reduce(c, "min")),
];

/// The address of an atomic operation and the element dtype behind it, where it is known.
fn address(call: &MatchedCall, name: &str) -> Result<(Expr, Option<DType>)> {
    let (value, span) = call.need(name, "a pointer such as A.ptr_to([i])")?;
    // An element stands for its address.
    if let Value::Expr(e) = value
        && !e.dtype.is_handle()
    {
        if convert::buffer(value).is_none() {
            return call.expected(name, "a pointer such as A.ptr_to([i])");
        }
        let element = e.dtype;
        let pointer = Expr::call(Op::AddressOf, DType::HANDLE, vec![e.clone()]).at(span);
        return Ok((pointer, Some(element)));
    }
    let pointer = call.argument(name)?;
    if !pointer.dtype.is_handle() || pointer.as_str().is_some() {
        return call.expected(name, "a pointer such as A.ptr_to([i])");
    }
    let element = match convert::expr_type(&pointer) {
        Type::Pointer { element, .. } if !element.is_void() => Some(element),
        _ => None,
    };
    Ok((pointer, element))
}

/// A value for an element of dtype `element`: literals are converted, other dtypes are rejected.
fn operand_for(call: &MatchedCall, name: &str, element: Option<DType>) -> Result<Expr> {
    match (call.operand(name)?, element) {
        (Operand::Expr(e), Some(element)) if e.dtype != element => call.fail_with(
            format!("the pointer is to {element} but \"{name}\" is {}", e.dtype),
            format!("cast it: T.cast(x, \"{element}\")"),
        ),
        (Operand::Expr(e), _) => Ok(e),
        (literal, Some(element)) => typing::cast(literal, element, call.span),
        (literal, None) => typing::literal(literal, call.span),
    }
}

fn atomic_add(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let (pointer, element) = address(call, "res_addr")?;
    let value = operand_for(call, "value", element)?;
    let dtype = value.dtype;
    Ok(Value::Expr(
        Expr::call(Op::CudaAtomicAdd, dtype, vec![pointer, value]).at(call.span),
    ))
}

fn atomic_cas(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let (pointer, element) = address(call, "ptr")?;
    let old = operand_for(call, "old_val", element)?;
    let new = operand_for(call, "new_val", element.or(Some(old.dtype)))?;
    let swap = Op::CudaAtomicCas.call().set("ptr", pointer);
    let swap = swap.set("old_val", old).set("new_val", new);
    Ok(Value::Expr(swap.at(call.span).build()))
}

fn ldg(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    if !call.rest.is_empty() {
        return ldg_printed(call);
    }
    let vec = call.text_or("vec", "")?;
    if call.get("dst").is_some() || !vec.is_empty() {
        let items = call.items("dst", "a list of pointers")?;
        return ldg_vector(call, &items, call.argument("addr")?, call.dtype("dtype")?, &vec);
    }
    let (pointer, dtype) = (call.argument("addr")?, call.dtype("dtype")?);
    Ok(Value::Expr(
        Expr::call(Op::CudaLdg, dtype, vec![pointer]).at(call.span),
    ))
}

/// The vector form as TVM prints it: the pointers of the destinations, the address, the dtype, `vec` and the number of
/// destinations.
fn ldg_printed(call: &MatchedCall) -> Result<Value> {
    let named = ["addr", "dtype"]
        .iter()
        .filter_map(|name| call.get(name).map(|(value, _)| value.clone()));
    let all: Vec<Value> = named
        .chain(call.rest.iter().map(|(value, _)| value.clone()))
        .collect();
    let [dst @ .., addr, dtype, Value::Str(vec), Value::Int(count)] = &all[..] else {
        return call.fail_with(
            format!("{} positional arguments are neither form of the call", all.len()),
            "write T.cuda.ldg(addr, dtype), or T.cuda.ldg(addr, dtype, dst=[p, q], vec=\"v2\")",
        );
    };
    if *count != dst.len() as i128 {
        return call.fail(format!(
            "{count} destinations are announced, {} are given",
            dst.len()
        ));
    }
    let Some(dtype) = convert::dtype(dtype, call.span)? else {
        return call.fail("the argument behind the address must be a dtype such as \"float32\"");
    };
    ldg_vector(
        call,
        dst,
        convert::argument(addr, call.span, call.function)?,
        dtype,
        vec,
    )
}

/// Two or four elements at once, to the variables that `dst` points to: the load of memory that does not change.
fn ldg_vector(call: &MatchedCall, dst: &[Value], addr: Expr, dtype: DType, vec: &str) -> Result<Value> {
    let ptx = match dtype {
        DType::INT32 => "s32",
        DType::UINT32 => "u32",
        DType::FLOAT32 => "f32",
        other => {
            return call.fail(format!(
                "the vector form loads int32, uint32 or float32, not {other}"
            ));
        }
    };
    let count = match vec {
        "v2" => 2,
        "v4" => 4,
        other => {
            return call.fail(format!(
                "with dst=, vec must be \"v2\" or \"v4\", found \"{other}\""
            ));
        }
    };
    let mut registers = Vec::new();
    for item in dst {
        registers.push(convert::argument(item, call.span, call.function)?);
    }
    if registers.len() != count {
        return call.fail(format!(
            "dst must be {count} pointers for vec=\"{vec}\", found {}",
            registers.len()
        ));
    }
    let load = Op::PtxLdGlobalNc
        .call()
        .list("dst", registers)
        .set("addr", addr)
        .set("return_type", &dtype.to_string())
        .set("vec", vec)
        .set("ptx_type", ptx);
    Ok(Value::Expr(load.at(call.span).build()))
}

/// Whether a text can stand before the parentheses of a call in C++: a name, with namespaces and template arguments.
fn is_name_of_function(text: &str) -> bool {
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    text.starts_with(begins)
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_:<>, *&-".contains(c))
}

fn func_call(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let name = call.text("func_name")?;
    if !is_name_of_function(&name) {
        return call.fail_with(
            format!("{name:?} is no name of a function"),
            "give the name alone, such as \"f\", \"tools::f\" or \"f<4>\"; arguments are parameters of their own",
        );
    }
    if call.get("source_code").is_none() {
        return call.fail_with(
            "parameter \"source_code\" must be given",
            "pass the function's CUDA text: T.cuda.func_call(\"f\", x, source_code=SRC, return_type=\"float32\")",
        );
    }
    let mut args = vec![
        Expr::string(name).at(call.span),
        Expr::string(call.text("source_code")?).at(call.span),
    ];
    args.extend(call.rest_args()?);
    let dtype = call.dtype_or("return_type", DType::VOID)?;
    Ok(Value::Expr(
        Expr::call(Op::CudaFuncCall, dtype, args).at(call.span),
    ))
}

fn warp_reduce(call: &mut MatchedCall, op: &str) -> Result<Value> {
    let width = Expr::int32(call.int_or("width", 32)? as i32).at(call.span);
    let args = vec![call.expr("value")?, Expr::string(op).at(call.span), width];
    rows::checked(call, Op::CudaWarpReduce, args)
}

fn cta_reduce(call: &mut MatchedCall, op: &str) -> Result<Value> {
    let warps = Expr::int32(call.int("num_warps")? as i32).at(call.span);
    let args = vec![
        call.expr("value")?,
        Expr::string(op).at(call.span),
        warps,
        call.argument("scratch")?,
    ];
    rows::checked(call, Op::CudaCtaReduce, args)
}
