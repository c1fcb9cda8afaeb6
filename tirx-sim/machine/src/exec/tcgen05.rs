//! `tcgen05`: tensor memory and the tensor core that works on it.
//!
//! Matrix operations and copies to tensor memory are asynchronous operations of the thread that issues them, in the order
//! in which it does; `tcgen05.commit` tells an mbarrier when they are complete. Loads and stores are those of a warp:
//! registers that are loaded may be read at once (PTX ISA, "Register dependencies, same thread"), but the load reads tensor
//! memory until `tcgen05.wait::ld`; what is stored is there after `tcgen05.wait::st`. The order of accesses is that of all
//! memory, by columns of 16 lanes, with the fences of `tcgen05`.

use std::collections::BTreeSet;

use super::access::Check;
use super::address;
use super::engine::{Class, Completion, Issue, Operation, Reach, Work};
use super::order::{Conflict, Forked, Kind, Mark, Order, Place};
use super::run::Machine;
use super::{Shared, Trap};
use crate::alu::{FULL, LANES};
use crate::bytecode::{MmaInst, Operand, R, TensorMemoryInst};
use crate::fault::FaultKind;
use crate::tensor::descriptor::{Descriptor, PIECE};
use crate::tensor::format::Format;
use crate::tensor::matrix::Matrix;
use crate::tensor::tcgen05::Mma;
use crate::tensor::tmem::{COLUMNS, Cell, TensorMemory};
use crate::tensor::transfer::{Copy, Transfer};

/// Lanes of tensor memory that share a history.
const TOGETHER: u32 = 16;

/// The tensor memory of a block, with the histories of its cells.
#[derive(Default)]
pub(super) struct Bank {
    memory: TensorMemory,
    places: Vec<Place>,
}

/// What a warp has stored and not yet waited for.
#[derive(Debug)]
pub(super) struct Stored {
    pc: usize,
    cells: Vec<(Cell, Change)>,
}

/// How a warp accesses tensor memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Touch {
    Load,
    Store,
    /// Not asynchronous: `tcgen05.fence::after_thread_sync` does not apply to it.
    Free,
}

/// What a warp loads and has not waited for.
#[derive(Debug)]
pub(super) struct Loading {
    pc: usize,
    cells: Vec<Cell>,
    /// For each cell, who had written it.
    writes: Vec<Mark>,
}

impl Loading {
    /// The load.
    pub(super) fn pc(&self) -> usize {
        self.pc
    }
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Word(u32),
    /// The lower half alone.
    Half(u32),
}

impl Bank {
    pub(super) fn reset(&mut self) {
        self.memory.reset();
        self.places.clear();
    }

    /// The instruction of an allocation that has not been freed.
    pub(super) fn leak(&self) -> Option<(u32, usize)> {
        self.memory.leaked().first().map(|b| (b.columns, b.made_at))
    }

    fn place(&mut self, cell: Cell) -> &mut Place {
        if self.places.is_empty() {
            self.places = vec![Place::EMPTY; (128 / TOGETHER * COLUMNS) as usize];
        }
        let last = self.places.len() - 1;
        &mut self.places[((cell.lane / TOGETHER * COLUMNS + cell.column) as usize).min(last)]
    }

    /// One cell for each history that covers some of the cells.
    fn representatives(cells: impl Iterator<Item = Cell>) -> Vec<Cell> {
        let mut out: Vec<Cell> = cells
            .map(|c| Cell {
                lane: c.lane / TOGETHER * TOGETHER,
                column: c.column,
            })
            .collect();
        out.sort_unstable();
        out.dedup();
        out
    }

    fn accessed(
        &mut self,
        cells: &[Cell],
        mut note: impl FnMut(&mut Place) -> Result<(), Conflict>,
    ) -> Result<(), (Cell, Conflict)> {
        for cell in cells {
            note(self.place(*cell)).map_err(|conflict| (*cell, conflict))?;
        }
        Ok(())
    }
}

fn misuse(lane: u32, message: impl Into<String>) -> Box<Trap> {
    Trap::new(FaultKind::Asynchronous, lane, message)
}

fn moved(address: u32, lane: usize, column: usize) -> Cell {
    let base = Cell::of_address(address);
    Cell {
        lane: base.lane + lane as u32,
        column: base.column + column as u32,
    }
}

