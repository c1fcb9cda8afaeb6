//! Sums, products, minima, roots: integers and floats, alone and packed.

use tirx_ir::intrin::Op;
use tirx_ir::intrin::mnemonic::InstructionCall;
use tirx_ir::{BinOp, DType, Expr};
use tirx_sim_machine::rounded::{Operation, Rounded};
use tirx_sim_machine::tensor_map::FILLING_NAN;
use tirx_source::diagnostic::Result;

use super::super::Compiler;
use super::{
    Written, as_dtype, binary, bits_of, constant, flushed, natural, one, operand, or, right, sign, signless,
    xor,
};

impl Compiler<'_> {
    /// Quotients and roots that are not rounded to the nearest; false where it is none.
    pub(super) fn rounded_quotient(&mut self, call: &InstructionCall) -> Result<bool> {
        let tokens = &call.tokens;
        let (rounding, get) = (tokens.get("mode"), |name: &str| operand(call, name));
        if !matches!(rounding, "rz" | "rm" | "rp") {
            return Ok(false);
        }
        let one = |e: &Expr| constant(e.dtype, 1);
        let (operation, operands) = match (tokens.instruction.family, get("a"), get("b"), get("value")) {
            ("div", Some(a), Some(b), _) => (Operation::Div, vec![a, b]),
            ("rcp", .., Some(value)) => (Operation::Div, vec![one(&value), value]),
            ("sqrt", .., Some(value)) => (Operation::Sqrt, vec![value]),
            _ => return Ok(false),
        };
        let dtype = operands[0].dtype;
        let rounded = Rounded {
            operation,
            double: dtype == DType::FLOAT64,
            rounding: self.rounding(rounding)?,
            ftz: tokens.has("ftz"),
            sat: false,
        };
        let values = self.rounded_lanes(rounded, operands.into_iter(), dtype)?;
        let value = self.known(dtype, values);
        self.write(call, vec![("d", vec![value])])?;
        Ok(true)
    }
}

pub(super) fn values(call: &InstructionCall) -> Option<Written> {
    let tokens = &call.tokens;
    let family = tokens.instruction.family;
    let ty = match tokens.get("type") {
        "" => ["f32", "f64", "b32", "u32"]
            .into_iter()
            .find(|ty| tokens.has(ty))
            .unwrap_or(""),
        ty => ty,
    };
    let dtype = natural(ty)?;
    let get = |name: &str| operand(call, name);
    if dtype.is_integer() {
        return integers(call, family, dtype);
    }
    let relu = |e: Expr| match tokens.has("relu") {
        true => {
            let zero = constant(e.dtype, 0);
            let is_nan = Expr::call(Op::Isnan, DType::BOOL.with_lanes(e.dtype.lanes), vec![e.clone()]);
            Expr::select(is_nan, e.clone(), binary(BinOp::Max, e, zero))
        }
        false => e,
    };
    let flush = |e: Expr| if tokens.has("ftz") { flushed(e) } else { e };
    let sat = |e: Expr| match tokens.has("sat") {
        true => {
            let (zero, unit) = (constant(e.dtype, 0), constant(e.dtype, 1));
            binary(BinOp::Min, binary(BinOp::Max, e, zero), unit)
        }
        false => e,
    };
    let mixed = tokens.get("atype");
    // Quotients and roots that are rounded otherwise: see `rounded`.
    if matches!(family, "div" | "rcp" | "sqrt") && matches!(tokens.get("mode"), "rz" | "rm" | "rp") {
        return None;
    }
    match family {
        "add" | "sub" | "mul" | "fma" | "mad" => {
            let mut list = vec![get("a")?];
            list.extend(get("b"));
            list.extend(get("c"));
            if !mixed.is_empty() && !mixed.contains("x2") {
                list.iter_mut().for_each(|e| *e = e.clone().cast(DType::FLOAT32));
            }
            let plain = || match &list[..] {
                [a, b] => {
                    let op = match family {
                        "add" => BinOp::Add,
                        "sub" => BinOp::Sub,
                        _ => BinOp::Mul,
                    };
                    Some(binary(op, a.clone(), b.clone()))
                }
                [_, _, _] => Some(Expr::call(Op::Fma, dtype, list.clone())),
                _ => None,
            };
            // Those that round otherwise, or flush, have a row.
            if !matches!(tokens.get("rnd"), "" | "rn") {
                return None;
            }
            let value = sat(relu(flush(plain()?)));
            one(match tokens.has("oob") {
                true => {
                    let filled = binary(BinOp::Or, is_filling(&list[0]), is_filling(list.get(1)?));
                    Expr::select(filled, constant(value.dtype, 0), value)
                }
                false => value,
            })
        }
        "div" => one(flush(binary(BinOp::Div, get("a")?, get("b")?))),
        "min" | "max" => {
            let op = if family == "min" { BinOp::Min } else { BinOp::Max };
            let all = [get("a"), get("b"), get("c")];
            let mut list =
                all.into_iter()
                    .flatten()
                    .map(|e| match tokens.has("abs") && !tokens.has("xorsign") {
                        true => signless(e),
                        false => e,
                    });
            let first = list.next()?;
            one(list.fold(first, |a, b| {
                extreme(op, a, b, tokens.has("NaN"), tokens.has("xorsign"))
            }))
        }
        "abs" => one(signless(get("a")?)),
        "neg" => {
            let a = get("a")?;
            let (bits, mask, dtype) = (bits_of(&a), sign(&a), a.dtype);
            let bits = as_dtype(a, bits);
            one(as_dtype(
                xor(bits.clone(), Expr::constant(bits.dtype, mask)),
                dtype,
            ))
        }
        "copysign" => {
            let (a, b) = (get("a")?, get("b")?);
            one(Expr::call(Op::Copysign, dtype, vec![b, a]))
        }
        "rcp" => {
            let value = get("value")?;
            one(flush(binary(BinOp::Div, constant(dtype, 1), value)))
        }
        "sqrt" | "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" => {
            let op = match family {
                "sqrt" => Op::Sqrt,
                "rsqrt" => Op::Rsqrt,
                "ex2" => Op::Exp2,
                "lg2" => Op::Log2,
                "sin" => Op::Sin,
                "cos" => Op::Cos,
                _ => Op::Tanh,
            };
            one(flush(Expr::call(op, dtype, vec![get("value")?])))
        }
        _ => None,
    }
}

