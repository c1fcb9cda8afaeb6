//! The instructions of tensor memory: loads and stores of a warp, and those that issue operations.

use std::collections::BTreeSet;

use super::in_flight::{CopyWork, Product, ShiftWork};
use super::{Bank, Change, Loading, Stored, Storing, TOGETHER, Touch, misuse, moved, shadow_bit};
use crate::alu::{FULL, LANES};
use crate::bytecode::{Code, Inst, MmaInst, Operand, R, TensorInst, TensorMemoryInst};
use crate::exec::access::Check;
use crate::exec::engine::{Class, Completion, Issue, Work};
use crate::exec::order::{Kind, Order, Place};
use crate::exec::run::Machine;
use crate::exec::shadow::{HeldMemory, carry};
use crate::exec::{Shared, Trap, warn};
use crate::fault::FaultKind;
use crate::findings::Excusable;
use crate::tensor::descriptor::Descriptor;
use crate::tensor::format::Format;
use crate::tensor::tcgen05::Mma;
use crate::tensor::tmem::{COLUMNS, Cell};
use crate::tensor::transfer::Transfer;

impl Machine<'_, '_> {
    /// Runs an instruction of tensor memory.
    pub(in crate::exec) fn tensor_memory(
        &mut self,
        pc: usize,
        inst: &TensorMemoryInst,
        mask: u32,
        scalars: &[u64],
    ) -> Check {
        if let Some(group) = inst.group() {
            self.one_group(pc, group, mask)?;
        }
        match inst {
            TensorMemoryInst::Alloc {
                to,
                access,
                columns,
                temp,
                ..
            } => {
                self.whole_warp(mask)?;
                let columns = self.warp.v32[*columns as usize][0];
                let given = self.shared.bank.memory.allocate(columns, pc);
                let given = given.map_err(|m| misuse(0, m))?;
                let Some(first) = given else {
                    return Err(misuse(
                        0,
                        format!(
                            "tcgen05.alloc waits for {columns} free columns of tensor memory, and nothing frees any"
                        ),
                    ));
                };
                self.never_more_columns(pc, columns);
                self.warp.v32[*temp as usize][0] = first;
                let access = &self.ctx.code.accesses[*access as usize];
                let at = self.warp.v64[*to as usize][0] as i64;
                self.shared.changes += 1;
                self.store_each(pc, *temp, access, 1, &|_| at)?;
                // The warp writes as a whole, in the order of its accesses to the same address (PTX ISA, "Asynchronous
                // Operations" of tcgen05).
                let order = &mut self.shared.order;
                let written = order.release(self.id, 1);
                order.acquire(self.id, FULL, &written);
            }
            TensorMemoryInst::Dealloc {
                address,
                columns,
                group,
            } => {
                self.whole_warp(mask)?;
                let address = self.warp.v32[*address as usize][0];
                let columns = self.warp.v32[*columns as usize][0];
                let all = (0..128).step_by(TOGETHER as usize).flat_map(|lane| {
                    (0..columns.min(COLUMNS)).map(move |c| moved(address, lane, c as usize))
                });
                let cells = Bank::representatives(all);
                if *group == 2 && self.shared.order.check {
                    self.pair_is_done(pc, &cells)?;
                    self.shared.bank.keep_before_free(&cells);
                }
                let lingers = self.ctx.findings.after.contains(Excusable::FreedColumns);
                match lingers {
                    false => self.touch(pc, &cells, Touch::Free)?,
                    true => {
                        if let Err(trap) = self.freed_in_use(pc, &cells) {
                            self.excuse(pc, Excusable::FreedColumns, trap)?;
                        }
                    }
                }
                self.shared
                    .bank
                    .memory
                    .free(address, columns, lingers)
                    .map_err(|m| misuse(0, m))?;
            }
            TensorMemoryInst::FenceBefore => self.shared.order.tensor_fence_before(self.id, mask),
            TensorMemoryInst::FenceAfter => self.shared.order.tensor_fence_after(self.id, mask),
            TensorMemoryInst::Relinquish { .. } => {
                self.whole_warp(mask)?;
                self.shared.bank.memory.relinquish();
            }
            TensorMemoryInst::Load {
                transfer,
                address,
                registers,
            } => {
                let base = self.transfer_base(transfer, *address, mask)?;
                let words = self.words_of(registers, scalars)?;
                self.stored_before(transfer_cells(transfer, base), "tcgen05.ld reads")?;
                let cells = Bank::representatives(transfer_cells(transfer, base));
                self.touch(pc, &cells, Touch::Load)?;
                for (r, word) in words.iter().enumerate() {
                    let mut lanes = [0; LANES];
                    let (mut loaded, mut missing) = (0, None);
                    for (lane, value) in lanes.iter_mut().enumerate() {
                        let (row, column) = transfer.place(lane, r);
                        let read = |c: usize| self.shared.bank.memory.read(moved(base, row, column + c));
                        let found = match transfer.packed {
                            false => read(0),
                            true => read(0).and_then(|low| Ok(low & 0xffff | read(1)? << 16)),
                        };
                        match found {
                            Ok(word) => {
                                *value = word;
                                loaded |= 1 << lane;
                            }
                            Err(m) => missing = missing.or(Some((lane as u32, m))),
                        }
                    }
                    // A product of 64 rows leaves half of the lanes as they are: what is loaded of those is no value, and
                    // reading it is the mistake.
                    if let (0, Some((lane, m))) = (loaded, missing) {
                        let trap = self.never_written(lane, &m);
                        self.excuse(pc, Excusable::UnwrittenRead, trap)?;
                        loaded = FULL;
                    }
                    self.own_word(*word, FULL, true)?;
                    self.put_local(*word, lanes, loaded);
                    self.shade_transfer(transfer, (base, r), *word, None);
                }
                self.warp.wgmma.load(pc, words);
                let bank = &mut self.shared.bank;
                let writes = cells.iter().map(|cell| bank.place(*cell).last_write()).collect();
                self.warp.loading.push(Loading { pc, cells, writes });
            }
            TensorMemoryInst::WaitLoad => {
                self.whole_warp(mask)?;
                self.warp.wgmma.loaded();
                // The cells may be read until now: what is told of before does not tell of these loads.
                for loading in std::mem::take(&mut self.warp.loading) {
                    self.unchanged(&loading)?;
                    self.touch(loading.pc, &loading.cells, Touch::Load)?;
                }
                self.shared.order.tensor_waited(self.id);
            }
            TensorMemoryInst::Store {
                transfer,
                address,
                registers,
            } => {
                let base = self.transfer_base(transfer, *address, mask)?;
                let words = self.words_of(registers, scalars)?;
                let (mut cells, mut shadows) = (Vec::new(), HeldMemory::default());
                for (r, word) in words.iter().enumerate() {
                    self.own_word(*word, FULL, false)?;
                    self.shade_transfer(transfer, (base, r), *word, Some(&mut shadows));
                    for lane in 0..LANES {
                        let value = self.warp.local[*word][lane];
                        let (row, column) = transfer.place(lane, r);
                        let cell = moved(base, row, column);
                        if transfer.packed {
                            cells.push((cell, Change::Half(value & 0xffff)));
                            cells.push((moved(base, row, column + 1), Change::Half(value >> 16)));
                        } else {
                            cells.push((cell, Change::Word(value)));
                        }
                    }
                }
                for (cell, _) in &cells {
                    let allocated = self.shared.bank.memory.cell(*cell);
                    allocated.map_err(|m| misuse(0, format!("tcgen05.st writes {m}")))?;
                }
                self.stored_before(cells.iter().map(|(cell, _)| *cell), "tcgen05.st writes")?;
                self.shared.bank.storing.push(Storing {
                    warp: self.id,
                    pc,
                    cells: cells.iter().map(|(cell, _)| *cell).collect(),
                });
                self.warp.stored.push(Stored { pc, cells, shadows });
            }
            TensorMemoryInst::WaitStore => {
                self.whole_warp(mask)?;
                let warp = self.id;
                self.shared.bank.storing.retain(|storing| storing.warp != warp);
                for stored in std::mem::take(&mut self.warp.stored) {
                    let cells = Bank::representatives(stored.cells.iter().map(|(cell, _)| *cell));
                    self.touch(stored.pc, &cells, Touch::Store)?;
                    for (cell, change) in stored.cells {
                        let Bank { memory, held, .. } = &mut self.shared.bank;
                        let bits = match change {
                            Change::Word(_) => 32,
                            Change::Half(_) => 16,
                        };
                        let bit = shadow_bit(cell);
                        carry((&stored.shadows, bit), (held, bit), bits);
                        let word = match change {
                            Change::Word(word) => word,
                            Change::Half(half) => memory.read(cell).unwrap_or(0) & 0xffff_0000 | half,
                        };
                        memory.write(cell, word).map_err(|m| misuse(0, m))?;
                    }
                }
                self.shared.order.tensor_waited(self.id);
            }
            TensorMemoryInst::Commit {
                barrier,
                ranks,
                predicate,
                group,
            } => {
                for lane in self.on(mask, *predicate) {
                    self.shared.order.tensor_fence_before(self.id, 1 << lane);
                    let address = self.warp.v64[*barrier as usize][lane as usize];
                    let ranks = ranks.map_or(0, |r| self.warp.v32[r as usize][lane as usize] & 0xffff);
                    if *group == 2 {
                        let (_, byte) = self.barrier_at(lane, address, None)?;
                        let told = match ranks.count_ones() {
                            0 | 1 => 1 << self.peers.rank(),
                            _ => ranks,
                        };
                        self.shared.engine.signals(pc, byte, told);
                    }
                    let targets: Vec<Option<u32>> = match ranks.count_ones() {
                        0 | 1 => vec![None],
                        _ => (0..16).filter(|r| ranks >> r & 1 != 0).map(Some).collect(),
                    };
                    let mut completions = Vec::new();
                    for rank in targets {
                        let (rank, byte) = self.barrier_at(lane, address, rank)?;
                        completions.push(Completion::Arrive(rank, byte, 1));
                    }
                    let issue = Issue {
                        class: Class::Tensor,
                        name: "the commit (tcgen05.commit)",
                        proxy: Kind::Engine,
                        work: None,
                        completions,
                        in_order: true,
                    };
                    self.issue(pc, lane, issue);
                }
            }
            TensorMemoryInst::Mma(inst) => {
                for lane in self.on(mask, inst.predicate) {
                    let work = self.product(inst, lane)?;
                    self.issue_tensor(pc, lane, "the matrix product (tcgen05.mma)", Box::new(work));
                }
            }
            TensorMemoryInst::Shift { group, address } => {
                for lane in self.on(mask, None) {
                    let address = self.warp.v32[*address as usize][lane as usize];
                    let work = self.shift(*group, address, lane)?;
                    self.issue_tensor(pc, lane, "the shift (tcgen05.shift)", Box::new(work));
                }
            }
            TensorMemoryInst::Copy {
                copy,
                group,
                address,
                descriptor,
            } => {
                for lane in self.on(mask, None) {
                    let bits = self.warp.v64[*descriptor as usize][lane as usize];
                    let work = CopyWork {
                        copy: *copy,
                        group: *group,
                        address: self.warp.v32[*address as usize][lane as usize],
                        descriptor: Descriptor::of_sm100(bits).map_err(|m| misuse(lane, m))?,
                    };
                    self.issue_tensor(pc, lane, "the copy to tensor memory (tcgen05.cp)", Box::new(work));
                }
            }
        }
        Ok(())
    }

