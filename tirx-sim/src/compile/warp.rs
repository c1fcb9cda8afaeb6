//! Collective operations of the lanes of a warp and the warps of a block: barriers, shuffles, votes, reductions.

use tirx_ir::intrin::Op;
use tirx_ir::{DType, Expr};
use tirx_source::diagnostic::{Result, error};

use super::Compiler;
use super::call::Call;
use super::registers::Val;
use tirx_sim_machine::alu::Bin;
use tirx_sim_machine::bytecode::{
    Ballot, Inst, Operand, PartedBarrier, R, Scope, Shuffle, ShuffleMode, Special, Vote, WHOLE_BLOCK,
};
use tirx_sim_machine::numeric::Kind;

/// `__threadfence()` is `membar.gl`, which is `fence.sc.gpu`.
pub(super) const THREADFENCE: Inst = Inst::Fence {
    scope: Scope::Gpu,
    sc: true,
};

/// A named barrier.
#[derive(Clone, Copy)]
pub(super) struct Named<'a> {
    pub(super) id: &'a Expr,
    /// All threads of the block where there is no count.
    pub(super) threads: Option<&'a Expr>,
    /// All lanes of a warp come together.
    pub(super) aligned: bool,
}

impl Compiler<'_> {
    /// A barrier of all threads of the block.
    pub(super) fn block_barrier(&mut self) {
        self.note_barrier();
        self.emit(Inst::CtaSync);
    }

    pub(super) fn sync_block(&mut self) -> Result<()> {
        self.block_barrier();
        Ok(())
    }

    pub(super) fn sync_grid(&mut self) -> Result<()> {
        self.code.grid_sync = true;
        self.emit(Inst::GridSync);
        Ok(())
    }

    /// The barrier of a scope of memory.
    pub(super) fn storage_sync(&mut self, scope: &Expr) -> Result<()> {
        match self.text(scope)? {
            "shared" | "shared.dyn" | "global" => self.block_barrier(),
            "warp" => self.emit(Inst::WarpSync),
            scope => {
                return error(
                    self.span,
                    format!("the simulator has no barrier over \"{scope}\""),
                );
            }
        }
        Ok(())
    }

    pub(super) fn arrive_at_cluster(&mut self, call: &Call<'_>) -> Result<()> {
        let relaxed = call.args.iter().any(|a| a.as_str() == Some("relaxed"));
        let aligned = call.named.flag("aligned");
        self.emit(Inst::ClusterArrive { relaxed, aligned });
        Ok(())
    }

    pub(super) fn wait_for_cluster(&mut self, call: &Call<'_>) -> Result<()> {
        let aligned = call.named.flag("aligned");
        self.emit(Inst::ClusterWait { aligned });
        Ok(())
    }

    pub(super) fn fence(&mut self, call: &Call<'_>) -> Result<()> {
        let sc = call.named.text("sem") == "sc";
        let scope = Scope::from_modifier(call.named.text("scope"));
        self.emit(Inst::Fence { scope, sc });
        Ok(())
    }

    pub(super) fn fence_of_proxies(&mut self, call: &Call<'_>) -> Result<()> {
        let space = call.named.text("space");
        self.emit(Inst::FenceProxy {
            shared: space != "global",
            global: matches!(space, "" | "global"),
        });
        Ok(())
    }

    /// A block barrier that gives whether a condition holds for all threads, or for any.
    pub(super) fn barrier_with_vote(&mut self, condition: &Expr, all: bool) -> Result<Val> {
        let ballot = self.vote_of(condition, if all { Vote::All } else { Vote::Any })?;
        self.note_barrier();
        self.emit(Inst::CtaSyncReduce(ballot));
        Ok(Val::scalar(Kind::I32, ballot.d))
    }

    fn vote_of(&mut self, condition: &Expr, vote: Vote) -> Result<Ballot> {
        let predicate = self.condition(condition)?;
        let v = self.vector(predicate)?;
        let d = self.temp_scalar()?;
        self.count(1);
        Ok(Ballot { d, v, vote })
    }

    /// A named barrier that tells for how many threads a condition holds, whether for all, or for any.
    pub(super) fn named_barrier_with_vote(
        &mut self,
        named: Named<'_>,
        condition: &Expr,
        vote: Vote,
    ) -> Result<Val> {
        let ballot = self.vote_of(condition, vote)?;
        let [id, threads] = self.barrier_and_count(named)?;
        self.emit(Inst::NamedSyncReduce {
            id,
            threads,
            aligned: named.aligned,
            ballot,
        });
        Ok(Val::scalar(Kind::U32, ballot.d))
    }

    /// Registers the next block barrier as one that some threads may not reach.
    pub(super) fn note_barrier(&mut self) {
        if self.parted {
            let pc = self.code.insts.len();
            self.code
                .parted_barriers
                .push(PartedBarrier { pc, end: usize::MAX });
        }
    }

    /// A call with a barrier and a count.
    pub(super) fn barrier_of_call(&mut self, call: &Call<'_>, aligned: bool, waits: bool) -> Result<()> {
        let named = Named {
            id: self.argument(call, "name_bar_id")?,
            threads: Some(self.argument(call, "thread_count")?),
            aligned,
        };
        self.named_barrier(named, waits)
    }

    /// A barrier for some threads, which wait at it or only arrive.
    pub(super) fn named_barrier(&mut self, named: Named<'_>, waits: bool) -> Result<()> {
        let [id, threads] = self.barrier_and_count(named)?;
        let aligned = named.aligned;
        self.emit(if waits {
            Inst::NamedSync { id, threads, aligned }
        } else {
            Inst::NamedArrive { id, threads, aligned }
        });
        Ok(())
    }

    /// A named barrier for the threads of a warpgroup.
    pub(super) fn sync_warpgroup(&mut self, id: &Expr) -> Result<()> {
        let threads = Expr::int32(128);
        let named = Named {
            id,
            threads: Some(&threads),
            aligned: true,
        };
        self.named_barrier(named, true)
    }

    fn barrier_and_count(&mut self, named: Named<'_>) -> Result<[R; 2]> {
        let whole = Expr::constant(DType::UINT32, WHOLE_BLOCK.into());
        let mut uniform = [0; 2];
        for (register, e) in uniform
            .iter_mut()
            .zip([named.id, named.threads.unwrap_or(&whole)])
        {
            let value = self.value(e)?;
            let value = self.convert(value, Kind::U32)?;
            match self.first(value)?.at {
                Operand::S(s) => *register = s,
                Operand::V(_) => return error(self.span, "a barrier that differs from lane to lane"),
            }
        }
        Ok(uniform)
    }

    fn word(&mut self, e: &Expr) -> Result<Val> {
        let value = self.value(e)?;
        self.convert(value, Kind::U32)
    }

    /// A shuffle of `value`; `lane` is the name of the operand that says from which lane.
    fn shuffle(&mut self, mode: ShuffleMode, call: &Call<'_>, lane: &str, value: &Expr) -> Result<Val> {
        let mask = self.word(self.argument(call, "mask")?)?;
        let value = self.value(value)?;
        let lane = self.word(self.argument(call, lane)?)?;
        let width = self.word(self.argument(call, "width")?)?;
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

    /// TVM's shuffles, of a scalar.
    pub(super) fn warp_shuffle(&mut self, mode: ShuffleMode, call: &Call<'_>, lane: &str) -> Result<Val> {
        self.shuffle(mode, call, lane, self.argument(call, "value")?)
    }

    /// CUDA's shuffles, whose value may be packed in a word.
    pub(super) fn shuffle_of_any(
        &mut self,
        mode: ShuffleMode,
        call: &Call<'_>,
        lane: &str,
    ) -> Result<Vec<Val>> {
        let value = self.argument(call, "var")?;
        let dtype = value.dtype;
        if u32::from(dtype.bits) * u32::from(dtype.lanes) != 32 || dtype.lanes == 1 {
            return Ok(vec![self.shuffle(mode, call, lane, value)?]);
        }
        let packed = Expr::call(Op::Reinterpret, DType::UINT32, vec![value.clone()]);
        let word = self.shuffle(mode, call, lane, &packed)?;
        let word = self.known(DType::UINT32, vec![word]);
        self.reinterpret(&word, dtype)
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

    pub(super) fn active_mask(&mut self) -> Result<Val> {
        self.count(1);
        let d = self.temp_scalar()?;
        self.emit(Inst::ActiveMask { d });
        Ok(Val::scalar(Kind::U32, d))
    }

    pub(super) fn ballot(&mut self, call: &Call<'_>) -> Result<Val> {
        let predicate = self.condition(self.argument(call, "pred")?)?;
        self.vote(ShuffleMode::Ballot, self.argument(call, "mask")?, predicate)
    }

    pub(super) fn reduced_over_lanes(&mut self, call: &Call<'_>, op: Bin) -> Result<Val> {
        let value = self.word(self.argument(call, "value")?)?;
        self.vote(ShuffleMode::Reduce(op), self.argument(call, "mask")?, value)
    }

    pub(super) fn warp_reduce(&mut self, call: &Call<'_>) -> Result<Val> {
        let width = self.value(self.argument(call, "width")?)?;
        let value = self.value(self.argument(call, "value")?)?;
        let op = self.reduction(self.argument(call, "op")?, value.kind)?;
        self.butterfly(value, op, width)
    }

    /// Ballots and reductions over the lanes of a mask.
    pub(super) fn vote(&mut self, mode: ShuffleMode, mask: &Expr, value: Val) -> Result<Val> {
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

    pub(super) fn reduction(&self, name: &Expr, kind: Kind) -> Result<Bin> {
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
    pub(super) fn butterfly(&mut self, value: Val, op: Bin, width: Val) -> Result<Val> {
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

    /// The block-wide reduction as the CUDA helper does it: each warp, one value per warp through `scratch`, the first
    /// warp over those, and the result through `scratch[0]`.
    pub(super) fn cta_reduce(&mut self, call: &Call<'_>) -> Result<Val> {
        let value = self.value(self.argument(call, "value")?)?;
        let kind = value.kind;
        let op = self.reduction(self.argument(call, "op")?, kind)?;
        let warps = self.word(self.argument(call, "num_warps")?)?;
        let scratch = self.value(self.argument(call, "scratch")?)?;
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
        // The neutral element, for lanes that stand for no warp.
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
}
