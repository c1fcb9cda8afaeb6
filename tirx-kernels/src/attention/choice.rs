//! The kernels that compute attention, and which of them a call takes.

use std::fmt;

use tirx_rt::{Stream, Tensor};

use super::Element;
use super::options::{Options, Values};
use super::problem::Extents;
use crate::Result;
use crate::generated::kernels;
use crate::machine::{Generation, Machine};

/// A kernel and its compile-time values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Choice {
    /// `forward` of `hopper.py`: persistent blocks.
    Warpgroups { tile: Tile, blocks: i32, near: i32 },
    /// `forward` of `blackwell.py`: blocks of 256 queries.
    TensorMemory { columns: i64, blocks: i32 },
    /// `forward` of `ampere.py`.
    Warps { columns: i64, blocks: i32 },
}

/// The tile of a block of `hopper.py`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tile {
    warpgroups: usize,
    keys: usize,
    columns: i64,
    columns_of_v: i64,
    /// The queries, and the keys that one of them sees, from which it is the fastest of its columns on an H200.
    from: usize,
}

/// The tiles that are built. Of those that take a head, the first ones have the fewest columns.
const TILES: [Tile; 5] = [
    Tile::new(2, 128, 64, 64, 0),
    Tile::new(3, 128, 64, 64, 512),
    Tile::new(2, 128, 128, 128, 0),
    Tile::new(2, 64, 192, 128, 0),
    Tile::new(2, 64, 256, 256, 0),
];

impl Tile {
    const fn new(warpgroups: usize, keys: usize, columns: i64, columns_of_v: i64, from: usize) -> Tile {
        Tile {
            warpgroups,
            keys,
            columns,
            columns_of_v,
            from,
        }
    }

    fn takes(&self, head: usize, head_of_v: usize) -> bool {
        head as i64 <= self.columns && head_of_v as i64 <= self.columns_of_v
    }
}

/// The tensors of a launch.
pub(super) struct Tensors<'a, T: Element> {
    pub(super) q: &'a Tensor<T>,
    pub(super) k: &'a Tensor<T>,
    pub(super) v: &'a Tensor<T>,
    pub(super) o: &'a mut Tensor<T>,
    /// Empty if the logarithms are not wanted.
    pub(super) lse: &'a mut Tensor<f32>,
    /// Empty if the tensors hold no sequences.
    pub(super) starts_of_q: &'a Tensor<i32>,
    pub(super) starts_of_k: &'a Tensor<i32>,
}

/// Columns of the smallest tile that holds a head.
fn columns(head: usize) -> i64 {
    match head {
        0..=64 => 64,
        65..=128 => 128,
        _ => 256,
    }
}

/// The kernels that take such tensors, the fastest first.
pub(super) fn candidates(machine: &Machine, extents: &Extents, options: Options) -> Result<Vec<Choice>> {
    let mut found = Vec::new();
    // The copy engine takes no empty tensors.
    let copied = extents.keys > 0 && extents.queries > 0 && extents.batch * extents.heads > 0;
    let Extents {
        batch,
        heads,
        heads_of_k,
        keys,
        head,
        head_of_v,
        ..
    } = *extents;
    if machine.generation == Generation::Hopper && copied {
        // As many heads at a time as have their keys and values in half of the L2 cache of an H100.
        let of_a_head = keys * (head + head_of_v) * 2;
        let near = (25_000_000 / of_a_head)
            .max(1)
            .saturating_mul(heads / heads_of_k)
            .min(batch * heads) as i32;
        let columns = TILES
            .iter()
            .find(|tile| tile.takes(head, head_of_v))
            .map(|tile| tile.columns);
        // With a causal mask half of the keys, on average, and wide tiles have more scores that the mask hides: as if a third were seen.
        let seen = if options.causal { keys / 3 } else { keys };
        let length = seen.min(extents.queries);
        let mut tiles: Vec<Tile> = TILES
            .into_iter()
            .filter(|tile| Some(tile.columns) == columns)
            .collect();
        tiles.sort_by_key(|tile| std::cmp::Reverse(if tile.from <= length { tile.from } else { 0 }));
        for tile in tiles {
            let blocks = extents
                .tiles(64 * tile.warpgroups)?
                .min(machine.multiprocessors as i32);
            found.push(Choice::Warpgroups { tile, blocks, near });
        }
    }
    let columns = columns(head.max(head_of_v));
    if machine.generation == Generation::Blackwell && copied && columns <= 128 {
        let blocks = extents.tiles(256)?;
        found.push(Choice::TensorMemory { columns, blocks });
    }
    let blocks = extents.tiles(rows_of_warps(columns))?;
    found.push(Choice::Warps { columns, blocks });
    Ok(found)
}

/// Queries of a block of `ampere.py`.
fn rows_of_warps(columns: i64) -> usize {
    if columns > 128 { 64 } else { 128 }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Choice::Warpgroups { tile, .. } => {
                write!(
                    f,
                    "warpgroups {}x{}x{}",
                    64 * tile.warpgroups,
                    tile.keys,
                    tile.columns
                )
            }
            Choice::TensorMemory { columns, .. } => write!(f, "tensor memory 256x128x{columns}"),
            Choice::Warps { columns, .. } => write!(f, "warps {}x{columns}", rows_of_warps(columns)),
        }
    }
}

