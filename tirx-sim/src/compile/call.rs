//! Calls of intrinsics: [`meaning`](super::meaning) says what each does. Here are those that need little.

use tirx_ir::intrin::{Op, Operands};
use tirx_ir::{DType, Expr, ExprKind};
use tirx_source::diagnostic::{Result, error};

use super::Compiler;
use super::meaning::{Meaning, meaning};
use super::registers::Val;
use tirx_sim_machine::alu::Bin;
use tirx_sim_machine::bytecode::{AsyncInst, Inst};
use tirx_sim_machine::numeric::Kind;

/// A call that is compiled.
pub(super) struct Call<'e> {
    pub(super) op: Op,
    pub(super) args: &'e [Expr],
    /// Of the value; void where it is called for its effect.
    pub(super) dtype: DType,
    /// The arguments by their names.
    pub(super) named: Operands<'e>,
}

impl Compiler<'_> {
    /// An expression for its effect.
    pub(super) fn evaluate(&mut self, e: &Expr) -> Result<()> {
        if e.dtype.is_void() || e.as_call(Op::Assume).is_some() {
            let outer = self.span;
            self.span = e.span.or(outer);
            let charged = self.charge(e.span);
            let result = match &e.kind {
                ExprKind::Call { op, args } => self.action(*op, args),
                _ => error(self.span, "an expression without a value"),
            };
            self.span = outer;
            self.charged = charged;
            return result;
        }
        self.values(e).map(drop)
    }

    /// A call for its effect.
    fn action(&mut self, op: Op, args: &[Expr]) -> Result<()> {
        let call = self.checked(op, args, DType::VOID)?;
        self.count(1);
        match meaning(op) {
            Meaning::Effect(run) => run(self, &call),
            Meaning::Either(run) => run(self, &call).map(drop),
            Meaning::Value(_) => error(self.span, format!("T.{} has a value", op.info().script)),
            Meaning::Lowered | Meaning::Host => self.unknown(op),
        }
    }

    /// A call with a value.
    pub(super) fn call(&mut self, op: Op, args: &[Expr], dtype: DType) -> Result<Vec<Val>> {
        let call = self.checked(op, args, dtype)?;
        match meaning(op) {
            Meaning::Value(run) | Meaning::Either(run) => run(self, &call),
            Meaning::Effect(_) => error(self.span, format!("T.{} has no value", op.info().script)),
            Meaning::Lowered | Meaning::Host => self.unknown(op),
        }
    }

    fn checked<'e>(&self, op: Op, args: &'e [Expr], dtype: DType) -> Result<Call<'e>> {
        match op.row().read_settled(args) {
            Ok(named) => Ok(Call {
                op,
                args,
                dtype,
                named,
            }),
            Err(message) => error(self.span, format!("T.{} {message}", op.info().script)),
        }
    }

    /// An argument of a call that its row demands.
    pub(super) fn argument<'e>(&self, call: &Call<'e>, name: &str) -> Result<&'e Expr> {
        match call.named.get(name) {
            Some(operand) => Ok(operand),
            None => error(
                self.span,
                format!("T.{} has no argument \"{name}\"", call.op.info().script),
            ),
        }
    }

    /// The value of an argument that is a constant from 0 on.
    pub(super) fn number(&self, call: &Call<'_>, name: &str) -> Result<usize> {
        self.whole(self.argument(call, name)?)
    }

    fn unknown<T>(&self, op: Op) -> Result<T> {
        error(
            self.span,
            format!("the simulator does not run T.{} yet", op.info().script),
        )
    }
}

