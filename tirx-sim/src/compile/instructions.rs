//! Packed values and PTX instructions, expressed by the IR's own expressions.

use tirx_ir::intrin::Op;
use tirx_ir::{BinOp, DType, Expr, TypeCode};
use tirx_source::diagnostic::{Result, error};

use super::Compiler;
use super::call::Call;
use super::registers::Val;
use tirx_sim_machine::bytecode::Inst;
use tirx_sim_machine::cvt::Rounding;
use tirx_sim_machine::numeric::Kind;
use tirx_sim_machine::rounded::{Operation, Rounded};

pub(super) const F32X2: DType = DType::FLOAT32.with_lanes(2);
const BF16X2: DType = DType::BFLOAT16.with_lanes(2);
const E4M3X4: DType = DType::scalar(TypeCode::Float8_e4m3fn, 8).with_lanes(4);

fn reinterpret(dtype: DType, e: Expr) -> Expr {
    if e.dtype == dtype {
        e
    } else {
        Expr::call(Op::Reinterpret, dtype, vec![e])
    }
}

fn combine(dtype: DType, parts: Vec<Expr>) -> Expr {
    Expr::call(Op::Vectorcombine, dtype, parts)
}

fn float(e: &Expr) -> Expr {
    e.clone().cast(DType::FLOAT32)
}

/// `op` of floats, where a NaN operand yields the other one.
fn number_of(op: BinOp, a: Expr, b: Expr) -> Expr {
    let is_nan = |e: &Expr| Expr::call(Op::Isnan, DType::BOOL.with_lanes(e.dtype.lanes), vec![e.clone()]);
    let picked = Expr::binary(op, a.clone(), b.clone());
    let picked = Expr::select(is_nan(&b), a.clone(), picked);
    Expr::select(is_nan(&a), b, picked)
}

fn packed(e: &Expr, dtype: DType) -> Expr {
    reinterpret(dtype, e.clone())
}

/// Two floats as one vector.
fn pair(low: &Expr, high: &Expr) -> Expr {
    combine(F32X2, vec![float(low), float(high)])
}

pub(super) fn float2_of(args: &[Expr]) -> Expr {
    reinterpret(DType::UINT64, pair(&args[0], &args[1]))
}

/// One of the two floats of a pair: `Op::Vectorlow` or `Op::Vectorhigh`.
pub(super) fn half_of_float2(args: &[Expr], which: Op) -> Expr {
    Expr::call(which, DType::FLOAT32, vec![packed(&args[0], F32X2)])
}

pub(super) fn on_float2(args: &[Expr], op: BinOp) -> Expr {
    let result = Expr::binary(op, packed(&args[0], F32X2), packed(&args[1], F32X2));
    reinterpret(DType::UINT64, result)
}

pub(super) fn bfloat2_of_two(args: &[Expr]) -> Expr {
    reinterpret(DType::UINT32, pair(&args[0], &args[1]).cast(BF16X2))
}

pub(super) fn bfloat2_of_float2(args: &[Expr]) -> Expr {
    reinterpret(DType::UINT32, packed(&args[0], F32X2).cast(BF16X2))
}

pub(super) fn float2_of_bfloat2(args: &[Expr]) -> Expr {
    reinterpret(DType::UINT64, packed(&args[0], BF16X2).cast(F32X2))
}

/// The least or the greatest of each of two.
pub(super) fn picked_of_bfloat2(args: &[Expr], op: BinOp) -> Expr {
    let picked = number_of(op, packed(&args[0], BF16X2), packed(&args[1], BF16X2));
    reinterpret(DType::UINT32, picked)
}

pub(super) fn four_e4m3(args: &[Expr]) -> Expr {
    let parts = vec![pair(&args[0], &args[1]), pair(&args[2], &args[3])];
    let all = combine(DType::FLOAT32.with_lanes(4), parts);
    reinterpret(DType::UINT32, all.cast(E4M3X4))
}

pub(super) fn exp2(args: &[Expr]) -> Expr {
    Expr::call(Op::Exp2, DType::FLOAT32, vec![float(&args[0])])
}

pub(super) fn reciprocal(args: &[Expr]) -> Expr {
    Expr::binary(BinOp::Div, Expr::float(DType::FLOAT32, 1.0), float(&args[0]))
}

/// The least or the greatest of three.
pub(super) fn picked_of_three(args: &[Expr], op: BinOp) -> Expr {
    let two = number_of(op, float(&args[0]), float(&args[1]));
    number_of(op, two, float(&args[2]))
}

/// A float plus the bfloat16 of some bits.
pub(super) fn plus_bfloat16(args: &[Expr]) -> Expr {
    let bits = args[1].clone().cast(DType::UINT16);
    float(&args[0]) + reinterpret(DType::BFLOAT16, bits).cast(DType::FLOAT32)
}

/// `max.f32`, with `.NaN` or without.
pub(super) fn maximum(args: &[Expr]) -> Expr {
    let (a, b) = (float(&args[0]), float(&args[1]));
    let number = number_of(BinOp::Max, a.clone(), b.clone());
    if args[3].is_int(0) {
        return number;
    }
    let is_nan = |e: &Expr| Expr::call(Op::Isnan, DType::BOOL, vec![e.clone()]);
    Expr::select(is_nan(&a), a.clone(), Expr::select(is_nan(&b), b, number))
}

