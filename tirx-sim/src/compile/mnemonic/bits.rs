//! Logic, shifts, bit fields, and moves between registers of different widths.

use tirx_ir::intrin::Op;
use tirx_ir::intrin::mnemonic::InstructionCall;
use tirx_ir::{BinOp, DType, Expr};

use super::{Written, and, as_dtype, binary, left, natural, one, operand, or, right, xor};

pub(super) fn values(call: &InstructionCall) -> Option<Written> {
    let tokens = &call.tokens;
    let ty = match tokens.get("type") {
        "" if tokens.has("b32") => "b32",
        "" if tokens.has("b64") => "b64",
        ty => ty,
    };
    let get = |name: &str| operand(call, name);
    let word = |n: i128| Expr::constant(DType::UINT32, n);
    match tokens.instruction.family {
        "and" | "or" | "xor" if ty == "pred" => {
            let (a, b) = (call.get("a")?.clone(), call.get("b")?.clone());
            one(match tokens.instruction.family {
                "and" => binary(BinOp::And, a, b),
                "or" => binary(BinOp::Or, a, b),
                _ => binary(BinOp::Ne, a, b),
            })
        }
        "and" => one(and(get("a")?, get("b")?)),
        "or" => one(or(get("a")?, get("b")?)),
        "xor" => one(xor(get("a")?, get("b")?)),
        "not" if ty == "pred" => one(Expr::logical_not(call.get("a")?.clone())),
        "not" => {
            let a = get("a")?;
            one(Expr::call(Op::BitwiseNot, a.dtype, vec![a]))
        }
        "cnot" => {
            let a = get("a")?;
            let zero = Expr::constant(a.dtype, 0);
            let (dtype, is_zero) = (a.dtype, binary(BinOp::Eq, a, zero.clone()));
            one(Expr::select(is_zero, Expr::constant(dtype, 1), zero))
        }
        "lop3" if call.get("p").is_none() => {
            let (a, b, c) = (get("a")?, get("b")?, get("c")?);
            one(logic_of_three(a, b, c, call.get("immLut")?))
        }
        // Whether the result is not zero, with the predicate `q`.
        "lop3" => {
            let (a, b, c) = (get("a")?, get("b")?, get("c")?);
            let value = logic_of_three(a, b, c, call.get("immLut")?);
            let is_set = binary(BinOp::Ne, value.clone(), word(0));
            let op = if tokens.get("boolop") == "or" {
                BinOp::Or
            } else {
                BinOp::And
            };
            let mut written = vec![("p", vec![binary(op, is_set, call.get("q")?.clone())])];
            written.extend(call.get("d").map(|_| ("d", vec![value])));
            Some(written)
        }
        "fns" => {
            let nth = Op::PtxFnsB32.call().set("mask", get("mask")?);
            let nth = nth.set("base", get("base")?).set("offset", call.get("offset")?);
            one(nth.build())
        }
        "shl" | "shr" => {
            let (a, n) = (get("a")?, get("b")?);
            let bits = i128::from(a.dtype.bits);
            let beyond = binary(BinOp::Ge, n.clone(), word(bits));
            let most = Expr::select(beyond.clone(), word(bits - 1), n);
            if tokens.instruction.family == "shr" && a.dtype.is_int() {
                return one(right(a, most));
            }
            let zero = Expr::constant(a.dtype, 0);
            let shifted = match tokens.instruction.family {
                "shl" => left(a, most),
                _ => right(a, most),
            };
            one(Expr::select(beyond, zero, shifted))
        }
        // Two words as one, moved by up to 32 bits.
        "shf" => {
            let all = both(get("a")?, get("b")?);
            let n = get("c")?;
            let n = match tokens.get("mode") {
                "wrap" => and(n, word(31)),
                _ => binary(BinOp::Min, n, word(32)),
            };
            let moved = match tokens.get("dir") {
                "l" => right(left(all, n), word(32)),
                _ => right(all, n),
            };
            one(moved.cast(DType::UINT32))
        }
        "prmt" if tokens.get("mode").is_empty() => {
            let all = both(get("a")?, get("b")?);
            let c = get("c")?;
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
        // The byte that each byte of the result is, by the two lower bits of `c`.
        "prmt" => {
            let all = both(get("a")?, get("b")?);
            let s = and(get("c")?, word(3));
            let mode = tokens.get("mode");
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
        "popc" | "clz" => {
            let op = if tokens.instruction.family == "popc" {
                Op::Popcount
            } else {
                Op::Clz
            };
            let a = get("a")?;
            let dtype = if op == Op::Popcount { a.dtype } else { DType::INT32 };
            let (bits, zero) = (i128::from(a.dtype.bits), Expr::constant(a.dtype, 0));
            let is_zero = binary(BinOp::Eq, a.clone(), zero);
            let signed = match op {
                Op::Clz => as_dtype(a, if bits == 64 { DType::INT64 } else { DType::INT32 }),
                _ => a,
            };
            let count = Expr::call(op, dtype, vec![signed]).cast(DType::UINT32);
            one(match op {
                Op::Clz => Expr::select(is_zero, word(bits), count),
                _ => count,
            })
        }
        "bfind" => {
            let a = get("a")?;
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
            let dtype = if bits == 64 { DType::INT64 } else { DType::INT32 };
            let is_zero = binary(BinOp::Eq, a.clone(), Expr::constant(a.dtype, 0));
            let zeros = Expr::call(Op::Clz, DType::INT32, vec![as_dtype(a, dtype)]).cast(DType::UINT32);
            let found = match tokens.has("shiftamt") {
                true => zeros,
                false => binary(BinOp::Sub, word(bits - 1), zeros),
            };
            one(Expr::select(is_zero, word(u32::MAX.into()), found))
        }
        "brev" => {
            let a = get("a")?;
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
        "bfe" => {
            let (a, start, len) = (get("a")?, and(get("b")?, word(255)), and(get("c")?, word(255)));
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
        "bfi" if ty == "b64" => {
            let (a, b) = (get("a")?, get("b")?);
            let (start, len) = (and(get("c")?, word(255)), and(get("d")?, word(255)));
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
        "bfi" if ty == "b32" => {
            let (a, b, start, len) = (get("a")?, get("b")?, get("c")?, get("d")?);
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
        "mul" | "mad" if tokens.has("wide") => {
            let (a, b) = (get("a")?, get("b")?);
            let wide = match a.dtype.is_uint() {
                true => DType::uint(a.dtype.bits * 2),
                false => DType::int(a.dtype.bits * 2),
            };
            let product = binary(BinOp::Mul, a.cast(wide), b.cast(wide));
            one(match get("c") {
                Some(c) => binary(BinOp::Add, product, c),
                None => product,
            })
        }
        "mov" => moved(call, ty),
        "createpolicy" => Some(vec![("cache_policy", vec![Expr::constant(DType::UINT64, 0)])]),
        _ => None,
    }
}

/// `b` above `a`.
fn both(a: Expr, b: Expr) -> Expr {
    let high = left(b.cast(DType::UINT64), Expr::constant(DType::UINT32, 32));
    or(high, a.cast(DType::UINT64))
}

/// A move, or one that packs or unpacks registers.
fn moved(call: &InstructionCall, ty: &str) -> Option<Written> {
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
    if ty == "b128" {
        return None;
    }
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

/// `lop3` by its row.
fn logic_of_three(a: Expr, b: Expr, c: Expr, table: &Expr) -> Expr {
    let logic = Op::PtxLop3B32.call().set("a", a).set("b", b).set("c", c);
    logic.set("lut", table).build()
}
