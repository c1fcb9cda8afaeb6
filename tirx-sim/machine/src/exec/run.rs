//! The instruction loop of one strand.

use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::address;
use super::cluster::Peers;
use super::control::Settled;
use super::exchange::Arguments;
use super::lanes::{bits, canonical_lanes, fma, scalar_operands};
use super::order::Space;
use super::{Context, DeviceArguments, Frame, IMPATIENCE, Shared, Status, Strand, Trap, Turn, Warp};
use crate::alu::{
    LANES, binary32, binary32_scalar, binary64, binary64_scalar, compare64, multiply_add, put,
    scalar_compare64, scalar_unary32, scalar_unary64, scalar32, scalar64, unary32, unary64,
};
use crate::bytecode::{Axis, Code, Inst, Operand, Region};
use crate::fault::FaultKind;
use crate::findings::Excusable;
use crate::memory::granules;
use crate::numeric::convert;

/// One warp that runs, with the state it shares.
pub(super) struct Machine<'m, 'c> {
    pub(super) ctx: &'m Context<'c>,
    /// The device on which it runs.
    pub(super) device: &'m DeviceArguments,
    pub(super) shared: &'m mut Shared,
    pub(super) warp: &'m mut Warp,
    /// The other blocks of the cluster.
    pub(super) peers: Peers<'m>,
    /// The warp's number.
    pub(super) id: usize,
    /// The instruction of a raw call, for the accesses of its stand-in.
    pub(super) call: usize,
}

/// Why a strand stopped running.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stop {
    /// All lanes ended, or wait within a join.
    Gone,
    Blocked(Status),
    /// A loop that may wait has run several iterations.
    Spun,
    /// Others come first for so many rounds, by the schedule.
    Paused(u32),
}

impl Machine<'_, '_> {
    /// Runs a strand until it stops. On an error `strand.pc` is at the instruction.
    pub(super) fn run(&mut self, strand: &mut Strand) -> Result<Stop, Box<Trap>> {
        match self.ctx.observer.is_none() && !self.ctx.exploring && self.ctx.accuracy.is_none() {
            true => self.run_as::<false>(strand),
            false => self.run_as::<true>(strand),
        }
    }

