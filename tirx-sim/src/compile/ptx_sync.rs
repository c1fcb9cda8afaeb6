//! Timers of a profile, and stores without modifiers, in terms of plain loads and stores.

use tirx_ir::intrin::Op;
use tirx_ir::{BinOp, DType, Expr, ExprKind, Stmt, Var, at};
use tirx_source::diagnostic::Result;

use super::Compiler;
use super::call::Call;
use tirx_sim_machine::bytecode::{AtomicOp, Inst};
use tirx_sim_machine::bytecode::{Scope, Strong};
use tirx_sim_machine::numeric::Kind;

/// A pointer, some bytes further.
fn moved(pointer: &Expr, bytes: Expr) -> Expr {
    Expr::call(
        Op::HandleAddByteOffset,
        pointer.dtype,
        vec![pointer.clone(), bytes],
    )
}

fn register(name: &str) -> Expr {
    let args = vec![Expr::int32(32), Expr::string(name)];
    Expr::call(Op::PtxFetchRegister, DType::INT32, args)
}

fn shifted(e: Expr, bits: i128) -> Expr {
    let bits = Expr::constant(e.dtype, bits);
    Expr::call(Op::ShiftLeft, e.dtype, vec![e, bits])
}

fn or(a: Expr, b: Expr) -> Expr {
    Expr::call(Op::BitwiseOr, a.dtype, vec![a, b])
}

fn wide(e: Expr) -> Expr {
    e.cast(DType::UINT32).cast(DType::UINT64)
}

/// The bytes of an element behind a pointer.
fn element(pointer: &Expr) -> DType {
    match pointer
        .as_call(Op::AddressOf)
        .and_then(|args| args.get(at!(AddressOf.obj)))
    {
        Some(load) => load.dtype,
        None => match pointer.as_var().map(|v| v.ty()) {
            Some(tirx_ir::Type::Pointer { element, .. }) => *element,
            _ => DType::UINT32,
        },
    }
}

