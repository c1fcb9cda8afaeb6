//! Sums, products, minima, roots: integers and floats, alone and packed.

use tirx_ir::intrin::Op;
use tirx_ir::intrin::mnemonic::InstructionCall;
use tirx_ir::{BinOp, DType, Expr};
use tirx_sim_machine::rounded::{Operation, Rounded};
use tirx_sim_machine::tensor_map::FILLING_NAN;
use tirx_source::diagnostic::Result;

use super::super::Compiler;
use super::{
    Written, as_dtype, binary, bits_of, constant, exact, flushed, one, operand, or, parts, right, saturated,
    sign, signless, xor,
};

impl Compiler<'_> {
    pub(super) fn quotient(&mut self, call: &InstructionCall) -> Result<()> {
        let [a, b] = self.operands(call, ["a", "b"])?;
        self.divided(call, a, b)
    }

    pub(super) fn reciprocal(&mut self, call: &InstructionCall) -> Result<()> {
        let [value] = self.operands(call, ["value"])?;
        self.divided(call, constant(value.dtype, 1), value)
    }

    fn divided(&mut self, call: &InstructionCall, a: Expr, b: Expr) -> Result<()> {
        match is_directed(call) {
            true => self.write_rounded(call, Operation::Div, vec![a, b]),
            false => self.write_one(call, nearest(call, binary(BinOp::Div, a, b))),
        }
    }

    pub(super) fn root(&mut self, call: &InstructionCall) -> Result<()> {
        let [value] = self.operands(call, ["value"])?;
        match is_directed(call) {
            true => self.write_rounded(call, Operation::Sqrt, vec![value]),
            false => {
                let root = Expr::call(Op::Sqrt, value.dtype, vec![value]);
                self.write_one(call, nearest(call, root))
            }
        }
    }

    /// A sum or product of float32 and halves, which are converted first.
    pub(super) fn mixed(&mut self, call: &InstructionCall, operation: Operation) -> Result<()> {
        let names = ["a", "b", "c"].into_iter();
        let operands = names.filter_map(|name| operand(call, name));
        let operands = operands.map(|e| e.cast(DType::FLOAT32)).collect();
        self.write_rounded(call, operation, operands)
    }

    /// Writes what an operation gives with the rounding of the mnemonic.
    fn write_rounded(
        &mut self,
        call: &InstructionCall,
        operation: Operation,
        operands: Vec<Expr>,
    ) -> Result<()> {
        let tokens = &call.tokens;
        let given = ["mode", "rnd"].map(|slot| tokens.get(slot));
        let rounding = given.into_iter().find(|token| !token.is_empty()).unwrap_or("rn");
        let dtype = operands[0].dtype;
        let rounded = Rounded {
            operation,
            double: dtype == DType::FLOAT64,
            rounding: self.rounding(rounding)?,
            ftz: tokens.has("ftz"),
            sat: tokens.has("sat"),
        };
        let values = self.rounded_lanes(rounded, operands.into_iter(), dtype)?;
        let value = self.known(dtype, values);
        self.write_one(call, value)
    }
}

/// Whether a quotient or a root is not rounded to the nearest.
fn is_directed(call: &InstructionCall) -> bool {
    matches!(call.tokens.get("mode"), "rz" | "rm" | "rp")
}

/// A result of floats, rounded to the nearest, with `.ftz`, `.relu` and `.sat`.
fn nearest(call: &InstructionCall, mut e: Expr) -> Expr {
    let tokens = &call.tokens;
    if tokens.has("ftz") {
        e = flushed(e);
    }
    let zero = constant(e.dtype, 0);
    if tokens.has("relu") {
        let is_nan = Expr::call(Op::Isnan, DType::BOOL.with_lanes(e.dtype.lanes), vec![e.clone()]);
        e = Expr::select(is_nan, e.clone(), binary(BinOp::Max, e, zero.clone()));
    }
    if tokens.has("sat") {
        let unit = constant(e.dtype, 1);
        e = binary(BinOp::Min, binary(BinOp::Max, e, zero), unit);
    }
    e
}

/// Whether a sum or product is not rounded to the nearest: then its row is the same operation.
fn has_row(call: &InstructionCall) -> bool {
    !matches!(call.tokens.get("rnd"), "" | "rn")
}

/// `add`, `sub`.
pub(super) fn sum(call: &InstructionCall, op: BinOp) -> Option<Written> {
    if parts::are_pairs(call) {
        return parts::pairs(call, op);
    }
    let (a, b) = (operand(call, "a")?, operand(call, "b")?);
    match a.dtype.is_integer() {
        true if call.tokens.has("sat") => one(saturated(op, a, b)?),
        true => one(binary(op, a, b)),
        false if has_row(call) => None,
        false => one(nearest(call, binary(op, a, b))),
    }
}