/// Whether half numbers are the NaN of either sign that tensor copies put beyond the edge of a tensor; other NaNs are not
/// (measured on an H200). In each lane.
fn is_filling(e: &Expr) -> Expr {
    let bits = DType::uint(16).with_lanes(e.dtype.lanes);
    let word = |value| Expr::constant(bits, value);
    let signless = super::and(as_dtype(e.clone(), bits), word(0x7fff));
    binary(BinOp::Eq, signless, word(i128::from(FILLING_NAN)))
}

/// The NaN that instructions give.
fn canonical_nan(e: &Expr) -> Option<Expr> {
    let bits = bits_of(e);
    let ones = (1_i128 << (bits.bits - 1)) - 1;
    (e.dtype.lanes == 1 && e.dtype.bits < 64).then(|| as_dtype(Expr::constant(bits, ones), e.dtype))
}

/// The smaller or greater one: the number where one is NaN, or NaN where `nan`.
fn extreme(op: BinOp, a: Expr, b: Expr, nan: bool, xorsign: bool) -> Expr {
    let is_nan = |e: &Expr| Expr::call(Op::Isnan, DType::BOOL.with_lanes(e.dtype.lanes), vec![e.clone()]);
    if xorsign {
        let (bits, mask) = (bits_of(&a), sign(&a));
        let dtype = a.dtype;
        let signs = super::and(
            xor(as_dtype(a.clone(), bits), as_dtype(b.clone(), bits)),
            Expr::constant(bits, mask),
        );
        let size = extreme(op, signless(a), signless(b), nan, false);
        return as_dtype(or(as_dtype(size, bits), signs), dtype);
    }
    let picked = binary(op, a.clone(), b.clone());
    let (first, second) = if nan {
        (a.clone(), b.clone())
    } else {
        (b.clone(), a.clone())
    };
    let (any_a, any_b) = (is_nan(&a), is_nan(&b));
    let picked = Expr::select(any_b.clone(), second, picked);
    let picked = Expr::select(any_a.clone(), first, picked);
    let op = if nan { BinOp::Or } else { BinOp::And };
    match canonical_nan(&a) {
        Some(canonical) => Expr::select(binary(op, any_a, any_b), canonical, picked),
        None => picked,
    }
}

