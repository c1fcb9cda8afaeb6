//! `tcgen05`: tensor memory and the tensor core that works on it.
//!
//! Matrix operations and copies to tensor memory are asynchronous operations of the thread that issues them, in the order
//! in which it does; `tcgen05.commit` tells an mbarrier when they are complete. Loads and stores are those of a warp:
//! registers that are loaded may be read at once (PTX ISA, "Register dependencies, same thread"), but the load reads tensor
//! memory until `tcgen05.wait::ld`; what is stored is there after `tcgen05.wait::st`. The order of accesses is that of all
//! memory, by columns of 16 lanes, with the fences of `tcgen05`.
//!
//! | file | what |
//! |---|---|
//! | `instruction` | the instructions: loads and stores, and those that issue operations |
//! | `in_flight` | what products, copies and shifts do when they are performed |

mod in_flight;
mod instruction;

pub(super) use instruction::is_dealloc;

use super::Trap;
use super::order::{Conflict, Mark, Place};
use super::shadow::HeldMemory;
use crate::fault::FaultKind;
use crate::tensor::tmem::{COLUMNS, Cell, TensorMemory};

/// Lanes of tensor memory that share a history.
const TOGETHER: u32 = 16;

/// Histories of a block's tensor memory.
const PLACES: usize = (128 / TOGETHER * COLUMNS) as usize;

/// The tensor memory of a block, with the histories of its cells.
#[derive(Default)]
pub(super) struct Bank {
    memory: TensorMemory,
    /// The shadows of its cells ([`shadow_bit`]), if errors are asked for.
    held: HeldMemory,
    places: Vec<Place>,
    /// The `.cta_group` of the block's instructions, and the first of these.
    group: Option<(usize, usize)>,
    /// Stores that their warps have not waited for.
    storing: Vec<Storing>,
    /// The histories as they were before columns were freed, for the other block of a pair.
    before_free: Vec<Place>,
    /// The columns of the last allocation, and the instruction.
    allocated: Option<(u32, usize)>,
}

/// A store that its warp has not waited for, as other warps see it.
#[derive(Debug)]
struct Storing {
    warp: usize,
    pc: usize,
    cells: Vec<Cell>,
}

/// What a warp has stored and not yet waited for.
#[derive(Debug)]
pub(super) struct Stored {
    pc: usize,
    cells: Vec<(Cell, Change)>,
    /// The shadows of what is stored.
    shadows: HeldMemory,
}

impl Stored {
    /// The store.
    pub(super) fn pc(&self) -> usize {
        self.pc
    }
}

/// How a warp accesses tensor memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Touch {
    Load,
    Store,
    /// Not asynchronous: a `tcgen05.fence::after_thread_sync` does not order it.
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
    /// Empties the tensor memory before the next block runs.
    pub(super) fn reset(&mut self) {
        self.storing.clear();
        self.before_free.clear();
        self.memory.reset();
        self.held.clear();
        self.places.clear();
        self.group = None;
        self.allocated = None;
    }

    /// The instruction of an allocation that has not been freed.
    pub(super) fn leak(&self) -> Option<(u32, usize)> {
        self.memory.leaked().next().map(|b| (b.columns, b.made_at))
    }

    /// The number of a cell's history.
    fn index(cell: Cell) -> usize {
        ((cell.lane / TOGETHER * COLUMNS + cell.column) as usize).min(PLACES - 1)
    }

    fn place(&mut self, cell: Cell) -> &mut Place {
        if self.places.is_empty() {
            self.places = vec![Place::EMPTY; PLACES];
        }
        &mut self.places[Bank::index(cell)]
    }

    /// Keeps the histories of columns that are about to be freed.
    fn keep_before_free(&mut self, cells: &[Cell]) {
        if self.before_free.is_empty() {
            self.before_free = vec![Place::EMPTY; PLACES];
        }
        for cell in cells {
            self.before_free[Bank::index(*cell)] = self.place(*cell).clone();
        }
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

/// The bit of a bank's shadows at which a cell begins.
fn shadow_bit(cell: Cell) -> u64 {
    u64::from(cell.lane * COLUMNS + cell.column) * 32
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
