//! NVSHMEM with one processing element, and cluster launch control.
//!
//! The functions of NVSHMEM keep their meaning where there is one GPU: its number is 0, and what is put to it or got from it
//! is copied asynchronously, until `quiet`. The forms of a block are collective: its threads meet, and the first warp issues.

use tirx_ir::Expr;
use tirx_ir::intrin::{Op, Operands};
use tirx_source::diagnostic::{Result, error};

use super::Compiler;
use super::registers::Val;
use tirx_sim_machine::alu::Bin;
use tirx_sim_machine::bytecode::Class;
use tirx_sim_machine::bytecode::{AsyncInst, AtomicOp, Inst, R, RemoteInst, RemoteScope, SignalInst};
use tirx_sim_machine::bytecode::{Scope, Strong};
use tirx_sim_machine::numeric::Kind;

impl Compiler<'_> {
    /// Runs an instruction of this file. False where it is none.
    pub(super) fn remote(&mut self, op: Op, args: &[Expr]) -> Result<bool> {
        use Op::*;
        let scope = match op {
            NvshmemGetmemNbiWarp | NvshmemPutmemNbiWarp | NvshmemPutmemSignalNbiWarp => RemoteScope::Warp,
            NvshmemGetmemNbiBlock | NvshmemPutmemNbiBlock | NvshmemPutmemSignalNbiBlock => RemoteScope::Block,
            NvshmemGetmemNbi
            | NvshmemPutmemNbi
            | NvshmemPutmemSignalNbi
            | NvshmemSignalOp
            | NvshmemWaitUntil
            | NvshmemQuiet
            | NvshmemFence
            | NvshmemBarrierAll
            | PtxClcTryCancel => RemoteScope::Thread,
            _ => return Ok(false),
        };
        let call = match Operands::read(op.row(), args) {
            Ok(call) => call,
            Err(message) => return error(self.span, message),
        };
        let span = self.span;
        let of = |name: &str| -> Result<&Expr> {
            match call.get(name) {
                Some(e) => Ok(e),
                None => error(span, format!("{name} is missing")),
            }
        };
        match op {
            // With one processing element there is nobody else to wait for.
            NvshmemQuiet | NvshmemBarrierAll => self.push_async(AsyncInst::Wait {
                class: Class::Remote,
                left: None,
                read: false,
            })?,
            NvshmemFence => self.push_async(AsyncInst::RemoteFence)?,
            NvshmemWaitUntil => {
                let (address, wanted) = (of("ivar")?, of("cmp_value")?);
                let holds = match call.text("cmp") {
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
                })?;
            }
            PtxClcTryCancel => {
                let (handle, barrier) = (of("handle")?, of("mbar")?);
                let handle = self.address_value(handle)?;
                let barrier = self.address_value(barrier)?;
                self.push_async(AsyncInst::TryCancel {
                    handle,
                    barrier,
                    multicast: true,
                })?;
            }
            _ => {
                let (pe, copies) = (of("pe")?, op != NvshmemSignalOp);
                let pe = self.register_of(pe, Kind::I32)?;
                let copy = match copies {
                    true => Some((
                        self.address_value(of("dst")?)?,
                        self.address_value(of("src")?)?,
                        self.register_of(of("nelems")?, Kind::U64)?,
                    )),
                    false => None,
                };
                let signal = match call.get("sig_addr") {
                    Some(address) => Some(SignalInst {
                        address: self.address_value(address)?,
                        value: self.register_of(of("signal")?, Kind::U64)?,
                        adds: call.text("sig_op") == "add",
                    }),
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
                }))?;
            }
        }
        Ok(true)
    }

    fn register_of(&mut self, e: &Expr, kind: Kind) -> Result<R> {
        let value = self.value(e)?;
        let value = self.convert(value, kind)?;
        self.vector(value)
    }

    /// `clusterlaunchcontrol.query_cancel`: x of the first block of what was cancelled, or all ones.
    pub(super) fn query_cancel(&mut self, args: &[Expr]) -> Result<Val> {
        let response = self.load_pointer(&args[0], Kind::U32, 4)?;
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
