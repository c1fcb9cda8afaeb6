//! Arithmetic of the parts of words: packed 16-bit integers, dot products of bytes, 24-bit products, masks of bits.

use tirx_ir::intrin::mnemonic::InstructionCall;
use tirx_ir::{BinOp, DType, Expr};

use super::{Written, and, binary, left, natural, one, operand, or, right};

pub(super) fn values(call: &InstructionCall) -> Option<Written> {
    let tokens = &call.tokens;
    let word = |n: i128| Expr::constant(DType::UINT32, n);
    let bits = |name: &str| Some(call.get(name)?.clone().cast(DType::UINT32));
    match tokens.instruction.family {
        "add" | "min" | "max" if matches!(tokens.get("type"), "s16x2" | "u16x2") => {
            let op = match tokens.instruction.family {
                "add" => BinOp::Add,
                "min" => BinOp::Min,
                _ => BinOp::Max,
            };
            let signed = tokens.get("type") == "s16x2";
            let (a, b) = (bits("a")?, bits("b")?);
            let half = |n: usize| {
                let x = part(&a, n, 16, signed);
                let value = binary(op, x, part(&b, n, 16, signed));
                let zero = Expr::constant(value.dtype, 0);
                let value = match tokens.has("relu") {
                    true => binary(BinOp::Max, value, zero),
                    false => value,
                };
                and(value.cast(DType::UINT32), word(0xffff))
            };
            one(or(half(0), left(half(1), word(16))))
        }
        "dp4a" | "dp2a" => {
            let is_signed = |name: &str| {
                let operand = call.operands.iter().find(|(o, _)| o.name == name);
                operand.is_some_and(|(o, _)| tokens.type_of(o.ty).starts_with('s'))
            };
            let (a_signed, b_signed) = (is_signed("a"), is_signed("b"));
            let (a, b, c) = (bits("a")?, bits("b")?, operand(call, "c")?);
            let dtype = c.dtype;
            let (count, size) = match tokens.instruction.family {
                "dp4a" => (4, 8),
                _ => (2, 16),
            };
            // The bytes of `b` that go with the two halves of `a`.
            let first = if tokens.get("mode") == "hi" { 2 } else { 0 };
            let products = (0..count).map(|n| {
                let a = part(&a, n, size, a_signed).cast(dtype);
                binary(BinOp::Mul, a, part(&b, first + n, 8, b_signed).cast(dtype))
            });
            one(products.fold(c, |sum, product| binary(BinOp::Add, sum, product)))
        }
        "mul24" | "mad24" => {
            let dtype = natural(tokens.get("type"))?;
            let wide = if dtype.is_int() {
                DType::INT64
            } else {
                DType::UINT64
            };
            let low = |name: &str| Some(part(&bits(name)?, 0, 24, dtype.is_int()).cast(wide));
            let product = binary(BinOp::Mul, low("a")?, low("b")?);
            let product = match tokens.get("mode") {
                "hi" => right(product, Expr::constant(DType::UINT32, 16)),
                _ => product,
            };
            let product = product.cast(dtype);
            match call.get("c") {
                None => one(product),
                Some(_) if tokens.has("sat") => None,
                Some(_) => one(binary(BinOp::Add, product, operand(call, "c")?)),
            }
        }
        "bmsk" => {
            let (a, b) = (bits("a")?, bits("b")?);
            let clamp = |e: Expr| match tokens.get("mode") {
                "wrap" => and(e, word(31)),
                _ => binary(BinOp::Min, e, word(32)),
            };
            let (from, count) = (clamp(a).cast(DType::UINT64), clamp(b).cast(DType::UINT64));
            let one_bit = Expr::constant(DType::UINT64, 1);
            let ones = binary(BinOp::Sub, left(one_bit.clone(), count), one_bit);
            one(left(ones, from).cast(DType::UINT32))
        }
        _ => None,
    }
}

/// Bits of a word as an integer: the `n`th group of `size`.
fn part(word: &Expr, n: usize, size: i128, signed: bool) -> Expr {
    let shift = |count: i128| Expr::constant(DType::UINT32, count);
    let top = left(word.clone(), shift(32 - size - n as i128 * size));
    match signed {
        true => right(top.cast(DType::INT32), shift(32 - size)),
        false => right(top, shift(32 - size)),
    }
}