pub(super) fn product(call: &InstructionCall) -> Option<Written> {
    let (a, b) = (operand(call, "a")?, operand(call, "b")?);
    match a.dtype.is_integer() {
        true => one(whole_product(call, a, b)?),
        false if has_row(call) => None,
        false => one(nearest(call, binary(BinOp::Mul, a, b))),
    }
}

/// `mad`, `fma`.
pub(super) fn product_and_sum(call: &InstructionCall) -> Option<Written> {
    let (a, b, c) = (operand(call, "a")?, operand(call, "b")?, operand(call, "c")?);
    if a.dtype.is_integer() {
        let product = whole_product(call, a, b)?;
        return match call.tokens.has("sat") {
            true => one(saturated(BinOp::Add, product, c)?),
            false => one(binary(BinOp::Add, product, c)),
        };
    }
    if has_row(call) {
        return None;
    }
    let value = nearest(call, Expr::call(Op::Fma, a.dtype, vec![a.clone(), b.clone(), c]));
    one(match call.tokens.has("oob") {
        true => {
            let filled = binary(BinOp::Or, is_filling(&a), is_filling(&b));
            Expr::select(filled, constant(value.dtype, 0), value)
        }
        false => value,
    })
}

/// `min`, `max`.
pub(super) fn extreme_of(call: &InstructionCall, op: BinOp) -> Option<Written> {
    if parts::are_pairs(call) {
        return parts::pairs(call, op);
    }
    let tokens = &call.tokens;
    let mut list: Vec<Expr> = ["a", "b", "c"]
        .into_iter()
        .filter_map(|name| operand(call, name))
        .collect();
    if list.first()?.dtype.is_integer() {
        let value = list.into_iter().reduce(|a, b| binary(op, a, b))?;
        let zero = Expr::constant(value.dtype, 0);
        return one(match tokens.has("relu") {
            true => binary(BinOp::Max, value, zero),
            false => value,
        });
    }
    if tokens.has("abs") && !tokens.has("xorsign") {
        list = list.into_iter().map(signless).collect();
    }
    let (nan, xorsign) = (tokens.has("NaN"), tokens.has("xorsign"));
    one(list.into_iter().reduce(|a, b| extreme(op, a, b, nan, xorsign))?)
}

pub(super) fn absolute(call: &InstructionCall) -> Option<Written> {
    let a = operand(call, "a")?;
    if !a.dtype.is_integer() {
        return one(signless(a));
    }
    let zero = Expr::constant(a.dtype, 0);
    let negative = binary(BinOp::Lt, a.clone(), zero.clone());
    one(Expr::select(negative, binary(BinOp::Sub, zero, a.clone()), a))
}

pub(super) fn negative(call: &InstructionCall) -> Option<Written> {
    let a = operand(call, "a")?;
    if a.dtype.is_integer() {
        return one(binary(BinOp::Sub, Expr::constant(a.dtype, 0), a));
    }
    let (bits, mask, dtype) = (bits_of(&a), sign(&a), a.dtype);
    let bits = as_dtype(a, bits);
    one(as_dtype(
        xor(bits.clone(), Expr::constant(bits.dtype, mask)),
        dtype,
    ))
}

pub(super) fn copysign(call: &InstructionCall) -> Option<Written> {
    let (a, b) = (operand(call, "a")?, operand(call, "b")?);
    one(Expr::call(Op::Copysign, a.dtype, vec![b, a]))
}

pub(super) fn remainder(call: &InstructionCall) -> Option<Written> {
    one(binary(BinOp::Mod, operand(call, "a")?, operand(call, "b")?))
}

/// `rsqrt`, `ex2`, `lg2`, `sin`, `cos`, `tanh`.
pub(super) fn function(call: &InstructionCall, op: Op) -> Option<Written> {
    let value = operand(call, "value")?;
    one(nearest(call, Expr::call(op, value.dtype, vec![value])))
}

/// The sum of `c` and the distance of `a` and `b`.
pub(super) fn distance(call: &InstructionCall) -> Option<Written> {
    let (a, b) = (operand(call, "a")?, operand(call, "b")?);
    let less = binary(BinOp::Lt, a.clone(), b.clone());
    let size = Expr::select(
        less,
        binary(BinOp::Sub, b.clone(), a.clone()),
        binary(BinOp::Sub, a, b),
    );
    one(binary(BinOp::Add, size, operand(call, "c")?))
}

/// The product of integers: its lower or upper half, or all of it.
fn whole_product(call: &InstructionCall, a: Expr, b: Expr) -> Option<Expr> {
    let (tokens, dtype) = (&call.tokens, a.dtype);
    match () {
        () if tokens.has("lo") => Some(binary(BinOp::Mul, a, b)),
        () if tokens.has("wide") => exact(BinOp::Mul, a, b),
        () if dtype.bits == 64 => Some(upper_half(a, b)),
        () => {
            let all = exact(BinOp::Mul, a, b)?;
            let shift = Expr::constant(all.dtype, dtype.bits.into());
            Some(right(all, shift).cast(dtype))
        }
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
