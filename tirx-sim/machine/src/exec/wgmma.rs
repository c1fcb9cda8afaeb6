//! `wgmma`: asynchronous products of a warpgroup.
//!
//! Each warp of the warpgroup computes its own sixteen rows. The instructions belong to the warpgroup ([`Warpgroup`]): "all
//! threads in the warpgroup must execute the same" (PTX ISA, `.aligned` of "wgmma.mma_async", "wgmma.commit_group" and
//! "wgmma.wait_group"), and an operation begins when all four warps have issued it. So no warp's wait for a group is over
//! before all four have committed that group; on an H100 three warps wait for a fourth that comes late to the fence, to the
//! product or to the commit. What an operation reads of shared memory is read once for all four, when the first of them has
//! waited: an operation is complete for the whole warpgroup at once, so that one thread of it may tell.
//!
//! An instruction is an asynchronous operation: it is issued, and reads shared memory and writes registers later, here as
//! late as it may, when its group is waited for. Until then its registers belong to it (PTX ISA, "Asynchronous
//! warpgroup level matrix instructions"):
//!
//! - a thread that reads or writes an accumulator, or writes a register of A, of an operation that it has not waited
//!   for races with it;
//! - a register that a thread has written needs a `wgmma.fence` before an operation takes it, and the first operation
//!   needs one in any case;
//! - shared memory that threads have written needs a proxy fence, as for every asynchronous operation.

use std::collections::{BTreeMap, VecDeque};

use super::access::Check;
use super::address::{self, Target};
use super::cells::Cells;
use super::fills::{FILLED, Reading};
use super::order::{Alike, Forked, Kind, Mark, Space};
use super::run::Machine;
use super::shadow::{HeldMemory, Shaded, carry};
use super::tcgen05::Loading;
use super::{Shared, Status, Trap};
use crate::alu::{FULL, LANES, Lanes32};
use crate::bytecode::{Inst, LeftOperand, Operand, TensorInst, WgmmaInst};
use crate::fault::FaultKind;
use crate::findings::Excusable;
use crate::memory::granules;
use crate::tensor::descriptor::{self as matrix, Descriptor, PIECE};
use crate::tensor::format::Format;

/// The state of a warp's operations.
#[derive(Debug, Default)]
pub(super) struct Operations {
    /// Fences so far, and how many there were when each local word was last written by a thread.
    fences: u32,
    stored: Vec<u32>,
    /// How many operations in flight write each local word, and how many read it.
    writes: Vec<u16>,
    reads: Vec<u16>,
    /// Groups that are committed, oldest first, and operations that are in none yet.
    groups: VecDeque<Vec<Operation>>,
    open: Vec<Operation>,
    issued: u32,
    /// The instruction of the last one.
    last: usize,
    /// Loads of tensor memory that have not been waited for: their words, and the instructions.
    loads: Vec<(Vec<usize>, usize)>,
}

/// Warps of a warpgroup.
pub(super) const WARPS: usize = 4;

/// What the four warps of a warpgroup do together.
#[derive(Debug, Default)]
pub(super) struct Warpgroup {
    /// The instructions that some warps have done and others have not: the oldest first.
    steps: VecDeque<Step>,
    /// How many instructions came before these.
    before: u64,
    /// How many instructions each warp has done, how many groups it has committed, and how many of these it has waited for.
    done: [u64; WARPS],
    committed: [u64; WARPS],
    waited: [u64; WARPS],
    /// Warps that have ended.
    ended: [bool; WARPS],
    /// Operations that no warp has waited for yet: for each warp that has issued it, the order there.
    forks: BTreeMap<u32, Vec<(usize, Forked)>>,
}

/// An instruction of a warpgroup.
#[derive(Debug)]
struct Step {
    pc: usize,
    /// The warp that came first.
    warp: usize,
    /// What tells where the operands are, of a product.
    operands: Option<(Option<u64>, u64)>,
}

