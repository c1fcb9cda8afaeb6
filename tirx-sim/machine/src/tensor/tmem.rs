//! What does tensor memory hold, and who has allocated it?
//!
//! 128 lanes of 512 columns of 32 bits for each SM (one block at a time, here). An address is the lane in its upper
//! half and the column in its lower half. Columns are allocated in powers of two from 32 on, by a warp; everything that
//! is allocated must be freed before the block ends.

use super::Outcome;

pub const LANES: u32 = 128;
pub const COLUMNS: u32 = 512;

/// A cell: a lane and a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell {
    pub lane: u32,
    pub column: u32,
}

impl Cell {
    pub fn of_address(address: u32) -> Cell {
        Cell {
            lane: address >> 16,
            column: address & 0xffff,
        }
    }

    /// Its number among all cells, if there is such a cell.
    pub fn index(self) -> Option<usize> {
        (self.lane < LANES && self.column < COLUMNS).then(|| (self.lane * COLUMNS + self.column) as usize)
    }
}

/// Columns that are allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub first: u32,
    pub columns: u32,
    /// The instruction that allocated it.
    pub made_at: usize,
    /// It is freed, and can be used until another allocation takes its columns.
    lingers: bool,
}

/// The tensor memory of a block.
#[derive(Clone, Debug, Default)]
pub struct TensorMemory {
    /// Cells, empty until the first allocation.
    words: Vec<u32>,
    /// Which cells have been written since their allocation.
    written: Vec<bool>,
    blocks: Vec<Block>,
    /// No more allocations (`relinquish_alloc_permit`).
    relinquished: bool,
}

impl TensorMemory {
    /// As a block finds it.
    pub fn reset(&mut self) {
        self.blocks.clear();
        self.relinquished = false;
        self.written.iter_mut().for_each(|w| *w = false);
    }

    /// Allocates columns: the first one, or `None` where too few are free for now.
    pub fn allocate(&mut self, columns: u32, made_at: usize) -> Outcome<Option<u32>> {
        check_columns(columns)?;
        if self.relinquished {
            return Err(
                "tcgen05.alloc after tcgen05.relinquish_alloc_permit: the block has given up its right to allocate"
                    .to_string(),
            );
        }
        if self.words.is_empty() {
            self.words = vec![0; (LANES * COLUMNS) as usize];
            self.written = vec![false; (LANES * COLUMNS) as usize];
        }
        let apart = |b: &Block, first: u32| first + columns <= b.first || b.first + b.columns <= first;
        let free = |first: u32| self.blocks.iter().all(|b| b.lingers || apart(b, first));
        let Some(first) = (0..COLUMNS / columns).map(|i| i * columns).find(|f| free(*f)) else {
            return Ok(None);
        };
        self.blocks.retain(|b| apart(b, first));
        self.blocks.push(Block {
            first,
            columns,
            made_at,
            lingers: false,
        });
        for lane in 0..LANES {
            let from = (lane * COLUMNS + first) as usize;
            self.written[from..from + columns as usize].fill(false);
        }
        Ok(Some(first))
    }

    /// Frees a whole allocation, which may linger: be used until its columns are allocated again.
    pub fn free(&mut self, address: u32, columns: u32, lingers: bool) -> Outcome<()> {
        check_columns(columns)?;
        let at = self.blocks.iter().position(|b| b.first == address && !b.lingers);
        match at.map(|i| (i, self.blocks[i])) {
            Some((i, block)) if block.columns == columns => {
                match lingers {
                    true => self.blocks[i].lingers = true,
                    false => drop(self.blocks.remove(i)),
                }
                Ok(())
            }
            Some((_, block)) => Err(format!(
                "tcgen05.dealloc of {columns} columns at {address:#x}, but {} are allocated",
                block.columns
            )),
            None => Err(format!(
                "tcgen05.dealloc at {address:#x}, but no allocation begins there{}",
                self.allocations()
            )),
        }
    }

    pub fn relinquish(&mut self) {
        self.relinquished = true;
    }