    /// The same, observed or not: what is not observed costs nothing.
    fn run_as<const OBSERVED: bool>(&mut self, strand: &mut Strand) -> Result<Stop, Box<Trap>> {
        let ctx = self.ctx;
        let insts = &ctx.code.insts[..];
        let mut pc = strand.pc;
        let mut mask = strand.mask;
        // The instruction before; none where the strand starts or goes on.
        let mut last = usize::MAX;
        // The shadows of the instruction before.
        let mut pending = None;

        /// Leaves with an error at the current instruction.
        macro_rules! check {
            ($e:expr) => {
                match $e {
                    Ok(value) => value,
                    Err(trap) => {
                        strand.pc = pc - 1;
                        strand.mask = mask;
                        return Err(trap);
                    }
                }
            };
        }
        /// Stops; the strand continues after this instruction.
        macro_rules! stop {
            ($stop:expr) => {{
                strand.pc = pc;
                strand.mask = mask;
                return Ok($stop);
            }};
        }
        /// Continues with the lanes that control flow leaves active.
        macro_rules! settled {
            ($e:expr) => {{
                strand.pc = pc;
                strand.mask = mask;
                match $e {
                    Settled::Running => {
                        pc = strand.pc;
                        mask = strand.mask;
                    }
                    Settled::Parked | Settled::Finished => return Ok(Stop::Gone),
                }
            }};
        }
        macro_rules! s {
            ($r:expr) => {
                strand.scalars[$r as usize]
            };
        }
        macro_rules! index {
            ($r:expr, $wide:expr) => {
                if $wide {
                    s!($r) as i64
                } else {
                    s!($r) as u32 as i32 as i64
                }
            };
        }

        loop {
            let inst = insts[pc];
            if OBSERVED && ctx.exploring && ctx.code.acts(pc) {
                if !self.shared.may_act {
                    stop!(Stop::Paused(0));
                }
                self.shared.may_act = false;
            }
            if OBSERVED && let Some(observer) = &ctx.observer {
                self.observe(observer, pc, last, mask, strand);
                last = pc;
            }
            if OBSERVED && ctx.accuracy.is_some() {
                if let Some(pending) = pending.take() {
                    self.shade_after(pending, strand);
                }
                pending = self.shade_before(&inst, pc, mask, strand);
            }
            pc += 1;
            match inst {
                Inst::Bin32 { op, d, a, b } => {
                    if op.may_trap() {
                        check!(self.operands32(op, a, b, mask));
                    }
                    binary32(op, &mut self.warp.v32, d as usize, a as usize, b as usize, mask);
                }
                Inst::Bin32S { op, d, a, s } => {
                    let b = s!(s) as u32;
                    if op.may_trap() {
                        check!(self.operand32(op, a, b, mask));
                    }
                    binary32_scalar(op, &mut self.warp.v32, d as usize, a as usize, b, mask);
                }
                Inst::BinS32 { op, d, a, b } => {
                    let (a, b) = (s!(a) as u32, s!(b) as u32);
                    if op.may_trap() {
                        check!(scalar_operands(op, a as i32 as i64, b as i32 as i64, false, mask));
                    }
                    s!(d) = scalar32(op, a, b) as u64;
                }
                Inst::MulAdd { d, a, b, c } => {
                    let [d, a, b, c] = [d, a, b, c].map(|r| r as usize);
                    multiply_add(&mut self.warp.v32, d, a, b, c, mask);
                }
                Inst::Load {
                    d,
                    index,
                    plus,
                    access,
                } => {
                    let plus = s!(plus);
                    if OBSERVED && ctx.accuracy.is_some() {
                        check!(self.load_with_shadows(pc - 1, d, index, plus, access, mask));
                    } else {
                        check!(self.load(pc - 1, d, index, plus, access, mask));
                    }
                }
                Inst::Store {
                    v,
                    index,
                    plus,
                    access,
                } => {
                    let plus = s!(plus);
                    if OBSERVED && ctx.accuracy.is_some() {
                        check!(self.store_with_shadows(pc - 1, v, index, plus, access, mask));
                    } else {
                        check!(self.store(pc - 1, v, index, plus, access, mask));
                    }
                }
                Inst::ForStep32 {
                    i,
                    step,
                    end,
                    pc: target,
                } => {
                    let next = (s!(i) as u32).wrapping_add(s!(step) as u32);
                    s!(i) = next as u64;
                    if (next as i32) < (s!(end) as u32 as i32) {
                        pc = target as usize;
                    }
                }
                Inst::Step { weight } => {
                    self.shared.lane_ops += weight as u64 * mask.count_ones() as u64;
                    self.shared.steps += 1;
                    if self.shared.steps & 0xffff == 0 {
                        ctx.turn.store(pc - 1, Ordering::Relaxed);
                    }
                    if self.shared.steps > ctx.step_limit {
                        check!(Err(Trap::new(
                            FaultKind::StepLimit,
                            mask.trailing_zeros() & 31,
                            format!(
                                "the block has run {} branches and loop iterations, the last of them here, and may never \
                                 end; a higher limit is set with `cargo tirx sim --step-limit`, with \
                                 `Device::new_simulator().step_limit(…)`, or with TIRX_SIM_STEP_LIMIT",
                                ctx.step_limit
                            ),
                        )));
                    }
                }

                Inst::Mov32 { d, a } => {
                    let value = self.warp.v32[a as usize];
                    put(&mut self.warp.v32[d as usize], &value, mask);
                }
                Inst::Mov64 { d, a } => {
                    let value = self.warp.v64[a as usize];
                    put(&mut self.warp.v64[d as usize], &value, mask);
                }
                Inst::MovS { d, a } => s!(d) = s!(a),
                Inst::Splat32 { d, s } => {
                    put(&mut self.warp.v32[d as usize], &[s!(s) as u32; LANES], mask);
                }
                Inst::Splat64 { d, s } => put(&mut self.warp.v64[d as usize], &[s!(s); LANES], mask),
                Inst::First32 { d, a } => {
                    s!(d) = self.warp.v32[a as usize][mask.trailing_zeros() as usize & 31] as u64;
                }
                Inst::First64 { d, a } => {
                    s!(d) = self.warp.v64[a as usize][mask.trailing_zeros() as usize & 31];
                }

                Inst::Bin64 { op, d, a, b } => {
                    if op.may_trap() {
                        check!(self.operands64(op, a, b, mask));
                    }
                    binary64(op, &mut self.warp.v64, d as usize, a as usize, b as usize, mask);
                }
                Inst::Bin64S { op, d, a, s } => {
                    let b = s!(s);
                    if op.may_trap() {
                        check!(self.operand64(op, a, b, mask));
                    }
                    binary64_scalar(op, &mut self.warp.v64, d as usize, a as usize, b, mask);
                }
                Inst::BinS64 { op, d, a, b } => {
                    let (a, b) = (s!(a), s!(b));
                    if op.may_trap() {
                        check!(scalar_operands(op, a as i64, b as i64, true, mask));
                    }
                    s!(d) = scalar64(op, a, b);
                }
                Inst::Cmp64 { op, d, a, b } => {
                    let out = compare64(op, &self.warp.v64[a as usize], &self.warp.v64[b as usize]);
                    put(&mut self.warp.v32[d as usize], &out, mask);
                }
                Inst::Cmp64S { op, d, a, s } => {
                    let out = compare64(op, &self.warp.v64[a as usize], &[s!(s); LANES]);
                    put(&mut self.warp.v32[d as usize], &out, mask);
                }
                Inst::CmpS64 { op, d, a, b } => s!(d) = scalar_compare64(op, s!(a), s!(b)) as u64,
                Inst::Un32 { op, d, a } => unary32(op, &mut self.warp.v32, d as usize, a as usize, mask),
                Inst::UnS32 { op, d, a } => s!(d) = scalar_unary32(op, s!(a) as u32) as u64,
                Inst::Un64 { op, d, a } => unary64(op, &mut self.warp.v64, d as usize, a as usize, mask),
                Inst::UnS64 { op, d, a } => s!(d) = scalar_unary64(op, s!(a)),
                Inst::Canonical { kind, d, a } => {
                    let out = canonical_lanes(kind, &self.warp.v32[a as usize]);
                    put(&mut self.warp.v32[d as usize], &out, mask);
                }
                Inst::CanonicalS { kind, d, a } => s!(d) = kind.canonical(s!(a) as u32) as u64,
                Inst::Convert { from, to, d, a } => self.convert(from, to, d as usize, a as usize, mask),
                Inst::Exact { id } => self.exact(id, mask),
                Inst::SharedAddress { d, a } => {
                    let (arrays, own) = (&ctx.code.shared, self.peers.rank() as u32);
                    let out = self.warp.v64[a as usize].map(|x| address::to_raw(x, arrays, own));
                    put(&mut self.warp.v32[d as usize], &out, mask);
                }
                Inst::SharedPointer { d, a } => {
                    let (arrays, own) = (&ctx.code.shared, self.peers.rank() as u32);
                    let out = self.warp.v32[a as usize].map(|x| address::of_raw(x, arrays, own));
                    put(&mut self.warp.v64[d as usize], &out, mask);
                }
                Inst::Mapa { d, a, rank } => {
                    let (a, rank) = (&self.warp.v64[a as usize], &self.warp.v32[rank as usize]);
                    let out = std::array::from_fn(|i| address::of_rank(a[i], rank[i]));
                    put(&mut self.warp.v64[d as usize], &out, mask);
                }
                Inst::ConvertS { from, to, d, a } => s!(d) = convert(from, to, s!(a)),
                Inst::ToBits { kind, d, a } => {
                    let out = self.warp.v32[a as usize].map(|x| kind.store(x as u64) as u32);
                    put(&mut self.warp.v32[d as usize], &out, mask);
                }
                Inst::ToBitsS { kind, d, a } => s!(d) = kind.store(s!(a)),
                Inst::FromBits { kind, d, a } => {
                    let out = self.warp.v32[a as usize].map(|x| kind.load(x as u64) as u32);
                    put(&mut self.warp.v32[d as usize], &out, mask);
                }
                Inst::FromBitsS { kind, d, a } => s!(d) = kind.load(s!(a)),
                Inst::Fma { kind, d, a, b, c } => self.fma(kind, [d, a, b, c], mask),
                Inst::FmaS { kind, d, a, b, c } => s!(d) = fma(kind, s!(a), s!(b), s!(c)),
                Inst::Select32 { d, c, a, b } => {
                    let v = &self.warp.v32;
                    let (c, a, b) = (&v[c as usize], &v[a as usize], &v[b as usize]);
                    let mut out = [0; LANES];
                    for i in 0..LANES {
                        out[i] = if c[i] != 0 { a[i] } else { b[i] };
                    }
                    put(&mut self.warp.v32[d as usize], &out, mask);
                }
                Inst::Select64 { d, c, a, b } => {
                    let w = &self.warp.v64;
                    let (c, a, b) = (&self.warp.v32[c as usize], &w[a as usize], &w[b as usize]);
                    let mut out = [0; LANES];
                    for i in 0..LANES {
                        out[i] = if c[i] != 0 { a[i] } else { b[i] };
                    }
                    put(&mut self.warp.v64[d as usize], &out, mask);
                }
                Inst::SelectS { d, c, a, b } => s!(d) = if s!(c) != 0 { s!(a) } else { s!(b) },

                Inst::Jump { pc: target } => pc = target as usize,
                Inst::JumpIf { s, pc: target } => {
                    if s!(s) != 0 {
                        pc = target as usize;
                    }
                }
                Inst::JumpIfNot { s, pc: target } => {
                    if s!(s) == 0 {
                        pc = target as usize;
                    }
                }
                Inst::ForStep64 {
                    i,
                    step,
                    end,
                    pc: target,
                } => {
                    let next = s!(i).wrapping_add(s!(step));
                    s!(i) = next;
                    if (next as i64) < (s!(end) as i64) {
                        pc = target as usize;
                    }
                }

                Inst::If { c, other, join } => {
                    let chosen = mask & bits(&self.warp.v32[c as usize]);
                    let rest = mask & !chosen;
                    let has_other = other != join;
                    if chosen == 0 && !has_other {
                        pc = join as usize + 1;
                        continue;
                    }
                    let (run, pending, joined) = match (chosen, has_other) {
                        (0, _) => {
                            pc = other as usize;
                            (rest, 0, 0)
                        }
                        (_, true) => (chosen, rest, 0),
                        (_, false) => (chosen, 0, rest),
                    };
                    mask = run;
                    strand.frames.push(Frame::If {
                        pending,
                        other,
                        joined,
                        join,
                    });
                }
                Inst::Arrive => settled!(self.warp.arrive(strand)),
                Inst::LoopBegin { latch, exit } => strand.frames.push(Frame::Loop {
                    next: 0,
                    latch,
                    left: 0,
                    exit,
                }),
                Inst::LoopTest { c } => {
                    let stay = mask & bits(&self.warp.v32[c as usize]);
                    if stay != mask {
                        leave_loop(strand, mask & !stay);
                        mask = stay;
                        if mask == 0 {
                            settled!(self.warp.settle(strand));
                        }
                    }
                }
                Inst::LoopTestS { s } => {
                    if s!(s) == 0 {
                        leave_loop(strand, mask);
                        mask = 0;
                        settled!(self.warp.settle(strand));
                    }
                }
                Inst::LoopLatch => {
                    if let Some(Frame::Loop { next, .. }) = strand.frames.last_mut() {
                        mask |= std::mem::take(next);
                    }
                }
                Inst::Break => settled!(self.warp.leave(strand, true)),
                Inst::Continue => settled!(self.warp.leave(strand, false)),
                Inst::Return => {
                    self.warp.alive &= !mask;
                    self.shared.order.ended(self.id, mask);
                    self.warp.returned |= mask;
                    check!(self.wgmma_ends(mask));
                    mask = 0;
                    settled!(self.warp.settle(strand));
                }
                Inst::End => {
                    self.warp.alive &= !mask;
                    self.shared.order.ended(self.id, mask);
                    check!(self.wgmma_ends(mask));
                    mask = 0;
                    settled!(self.warp.settle(strand));
                }
                Inst::Turn { id } => {
                    if ctx.exploring {
                        strand.mask = mask;
                        strand.begin_turn(id, left(ctx.code, self.warp, strand, id));
                    }
                }
                Inst::Spin { .. } => {
                    strand.turns += 1;
                    if strand.turns >= strand.patience || ctx.exploring {
                        strand.turns = 0;
                        stop!(Stop::Spun);
                    }
                }

                Inst::LoadWide {
                    d,
                    index,
                    plus,
                    access,
                } => {
                    let plus = s!(plus);
                    check!(self.load_wide(pc - 1, d, index, plus, access, mask));
                }
                Inst::LoadS {
                    d,
                    index,
                    wide,
                    access,
                } => {
                    let at = index!(index, wide);
                    check!(self.load_scalar(pc - 1, d, at, access, mask, &mut strand.scalars));
                }
                Inst::LoadRow {
                    d,
                    index,
                    wide,
                    access,
                } => {
                    let at = index!(index, wide);
                    check!(self.load_row(pc - 1, d, at, access, mask));
                }
                Inst::StoreRow {
                    v,
                    index,
                    wide,
                    access,
                } => {
                    let at = index!(index, wide);
                    check!(self.store_row(pc - 1, v, at, access, mask));
                }
                Inst::StoreWide {
                    v,
                    index,
                    plus,
                    access,
                } => {
                    let plus = s!(plus);
                    check!(self.store_wide(pc - 1, v, index, plus, access, mask));
                }
                Inst::LoadIndexed {
                    d,
                    array,
                    index,
                    wide,
                } => {
                    let at = index!(index, wide);
                    check!(self.load_indexed(pc - 1, d, array, at, mask));
                }
                Inst::StoreIndexed {
                    v,
                    array,
                    index,
                    wide,
                } => {
                    let at = index!(index, wide);
                    check!(self.store_indexed(v, array, at, mask));
                }
                Inst::Atomic { id } => {
                    strand.mask = mask;
                    check!(self.atomic(pc - 1, id, mask, strand));
                    let access = ctx.code.atomics[id as usize].access;
                    let far = !matches!(ctx.code.accesses[access as usize].region, Region::Shared(_));
                    if let Some(rounds) = self.shared.stops(ctx, far) {
                        stop!(Stop::Paused(rounds));
                    }
                }
                Inst::CheckInit { bit } => {
                    let missing = mask & !self.warp.written[bit as usize];
                    if missing != 0 {
                        let name = &ctx.code.init_bits[bit as usize];
                        let message = format!("reads {name} before this thread has written it");
                        let lane = missing.trailing_zeros();
                        let trap = Trap::new(FaultKind::Uninitialized, lane, message);
                        check!(self.excuse(pc - 1, Excusable::UnwrittenRead, trap));
                    }
                }
                Inst::MarkInit { bit } => self.warp.written[bit as usize] |= mask,
                Inst::ClearInit { bit } => self.warp.written[bit as usize] &= !mask,
                Inst::ClearLocal { array } => {
                    let array = &ctx.code.locals[array as usize];
                    let (first, bits) = (array.offset as usize * 32, array.bytes * 8);
                    let places = granules(ctx.code.local_granule, first, bits);
                    let places = &mut self.warp.local_written[places];
                    places.iter_mut().for_each(|written| *written &= !mask);
                }

                Inst::Shuffle { id } => {
                    strand.mask = mask;
                    let shuffle = &ctx.code.shuffles[id as usize];
                    let needed = check!(self.needed(shuffle, strand));
                    if needed & !mask != 0 {
                        // The strand resumes at the end of this instruction when the other lanes have arrived.
                        stop!(Stop::Blocked(Status::Exchange(id, needed)));
                    }
                    let mut arguments = Arguments::new();
                    self.arguments(shuffle, strand, &mut arguments);
                    let uniform = check!(self.exchange(pc - 1, shuffle, mask, &arguments));
                    if let Operand::S(d) = shuffle.d {
                        s!(d) = uniform;
                    }
                }
                Inst::WarpSync => {
                    if mask != self.warp.alive {
                        stop!(Stop::Blocked(Status::WarpSync));
                    }
                    self.shared.order.warp_sync(self.id);
                }
                Inst::Converged => check!(self.converged(mask)),
                Inst::ActiveMask { d } => s!(d) = mask as u64,
                Inst::CtaSync => stop!(Stop::Blocked(Status::Barrier(None))),
                Inst::CtaSyncReduce(ballot) => stop!(Stop::Blocked(Status::Barrier(Some(ballot)))),
                Inst::NamedSync { id, threads, aligned } => {
                    let meeting = self.meeting(s!(id), s!(threads), aligned);
                    stop!(Stop::Blocked(check!(self.wait_at_named(
                        pc - 1,
                        meeting,
                        mask,
                        None
                    ))));
                }
                Inst::NamedSyncReduce {
                    id,
                    threads,
                    aligned,
                    ballot,
                } => {
                    let meeting = self.meeting(s!(id), s!(threads), aligned);
                    stop!(Stop::Blocked(check!(self.wait_at_named(
                        pc - 1,
                        meeting,
                        mask,
                        Some(ballot)
                    ))));
                }
                Inst::NamedArrive { id, threads, aligned } => {
                    let meeting = self.meeting(s!(id), s!(threads), aligned);
                    check!(self.arrive_at_named(pc - 1, meeting, mask, false));
                    if let Some(rounds) = self.shared.stops(ctx, false) {
                        stop!(Stop::Paused(rounds));
                    }
                }
                Inst::ClusterSync => {
                    check!(self.cluster_arrive(mask, (false, true)));
                    stop!(Stop::Blocked(Status::Cluster));
                }
                Inst::ClusterArrive { relaxed, aligned } => {
                    check!(self.cluster_arrive(mask, (relaxed, aligned)));
                }
                Inst::ClusterWait { aligned } => {
                    if check!(self.cluster_wait(mask, aligned)) {
                        stop!(Stop::Blocked(Status::Cluster));
                    }
                }
                Inst::Async { id } => {
                    strand.mask = mask;
                    if let Some(status) = check!(self.asynchronous(pc - 1, id, mask)) {
                        // The strand repeats this instruction when it wakes.
                        pc -= 1;
                        stop!(Stop::Blocked(status));
                    }
                    if let Some(rounds) = self.shared.stops(ctx, false) {
                        stop!(Stop::Paused(rounds));
                    }
                }
                Inst::Fence { scope, sc } => {
                    if sc && self.ctx.misses_writes() {
                        self.shared.wait_for_turn(self.ctx);
                        let mut so_far = self.ctx.sc_fences.lock().unwrap_or_else(PoisonError::into_inner);
                        self.shared.order.join_fences(self.id, mask, scope, &mut so_far);
                    }
                    self.shared.order.fence(self.id, mask, scope, sc);
                }
                Inst::PeerPointer { d, a, rank } => {
                    let (a, rank) = (&self.warp.v64[a as usize], &self.warp.v32[rank as usize]);
                    let out = std::array::from_fn(|i| self.peer_address(a[i], rank[i]).unwrap_or(0));
                    put(&mut self.warp.v64[d as usize], &out, mask);
                }
                Inst::WindowPointer { d, a } => {
                    let a = &self.warp.v64[a as usize];
                    let alone = ctx.ranks() == 1;
                    let out = std::array::from_fn(|i| {
                        let window = ctx.memory.in_window(a[i]);
                        window.unwrap_or(if alone { a[i] } else { 0 })
                    });
                    put(&mut self.warp.v64[d as usize], &out, mask);
                }
                Inst::FenceAliases => self.shared.order.fence_proxy(self.id, mask, &[Space::Aliases]),
                Inst::FenceProxy { shared, global } => {
                    let spaces: &[Space] = match (shared, global) {
                        (true, true) => &[Space::Shared, Space::Global],
                        (false, _) => &[Space::Global],
                        (true, false) => &[Space::Shared],
                    };
                    self.shared.order.fence_proxy(self.id, mask, spaces);
                    if shared {
                        self.fence_barriers(mask);
                    }
                }
                Inst::PriorGrid => {
                    self.shared.order.behind_prior_grid(self.id, mask);
                    self.shared.waited = true;
                }
                Inst::GridSync => stop!(Stop::Blocked(Status::Grid)),
                Inst::Clock { d } => {
                    let now = self.shared.lane_ops / LANES as u64 + self.shared.steps;
                    put(&mut self.warp.v64[d as usize], &[now; LANES], mask);
                }

                Inst::Assert { c, message } => {
                    let failed = mask & !bits(&self.warp.v32[c as usize]);
                    if failed != 0 {
                        let message = ctx.code.messages.get(message as usize);
                        let message = message.map_or("assertion failed", |m| m.as_str());
                        let lane = failed.trailing_zeros();
                        check!(Err(Trap::new(FaultKind::Assertion, lane, message)));
                    }
                }
                Inst::Extent { s, axis } => {
                    let extent = s!(s) as u32;
                    let launched = match axis {
                        Axis::Block(d) => ctx.grid[d as usize],
                        Axis::Thread(d) => ctx.block[d as usize],
                        Axis::ClusterCta(d) => ctx.cluster[d as usize],
                        Axis::Cluster(d) => ctx.grid[d as usize] / ctx.cluster[d as usize].max(1),
                    };
                    if extent != launched {
                        let message = format!(
                            "{} has extent {extent} in the kernel and {launched} in the launch",
                            axis.name()
                        );
                        check!(Err(Trap::new(FaultKind::Launch, 0, message)));
                    }
                }
                Inst::Tensor { id } => {
                    if let Some(status) = check!(self.tensor(pc - 1, id, mask, &strand.scalars)) {
                        pc -= 1;
                        stop!(Stop::Blocked(status));
                    }
                }
                Inst::Print { id } => self.print(id, mask),
                Inst::CallStandIn { id } => {
                    self.shared.changes += 1;
                    self.call = pc - 1;
                    self.order_raw(mask);
                    check!(self.call_stand_in(id, mask));
                    self.order_raw(mask);
                }
            }
        }
    }
}