fn word_of(op: Op, args: Vec<Expr>) -> Expr {
    Expr::call(op, DType::UINT32, args)
}

/// `lop3`: the sum of the products for which the table has a one.
pub(super) fn logic_of_three(args: &[Expr]) -> Expr {
    let word = |at: usize, set: bool| {
        let word = args[at].clone().cast(DType::UINT32);
        if set {
            word
        } else {
            word_of(Op::BitwiseNot, vec![word])
        }
    };
    let lut = args[3].as_int().unwrap_or_default();
    let rows = (0..8).filter(|row| lut >> row & 1 == 1);
    rows.fold(Expr::constant(DType::UINT32, 0), |sum, row| {
        let [a, b, c] = [0, 1, 2].map(|at| word(at, row >> (2 - at) & 1 == 1));
        let product = word_of(Op::BitwiseAnd, vec![word_of(Op::BitwiseAnd, vec![a, b]), c]);
        word_of(Op::BitwiseOr, vec![sum, product])
    })
}

/// Eight floats of four bits: a byte for each pair, the first pair in the lowest one. PTX takes the upper half of a byte first.
pub(super) fn eight_in_a_word(args: &[Expr]) -> Expr {
    let bytes = (0..4).map(|i| {
        let pair = [float(&args[2 * i + 1]), float(&args[2 * i])];
        let byte = Op::PtxCvt
            .call()
            .list("values", pair)
            .set("count", 2)
            .set("dtype", "e2m1x2");
        let byte = byte
            .set("atype", "f32")
            .set("rounding", "rn")
            .set("satfinite", true)
            .build();
        let by = Expr::constant(DType::UINT32, 8 * i as i128);
        word_of(Op::ShiftLeft, vec![byte.cast(DType::UINT32), by])
    });
    let zero = Expr::constant(DType::UINT32, 0);
    bytes.fold(zero, |word, byte| word_of(Op::BitwiseOr, vec![word, byte]))
}

pub(super) fn any_lane(args: &[Expr]) -> Expr {
    let lanes = Expr::call(Op::CudaBallotSync, DType::UINT32, args.to_vec());
    let any = Expr::binary(BinOp::Ne, lanes, Expr::constant(DType::UINT32, 0));
    any.cast(DType::INT32)
}

/// The first active lane.
fn elected() -> Expr {
    let mask = Expr::constant(DType::UINT32, u32::MAX.into());
    let here = vec![mask, Expr::constant(DType::BOOL, 1)];
    let lanes = Expr::call(Op::CudaBallotSync, DType::UINT32, here);
    let first = Expr::call(Op::CudaFfsU32, DType::INT32, vec![lanes]);
    let register = vec![Expr::int32(32), Expr::string("laneid")];
    let lane = Expr::call(Op::PtxFetchRegister, DType::INT32, register);
    Expr::binary(BinOp::Eq, first, lane + Expr::int32(1)).cast(DType::UINT32)
}

