//! `T.cuda.*`: CUDA's device functions.

use super::super::eval::{Interpreter, Param, Value, keyword, optional, required};
use super::super::typing::{self, Operand};
use super::call::{Call, Function, function, variadic};
use super::convert;
use crate::diagnostic::Result;
use crate::intrin::Op;
use crate::ir::{DType, Expr, Type};

const MASK_PRED: &[Param] = &[required("mask"), required("pred")];
const MASK_VALUE: &[Param] = &[required("mask"), required("value")];
const SHFL: &[Param] = &[
    required("mask"),
    required("var"),
    required("lane"),
    required("width"),
];
const SHFL_BY: &[Param] = &[
    required("mask"),
    required("var"),
    required("delta"),
    required("width"),
];
const SHFL_XOR: &[Param] = &[
    required("mask"),
    required("var"),
    required("lane_mask"),
    required("width"),
];
const COND: &[Param] = &[required("cond")];
const WARP: &[Param] = &[required("value"), optional("width")];
const WARP_OP: &[Param] = &[required("value"), required("op"), optional("width")];
const CTA: &[Param] = &[required("value"), required("num_warps"), required("scratch")];
const CTA_OP: &[Param] = &[
    required("value"),
    required("op"),
    required("num_warps"),
    required("scratch"),
];
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

macro_rules! op {
    ($op:ident, $($name:literal),*) => {
        |_, c| fixed(c, Op::$op, &[$($name),*])
    };
}

pub(super) static FUNCTIONS: &[Function] = &[
    function("T.cuda.cta_sync", &[], op!(CudaCtaSync,)),
    function("T.cuda.warp_sync", &[], op!(CudaWarpSync,)),
    function(
        "T.cuda.warpgroup_sync",
        const { &[required("bar_no")] },
        op!(CudaWarpgroupSync, "bar_no"),
    ),
    function("T.cuda.cluster_sync", &[], op!(CudaClusterSync,)),
    function("T.cuda.grid_sync", &[], op!(CudaGridSync,)),
    function("T.cuda.thread_fence", &[], op!(CudaThreadFence,)),
    function("T.cuda.syncthreads_and", COND, op!(CudaSyncthreadsAnd, "cond")),
    function("T.cuda.syncthreads_or", COND, op!(CudaSyncthreadsOr, "cond")),
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
    function(
        "T.cuda.ballot_sync",
        MASK_PRED,
        op!(CudaBallotSync, "mask", "pred"),
    ),
    function(
        "T.cuda.__shfl_sync",
        SHFL,
        op!(CudaShflSync, "mask", "var", "lane", "width"),
    ),
    function(
        "T.cuda.__shfl_up_sync",
        SHFL_BY,
        op!(CudaShflUpSync, "mask", "var", "delta", "width"),
    ),
    function(
        "T.cuda.__shfl_down_sync",
        SHFL_BY,
        op!(CudaShflDownSync, "mask", "var", "delta", "width"),
    ),
    function(
        "T.cuda.__shfl_xor_sync",
        SHFL_XOR,
        op!(CudaShflXorSync, "mask", "var", "lane_mask", "width"),
    ),
    function("T.cuda.__activemask", &[], op!(CudaActivemask,)),
    function(
        "T.cuda.reduce_add_sync_u32",
        MASK_VALUE,
        op!(CudaReduceAddSyncU32, "mask", "value"),
    ),
    function(
        "T.cuda.reduce_min_sync_u32",
        MASK_VALUE,
        op!(CudaReduceMinSyncU32, "mask", "value"),
    ),
    function(
        "T.cuda.ffs_u32",
        const { &[required("value")] },
        op!(CudaFfsU32, "value"),
    ),
    function("T.cuda.ldg", LDG, ldg),
    function(
        "T.cuda.fdividef",
        const { &[required("x"), required("y")] },
        op!(CudaFdividef, "x", "y"),
    ),
    function(
        "T.cuda.float_as_uint",
        const { &[required("x")] },
        op!(CudaFloatAsUint, "x"),
    ),
    function(
        "T.cuda.uint_as_float",
        const { &[required("bits")] },
        op!(CudaUintAsFloat, "bits"),
    ),
    function(
        "T.cuda.half2float",
        const { &[required("src")] },
        op!(CudaHalf2float, "src"),
    ),
    function(
        "T.cuda.bfloat162float",
        const { &[required("src")] },
        op!(CudaBfloat162float, "src"),
    ),
    function("T.cuda.clock64", &[], op!(CudaClock64,)),
    function(
        "T.cuda.nano_sleep",
        const { &[required("time")] },
        op!(CudaNanoSleep, "time"),
    ),
    function("T.cuda.thread_rank", &[], op!(CudaThreadRank,)),
    function(
        "T.cuda.trap_when_assert_failed",
        COND,
        op!(CudaTrapWhenAssertFailed, "cond"),
    ),
    variadic("T.cuda.printf", const { &[required("fmt")] }, printf),
    variadic("T.cuda.func_call", FUNC, func_call),
    function("T.cuda.warp_reduce", WARP_OP, |_, c| {
        let op = c.text("op")?;
        warp_reduce(c, &op)
    }),
    function("T.cuda.warp_sum", WARP, |_, c| warp_reduce(c, "sum")),
    function("T.cuda.warp_max", WARP, |_, c| warp_reduce(c, "max")),
    function("T.cuda.warp_min", WARP, |_, c| warp_reduce(c, "min")),
    function("T.cuda.cta_reduce", CTA_OP, |_, c| {
        let op = c.text("op")?;
        cta_reduce(c, &op)
    }),
    function("T.cuda.cta_sum", CTA, |_, c| cta_reduce(c, "sum")),
    function("T.cuda.cta_max", CTA, |_, c| cta_reduce(c, "max")),
    function("T.cuda.cta_min", CTA, |_, c| cta_reduce(c, "min")),
];