impl Compiler<'_> {
    /// `ld.global.acquire` to where `res` points.
    pub(super) fn load_acquire(&mut self, call: &Call<'_>) -> Result<()> {
        let (to, from) = (self.argument(call, "res")?, self.argument(call, "addr")?);
        let kind = self.kind(element(to))?;
        let nothing = self.bits(kind, 0)?;
        let strong = Strong::new("acquire", Scope::Gpu, true, false);
        let value = self.atomic_of(AtomicOp::Read, strong, from, &[nothing])?;
        self.store_pointer(to, kind, &[value])
    }

    /// A predicated load of a float, which is 0 where the predicate is false, to an element of `reg`.
    pub(super) fn load_if(&mut self, call: &Call<'_>) -> Result<()> {
        let named = |name: &str| self.argument(call, name).cloned();
        let (guard, from, registers, element) = (
            named("guard")?,
            named("addr")?,
            named("reg")?,
            named("local_addr")?,
        );
        let load = Expr::call(Op::CudaLdg, DType::FLOAT32, vec![from]);
        let zero = Expr::float(DType::FLOAT32, 0.0);
        let choice = vec![guard.cast(DType::BOOL), load, zero];
        let value = self.value(&Expr::call(Op::IfThenElse, DType::FLOAT32, choice))?;
        let four = Expr::constant(element.dtype, 4);
        let to = moved(&registers, element * four);
        self.store_pointer(&to, Kind::F32, &[value])
    }

    /// `st.bulk`.
    pub(super) fn fill_with_zeros(&mut self, call: &Call<'_>) -> Result<()> {
        let bytes = self.argument(call, "num_bytes")?.clone().cast(DType::INT32);
        let multiple = Expr::binary(BinOp::Mod, bytes.clone(), Expr::int32(8));
        let whole = Expr::binary(BinOp::Eq, multiple, Expr::int32(0));
        self.assertion(&whole, "st.bulk writes a multiple of 8 bytes".to_string())?;
        let i = Var::new("i", DType::INT32);
        let to = moved(self.argument(call, "ptr")?, Expr::var(&i) * Expr::int32(8));
        let store = Op::PtxSt
            .call()
            .set("address", to)
            .list("values", [Expr::constant(DType::UINT64, 0)])
            .set("space", "shared::cta")
            .set("ptx_type", "b64");
        let count = Expr::binary(BinOp::Div, bytes, Expr::int32(8));
        self.statement(&Stmt::for_serial(
            &i,
            count,
            store.at(self.span).stmt(),
            self.span,
        ))
    }

    pub(super) fn timer_init(&mut self, call: &Call<'_>) -> Result<()> {
        let buffer = &call.args[at!(CudaTimerInit.profiler_buffer)];
        let tag = &call.args[at!(CudaTimerInit.profiler_tag)];
        let offset = &call.args[at!(CudaTimerInit.profiler_write_offset)];
        let groups = &call.args[at!(CudaTimerInit.num_groups)];
        let group = &call.args[at!(CudaTimerInit.group_id)];
        let size = ["nctaid.x", "nctaid.y", "nctaid.z"].map(register);
        let at = ["ctaid.x", "ctaid.y", "ctaid.z"].map(register);
        let [x, y, z] = at;
        let block = (z * size[1].clone() + y) * size[0].clone() + x;
        let [width, height, depth] = size;
        let blocks = wide(width * height * depth);
        let thread = register("tid.x");
        let first = Expr::binary(BinOp::Eq, or(block.clone(), thread), Expr::int32(0));
        let condition = self.value(&first)?;
        let lanes = self.vector(condition)?;
        let part = self.divide(lanes);
        let header = self.value(&or(shifted(wide(groups.clone()), 32), blocks))?;
        self.store_pointer(buffer, Kind::U64, &[header])?;
        self.meet(part, false);
        let row = block * groups.clone().cast(DType::INT32) + group.clone().cast(DType::INT32);
        let next = self.value(&(row.clone() + Expr::int32(1)).cast(DType::UINT32))?;
        self.store_pointer(offset, Kind::U32, &[next])?;
        let own = self.value(&shifted(wide(row), 12))?;
        self.store_pointer(tag, Kind::U64, &[own])
    }

    /// Records the time and the event where the thread's condition holds.
    pub(super) fn timer(&mut self, call: &Call<'_>, what: i128) -> Result<()> {
        let buffer = self.argument(call, "profiler_buffer")?;
        let tag = self.argument(call, "profiler_tag")?;
        let offset = self.argument(call, "profiler_write_offset")?;
        let stride = self.argument(call, "profiler_write_stride")?;
        let condition = self.condition(self.argument(call, "leader_cond")?)?;
        let lanes = self.vector(condition)?;
        let part = self.divide(lanes);
        let now = self.temp(Kind::I64)?;
        self.emit(Inst::Clock { d: now });
        let now = super::registers::Val::vector(Kind::U64, now);
        let high = self.integer(Kind::U64, 32)?;
        let now = self.bin(tirx_sim_machine::alu::Bin::Shl, Kind::U64, Kind::U64, now, high)?;
        let kind = Expr::constant(DType::UINT64, what);
        let event = match call.named.get("event_type") {
            Some(event) => or(shifted(wide(event.clone()), 2), kind),
            None => kind,
        };
        let event = self.value(&event)?;
        let own = self.load_pointer(tag, Kind::U64, 1)?[0];
        let event = self.bin(tirx_sim_machine::alu::Bin::Or, Kind::U64, Kind::U64, own, event)?;
        let record = self.bin(tirx_sim_machine::alu::Bin::Or, Kind::U64, Kind::U64, now, event)?;
        let at = self.load_pointer(offset, Kind::U32, 1)?[0];
        let base = self.value(buffer)?;
        let name = match &buffer.kind {
            ExprKind::Var(v) => v.name().to_string(),
            _ => "the profile".to_string(),
        };
        self.store_offset(base, at, record, &name)?;
        let stride = self.value(&stride.clone().cast(DType::UINT32))?;
        let next = self.bin(tirx_sim_machine::alu::Bin::Add, Kind::U32, Kind::U32, at, stride)?;
        self.store_pointer(offset, Kind::U32, &[next])?;
        self.meet(part, false);
        Ok(())
    }
}
