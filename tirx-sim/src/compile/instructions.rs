//! Packed values and PTX instructions, expressed by the IR's own expressions.

use tirx_ir::intrin::{Op, Operands};
use tirx_ir::{BinOp, DType, Expr, TypeCode, at};
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
    reinterpret(
        DType::UINT64,
        pair(&args[at!(CudaMakeFloat2.x)], &args[at!(CudaMakeFloat2.y)]),
    )
}

/// One of the two floats of a pair: `Op::Vectorlow` or `Op::Vectorhigh`.
pub(super) fn half_of_float2(args: &[Expr], which: Op) -> Expr {
    Expr::call(
        which,
        DType::FLOAT32,
        vec![packed(&args[at!(CudaFloat2X | CudaFloat2Y.packed)], F32X2)],
    )
}

pub(super) fn on_float2(args: &[Expr], op: BinOp) -> Expr {
    let a = packed(&args[at!(CudaFadd2Rn | CudaFmul2Rn.a)], F32X2);
    let b = packed(&args[at!(CudaFadd2Rn | CudaFmul2Rn.b)], F32X2);
    let result = Expr::binary(op, a, b);
    reinterpret(DType::UINT64, result)
}

pub(super) fn bfloat2_of_two(args: &[Expr]) -> Expr {
    let (v0, v1) = (
        &args[at!(CudaFloat22bfloat162Rn.v0)],
        &args[at!(CudaFloat22bfloat162Rn.v1)],
    );
    reinterpret(DType::UINT32, pair(v0, v1).cast(BF16X2))
}

pub(super) fn bfloat2_of_float2(args: &[Expr]) -> Expr {
    let pair = packed(&args[at!(CudaFloat22bfloat162RnFromFloat2.packed)], F32X2);
    reinterpret(DType::UINT32, pair.cast(BF16X2))
}

pub(super) fn float2_of_bfloat2(args: &[Expr]) -> Expr {
    let pair = packed(&args[at!(CudaBfloat1622float2.packed)], BF16X2);
    reinterpret(DType::UINT64, pair.cast(F32X2))
}

/// The least or the greatest of each of two.
pub(super) fn picked_of_bfloat2(args: &[Expr], op: BinOp) -> Expr {
    let a = packed(&args[at!(CudaHmin2 | CudaHmax2.a)], BF16X2);
    let b = packed(&args[at!(CudaHmin2 | CudaHmax2.b)], BF16X2);
    let picked = number_of(op, a, b);
    reinterpret(DType::UINT32, picked)
}

pub(super) fn four_e4m3(args: &[Expr]) -> Expr {
    let low = pair(
        &args[at!(CudaFp8x4E4m3FromFloat4.x)],
        &args[at!(CudaFp8x4E4m3FromFloat4.y)],
    );
    let high = pair(
        &args[at!(CudaFp8x4E4m3FromFloat4.z)],
        &args[at!(CudaFp8x4E4m3FromFloat4.w)],
    );
    let parts = vec![low, high];
    let all = combine(DType::FLOAT32.with_lanes(4), parts);
    reinterpret(DType::UINT32, all.cast(E4M3X4))
}

pub(super) fn exp2(args: &[Expr]) -> Expr {
    Expr::call(Op::Exp2, DType::FLOAT32, vec![float(&args[at!(PtxExp2.x)])])
}

pub(super) fn reciprocal(args: &[Expr]) -> Expr {
    let x = float(&args[at!(PtxRcp.x)]);
    Expr::binary(BinOp::Div, Expr::float(DType::FLOAT32, 1.0), x)
}

/// The least or the greatest of three.
pub(super) fn picked_of_three(args: &[Expr], op: BinOp) -> Expr {
    let a = float(&args[at!(PtxReduce3MaxF32 | PtxReduce3MinF32.a)]);
    let b = float(&args[at!(PtxReduce3MaxF32 | PtxReduce3MinF32.b)]);
    let c = float(&args[at!(PtxReduce3MaxF32 | PtxReduce3MinF32.c)]);
    number_of(op, number_of(op, a, b), c)
}

/// A float plus the bfloat16 of some bits.
pub(super) fn plus_bfloat16(args: &[Expr]) -> Expr {
    let bits = args[at!(PtxAddRnF32Bf16.x)].clone().cast(DType::UINT16);
    float(&args[at!(PtxAddRnF32Bf16.acc)]) + reinterpret(DType::BFLOAT16, bits).cast(DType::FLOAT32)
}