    /// Warns of an allocation that is larger than the block's allocation before: "the number of columns allocated should not
    /// increase between any two allocations in the execution order within the CTA" (PTX ISA, `tcgen05.alloc`).
    fn never_more_columns(&mut self, pc: usize, columns: u32) {
        let before = self.shared.bank.allocated.replace((columns, pc));
        let Some((fewer, at)) = before.filter(|(fewer, _)| *fewer < columns) else {
            return;
        };
        let message = format!(
            "tcgen05.alloc of {columns} columns after one of {fewer}: the allocations of a block should not grow (PTX ISA, \
             tcgen05.alloc)"
        );
        let mut trap = misuse(0, message);
        trap.notes.push((format!("the one of {fewer} columns"), at));
        warn(self.ctx, self.shared, (self.id, pc), trap);
    }

    /// All instructions of a kernel have one `.cta_group` (PTX ISA, "tcgen05 instructions").
    fn one_group(&mut self, pc: usize, group: usize, mask: u32) -> Check {
        let (first, at) = *self.shared.bank.group.get_or_insert((group, pc));
        if first == group {
            return Ok(());
        }
        let message = format!(
            "a tcgen05 instruction of cta_group {group}, and one of cta_group {first} before: all tcgen05 instructions of a kernel have the same cta_group"
        );
        let mut trap = misuse(mask.trailing_zeros() % 32, message);
        trap.notes.push((format!("the one of cta_group {first}"), at));
        Err(trap)
    }

