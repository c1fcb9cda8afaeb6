//! Which kernel computes a product: a model of the time of each that takes the operands.
//!
//! A kernel's time is that of its waves of tiles, or that of the bytes that it must move, whichever is longer, and a fixed time for a launch.
//! The constants are those of an
//! H100; on other GPUs the order of the kernels is nearly the same.

use std::fmt;

use tirx_rt::{Stream, Tensor};

use super::operand::{Contiguous, Operand, has_vectors};
use super::{Element, Extents};
use crate::Result;
use crate::generated::kernels;
use crate::machine::{Generation, Machine};

/// A kernel and its compile-time values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Choice {
    /// `tiles` of `hopper.py`: persistent blocks with tiles of 128 x `columns`.
    Tiles {
        columns: i64,
        turned_a: bool,
        turned_b: bool,
        blocks: i32,
    },
    /// `columns` of `hopper.py`: tiles of `rows` rows and 64 columns of C, K in `split` parts.
    Columns {
        rows: i64,
        split: i64,
        turned_b: bool,
        /// See [`early_stages`].
        early: i32,
    },
    /// `tiles` of `blackwell.py`: persistent blocks.
    TensorMemory {
        tile: TensorMemoryTile,
        turned_a: bool,
        turned_b: bool,
    },
    /// `blocks` of `ampere.py`.
    Blocks { aligned: bool, rows: i64, columns: i64 },
}

/// A tile of `blackwell.py`: 128 rows for each of the `ctas` blocks of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMemoryTile {
    pub(super) ctas: i32,
    pub(super) columns: i32,
    /// Clusters of a launch.
    pub(super) blocks: i32,
}

/// Elements of C along its columns in a tile of the kernel `tiles`, and the cycles of a step of 64 along K, as products of one wave show them on an
/// H100 and an H200. Narrow tiles wait for copies, wide ones for the tensor cores.
const TILE_COLUMNS: [(i64, f64); 6] = [
    (48, 385.0),
    (64, 420.0),
    (96, 600.0),
    (128, 570.0),
    (192, 895.0),
    (256, 1110.0),
];

/// Cycles of 128 elements along K in a tile of `general` with scales of blocks that two warpgroups multiply, and of the begin and the end of the
/// tile.
const SCALED_BY_TWO: (f64, f64) = (731.0, 1150.0);
/// Those of three warpgroups, with tiles of 192 rows.
const SCALED_BY_THREE: (f64, f64) = (930.0, 2700.0);

/// Cycles per microsecond under load.
const CLOCK: f64 = 1600.0;
/// Bytes that a multiprocessor copies from the L2 cache in a cycle.
const COPIED: f64 = 64.0;
/// Cycles of a warpgroup MMA of 64 rows for each column and 64 elements along K, with what is between two of them.
const MMA: f64 = 2.17;
/// Bytes that the blocks of `columns` on some multiprocessors load from the memory in a microsecond: this, and [`OF_EACH`] for each of them. Measured
/// on an H200 with 64 to 448 blocks.
const OF_ALL: f64 = 1.15e6;
/// See [`OF_ALL`].
const OF_EACH: f64 = 2.1e4;
/// Bytes that the L2 cache moves in a microsecond, if the memory moves the most it can at the same time.
const CACHE: f64 = 1e8;
/// A launch, the first copies and the last stores, in microseconds.
const LAUNCH: f64 = 2.2;
/// The sum of the parts of a cluster, in microseconds.
const PARTS: f64 = 1.2;

/// The blocks of a cluster and the columns of their tile in tensor memory.
const TENSOR_MEMORY_TILES: [(i32, i32); 6] = [(1, 64), (1, 128), (1, 192), (1, 256), (2, 128), (2, 256)];

