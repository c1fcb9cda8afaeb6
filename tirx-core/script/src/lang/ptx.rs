//! `T.ptx.add_f32x2`, …: packed operands, which may be vectors, with or without a destination.

use super::super::eval::{Param, Value, keyword};
use super::call::{Function, MatchedCall, variadic};
use super::convert;
use crate::diagnostic::Result;
use crate::intrin::Op;
use crate::ir::{DType, Expr};

const PACKED: &[Param] = &[
    keyword("rounding"),
    keyword("ftz"),
    keyword("dps"),
    keyword("return_dtype"),
];

pub(super) static FUNCTIONS: &[Function] = &[
    variadic("T.ptx.add_f32x2", PACKED, |_, c| packed(c, Op::PtxAddF32x2, 2)),
    variadic("T.ptx.sub_f32x2", PACKED, |_, c| packed(c, Op::PtxSubF32x2, 2)),
    variadic("T.ptx.mul_f32x2", PACKED, |_, c| packed(c, Op::PtxMulF32x2, 2)),
    variadic("T.ptx.fma_f32x2", PACKED, |_, c| packed(c, Op::PtxFmaF32x2, 3)),
];

/// 0 or 1, also for `True` and `False`.
fn flag(call: &MatchedCall, name: &str) -> Result<Expr> {
    Ok(Expr::int32(call.flag(name, false)?.into()).at(call.span))
}

fn rounding(call: &MatchedCall, name: &str) -> Result<()> {
    if ["rn", "rz", "rm", "rp"].contains(&name) {
        return Ok(());
    }
    call.fail(format!("the rounding must be rn, rz, rm or rp, found \"{name}\""))
}

/// Two float32 as a uint64: a vector is reinterpreted.
fn bits(call: &MatchedCall, value: &Value) -> Result<Expr> {
    let e = convert::argument(value, call.span, call.function)?;
    match e.dtype {
        DType::UINT64 => Ok(e),
        d if d == DType::FLOAT32.with_lanes(2) => {
            Ok(Expr::call(Op::Reinterpret, DType::UINT64, vec![e]).at(call.span))
        }
        d => call.fail_with(
            format!("an operand must be uint64 or float32x2, found {d}"),
            "pack it: T.cuda.make_float2(x, y)",
        ),
    }
}

fn packed(call: &mut MatchedCall, op: Op, operands: usize) -> Result<Value> {
    // Printed IR has the modifiers by position, beginning with a string.
    let printed = call.rest.iter().position(|(v, _)| matches!(v, Value::Str(_)));
    let count = printed.unwrap_or(call.rest.len());
    let modifiers: Vec<Value> = call.rest[count..].iter().map(|(v, _)| v.clone()).collect();
    let plain = if op == Op::PtxMulF32x2 { "" } else { "rn" };
    let (mode, ftz, stores, dtype) = match &modifiers[..] {
        [] => {
            let stores = !matches!(call.get("dps"), Some((Value::Bool(false) | Value::Int(0), _)));
            let mode = call.text_or("rounding", plain)?;
            (
                mode,
                flag(call, "ftz")?,
                stores,
                call.dtype_or("return_dtype", DType::UINT64)?,
            )
        }
        [Value::Str(mode), ftz, stores, dtype] => {
            let number = |v: &Value| convert::const_int(v).unwrap_or(0);
            let stores = number(stores) != 0;
            let dtype = convert::dtype(dtype, call.span)?.unwrap_or(DType::UINT64);
            let ftz = Expr::int32((number(ftz) != 0).into()).at(call.span);
            (mode.as_ref().into(), ftz, stores, dtype)
        }
        _ => return call.fail("takes its operands, then rounding, ftz, dps and return_dtype"),
    };
    if count != operands + usize::from(stores) {
        let destination = if stores { " after the destination" } else { "" };
        return call.fail(format!(
            "takes {operands} operands{destination}, {count} were given"
        ));
    }
    if !(mode.is_empty() && operands == 2 && op != Op::PtxSubF32x2) {
        rounding(call, &mode)?;
    }
    let mut args = Vec::new();
    for (at, (value, span)) in call.rest[..count].iter().enumerate() {
        args.push(if stores && at == 0 {
            let pointer = convert::argument(value, span.or(call.span), call.function)?;
            if !pointer.dtype.is_handle() {
                return call.fail("the destination must be a pointer such as A.ptr_to([i])");
            }
            pointer
        } else {
            bits(call, value)?
        });
    }
    let (name, result) = if stores {
        ("void", DType::VOID)
    } else {
        ("uint64", DType::UINT64)
    };
    args.extend([
        Expr::string(mode).at(call.span),
        ftz,
        Expr::int32(stores.into()).at(call.span),
        Expr::string(name).at(call.span),
    ]);
    let value = Expr::call(op, result, args).at(call.span);
    if !stores && dtype == DType::FLOAT32.with_lanes(2) {
        return Ok(Value::Expr(
            Expr::call(Op::Reinterpret, dtype, vec![value]).at(call.span),
        ));
    }
    if !stores && dtype != DType::UINT64 {
        return call.fail(format!("return_dtype must be uint64 or float32x2, found {dtype}"));
    }
    Ok(Value::Expr(value))
}
