//! Intrinsics: what each row of the table computes.

use tirx_ir::intrin::{Op, Operands};
use tirx_ir::{BinOp, DType, Expr};
use tirx_source::diagnostic::{Result, error};

use super::Compiler;
use super::meaning::{Meaning, meaning};
use super::registers::Val;
use tirx_sim_machine::alu::{Bin, Un};
use tirx_sim_machine::bytecode::Scope;
use tirx_sim_machine::bytecode::{AsyncInst, AtomicOp, Inst, ShuffleMode};
use tirx_sim_machine::numeric::Kind;

impl Compiler<'_> {
    /// An expression for its effect.
    pub(super) fn evaluate(&mut self, e: &Expr) -> Result<()> {
        if e.dtype.is_void() || e.as_call(Op::Assume).is_some() {
            let outer = self.span;
            self.span = e.span.or(outer);
            let result = match &e.kind {
                tirx_ir::ExprKind::Call { op, args } => self.action(*op, args),
                _ => error(self.span, "an expression without a value"),
            };
            self.span = outer;
            return result;
        }
        self.values(e).map(drop)
    }

    /// A call without a value.
    fn action(&mut self, op: Op, args: &[Expr]) -> Result<()> {
        self.check_arity(op, args)?;
        self.check_meaning(op)?;
        self.count(1);
        match op {
            Op::BreakLoop | Op::ContinueLoop if self.loops.is_empty() => {
                return error(self.span, "break and continue belong into a loop");
            }
            Op::BreakLoop => self.emit(Inst::Break),
            Op::ContinueLoop => self.emit(Inst::Continue),
            Op::ThreadReturn => self.emit(Inst::Return),
            Op::Assume => self.assertion(&args[0], "T.assume does not hold".to_string())?,
            Op::CudaTrapWhenAssertFailed => {
                self.assertion(&args[0], "trap_when_assert_failed".to_string())?;
            }
            Op::CudaCtaSync => self.block_barrier(),
            Op::CudaWarpSync => self.emit(Inst::WarpSync),
            Op::CudaWarpgroupSync => self.named_barrier(&args[0], &Expr::int32(128), true)?,
            Op::PtxBarSync | Op::PtxBarrierSync => self.named_barrier(&args[0], &args[1], true)?,
            Op::PtxBarArrive => self.named_barrier(&args[0], &args[1], false)?,
            Op::PtxBarrierClusterArrive => {
                let relaxed = args.iter().any(|a| a.as_str() == Some("relaxed"));
                self.emit(Inst::ClusterArrive { relaxed });
            }
            Op::PtxBarrierClusterWait => self.emit(Inst::ClusterWait),
            Op::CudaClusterSync => self.emit(Inst::ClusterSync),
            Op::CudaGridSync => {
                self.code.grid_sync = true;
                self.emit(Inst::GridSync);
            }
            Op::TvmStorageSync => match self.text(&args[0])? {
                "shared" | "shared.dyn" | "global" => self.block_barrier(),
                "warp" => self.emit(Inst::WarpSync),
                scope => {
                    return error(
                        self.span,
                        format!("the simulator has no barrier over \"{scope}\""),
                    );
                }
            },
            // `__threadfence()` is `membar.gl`, which is `fence.sc.gpu`.
            Op::CudaThreadFence => self.emit(Inst::Fence {
                scope: Scope::Gpu,
                sc: true,
            }),
            Op::PtxFence => {
                let sc = self.text(&args[0])? == "sc";
                let scope = Scope::of(self.text(&args[1])?);
                self.emit(Inst::Fence { scope, sc });
            }
            Op::PtxInstruction => self.mnemonic(args)?,
            Op::PtxFenceProxyAsync => {
                let space = self.text(&args[0])?;
                self.emit(Inst::FenceProxy {
                    shared: space != "global",
                    global: matches!(space, "" | "global"),
                });
            }
            Op::Prefetch => {}
            Op::PtxFenceMbarrierInit => self.push_async(AsyncInst::FenceInit)?,
            Op::PtxSetmaxnreg => {
                let count = args.get(1).and_then(Expr::as_int);
                let count = count.and_then(|n| u16::try_from(n).ok()).unwrap_or(u16::MAX);
                self.emit(Inst::SetRegisters { count });
            }
            Op::CudaNanoSleep => {
                self.value(&args[0])?;
            }
            Op::CudaPrintf => self.printf(args)?,
            Op::PrintBuffer => self.print_buffer(args)?,
            Op::CudaFuncCall | Op::CallExtern | Op::CallPureExtern => {
                self.call_out(op, args, DType::VOID)?;
            }
            Op::TvmWarpShuffle | Op::AtomicAdd | Op::CudaAtomicAdd | Op::CudaAtomicCas => {
                return error(self.span, format!("T.{} has a value", op.info().script));
            }
            Op::PtxGriddepcontrolWait => self.emit(Inst::PriorGrid),
            Op::PtxGriddepcontrolLaunchDependents => self.code.launches_dependents = true,
            // Events for a tracer that does not exist here; their arguments are evaluated all the same.
            Op::CudaIketMark | Op::CudaIketRangeEnd | Op::CudaIketRangePush | Op::CudaIketRangePop => {
                self.event(args)?;
            }
            Op::CudaRuntimeInstrDesc => self.scale_factor_ids(args)?,
            _ if self.remote(op, args)? => {}
            _ if self.asynchronous(op, args)?.is_some() => {}
            _ if self.tensor_instruction(op, args)? => {}
            _ if self.storing_instruction(op, args)? => {}
            _ if self.memory_instruction(op, args)?.is_some() => {}
            _ if self.recorded(op, args)? => {}
            _ => return self.unknown(op),
        }
        Ok(())
    }

    fn event(&mut self, args: &[Expr]) -> Result<()> {
        for argument in args.iter().filter(|a| a.as_str().is_none()) {
            self.values(argument)?;
        }
        Ok(())
    }

    fn check_arity(&self, op: Op, args: &[Expr]) -> Result<()> {
        match Operands::read(op.row(), args) {
            Ok(_) => Ok(()),
            Err(message) => error(self.span, format!("T.{} {message}", op.info().script)),
        }
    }

    fn check_meaning(&self, op: Op) -> Result<()> {
        match meaning(op) {
            Meaning::Compiled => Ok(()),
            Meaning::Lowered | Meaning::Host => self.unknown(op),
        }
    }

    fn unknown<T>(&self, op: Op) -> Result<T> {
        error(
            self.span,
            format!("the simulator does not run T.{} yet", op.info().script),
        )
    }

    /// A call with a value.
    pub(super) fn call(&mut self, op: Op, args: &[Expr], e: &Expr) -> Result<Vec<Val>> {
        self.check_arity(op, args)?;
        self.check_meaning(op)?;
        let lanes = e.dtype.lanes;
        if let Some(values) = self.elementary(op, args, lanes)? {
            return Ok(values);
        }
        if Self::is_transparent(op) {
            return self.values(&args[0]);
        }
        match op {
            Op::Ldexp => self.lanewise(&[&args[0], &args[1]], lanes, |c, v| {
                let kind = v[0].kind;
                let exponent = c.convert(v[1], if kind.wide() { Kind::I64 } else { Kind::I32 })?;
                let value = c.bin(Bin::Ldexp, kind, kind, v[0], exponent.with_kind(kind))?;
                c.canonical(value)
            }),
            Op::CudaFdividef => self.lanewise(&[&args[0], &args[1]], lanes, |c, v| {
                c.binary(BinOp::Div, v[0], v[1])
            }),
            Op::Fma => self.lanewise(&[&args[0], &args[1], &args[2]], lanes, |c, v| {
                c.fma(v[0], v[1], v[2])
            }),
            Op::Isnan | Op::Isinf | Op::Isfinite => {
                self.lanewise(&[&args[0]], lanes, |c, v| c.classify(op, v[0]))
            }
            Op::BitwiseNot => self.lanewise(&[&args[0]], lanes, |c, v| {
                let value = c.un(Un::BitNot, v[0].kind, v[0])?;
                c.canonical(value)
            }),
            Op::Popcount => self.lanewise(&[&args[0]], lanes, |c, v| {
                let bits = c.stored(v[0])?;
                let value = c.un(Un::Popcount, bits.kind, bits)?;
                Ok(value.with_kind(v[0].kind))
            }),
            Op::Clz => self.lanewise(&[&args[0]], lanes, |c, v| {
                let value = c.un(Un::Clz, v[0].kind, v[0])?;
                Ok(value.with_kind(v[0].kind))
            }),
            Op::CudaFfsU32 => self.lanewise(&[&args[0]], lanes, |c, v| {
                let value = c.convert(v[0], Kind::U32)?;
                c.un(Un::Ffs, Kind::U32, value)
            }),
            Op::LargeUintImm => match (args[0].as_int(), args[1].as_int()) {
                (Some(low), Some(high)) => {
                    let value = ((high as u64) << 32) | (low as u64 & 0xffff_ffff);
                    Ok(vec![self.bits(Kind::U64, value)?])
                }
                _ => error(self.span, "large_uint_imm takes constants"),
            },
            Op::QMultiplyShift => self.q_multiply_shift(args).map(|v| vec![v]),
            Op::Dp4a => self.dp4a(args, e.dtype).map(|v| vec![v]),
            Op::IfThenElse => self.lazy_choice(args, e),
            Op::Undef => {
                let kind = self.kind(e.dtype)?;
                let zero = self.bits(kind, 0)?;
                Ok(vec![zero; lanes as usize])
            }
            Op::Reinterpret => self.reinterpret(&args[0], e.dtype),
            Op::CudaFloatAsUint => self.reinterpret(&args[0], DType::UINT32),
            Op::CudaUintAsFloat => self.reinterpret(&args[0], DType::FLOAT32),
            Op::CudaHalf2float | Op::CudaBfloat162float => {
                self.lanewise(&[&args[0]], lanes, |c, v| c.convert(v[0], Kind::F32))
            }
            Op::IsNullptr => {
                let pointer = self.value(&args[0])?;
                let null = self.bits(Kind::Ptr, 0)?;
                Ok(vec![self.bin(Bin::Eq, Kind::Ptr, Kind::Bool, pointer, null)?])
            }
            Op::Vectorlow | Op::Vectorhigh => {
                let values = self.values(&args[0])?;
                let (low, high) = values.split_at(values.len() / 2);
                Ok(if op == Op::Vectorlow { low } else { high }.to_vec())
            }
            Op::Vectorcombine => {
                let mut values = self.values(&args[0])?;
                values.extend(self.values(&args[1])?);
                Ok(values)
            }
            Op::AddressOf => self.address_of(&args[0]).map(|v| vec![v]),
            Op::PtrByteOffset | Op::HandleAddByteOffset => self.moved(&args[0], &args[1], 1).map(|v| vec![v]),
            Op::TvmAccessPtr => {
                let bytes = args[0].dtype.element().bytes() as u32 * args[0].dtype.lanes.max(1) as u32;
                self.moved(&args[1], &args[2], bytes).map(|v| vec![v])
            }
            Op::CudaLdg => {
                let kind = self.kind(e.dtype)?;
                self.load_constant(&args[0], kind, lanes)
            }
            Op::AtomicAdd | Op::CudaAtomicAdd => {
                self.atomic(AtomicOp::Add, &args[0], &args[1..]).map(|v| vec![v])
            }
            Op::CudaAtomicCas => self.atomic(AtomicOp::Cas, &args[0], &args[1..]).map(|v| vec![v]),
            Op::CallExtern | Op::CallPureExtern | Op::CudaFuncCall => self.call_out(op, args, e.dtype),
            Op::TvmWarpShuffle | Op::CudaShflSync => self.shuffle(ShuffleMode::Index, args).map(|v| vec![v]),
            Op::TvmWarpShuffleUp | Op::CudaShflUpSync => self.shuffle(ShuffleMode::Up, args).map(|v| vec![v]),
            Op::TvmWarpShuffleDown | Op::CudaShflDownSync => {
                self.shuffle(ShuffleMode::Down, args).map(|v| vec![v])
            }
            Op::TvmWarpShuffleXor | Op::CudaShflXorSync => {
                self.shuffle(ShuffleMode::Xor, args).map(|v| vec![v])
            }
            Op::TvmWarpActivemask | Op::CudaActivemask => {
                self.count(1);
                let d = self.temp_scalar()?;
                self.emit(Inst::ActiveMask { d });
                Ok(vec![Val::scalar(Kind::U32, d)])
            }
            Op::CudaBallotSync => {
                let predicate = self.condition(&args[1])?;
                self.vote(ShuffleMode::Ballot, &args[0], predicate)
                    .map(|v| vec![v])
            }
            Op::CudaReduceAddSyncU32 | Op::CudaReduceMinSyncU32 => {
                let value = self.value(&args[1])?;
                let value = self.convert(value, Kind::U32)?;
                let bin = if op == Op::CudaReduceAddSyncU32 {
                    Bin::Add
                } else {
                    Bin::MinU
                };
                self.vote(ShuffleMode::Reduce(bin), &args[0], value)
                    .map(|v| vec![v])
            }
            Op::CudaSyncthreadsAnd | Op::CudaSyncthreadsOr => {
                let predicate = self.condition(&args[0])?;
                let v = self.vector(predicate)?;
                let d = self.temp_scalar()?;
                self.count(1);
                self.note_barrier();
                self.emit(Inst::CtaSyncReduce {
                    d,
                    v,
                    all: op == Op::CudaSyncthreadsAnd,
                });
                Ok(vec![Val::scalar(Kind::I32, d)])
            }
            Op::CudaClock64 => {
                let d = self.temp(Kind::I64)?;
                self.count(1);
                self.emit(Inst::Clock { d });
                Ok(vec![Val::vector(Kind::I64, d)])
            }
            Op::CudaIketRangeStart | Op::CudaIketSentinelToken => {
                self.event(args)?;
                Ok(vec![self.bits(Kind::U32, 0)?])
            }
            // One processing element.
            Op::NvshmemMyPe => Ok(vec![self.bits(Kind::I32, 0)?]),
            Op::NvshmemNPes => Ok(vec![self.bits(Kind::I32, 1)?]),
            Op::CudaGetTmemAddr => self.memory_address_within(args).map(|v| vec![v]),
            Op::PtxClcQueryCancel => self.query_cancel(args).map(|v| vec![v]),
            Op::PtxMapa => self.mapa(args, e.dtype).map(|v| vec![v]),
            Op::CudaCvtaGenericToShared | Op::CudaSmemAddrFromUint64 => {
                let pointer = self.value(&args[0])?;
                self.shared_address(pointer).map(|v| vec![v])
            }
            Op::PtxCvt => self.ptx_convert(args).map(|v| vec![v]),
            Op::CudaThreadRank => self.thread_rank().map(|v| vec![v]),
            Op::CudaWarpReduce => {
                let width = match args.get(2) {
                    Some(width) => self.value(width)?,
                    None => self.integer(Kind::I32, 32)?,
                };
                let value = self.value(&args[0])?;
                let op = self.reduction(&args[1], value.kind)?;
                self.butterfly(value, op, width).map(|v| vec![v])
            }
            Op::CudaCtaReduce => self.cta_reduce(args).map(|v| vec![v]),
            _ => self.by_name(op, args),
        }
    }

    /// Operators of other families, recognized by name.
    fn by_name(&mut self, op: Op, args: &[Expr]) -> Result<Vec<Val>> {
        if op.name() == "tirx.ptx.fetch_register" {
            return self.special_register(args).map(|value| vec![value]);
        }
        if let Some(Some(value)) = self.asynchronous(op, args)? {
            return Ok(vec![value]);
        }
        if let Some(values) = self.instruction(op, args)? {
            return Ok(values);
        }
        match self.memory_instruction(op, args)? {
            Some(value) => Ok(vec![value]),
            None => self.unknown(op),
        }
    }
}