impl Warpgroup {
    /// The groups that a warp has committed, and those of them that it has waited for.
    pub(super) fn groups(&self, warp: usize) -> (u64, u64) {
        (self.committed[warp % WARPS], self.waited[warp % WARPS])
    }

    /// The warps that have not committed so many groups.
    pub(super) fn missing(&self, groups: u64) -> Vec<usize> {
        (0..WARPS).filter(|warp| self.committed[*warp] < groups).collect()
    }

    /// Whether a warp has ended.
    pub(super) fn has_ended(&self, warp: usize) -> bool {
        self.ended[warp % WARPS]
    }

    /// An instruction that one warp has done, and a warp that has not.
    pub(super) fn left_out(&self) -> Option<(usize, usize, usize)> {
        let step = self.steps.front()?;
        let other = (0..WARPS).find(|warp| self.done[*warp] <= self.before)?;
        Some((step.pc, step.warp, other))
    }

    /// The step that a warp comes to, if another warp has come there.
    fn next(&self, warp: usize) -> Option<&Step> {
        let at = self.done[warp % WARPS] - self.before;
        self.steps.get(at as usize)
    }

    /// A warp has done its next instruction.
    fn pass(&mut self, warp: usize) {
        self.done[warp % WARPS] += 1;
        while !self.steps.is_empty() && self.done.iter().all(|done| *done > self.before) {
            self.steps.pop_front();
            self.before += 1;
        }
    }
}

/// What an operation of a warpgroup has read: A (none where it is in registers) and B.
#[derive(Debug)]
pub(super) struct Operands {
    left: Option<Shaded>,
    right: Shaded,
    /// Warps of the warpgroup that have not taken it.
    left_over: usize,
}

/// An operation in flight.
#[derive(Debug)]
struct Operation {
    /// Its number among those of the warpgroup.
    number: u32,
    inst: u16,
    pc: usize,
    sums: Vec<usize>,
    /// Words of A, or its descriptor.
    left: Result<Vec<usize>, u64>,
    right: u64,
    /// Lanes whose accumulators' old contents are added.
    keep: u32,
    forked: Forked,
}

impl Operations {
    /// The warp starts another block.
    pub(super) fn reset(&mut self) {
        *self = Operations::default();
    }

    /// How many operations have been issued, and where the last one is.
    pub(super) fn issued(&self) -> (u32, usize) {
        (self.issued, self.last)
    }

    /// Words are loaded from tensor memory.
    pub(super) fn load(&mut self, pc: usize, words: Vec<usize>) {
        self.loads.push((words, pc));
    }

    /// All loads are waited for.
    pub(super) fn loaded(&mut self) {
        self.loads.clear();
    }

    /// The load that a word may still be waiting for.
    fn loading(&self, word: usize) -> Option<usize> {
        let load = self.loads.iter().find(|(words, _)| words.contains(&word));
        load.map(|(_, pc)| *pc)
    }

    /// A word that was loaded is read.
    fn arrived(&mut self, word: usize) {
        self.loads
            .iter_mut()
            .for_each(|(words, _)| words.retain(|w| *w != word));
    }

    /// Whether a thread may access a local word; otherwise the instruction that conflicts.
    fn in_the_way(&self, word: usize, writes: bool) -> Option<usize> {
        let busy = |counts: &[u16]| counts.get(word).is_some_and(|n| *n > 0);
        if !(busy(&self.writes) || writes && busy(&self.reads)) {
            return None;
        }
        let all = self.groups.iter().flatten().chain(&self.open);
        let of = |o: &&Operation| {
            o.sums.contains(&word) || writes && o.left.as_ref().is_ok_and(|left| left.contains(&word))
        };
        all.filter(of).map(|o| o.pc).next()
    }