/// The active lanes that fail the innermost loop's test leave.
fn leave_loop(strand: &mut Strand, lanes: u32) {
    if let Some(Frame::Loop { left, .. }) = strand.frames.last_mut() {
        *left |= lanes;
    }
}

impl Strand {
    fn begin_turn(&mut self, of: u16, from: u64) {
        self.turn = Some(Turn {
            of,
            from,
            events: None,
            reads_only: true,
            reads: BTreeSet::new(),
        });
    }

    /// Records that the strand yielded in `state`; gives whether anything has changed since it last did.
    pub(super) fn yielded(&mut self, state: u64) -> bool {
        let changed = self.state != state;
        self.state = state;
        self.spun = true;
        self.patience = if changed { super::PATIENCE } else { IMPATIENCE };
        changed
    }
}

/// A hash of what an iteration of a loop leaves to the next one.
pub(super) fn left(code: &Code, warp: &Warp, strand: &Strand, of: u16) -> u64 {
    use std::hash::Hasher;
    let of = &code.polls[of as usize];
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write_u32(strand.mask);
    for r in &of.v32 {
        warp.v32[*r as usize]
            .iter()
            .for_each(|lane| hasher.write_u32(*lane));
    }
    for r in &of.v64 {
        warp.v64[*r as usize]
            .iter()
            .for_each(|lane| hasher.write_u64(*lane));
    }
    for array in &of.locals {
        let array = &code.locals[*array as usize];
        let words = array.offset as usize..array.offset as usize + array.bytes.div_ceil(4) as usize;
        warp.local[words]
            .iter()
            .flatten()
            .for_each(|lane| hasher.write_u32(*lane));
    }
    hasher.finish()
}

/// A hash of everything that a strand's loops may change.
pub(super) fn state(warp: &Warp, strand: &Strand) -> u64 {
    use std::hash::Hasher;
    let mut hasher = rustc_hash::FxHasher::default();
    for lanes in &warp.v32 {
        for pair in lanes.chunks_exact(2) {
            hasher.write_u64(pair[0] as u64 | (pair[1] as u64) << 32);
        }
    }
    for lanes in warp.v64.iter() {
        lanes.iter().for_each(|l| hasher.write_u64(*l));
    }
    for lanes in &warp.local {
        lanes.iter().for_each(|l| hasher.write_u32(*l));
    }
    strand.scalars.iter().for_each(|s| hasher.write_u64(*s));
    hasher.write_u32(strand.mask);
    hasher.finish()
}

const _: () = assert!(std::mem::size_of::<Inst>() <= 16);