/// `max.f32`, with `.NaN` or without.
pub(super) fn maximum(args: &[Expr]) -> Expr {
    let (a, b) = (float(&args[at!(PtxMaxF32.a)]), float(&args[at!(PtxMaxF32.b)]));
    let number = number_of(BinOp::Max, a.clone(), b.clone());
    if args[at!(PtxMaxF32.nan)].is_int(0) {
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
    let words = [at!(PtxLop3B32.a), at!(PtxLop3B32.b), at!(PtxLop3B32.c)];
    let word = |which: usize, set: bool| {
        let word = args[words[which]].clone().cast(DType::UINT32);
        if set {
            word
        } else {
            word_of(Op::BitwiseNot, vec![word])
        }
    };
    let lut = args[at!(PtxLop3B32.lut)].as_int().unwrap_or_default();
    let rows = (0..8).filter(|row| lut >> row & 1 == 1);
    rows.fold(Expr::constant(DType::UINT32, 0), |sum, row| {
        let [a, b, c] = [0, 1, 2].map(|which| word(which, row >> (2 - which) & 1 == 1));
        let product = word_of(Op::BitwiseAnd, vec![word_of(Op::BitwiseAnd, vec![a, b]), c]);
        word_of(Op::BitwiseOr, vec![sum, product])
    })
}

/// Eight floats of four bits: a byte for each pair, the first pair in the lowest one. PTX takes the upper half of a byte first.
pub(super) fn eight_in_a_word(args: &[Expr]) -> Expr {
    // Each byte's upper and lower half.
    const BYTES: [[usize; 2]; 4] = [
        [at!(CudaCvtE2m1x8F32.x1), at!(CudaCvtE2m1x8F32.x0)],
        [at!(CudaCvtE2m1x8F32.x3), at!(CudaCvtE2m1x8F32.x2)],
        [at!(CudaCvtE2m1x8F32.x5), at!(CudaCvtE2m1x8F32.x4)],
        [at!(CudaCvtE2m1x8F32.x7), at!(CudaCvtE2m1x8F32.x6)],
    ];
    let bytes = BYTES.iter().enumerate().map(|(i, byte)| {
        let pair = byte.map(|half| float(&args[half]));
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
    /// there is none.
    pub(super) fn nth_set(&mut self, args: &[Expr]) -> Result<Vec<Val>> {
        let word = |value: i128| Expr::constant(DType::UINT32, value);
        let binary = Expr::binary;
        let base = args[at!(PtxFnsB32.base)].clone().cast(DType::UINT32);
        let n = args[at!(PtxFnsB32.offset)].clone().cast(DType::INT32);
        let (forward, backward) = (
            binary(BinOp::Gt, n.clone(), Expr::int32(0)),
            binary(BinOp::Lt, n.clone(), Expr::int32(0)),
        );
        let alone = word_of(Op::ShiftLeft, vec![word(1), base.clone()]);
        let up = word_of(Op::ShiftLeft, vec![word(u32::MAX.into()), base.clone()]);
        let distance = binary(BinOp::Sub, word(31), base);
        let down = word_of(Op::ShiftRight, vec![word(u32::MAX.into()), distance]);
        let range = Expr::select(forward, up, Expr::select(backward.clone(), down, alone));
        let mask = args[at!(PtxFnsB32.mask)].clone().cast(DType::UINT32);
        let range = word_of(Op::BitwiseAnd, vec![mask, range]);
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
        let (destination, values) = self.arithmetic(operation, dtype, &call.named)?;
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
        call: &Operands<'_>,
    ) -> Result<(Option<Expr>, Vec<Val>)> {
        let operands: Vec<&Expr> = ["a", "b", "c"].iter().filter_map(|name| call.get(name)).collect();
        let destination = call.get("d_addr").cloned();
        let value = |i: usize| reinterpret(dtype, operands[i].clone());
        let (rounding, ftz, sat) = (call.text("rounding"), call.flag("ftz"), call.flag("sat"));
        let plain = matches!(rounding, "" | "rn") && !ftz;
        if !plain {
            let rounded = Rounded {
                operation,
                double: dtype == DType::FLOAT64,
                rounding: self.rounding(rounding)?,
                ftz,
                sat,
            };
            let values = self.rounded_lanes(rounded, (0..operands.len()).map(value), dtype)?;
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
        } else if sat {
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
        Rounding::from_modifier(modifier).or_else(|message| error(self.span, message))
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