/// Calls that are one instruction, or none.
impl Compiler<'_> {
    pub(super) fn act(&mut self, inst: Inst) -> Result<()> {
        self.emit(inst);
        Ok(())
    }

    /// `break` or `continue`.
    pub(super) fn of_loop(&mut self, inst: Inst) -> Result<()> {
        if self.loops.is_empty() {
            return error(self.span, "break and continue belong into a loop");
        }
        self.emit(inst);
        Ok(())
    }

    pub(super) fn set_registers(&mut self, call: &Call<'_>) -> Result<()> {
        let count = call.named.int("reg_count");
        let count = count.and_then(|n| u16::try_from(n).ok()).unwrap_or(u16::MAX);
        let more = !call.named.get("inc").is_some_and(|more| more.is_int(0));
        self.push_async(AsyncInst::SetRegisters { count, more })
    }

    pub(super) fn launch_dependents(&mut self) -> Result<()> {
        self.code.launches_dependents = true;
        Ok(())
    }

    pub(super) fn clock(&mut self) -> Result<Val> {
        let d = self.temp(Kind::I64)?;
        self.count(1);
        self.emit(Inst::Clock { d });
        Ok(Val::vector(Kind::I64, d))
    }

    /// Evaluates the arguments of an event.
    pub(super) fn event(&mut self, args: &[Expr]) -> Result<()> {
        for argument in args.iter().filter(|a| a.as_str().is_none()) {
            self.values(argument)?;
        }
        Ok(())
    }

    /// An event that a later one refers to.
    pub(super) fn event_token(&mut self, args: &[Expr]) -> Result<Val> {
        self.event(args)?;
        self.bits(Kind::U32, 0)
    }
}

/// Values that need no computation.
impl Compiler<'_> {
    pub(super) fn large_constant(&mut self, call: &Call<'_>) -> Result<Val> {
        match (call.named.int("low"), call.named.int("high")) {
            (Some(low), Some(high)) => {
                let value = ((high as u64) << 32) | (low as u64 & 0xffff_ffff);
                self.bits(Kind::U64, value)
            }
            _ => error(self.span, "large_uint_imm takes constants"),
        }
    }

    pub(super) fn undefined(&mut self, dtype: DType) -> Result<Vec<Val>> {
        let kind = self.kind(dtype)?;
        let zero = self.bits(kind, 0)?;
        Ok(vec![zero; dtype.lanes as usize])
    }

    /// The lower and the upper half of a vector.
    pub(super) fn halves(&mut self, e: &Expr) -> Result<(Vec<Val>, Vec<Val>)> {
        let mut low = self.values(e)?;
        let high = low.split_off(low.len() / 2);
        Ok((low, high))
    }

    /// The lanes of several vectors.
    pub(super) fn joined(&mut self, parts: &[Expr]) -> Result<Vec<Val>> {
        let mut values = Vec::new();
        for part in parts {
            values.extend(self.values(part)?);
        }
        Ok(values)
    }

    pub(super) fn is_null(&mut self, pointer: &Expr) -> Result<Val> {
        let pointer = self.value(pointer)?;
        let null = self.bits(Kind::Ptr, 0)?;
        self.bin(Bin::Eq, Kind::Ptr, Kind::Bool, pointer, null)
    }

    /// A pointer moved by elements of a dtype, which is that of `ptype`.
    pub(super) fn access_ptr(&mut self, call: &Call<'_>) -> Result<Val> {
        let dtype = self.argument(call, "ptype")?.dtype;
        let bytes = dtype.element().bytes() as u32 * u32::from(dtype.lanes.max(1));
        self.moved(
            self.argument(call, "data")?,
            self.argument(call, "offset")?,
            bytes,
        )
    }

    /// `ldg`: the memory is only read.
    pub(super) fn load_through_cache(&mut self, call: &Call<'_>) -> Result<Vec<Val>> {
        let kind = self.kind(call.dtype)?;
        self.load_constant(self.argument(call, "addr")?, kind, call.dtype.lanes)
    }

    /// A generic pointer as an address in shared memory.
    pub(super) fn raw_shared_address(&mut self, pointer: &Expr) -> Result<Val> {
        let pointer = self.value(pointer)?;
        self.shared_address(pointer)
    }
}