    /// `tcgen05.shift`: from the address on, a lane's 32 bytes move to the lane after it; those of the last lane are
    /// dropped.
    fn shift(&self, group: usize, address: u32, lane: u32) -> Check<ShiftWork> {
        let first = Cell::of_address(address).lane;
        if !first.is_multiple_of(LANES as u32) {
            let message =
                format!("tcgen05.shift at lane {first} of tensor memory: it must be a multiple of 32");
            return Err(misuse(lane, message));
        }
        Ok(ShiftWork { group, address })
    }

    /// Moves the shadows of a register of all lanes between the warp's local memory and tensor memory: to the registers, or to where a
    /// store keeps them until it is complete.
    fn shade_transfer(
        &mut self,
        transfer: &Transfer,
        (base, register): (u32, usize),
        word: usize,
        mut stores: Option<&mut HeldMemory>,
    ) {
        let Some(shadows) = &mut self.warp.shadows else {
            return;
        };
        let parts = if transfer.packed { 2 } else { 1 };
        let bits = 32 / parts as u64;
        for (lane, local) in shadows.local.iter_mut().enumerate() {
            let (row, column) = transfer.place(lane, register);
            for part in 0..parts {
                let cell = shadow_bit(moved(base, row, column + part));
                let own = word as u64 * 32 + part as u64 * bits;
                match &mut stores {
                    Some(stores) => carry((&*local, own), (&mut **stores, cell), bits),
                    None => carry((&self.shared.bank.held, cell), (&mut *local, own), bits),
                }
            }
        }
    }