/// The kernels that take operands A `[m, k]`, the transpose of B `[n, k]` and C `[m, n]`, with the microseconds that the model
/// predicts, the shortest first. If no kernel for Hopper or Blackwell applies, the only candidate is `blocks`, with an infinite time.
pub(super) fn candidates(
    machine: &Machine,
    extents: Extents,
    a: Operand,
    b: Operand,
    c: Operand,
) -> Vec<(f64, Choice)> {
    let [a, b, c] = [a, b, c].map(|operand| operand.contiguous);
    let mut found = Vec::new();
    let bulk_copies = a != Contiguous::Neither && b != Contiguous::Neither && c == Contiguous::Columns;
    if machine.generation == Generation::Hopper && bulk_copies && extents.k > 0 {
        let (turned_a, turned_b) = (a == Contiguous::Rows, b == Contiguous::Rows);
        // The least number of rows that holds all of A, up to the largest.
        let rows = rows_of_columns(extents.m);
        let (blocks_down, blocks_across) = (
            extents.batch.saturating_mul(extents.m.div_ceil(rows)),
            extents.n.div_ceil(64),
        );
        // The kernel `columns` stores four elements at a time, and both counts of blocks are in dimensions of the grid that end at 65535.
        let columns_apply =
            !turned_a && extents.n.is_multiple_of(4) && blocks_down <= 65535 && blocks_across <= 65535;
        // The kernel `tiles` always copies 128 rows. If A has at most 64, this costs more than the model predicts.
        let try_tiles = (extents.m > 64 || !columns_apply) && whole_vectors(extents.n, 2);
        for (columns, step) in TILE_COLUMNS.into_iter().filter(|_| try_tiles) {
            // The specializations in kernels.toml.
            let is_compiled = match (turned_a, turned_b) {
                (false, false) => true,
                (false, true) => columns % 64 == 0,
                (true, _) => columns == 128 || columns == 256,
            };
            if is_compiled {
                let (time, blocks) = time_of_tiles(machine, extents, columns, step);
                found.push((
                    time,
                    Choice::Tiles {
                        columns,
                        turned_a,
                        turned_b,
                        blocks,
                    },
                ));
            }
        }
        for split in [1, 2].into_iter().filter(|_| columns_apply) {
            let rows = rows as i64;
            found.push((
                time_of_columns(machine, extents, rows, split),
                Choice::Columns {
                    rows,
                    split,
                    turned_b,
                    early: early_stages(machine, extents, rows, split),
                },
            ));
        }
    }
    let tensor_copies = a != Contiguous::Neither && b != Contiguous::Neither && extents.k > 0;
    if machine.generation == Generation::Blackwell && tensor_copies {
        found.extend(tensor_memory(machine, extents).into_iter().map(|(time, tile)| {
            let choice = Choice::TensorMemory {
                tile,
                turned_a: a == Contiguous::Rows,
                turned_b: b == Contiguous::Rows,
            };
            (time, choice)
        }));
    }
    found.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    if found.is_empty() {
        found.push((f64::INFINITY, blocks(extents, a, b)));
    }
    found
}

/// Whether a tensor copy may store rows of so many elements: it stores whole 16 bytes, also behind the end of a row.
pub(super) fn whole_vectors(columns: usize, bytes_of_element: usize) -> bool {
    (columns * bytes_of_element).is_multiple_of(16)
}

fn blocks(extents: Extents, a: Contiguous, b: Contiguous) -> Choice {
    let size = |extent: usize| if extent <= 64 { 64 } else { 128 };
    Choice::Blocks {
        // A copy of 16 bytes must not reach behind the end of a row.
        aligned: a == Contiguous::Columns && b == Contiguous::Columns && extents.k.is_multiple_of(8),
        rows: size(extents.m),
        columns: size(extents.n),
    }
}

/// Microseconds for the bytes of the three matrices. Each row of tiles reads B again, and each column of tiles reads A again, from the L2 cache.
/// `share` is the part of the memory's speed that the blocks reach.
fn time_of_memory(machine: &Machine, extents: Extents, down: f64, across: f64, share: f64) -> f64 {
    let [batch, m, n, k] = [extents.batch, extents.m, extents.n, extents.k].map(|x| x as f64);
    let again = m * k * (across - 1.0) + n * k * (down - 1.0);
    2.0 * batch * ((m * k + n * k + m * n) / (machine.memory * share) + again / CACHE)
}

