//! Arithmetic of the parts of words: packed 16-bit integers, dot products of bytes, 24-bit products, masks of bits, numbers of fewer bits.

use tirx_ir::intrin::mnemonic::InstructionCall;
use tirx_ir::{BinOp, DType, Expr};

use super::{Written, and, binary, constant, left, natural, one, operand, or, right, saturated, word};

fn bits(call: &InstructionCall, name: &str) -> Option<Expr> {
    Some(call.get(name)?.clone().cast(DType::UINT32))
}

/// Whether the operands are pairs of 16-bit integers.
pub(super) fn are_pairs(call: &InstructionCall) -> bool {
    matches!(call.tokens.get("type"), "s16x2" | "u16x2")
}

/// A sum, minimum or maximum of pairs of 16-bit integers.
pub(super) fn pairs(call: &InstructionCall, op: BinOp) -> Option<Written> {
    let signed = call.tokens.get("type") == "s16x2";
    let (a, b) = (bits(call, "a")?, bits(call, "b")?);
    let half = |n: usize| {
        let x = part(&a, n, 16, signed);
        let value = binary(op, x, part(&b, n, 16, signed));
        let zero = Expr::constant(value.dtype, 0);
        let value = match call.tokens.has("relu") {
            true => binary(BinOp::Max, value, zero),
            false => value,
        };
        and(value.cast(DType::UINT32), word(0xffff))
    };
    one(or(half(0), left(half(1), word(16))))
}

/// A dot product of `count` parts of `a`, of `size` bits each, with bytes of `b`.
pub(super) fn dot(call: &InstructionCall, count: usize, size: i128) -> Option<Written> {
    let tokens = &call.tokens;
    let is_signed = |name: &str| {
        let operand = call.operands.iter().find(|(o, _)| o.name == name);
        operand.is_some_and(|(o, _)| tokens.type_of(o.ty).starts_with('s'))
    };
    let (a_signed, b_signed) = (is_signed("a"), is_signed("b"));
    let (a, b, c) = (bits(call, "a")?, bits(call, "b")?, operand(call, "c")?);
    let dtype = c.dtype;
    // The bytes of `b` that go with the two halves of `a`.
    let first = if tokens.get("mode") == "hi" { 2 } else { 0 };
    let products = (0..count).map(|n| {
        let a = part(&a, n, size, a_signed).cast(dtype);
        binary(BinOp::Mul, a, part(&b, first + n, 8, b_signed).cast(dtype))
    });
    one(products.fold(c, |sum, product| binary(BinOp::Add, sum, product)))
}

/// `mul24`, `mad24`.
pub(super) fn product_24(call: &InstructionCall) -> Option<Written> {
    let tokens = &call.tokens;
    // The line that saturates has one mode.
    let high = tokens.get("mode") == "hi" || tokens.has("sat");
    let dtype = natural(tokens.get("type"))?;
    let wide = match dtype.is_int() {
        true => DType::INT64,
        false => DType::UINT64,
    };
    let low = |name: &str| Some(part(&bits(call, name)?, 0, 24, dtype.is_int()).cast(wide));
    let product = binary(BinOp::Mul, low("a")?, low("b")?);
    let product = match high {
        true => right(product, word(16)),
        false => product,
    };
    let product = product.cast(dtype);
    one(match operand(call, "c") {
        None => product,
        Some(c) if tokens.has("sat") => saturated(BinOp::Add, product, c)?,
        Some(c) => binary(BinOp::Add, product, c),
    })
}

/// `bmsk`: ones from bit `a` on.
pub(super) fn mask(call: &InstructionCall) -> Option<Written> {
    let clamp = |e: Expr| match call.tokens.get("mode") {
        "wrap" => and(e, word(31)),
        _ => binary(BinOp::Min, e, word(32)),
    };
    let from = clamp(bits(call, "a")?).cast(DType::UINT64);
    one(left(ones(clamp(bits(call, "b")?)), from).cast(DType::UINT32))
}

/// `szext`: the lower `b` bits of `a` as a number (PTX ISA, "szext").
pub(super) fn extended(call: &InstructionCall) -> Option<Written> {
    let (a, b) = (operand(call, "a")?, operand(call, "b")?);
    let wide = match a.dtype.is_int() {
        true => DType::INT64,
        false => DType::UINT64,
    };
    let beyond = binary(BinOp::Ge, b.clone(), word(32));
    let unused = binary(BinOp::Sub, word(64), and(b, word(31)));
    let few = binary(BinOp::Min, unused.clone(), word(63));
    let field = right(left(a.clone().cast(wide), few.clone()), few).cast(a.dtype);
    let field = Expr::select(binary(BinOp::Eq, unused, word(64)), constant(a.dtype, 0), field);
    one(match call.tokens.get("mode") {
        "clamp" => Expr::select(beyond, a, field),
        _ => field,
    })
}

/// As many ones as a number says, up to 32.
fn ones(count: Expr) -> Expr {
    let one_bit = Expr::constant(DType::UINT64, 1);
    binary(BinOp::Sub, left(one_bit.clone(), count), one_bit)
}

/// Bits of a word as an integer: the `n`th group of `size`.
fn part(from: &Expr, n: usize, size: i128, signed: bool) -> Expr {
    let top = left(from.clone(), word(32 - size - n as i128 * size));
    match signed {
        true => right(top.cast(DType::INT32), word(32 - size)),
        false => right(top, word(32 - size)),
    }
}