    fn issue_tensor(&mut self, pc: usize, lane: u32, name: &'static str, work: Box<dyn Work>) {
        let issue = Issue {
            class: Class::Tensor,
            name,
            proxy: Kind::Engine,
            work: Some(work),
            completions: Vec::new(),
            in_order: true,
        };
        self.issue(pc, lane, issue);
    }

    fn on(&self, mask: u32, predicate: Option<R>) -> impl Iterator<Item = u32> + use<> {
        let on = predicate.map_or(mask, |p| {
            let values = &self.warp.v32[p as usize];
            (0..LANES).fold(0, |m, l| m | u32::from(mask >> l & 1 != 0 && values[l] != 0) << l)
        });
        (0..LANES as u32).filter(move |lane| on >> lane & 1 != 0)
    }

    fn words_of(&self, registers: &[Operand], scalars: &[u64]) -> Check<Vec<usize>> {
        registers.iter().map(|r| self.local_word(*r, scalars)).collect()
    }

    /// The address of a load or store, which the lanes of the warp must be allowed to.
    fn transfer_base(&self, transfer: &Transfer, address: R, mask: u32) -> Check<u32> {
        self.whole_warp(mask)?;
        let addresses = &self.warp.v32[address as usize];
        let base = addresses[0];
        if addresses.iter().any(|a| *a != base) {
            return Err(misuse(0, "lanes name different addresses of tensor memory"));
        }
        let lane = transfer
            .first_lane(self.id, base >> 16)
            .map_err(|m| misuse(0, format!("tcgen05.ld or .st at {m}")))?;
        Ok(lane << 16 | base & 0xffff)
    }

    /// What a warp stores is there when it has waited: a load before that reads what was there, and of two stores either may be
    /// performed last.
    fn stored_before(&self, cells: impl Iterator<Item = Cell>, accesses: &str) -> Check {
        let storing = &self.shared.bank.storing;
        if storing.is_empty() || !self.shared.order.check {
            return Ok(());
        }
        let accessed: BTreeSet<Cell> = cells.collect();
        let meets = |storing: &&Storing| storing.cells.iter().any(|cell| accessed.contains(cell));
        let Some(storing) = storing.iter().find(meets) else {
            return Ok(());
        };
        let whose = match storing.warp == self.id {
            true => "this warp".to_string(),
            false => format!("warp {}", storing.warp),
        };
        let message = format!(
            "{accesses} columns of tensor memory that a tcgen05.st of {whose} is still writing: \
             tcgen05.wait::st is missing between them"
        );
        let mut trap = Trap::new(FaultKind::Race, 0, message);
        trap.notes
            .push(("the store is issued here".to_string(), storing.pc));
        Err(trap)
    }

