//! Intrinsics: what each row of the table computes.

use tirx_core::diagnostic::{Result, error};
use tirx_core::intrin::Op;
use tirx_core::ir::{BinOp, DType, Expr};

use super::Compiler;
use super::registers::Val;
use crate::alu::{Bin, Un};
use crate::bytecode::{AtomicOp, Axis, ExternCall, Inst, Operand, Print, Shuffle, ShuffleMode, Special};
use crate::numeric::Kind;

/// Most elements that `print_buffer` prints.
const MOST_PRINTED: i128 = 4096;

impl Compiler<'_> {
    /// An expression for its effect.
    pub(super) fn evaluate(&mut self, e: &Expr) -> Result<()> {
        if e.dtype.is_void() || e.as_call(Op::Assume).is_some() {
            let outer = self.span;
            self.span = e.span.or(outer);
            let result = match &e.kind {
                tirx_core::ir::ExprKind::Call { op, args } => self.action(*op, args),
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
            Op::CudaCtaSync => self.emit(Inst::CtaSync),
            Op::CudaWarpSync => self.emit(Inst::WarpSync),
            Op::CudaWarpgroupSync => self.named_barrier(&args[0], &Expr::int32(128))?,
            Op::PtxBarSync | Op::PtxBarrierSync => self.named_barrier(&args[0], &args[1])?,
            Op::CudaClusterSync => self.emit(Inst::ClusterSync),
            Op::CudaGridSync => {
                self.code.grid_sync = true;
                self.emit(Inst::GridSync);
            }
            Op::TvmStorageSync => match self.text(&args[0])? {
                "shared" | "shared.dyn" | "global" => self.emit(Inst::CtaSync),
                "warp" => self.emit(Inst::WarpSync),
                scope => {
                    return error(
                        self.span,
                        format!("the simulator has no barrier over \"{scope}\""),
                    );
                }
            },
            // Memory is sequentially consistent within a block, and fences order nothing more across blocks.
            Op::CudaThreadFence | Op::Prefetch | Op::PtxFence => {}
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
            Op::PtxGriddepcontrolWait | Op::PtxGriddepcontrolLaunchDependents => {}
            _ if self.storing_instruction(op, args)? => {}
            _ if self.memory_instruction(op, args)?.is_some() => {}
            _ => return self.unknown(op),
        }
        Ok(())
    }

    /// A barrier of some threads.
    fn named_barrier(&mut self, id: &Expr, threads: &Expr) -> Result<()> {
        let mut uniform = [0; 2];
        for (register, e) in uniform.iter_mut().zip([id, threads]) {
            let value = self.value(e)?;
            let value = self.convert(value, Kind::U32)?;
            match self.first(value)?.at {
                Operand::S(s) => *register = s,
                Operand::V(_) => return error(self.span, "a barrier that differs from lane to lane"),
            }
        }
        let [id, threads] = uniform;
        self.emit(Inst::NamedSync { id, threads });
        Ok(())
    }

    fn check_arity(&self, op: Op, args: &[Expr]) -> Result<()> {
        let (fewest, most) = op.info().arity;
        if (fewest as usize..=most as usize).contains(&args.len()) {
            return Ok(());
        }
        error(
            self.span,
            format!("T.{} with {} arguments", op.info().script, args.len()),
        )
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
        let lanes = e.dtype.lanes;
        if let Some(un) = unary(op) {
            let operands = [&args[0]];
            return self.lanewise(&operands, lanes, |c, v| c.math(un, v[0]));
        }
        if let Some(bin) = binary(op) {
            return self.lanewise(&[&args[0], &args[1]], lanes, |c, v| {
                let kind = v[0].kind;
                let value = c.bin(bin, kind, kind, v[0], v[1])?;
                c.canonical(value)
            });
        }
        if let Some(op) = bitwise(op) {
            return self.lanewise(&[&args[0], &args[1]], lanes, |c, v| {
                c.bit_operation(op, v[0], v[1])
            });
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
                self.load_pointer(&args[0], kind, lanes)
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
        if op.name() != "tirx.ptx.fetch_register" {
            if let Some(values) = self.instruction(op, args)? {
                return Ok(values);
            }
            return match self.memory_instruction(op, args)? {
                Some(value) => Ok(vec![value]),
                None => self.unknown(op),
            };
        }
        let register = match args.get(1) {
            Some(name) => self.text(name)?.to_string(),
            None => return self.unknown(op),
        };
        let dim = |name: &str| match name {
            "x" => Some(0u8),
            "y" => Some(1),
            "z" => Some(2),
            _ => None,
        };
        let special = match register.rsplit_once('.') {
            None if register == "cluster_ctarank" => Some(Special::ClusterRank),
            Some((name, d)) => dim(d).and_then(|d| match name {
                "ctaid" => Some(Special::Index(Axis::Block(d))),
                "clusterid" => Some(Special::Index(Axis::Cluster(d))),
                "cluster_ctaid" => Some(Special::Index(Axis::ClusterCta(d))),
                "nctaid" => Some(Special::GridDim(d)),
                "ntid" => Some(Special::BlockDim(d)),
                "cluster_nctaid" => Some(Special::ClusterDim(d)),
                _ => None,
            }),
            None => None,
        };
        if let Some(special) = special {
            let register = self.special(special)?;
            return Ok(vec![Val::scalar(Kind::I32, register)]);
        }
        if let Some(("tid", d)) = register.rsplit_once('.')
            && let Some(d) = dim(d)
        {
            return Ok(vec![self.thread_index(d)?]);
        }
        if register == "laneid" {
            return self.lane_id().map(|lane| vec![lane]);
        }
        if let Some(mask) = register.strip_prefix("lanemask_") {
            let lane = self.lane_id()?;
            let (one, ones) = (
                self.integer(Kind::U32, 1)?,
                self.integer(Kind::U32, u32::MAX.into())?,
            );
            let bit = self.bit_operation(Bin::Shl, one, lane.with_kind(Kind::U32))?;
            let below = self.binary(BinOp::Sub, bit, one)?;
            let value = match mask {
                "eq" => bit,
                "lt" => below,
                "le" => self.bit_operation(Bin::Or, below, bit)?,
                "ge" => self.bit_operation(Bin::Xor, below, ones)?,
                "gt" => {
                    let up_to = self.bit_operation(Bin::Or, below, bit)?;
                    self.bit_operation(Bin::Xor, up_to, ones)?
                }
                _ => return error(self.span, format!("the simulator has no register %{register}")),
            };
            return Ok(vec![value.with_kind(Kind::I32)]);
        }
        if register == "warpid" {
            let register = self.special(Special::WarpId)?;
            return Ok(vec![Val::scalar(Kind::I32, register)]);
        }
        error(self.span, format!("the simulator has no register %{register}"))
    }

    fn lane_id(&mut self) -> Result<Val> {
        let rank = self.thread_rank()?;
        let mask = self.integer(Kind::I32, 31)?;
        self.bin(Bin::And, Kind::I32, Kind::I32, rank, mask)
    }

    /// A function of one float (or `fabs` of an integer).
    fn math(&mut self, op: Un, v: Val) -> Result<Val> {
        let op = if op == Un::Abs && !v.kind.is_float() {
            if !v.kind.is_signed() {
                return Ok(v);
            }
            Un::AbsS
        } else if !v.kind.is_float() {
            return error(self.span, format!("{op:?} of a value that is no float"));
        } else {
            op
        };
        let value = self.un(op, v.kind, v)?;
        self.canonical(value)
    }

    fn bit_operation(&mut self, op: Bin, a: Val, b: Val) -> Result<Val> {
        let kind = a.kind;
        let b = self.convert(b, kind)?;
        let op = if op == Bin::ShrS && !kind.is_signed() {
            Bin::ShrU
        } else {
            op
        };
        let value = self.bin(op, kind, kind, a, b)?;
        if op == Bin::Shl {
            self.canonical(value)
        } else {
            Ok(value)
        }
    }

    fn fma(&mut self, a: Val, b: Val, c: Val) -> Result<Val> {
        let kind = a.kind;
        if let (Operand::S(a), Operand::S(b), Operand::S(c)) = (a.at, b.at, c.at) {
            let d = self.temp_scalar()?;
            self.emit(Inst::FmaS { kind, d, a, b, c });
            return Ok(Val::scalar(kind, d));
        }
        let (a, b, c) = (self.vector(a)?, self.vector(b)?, self.vector(c)?);
        let d = self.temp(kind)?;
        self.emit(Inst::Fma { kind, d, a, b, c });
        Ok(Val::vector(kind, d))
    }

    fn classify(&mut self, op: Op, v: Val) -> Result<Val> {
        let kind = v.kind;
        if !kind.is_float() {
            return self.bits(Kind::Bool, (op == Op::Isfinite) as u64);
        }
        if op == Op::Isnan {
            return self.bin(Bin::NeF, kind, Kind::Bool, v, v);
        }
        let magnitude = self.un(Un::Abs, kind, v)?;
        let infinity = if kind == Kind::F64 {
            self.bits(kind, f64::INFINITY.to_bits())?
        } else {
            self.bits(kind, f32::INFINITY.to_bits() as u64)?
        };
        let op = if op == Op::Isinf { Bin::EqF } else { Bin::LtF };
        self.bin(op, kind, Kind::Bool, magnitude, infinity)
    }

    /// `(x * y + (1 << (q - s - 1))) >> (q - s)`, TVM's fixed-point product: arguments x, y, q, s.
    fn q_multiply_shift(&mut self, args: &[Expr]) -> Result<Val> {
        let mut v = Vec::new();
        for arg in args {
            let value = self.value(arg)?;
            v.push(self.convert(value, Kind::I64)?);
        }
        let [x, y, q, s] = v[..] else {
            return error(self.span, "q_multiply_shift takes four arguments");
        };
        self.count(5);
        let total = self.binary(BinOp::Sub, q, s)?;
        let one = self.integer(Kind::I64, 1)?;
        let half = self.binary(BinOp::Sub, total, one)?;
        let half = self.bit_operation(Bin::Shl, one, half)?;
        let product = self.binary(BinOp::Mul, x, y)?;
        let sum = self.binary(BinOp::Add, product, half)?;
        let shifted = self.bit_operation(Bin::ShrS, sum, total)?;
        self.convert(shifted, Kind::I32)
    }

    /// Dot product of four bytes (of vectors or packed) plus an accumulator.
    fn dp4a(&mut self, args: &[Expr], dtype: DType) -> Result<Val> {
        let kind = self.kind(dtype)?;
        let mut sides = Vec::new();
        for arg in &args[..2] {
            let byte = if arg.dtype.is_uint() {
                DType::UINT8
            } else {
                DType::INT8
            };
            sides.push(self.reinterpret(arg, byte.with_lanes(4))?);
        }
        let accumulator = self.value(&args[2])?;
        let mut sum = self.convert(accumulator, kind)?;
        self.count(8);
        for (a, b) in sides[0].iter().zip(&sides[1]) {
            let a = self.convert(*a, kind)?;
            let b = self.convert(*b, kind)?;
            let product = self.binary(BinOp::Mul, a, b)?;
            sum = self.binary(BinOp::Add, sum, product)?;
        }
        Ok(sum)
    }

    /// Linear index of the thread in its block.
    fn thread_rank(&mut self) -> Result<Val> {
        let mut rank = self.thread_index(0)?;
        let mut size = Val::scalar(Kind::I32, self.special(Special::BlockDim(0))?);
        for dim in 1..3u8 {
            if !self.scan.has_axis(Axis::Thread(dim)) {
                continue;
            }
            let index = self.thread_index(dim)?;
            let part = self.binary(BinOp::Mul, index, size)?;
            rank = self.binary(BinOp::Add, rank, part)?;
            let extent = Val::scalar(Kind::I32, self.special(Special::BlockDim(dim))?);
            size = self.binary(BinOp::Mul, size, extent)?;
        }
        Ok(rank)
    }

    fn word(&mut self, e: &Expr) -> Result<Val> {
        let value = self.value(e)?;
        self.convert(value, Kind::U32)
    }

    /// Arguments: mask, value, lane, width[, warp size].
    fn shuffle(&mut self, mode: ShuffleMode, args: &[Expr]) -> Result<Val> {
        let mask = self.word(&args[0])?;
        let value = self.value(&args[1])?;
        let lane = self.word(&args[2])?;
        let width = self.word(&args[3])?;
        self.count(1);
        let kind = value.kind;
        let uniform = mode == ShuffleMode::Index
            && lane.is_scalar()
            && self.constant_of(width) == Some(32)
            && self.constant_of(mask) == Some(u32::MAX as u64);
        let value = self.vector(value)?;
        let d = if uniform {
            Operand::S(self.temp_scalar()?)
        } else {
            Operand::V(self.temp(kind)?)
        };
        self.push_shuffle(Shuffle {
            mode,
            kind,
            d,
            value,
            lane: lane.at,
            width: width.at,
            mask: mask.at,
        })?;
        Ok(Val {
            kind,
            at: d,
            mutable: false,
        })
    }

    fn push_shuffle(&mut self, shuffle: Shuffle) -> Result<()> {
        let id = u16::try_from(self.code.shuffles.len()).unwrap_or(u16::MAX);
        if id == u16::MAX {
            return error(self.span, "the kernel has too many shuffles for the simulator");
        }
        self.code.shuffles.push(shuffle);
        self.emit(Inst::Shuffle { id });
        Ok(())
    }

    /// Ballots and reductions over the lanes of a mask.
    fn vote(&mut self, mode: ShuffleMode, mask: &Expr, value: Val) -> Result<Val> {
        let mask = self.word(mask)?;
        let kind = value.kind;
        let value = self.vector(value)?;
        let zero = self.integer(Kind::U32, 0)?;
        self.count(1);
        let d = self.temp(Kind::U32)?;
        self.push_shuffle(Shuffle {
            mode,
            kind,
            d: Operand::V(d),
            value,
            lane: zero.at,
            width: zero.at,
            mask: mask.at,
        })?;
        Ok(Val::vector(Kind::U32, d))
    }

    fn reduction(&self, name: &Expr, kind: Kind) -> Result<Bin> {
        let float = kind.is_float();
        let signed = kind.is_signed();
        Ok(match self.text(name)? {
            "sum" if float => Bin::AddF,
            "sum" => Bin::Add,
            "max" if float => Bin::MaxF,
            "max" if signed => Bin::MaxS,
            "max" => Bin::MaxU,
            "min" if float => Bin::MinF,
            "min" if signed => Bin::MinS,
            "min" => Bin::MinU,
            other => return error(self.span, format!("the simulator has no reduction \"{other}\"")),
        })
    }

    /// The reduction of groups of `width` lanes, in the order of the butterfly.
    fn butterfly(&mut self, value: Val, op: Bin, width: Val) -> Result<Val> {
        let kind = value.kind;
        let width = self.convert(width, Kind::U32)?;
        let mask = self.integer(Kind::U32, u32::MAX as i128)?;
        let zero = self.integer(Kind::U32, 0)?;
        let value = self.vector(value)?;
        let d = self.temp(kind)?;
        self.count(10);
        self.push_shuffle(Shuffle {
            mode: ShuffleMode::Butterfly(op),
            kind,
            d: Operand::V(d),
            value,
            lane: zero.at,
            width: width.at,
            mask: mask.at,
        })?;
        Ok(Val::vector(kind, d))
    }

    /// The block-wide reduction as the CUDA helper does it: each warp, one value a warp through `scratch`, the
    /// first warp over those, and the result through `scratch[0]`.
    fn cta_reduce(&mut self, args: &[Expr]) -> Result<Val> {
        let value = self.value(&args[0])?;
        let kind = value.kind;
        let op = self.reduction(&args[1], kind)?;
        let warps = self.word(&args[2])?;
        let scratch = self.value(&args[3])?;
        let width = self.integer(Kind::U32, 32)?;
        let value = self.butterfly(value, op, width)?;
        let rank = self.thread_rank()?;
        let low = self.integer(Kind::I32, 31)?;
        let lane = self.bin(Bin::And, Kind::I32, Kind::I32, rank, low)?;
        let zero = self.integer(Kind::I32, 0)?;
        let leads = self.bin(Bin::Eq, Kind::I32, Kind::Bool, lane, zero)?;
        let leads = self.vector(leads)?;
        let warp = Val::scalar(Kind::I32, self.special(Special::WarpId)?);

        let part = self.divide(leads);
        self.store_offset(scratch, warp, value, "scratch")?;
        self.meet(part, false);
        self.emit(Inst::CtaSync);
        let first = self.bin(Bin::Eq, Kind::I32, Kind::Bool, warp, zero)?;
        let Operand::S(first) = first.at else {
            return error(self.span, "the warp's number is not uniform");
        };
        let skip = self.jump(Inst::JumpIfNot { s: first, pc: 0 });
        self.label = self.code.insts.len();
        // The neutral element for lanes without a warp.
        let neutral = match op {
            Bin::AddF | Bin::Add | Bin::MaxU => self.bits(kind, 0)?,
            Bin::MaxF => self.bits(kind, kind.constant(f64::NEG_INFINITY))?,
            Bin::MinF => self.bits(kind, kind.constant(f64::INFINITY))?,
            Bin::MinU => self.integer(kind, if kind.wide() { -1 } else { u32::MAX as i128 })?,
            Bin::MaxS if kind.wide() => self.integer(kind, i64::MIN as i128)?,
            Bin::MinS if kind.wide() => self.integer(kind, i64::MAX as i128)?,
            Bin::MaxS => self.integer(kind, i32::MIN as i128)?,
            _ => self.integer(kind, i32::MAX as i128)?,
        };
        let partial = self.temp(kind)?;
        let top = self.registers.mark();
        self.move_to(partial, neutral, top);
        let has_warp = self.bin(Bin::LtS, Kind::I32, Kind::Bool, lane, warps.with_kind(Kind::I32))?;
        let has_warp = self.vector(has_warp)?;
        let part = self.divide(has_warp);
        let loaded = self.load_offset(scratch, lane, kind, "scratch")?;
        self.move_to(partial, loaded, top);
        self.meet(part, false);
        let total = self.butterfly(Val::vector(kind, partial), op, width)?;
        let part = self.divide(leads);
        self.store_offset(scratch, zero, total, "scratch")?;
        self.meet(part, false);
        self.land(skip);
        self.emit(Inst::CtaSync);
        self.load_offset(scratch, zero, kind, "scratch")
    }

    /// A call of a raw CUDA or C function: name[, source text], arguments.
    fn call_out(&mut self, op: Op, args: &[Expr], dtype: DType) -> Result<Vec<Val>> {
        let name = match args.first() {
            Some(name) => self.text(name)?.to_string(),
            None => return error(self.span, "a call of a function without a name"),
        };
        let rest = if op == Op::CudaFuncCall { 2 } else { 1 };
        let mut operands = Vec::new();
        for arg in args.iter().skip(rest) {
            if arg.as_str().is_some() {
                continue;
            }
            for value in self.values(arg)? {
                operands.push((value.kind, self.vector(value)?));
            }
        }
        self.count(1);
        let result = if dtype.is_void() {
            None
        } else if dtype.is_vector() {
            let message = format!("a raw CUDA function that returns {dtype} has no stand-in form");
            return error(self.span, message);
        } else {
            let kind = self.kind(dtype)?;
            Some((kind, self.temp(kind)?))
        };
        let id = self.code.calls.len() as u16;
        self.code.calls.push(ExternCall {
            name,
            args: operands,
            result,
        });
        self.emit(Inst::CallStandIn { id });
        Ok(result.map(|(kind, d)| Val::vector(kind, d)).into_iter().collect())
    }

    fn printf(&mut self, args: &[Expr]) -> Result<()> {
        let Some(format) = args.first() else {
            return error(self.span, "printf without a format");
        };
        let mut print = Print {
            format: self.text(format)?.to_string(),
            args: Vec::new(),
        };
        for arg in &args[1..] {
            if let Some(text) = arg.as_str() {
                // A constant string takes the place of its `%s`.
                print.format = print.format.replacen("%s", &text.replace('%', "%%"), 1);
                continue;
            }
            for value in self.values(arg)? {
                let register = self.vector(value)?;
                print.args.push((value.kind, register));
            }
        }
        self.push_print(print);
        Ok(())
    }

    fn push_print(&mut self, print: Print) {
        let id = self.code.prints.len() as u16;
        self.code.prints.push(print);
        self.emit(Inst::Print { id });
    }

    /// Arguments: data pointer, dtype, is-string, is-scalar, number of dimensions, extents.
    fn print_buffer(&mut self, args: &[Expr]) -> Result<()> {
        let [data, dtype, _, is_scalar, _, shape @ ..] = args else {
            return error(
                self.span,
                "print_buffer takes a pointer, a dtype, two flags and a shape",
            );
        };
        let Ok(dtype) = self.text(dtype)?.parse::<DType>() else {
            return error(self.span, "print_buffer of an unknown dtype");
        };
        let kind = self.kind(dtype)?;
        let count: Option<i128> = shape.iter().map(|e| e.as_int()).product();
        let count = if is_scalar.is_int(1) { Some(1) } else { count };
        let Some(count) = count.filter(|n| (0..=MOST_PRINTED).contains(n)) else {
            let message = format!("print_buffer prints at most {MOST_PRINTED} elements of a constant shape");
            return error(self.span, message);
        };
        let pointer = self.value(data)?;
        let verb = if kind.is_float() { "%g" } else { "%lld" };
        let mut print = Print {
            format: format!("[{}]\n", vec![verb; count as usize].join(", ")),
            args: Vec::new(),
        };
        for i in 0..count {
            let offset = self.integer(Kind::I64, i)?;
            let value = self.load_offset(pointer, offset, kind, "print_buffer")?;
            print.args.push((kind, self.vector(value)?));
        }
        self.push_print(print);
        Ok(())
    }
}

fn unary(op: Op) -> Option<Un> {
    Some(match op {
        Op::Exp => Un::Exp,
        Op::Exp2 => Un::Exp2,
        Op::Exp10 => Un::Exp10,
        Op::Erf => Un::Erf,
        Op::Tanh => Un::Tanh,
        Op::Sigmoid => Un::Sigmoid,
        Op::Log => Un::Log,
        Op::Log2 => Un::Log2,
        Op::Log10 => Un::Log10,
        Op::Log1p => Un::Log1p,
        Op::Tan => Un::Tan,
        Op::Cos => Un::Cos,
        Op::Cosh => Un::Cosh,
        Op::Sin => Un::Sin,
        Op::Sinh => Un::Sinh,
        Op::Asin => Un::Asin,
        Op::Acos => Un::Acos,
        Op::Atan => Un::Atan,
        Op::Acosh => Un::Acosh,
        Op::Asinh => Un::Asinh,
        Op::Atanh => Un::Atanh,
        Op::Sqrt => Un::Sqrt,
        Op::Rsqrt => Un::Rsqrt,
        Op::Floor => Un::Floor,
        Op::Ceil => Un::Ceil,
        Op::Trunc => Un::Trunc,
        // To nearest even, as the CUDA text has it.
        Op::Round => Un::Nearbyint,
        Op::Nearbyint => Un::Nearbyint,
        Op::Fabs => Un::Abs,
        _ => return None,
    })
}

fn binary(op: Op) -> Option<Bin> {
    Some(match op {
        Op::Atan2 => Bin::Atan2,
        Op::Pow => Bin::Pow,
        Op::Fmod => Bin::Fmod,
        Op::Hypot => Bin::Hypot,
        Op::Copysign => Bin::Copysign,
        Op::Nextafter => Bin::Nextafter,
        _ => return None,
    })
}

fn bitwise(op: Op) -> Option<Bin> {
    Some(match op {
        Op::BitwiseAnd => Bin::And,
        Op::BitwiseOr => Bin::Or,
        Op::BitwiseXor => Bin::Xor,
        Op::ShiftLeft => Bin::Shl,
        Op::ShiftRight => Bin::ShrS,
        _ => return None,
    })
}