/// The cycles of 128 bytes along K in a tile of so many columns.
pub(super) fn step_of_tile(columns: i64) -> f64 {
    let found = TILE_COLUMNS.iter().find(|(of_tile, _)| *of_tile == columns);
    found.map_or(f64::INFINITY, |(_, step)| *step)
}

/// Microseconds of the kernel `tiles`, and its blocks.
pub(super) fn time_of_tiles(machine: &Machine, extents: Extents, columns: i64, step: f64) -> (f64, i32) {
    let down = extents.m.div_ceil(128) as f64;
    let across = extents.n.div_ceil(columns as usize) as f64;
    let tiles = extents.batch as f64 * down * across;
    let columns = columns as f64;
    let tile = extents.k.div_ceil(64) as f64 * step + 4.0 * columns + 600.0;
    let waves = (tiles / machine.multiprocessors).ceil();
    // The multiprocessors that have a tile, over all waves.
    let busy = tiles / (waves * machine.multiprocessors);
    let time = (waves * tile / CLOCK).max(time_of_memory(machine, extents, down, across, 0.6 + 0.4 * busy));
    (LAUNCH + time, tiles.min(machine.multiprocessors) as i32)
}

/// Cycles of `general` with scales of blocks and so many warpgroups: those of its waves of tiles.
pub(super) fn time_of_scaled(machine: &Machine, extents: Extents, warpgroups: i64) -> f64 {
    let down = extents.m.div_ceil(64 * warpgroups as usize) as f64;
    let tiles = extents.batch as f64 * down * extents.n.div_ceil(128) as f64;
    // Measured on an H200.
    let (step, between) = if warpgroups == 2 {
        SCALED_BY_TWO
    } else {
        SCALED_BY_THREE
    };
    (tiles / machine.multiprocessors).ceil() * (extents.k.div_ceil(128) as f64 * step + between)
}

/// The tiles in tensor memory with their microseconds, the fastest first.
pub(super) fn tensor_memory(machine: &Machine, extents: Extents) -> Vec<(f64, TensorMemoryTile)> {
    let mut found: Vec<(f64, TensorMemoryTile)> = TENSOR_MEMORY_TILES
        .into_iter()
        // A pair of blocks is for the rows of two.
        .filter(|&(ctas, _)| ctas == 1 || extents.m > 128)
        .filter_map(|(ctas, columns)| time_of_tensor_memory(machine, extents, ctas, columns))
        .collect();
    found.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    found
}

/// Microseconds of `tiles` of `blackwell.py`; `None` for more tiles than the kernel counts. The model has the data sheet of a B200, of
/// which none was measured: 4096 multiplications of a multiprocessor in a cycle, and the copies of an H100.
fn time_of_tensor_memory(
    machine: &Machine,
    extents: Extents,
    ctas: i32,
    columns: i32,
) -> Option<(f64, TensorMemoryTile)> {
    let down = extents.m.div_ceil(128 * ctas as usize);
    let across = extents.n.div_ceil(columns as usize);
    let tiles = i32::try_from(extents.batch.checked_mul(down)?.checked_mul(across)?).ok()?;
    let clusters = (machine.multiprocessors / f64::from(ctas)).floor();
    let tile = TensorMemoryTile {
        ctas,
        columns,
        blocks: tiles.min(clusters as i32),
    };
    let columns = f64::from(columns);
    // A block of a pair copies half of the columns.
    let copied = 128.0 + columns / f64::from(ctas);
    let step = (2.0 * columns).max(copied * 128.0 / COPIED);
    let waves = (f64::from(tiles) / clusters).ceil();
    let busy = f64::from(tiles) / (waves * clusters);
    // A block stores a tile while it multiplies the next one, so only the last of its tiles adds the time of the stores.
    let cycles = waves * extents.k.div_ceil(64) as f64 * step + 8.0 * columns + 600.0;
    let memory = time_of_memory(machine, extents, down as f64, across as f64, 0.6 + 0.4 * busy);
    Some((LAUNCH + (cycles / CLOCK).max(memory), tile))
}