    fn mark(&mut self, operation: &Operation, more: bool) {
        let change = |counts: &mut Vec<u16>, words: &[usize]| {
            for word in words {
                if counts.len() <= *word {
                    counts.resize(word + 1, 0);
                }
                counts[*word] = if more {
                    counts[*word].saturating_add(1)
                } else {
                    counts[*word].saturating_sub(1)
                };
            }
        };
        change(&mut self.writes, &operation.sums);
        if let Ok(left) = &operation.left {
            change(&mut self.reads, left);
        }
    }
}

impl Machine<'_, '_> {
    /// Whether threads may access a local word that `wgmma` may be using; a write is recorded.
    #[inline]
    pub(super) fn own_word(&mut self, word: usize, mask: u32, writes: bool) -> Check {
        if !self.ctx.code.wgmma {
            return Ok(());
        }
        self.own_word_of_wgmma(word, mask, writes)
    }

    fn own_word_of_wgmma(&mut self, word: usize, mask: u32, writes: bool) -> Check {
        // A register that is read has arrived then; one that is written first may be overwritten by what arrives.
        if !writes {
            self.warp.wgmma.arrived(word);
        } else if let Some(pc) = self.warp.wgmma.loading(word) {
            let lane = mask.trailing_zeros() & 31;
            let me = self.thread(self.id as u32 * 32 + lane);
            let message = format!(
                "thread {me} writes a register of a tcgen05.ld that it has not waited for: tcgen05.wait::ld is missing"
            );
            let mut trap = Trap::new(FaultKind::Race, lane, message);
            trap.notes.push(("the load is issued here".to_string(), pc));
            return Err(trap);
        }
        let in_the_way = self.warp.wgmma.in_the_way(word, writes);
        if let Some(pc) = in_the_way {
            let lane = mask.trailing_zeros() & 31;
            let me = self.thread(self.id as u32 * 32 + lane);
            let verb = if writes { "writes" } else { "reads" };
            let why = match self.warp.wgmma.open.iter().any(|open| open.pc == pc) {
                true => {
                    "the operation is in no group, since wgmma.commit_group is missing between it and the wait"
                }
                false => "wgmma.wait_group is missing, or lets too many groups go on",
            };
            let message = format!(
                "thread {me} {verb} a register of a wgmma operation that it has not waited for: {why}"
            );
            let mut trap = Trap::new(FaultKind::Race, lane, message);
            trap.notes.push(("the operation is issued here".to_string(), pc));
            return Err(trap);
        }
        let operations = &mut self.warp.wgmma;
        if writes {
            if operations.stored.len() <= word {
                operations.stored.resize(word + 1, 0);
            }
            // The number of fences plus one, so that 0 means "never written".
            operations.stored[word] = operations.fences + 1;
        }
        Ok(())
    }

    /// The warp comes to an instruction that all four warps of its warpgroup do.
    fn with_warpgroup(&mut self, pc: usize, mask: u32, operands: Option<(Option<u64>, u64)>) -> Check {
        self.whole_warp(mask)?;
        let id = self.id;
        let group = &mut self.shared.warpgroups[id / WARPS];
        let Some(step) = group.next(id) else {
            group.steps.push_back(Step {
                pc,
                warp: id,
                operands,
            });
            return Ok(());
        };
        let (there, other) = (step.pc, step.warp);
        let message = if there != pc {
            format!(
                "warp {id} comes to this {}, and warp {other} of its warpgroup has done another instruction in its place: the \
                 four warps of a warpgroup do each wgmma instruction together (.aligned)",
                name_of(&self.ctx.code.insts, &self.ctx.code.tensor, pc)
            )
        } else if step.operands != operands {
            format!(
                "warp {id} names other tiles in this wgmma than warp {other}: the descriptors are the same in all warps of a \
                 warpgroup"
            )
        } else {
            return Ok(());
        };
        let mut trap = Trap::new(FaultKind::Asynchronous, 0, message);
        if there != pc {
            trap.notes.push((format!("warp {other} has done this"), there));
        }
        Err(trap)
    }

