//! Operations of tensor memory in flight: what a product, a copy or a shift does when it is performed.

use super::{Bank, misuse, moved, shadow_bit};
use crate::accuracy::Sample;
use crate::exec::access::Check;
use crate::exec::address;
use crate::exec::engine::{Operation, Reach, Work};
use crate::exec::fills::Reading;
use crate::exec::order::Forked;
use crate::exec::shadow::{Held, HeldMemory, Shaded, accumulator, carry, least};
use crate::fault::FaultKind;
use crate::findings::Excusable;
use crate::numeric::Kind;
use crate::tensor::Outcome;
use crate::tensor::descriptor::{Descriptor, Operand, PIECE};
use crate::tensor::format::Format;
use crate::tensor::matrix::{Accumulator, Matrix};
use crate::tensor::tcgen05::Mma;
use crate::tensor::tmem::Cell;
use crate::tensor::transfer::{Copy, Expand};

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
                    let mut shadows = HeldMemory::default();
                    let held = &reach.bank(rank)?.held;
                    carry((held, shadow_bit(cell(lane, column))), (&mut shadows, 0), 32);
                    reach.set_cell(rank, cell(lane + 1, column), word, (&shadows, 0))?;
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

    /// The bytes of pieces of a block's shared memory, and their shadows by the distance from the first piece.
    fn shared_pieces(
        &mut self,
        rank: usize,
        descriptor: &Descriptor,
        pieces: &[u32],
        format: Option<Format>,
    ) -> Check<(Vec<u8>, HeldMemory)> {
        let start = address::of_byte(descriptor.start, &self.ctx.code.shared);
        let what = "the tile of a descriptor";
        let required = descriptor.alignment();
        if let Some(message) = self.ctx.declared_alignment(start, what, required) {
            return Err(self.trap(FaultKind::Misaligned, message));
        }
        let mut bytes = vec![0; pieces.len() * PIECE];
        self.carried.take();
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
        Ok((bytes, self.carried.take()))
    }

    /// The matrix of an operand in a block's shared memory.
    fn tile(&mut self, rank: usize, descriptor: &Descriptor, operand: &Operand, name: &str) -> Check<Shaded> {
        let pieces = operand.pieces(descriptor);
        self.agrees(rank, descriptor, operand, &pieces, (name, false))?;
        let (bytes, shadows) = self.shared_pieces(rank, descriptor, &pieces, Some(operand.format))?;
        self.agrees(rank, descriptor, operand, &pieces, (name, true))?;
        let shadows = self.ctx.accuracy.is_some().then_some(&shadows);
        Ok(Shaded::of_pieces(operand, &bytes, shadows))
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

    /// Writes a cell, with the shadows from a bit on.
    fn set_cell(&mut self, rank: usize, cell: Cell, word: u32, from: (&HeldMemory, u64)) -> Check {
        let bank = self.bank(rank)?;
        let written = bank.memory.write(cell, word);
        carry(from, (&mut bank.held, shadow_bit(cell)), 32);
        written.map_err(|m| misuse(self.operation.lane, format!("{} writes {m}", self.operation.name)))
    }
}

/// A product of a tensor core; if errors are asked for also that of the shadows, the exact one of the rounded operands, and the sums of its
/// terms' magnitudes.
struct Multiplied {
    values: Matrix,
    exactly: Option<[Matrix<f64>; 3]>,
}

impl Multiplied {
    fn from_operands(mma: &Mma, left: Shaded, right: Shaded, scales: Option<[Shaded; 2]>) -> Multiplied {
        let (of_values, of_exactly) = match scales {
            Some([a, b]) => (Some([a.values, b.values]), a.exactly.zip(b.exactly)),
            None => (None, None),
        };
        let exactly = left.exactly.zip(right.exactly).map(|(left, right)| {
            let ([left_shaded, left_exact], [right_shaded, right_exact]) = (left, right);
            let ([a_shaded, a_exact], [b_shaded, b_exact]) = match of_exactly {
                Some((a, b)) => (a.map(Some), b.map(Some)),
                None => ([None, None], [None, None]),
            };
            let scales = a_shaded.as_ref().zip(b_shaded.as_ref());
            let shaded = mma.product(left_shaded, right_shaded, scales);
            let scales = a_exact.as_ref().map(Matrix::magnitudes);
            let scales = scales.zip(b_exact.as_ref().map(Matrix::magnitudes));
            let scales = scales.as_ref().map(|(a, b)| (a, b));
            let terms = mma.product(left_exact.magnitudes(), right_exact.magnitudes(), scales);
            let scales = a_exact.as_ref().zip(b_exact.as_ref());
            [shaded, mma.product(left_exact, right_exact, scales), terms]
        });
        let scales = of_values.as_ref().map(|[a, b]| (a, b));
        Multiplied {
            values: mma.product(left.values, right.values, scales),
            exactly,
        }
    }
}