/// A call with these arguments in the table's order; the dtype follows the table's rule.
fn fixed(call: &mut Call, op: Op, names: &[&str]) -> Result<Value> {
    let args = names
        .iter()
        .map(|name| call.argument(name))
        .collect::<Result<Vec<_>>>()?;
    let dtype = op.info().result.dtype(&args).unwrap_or(DType::VOID);
    Ok(Value::Expr(Expr::call(op, dtype, args).at(call.span)))
}

/// The address of an atomic operation and the dtype behind it, where it is known.
fn address(call: &Call, name: &str) -> Result<(Expr, Option<DType>)> {
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

/// A value for a place of dtype `element`: literals take it, other dtypes are refused.
fn operand_for(call: &Call, name: &str, element: Option<DType>) -> Result<Expr> {
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

fn atomic_add(_interp: &mut Interpreter, call: &mut Call) -> Result<Value> {
    let (pointer, element) = address(call, "res_addr")?;
    let value = operand_for(call, "value", element)?;
    let dtype = value.dtype;
    Ok(Value::Expr(
        Expr::call(Op::CudaAtomicAdd, dtype, vec![pointer, value]).at(call.span),
    ))
}

fn atomic_cas(_interp: &mut Interpreter, call: &mut Call) -> Result<Value> {
    let (pointer, element) = address(call, "ptr")?;
    let old = operand_for(call, "old_val", element)?;
    let new = operand_for(call, "new_val", element.or(Some(old.dtype)))?;
    let dtype = old.dtype;
    Ok(Value::Expr(
        Expr::call(Op::CudaAtomicCas, dtype, vec![pointer, old, new]).at(call.span),
    ))
}

fn ldg(_interp: &mut Interpreter, call: &mut Call) -> Result<Value> {
    let vec = call.text_or("vec", "")?;
    if call.get("dst").is_some() || !vec.is_empty() {
        return ldg_vector(call, &vec);
    }
    let (pointer, dtype) = (call.argument("addr")?, call.dtype("dtype")?);
    Ok(Value::Expr(
        Expr::call(Op::CudaLdg, dtype, vec![pointer]).at(call.span),
    ))
}

/// Two or four elements at once, to the variables that `dst` points to: the load of memory that does not change.
fn ldg_vector(call: &Call, vec: &str) -> Result<Value> {
    let dtype = call.dtype("dtype")?;
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
                "vec must be \"v2\" or \"v4\" where there is dst=, found \"{other}\""
            ));
        }
    };
    let mut args = Vec::new();
    for item in call.items("dst", "a list of pointers")? {
        args.push(convert::argument(&item, call.span, call.function)?);
    }
    if args.len() != count {
        return call.fail(format!(
            "dst must be {count} pointers for vec=\"{vec}\", found {}",
            args.len()
        ));
    }
    let text = |text: &str| Expr::string(text).at(call.span);
    args.extend([
        call.argument("addr")?,
        Expr::constant(DType::UINT64, 0),
        text(&dtype.to_string()),
        text(""),
        text(vec),
        text(ptx),
        Expr::int32(0),
        Expr::int32(count as i32),
        text(""),
        text(""),
        text(""),
    ]);
    Ok(Value::Expr(
        Expr::call(Op::PtxLdGlobalNc, DType::VOID, args).at(call.span),
    ))
}