    /// `wgmma.fence`.
    pub(super) fn wgmma_fence(&mut self, pc: usize, mask: u32) -> Check {
        self.with_warpgroup(pc, mask, None)?;
        self.shared.warpgroups[self.id / WARPS].pass(self.id);
        self.warp.wgmma.fences += 1;
        Ok(())
    }

    /// `wgmma.commit_group`.
    pub(super) fn wgmma_commit(&mut self, pc: usize, mask: u32) -> Check {
        self.with_warpgroup(pc, mask, None)?;
        let group = &mut self.shared.warpgroups[self.id / WARPS];
        group.pass(self.id);
        group.committed[self.id % WARPS] += 1;
        let operations = &mut self.warp.wgmma;
        let open = std::mem::take(&mut operations.open);
        operations.groups.push_back(open);
        self.shared.changes += 1;
        Ok(())
    }

    /// `wgmma.wait_group`: at most `n` groups stay in flight. Gives what the warp waits for, as long as other warps of the
    /// warpgroup have not committed the groups.
    pub(super) fn wgmma_wait(&mut self, pc: usize, mask: u32, n: usize) -> Check<Option<Status>> {
        self.with_warpgroup(pc, mask, None)?;
        let id = self.id;
        let group = &mut self.shared.warpgroups[id / WARPS];
        let groups = group.committed[id % WARPS].saturating_sub(n as u64);
        if !group.missing(groups).is_empty() {
            return Ok(Some(Status::Warpgroup(groups)));
        }
        group.pass(id);
        group.waited[id % WARPS] = group.waited[id % WARPS].max(groups);
        let mut done = Vec::new();
        while self.warp.wgmma.groups.len() > n {
            for operation in self.warp.wgmma.groups.pop_front().unwrap_or_default() {
                // It reads at last here, and is at fault where it is issued.
                self.complete(&operation).map_err(|mut trap| {
                    // What contradicts the tile is the product itself.
                    if trap.kind == FaultKind::Asynchronous {
                        return trap.blames(operation.pc);
                    }
                    trap.notes
                        .push(("the product is issued here".to_string(), operation.pc));
                    trap
                })?;
                self.warp.wgmma.mark(&operation, false);
                done.push(operation.forked.mark);
            }
        }
        self.shared.order.learn(self.id, FULL, &done);
        Ok(None)
    }

    /// A warp that ends has waited for its operations.
    pub(super) fn wgmma_ends(&mut self, mask: u32) -> Check {
        if !self.ctx.code.wgmma || self.warp.alive != 0 {
            return Ok(());
        }
        self.shared.warpgroups[self.id / WARPS].ended[self.id % WARPS] = true;
        let lane = mask.trailing_zeros() & 31;
        if let Some(stored) = self.warp.stored.first() {
            let message = "the warp ends before this tcgen05.st is waited for: tcgen05.wait::st is missing";
            return Err(Trap::new(FaultKind::Race, lane, message).blames(stored.pc()));
        }
        let loading = self.warp.loading.first().map(Loading::pc);
        if let Some(pc) = loading.filter(|_| self.shared.order.check) {
            let message = "the warp ends before this tcgen05.ld is waited for: tcgen05.wait::ld is missing";
            let trap = Trap::new(FaultKind::Race, lane, message).blames(pc);
            self.excuse(pc, Excusable::UnwaitedLoad, trap)?;
        }
        let operations = &self.warp.wgmma;
        let Some(first) = operations.groups.iter().flatten().chain(&operations.open).next() else {
            return Ok(());
        };
        let message = "the warp ends before this wgmma operation is waited for: wgmma.commit_group and wgmma.wait_group(0) \
                       are missing";
        Err(Trap::new(FaultKind::Race, lane, message).blames(first.pc))
    }

