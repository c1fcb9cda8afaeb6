//! Logic, shifts, bit fields, and moves between registers of different widths.

use tirx_ir::intrin::Op;
use tirx_ir::intrin::mnemonic::InstructionCall;
use tirx_ir::{BinOp, DType, Expr};

use super::{Written, and, as_dtype, binary, left, natural, one, operand, or, right, word};

/// `and`, `or`, `xor`: of predicates, or of each bit.
pub(super) fn logic(
    call: &InstructionCall,
    of_predicates: BinOp,
    of_bits: fn(Expr, Expr) -> Expr,
) -> Option<Written> {
    one(match call.tokens.get("type") {
        "pred" => binary(of_predicates, call.get("a")?.clone(), call.get("b")?.clone()),
        _ => of_bits(operand(call, "a")?, operand(call, "b")?),
    })
}

pub(super) fn not(call: &InstructionCall) -> Option<Written> {
    if call.tokens.get("type") == "pred" {
        return one(Expr::logical_not(call.get("a")?.clone()));
    }
    let a = operand(call, "a")?;
    one(Expr::call(Op::BitwiseNot, a.dtype, vec![a]))
}

/// Whether no bit is set, as 1 or 0.
pub(super) fn is_zero(call: &InstructionCall) -> Option<Written> {
    let a = operand(call, "a")?;
    let zero = Expr::constant(a.dtype, 0);
    let (dtype, is_zero) = (a.dtype, binary(BinOp::Eq, a, zero.clone()));
    one(Expr::select(is_zero, Expr::constant(dtype, 1), zero))
}

/// Any function of three bits; with the predicate `q` also whether the result is not zero.
pub(super) fn lop3(call: &InstructionCall) -> Option<Written> {
    let (a, b, c) = (operand(call, "a")?, operand(call, "b")?, operand(call, "c")?);
    let logic = Op::PtxLop3B32.call().set("a", a).set("b", b).set("c", c);
    let value = logic.set("lut", call.get("immLut")?).build();
    let mut written = Vec::new();
    if let Some(q) = call.get("q") {
        let is_set = binary(BinOp::Ne, value.clone(), word(0));
        let op = match call.tokens.get("boolop") {
            "or" => BinOp::Or,
            _ => BinOp::And,
        };
        written.push(("p", vec![binary(op, is_set, q.clone())]));
    }
    written.extend(call.get("d").map(|_| ("d", vec![value])));
    Some(written)
}

pub(super) fn shift_left(call: &InstructionCall) -> Option<Written> {
    let a = operand(call, "a")?;
    let (beyond, most) = clamped(&a, operand(call, "b")?);
    one(Expr::select(beyond, Expr::constant(a.dtype, 0), left(a, most)))
}

pub(super) fn shift_right(call: &InstructionCall) -> Option<Written> {
    let a = operand(call, "a")?;
    let (beyond, most) = clamped(&a, operand(call, "b")?);
    one(match a.dtype.is_int() {
        true => right(a, most),
        false => Expr::select(beyond, Expr::constant(a.dtype, 0), right(a, most)),
    })
}

/// Whether a distance shifts all bits of a value out, and the distance or the farthest one that does not.
fn clamped(a: &Expr, n: Expr) -> (Expr, Expr) {
    let bits = i128::from(a.dtype.bits);
    let beyond = binary(BinOp::Ge, n.clone(), word(bits));
    (beyond.clone(), Expr::select(beyond, word(bits - 1), n))
}

/// Two words as one, moved by up to 32 bits.
pub(super) fn funnel(call: &InstructionCall) -> Option<Written> {
    let all = both(operand(call, "a")?, operand(call, "b")?);
    let n = operand(call, "c")?;
    let n = match call.tokens.get("mode") {
        "wrap" => and(n, word(31)),
        _ => binary(BinOp::Min, n, word(32)),
    };
    let moved = match call.tokens.get("dir") {
        "l" => right(left(all, n), word(32)),
        _ => right(all, n),
    };
    one(moved.cast(DType::UINT32))
}

/// Bytes of two words: each by its selector in `c`, or all by a mode.
pub(super) fn permute(call: &InstructionCall) -> Option<Written> {
    if !call.tokens.get("mode").is_empty() {
        return permute_by(call);
    }
    let all = both(operand(call, "a")?, operand(call, "b")?);
    let c = operand(call, "c")?;
    let bytes = (0..4).map(|i| {
        let selector = and(right(c.clone(), word(4 * i)), word(15));
        let at = left(and(selector.clone(), word(7)), word(3));
        let byte = and(right(all.clone(), at).cast(DType::UINT32), word(255));
        let negative = binary(BinOp::Ge, byte.clone(), word(128));
        let sign = Expr::select(negative, word(255), word(0));
        let replicated = binary(BinOp::Ge, selector, word(8));
        left(Expr::select(replicated, sign, byte), word(8 * i))
    });
    one(bytes.reduce(or)?)
}

