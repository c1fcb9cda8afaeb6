//! Which cells of tensor memory a product writes, and reads A from: the data paths of PTX ("Data path layout
//! organization"), for a CTA's own rows, from the address that the instruction gives.
//!
//! | path | for | lane | column |
//! |---|---|---|---|
//! | whole (A, D) | 128 rows | row | column |
//! | spread (F) | 64 rows | row / 16 · 32 + row % 16 | column |
//! | folded (B, E) | 64 rows of two CTAs, or weight stationary | row + 64 in the right half | column % (N / 2) |
//! | quartered (G) | 32 rows, weight stationary | row + 32 · quarter | column % (N / 4) |
//!
//! On the last two A in tensor memory lies in each half, or quarter, of the lanes.
//!
//! A layout with 64 rows in the first 64 lanes stands for the spread path too: [`TensorMemory::spread`].

use super::memory::{CELL, TensorMemory, spread};

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataPath {
    Whole,
    Spread,
    Folded,
    Quartered,
}

impl DataPath {
    /// The path of a product with this many rows in each CTA.
    pub(super) fn from_rows(rows: i128, pair: bool, weight_stationary: bool) -> Option<DataPath> {
        match rows {
            128 => Some(DataPath::Whole),
            64 if pair || weight_stationary => Some(DataPath::Folded),
            64 => Some(DataPath::Spread),
            32 if weight_stationary && !pair => Some(DataPath::Quartered),
            _ => None,
        }
    }

    /// The letter of PTX, for messages.
    pub(super) fn describe(self) -> &'static str {
        match self {
            DataPath::Whole => "row r in lane r (data path D, or A of two CTAs)",
            DataPath::Spread => "row r in lane r / 16 * 32 + r % 16 (data path F)",
            DataPath::Folded => {
                "row r in lane r, and in lane r + 64 for the right half of the columns (data path E, or B of two CTAs)"
            }
            DataPath::Quartered => "row r in lane r + 32 q for the quarter q of the columns (data path G)",
        }
    }

    fn lane_of_row(self, row: i128) -> i128 {
        match self {
            DataPath::Spread => row / 16 * 32 + row % 16,
            DataPath::Whole | DataPath::Folded | DataPath::Quartered => row,
        }
    }

    /// Parts of the columns that lie in lanes of their own.
    fn parts(self) -> i128 {
        match self {
            DataPath::Whole | DataPath::Spread => 1,
            DataPath::Folded => 2,
            DataPath::Quartered => 4,
        }
    }

    /// Lane and cell along the columns that a column of D has.
    fn of_column(self, column: i128, columns: i128) -> (i128, i128) {
        let (parts, each) = (self.parts(), (columns / self.parts()).max(1));
        (column / each * (128 / parts) % 128, column % each)
    }

    /// Lanes in which a region may begin.
    pub(super) fn may_begin(self, lane: i128) -> bool {
        lane == 0 || self == DataPath::Spread && lane == 16
    }

    /// Whether tiles of `rows` × `columns` of D lie as instructions write them.
    pub(super) fn holds(self, d: &Accumulator, rows: i128, columns: i128) -> bool {
        let row = |i: i128| (self.lane_of_row(i), 0);
        let column = |i: i128| {
            let (lane, cell) = self.of_column(i, columns);
            (lane, cell * CELL)
        };
        let of_rows = |lanes: &[i128]| tiles(lanes, &d.row_columns, rows, &row);
        let spread = || self == DataPath::Spread && spread(&d.row_lanes).is_some_and(|lanes| of_rows(&lanes));
        (of_rows(&d.row_lanes) || spread()) && tiles(&d.column_lanes, &d.column_columns, columns, &column)
    }

    /// Whether tiles of `rows` × `k` of A in tensor memory lie as instructions read them.
    pub(super) fn holds_left(self, a: &TensorMemory, rows: i128, k: i128) -> bool {
        let row = |i: i128| (self.lane_of_row(i), 0);
        let along = |i: i128| (0, i * a.bits);
        let [row_lanes, k_lanes] = &a.lanes[..] else {
            return false;
        };
        let [row_columns, k_columns] = &a.columns[..] else {
            return false;
        };
        let copies: &[(i128, i128)] = match self {
            DataPath::Folded => &[(2, 64)],
            DataPath::Quartered => &[(4, 32)],
            DataPath::Whole | DataPath::Spread => &[],
        };
        let of_rows = |lanes: &[i128]| tiles(lanes, row_columns, rows, &row);
        let spread = || self == DataPath::Spread && spread(row_lanes).is_some_and(|lanes| of_rows(&lanes));
        a.copies == copies && (of_rows(row_lanes) || spread()) && tiles(k_lanes, k_columns, k, &along)
    }
}

/// Whether each tile of a dimension follows `place` in lanes and in bits along the columns.
fn tiles(lanes: &[i128], columns: &[i128], tile: i128, place: &impl Fn(i128) -> (i128, i128)) -> bool {
    let Ok(size) = usize::try_from(tile) else {
        return false;
    };
    if size == 0 || !lanes.len().is_multiple_of(size) {
        return false;
    }
    let expected: Vec<(i128, i128)> = (0..tile).map(place).collect();
    lanes
        .chunks(size)
        .zip(columns.chunks(size))
        .all(|(lanes, columns)| {
            let mut all = lanes.iter().zip(columns).zip(&expected);
            all.all(|((lane, column), expected)| (lane - lanes[0], column - columns[0]) == *expected)
        })
}

/// The cells of D, as terms of its rows and columns.
pub(super) struct Accumulator {
    pub(super) memory: TensorMemory,
    row_lanes: Vec<i128>,
    row_columns: Vec<i128>,
    column_lanes: Vec<i128>,
    column_columns: Vec<i128>,
}

impl Accumulator {
    /// The rows and columns of a region for a product with this many rows. The columns may be several dimensions, and
    /// the half of a folded path may be the first dimension: `(2, rows, columns / 2)`.
    pub(super) fn from_memory(memory: TensorMemory, rows: i128) -> Result<Accumulator, String> {
        use super::super::places::joined;
        let dims = memory.extents.len();
        let (row, columns): (usize, Vec<usize>) = match &memory.extents[..] {
            [first, ..] if *first == rows && dims > 1 => (0, (1..dims).collect()),
            [2, second, _] if *second == rows => (1, vec![0, 2]),
            extents => {
                return Err(format!("C has the extents {extents:?}, and A has {rows} rows"));
            }
        };
        let of_columns = |tables: &super::super::places::Tables| {
            let tables: Vec<&Vec<i128>> = columns.iter().map(|d| &tables[*d]).collect();
            joined(&tables)
        };
        Ok(Accumulator {
            row_lanes: memory.lanes[row].clone(),
            row_columns: memory.columns[row].clone(),
            column_lanes: of_columns(&memory.lanes),
            column_columns: of_columns(&memory.columns),
            memory,
        })
    }

    /// Number of columns.
    pub(super) fn columns(&self) -> i128 {
        self.column_lanes.len() as i128
    }

    /// Lane and cell of an element, from the region's first.
    pub(super) fn place(&self, row: i128, column: i128) -> (i128, i128) {
        let (row, column) = (row as usize, column as usize);
        (
            self.row_lanes[row] + self.column_lanes[column],
            (self.row_columns[row] + self.column_columns[column]) / CELL,
        )
    }
}