    /// Issues an operation.
    pub(super) fn wgmma_issue(
        &mut self,
        pc: usize,
        id: u16,
        inst: &WgmmaInst,
        mask: u32,
        scalars: &[u64],
    ) -> Check {
        let right = self.warp.v64[inst.right as usize][0];
        let descriptor = match &inst.left {
            LeftOperand::Registers(_) => None,
            LeftOperand::Shared(register) => Some(self.warp.v64[*register as usize][0]),
        };
        self.with_warpgroup(pc, mask, Some((descriptor, right)))?;
        let words = |machine: &Self, pointers: &[Operand]| -> Check<Vec<usize>> {
            pointers.iter().map(|p| machine.local_word(*p, scalars)).collect()
        };
        let sums = words(self, &inst.sums)?;
        let left = match &inst.left {
            LeftOperand::Registers(pointers) => Ok(words(self, pointers)?),
            LeftOperand::Shared(_) => Err(descriptor.unwrap_or(0)),
        };
        let keep = self.warp.v32[inst.keep as usize]
            .iter()
            .enumerate()
            .fold(0, |m, (lane, value)| m | u32::from(*value != 0) << lane);
        let operations = &self.warp.wgmma;
        if operations.fences == 0 {
            return Err(Trap::new(
                FaultKind::Race,
                0,
                "the first wgmma of a warp needs a wgmma.fence before it",
            ));
        }
        let taken = sums.iter().chain(left.iter().flatten());
        let unfenced = taken.copied().find(|w| {
            operations
                .stored
                .get(*w)
                .is_some_and(|at| *at > operations.fences)
        });
        if let Some(word) = unfenced {
            let (name, element) = self.local_name(word);
            let message = format!(
                "wgmma takes the register `{name}[{element}]`, which threads have written since the last wgmma.fence"
            );
            return Err(Trap::new(FaultKind::Race, 0, message));
        }
        // What A and the accumulators hold must have been written.
        let needed = |word: &usize, lanes: u32| {
            let places = granules(self.ctx.code.local_granule, word * 32, 32);
            let written = self.warp.local_written[places]
                .iter()
                .fold(u32::MAX, |m, w| m & w);
            lanes & !written
        };
        let sums_missing = sums
            .iter()
            .find(|w| self.warp.wgmma.writes.get(**w).is_none_or(|n| *n == 0) && needed(w, keep) != 0);
        let left_missing = left.iter().flatten().find(|w| needed(w, FULL) != 0);
        if let Some(word) = sums_missing.or(left_missing) {
            let (name, element) = self.local_name(*word);
            let message = format!("wgmma reads the register `{name}[{element}]` before it is written");
            let trap = Trap::new(FaultKind::Uninitialized, 0, message);
            self.excuse(pc, Excusable::UnwrittenRead, trap)?;
        }
        let known = self.shared.order.release(self.id, FULL);
        let number = self.warp.wgmma.issued;
        // Reads have even numbers.
        let first = self.id / WARPS * WARPS;
        let mark = Mark::new(number * 2, self.shared.order.block, FULL, pc, first, Kind::Engine);
        let operation = Operation {
            number,
            inst: id,
            pc,
            sums,
            left,
            right,
            keep,
            forked: Forked {
                known,
                mark,
                after: Vec::new(),
            },
        };
        let group = &mut self.shared.warpgroups[self.id / WARPS];
        group.pass(self.id);
        let forks = group.forks.entry(number).or_default();
        forks.push((self.id, operation.forked.clone()));
        let operations = &mut self.warp.wgmma;
        operations.issued += 1;
        operations.last = pc;
        operations.mark(&operation, true);
        operations.open.push(operation);
        Ok(())
    }