impl Product {
    /// A: each block's rows, from shared or tensor memory; from there for a part of D's columns.
    fn left(&self, reach: &mut Reach<'_, '_>, part: usize) -> Check<Shaded> {
        let mma = &self.mma;
        let operand = mma.left();
        let address = match &self.left {
            Ok(descriptor) => return self.of_blocks(reach, descriptor, &operand, "A"),
            Err(address) => *address,
        };
        let decoder = mma.a.decoder();
        let mut out = Shaded::zero(reach.ctx.accuracy.is_some(), mma.m, operand.k);
        let mut cells = vec![Vec::new(); mma.group];
        for row in 0..mma.m {
            for k in 0..operand.k {
                let (block, lane, column, shift) = mma.left_place(row, k, part);
                let cell = moved(address, lane, column);
                cells[block].push(cell);
                let rank = reach.rank_of(mma.group, block);
                let bits = reach.cell(rank, cell)? >> shift;
                let element = (mma.a, bits, decoder.decode(bits));
                let from = (&reach.bank(rank)?.held, shadow_bit(cell) + u64::from(shift));
                out.set((row, k), from, element);
            }
        }
        for (block, cells) in cells.into_iter().enumerate() {
            let cells = Bank::representatives(cells.into_iter());
            reach.note(reach.rank_of(mma.group, block), &cells, false)?;
        }
        Ok(out)
    }

    /// An operand in shared memory, of which each block has some rows.
    fn of_blocks(
        &self,
        reach: &mut Reach<'_, '_>,
        descriptor: &Descriptor,
        operand: &Operand,
        name: &str,
    ) -> Check<Shaded> {
        let mut all = reach.tile(reach.rank_of(self.mma.group, 0), descriptor, operand, name)?;
        for block in 1..self.mma.group {
            let rank = reach.rank_of(self.mma.group, block);
            all.append(reach.tile(rank, descriptor, operand, name)?);
        }
        Ok(all)
    }

    /// A with its zeros.
    fn spread(&self, reach: &mut Reach<'_, '_>, held: Shaded, address: u32) -> Check<Shaded> {
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
        let metadata = |row: usize, group: usize| bits[row * groups + group];
        let spread = || -> Outcome<Shaded> {
            let exactly = match &held.exactly {
                Some([shaded, exact]) => Some([
                    sparsity.spread(shaded, mma.k, metadata)?,
                    sparsity.spread(exact, mma.k, metadata)?,
                ]),
                None => None,
            };
            Ok(Shaded {
                values: sparsity.spread(&held.values, mma.k, metadata)?,
                exactly,
            })
        };
        spread().map_err(|m| misuse(reach.operation.lane, m))
    }

    /// Scale factors of rows: one for each block of k.
    fn factors(&self, reach: &mut Reach<'_, '_>, address: u32, of_b: bool) -> Check<Shaded> {
        let mma = &self.mma;
        let rows = if of_b { mma.n } else { mma.m };
        let blocks = mma.scales.map_or(0, |scales| scales.blocks);
        let mut out = Shaded::zero(reach.ctx.accuracy.is_some(), rows, blocks);
        if let Some(scales) = mma.scales {
            let per = if of_b { mma.n } else { mma.rows() };
            let decoder = scales.format.decoder();
            for row in 0..rows {
                let rank = match of_b {
                    true => reach.peers.rank(),
                    false => reach.rank_of(mma.group, row / per),
                };
                let mut cells = Vec::new();
                for block in 0..blocks {
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
                    let bits = word >> shift & 0xff;
                    let element = (scales.format, bits, decoder.decode(bits));
                    let from = (&reach.bank(rank)?.held, shadow_bit(cell) + u64::from(shift));
                    out.set((row, block), from, element);
                }
                reach.note(rank, &Bank::representatives(cells.into_iter()), false)?;
            }
        }
        Ok(out)
    }