/// The byte that each byte of the result is, by the two lower bits of `c`.
fn permute_by(call: &InstructionCall) -> Option<Written> {
    let all = both(operand(call, "a")?, operand(call, "b")?);
    let s = and(operand(call, "c")?, word(3));
    let mode = call.tokens.get("mode");
    let bytes = (0..4).map(|i| {
        let at = match mode {
            "f4e" => binary(BinOp::Add, s.clone(), word(i)),
            "b4e" => and(
                binary(BinOp::Sub, binary(BinOp::Add, s.clone(), word(8)), word(i)),
                word(7),
            ),
            "rc8" => s.clone(),
            "ecl" => binary(BinOp::Max, s.clone(), word(i)),
            "ecr" => binary(BinOp::Min, s.clone(), word(i)),
            "rc16" => or(word(i % 2), left(and(s.clone(), word(1)), word(1))),
            _ => return None,
        };
        let byte = right(all.clone(), left(at, word(3))).cast(DType::UINT32);
        Some(left(and(byte, word(255)), word(8 * i)))
    });
    let bytes: Option<Vec<Expr>> = bytes.collect();
    one(bytes?.into_iter().reduce(or)?)
}

pub(super) fn count_ones(call: &InstructionCall) -> Option<Written> {
    let a = operand(call, "a")?;
    one(Expr::call(Op::Popcount, a.dtype, vec![a]).cast(DType::UINT32))
}

pub(super) fn leading_zeros(call: &InstructionCall) -> Option<Written> {
    let a = operand(call, "a")?;
    let bits = i128::from(a.dtype.bits);
    let is_zero = binary(BinOp::Eq, a.clone(), Expr::constant(a.dtype, 0));
    one(Expr::select(is_zero, word(bits), zeros_above(a)))
}

/// The zeros above the highest bit of a value that is not zero.
fn zeros_above(a: Expr) -> Expr {
    let dtype = if a.dtype.bits == 64 {
        DType::INT64
    } else {
        DType::INT32
    };
    Expr::call(Op::Clz, DType::INT32, vec![as_dtype(a, dtype)]).cast(DType::UINT32)
}

/// `bfind`: the highest bit that is set, or its distance from the top.
pub(super) fn highest_set(call: &InstructionCall) -> Option<Written> {
    let a = operand(call, "a")?;
    let bits = i128::from(a.dtype.bits);
    // Of a negative number the highest bit that differs from the sign.
    let a = match a.dtype.is_int() {
        true => {
            let negative = binary(BinOp::Lt, a.clone(), Expr::constant(a.dtype, 0));
            let flipped = Expr::call(Op::BitwiseNot, a.dtype, vec![a.clone()]);
            Expr::select(negative, flipped, a)
        }
        false => a,
    };
    let is_zero = binary(BinOp::Eq, a.clone(), Expr::constant(a.dtype, 0));
    let zeros = zeros_above(a);
    let found = match call.tokens.has("shiftamt") {
        true => zeros,
        false => binary(BinOp::Sub, word(bits - 1), zeros),
    };
    one(Expr::select(is_zero, word(u32::MAX.into()), found))
}

pub(super) fn reversed(call: &InstructionCall) -> Option<Written> {
    let a = operand(call, "a")?;
    let bits = a.dtype.bits;
    let mut e = a;
    let mut step = bits / 2;
    while step > 0 {
        let mask = (0..u32::from(bits)).filter(|i| i / u32::from(step) % 2 == 0);
        let mask = Expr::constant(e.dtype, mask.fold(0, |m, i| m | 1i128 << i));
        let n = word(step.into());
        let low = left(and(e.clone(), mask.clone()), n.clone());
        e = or(and(right(e, n), mask), low);
        step /= 2;
    }
    one(e)
}

