//! Packed values and PTX instructions, expressed by the IR's own expressions.

use tirx_ir::intrin::Op;
use tirx_ir::{BinOp, DType, Expr, TypeCode};
use tirx_source::diagnostic::{Result, error};

use super::Compiler;
use super::registers::Val;
use tirx_sim_machine::bytecode::Inst;
use tirx_sim_machine::cvt::Rounding;
use tirx_sim_machine::numeric::Kind;
use tirx_sim_machine::rounded::{Operation, Rounded};

const F32X2: DType = DType::FLOAT32.with_lanes(2);
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

/// What a call without modifiers is.
fn meaning(op: Op, args: &[Expr]) -> Option<Expr> {
    let packed = |at: usize, dtype: DType| reinterpret(dtype, args[at].clone());
    let pair = |at: usize| combine(F32X2, vec![float(&args[at]), float(&args[at + 1])]);
    let both = |op: BinOp| Expr::binary(op, packed(0, F32X2), packed(1, F32X2));
    Some(match op {
        Op::CudaMakeFloat2 => reinterpret(DType::UINT64, pair(0)),
        Op::CudaFloat2X => Expr::call(Op::Vectorlow, DType::FLOAT32, vec![packed(0, F32X2)]),
        Op::CudaFloat2Y => Expr::call(Op::Vectorhigh, DType::FLOAT32, vec![packed(0, F32X2)]),
        Op::CudaFadd2Rn => reinterpret(DType::UINT64, both(BinOp::Add)),
        Op::CudaFmul2Rn => reinterpret(DType::UINT64, both(BinOp::Mul)),
        Op::CudaFloat22bfloat162Rn => reinterpret(DType::UINT32, pair(0).cast(BF16X2)),
        Op::CudaFloat22bfloat162RnFromFloat2 => reinterpret(DType::UINT32, packed(0, F32X2).cast(BF16X2)),
        Op::CudaBfloat1622float2 => reinterpret(DType::UINT64, packed(0, BF16X2).cast(F32X2)),
        Op::CudaHmin2 | Op::CudaHmax2 => {
            let order = if op == Op::CudaHmin2 {
                BinOp::Min
            } else {
                BinOp::Max
            };
            let picked = number_of(order, packed(0, BF16X2), packed(1, BF16X2));
            reinterpret(DType::UINT32, picked)
        }
        Op::CudaFp8x4E4m3FromFloat4 => {
            let all = combine(DType::FLOAT32.with_lanes(4), vec![pair(0), pair(2)]);
            reinterpret(DType::UINT32, all.cast(E4M3X4))
        }
        Op::PtxExp2 => Expr::call(Op::Exp2, DType::FLOAT32, vec![float(&args[0])]),
        Op::PtxRcp => Expr::binary(BinOp::Div, Expr::float(DType::FLOAT32, 1.0), float(&args[0])),
        Op::PtxReduce3MaxF32 | Op::PtxReduce3MinF32 => {
            let order = if op == Op::PtxReduce3MaxF32 {
                BinOp::Max
            } else {
                BinOp::Min
            };
            let two = number_of(order, float(&args[0]), float(&args[1]));
            number_of(order, two, float(&args[2]))
        }
        Op::PtxAddRnF32Bf16 => {
            let bits = args[1].clone().cast(DType::UINT16);
            float(&args[0]) + reinterpret(DType::BFLOAT16, bits).cast(DType::FLOAT32)
        }
        Op::PtxMaxF32 => {
            let (a, b) = (float(&args[0]), float(&args[1]));
            let number = number_of(BinOp::Max, a.clone(), b.clone());
            if args[3].is_int(0) {
                number
            } else {
                let is_nan = |e: &Expr| Expr::call(Op::Isnan, DType::BOOL, vec![e.clone()]);
                Expr::select(is_nan(&a), a.clone(), Expr::select(is_nan(&b), b, number))
            }
        }
        // The sum of the products for which the table has a one.
        Op::PtxLop3B32 => {
            let call = |op: Op, args: Vec<Expr>| Expr::call(op, DType::UINT32, args);
            let word = |at: usize, set: bool| {
                let word = args[at].clone().cast(DType::UINT32);
                if set {
                    word
                } else {
                    call(Op::BitwiseNot, vec![word])
                }
            };
            let lut = args[3].as_int().unwrap_or_default();
            let rows = (0..8).filter(|row| lut >> row & 1 == 1);
            rows.fold(Expr::constant(DType::UINT32, 0), |sum, row| {
                let [a, b, c] = [0, 1, 2].map(|at| word(at, row >> (2 - at) & 1 == 1));
                let product = call(Op::BitwiseAnd, vec![call(Op::BitwiseAnd, vec![a, b]), c]);
                call(Op::BitwiseOr, vec![sum, product])
            })
        }
        Op::PtxAnySync => {
            let lanes = Expr::call(Op::CudaBallotSync, DType::UINT32, args.to_vec());
            let any = Expr::binary(BinOp::Ne, lanes, Expr::constant(DType::UINT32, 0));
            any.cast(DType::INT32)
        }
        // The first active lane.
        Op::PtxElectSync => {
            let mask = Expr::constant(DType::UINT32, u32::MAX.into());
            let here = vec![mask, Expr::constant(DType::BOOL, 1)];
            let lanes = Expr::call(Op::CudaBallotSync, DType::UINT32, here);
            let first = Expr::call(Op::CudaFfsU32, DType::INT32, vec![lanes]);
            let register = vec![Expr::int32(32), Expr::string("laneid")];
            let lane = Expr::call(Op::PtxFetchRegister, DType::INT32, register);
            Expr::binary(BinOp::Eq, first, lane + Expr::int32(1)).cast(DType::UINT32)
        }
        _ => return None,
    })
}