    /// An operation reads, computes and writes.
    fn complete(&mut self, operation: &Operation) -> Check {
        let code = self.ctx.code;
        let Some(inst) = code.wgmma_inst(operation.inst) else {
            return Ok(());
        };
        let wgmma = &inst.wgmma;
        let key = (self.id / WARPS, operation.number);
        let operands = match self.shared.read_by_groups.remove(&key) {
            Some(operands) => operands,
            None => {
                // What it reads must be visible to each warp that has issued it.
                let group = &mut self.shared.warpgroups[self.id / WARPS];
                let forks = group.forks.remove(&operation.number).unwrap_or_default();
                let operand = wgmma.right();
                let descriptor = Descriptor::of_sm90(operation.right);
                let pieces = operand.pieces(&descriptor);
                self.agrees(&descriptor, &operand, &pieces, ("B", false))?;
                let bytes = self.pieces(&descriptor, &pieces, &forks, ("B", wgmma.b))?;
                self.agrees(&descriptor, &operand, &pieces, ("B", true))?;
                let right = self.shaded(&operand, &pieces, &bytes);
                let left = match &operation.left {
                    Ok(_) => None,
                    Err(bits) => {
                        let (operand, descriptor) = (wgmma.left(), Descriptor::of_sm90(*bits));
                        let pieces = operand.pieces(&descriptor);
                        self.agrees(&descriptor, &operand, &pieces, ("A", false))?;
                        let bytes = self.pieces(&descriptor, &pieces, &forks, ("A", wgmma.a))?;
                        self.agrees(&descriptor, &operand, &pieces, ("A", true))?;
                        Some(self.shaded(&operand, &pieces, &bytes))
                    }
                };
                Operands {
                    left,
                    right,
                    left_over: WARPS,
                }
            }
        };
        let left = match (&operation.left, &operands.left) {
            (Ok(words), _) => {
                let registers: Vec<Lanes32> = words.iter().map(|w| self.warp.local[*w]).collect();
                Shaded {
                    values: wgmma.left_of_registers(&registers),
                    exactly: self.shade_registers(wgmma, words),
                }
            }
            (_, Some(left)) => left.rows_from(self.id % WARPS * 16, 16),
            _ => return Ok(()),
        };
        let right = operands.right.clone();
        if operands.left_over > 1 {
            let left_over = operands.left_over - 1;
            let rest = Operands {
                left_over,
                ..operands
            };
            self.shared.read_by_groups.insert(key, rest);
        }
        let mut sums: Vec<Lanes32> = operation.sums.iter().map(|w| self.warp.local[*w]).collect();
        let before = (&operation.sums[..], &sums[..], operation.keep);
        let shades = self.shade_wgmma(wgmma, left.exactly, right.exactly.as_ref(), before);
        let product = wgmma.product(left.values, &right.values);
        wgmma.accumulate(&product, 0, &mut sums, &|lane| operation.keep >> lane & 1 != 0);
        if let Some(shades) = shades {
            self.shade_wgmma_after(
                operation.forked.mark.pc(),
                wgmma,
                (&operation.sums, &sums),
                &shades,
            );
        }
        for (word, value) in operation.sums.iter().zip(sums) {
            self.put_local(*word, value, u32::MAX);
        }
        self.shared.changes += 1;
        Ok(())
    }

    /// An operand of the bytes of its pieces, with their shadows if errors are asked for.
    fn shaded(&self, operand: &matrix::Operand, pieces: &[u32], bytes: &[u8]) -> Shaded {
        let shadows = self.ctx.accuracy.is_some().then(|| {
            let mut shadows = HeldMemory::default();
            for (i, raw) in pieces.iter().enumerate() {
                let to = (i * PIECE * 8) as u64;
                let from = (&self.shared.held, u64::from(*raw) * 8);
                carry(from, (&mut shadows, to), (PIECE * 8) as u64);
            }
            shadows
        });
        Shaded::of_pieces(operand, bytes, shadows.as_ref())
    }

    /// All lanes' values of a local word.
    pub(super) fn put_local(&mut self, word: usize, value: Lanes32, lanes: u32) {
        self.warp.local[word] = value;
        let places = granules(self.ctx.code.local_granule, word * 32, 32);
        self.warp.local_written[places].fill(lanes);
    }