/// The rows of the tiles of `columns` for `m` rows: the least number that holds all of them, of those that are built.
pub(super) fn rows_of_columns(m: usize) -> usize {
    match m {
        0..=16 => 16,
        17..=64 => 64,
        _ => 128,
    }
}

/// The stages of a constant B that a block of `columns` has under way while the previous kernel ends: 32 KB of each multiprocessor keep the memory busy,
/// and more would slow down the previous kernel.
pub(super) fn early_stages(machine: &Machine, extents: Extents, rows: i64, split: i64) -> i32 {
    let blocks =
        (extents.batch * extents.m.div_ceil(rows as usize) * extents.n.div_ceil(64)) as f64 * split as f64;
    // Stages of 16 KB if a tile has 16 rows, else of 8 KB.
    let stages = if rows == 16 { 2 } else { 4 };
    if blocks > machine.multiprocessors {
        stages / 2
    } else {
        stages
    }
}

/// Microseconds of the kernel `columns`.
pub(super) fn time_of_columns(machine: &Machine, extents: Extents, rows: i64, split: i64) -> f64 {
    let down = extents.m.div_ceil(rows as usize) as f64;
    let across = extents.n.div_ceil(64) as f64;
    let tiles = extents.batch as f64 * down * across;
    let (rows, split) = (rows as f64, split as f64);
    // Two blocks share a multiprocessor if they have few rows: one copies while the other adds its parts.
    let resident = if rows <= 64.0 { 2.0 } else { 1.0 };
    let step = (MMA * rows).max((64.0 + rows) * 128.0 / COPIED) * resident;
    let tile = (extents.k.div_ceil(64) as f64 / split).ceil() * step + 8.0 * rows + 600.0;
    let waves = (tiles * split / (resident * machine.multiprocessors)).ceil();
    // Two resident blocks hide the begin and the end of each other.
    let share = match resident > 1.0 {
        true => 0.85 + 0.15 * (tiles * split / machine.multiprocessors).min(1.0),
        false => 0.6 + 0.4 * tiles * split / (waves * machine.multiprocessors),
    };
    // Up to two waves of single blocks, the multiprocessors with the most blocks decide.
    let of_fullest = (tiles * split / machine.multiprocessors).ceil().min(2.0);
    let loaded = OF_ALL + OF_EACH * (tiles * split / of_fullest).min(machine.multiprocessors);
    let share = share.min(loaded / machine.memory);
    let parts = if split > 1.0 { PARTS } else { 0.0 };
    LAUNCH + parts + (waves * tile / CLOCK).max(time_of_memory(machine, extents, down, across, share))
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Tiles { columns, .. } => write!(f, "tiles 128x{columns}"),
            Choice::TensorMemory { tile, .. } => {
                write!(f, "tensor memory {}x{}", 128 * tile.ctas, tile.columns)
            }
            Choice::Columns { rows, split, .. } => write!(f, "columns {rows}x64 of {split} parts"),
            Choice::Blocks {
                aligned: true,
                rows,
                columns,
            } => write!(f, "blocks {rows}x{columns}"),
            Choice::Blocks { rows, columns, .. } => write!(f, "blocks {rows}x{columns} by elements"),
        }
    }
}

