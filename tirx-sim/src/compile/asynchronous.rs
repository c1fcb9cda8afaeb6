//! Asynchronous copies and mbarriers.

use tirx_ir::intrin::Op;
use tirx_ir::{DType, Expr};
use tirx_source::diagnostic::{Result, error};

use super::Compiler;
use super::call::Call;
use super::mnemonic::update_of;
use super::registers::Val;
use tirx_sim_machine::bytecode::{AsyncInst, BulkInst, Inst, MbarrierInst, MbarrierWhat, R, TileInst};
use tirx_sim_machine::bytecode::{Class, Direction, Scope};
use tirx_sim_machine::numeric::Kind;

impl Compiler<'_> {
    /// `cp.async`.
    pub(super) fn copy(&mut self, call: &Call<'_>) -> Result<()> {
        let predicate = match call.named.int("predicate") {
            Some(-1) => None,
            _ => self.operand(call, "predicate", Kind::I32)?,
        };
        let to = self.address_operand(call, "dst_ptr")?;
        let from = self.address_operand(call, "src_ptr")?;
        self.push_async(AsyncInst::Copy {
            to,
            from,
            bytes: call.named.int("cp_size").unwrap_or(16) as u8,
            predicate,
            zeros: call.named.text("fill_mode") == "zero",
            read: None,
        })
    }

    /// Waits until all groups but the last `left` are complete, or have been read.
    pub(super) fn wait_for_group(&mut self, call: &Call<'_>, class: Class, left: &str) -> Result<()> {
        let left = Some(self.constant_operand(call, left)?);
        let read = call.named.get("read").is_some() && call.named.flag("read");
        self.push_async(AsyncInst::Wait { class, left, read })
    }

    /// `cp.async.mbarrier.arrive`.
    pub(super) fn arrive_when_copied(&mut self, call: &Call<'_>) -> Result<()> {
        let barrier = self.address_operand(call, "bar")?;
        let noinc = call.named.flag("noinc");
        self.push_async(AsyncInst::ArriveWhenCopied { barrier, noinc })
    }

    pub(super) fn push_async(&mut self, inst: AsyncInst) -> Result<()> {
        let Ok(id) = u16::try_from(self.code.asynchronous.len()) else {
            return error(
                self.span,
                "the kernel has too many asynchronous instructions for the simulator",
            );
        };
        self.code.asynchronous.push(inst);
        self.emit(Inst::Async { id });
        Ok(())
    }

    /// An operand in a vector register, if it is present.
    fn operand(&mut self, call: &Call<'_>, name: &str, kind: Kind) -> Result<Option<R>> {
        let Some(e) = call.named.get(name) else {
            return Ok(None);
        };
        let value = self.value(e)?;
        let value = self.convert(value, kind)?;
        self.vector(value).map(Some)
    }

    fn constant_operand(&self, call: &Call<'_>, name: &str) -> Result<u32> {
        match call.named.int(name).and_then(|n| u32::try_from(n).ok()) {
            Some(n) => Ok(n),
            None => error(self.span, format!("{name} is no number that is known")),
        }
    }

    /// An operand that the call must have.
    pub(super) fn given<'e>(&self, call: &Call<'e>, name: &str) -> Result<&'e Expr> {
        match call.named.get(name) {
            Some(e) => Ok(e),
            None => error(self.span, format!("T.{} without {name}", call.op.info().script)),
        }
    }

    /// A pointer, or an address of 32 bits in shared memory, as a 64-bit address.
    fn address_operand(&mut self, call: &Call<'_>, name: &str) -> Result<R> {
        let e = self.given(call, name)?;
        self.address_value(e)
    }

    /// An address that is an operand of an instruction: what the instruction accesses from there on must be in the buffer that
    /// the operand names.
    pub(super) fn address_value(&mut self, e: &Expr) -> Result<R> {
        match self.operand_in_view(e)? {
            Some(address) => {
                let address = self.convert(address, Kind::U64)?;
                self.vector(address)
            }
            None => self.pointer_value(e),
        }
    }

    /// An address as a value that the kernel may compute with.
    pub(super) fn pointer_value(&mut self, e: &Expr) -> Result<R> {
        // The address of a parameter that is a tensor map: its value is the address.
        let e = match e.as_call(Op::AddressOf) {
            Some([inner]) if inner.as_var().is_some() => inner,
            _ => e,
        };
        let value = match self.alias(e) {
            Some(home) => self.pointer_to(&home)?,
            None => self.value(e)?,
        };
        if e.dtype == DType::UINT32 || e.dtype == DType::INT32 {
            let a = self.vector(value)?;
            let d = self.temp(Kind::Ptr)?;
            self.emit(Inst::SharedPointer { d, a });
            return Ok(d);
        }
        let value = self.convert(value, Kind::U64)?;
        self.vector(value)
    }

    /// A test that may fail: its value says whether the phase is complete.
    pub(super) fn test_barrier(&mut self, call: &Call<'_>) -> Result<Vec<Val>> {
        let complete = self.mbarrier(call, MbarrierWhat::Test, "phase", Scope::Cta)?;
        Ok(complete.into_iter().collect())
    }

    /// `count` names the operand that says how many, or which phase; `scope` is that of the instruction's name.
    pub(super) fn mbarrier(
        &mut self,
        call: &Call<'_>,
        what: MbarrierWhat,
        count: &str,
        scope: Scope,
    ) -> Result<Option<Val>> {
        let name = match call.named.get("bar") {
            Some(_) => "bar",
            None => "barrier",
        };
        let barrier = self.address_operand(call, name)?;
        let count = match count {
            "" => None,
            count => self.operand(call, count, Kind::U32)?,
        };
        let remote = self.operand(call, "remote", Kind::U32)?;
        let predicate = self.operand(call, "pred", Kind::I32)?;
        let d = match what {
            MbarrierWhat::Test => Some(self.temp(Kind::U32)?),
            _ => None,
        };
        self.push_async(AsyncInst::Mbarrier(MbarrierInst {
            what,
            barrier,
            count,
            remote,
            predicate,
            relaxed: call.named.text("sem") == "relaxed" || call.op == Op::PtxMbarrierTryWaitRelaxed,
            cluster: call.named.text("scope") == "cluster" || scope == Scope::Cluster,
            drops: false,
            state: None,
            d,
        }))?;
        Ok(d.map(|d| Val::vector(Kind::U32, d)))
    }

    /// A bulk copy: `bytes` and `barrier` name operands.
    pub(super) fn bulk(&mut self, call: &Call<'_>, bytes: &str, barrier: Option<&str>) -> Result<()> {
        let to = self.address_operand(call, "dst_ptr")?;
        let from = self.address_operand(call, "src_ptr")?;
        let Some(bytes) = self.operand(call, bytes, Kind::U32)? else {
            return error(self.span, "a bulk copy without a size");
        };
        let barrier = match barrier {
            Some(name) => Some(self.address_operand(call, name)?),
            None => None,
        };
        let inst = AsyncInst::Bulk(BulkInst {
            to,
            from,
            bytes,
            barrier,
            ranks: self.masked(call, "multicast", "cta_mask")?,
            mask: self.masked(call, "cp_mask", "byte_mask")?,
            ignored: [
                self.masked(call, "ignore_oob", "ignore_bytes_left")?,
                self.masked(call, "ignore_oob", "ignore_bytes_right")?,
            ],
            reduces: None,
        });
        self.push_async(inst)
    }

    /// A mask that counts where a flag is set.
    fn masked(&mut self, call: &Call<'_>, flag: &str, mask: &str) -> Result<Option<R>> {
        match call.named.flag(flag) {
            true => self.operand(call, mask, Kind::U32),
            false => Ok(None),
        }
    }

    /// A tensor copy that reduces in global memory.
    pub(super) fn reducing_tile(&mut self, call: &Call<'_>) -> Result<()> {
        let op = call.named.text("red_op");
        match update_of(op) {
            Some(op) => self.tile(call, "src_ptr", Direction::Reduce(op)),
            None => error(self.span, format!("a tensor copy has no reduction \"{op}\"")),
        }
    }

    /// A tensor copy; `shared` names the operand in shared memory.
    pub(super) fn tile(&mut self, call: &Call<'_>, shared: &str, direction: Direction) -> Result<()> {
        let shared = self.address_operand(call, shared)?;
        let map = self.address_operand(call, "tensormap_addr")?;
        let barrier = match direction {
            Direction::In => Some(self.address_operand(call, "mbar")?),
            _ => None,
        };
        let mut at = Vec::new();
        for e in call.named.list("coords") {
            let value = self.value(e)?;
            let value = self.convert(value, Kind::I32)?;
            at.push(self.vector(value)?);
        }
        let ranks = self.masked(call, "multicast", "cta_mask")?;
        self.push_async(AsyncInst::Tile(TileInst {
            direction,
            gather: call.named.text("load_mode") == "tile_gather4",
            map,
            shared,
            barrier,
            ranks,
            pair: call.named.int("cta_group") == Some(2),
            at,
        }))
    }
}
