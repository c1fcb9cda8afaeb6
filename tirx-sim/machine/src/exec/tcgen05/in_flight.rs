//! Operations of tensor memory in flight: what a product, a copy or a shift does when it is performed.

use super::{Bank, misuse, moved};
use crate::exec::access::Check;
use crate::exec::address;
use crate::exec::engine::{Operation, Reach, Work};
use crate::exec::fills::Reading;
use crate::exec::order::Forked;
use crate::fault::FaultKind;
use crate::findings::Excusable;
use crate::tensor::descriptor::{Descriptor, Operand, PIECE};
use crate::tensor::format::Format;
use crate::tensor::matrix::Matrix;
use crate::tensor::tcgen05::Mma;
use crate::tensor::tmem::Cell;
use crate::tensor::transfer::Copy;

/// A `tcgen05.mma` in flight.
pub(super) struct Product {
    pub(super) mma: Mma,
    pub(super) d: u32,
    /// A descriptor, or an address of tensor memory.
    pub(super) left: Result<Descriptor, u32>,
    pub(super) right: Descriptor,
    pub(super) keep: bool,
    pub(super) scale: u32,
    /// Lanes of D that are not written.
    pub(super) off: Vec<u32>,
    pub(super) factors: Option<[u32; 2]>,
    /// Where that of a sparse A is.
    pub(super) metadata: Option<u32>,
}

/// A `tcgen05.cp` in flight.
pub(super) struct CopyWork {
    pub(super) copy: Copy,
    pub(super) group: usize,
    pub(super) address: u32,
    pub(super) descriptor: Descriptor,
}

/// A `tcgen05.shift` in flight.
pub(super) struct ShiftWork {
    pub(super) group: usize,
    pub(super) address: u32,
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
            Some(block) if !block.gone() => Ok(&mut block.shared.bank),
            _ => Err(misuse(
                self.operation.lane,
                format!("{name} reaches rank {rank} of the cluster, and no block of this rank runs"),
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
        let start = address::of_byte(descriptor.start, &self.ctx.code.shared);
        let what = "the tile of a descriptor";
        let required = descriptor.alignment();
        if let Some(message) = self.ctx.declared_alignment(start, what, required) {
            return Err(self.trap(FaultKind::Misaligned, message));
        }
        let mut bytes = vec![0; pieces.len() * PIECE];
        for (raw, out) in pieces.iter().zip(bytes.chunks_mut(PIECE)) {
            let mut at = address::of_byte(*raw, &self.ctx.code.shared);
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

    /// Checks that the descriptor of an operand does not contradict the tile that it names.
    fn agrees(
        &mut self,
        rank: usize,
        descriptor: &Descriptor,
        operand: &Operand,
        pieces: &[u32],
        (name, done): (&str, bool),
    ) -> Check {
        let reading = Reading {
            descriptor,
            pieces,
            along: operand.along(),
            by_rows: operand.by_rows,
            name,
            done,
        };
        self.contradiction(rank, &reading).map_or(Ok(()), Err)
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
        let memory = &self.bank(rank)?.memory;
        let (read, allocated) = (memory.read(cell), memory.cell(cell).is_ok());
        read.or_else(|m| {
            let message = format!(
                "{} reads {m} (a tcgen05.st is complete after tcgen05.wait::st)",
                self.operation.name
            );
            let trap = self.trap(FaultKind::Uninitialized, message);
            if !allocated {
                return Err(trap);
            }
            self.excuse(Excusable::UnwrittenRead, trap)?;
            Ok(0)
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
                    reach.agrees(rank, descriptor, &operand, &pieces, ("A", false))?;
                    let bytes = reach.shared_pieces(rank, descriptor, &pieces, Some(mma.a))?;
                    reach.agrees(rank, descriptor, &operand, &pieces, ("A", true))?;
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
            reach.agrees(rank, &self.right, &operand, &pieces, ("B", false))?;
            let bytes = reach.shared_pieces(rank, &self.right, &pieces, Some(mma.b))?;
            reach.agrees(rank, &self.right, &operand, &pieces, ("B", true))?;
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