/// The upper half of the product of two numbers of 64 bits.
fn upper_half(a: Expr, b: Expr) -> Expr {
    let dtype = a.dtype;
    let bits = |e: &Expr| as_dtype(e.clone(), DType::UINT64);
    let number = |n: i128| Expr::constant(DType::UINT64, n);
    let low = |e: &Expr| super::and(e.clone(), number(0xffff_ffff));
    let high = |e: &Expr| right(e.clone(), number(32));
    let times = |a: Expr, b: Expr| binary(BinOp::Mul, a, b);
    let plus = |a: Expr, b: Expr| binary(BinOp::Add, a, b);
    let (x, y) = (bits(&a), bits(&b));
    let first = plus(times(high(&x), low(&y)), high(&times(low(&x), low(&y))));
    let second = plus(times(low(&x), high(&y)), low(&first));
    let upper = plus(plus(times(high(&x), high(&y)), high(&first)), high(&second));
    if dtype.is_uint() {
        return upper;
    }
    // A negative factor counts 2^64 too much of the other.
    let too_much = |factor: &Expr, other: &Expr| {
        let negative = binary(BinOp::Lt, factor.clone(), Expr::constant(DType::INT64, 0));
        Expr::select(negative, bits(other), number(0))
    };
    let upper = binary(BinOp::Sub, upper, too_much(&a, &b));
    as_dtype(binary(BinOp::Sub, upper, too_much(&b, &a)), DType::INT64)
}

/// Arithmetic of integers.
fn integers(call: &InstructionCall, family: &str, dtype: DType) -> Option<Written> {
    let tokens = &call.tokens;
    let get = |name: &str| operand(call, name);
    // A dtype twice as wide, in which products and saturated sums are exact.
    let wide = match (dtype.bits, dtype.is_uint()) {
        (64.., _) => None,
        (bits, true) => Some(DType::uint(bits * 2)),
        (bits, false) => Some(DType::int(bits * 2)),
    };
    let exact = |op: BinOp, a: Expr, b: Expr| Some(binary(op, a.cast(wide?), b.cast(wide?)));
    let clamped = |e: Expr| {
        let (low, high) = (dtype.min_int()?, dtype.max_int()?);
        let e = binary(BinOp::Max, e, Expr::constant(wide?, low));
        Some(binary(BinOp::Min, e, Expr::constant(wide?, high)).cast(dtype))
    };
    let product = || -> Option<Expr> {
        let (a, b) = (get("a")?, get("b")?);
        match () {
            () if tokens.has("lo") => Some(binary(BinOp::Mul, a, b)),
            () if tokens.has("hi") && dtype.bits == 64 => Some(upper_half(a, b)),
            () if tokens.has("hi") => {
                let all = exact(BinOp::Mul, a, b)?;
                let shift = Expr::constant(all.dtype, dtype.bits.into());
                Some(right(all, shift).cast(dtype))
            }
            () => None,
        }
    };
    match family {
        "add" | "sub" => {
            let op = if family == "add" { BinOp::Add } else { BinOp::Sub };
            match tokens.has("sat") {
                true => one(clamped(exact(op, get("a")?, get("b")?)?)?),
                false => one(binary(op, get("a")?, get("b")?)),
            }
        }
        "mul" if tokens.has("wide") => None,
        "mul" => one(product()?),
        "mad" if !tokens.has("sat") => one(binary(BinOp::Add, product()?, get("c")?)),
        "div" => one(binary(BinOp::Div, get("a")?, get("b")?)),
        "rem" => one(binary(BinOp::Mod, get("a")?, get("b")?)),
        "min" => one(binary(BinOp::Min, get("a")?, get("b")?)),
        "max" => one(binary(BinOp::Max, get("a")?, get("b")?)),
        "neg" => one(binary(BinOp::Sub, Expr::constant(dtype, 0), get("a")?)),
        "abs" => {
            let a = get("a")?;
            let negative = binary(BinOp::Lt, a.clone(), Expr::constant(dtype, 0));
            one(Expr::select(
                negative,
                binary(BinOp::Sub, Expr::constant(dtype, 0), a.clone()),
                a,
            ))
        }
        "sad" => {
            let (a, b) = (get("a")?, get("b")?);
            let less = binary(BinOp::Lt, a.clone(), b.clone());
            let size = Expr::select(
                less,
                binary(BinOp::Sub, b.clone(), a.clone()),
                binary(BinOp::Sub, a, b),
            );
            one(binary(BinOp::Add, size, get("c")?))
        }
        _ => None,
    }
    .map(|written| match tokens.has("relu") {
        true => written
            .into_iter()
            .map(|(name, list)| {
                let list = list.into_iter().map(|e| {
                    let zero = Expr::constant(e.dtype, 0);
                    binary(BinOp::Max, e, zero)
                });
                (name, list.collect())
            })
            .collect(),
        false => written,
    })
}