impl Choice {
    pub(super) fn launch<T: Element>(
        self,
        stream: &Stream,
        tensors: Tensors<'_, T>,
        values: Values,
    ) -> Result<()> {
        let Tensors {
            q,
            k,
            v,
            o,
            lse,
            starts_of_q,
            starts_of_k,
        } = tensors;
        let Values {
            scale,
            causal,
            window,
            cap,
        } = values;
        // Kernels differ in their compile-time values, and in what the last arguments say of the launch.
        macro_rules! launch {
            ($kernel:ident $(, $constexpr:expr)?; $($last:expr),+) => {
                kernels::$kernel::<T>(
                    stream, $($constexpr,)? q, k, v, o, lse, starts_of_q, starts_of_k, scale, causal, window, cap, $($last),+
                )?
            };
        }
        match self {
            Choice::Warpgroups { tile, blocks, near } => {
                // Larger tiles are built without the work that only some calls need.
                let plain = cap == 0.0 && window == 0 && starts_of_q.is_empty();
                match (tile.warpgroups, tile.columns) {
                    (3, _) if plain => launch!(attention_forward_three; near, blocks),
                    (_, 192) => launch!(attention_forward_wide; near, blocks),
                    (_, columns) => {
                        let constexpr = kernels::attention_forward::Constexpr {
                            DQ: columns,
                            PLAIN: plain,
                        };
                        launch!(attention_forward, constexpr; near, blocks);
                    }
                }
            }
            Choice::TensorMemory { columns, blocks } => {
                let constexpr = kernels::attention_tensor_memory::Constexpr { D: columns };
                launch!(attention_tensor_memory, constexpr; blocks);
            }
            Choice::Warps { columns, blocks } => {
                let constexpr = kernels::attention_forward_warps::Constexpr { D: columns };
                launch!(attention_forward_warps, constexpr; blocks);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(generation: Generation, keys: usize, head: usize, head_of_v: usize) -> Vec<String> {
        names_of_length(generation, Options::default(), 100, keys, head, head_of_v)
    }

    fn names_of_length(
        generation: Generation,
        options: Options,
        queries: usize,
        keys: usize,
        head: usize,
        head_of_v: usize,
    ) -> Vec<String> {
        let machine = Machine {
            multiprocessors: 132.0,
            memory: crate::machine::MEMORY,
            generation,
        };
        let extents = Extents {
            batch: 2,
            heads: 8,
            heads_of_k: 2,
            queries,
            keys,
            head,
            head_of_v,
            sequences: None,
        };
        let found = candidates(&machine, &extents, options).unwrap();
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_narrowest_tiles_that_hold_a_head_are_candidates() {
        assert_eq!(
            names(Generation::Hopper, 50, 40, 40),
            ["warpgroups 128x128x64", "warpgroups 192x128x64", "warps 128x64"]
        );
        assert_eq!(
            names(Generation::Hopper, 50, 72, 40),
            ["warpgroups 128x128x128", "warps 128x128"]
        );
        assert_eq!(
            names(Generation::Hopper, 50, 192, 128),
            ["warpgroups 128x64x192", "warps 64x256"]
        );
        assert_eq!(
            names(Generation::Hopper, 50, 192, 192),
            ["warpgroups 128x64x256", "warps 64x256"]
        );
    }

    #[test]
    fn long_sequences_take_larger_tiles() {
        let first_of = |options, queries, keys, head| {
            names_of_length(Generation::Hopper, options, queries, keys, head, head).swap_remove(0)
        };
        let first = |queries, keys, head| first_of(Options::default(), queries, keys, head);
        assert_eq!(first(4096, 4096, 64), "warpgroups 192x128x64");
        assert_eq!(first(512, 512, 64), "warpgroups 192x128x64");
        assert_eq!(first(100, 4096, 64), "warpgroups 128x128x64");
        assert_eq!(first(4096, 4096, 128), "warpgroups 128x128x128");
        assert_eq!(first_of(Options::causal(), 512, 512, 64), "warpgroups 128x128x64");
        assert_eq!(
            first_of(Options::causal(), 1024, 1024, 64),
            "warpgroups 128x128x64"
        );
        assert_eq!(
            first_of(Options::causal(), 2048, 2048, 64),
            "warpgroups 192x128x64"
        );
    }

    #[test]
    fn other_gpus_and_no_keys_take_the_general_kernel() {
        assert_eq!(names(Generation::Any, 50, 64, 64), ["warps 128x64"]);
        assert_eq!(names(Generation::Hopper, 0, 64, 64), ["warps 128x64"]);
        assert_eq!(names(Generation::Blackwell, 0, 64, 64), ["warps 128x64"]);
    }

    #[test]
    fn heads_of_up_to_128_elements_take_tensor_memory() {
        let names = |head, head_of_v| names(Generation::Blackwell, 50, head, head_of_v);
        assert_eq!(names(64, 64), ["tensor memory 256x128x64", "warps 128x64"]);
        assert_eq!(names(72, 40), ["tensor memory 256x128x128", "warps 128x128"]);
        assert_eq!(names(192, 128), ["warps 64x256"]);
    }
}