impl Machine<'_, '_> {
    /// Runs an instruction of tensor memory.
    pub(super) fn tensor_memory(
        &mut self,
        pc: usize,
        inst: &TensorMemoryInst,
        mask: u32,
        scalars: &[u64],
    ) -> Check {
        match inst {
            TensorMemoryInst::Alloc {
                to,
                access,
                columns,
                temp,
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
            TensorMemoryInst::Dealloc { address, columns } => {
                self.whole_warp(mask)?;
                let address = self.warp.v32[*address as usize][0];
                let columns = self.warp.v32[*columns as usize][0];
                let all = (0..128).step_by(TOGETHER as usize).flat_map(|lane| {
                    (0..columns.min(COLUMNS)).map(move |c| moved(address, lane, c as usize))
                });
                let cells = Bank::representatives(all);
                self.touch(pc, &cells, Touch::Free)?;
                self.shared
                    .bank
                    .memory
                    .free(address, columns)
                    .map_err(|m| misuse(0, m))?;
            }
            TensorMemoryInst::FenceBefore => self.shared.order.tensor_fence_before(self.id, mask),
            TensorMemoryInst::FenceAfter => self.shared.order.tensor_fence_after(self.id, mask),
            TensorMemoryInst::Relinquish => {
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
                self.stored_before(transfer_cells(transfer, base))?;
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
                        return Err(self.never_written(lane, &m));
                    }
                    self.own_word(*word, FULL, true)?;
                    self.put_local(*word, lanes, loaded);
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
            }
            TensorMemoryInst::Store {
                transfer,
                address,
                registers,
            } => {
                let base = self.transfer_base(transfer, *address, mask)?;
                let words = self.words_of(registers, scalars)?;
                let mut cells = Vec::new();
                for (r, word) in words.iter().enumerate() {
                    self.own_word(*word, FULL, false)?;
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
                self.warp.stored.push(Stored { pc, cells });
            }
            TensorMemoryInst::WaitStore => {
                self.whole_warp(mask)?;
                for stored in std::mem::take(&mut self.warp.stored) {
                    let cells = Bank::representatives(stored.cells.iter().map(|(cell, _)| *cell));
                    self.touch(stored.pc, &cells, Touch::Store)?;
                    for (cell, change) in stored.cells {
                        let memory = &mut self.shared.bank.memory;
                        let word = match change {
                            Change::Word(word) => word,
                            Change::Half(half) => memory.read(cell).unwrap_or(0) & 0xffff_0000 | half,
                        };
                        memory.write(cell, word).map_err(|m| misuse(0, m))?;
                    }
                }
            }
            TensorMemoryInst::Commit {
                barrier,
                ranks,
                predicate,
            } => {
                for lane in self.on(mask, *predicate) {
                    self.shared.order.tensor_fence_before(self.id, 1 << lane);
                    let address = self.warp.v64[*barrier as usize][lane as usize];
                    let ranks = ranks.map_or(0, |r| self.warp.v32[r as usize][lane as usize] & 0xffff);
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

    /// What this warp stores is there when it has waited: a load before that reads what was there.
    fn stored_before(&self, cells: impl Iterator<Item = Cell>) -> Check {
        if self.warp.stored.is_empty() || !self.shared.order.check {
            return Ok(());
        }
        let loaded: BTreeSet<Cell> = cells.collect();
        let reads = |stored: &&Stored| stored.cells.iter().any(|(cell, _)| loaded.contains(cell));
        let Some(stored) = self.warp.stored.iter().find(reads) else {
            return Ok(());
        };
        let message = "tcgen05.ld reads columns of tensor memory that a tcgen05.st of this warp is still writing: \
                       tcgen05.wait::st is missing between them";
        let mut trap = Trap::new(FaultKind::Race, 0, message);
        trap.notes
            .push(("the store is issued here".to_string(), stored.pc));
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

    /// The warp accesses cells of tensor memory.
    fn touch(&mut self, pc: usize, cells: &[Cell], touch: Touch) -> Check {
        let Shared { bank, order, .. } = &mut *self.shared;
        if !order.check {
            return Ok(());
        }
        let mark = order.mark(self.id, pc, Kind::Plain).of(FULL);
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
            self.conflicting(&name, 0, conflict, verb)
        })
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

fn transfer_cells(transfer: &Transfer, base: u32) -> impl Iterator<Item = Cell> {
    let wide = if transfer.packed { 2 } else { 1 };
    (0..transfer.registers()).flat_map(move |r| {
        (0..LANES).flat_map(move |lane| {
            let (row, column) = transfer.place(lane, r);
            (0..wide).map(move |c| moved(base, row, column + c))
        })
    })
}

/// A `tcgen05.mma` in flight.
struct Product {
    mma: Mma,
    d: u32,
    /// A descriptor, or an address of tensor memory.
    left: Result<Descriptor, u32>,
    right: Descriptor,
    keep: bool,
    scale: u32,
    /// Lanes of D that are not written.
    off: Vec<u32>,
    factors: Option<[u32; 2]>,
    /// Where that of a sparse A is.
    metadata: Option<u32>,
}

/// A `tcgen05.cp` in flight.
struct CopyWork {
    copy: Copy,
    group: usize,
    address: u32,
    descriptor: Descriptor,
}

/// A `tcgen05.shift` in flight.
struct ShiftWork {
    group: usize,
    address: u32,
}

/// Columns that a shift moves: 32 bytes.
const SHIFTED: usize = 8;

impl Work for ShiftWork {
    fn run(&mut self, reach: &mut Reach<'_, '_>) -> Check {
        let first = Cell::of_address(self.address).lane as usize;
        for block in 0..self.group {
            let rank = reach.rank_of(self.group, block);
            let cell = |lane: usize, column: usize| moved(self.address, lane - first, column);
            let all = |lanes: std::ops::Range<usize>| {
                let cells = lanes.flat_map(|lane| (0..SHIFTED).map(move |column| cell(lane, column)));
                Bank::representatives(cells)
            };
            let last = crate::tensor::tmem::LANES as usize - 1;
            reach.note(rank, &all(first..last), false)?;
            reach.note(rank, &all(first + 1..last + 1), true)?;
            for lane in (first..last).rev() {
                for column in 0..SHIFTED {
                    let word = reach.cell(rank, cell(lane, column))?;
                    reach.set_cell(rank, cell(lane + 1, column), word)?;
                }
            }
        }
        Ok(())
    }
}

impl Reach<'_, '_> {
    /// The rank of a block of the pair (or of the block itself).
    fn rank_of(&self, group: usize, block: usize) -> usize {
        let own = self.peers.rank();
        if group == 2 { own & !1 | block } else { own }
    }

    fn bank(&mut self, rank: usize) -> Check<&mut Bank> {
        if rank == self.peers.rank() {
            return Ok(&mut self.shared.bank);
        }
        let name = self.operation.name;
        match self.peers.get(rank as u32) {
            Some(block) if !block.done() => Ok(&mut block.shared.bank),
            _ => Err(misuse(
                self.operation.lane,
                format!("{name} reaches rank {rank} of the cluster, where no block runs"),
            )),
        }
    }

    /// The bytes of pieces of a block's shared memory.
    fn shared_pieces(
        &mut self,
        rank: usize,
        descriptor: &Descriptor,
        pieces: &[u32],
        format: Option<Format>,
    ) -> Check<Vec<u8>> {
        let start = address::of_raw(descriptor.start, &self.ctx.code.shared);
        let what = "the tile of a descriptor";
        let required = descriptor.alignment();
        if let Some(message) = self.ctx.declared_alignment(start, what, required) {
            return Err(self.trap(FaultKind::Misaligned, message));
        }
        let mut bytes = vec![0; pieces.len() * PIECE];
        for (raw, out) in pieces.iter().zip(bytes.chunks_mut(PIECE)) {
            let mut at = address::of_raw(*raw, &self.ctx.code.shared);
            if rank != self.peers.rank() {
                at = address::of_rank(at, rank as u32);
            }
            if let Some(trap) = self.mismatch(rank, *raw, descriptor, format) {
                return Err(trap);
            }
            self.read(at, out)?;
        }
        Ok(bytes)
    }

    /// Records and checks an access to cells of tensor memory.
    fn note(&mut self, rank: usize, cells: &[Cell], writes: bool) -> Check {
        if !self.shared.order.check {
            return Ok(());
        }
        let operation: &Operation = self.operation;
        let forked: &Forked = &operation.forked;
        let done = self.bank(rank)?.accessed(cells, |place| match writes {
            true => place.tensor_write_by(forked),
            false => place.tensor_read_by(forked),
        });
        done.map_err(|(cell, conflict)| {
            let place = format!("lane {}, column {} of tensor memory", cell.lane, cell.column);
            self.conflict(&place, if writes { "writes" } else { "reads" }, Some(conflict))
        })
    }

    fn cell(&mut self, rank: usize, cell: Cell) -> Check<u32> {
        let read = self.bank(rank)?.memory.read(cell);
        read.map_err(|m| {
            let message = format!(
                "{} reads {m} (what tcgen05.st stores is there after tcgen05.wait::st)",
                self.operation.name
            );
            self.trap(FaultKind::Uninitialized, message)
        })
    }

    fn set_cell(&mut self, rank: usize, cell: Cell, word: u32) -> Check {
        let written = self.bank(rank)?.memory.write(cell, word);
        written.map_err(|m| misuse(self.operation.lane, format!("{} writes {m}", self.operation.name)))
    }
}

impl Product {
    /// A: each block's rows, from shared or tensor memory; from there for a part of D's columns.
    fn left(&self, reach: &mut Reach<'_, '_>, part: usize) -> Check<Matrix> {
        let mma = &self.mma;
        let operand = mma.left();
        let mut all = Matrix::zero(0, operand.k);
        let address = match &self.left {
            Ok(descriptor) => {
                let pieces = operand.pieces(descriptor);
                for block in 0..mma.group {
                    let rank = reach.rank_of(mma.group, block);
                    let bytes = reach.shared_pieces(rank, descriptor, &pieces, Some(mma.a))?;
                    all.append(operand.matrix(&bytes));
                }
                return Ok(all);
            }
            Err(address) => *address,
        };
        let decoder = mma.a.decoder();
        let mut out = Matrix::zero(mma.m, operand.k);
        let mut cells = vec![Vec::new(); mma.group];
        for row in 0..mma.m {
            for k in 0..operand.k {
                let (block, lane, column, shift) = mma.left_place(row, k, part);
                let cell = moved(address, lane, column);
                cells[block].push(cell);
                let word = reach.cell(reach.rank_of(mma.group, block), cell)?;
                out.set(row, k, decoder.decode(word >> shift));
            }
        }
        for (block, cells) in cells.into_iter().enumerate() {
            let cells = Bank::representatives(cells.into_iter());
            reach.note(reach.rank_of(mma.group, block), &cells, false)?;
        }
        Ok(out)
    }

    /// A with its zeros.
    fn spread(&self, reach: &mut Reach<'_, '_>, held: Matrix, address: u32) -> Check<Matrix> {
        let mma = &self.mma;
        let sparsity = mma.sparsity();
        let groups = mma.k / sparsity.span();
        let mut bits = vec![0; mma.m * groups];
        let mut cells = vec![Vec::new(); mma.group];
        for row in 0..mma.m {
            for group in 0..groups {
                let (block, lane, column, shift) = mma.metadata_place(row, group);
                let cell = moved(address, lane, column);
                cells[block].push(cell);
                bits[row * groups + group] =
                    reach.cell(reach.rank_of(mma.group, block), cell)? >> shift & 0xf;
            }
        }
        for (block, cells) in cells.into_iter().enumerate() {
            let cells = Bank::representatives(cells.into_iter());
            reach.note(reach.rank_of(mma.group, block), &cells, false)?;
        }
        let spread = sparsity.spread(&held, mma.k, |row, group| bits[row * groups + group]);
        spread.map_err(|m| misuse(reach.operation.lane, m))
    }

    /// Scale factors of rows: one for each block of k.
    fn factors(&self, reach: &mut Reach<'_, '_>, address: u32, of_b: bool) -> Check<Matrix> {
        let mma = &self.mma;
        let Some(scales) = mma.scales else {
            return Ok(Matrix::zero(0, 0));
        };
        let rows = if of_b { mma.n } else { mma.m };
        let per = if of_b { mma.n } else { mma.rows() };
        let decoder = scales.format.decoder();
        let mut out = Matrix::zero(rows, scales.blocks);
        for row in 0..rows {
            let rank = match of_b {
                true => reach.peers.rank(),
                false => reach.rank_of(mma.group, row / per),
            };
            let mut cells = Vec::new();
            for block in 0..scales.blocks {
                let (lane, column, shift) = mma.scale_place(row % per, block, of_b);
                let cell = moved(address, lane, column);
                let word = reach.cell(rank, cell)?;
                for copy in 1..4 {
                    let other = reach.cell(rank, moved(address, lane + 32 * copy, column))?;
                    if other >> shift & 0xff != word >> shift & 0xff {
                        return Err(misuse(
                            reach.operation.lane,
                            format!(
                                "the scale factors at lane {lane}, column {column} of tensor memory differ between the \
                                 four groups of 32 lanes, each of which needs all of them"
                            ),
                        ));
                    }
                }
                cells.push(cell);
                out.set(row, block, decoder.decode(word >> shift & 0xff));
            }
            reach.note(rank, &Bank::representatives(cells.into_iter()), false)?;
        }
        Ok(out)
    }
}

impl Work for Product {
    fn writes_tensor_memory(&self) -> bool {
        true
    }

    fn run(&mut self, reach: &mut Reach<'_, '_>) -> Check {
        let mma = self.mma;
        // A in tensor memory is read in the lanes of each part of D's columns.
        let parts = if self.left.is_err() { mma.parts() } else { 1 };
        let mut lefts = Vec::with_capacity(parts);
        for part in 0..parts {
            let mut left = self.left(reach, part)?;
            if let Some(address) = self.metadata {
                left = self.spread(reach, left, address)?;
            }
            lefts.push(left);
        }
        let operand = mma.right();
        let pieces = operand.pieces(&self.right);
        let mut right = Matrix::zero(0, operand.k);
        for block in 0..mma.group {
            let rank = reach.rank_of(mma.group, block);
            let bytes = reach.shared_pieces(rank, &self.right, &pieces, Some(mma.b))?;
            right.append(operand.matrix(&bytes));
        }
        let factors = match self.factors {
            Some([a, b]) => Some((self.factors(reach, a, false)?, self.factors(reach, b, true)?)),
            None => None,
        };
        let columns = mma.n / parts;
        let mut products = Vec::with_capacity(parts);
        for (part, left) in lefts.into_iter().enumerate() {
            let right = right.rows_from(part * columns, columns);
            let of_b = factors
                .as_ref()
                .map(|(_, b)| b.rows_from(part * columns, columns));
            let scales = factors.as_ref().zip(of_b.as_ref()).map(|((a, _), b)| (a, b));
            products.push(mma.product(left, right, scales));
        }
        let mut cells = vec![Vec::with_capacity(mma.rows() * mma.n); mma.group];
        for row in 0..mma.m {
            for col in 0..mma.n {
                let (block, lane, column) = mma.place(row, col);
                cells[block].push((moved(self.d, lane, column), row, col));
            }
        }
        for (block, cells) in cells.into_iter().enumerate() {
            let rank = reach.rank_of(mma.group, block);
            let all = Bank::representatives(cells.iter().map(|(cell, ..)| *cell));
            if self.keep {
                reach.note(rank, &all, false)?;
            }
            reach.note(rank, &all, true)?;
            for (cell, row, col) in cells {
                let word = block * 4 + cell.lane as usize / 32;
                let off = self.off.get(word).is_some_and(|m| m >> (cell.lane % 32) & 1 != 0);
                if off && !mma.weight_stationary {
                    continue;
                }
                let before = match self.keep {
                    true => Some(reach.cell(rank, cell)?),
                    false => None,
                };
                let product = products[col / columns].at(row, col % columns);
                let sum = mma.sum(product, before, self.scale);
                reach.set_cell(rank, cell, sum)?;
            }
        }
        Ok(())
    }
}

impl Work for CopyWork {
    fn writes_tensor_memory(&self) -> bool {
        true
    }

    fn run(&mut self, reach: &mut Reach<'_, '_>) -> Check {
        let pieces = self.copy.pieces(&self.descriptor);
        let per = self.copy.bits / 128;
        for block in 0..self.group {
            let rank = reach.rank_of(self.group, block);
            let bytes = reach.shared_pieces(rank, &self.descriptor, &pieces, None)?;
            let mut cells = Vec::new();
            for (i, piece) in bytes.chunks(PIECE).enumerate() {
                let (row, part) = (i / per, i % per);
                for lane in self.copy.lanes_of(row) {
                    for (w, word) in self.copy.expand(piece).into_iter().enumerate() {
                        cells.push((moved(self.address, lane, part * 4 + w), word));
                    }
                }
            }
            let all = Bank::representatives(cells.iter().map(|(cell, _)| *cell));
            reach.note(rank, &all, true)?;
            for (cell, word) in cells {
                reach.set_cell(rank, cell, word)?;
            }
        }
        Ok(())
    }
}
