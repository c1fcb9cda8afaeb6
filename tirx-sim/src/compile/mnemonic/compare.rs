//! Comparisons and selections.

use tirx_ir::intrin::Op;
use tirx_ir::intrin::mnemonic::InstructionCall;
use tirx_ir::{BinOp, DType, Expr};

use super::{Written, binary, constant, natural, one, operand};

pub(super) fn values(call: &InstructionCall) -> Option<Written> {
    let tokens = &call.tokens;
    match tokens.instruction.family {
        "selp" => {
            let choice = Expr::select(call.get("c")?.clone(), operand(call, "a")?, operand(call, "b")?);
            one(choice)
        }
        "slct" => {
            let c = operand(call, "c")?;
            let positive = binary(BinOp::Ge, c.clone(), constant(c.dtype, 0));
            one(Expr::select(positive, operand(call, "a")?, operand(call, "b")?))
        }
        "setp" => {
            let holds = compared(call)?;
            if holds.dtype.lanes > 1 {
                return None;
            }
            let combine = |e: Expr| combined(call, e);
            let mut written = vec![("p", vec![combine(holds.clone())?])];
            if call.get("q").is_some() {
                written.push(("q", vec![combine(Expr::logical_not(holds))?]));
            }
            Some(written)
        }
        "set" => {
            let dtype = natural(tokens.get("dtype"))?;
            let holds = compared(call)?;
            if holds.dtype.lanes > 1 {
                return None;
            }
            let yes = match dtype.is_float() || dtype.is_bfloat16() {
                true => constant(dtype, 1),
                false => Expr::constant(dtype, if dtype.is_uint() { dtype.max_int()? } else { -1 }),
            };
            one(Expr::select(combined(call, holds)?, yes, constant(dtype, 0)))
        }
        "testp" => {
            let a = operand(call, "a")?;
            let test = |op: Op| Expr::call(op, DType::BOOL, vec![a.clone()]);
            let holds = match tokens.get("op") {
                "finite" => test(Op::Isfinite),
                "infinite" => test(Op::Isinf),
                "number" => Expr::logical_not(test(Op::Isnan)),
                "notanumber" => test(Op::Isnan),
                _ => return None,
            };
            Some(vec![("p", vec![holds])])
        }
        _ => None,
    }
}

/// With the predicate `c`, as the operation says.
fn combined(call: &InstructionCall, holds: Expr) -> Option<Expr> {
    let Some(c) = call.get("c") else {
        return Some(holds);
    };
    Some(match call.tokens.get("bool") {
        "and" => binary(BinOp::And, holds, c.clone()),
        "or" => binary(BinOp::Or, holds, c.clone()),
        _ => binary(BinOp::Ne, holds, c.clone()),
    })
}

/// The comparison of `a` and `b`.
fn compared(call: &InstructionCall) -> Option<Expr> {
    let (a, b) = (operand(call, "a")?, operand(call, "b")?);
    let name = call.tokens.get("cmp");
    let float = a.dtype.is_float() || a.dtype.is_bfloat16();
    let is_nan = |e: &Expr| Expr::call(Op::Isnan, DType::BOOL.with_lanes(e.dtype.lanes), vec![e.clone()]);
    let nan = || binary(BinOp::Or, is_nan(&a), is_nan(&b));
    let op = match name.trim_end_matches('u') {
        "eq" => BinOp::Eq,
        "ne" => BinOp::Ne,
        "lt" | "lo" => BinOp::Lt,
        "le" | "ls" => BinOp::Le,
        "gt" | "hi" => BinOp::Gt,
        "ge" | "hs" => BinOp::Ge,
        "n" if name == "nu" => return None,
        _ if name == "nan" => return Some(nan()),
        _ if name == "num" => return Some(Expr::logical_not(nan())),
        _ => return None,
    };
    let holds = binary(op, a.clone(), b.clone());
    Some(match (float, name.ends_with('u')) {
        (true, true) => binary(BinOp::Or, holds, nan()),
        (true, false) if name == "ne" => binary(BinOp::And, holds, Expr::logical_not(nan())),
        _ => holds,
    })
}