/// `bfe`: a field of bits.
pub(super) fn field(call: &InstructionCall) -> Option<Written> {
    let (a, start, len) = (
        operand(call, "a")?,
        and(operand(call, "b")?, word(255)),
        and(operand(call, "c")?, word(255)),
    );
    let bits = i128::from(a.dtype.bits);
    let is_none = binary(BinOp::Eq, len.clone(), word(0));
    let zero = Expr::constant(a.dtype, 0);
    let beyond = binary(BinOp::Ge, start.clone(), word(bits));
    // Bits beyond the highest are zeros, or the sign.
    let moved = right(a.clone(), binary(BinOp::Min, start, word(bits - 1)));
    let moved = match a.dtype.is_int() {
        true => moved,
        false => Expr::select(beyond, zero.clone(), moved),
    };
    let unused = binary(BinOp::Sub, word(bits), binary(BinOp::Min, len, word(bits)));
    // No bits: shifted by one bit less, and dropped.
    let unused = binary(BinOp::Min, unused, word(bits - 1));
    one(Expr::select(
        is_none,
        zero,
        right(left(moved, unused.clone()), unused),
    ))
}

/// `bfi`: a field of `b` replaced by `a`.
pub(super) fn insert(call: &InstructionCall) -> Option<Written> {
    if call.tokens.get("type") == "b32" {
        return insert_in_word(call);
    }
    let (a, b) = (operand(call, "a")?, operand(call, "b")?);
    let (start, len) = (
        and(operand(call, "c")?, word(255)),
        and(operand(call, "d")?, word(255)),
    );
    let ones = Expr::constant(DType::UINT64, u64::MAX.into());
    let is_all = binary(BinOp::Ge, len.clone(), word(64));
    let few = left(
        Expr::constant(DType::UINT64, 1),
        binary(BinOp::Min, len, word(63)),
    );
    let few = binary(BinOp::Sub, few, Expr::constant(DType::UINT64, 1));
    let beyond = binary(BinOp::Ge, start.clone(), word(64));
    let start = binary(BinOp::Min, start, word(63));
    let mask = left(Expr::select(is_all, ones, few), start.clone());
    let mask = Expr::select(beyond, Expr::constant(DType::UINT64, 0), mask);
    let rest = and(b, Expr::call(Op::BitwiseNot, DType::UINT64, vec![mask.clone()]));
    Some(vec![("f", vec![or(and(left(a, start), mask), rest)])])
}

fn insert_in_word(call: &InstructionCall) -> Option<Written> {
    let (a, b, start, len) = (
        operand(call, "a")?,
        operand(call, "b")?,
        operand(call, "c")?,
        operand(call, "d")?,
    );
    let start = binary(BinOp::Min, and(start, word(255)), word(32));
    let len = binary(BinOp::Min, and(len, word(255)), word(32));
    let ones = binary(
        BinOp::Sub,
        left(Expr::constant(DType::UINT64, 1), len),
        Expr::constant(DType::UINT64, 1),
    );
    let mask = left(ones, start.clone());
    let field = and(left(a.cast(DType::UINT64), start), mask.clone());
    let rest = and(
        b.cast(DType::UINT64),
        Expr::call(Op::BitwiseNot, DType::UINT64, vec![mask]),
    );
    Some(vec![("f", vec![or(field, rest).cast(DType::UINT32)])])
}

/// No cache of the simulator has a policy.
pub(super) fn policy(_: &InstructionCall) -> Option<Written> {
    Some(vec![("cache_policy", vec![Expr::constant(DType::UINT64, 0)])])
}

/// `b` above `a`.
fn both(a: Expr, b: Expr) -> Expr {
    let high = left(b.cast(DType::UINT64), Expr::constant(DType::UINT32, 32));
    or(high, a.cast(DType::UINT64))
}

/// A move, or one that packs or unpacks registers.
pub(super) fn moved(call: &InstructionCall) -> Option<Written> {
    // A line that packs or unpacks has one type.
    let ty = match call.tokens.get("type") {
        "" if call.tokens.has("b32") => "b32",
        "" => "b64",
        ty => ty,
    };
    let (sources, targets) = (call.list("a"), call.list("d"));
    if let ([_], [_]) = (sources, targets) {
        return one(match natural(ty) {
            Some(dtype) => as_dtype(sources[0].clone(), dtype),
            None => sources[0].clone(),
        });
    }
    let count = sources.len().max(targets.len());
    let bits = if ty == "b32" { 32 } else { 64 } / u8::try_from(count).ok()?;
    let (part, all) = (DType::uint(bits), DType::uint(if ty == "b32" { 32 } else { 64 }));
    let shift = |i: usize| Expr::constant(DType::UINT32, i128::from(bits) * i as i128);
    if sources.len() > 1 {
        let parts = sources.iter().enumerate();
        let parts = parts.map(|(i, e)| left(as_dtype(e.clone(), part).cast(all), shift(i)));
        return one(parts.reduce(or)?);
    }
    let source = as_dtype(sources.first()?.clone(), all);
    let parts = (0..count).map(|i| right(source.clone(), shift(i)).cast(part));
    Some(vec![("d", parts.collect())])
}
