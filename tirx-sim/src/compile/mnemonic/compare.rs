//! Comparisons and selections.

use tirx_ir::intrin::Op;
use tirx_ir::intrin::mnemonic::InstructionCall;
use tirx_ir::{BinOp, DType, Expr};

use super::{
    Written, and, as_dtype, binary, constant, flushed, natural, one, operand, or, right, unflushed, word,
};

pub(super) fn choose(call: &InstructionCall) -> Option<Written> {
    let choice = Expr::select(call.get("c")?.clone(), operand(call, "a")?, operand(call, "b")?);
    one(choice)
}

pub(super) fn choose_by_sign(call: &InstructionCall) -> Option<Written> {
    let c = operand(call, "c")?;
    let positive = binary(BinOp::Ge, c.clone(), constant(c.dtype, 0));
    one(Expr::select(
        positive,
        unflushed(call, "a")?,
        unflushed(call, "b")?,
    ))
}

/// `setp`: the comparison, and its opposite.
pub(super) fn compare(call: &InstructionCall) -> Option<Written> {
    if is_packed(call.tokens.get("type")) {
        let [low, high] = compared_halves(call)?;
        return Some(vec![
            ("p", vec![combined(call, low)?]),
            ("q", vec![combined(call, high)?]),
        ]);
    }
    let holds = compared(call)?;
    let mut written = vec![("p", vec![combined(call, holds.clone())?])];
    if call.get("q").is_some() {
        written.push(("q", vec![combined(call, Expr::logical_not(holds))?]));
    }
    Some(written)
}

/// `set`: the comparison as a number.
pub(super) fn compare_as_number(call: &InstructionCall) -> Option<Written> {
    if is_packed(call.tokens.get("stype")) {
        return compare_as_halves(call);
    }
    let dtype = natural(call.tokens.get("dtype"))?;
    let holds = compared(call)?;
    let yes = match dtype.is_float() || dtype.is_bfloat16() {
        true => constant(dtype, 1),
        false => Expr::constant(dtype, if dtype.is_uint() { dtype.max_int()? } else { -1 }),
    };
    one(Expr::select(combined(call, holds)?, yes, constant(dtype, 0)))
}

/// `set` of the halves of words.
fn compare_as_halves(call: &InstructionCall) -> Option<Written> {
    // One of the format, or all bits.
    let yes = match call.tokens.get("dtype") {
        "f16x2" => 0x3c00,
        "bf16x2" => 0x3f80,
        _ => 0xffff,
    };
    let [low, high] = compared_halves(call)?;
    let low = Expr::select(combined(call, low)?, word(yes), word(0));
    let high = Expr::select(combined(call, high)?, word(yes << 16), word(0));
    one(or(low, high))
}

/// `testp`: a property of a float.
pub(super) fn test(call: &InstructionCall) -> Option<Written> {
    let a = operand(call, "a")?;
    let is = |op: Op| Expr::call(op, DType::BOOL, vec![a.clone()]);
    let holds = match call.tokens.get("op") {
        "finite" => is(Op::Isfinite),
        "infinite" => is(Op::Isinf),
        "number" => Expr::logical_not(is(Op::Isnan)),
        "notanumber" => is(Op::Isnan),
        word @ ("normal" | "subnormal") => {
            let (bits, fraction, infinity) = match a.dtype.bits {
                32 => (DType::UINT32, 23, 0xff),
                _ => (DType::UINT64, 52, 0x7ff),
            };
            let number = |n: i128| Expr::constant(bits, n);
            let size = and(
                as_dtype(a.clone(), bits),
                number(((infinity + 1) << fraction) - 1),
            );
            let (low, high) = match word {
                "normal" => (1 << fraction, infinity << fraction),
                _ => (1, 1 << fraction),
            };
            let above = binary(BinOp::Ge, size.clone(), number(low));
            let below = binary(BinOp::Lt, size.clone(), number(high));
            let within = binary(BinOp::And, above, below);
            match word {
                // Zeros count as normal numbers (PTX ISA, "testp").
                "normal" => binary(BinOp::Or, within, binary(BinOp::Eq, size, number(0))),
                _ => within,
            }
        }
        _ => return None,
    };
    Some(vec![("p", vec![holds])])
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

/// Whether a type is of two small floats in a word.
fn is_packed(ty: &str) -> bool {
    matches!(ty, "f16x2" | "bf16x2")
}

/// The comparisons of both halves of `a` and `b`.
fn compared_halves(call: &InstructionCall) -> Option<[Expr; 2]> {
    let tokens = &call.tokens;
    let dtype = match tokens.has("f16x2") && !tokens.has("bf16x2") {
        true => DType::FLOAT16,
        false => DType::BFLOAT16,
    };
    let half = |name: &str, shift: i128| {
        let both = as_dtype(call.get(name)?.clone(), DType::UINT32);
        let bits = and(right(both, word(shift)), word(0xffff)).cast(DType::UINT16);
        let half = as_dtype(bits, dtype);
        Some(if tokens.has("ftz") { flushed(half) } else { half })
    };
    let one = |shift| compared_as(tokens.get("cmp"), half("a", shift)?, half("b", shift)?);
    Some([one(0)?, one(16)?])
}

/// The comparison of `a` and `b`.
fn compared(call: &InstructionCall) -> Option<Expr> {
    compared_as(call.tokens.get("cmp"), operand(call, "a")?, operand(call, "b")?)
}

fn compared_as(name: &str, a: Expr, b: Expr) -> Option<Expr> {
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