impl Compiler<'_> {
    /// `fns`: the number of the n-th set bit of a word from a base on (backwards for n < 0; the base itself for 0), all ones where
    /// there is none. Arguments: word, base, n.
    pub(super) fn nth_set(&mut self, args: &[Expr]) -> Result<Vec<Val>> {
        let word = |value: i128| Expr::constant(DType::UINT32, value);
        let binary = Expr::binary;
        let base = args[1].clone().cast(DType::UINT32);
        let n = args[2].clone().cast(DType::INT32);
        let (forward, backward) = (
            binary(BinOp::Gt, n.clone(), Expr::int32(0)),
            binary(BinOp::Lt, n.clone(), Expr::int32(0)),
        );
        let alone = word_of(Op::ShiftLeft, vec![word(1), base.clone()]);
        let up = word_of(Op::ShiftLeft, vec![word(u32::MAX.into()), base.clone()]);
        let distance = binary(BinOp::Sub, word(31), base);
        let down = word_of(Op::ShiftRight, vec![word(u32::MAX.into()), distance]);
        let range = Expr::select(forward, up, Expr::select(backward.clone(), down, alone));
        let range = word_of(Op::BitwiseAnd, vec![args[0].clone().cast(DType::UINT32), range]);
        let range = self.values(&range)?;
        let range = self.known(DType::UINT32, range);
        let count = Expr::select(backward.clone(), binary(BinOp::Sub, Expr::int32(0), n.clone()), n);
        let count = binary(BinOp::Max, count, Expr::int32(1)).cast(DType::UINT32);
        let count = self.values(&count)?;
        let count = self.known(DType::UINT32, count);
        let backward = self.values(&backward)?;
        let backward = self.known(DType::BOOL, backward);
        let place = (0..32).fold(word(u32::MAX.into()), |found, bit| {
            let above = word_of(Op::ShiftRight, vec![range.clone(), word(bit)]);
            let below = word_of(Op::ShiftLeft, vec![range.clone(), word(31 - bit)]);
            let set = word_of(Op::BitwiseAnd, vec![above.clone(), word(1)]);
            let passed = word_of(Op::Popcount, vec![Expr::select(backward.clone(), above, below)]);
            let here = binary(BinOp::Eq, passed, count.clone());
            let here = binary(BinOp::And, here, binary(BinOp::Eq, set, word(1)));
            Expr::select(here, word(bit), found)
        });
        self.values(&place)
    }

    /// `elect.sync`.
    pub(super) fn elect(&mut self) -> Result<Vec<Val>> {
        self.emit(Inst::Converged);
        self.values(&elected())
    }

    /// `add`, `sub`, `mul` and `fma`: gives the value, or stores it where the call has a destination.
    pub(super) fn rounded_arithmetic(
        &mut self,
        call: &Call<'_>,
        operation: Operation,
        dtype: DType,
    ) -> Result<Vec<Val>> {
        let (destination, values) = self.arithmetic(operation, dtype, call.args)?;
        if !call.dtype.is_void() {
            return Ok(values);
        }
        let (Some(destination), [value]) = (destination, &values[..]) else {
            return error(self.span, format!("T.{} has a value", call.op.info().script));
        };
        let pointer = self.value(&destination)?;
        let zero = self.integer(Kind::I64, 0)?;
        self.store_offset(pointer, zero, *value, "the destination")?;
        Ok(Vec::new())
    }

    /// Destination and value of `add`, `sub`, `mul` and `fma`.
    fn arithmetic(
        &mut self,
        operation: Operation,
        dtype: DType,
        args: &[Expr],
    ) -> Result<(Option<Expr>, Vec<Val>)> {
        let operands = match operation {
            Operation::Fma => 3,
            Operation::Add | Operation::Sub | Operation::Mul | Operation::Div => 2,
            Operation::Sqrt => 1,
        };
        let Some(at) = args.iter().position(|a| a.as_str().is_some()) else {
            return error(self.span, "the rounding of an instruction is a string");
        };
        let (destination, values) = match at.checked_sub(operands) {
            Some(0) => (None, &args[..at]),
            Some(1) => (Some(args[0].clone()), &args[1..at]),
            _ => return error(self.span, "an instruction with too few operands"),
        };
        let value = |i: usize| reinterpret(dtype, values[i].clone());
        let flag = |at: usize| args.get(at).is_some_and(|flag| !flag.is_int(0));
        let rounding = args[at].as_str().unwrap_or_default();
        let plain = matches!(rounding, "" | "rn") && !flag(at + 1);
        if !plain {
            let rounded = Rounded {
                operation,
                double: dtype == DType::FLOAT64,
                rounding: self.rounding(rounding)?,
                ftz: flag(at + 1),
                // Packed forms have no such flag: the next argument is `dps`.
                sat: dtype != F32X2 && flag(at + 2),
            };
            let values = self.rounded_lanes(rounded, (0..operands).map(value), dtype)?;
            return Ok((destination, values));
        }
        let result = match operation {
            Operation::Add => Expr::binary(BinOp::Add, value(0), value(1)),
            Operation::Sub => Expr::binary(BinOp::Sub, value(0), value(1)),
            Operation::Mul => Expr::binary(BinOp::Mul, value(0), value(1)),
            Operation::Fma => Expr::call(Op::Fma, dtype, vec![value(0), value(1), value(2)]),
            Operation::Div => Expr::binary(BinOp::Div, value(0), value(1)),
            Operation::Sqrt => Expr::call(Op::Sqrt, dtype, vec![value(0)]),
        };
        let result = if dtype == F32X2 {
            reinterpret(DType::UINT64, result)
        } else if flag(at + 2) {
            // To [0, 1], NaN to 0.
            let floor = number_of(BinOp::Max, result, Expr::float(DType::FLOAT32, 0.0));
            Expr::binary(BinOp::Min, floor, Expr::float(DType::FLOAT32, 1.0))
        } else {
            result
        };
        Ok((destination, self.values(&result)?))
    }

    /// The rounding that a modifier names.
    pub(super) fn rounding(&self, modifier: &str) -> Result<Rounding> {
        Rounding::of(modifier).or_else(|message| error(self.span, message))
    }

    /// The lanes of operands of a dtype, lane by lane; two float32 are packed again.
    pub(super) fn rounded_lanes(
        &mut self,
        rounded: Rounded,
        operands: impl Iterator<Item = Expr>,
        dtype: DType,
    ) -> Result<Vec<Val>> {
        let kind = self.kind(dtype)?;
        let mut lanes = vec![Vec::new(); dtype.lanes as usize];
        for operand in operands {
            for (lane, value) in lanes.iter_mut().zip(self.values(&operand)?) {
                lane.push(self.convert(value, kind)?);
            }
        }
        let mut results = Vec::new();
        for lane in lanes {
            results.push(self.rounded(rounded, &lane, kind)?);
        }
        match dtype {
            F32X2 => self.reinterpret_values(results, F32X2, DType::UINT64),
            _ => Ok(results),
        }
    }
}