    /// The local word that a pointer names, the same for all lanes.
    pub(super) fn local_word(&self, pointer: Operand, scalars: &[u64]) -> Check<usize> {
        let pointer = match pointer {
            Operand::S(s) => scalars[s as usize],
            Operand::V(v) => {
                let lanes = &self.warp.v64[v as usize];
                if lanes.iter().any(|p| *p != lanes[0]) {
                    let message = "lanes name different registers for the same operand";
                    return Err(Trap::new(FaultKind::InvalidLanes, 0, message));
                }
                lanes[0]
            }
        };
        let Target::Local(array, byte) = address::decode(pointer) else {
            let message =
                "an operand in registers must be an element of a local array: this one is in other memory";
            return Err(Trap::new(FaultKind::OutOfBounds, 0, message));
        };
        let Some(array) = self.ctx.code.locals.get(array as usize) else {
            let message = "an operand in registers must be an element of a local array";
            return Err(Trap::new(FaultKind::OutOfBounds, 0, message));
        };
        let name = &array.name;
        if byte % 4 != 0 {
            let message = format!(
                "the operand at byte {byte} of local `{name}` begins within a register: registers have 32 bits, and hold \
                 two elements of 16 bits. Name every other element, or declare `{name}` as uint32"
            );
            return Err(Trap::new(FaultKind::Misaligned, 0, message));
        }
        if byte < 0 || byte + 4 > i64::from(array.bytes) {
            let message = format!(
                "the operand is register {} of local `{name}`, which has {} registers of 32 bits ({} bytes): elements of 16 \
                 bits are two in a register",
                byte / 4,
                array.bytes / 4,
                array.bytes
            );
            return Err(Trap::new(FaultKind::OutOfBounds, 0, message));
        }
        Ok(array.offset as usize + byte as usize / 4)
    }

    /// The array that a local word belongs to, and its number there.
    fn local_name(&self, word: usize) -> (&str, usize) {
        let of = |a: &&crate::bytecode::LocalArray| {
            let first = a.offset as usize;
            (first..first + (a.bytes as usize).div_ceil(4)).contains(&word)
        };
        match self.ctx.code.locals.iter().find(of) {
            Some(array) => (&array.name, word - array.offset as usize),
            None => ("local", word),
        }
    }

    /// Checks that the descriptor of an operand does not contradict the tile that it names.
    fn agrees(
        &self,
        descriptor: &Descriptor,
        operand: &matrix::Operand,
        pieces: &[u32],
        (name, done): (&str, bool),
    ) -> Check {
        let Cells::Fine(places) = &self.shared.cells else {
            return Ok(());
        };
        let granule = self.ctx.code.granule;
        let writer = |byte: u32| {
            places
                .get(granules(granule, byte as usize * 8, 8).start)?
                .operation()
        };
        let reading = Reading {
            descriptor,
            pieces,
            along: operand.along(),
            by_rows: operand.by_rows,
            name,
            done,
        };
        let Some((why, pc)) = self.shared.fills.contradiction(&reading, &writer) else {
            return Ok(());
        };
        let message = format!("the tensor core reads operand {name} {why}");
        let mut trap = Trap::new(FaultKind::Asynchronous, 0, message);
        trap.notes.extend(pc.map(|pc| (FILLED.to_string(), pc)));
        Err(trap)
    }

