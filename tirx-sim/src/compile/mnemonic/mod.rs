//! Instructions that are given by their mnemonics.
//!
//! A line of the tables has a meaning, and [`simulated`] says which function compiles it, or why none does. Most instructions
//! write registers whose values are expressions of the operands, in terms of the IR's own expressions and of operations that
//! have a row. The others act: barriers, fences, copies.

mod acts;
mod arithmetic;
mod asynchronous;
mod atomics;
mod bits;
mod compare;
mod exchange;
mod lanes;
mod parts;
mod simulated;
mod tensor_map;
mod wide;

use tirx_ir::intrin::Op;
use tirx_ir::intrin::mnemonic::call::{SINK, place_dtype};
use tirx_ir::intrin::mnemonic::{Direction, InstructionCall};
use tirx_ir::{BinOp, DType, Expr, Stmt, Var};
use tirx_source::diagnostic::{Diagnostic, Result, error};

use super::Compiler;
use super::registers::Val;
pub(super) use simulated::reasons;
pub use simulated::simulates;
use simulated::{NotSimulated, Simulated, simulated};
use tirx_sim_machine::bytecode::{AtomicOp, R};
use tirx_sim_machine::numeric::Kind;

/// Two float32 in one register, and likewise of the other formats.
const F32X2: DType = DType::FLOAT32.with_lanes(2);
const F16X2: DType = DType::FLOAT16.with_lanes(2);
const BF16X2: DType = DType::BFLOAT16.with_lanes(2);

/// The values of the registers that an instruction writes: by destination, one for each register.
type Written = Vec<(&'static str, Vec<Expr>)>;

impl Compiler<'_> {
    /// An instruction that is given by its mnemonic.
    pub(super) fn mnemonic(&mut self, args: &[Expr]) -> Result<()> {
        let call = match InstructionCall::read(args) {
            Ok(call) => call,
            Err(message) => return error(self.span, format!("T.ptx: {message}")),
        };
        if let Some(predicate) = call.predicate {
            let mut list = args[..args.len() - 1].to_vec();
            list[0] = Expr::string(call.tokens.text());
            let inner = Stmt::evaluate(Expr::call(Op::PtxInstruction, DType::VOID, list).at(self.span));
            return self.statement(&Stmt::if_else(predicate.clone(), inner, None, self.span));
        }
        match simulated(call.tokens.instruction.meaning) {
            Simulated::Values(values) => {
                let args = self.with_read_operands(args, &call)?;
                let call = match InstructionCall::read(&args) {
                    Ok(call) => call,
                    Err(message) => return error(self.span, format!("T.ptx: {message}")),
                };
                match values(&call) {
                    Some(written) => self.write(&call, written),
                    None => self.refuse(&call, &reasons::OPERANDS),
                }
            }
            Simulated::Acts(act) => act(self, &call),
            Simulated::Hint => Ok(()),
            Simulated::Row => self.refuse(&call, &reasons::MODIFIERS),
            Simulated::Not(reason) => self.refuse(&call, reason),
        }
    }

    /// The arguments of a call, with the operands that the instruction reads [computed](Compiler::computed).
    fn with_read_operands(&mut self, args: &[Expr], call: &InstructionCall) -> Result<Vec<Expr>> {
        let is_read = |arg: &Expr| {
            let mut reads = call
                .operands
                .iter()
                .filter(|(operand, _)| operand.direction == Direction::Read);
            reads.any(|(_, list)| list.iter().any(|operand| std::ptr::eq(operand, arg)))
        };
        let of = |arg| {
            if is_read(arg) {
                self.computed(arg)
            } else {
                Ok(arg.clone())
            }
        };
        args.iter().map(of).collect()
    }

    /// Says that an instruction is not simulated.
    pub(super) fn refuse<T>(&self, call: &InstructionCall, reason: &NotSimulated) -> Result<T> {
        let NotSimulated { why, instead } = reason;
        let message = format!("the simulator does not run {}: {why}", call.tokens.text());
        let help = format!("{instead}; the kernel compiles for a GPU as it is");
        Err(Box::new(Diagnostic::new(self.span, message).help(help)))
    }

    /// An operand as it stands in the call.
    fn named_operand<'e>(&self, call: &InstructionCall<'e>, name: &str) -> Result<&'e Expr> {
        match call.get(name) {
            Some(operand) => Ok(operand),
            None => error(
                self.span,
                format!("{} has no operand \"{name}\"", call.tokens.text()),
            ),
        }
    }

    /// Operands as values of the dtypes in which their types compute.
    fn operands<const N: usize>(&self, call: &InstructionCall, names: [&str; N]) -> Result<[Expr; N]> {
        let found: Option<Vec<Expr>> = names.into_iter().map(|name| operand(call, name)).collect();
        match found.and_then(|values| values.try_into().ok()) {
            Some(values) => Ok(values),
            None => self.refuse(call, &reasons::OPERANDS),
        }
    }

    /// Writes the register `d`.
    fn write_one(&mut self, call: &InstructionCall, value: Expr) -> Result<()> {
        self.write(call, vec![("d", vec![value])])
    }

    /// Writes registers: all values are computed first.
    fn write(&mut self, call: &InstructionCall, written: Written) -> Result<()> {
        let mut stores = Vec::new();
        for (name, values) in written {
            let registers = call.list(name);
            for (register, value) in registers.iter().zip(values) {
                if register.as_str() == Some(SINK) {
                    continue;
                }
                let Some(dtype) = place_dtype(register) else {
                    return error(
                        self.span,
                        format!("\"{name}\" of {} is no register", call.tokens.text()),
                    );
                };
                let value = as_dtype(value, dtype);
                let kind = self.kind(dtype)?;
                let values = self.values(&value)?;
                let mut converted = Vec::new();
                for value in values {
                    converted.push(self.convert(value, kind)?);
                }
                stores.push((register, kind, converted));
            }
        }
        for (register, kind, values) in stores {
            self.store_pointer(register, kind, &values)?;
        }
        Ok(())
    }
}