    /// Gives the accumulator in a cell its shadow, in `shadows`, for the product without rounding and the exact one of the rounded operands.
    fn shade(
        &self,
        bank: &Bank,
        cell: Cell,
        [shaded, exact, terms]: [f64; 3],
        (before, sum): (Option<u32>, u32),
        shadows: &mut HeldMemory,
    ) -> Option<Sample> {
        let (kind, width) = match self.mma.d {
            Accumulator::F32 => (Kind::F32, 32),
            Accumulator::F16 => (Kind::F16, 16),
            Accumulator::I32 { .. } => return None,
        };
        let bits = |word: u32| word & (u32::MAX >> (32 - width));
        let factor = match self.mma.d {
            Accumulator::F32 => (-f64::from(self.scale)).exp2(),
            _ => 1.0,
        };
        let old = before.map_or([0.0; 2], |word| {
            let number = accumulator(self.mma.d, bits(word));
            let held = bank.held.get(&shadow_bit(cell));
            let shadow = held.and_then(|held| held.value_of(width, bits(word)));
            [shadow.unwrap_or(number), number]
        });
        let shadow = old[0] * factor + shaded;
        shadows.insert(0, Held::new(width, bits(sum), shadow));
        Some(Sample {
            rounded: accumulator(self.mma.d, bits(sum)),
            exact: old[1] * factor + exact,
            shadow,
            term: (old[1] * factor).abs() + terms.abs(),
            least: least(kind),
        })
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
        let right = self.of_blocks(reach, &self.right, &mma.right(), "B")?;
        let factors = match self.factors {
            Some([a, b]) => Some((self.factors(reach, a, false)?, self.factors(reach, b, true)?)),
            None => None,
        };
        let columns = mma.n / parts;
        let mut products = Vec::with_capacity(parts);
        for (part, left) in lefts.into_iter().enumerate() {
            let right = right.rows_from(part * columns, columns);
            let scales = factors.as_ref();
            let scales = scales.map(|(a, b)| [a.clone(), b.rows_from(part * columns, columns)]);
            products.push(Multiplied::from_operands(&mma, left, right, scales));
        }
        let mut cells = vec![Vec::with_capacity(mma.rows() * mma.n); mma.group];
        for row in 0..mma.m {
            for col in 0..mma.n {
                let (block, lane, column) = mma.place(row, col);
                cells[block].push((moved(self.d, lane, column), row, col));
            }
        }
        let mut samples = Vec::new();
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
                let Multiplied { values, exactly } = &products[col / columns];
                let at = (row, col % columns);
                let sum = mma.sum(values.at(at.0, at.1), before, self.scale);
                let mut shadows = HeldMemory::default();
                if let Some(exactly) = exactly {
                    let exactly = exactly.each_ref().map(|product| product.at(at.0, at.1));
                    let bank = reach.bank(rank)?;
                    samples.extend(self.shade(bank, cell, exactly, (before, sum), &mut shadows));
                }
                reach.set_cell(rank, cell, sum, (&shadows, 0))?;
            }
        }
        reach.note_samples(&samples);
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
            let (bytes, shadows) = reach.shared_pieces(rank, &self.descriptor, &pieces, None)?;
            // Elements of four and six bits have no shadows.
            let shadows = match self.copy.expand {
                Expand::No => shadows,
                _ => HeldMemory::default(),
            };
            let mut cells = Vec::new();
            for (i, piece) in bytes.chunks(PIECE).enumerate() {
                let (row, part) = (i / per, i % per);
                for lane in self.copy.lanes_of(row) {
                    for (w, word) in self.copy.expand(piece).into_iter().enumerate() {
                        let from = (i * PIECE * 8 + w * 32) as u64;
                        cells.push((moved(self.address, lane, part * 4 + w), word, from));
                    }
                }
            }
            let all = Bank::representatives(cells.iter().map(|(cell, ..)| *cell));
            reach.note(rank, &all, true)?;
            for (cell, word, from) in cells {
                reach.set_cell(rank, cell, word, (&shadows, from))?;
            }
        }
        Ok(())
    }
}
