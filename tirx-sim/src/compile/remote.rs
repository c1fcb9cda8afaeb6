//! NVSHMEM, and cluster launch control.
//!
//! A processing element is a rank of the launch. A launch on one device has one, with the number 0. The data that a kernel puts
//! or gets is copied asynchronously, until `quiet`. The forms of a block are collective: its threads meet, and the first warp
//! issues.

use tirx_source::diagnostic::Result;

use super::Compiler;
use super::call::Call;
use super::registers::Val;
use tirx_sim_machine::alu::Bin;
use tirx_sim_machine::bytecode::Class;
use tirx_sim_machine::bytecode::{
    AsyncInst, AtomicOp, Inst, MultimemInst, RemoteInst, RemoteScope, SignalInst, Special,
};
use tirx_sim_machine::bytecode::{Scope, Strong};
use tirx_sim_machine::numeric::Kind;

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
            let strong = Strong::new("acquire", Scope::Sys, true, false);
            let nothing = c.bits(Kind::U64, 0)?;
            let found = c.atomic_of(AtomicOp::Read, strong, address, &[nothing])?;
            let found = c.convert(found, Kind::U64)?;
            let there = c.bin(holds, Kind::U64, Kind::Bool, found, wanted)?;
            let no = c.bits(Kind::Bool, 0)?;
            c.bin(Bin::Eq, Kind::Bool, Kind::Bool, there, no)
        })
    }

    /// `nvshmem_my_pe` and `nvshmem_n_pes`.
    pub(super) fn rank(&mut self, special: Special) -> Result<Val> {
        Ok(Val::scalar(Kind::I32, self.special(special)?))
    }

    /// `nvshmem_ptr`.
    pub(super) fn peer_pointer(&mut self, call: &Call<'_>) -> Result<Val> {
        let (address, pe) = (self.given(call, "dest")?, self.given(call, "pe")?);
        let a = self.address_value(address)?;
        let rank = self.in_register(pe, Kind::I32)?;
        let d = self.temp(Kind::U64)?;
        self.emit(Inst::PeerPointer { d, a, rank });
        Ok(Val::vector(Kind::U64, d))
    }

    /// `nvshmemx_mc_ptr` of all processing elements.
    pub(super) fn window_pointer(&mut self, call: &Call<'_>) -> Result<Val> {
        let address = self.given(call, "ptr")?;
        let a = self.address_value(address)?;
        let d = self.temp(Kind::U64)?;
        self.emit(Inst::WindowPointer { d, a });
        Ok(Val::vector(Kind::U64, d))
    }

    /// `nvshmem_barrier_all`: a rank counts its own barriers, and waits until every rank has counted as many.
    pub(super) fn barrier_of_ranks(&mut self) -> Result<()> {
        self.push_async(QUIET)?;
        let kind = Kind::U64;
        let own = Val::scalar(kind, self.special(Special::Arrivals)?);
        let window = Val::scalar(kind, self.special(Special::ArrivalsWindow)?);
        let one = self.bits(kind, 1)?;
        let arrives = Strong::new("acq_rel", Scope::Sys, true, true);
        let before = self.atomic_at(AtomicOp::Add, arrives, own, one, None)?;
        let wanted = self.bin(Bin::Add, kind, kind, before, one)?;
        let least = MultimemInst {
            weak: false,
            combine: AtomicOp::Min,
            in_float32: false,
        };
        let first = self.code.insts.len();
        self.wait_while(|c| {
            let sees = Strong::new("acquire", Scope::Sys, true, false);
            let nothing = c.bits(kind, 0)?;
            let arrived = c.atomic_at(AtomicOp::Read, sees, window, nothing, Some(least))?;
            c.bin(Bin::LtU, kind, Kind::Bool, arrived, wanted)
        })?;
        self.code
            .barriers_of_ranks
            .push((first, self.code.insts.len() + 1));
        Ok(())
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
    pub(super) fn put_or_get(&mut self, call: &Call<'_>, scope: RemoteScope, gets: bool) -> Result<()> {
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
            gets,
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