impl Compiler<'_> {
    /// The value of an instruction of this file.
    pub(super) fn instruction(&mut self, op: Op, args: &[Expr]) -> Result<Option<Vec<Val>>> {
        if op == Op::PtxElectSync {
            self.emit(Inst::Converged);
        }
        let value = match meaning(op, args) {
            Some(value) => self.values(&value)?,
            None => match self.arithmetic(op, args)? {
                Some((_, values)) => values,
                None => return Ok(None),
            },
        };
        Ok(Some(value))
    }

    /// An instruction that stores its result.
    pub(super) fn storing_instruction(&mut self, op: Op, args: &[Expr]) -> Result<bool> {
        let Some((Some(destination), values)) = self.arithmetic(op, args)? else {
            return Ok(false);
        };
        let [value] = values[..] else {
            return error(self.span, "an instruction stores one value");
        };
        let pointer = self.value(&destination)?;
        let zero = self.integer(Kind::I64, 0)?;
        self.store_offset(pointer, zero, value, "the destination")?;
        Ok(true)
    }

    /// Destination and value of `add`, `sub`, `mul` and `fma`.
    fn arithmetic(&mut self, op: Op, args: &[Expr]) -> Result<Option<(Option<Expr>, Vec<Val>)>> {
        use Op::*;
        let dtype = match op {
            PtxAddF32 | PtxSubF32 | PtxMulF32 | PtxFmaF32 => DType::FLOAT32,
            PtxAddF64 | PtxSubF64 | PtxMulF64 | PtxFmaF64 => DType::FLOAT64,
            PtxAddF32x2 | PtxSubF32x2 | PtxMulF32x2 | PtxFmaF32x2 => F32X2,
            _ => return Ok(None),
        };
        let operands = match op {
            PtxFmaF32 | PtxFmaF64 | PtxFmaF32x2 => 3,
            _ => 2,
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
                operation: match op {
                    PtxAddF32 | PtxAddF64 | PtxAddF32x2 => Operation::Add,
                    PtxSubF32 | PtxSubF64 | PtxSubF32x2 => Operation::Sub,
                    PtxMulF32 | PtxMulF64 | PtxMulF32x2 => Operation::Mul,
                    _ => Operation::Fma,
                },
                double: dtype == DType::FLOAT64,
                rounding: match Rounding::of(rounding) {
                    Ok(rounding) => rounding,
                    Err(message) => return error(self.span, message),
                },
                ftz: flag(at + 1),
                // Packed forms have no such flag: the next argument is `dps`.
                sat: dtype != F32X2 && flag(at + 2),
            };
            let values = self.rounded_lanes(rounded, (0..operands).map(value), dtype)?;
            return Ok(Some((destination, values)));
        }
        let result = match op {
            PtxAddF32 | PtxAddF64 | PtxAddF32x2 => Expr::binary(BinOp::Add, value(0), value(1)),
            PtxSubF32 | PtxSubF64 | PtxSubF32x2 => Expr::binary(BinOp::Sub, value(0), value(1)),
            PtxMulF32 | PtxMulF64 | PtxMulF32x2 => Expr::binary(BinOp::Mul, value(0), value(1)),
            _ => Expr::call(Op::Fma, dtype, vec![value(0), value(1), value(2)]),
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
        Ok(Some((destination, self.values(&result)?)))
    }

    /// The lanes of operands of a dtype, lane by lane; two float32 are packed again.
    fn rounded_lanes(
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