impl Compiler<'_> {
    /// Values as an expression, for [`Compiler::write`].
    pub(super) fn known(&mut self, dtype: DType, values: Vec<Val>) -> Expr {
        let var = Var::new("value", dtype);
        self.vars.insert(var.clone(), values);
        Expr::var(&var)
    }

    /// An expression in a vector register.
    fn in_vector(&mut self, e: &Expr, kind: Kind) -> Result<R> {
        let value = self.value(e)?;
        let value = self.convert(value, kind)?;
        self.vector(value)
    }
}

/// One register `d`.
fn one(value: Expr) -> Option<Written> {
    Some(vec![("d", vec![value])])
}

fn reinterpret(e: Expr, dtype: DType) -> Expr {
    match e.dtype == dtype {
        true => e,
        false => Expr::call(Op::Reinterpret, dtype, vec![e]),
    }
}

/// A value in the dtype of the register that it goes to: the same bits where there are as many, else as an integer.
fn as_dtype(value: Expr, dtype: DType) -> Expr {
    let from = value.dtype;
    let bits = |d: DType| u32::from(d.bits) * u32::from(d.lanes);
    match () {
        () if from == dtype => value,
        () if from.is_bool() || dtype.is_bool() => value.cast(dtype),
        () if bits(from) == bits(dtype) && (from.lanes > 1 || !from.is_integer() || !dtype.is_integer()) => {
            reinterpret(value, dtype)
        }
        () => value.cast(dtype),
    }
}

/// The operation of an atomic update.
pub(super) fn update_of(op: &str) -> Option<AtomicOp> {
    Some(match op {
        "add" => AtomicOp::Add,
        "and" => AtomicOp::And,
        "or" => AtomicOp::Or,
        "xor" => AtomicOp::Xor,
        "min" => AtomicOp::Min,
        "max" => AtomicOp::Max,
        "inc" => AtomicOp::Inc,
        "dec" => AtomicOp::Dec,
        _ => return None,
    })
}

/// The dtype in which a type of PTX computes.
fn natural(ty: &str) -> Option<DType> {
    Some(match ty {
        "f16" => DType::FLOAT16,
        "bf16" => DType::BFLOAT16,
        "f32" => DType::FLOAT32,
        "f64" => DType::FLOAT64,
        "f32x2" => F32X2,
        "f16x2" => F16X2,
        "bf16x2" => BF16X2,
        "pred" => DType::BOOL,
        "s8" => DType::INT8,
        "s16" => DType::INT16,
        "s32" => DType::INT32,
        "s64" => DType::INT64,
        "b8" | "u8" => DType::UINT8,
        "b16" | "u16" => DType::UINT16,
        "b32" | "u32" | "b32i" => DType::UINT32,
        "b64" | "u64" | "b64i" => DType::UINT64,
        _ => return None,
    })
}

/// An operand as a value of the dtype in which its type computes; with `.ftz`, a zero of its sign in place of a subnormal number.
fn operand(call: &InstructionCall, name: &str) -> Option<Expr> {
    let value = unflushed(call, name)?;
    Some(match call.tokens.has("ftz") {
        true => flushed(value),
        false => value,
    })
}

/// The same as it is.
fn unflushed(call: &InstructionCall, name: &str) -> Option<Expr> {
    let (operand, list) = call
        .operands
        .iter()
        .find(|(o, _)| o.name == name && o.direction == Direction::Read)?;
    let ty = call.tokens.type_of(operand.ty);
    Some(as_dtype(list.first()?.clone(), natural(ty)?))
}