fn printf(_interp: &mut Interpreter, call: &mut Call) -> Result<Value> {
    let mut args = vec![Expr::string(call.text("fmt")?).at(call.span)];
    args.extend(call.rest_args()?);
    Ok(Value::Expr(
        Expr::call(Op::CudaPrintf, DType::VOID, args).at(call.span),
    ))
}

fn func_call(_interp: &mut Interpreter, call: &mut Call) -> Result<Value> {
    let name = call.text("func_name")?;
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

fn reduction(call: &Call, op: &str) -> Result<Expr> {
    if !["sum", "max", "min"].contains(&op) {
        return call.fail(format!(
            "the operation must be \"sum\", \"max\" or \"min\", found \"{op}\""
        ));
    }
    Ok(Expr::string(op).at(call.span))
}

/// A value that CUDA adds and compares.
fn reduced(call: &mut Call) -> Result<Expr> {
    let value = call.expr("value")?;
    if value.dtype.is_small_float() {
        return call.fail_with(
            format!("{} cannot be reduced: CUDA does not compute with it", value.dtype),
            "reduce it as float32: T.cast(value, \"float32\")",
        );
    }
    Ok(value)
}

fn warp_reduce(call: &mut Call, op: &str) -> Result<Value> {
    let value = reduced(call)?;
    let width = call.int_or("width", 32)?;
    if ![2, 4, 8, 16, 32].contains(&width) {
        return call.fail(format!("width must be 2, 4, 8, 16 or 32, found {width}"));
    }
    let dtype = value.dtype;
    let args = vec![
        value,
        reduction(call, op)?,
        Expr::int32(width as i32).at(call.span),
    ];
    Ok(Value::Expr(
        Expr::call(Op::CudaWarpReduce, dtype, args).at(call.span),
    ))
}

fn cta_reduce(call: &mut Call, op: &str) -> Result<Value> {
    let value = reduced(call)?;
    let warps = call.int("num_warps")?;
    if !(1..=32).contains(&warps) {
        return call.fail(format!("num_warps must be from 1 to 32, found {warps}"));
    }
    let scratch = call.argument("scratch")?;
    if !scratch.dtype.is_handle() || scratch.as_str().is_some() {
        return call.expected(
            "scratch",
            "a pointer to shared memory, such as scratch.ptr_to([0])",
        );
    }
    let dtype = value.dtype;
    let args = vec![
        value,
        reduction(call, op)?,
        Expr::int32(warps as i32).at(call.span),
        scratch,
    ];
    Ok(Value::Expr(
        Expr::call(Op::CudaCtaReduce, dtype, args).at(call.span),
    ))
}