impl Choice {
    /// Launches the kernel for A `[batch, m, k]`, the transpose of B `[batch, n, k]` and C `[batch, m, n]`.
    pub(super) fn launch<T: Element>(
        self,
        stream: &Stream,
        a: &Tensor<T>,
        b: &Tensor<T>,
        c: &mut Tensor<T>,
        constant_b: bool,
    ) -> Result<()> {
        let turn = [0, 2, 1];
        match self {
            Choice::Tiles {
                columns,
                turned_a: true,
                turned_b,
                blocks,
            } => {
                let constexpr = kernels::gemm_tiles_turned::Constexpr {
                    BN: columns,
                    TRANS_B: turned_b,
                };
                let a = a.permute(&turn)?;
                match turned_b {
                    true => {
                        kernels::gemm_tiles_turned::<T>(stream, constexpr, &a, &b.permute(&turn)?, c, blocks)?
                    }
                    false => kernels::gemm_tiles_turned::<T>(stream, constexpr, &a, b, c, blocks)?,
                }
            }
            Choice::Tiles {
                columns: columns @ (48 | 96),
                blocks,
                ..
            } => {
                let constexpr = kernels::gemm_tiles_narrow::Constexpr { BN: columns };
                kernels::gemm_tiles_narrow::<T>(stream, constexpr, a, b, c, blocks)?;
            }
            Choice::Tiles {
                columns,
                turned_b,
                blocks,
                ..
            } => {
                let constexpr = kernels::gemm_tiles::Constexpr {
                    BN: columns,
                    TRANS_B: turned_b,
                };
                match turned_b {
                    true => kernels::gemm_tiles::<T>(stream, constexpr, a, &b.permute(&turn)?, c, blocks)?,
                    false => kernels::gemm_tiles::<T>(stream, constexpr, a, b, c, blocks)?,
                }
            }
            Choice::Columns {
                rows,
                split,
                turned_b,
                early,
            } => {
                let constexpr = kernels::gemm_columns::Constexpr {
                    BN: rows,
                    SPLIT: split,
                    TRANS_B: turned_b,
                };
                let early = if constant_b { early } else { 0 };
                match turned_b {
                    true => kernels::gemm_columns::<T>(stream, constexpr, a, &b.permute(&turn)?, c, early)?,
                    false => kernels::gemm_columns::<T>(stream, constexpr, a, b, c, early)?,
                }
            }
            Choice::TensorMemory {
                tile,
                turned_a,
                turned_b,
            } => {
                let constexpr = kernels::gemm_tensor_memory::Constexpr {
                    CTAS: i64::from(tile.ctas),
                };
                let order = |turned| if turned { turn } else { [0, 1, 2] };
                // A tensor without elements stands for an operand that is not given.
                let nothing = a.slice(0, 0..0)?;
                let nothing = nothing.reshape([0, 0, 0])?;
                let no_scale = nothing.as_bits::<f32>()?;
                let no_scale = no_scale.reshape([0, 0])?;
                let vectors = i32::from(has_vectors(c));
                kernels::gemm_tensor_memory::<T>(
                    stream,
                    constexpr,
                    &a.permute(&order(turned_a))?,
                    &b.permute(&order(turned_b))?,
                    c,
                    &nothing.reshape([0, 0])?,
                    &nothing,
                    &no_scale,
                    &no_scale,
                    1.0,
                    0,
                    i32::from(turned_a),
                    i32::from(turned_b),
                    tile.columns,
                    vectors,
                    tile.blocks,
                )?;
            }
            Choice::Blocks {
                aligned,
                rows,
                columns,
            } => {
                let constexpr = kernels::gemm_blocks::Constexpr {
                    ALIGNED: aligned,
                    BM: rows,
                    BN: columns,
                };
                kernels::gemm_blocks::<T>(stream, constexpr, a, b, c)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::MEMORY;

    fn first(m: usize, n: usize, k: usize) -> String {
        first_on(MEMORY, m, n, k)
    }

    /// With a memory that moves so many bytes in a microsecond.
    fn first_on(memory: f64, m: usize, n: usize, k: usize) -> String {
        let machine = Machine {
            multiprocessors: 132.0,
            memory,
            generation: Generation::Hopper,
        };
        let plain = Operand {
            contiguous: Contiguous::Columns,
        };
        let extents = Extents { batch: 1, m, n, k };
        candidates(&machine, extents, plain, plain, plain)[0]
            .1
            .to_string()
    }

    #[test]
    fn large_products_take_large_tiles_and_few_rows_take_columns() {
        assert_eq!(first(4096, 4096, 4096), "tiles 128x256");
        assert_eq!(first(1024, 1024, 1024), "tiles 128x64");
        assert_eq!(first(256, 6144, 4096), "tiles 128x128");
        assert_eq!(first(144, 6144, 4096), "tiles 128x128");
        assert_eq!(first(512, 6144, 4096), "tiles 128x192");
        assert_eq!(first(128, 4096, 14336), "columns 128x64 of 2 parts");
        assert_eq!(first(1, 6144, 4096), "columns 16x64 of 1 parts");
        assert_eq!(first(1, 4096, 4096), "columns 16x64 of 1 parts");
        assert_eq!(first(1, 4096, 14336), "columns 16x64 of 2 parts");
        assert_eq!(first(64, 4096, 4096), "columns 64x64 of 2 parts");
        assert_eq!(first(64, 6144, 4096), "columns 64x64 of 2 parts");
        assert_eq!(first(32, 28672, 4096), "columns 64x64 of 1 parts");
    }

    #[test]
    fn a_faster_memory_wants_more_multiprocessors() {
        let of_h200 = MEMORY / 3.352 * 4.917;
        assert_eq!(first(1, 4096, 4096), "columns 16x64 of 1 parts");
        assert_eq!(first_on(of_h200, 1, 4096, 4096), "columns 16x64 of 2 parts");
        assert_eq!(first_on(of_h200, 1, 6144, 4096), "columns 16x64 of 1 parts");
        assert_eq!(first_on(of_h200, 1, 4096, 14336), "columns 16x64 of 2 parts");
        assert_eq!(first_on(of_h200, 1, 28672, 4096), "columns 16x64 of 1 parts");
    }

    #[test]
    fn three_warpgroups_scale_large_products() {
        let machine = Machine {
            multiprocessors: 132.0,
            memory: MEMORY,
            generation: Generation::Hopper,
        };
        let three = |m, n, k| {
            let extents = Extents { batch: 1, m, n, k };
            time_of_scaled(&machine, extents, 3) < time_of_scaled(&machine, extents, 2)
        };
        assert!(three(8192, 8192, 8192) && three(4096, 7168, 2048) && three(4096, 4096, 7168));
        assert!(!three(128, 7168, 2048) && !three(512, 4096, 7168));
    }

    #[test]
    fn blackwell_takes_wide_tiles_for_large_products() {
        let machine = Machine {
            multiprocessors: 148.0,
            memory: MEMORY,
            generation: Generation::Blackwell,
        };
        let plain = Operand {
            contiguous: Contiguous::Columns,
        };
        let first = |m, n, k| {
            let extents = Extents { batch: 1, m, n, k };
            candidates(&machine, extents, plain, plain.turned(), plain)[0]
                .1
                .to_string()
        };
        assert_eq!(first(8192, 8192, 8192), "tensor memory 256x256");
        assert_eq!(first(1, 6144, 4096), "tensor memory 128x64");
        assert_eq!(first(100, 100, 0), "blocks 128x128 by elements");
    }

    #[test]
    fn other_gpus_and_strides_take_the_general_kernel() {
        let machine = Machine {
            multiprocessors: 148.0,
            memory: MEMORY,
            generation: Generation::Any,
        };
        let plain = Operand {
            contiguous: Contiguous::Columns,
        };
        let odd = Operand {
            contiguous: Contiguous::Neither,
        };
        let extents = Extents {
            batch: 1,
            m: 512,
            n: 40,
            k: 512,
        };
        let first = |machine, a| candidates(machine, extents, a, plain, plain)[0].1.to_string();
        assert_eq!(first(&machine, plain), "blocks 128x64");
        assert_eq!(
            first(
                &Machine {
                    generation: Generation::Hopper,
                    ..machine
                },
                odd
            ),
            "blocks 128x64 by elements"
        );
    }
}