/// The dtype of a value's bits.
fn bits_of(e: &Expr) -> DType {
    DType::uint(e.dtype.bits * e.dtype.lanes as u8)
}

/// The sign bits.
fn sign(e: &Expr) -> i128 {
    let one = 1i128 << (e.dtype.bits - 1);
    (0..u32::from(e.dtype.lanes)).fold(0, |mask, lane| mask | one << (lane * u32::from(e.dtype.bits)))
}

fn signless(e: Expr) -> Expr {
    let (bits, mask, dtype) = (bits_of(&e), sign(&e), e.dtype);
    let keep = bits.max_int().unwrap_or(0) & !mask;
    let e = as_dtype(e, bits);
    as_dtype(and(e, Expr::constant(bits, keep)), dtype)
}

/// A zero of its sign in place of a subnormal float, in each lane.
fn flushed(e: Expr) -> Expr {
    let dtype = e.dtype;
    if !dtype.is_float() && !dtype.is_bfloat16() {
        return e;
    }
    // The least normal number.
    let least: i128 = match (dtype.is_bfloat16(), dtype.bits) {
        (true, _) => 0x0080,
        (_, 16) => 0x0400,
        (_, 32) => 0x0080_0000,
        _ => 0x0010 << 48,
    };
    let bits = bits_of(&e);
    let each = (0..u32::from(dtype.lanes)).fold(0, |all, lane| all | least << (lane * u32::from(dtype.bits)));
    let least = as_dtype(Expr::constant(bits, each), dtype);
    let zero = as_dtype(
        and(as_dtype(e.clone(), bits), Expr::constant(bits, sign(&e))),
        dtype,
    );
    Expr::select(binary(BinOp::Lt, signless(e.clone()), least), zero, e)
}

/// A constant of a dtype.
fn constant(dtype: DType, value: i128) -> Expr {
    match dtype.is_float() || dtype.is_bfloat16() {
        true => {
            let one = Expr::float(dtype.element(), value as f64);
            if dtype.lanes > 1 {
                Expr::broadcast(one, dtype.lanes)
            } else {
                one
            }
        }
        false => Expr::constant(dtype, value),
    }
}

/// A constant of 32 bits.
fn word(n: i128) -> Expr {
    Expr::constant(DType::UINT32, n)
}

fn binary(op: BinOp, a: Expr, b: Expr) -> Expr {
    Expr::binary(op, a, b)
}

/// An integer dtype of twice the width, in which products and saturated sums are exact.
fn twice_as_wide(dtype: DType) -> Option<DType> {
    match (dtype.bits, dtype.is_uint()) {
        (64.., _) => None,
        (bits, true) => Some(DType::uint(bits * 2)),
        (bits, false) => Some(DType::int(bits * 2)),
    }
}

/// The exact result of integers.
fn exact(op: BinOp, a: Expr, b: Expr) -> Option<Expr> {
    let wide = twice_as_wide(a.dtype)?;
    Some(binary(op, a.cast(wide), b.cast(wide)))
}

/// The result of integers, or the nearest number that their dtype has.
fn saturated(op: BinOp, a: Expr, b: Expr) -> Option<Expr> {
    let dtype = a.dtype;
    let e = exact(op, a, b)?;
    let (low, high) = (
        Expr::constant(e.dtype, dtype.min_int()?),
        Expr::constant(e.dtype, dtype.max_int()?),
    );
    Some(binary(BinOp::Min, binary(BinOp::Max, e, low), high).cast(dtype))
}

fn and(a: Expr, b: Expr) -> Expr {
    let dtype = a.dtype;
    Expr::call(Op::BitwiseAnd, dtype, vec![a, b])
}

fn or(a: Expr, b: Expr) -> Expr {
    let dtype = a.dtype;
    Expr::call(Op::BitwiseOr, dtype, vec![a, b])
}

fn xor(a: Expr, b: Expr) -> Expr {
    let dtype = a.dtype;
    Expr::call(Op::BitwiseXor, dtype, vec![a, b])
}

/// `a` shifted to the left by fewer bits than it has.
fn left(a: Expr, n: Expr) -> Expr {
    let dtype = a.dtype;
    let n = n.cast(dtype);
    Expr::call(Op::ShiftLeft, dtype, vec![a, n])
}

/// `a` shifted to the right by fewer bits than it has.
fn right(a: Expr, n: Expr) -> Expr {
    let dtype = a.dtype;
    let n = n.cast(dtype);
    Expr::call(Op::ShiftRight, dtype, vec![a, n])
}