    /// What is still allocated.
    pub fn leaked(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|b| !b.lingers)
    }

    fn allocations(&self) -> String {
        if self.blocks.is_empty() {
            return " (nothing is allocated)".to_string();
        }
        let list: Vec<String> = self
            .blocks
            .iter()
            .map(|b| format!("columns {} to {}", b.first, b.first + b.columns - 1))
            .collect();
        format!(" (allocated: {})", list.join(", "))
    }

    /// The number of a cell that may be accessed.
    pub fn cell(&self, cell: Cell) -> Outcome<usize> {
        let Some(index) = cell.index() else {
            return Err(format!(
                "lane {}, column {} of tensor memory, which has {LANES} lanes and {COLUMNS} columns",
                cell.lane, cell.column
            ));
        };
        let inside = |b: &Block| (b.first..b.first + b.columns).contains(&cell.column);
        if !self.blocks.iter().any(inside) {
            return Err(format!(
                "column {} of tensor memory, which is not allocated{}",
                cell.column,
                self.allocations()
            ));
        }
        Ok(index)
    }

    /// What a cell holds; an error where nothing was ever written there.
    pub fn read(&self, cell: Cell) -> Outcome<u32> {
        let index = self.cell(cell)?;
        if !self.written[index] {
            return Err(format!(
                "lane {}, column {} of tensor memory, which nothing has written since its allocation",
                cell.lane, cell.column
            ));
        }
        Ok(self.words[index])
    }

    pub fn write(&mut self, cell: Cell, word: u32) -> Outcome<()> {
        let index = self.cell(cell)?;
        self.words[index] = word;
        self.written[index] = true;
        Ok(())
    }
}

fn check_columns(columns: u32) -> Outcome<()> {
    if columns.is_power_of_two() && (32..=COLUMNS).contains(&columns) {
        return Ok(());
    }
    Err(format!(
        "{columns} columns of tensor memory: allocations have a power of two from 32 to {COLUMNS}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_come_and_go() {
        let mut it = TensorMemory::default();
        assert_eq!(it.allocate(128, 1), Ok(Some(0)));
        assert_eq!(it.allocate(256, 2), Ok(Some(256)));
        assert_eq!(it.allocate(128, 3), Ok(Some(128)));
        assert_eq!(it.allocate(32, 4), Ok(None));
        assert!(it.free(0, 64, false).unwrap_err().contains("128 are allocated"));
        assert!(
            it.free(64, 64, false)
                .unwrap_err()
                .contains("no allocation begins")
        );
        it.free(0, 128, false).unwrap();
        assert_eq!(it.allocate(32, 4), Ok(Some(0)));
        assert_eq!(it.leaked().count(), 3);
        it.relinquish();
        assert!(it.allocate(32, 5).is_err());
        assert!(it.allocate(48, 5).unwrap_err().contains("power of two"));
    }

    #[test]
    fn columns_that_linger_are_used_until_they_are_allocated_again() {
        let mut it = TensorMemory::default();
        let cell = Cell { lane: 3, column: 5 };
        it.allocate(512, 0).unwrap();
        it.write(cell, 7).unwrap();
        it.free(0, 512, true).unwrap();
        assert_eq!((it.read(cell), it.leaked().count()), (Ok(7), 0));
        assert_eq!(it.allocate(256, 1), Ok(Some(0)));
        assert!(it.read(cell).unwrap_err().contains("nothing has written"));
        assert!(it.cell(Cell { lane: 0, column: 300 }).is_err());
    }

    #[test]
    fn cells_must_be_allocated_and_written() {
        let mut it = TensorMemory::default();
        let cell = Cell::of_address(5 << 16 | 33);
        assert!(it.write(cell, 7).unwrap_err().contains("nothing is allocated"));
        it.allocate(32, 0).unwrap();
        assert!(it.write(cell, 7).unwrap_err().contains("columns 0 to 31"));
        it.allocate(32, 0).unwrap();
        assert!(it.read(cell).unwrap_err().contains("nothing has written"));
        it.write(cell, 7).unwrap();
        assert_eq!(it.read(cell), Ok(7));
        assert!(it.read(Cell { lane: 128, column: 0 }).is_err());
        it.reset();
        assert!(it.read(cell).is_err());
    }
}
