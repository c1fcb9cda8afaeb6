//! NVSHMEM with one processing element, and cluster launch control.
//!
//! The functions of NVSHMEM keep their meaning where there is one GPU: its number is 0, and what is put to it or got from it
//! is copied asynchronously, until `quiet`. The forms of a block are collective: its threads meet, and the first warp issues.

use tirx_source::diagnostic::Result;

use super::Compiler;
use super::call::Call;
use super::registers::Val;
use tirx_sim_machine::alu::Bin;
use tirx_sim_machine::bytecode::Class;
use tirx_sim_machine::bytecode::{AsyncInst, AtomicOp, Inst, RemoteInst, RemoteScope, SignalInst};
use tirx_sim_machine::bytecode::{Scope, Strong};
use tirx_sim_machine::numeric::Kind;

/// With one processing element there is nobody else to wait for.
pub(super) const QUIET: AsyncInst = AsyncInst::Wait {
    class: Class::Remote,
    left: None,
    read: false,
};

impl Compiler<'_> {
    /// Waits until a signal compares as asked for.
    pub(super) fn wait_for_signal(&mut self, call: &Call<'_>) -> Result<()> {
        let (address, wanted) = (self.given(call, "ivar")?, self.given(call, "cmp_value")?);
        let holds = match call.named.text("cmp") {
            "eq" => Bin::Eq,
            "ne" => Bin::Ne,
            "gt" => Bin::GtU,
            "ge" => Bin::GeU,
            "lt" => Bin::LtU,
            _ => Bin::LeU,
        };
        let wanted = self.value(wanted)?;
        let wanted = self.convert(wanted, Kind::U64)?;
        self.wait_while(|c| {
            let strong = Strong::new("acquire", Scope::Gpu, true, false);
            let nothing = c.bits(Kind::U64, 0)?;
            let found = c.atomic_of(AtomicOp::Read, strong, address, &[nothing])?;
            let found = c.convert(found, Kind::U64)?;
            let there = c.bin(holds, Kind::U64, Kind::Bool, found, wanted)?;
            let no = c.bits(Kind::Bool, 0)?;
            c.bin(Bin::Eq, Kind::Bool, Kind::Bool, there, no)
        })
    }

    /// `clusterlaunchcontrol.try_cancel`.
    pub(super) fn try_cancel(&mut self, call: &Call<'_>) -> Result<()> {
        let (handle, barrier) = (self.given(call, "handle")?, self.given(call, "mbar")?);
        let handle = self.address_value(handle)?;
        let barrier = self.address_value(barrier)?;
        self.push_async(AsyncInst::TryCancel {
            handle,
            barrier,
            multicast: true,
        })
    }

    /// A copy to or from a processing element, a signal to it, or a copy with a signal behind it: what has operands.
    pub(super) fn put_or_get(&mut self, call: &Call<'_>, scope: RemoteScope) -> Result<()> {
        let pe = self.given(call, "pe")?;
        let pe = self.in_register(pe, Kind::I32)?;
        let copy = match call.named.get("dst") {
            Some(to) => {
                let (from, count) = (self.given(call, "src")?, self.given(call, "nelems")?);
                Some((
                    self.address_value(to)?,
                    self.address_value(from)?,
                    self.in_register(count, Kind::U64)?,
                ))
            }
            None => None,
        };
        let signal = match call.named.get("sig_addr") {
            Some(address) => {
                let value = self.given(call, "signal")?;
                Some(SignalInst {
                    address: self.address_value(address)?,
                    value: self.in_register(value, Kind::U64)?,
                    adds: call.named.text("sig_op") == "add",
                })
            }
            None => None,
        };
        if scope == RemoteScope::Block {
            self.emit(Inst::CtaSync);
        }
        self.push_async(AsyncInst::Remote(RemoteInst {
            scope,
            pe,
            copy,
            signal,
        }))
    }

    /// `clusterlaunchcontrol.query_cancel`: x of the first block of what was cancelled, or all ones.
    pub(super) fn query_cancel(&mut self, call: &Call<'_>) -> Result<Val> {
        let response = self.load_pointer(self.argument(call, "handle")?, Kind::U32, 4)?;
        let none = self.bits(Kind::U32, u64::from(u32::MAX))?;
        let zero = self.bits(Kind::U32, 0)?;
        let cancelled = self.bin(Bin::Ne, Kind::U32, Kind::Bool, response[3], zero)?;
        let first = self.select(cancelled, response[0], none)?;
        let found = self.vector(cancelled)?;
        self.push_async(AsyncInst::Queried { found })?;
        self.emit(Inst::FenceProxy {
            shared: true,
            global: true,
        });
        Ok(first)
    }
}