    /// Nobody has written what a load that was not waited for may still read.
    fn unchanged(&mut self, loading: &Loading) -> Check {
        if !self.shared.order.check {
            return Ok(());
        }
        let bank = &mut self.shared.bank;
        let mut cells = loading.cells.iter().zip(&loading.writes);
        let (block, id) = (self.shared.order.block, self.id);
        let changed = cells.find(|(cell, before)| {
            let write = bank.place(**cell).last_write();
            write != **before && !write.of_warp(block, id)
        });
        let Some((cell, _)) = changed else {
            return Ok(());
        };
        let write = bank.place(*cell).last_write();
        let message = format!(
            "lane {}, column {} of tensor memory is written while a tcgen05.ld may still read it: tcgen05.wait::ld is missing \
             before the column is given away",
            cell.lane, cell.column
        );
        let mut trap = Trap::new(FaultKind::Race, 0, message);
        trap.notes
            .push(("the load is issued here".to_string(), loading.pc));
        trap.notes.push(("it is written here".to_string(), write.pc()));
        Err(trap)
    }

    /// The blocks of a pair free their columns together ("one warp from each of the peer CTAs must collectively perform" it, PTX ISA,
    /// tcgen05.dealloc): what the other block does in its columns comes before that.
    fn pair_is_done(&mut self, pc: usize, cells: &[Cell]) -> Check {
        let rank = self.peers.rank() as u32 ^ 1;
        let mark = self.shared.order.mark(self.id, pc, Kind::Plain).with_lanes(FULL);
        let Some(block) = self.peers.get(rank) else {
            return Ok(());
        };
        let bank = &mut block.shared.bank;
        let mut found = None;
        for cell in cells {
            let mut place = bank.place(*cell).clone();
            let is_free = |place: &Place| {
                let write = place.last_write();
                !write.is_never() && !write.is_operation() && is_dealloc(self.ctx.code, write.pc())
            };
            if is_free(&place) {
                match bank.before_free.get(Bank::index(*cell)) {
                    Some(before) if !is_free(before) => place = before.clone(),
                    _ => continue,
                }
            }
            if let Err(conflict) = place.write_together(&self.shared.order, mark, false) {
                found = Some((*cell, conflict));
                break;
            }
        }
        let Some((cell, conflict)) = found else {
            return Ok(());
        };
        let name = format!(
            "lane {}, column {} of the tensor memory of the pair's other block",
            cell.lane, cell.column
        );
        Err(self.conflicting(&name, 0, conflict, "frees"))
    }

    /// Columns that linger when they are freed are in no order with those who use them, but some may use them still.
    fn freed_in_use(&mut self, pc: usize, cells: &[Cell]) -> Check {
        let before = self.shared.bank.places.clone();
        let done = self.touch(pc, cells, Touch::Free);
        self.shared.bank.places = before;
        done
    }

    /// The warp accesses cells of tensor memory.
    fn touch(&mut self, pc: usize, cells: &[Cell], touch: Touch) -> Check {
        let Shared { bank, order, .. } = &mut *self.shared;
        if !order.check {
            return Ok(());
        }
        let mark = order.mark(self.id, pc, Kind::Plain).with_lanes(FULL);
        let order: &Order = order;
        let (writes, verb) = match touch {
            Touch::Load => (false, "loads"),
            Touch::Store => (true, "stores to"),
            Touch::Free => (true, "frees"),
        };
        let done = bank.accessed(cells, |place| match writes {
            true => place.write_together(order, mark, touch != Touch::Free),
            false => place.read_together(order, mark),
        });
        done.map_err(|(cell, conflict)| {
            let name = format!("lane {}, column {} of tensor memory", cell.lane, cell.column);
            let before = conflict.mark();
            let mut trap = self.conflicting(&name, 0, conflict, verb);
            if touch == Touch::Free && before.pc() == pc {
                trap.message = format!(
                    "warp {} frees tensor memory that warp {} frees by the same instruction: one warp of the block executes it",
                    self.id,
                    before.warp()
                );
                trap.notes.clear();
            }
            trap
        })
    }