    /// The bytes of pieces of shared memory, read by an operation that these warps have issued.
    fn pieces(
        &mut self,
        descriptor: &Descriptor,
        pieces: &[u32],
        forks: &[(usize, Forked)],
        (operand, format): (&str, Format),
    ) -> Check<Vec<u8>> {
        let code = self.ctx.code;
        let array_of = |raw: u32| match address::decode(address::of_byte(raw, &code.shared)) {
            Target::Shared(array, byte) => {
                let name = &code.shared[array as usize];
                Some((array, byte, name))
            }
            _ => None,
        };
        let home = array_of(descriptor.start).map(|(array, ..)| array);
        let start = address::of_byte(descriptor.start, &code.shared);
        self.holds_pattern(0, "the tile of a descriptor", start, descriptor.alignment())?;
        let mut bytes = Vec::with_capacity(pieces.len() * PIECE);
        let mut unwritten: Option<u32> = None;
        let mut alike = Alike::default();
        for raw in pieces {
            let place = array_of(*raw).filter(|(array, byte, shared)| {
                Some(*array) == home && *byte >= 0 && *byte as usize + PIECE <= shared.bytes as usize
            });
            let Some((_, byte, shared)) = place else {
                let message = format!(
                    "the descriptor of {operand} (start {:#x}, leading {}, stride {}, {:?}) names bytes at {raw:#x} of \
                     shared memory, beyond the array in which it starts",
                    descriptor.start, descriptor.leading, descriptor.stride, descriptor.swizzle
                );
                return Err(Trap::new(FaultKind::OutOfBounds, 0, message));
            };
            let name = || {
                let place = match code.buffer_at(*raw) {
                    Some(element) => element,
                    None => format!("`{}` at byte {byte}", shared.name),
                };
                format!("{place} (operand {operand} of the tensor core)")
            };
            let Shared { cells, fills, .. } = &mut *self.shared;
            if let Cells::Fine(places) = cells {
                let mut writer = None;
                for place in &mut places[granules(code.granule, *raw as usize * 8, 8 * PIECE as u32)] {
                    if !place.is_written() {
                        unwritten = Some(*raw);
                    }
                    // The verdict depends on the piece and on the operation that has written it.
                    let operation = place.operation();
                    if writer != Some(operation)
                        && let Some((why, pc)) = fills.mismatch(*raw, place, descriptor, Some(format))
                    {
                        let message = format!("the tensor core reads {} {why}", name());
                        let mut trap = Trap::new(FaultKind::Asynchronous, 0, message);
                        trap.notes.push((FILLED.to_string(), pc));
                        return Err(trap);
                    }
                    writer = Some(operation);
                    let mut reader = 0;
                    let read = alike.access(place, |place| {
                        forks.iter().try_for_each(|(warp, forked)| {
                            reader = *warp;
                            place.read_by(forked, Space::Shared)
                        })
                    });
                    if let Err(conflict) = read {
                        let name = name();
                        // The message is about a thread of the warp that lacks the order.
                        let own = std::mem::replace(&mut self.id, reader);
                        let trap = self.conflicting(&name, 0, conflict, "lets the tensor core read");
                        self.id = own;
                        return Err(trap);
                    }
                }
            }
            if let Some(raw) = unwritten.take() {
                let name = name();
                let trap = match self.writer(raw) {
                    Some(pc) => self.under_way(&name, 0, "lets the tensor core read", pc),
                    None => {
                        let message =
                            format!("the tensor core reads {name} before anything was written there");
                        Trap::new(FaultKind::Uninitialized, 0, message)
                    }
                };
                self.read_early(forks.first().map_or(0, |(_, forked)| forked.mark.pc()), trap)?;
            }
            let words = &self.shared.words;
            let first = *raw as usize / 4;
            bytes.extend(
                words[first..first + PIECE / 4]
                    .iter()
                    .flat_map(|w| w.to_le_bytes()),
            );
        }
        Ok(bytes)
    }
}

/// The name of an instruction of a warpgroup.
pub(super) fn name_of(insts: &[Inst], tensor: &[TensorInst], pc: usize) -> &'static str {
    let inst = match insts.get(pc) {
        Some(Inst::Tensor { id }) => tensor.get(*id as usize),
        _ => None,
    };
    match inst {
        Some(TensorInst::WgmmaFence) => "wgmma.fence",
        Some(TensorInst::WgmmaCommit) => "wgmma.commit_group",
        Some(TensorInst::WgmmaWait { .. }) => "wgmma.wait_group",
        _ => "wgmma.mma_async",
    }
}

const _: () = assert!(LANES == 32);
