//! Asynchronous copies and mbarriers.

use tirx_ir::intrin::Op;
use tirx_ir::intrin::operands::Operands;
use tirx_ir::{DType, Expr};
use tirx_source::diagnostic::{Result, error};

use super::Compiler;
use super::registers::Val;
use tirx_sim_machine::bytecode::{
    AsyncInst, AtomicOp, BulkInst, Inst, MbarrierInst, MbarrierWhat, R, TileInst,
};
use tirx_sim_machine::bytecode::{Class, Direction, Scope};
use tirx_sim_machine::numeric::Kind;

impl Compiler<'_> {
    /// Compiles an operation of this file and gives its value, if it has one. `None`: the operation belongs to another
    /// file.
    pub(super) fn asynchronous(&mut self, op: Op, args: &[Expr]) -> Result<Option<Option<Val>>> {
        use MbarrierWhat::{
            Arrive, ArriveExpect, ArriveNoComplete, Complete, Expect, Init, Inval, Test, Wait,
        };
        // The operations handled here: the families of the asynchronous engines and of tensor cores.
        if !matches!(
            op.info().family,
            "mbarrier" | "copies" | "matrix" | "wgmma" | "tcgen05" | "nvshmem" | "iket"
        ) {
            return Ok(None);
        }
        let call = match op.row().read_settled(args) {
            Ok(call) => call,
            Err(message) => return error(self.span, message),
        };
        let what = match op {
            Op::PtxMbarrierInit => Some((Init, "thread_count")),
            Op::PtxMbarrierInval => Some((Inval, "")),
            Op::PtxMbarrierArrive => Some((Arrive, "count")),
            Op::PtxMbarrierArriveExpectTx => Some((ArriveExpect, "byte_count")),
            Op::PtxMbarrierArriveNoComplete => Some((ArriveNoComplete, "count")),
            Op::PtxMbarrierExpectTx => Some((Expect, "tx_count")),
            Op::PtxMbarrierCompleteTx => Some((Complete, "tx_count")),
            Op::PtxMbarrierTryWait | Op::PtxMbarrierTryWaitAcquireCluster => Some((Wait, "phase")),
            Op::PtxMbarrierTryWaitOnce | Op::PtxMbarrierTestWaitParity => Some((Test, "phase")),
            _ => None,
        };
        self.count(1);
        if let Some((what, count)) = what {
            let scope = match op {
                Op::PtxMbarrierTryWaitAcquireCluster => Scope::Cluster,
                _ => Scope::Cta,
            };
            return self.mbarrier(&call, what, count, scope).map(Some);
        }
        let inst = match op {
            Op::PtxCpAsync => {
                let predicate = match call.int("predicate") {
                    Some(-1) => None,
                    _ => self.operand(&call, "predicate", Kind::I32)?,
                };
                AsyncInst::Copy {
                    to: self.address_operand(&call, "dst_ptr")?,
                    from: self.address_operand(&call, "src_ptr")?,
                    bytes: call.int("cp_size").unwrap_or(16) as u8,
                    predicate,
                    zeros: call.text("fill_mode") == "zero",
                }
            }
            Op::PtxCpAsyncCommitGroup => AsyncInst::Commit(Class::Copy),
            Op::PtxCpAsyncBulkCommitGroup => AsyncInst::Commit(Class::Bulk),
            Op::PtxCpAsyncWaitGroup => AsyncInst::Wait {
                class: Class::Copy,
                left: Some(self.number(&call, "num")?),
                read: false,
            },
            Op::PtxCpAsyncBulkWaitGroup => AsyncInst::Wait {
                class: Class::Bulk,
                left: Some(self.number(&call, "n")?),
                read: call.flag("read"),
            },
            Op::PtxCpAsyncMbarrierArrive => AsyncInst::ArriveWhenCopied {
                barrier: self.address_operand(&call, "bar")?,
                noinc: call.flag("noinc"),
            },
            Op::PtxCpAsyncBulkG2sCta | Op::PtxCpAsyncBulkG2sCluster => {
                self.bulk(&call, "num_bytes", Some("mbarrier_ptr"))?
            }
            Op::PtxCpAsyncBulkS2sCluster => self.bulk(&call, "num_bytes", Some("mbarrier"))?,
            Op::PtxCpAsyncBulkSharedToCluster => self.bulk(&call, "size", Some("mbar"))?,
            Op::PtxCpAsyncBulkS2g => self.bulk(&call, "num_bytes", None)?,
            Op::PtxCpAsyncBulkTensorG2sCta | Op::PtxCpAsyncBulkTensorG2sCluster => {
                self.tile(&call, "dst_ptr", Direction::In)?
            }
            Op::PtxCpAsyncBulkTensorS2g => self.tile(&call, "src_ptr", Direction::Out)?,
            Op::PtxCpAsyncBulkTensorS2gReduce => {
                let op = match call.text("red_op") {
                    "add" => AtomicOp::Add,
                    "min" => AtomicOp::Min,
                    "max" => AtomicOp::Max,
                    "inc" => AtomicOp::Inc,
                    "dec" => AtomicOp::Dec,
                    "and" => AtomicOp::And,
                    "or" => AtomicOp::Or,
                    _ => AtomicOp::Xor,
                };
                self.tile(&call, "src_ptr", Direction::Reduce(op))?
            }
            // Caches are not simulated.
            Op::PtxCpAsyncBulkTensorPrefetch | Op::PtxPrefetchTensormap => return Ok(Some(None)),
            _ => return Ok(None),
        };
        self.push_async(inst)?;
        Ok(Some(None))
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
    fn operand(&mut self, call: &Operands, name: &str, kind: Kind) -> Result<Option<R>> {
        let Some(e) = call.get(name) else {
            return Ok(None);
        };
        let value = self.value(e)?;
        let value = self.convert(value, kind)?;
        self.vector(value).map(Some)
    }

    fn number(&self, call: &Operands, name: &str) -> Result<u32> {
        match call.int(name).and_then(|n| u32::try_from(n).ok()) {
            Some(n) => Ok(n),
            None => error(self.span, format!("{name} is no number that is known")),
        }
    }

    /// A pointer, or an address of 32 bits in shared memory, as a 64-bit address.
    fn address_operand(&mut self, call: &Operands, name: &str) -> Result<R> {
        let Some(e) = call.get(name) else {
            return error(self.span, format!("{name} is missing"));
        };
        self.address_value(e)
    }

    pub(super) fn address_value(&mut self, e: &Expr) -> Result<R> {
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

    /// `what_scope` is the scope that the instruction's name gives it.
    fn mbarrier(
        &mut self,
        call: &Operands,
        what: MbarrierWhat,
        count: &str,
        what_scope: Scope,
    ) -> Result<Option<Val>> {
        let name = if call.get("bar").is_some() {
            "bar"
        } else {
            "barrier"
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
            relaxed: call.text("sem") == "relaxed",
            cluster: call.text("scope") == "cluster" || what_scope == Scope::Cluster,
            drops: false,
            state: None,
            d,
        }))?;
        Ok(d.map(|d| Val::vector(Kind::U32, d)))
    }

    fn bulk(&mut self, call: &Operands, bytes: &str, barrier: Option<&str>) -> Result<AsyncInst> {
        let to = self.address_operand(call, "dst_ptr")?;
        let from = self.address_operand(call, "src_ptr")?;
        let Some(bytes) = self.operand(call, bytes, Kind::U32)? else {
            return error(self.span, "a bulk copy without a size");
        };
        let barrier = match barrier {
            Some(name) => Some(self.address_operand(call, name)?),
            None => None,
        };
        Ok(AsyncInst::Bulk(BulkInst {
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
        }))
    }

    /// A mask that counts where a flag is set.
    fn masked(&mut self, call: &Operands, flag: &str, mask: &str) -> Result<Option<R>> {
        match call.flag(flag) {
            true => self.operand(call, mask, Kind::U32),
            false => Ok(None),
        }
    }

    fn tile(&mut self, call: &Operands, shared: &str, direction: Direction) -> Result<AsyncInst> {
        let shared = self.address_operand(call, shared)?;
        let map = self.address_operand(call, "tensormap_addr")?;
        let barrier = match direction {
            Direction::In => Some(self.address_operand(call, "mbar")?),
            _ => None,
        };
        let mut at = Vec::new();
        for e in call.list("coords") {
            let value = self.value(e)?;
            let value = self.convert(value, Kind::I32)?;
            at.push(self.vector(value)?);
        }
        Ok(AsyncInst::Tile(TileInst {
            direction,
            gather: call.text("load_mode") == "tile_gather4",
            map,
            shared,
            barrier,
            ranks: self.masked(call, "multicast", "cta_mask")?,
            pair: call.int("cta_group") == Some(2),
            at,
        }))
    }
}