    /// The shape and formats of a matrix operation; `None` if its descriptor is of none.
    pub(in crate::exec) fn matrix_operation(&self, inst: &MmaInst, lane: u32) -> Option<Mma> {
        let descriptor = self.warp.v32[inst.descriptor as usize][lane as usize];
        let (stationary, sparse) = (inst.weight_stationary, inst.metadata.is_some());
        Mma::decode(inst.kind, descriptor, inst.group, stationary, sparse, inst.blocks).ok()
    }

    /// What a matrix operation does, from the registers of the lane that issues it.
    fn product(&self, inst: &MmaInst, lane: u32) -> Check<Product> {
        let word = |r: R| self.warp.v32[r as usize][lane as usize];
        let wide = |r: R| self.warp.v64[r as usize][lane as usize];
        let mma = Mma::decode(
            inst.kind,
            word(inst.descriptor),
            inst.group,
            inst.weight_stationary,
            inst.metadata.is_some(),
            inst.blocks,
        )
        .map_err(|m| misuse(lane, m))?;
        if let Some(named) = inst.named {
            let bits = word(inst.descriptor);
            // Formats of different kinds have the same bits.
            let encoded = self
                .ctx
                .code
                .descriptors
                .iter()
                .filter(|(of, _)| *of == bits)
                .map(|(_, formats)| *formats);
            let encoded: Vec<[Format; 3]> = encoded.collect();
            let described = match encoded.first() {
                Some(_) if encoded.contains(&named) => named,
                Some(formats) => *formats,
                None => mma.formats(),
            };
            if let Some(message) = differs(described, named) {
                return Err(misuse(
                    lane,
                    format!("the instruction descriptor {bits:#010x} of tcgen05.mma {message}"),
                ));
            }
        }
        let descriptor = |bits| Descriptor::of_sm100(bits).map_err(|m| misuse(lane, m));
        Ok(Product {
            mma,
            d: word(inst.d),
            left: match inst.left_in_memory {
                true => Err(wide(inst.left) as u32),
                false => Ok(descriptor(wide(inst.left))?),
            },
            right: descriptor(wide(inst.right))?,
            keep: word(inst.keep) != 0,
            scale: inst.scale,
            off: inst.off.iter().map(|r| word(*r)).collect(),
            factors: inst.factors.map(|[a, b]| [word(a), word(b)]),
            metadata: inst.metadata.map(word),
        })
    }
}

/// Whether an instruction frees columns, which counts as a write of them.
pub(in crate::exec) fn is_dealloc(code: &Code, pc: usize) -> bool {
    match code.insts.get(pc) {
        Some(Inst::Tensor { id }) => matches!(
            code.tensor[*id as usize],
            TensorInst::Memory(TensorMemoryInst::Dealloc { .. })
        ),
        _ => false,
    }
}

/// How the formats of A, B and D in an instruction descriptor differ from those that a call names.
fn differs(described: [Format; 3], called: [Format; 3]) -> Option<String> {
    let operands = [("A", "a_dtype"), ("B", "b_dtype"), ("D", "d_dtype")];
    let pairs = described.into_iter().zip(called);
    let ((name, argument), (described, called)) =
        operands.into_iter().zip(pairs).find(|(_, (x, y))| x != y)?;
    let [described, called] = [described, called].map(|format| format!("{format:?}").to_lowercase());
    Some(format!(
        "says that {name} is of {described}, and the call that it is of {called} ({argument}): the hardware follows the descriptor"
    ))
}

fn transfer_cells(transfer: &Transfer, base: u32) -> impl Iterator<Item = Cell> {
    let wide = if transfer.packed { 2 } else { 1 };
    (0..transfer.registers()).flat_map(move |r| {
        (0..LANES).flat_map(move |lane| {
            let (row, column) = transfer.place(lane, r);
            (0..wide).map(move |c| moved(base, row, column + c))
        })
    })
}
