//! The work of a launch that a cost model weighs: what limits a GPU and no line of the kernel has alone.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHasher;

use crate::tensor::format::Format;

/// The kinds of tensor core operations, by their operands.
pub const PRODUCTS: [&str; 5] = ["float64", "tf32", "16 bits", "8 bits", "4 bits"];

/// The work of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Blocks.
    pub blocks: u64,
    /// Warps of a block.
    pub warps: u64,
    /// Operations of tensor cores by `wgmma` and `tcgen05.mma`, by kind ([`PRODUCTS`]): two for each multiplication and its addition.
    pub products: [u64; PRODUCTS.len()],
    /// The same by `mma.sync`.
    pub warp_products: [u64; PRODUCTS.len()],
    /// Bytes of operands that tensor cores read from shared memory.
    pub operand_bytes: u64,
    /// Instructions of warps that add or multiply float32 numbers, alone or together.
    pub float_instructions: u64,
    /// Instructions of warps that divide, or compute a root or another function.
    pub special_instructions: u64,
    /// Times that warps come to a barrier of a block or a cluster.
    pub barriers: u64,
    /// Sectors of 32 bytes that accesses of lanes touch in global memory.
    pub lane_sectors: u64,
    /// Bytes of the different sectors of each block, and of all its bulk and tensor copies: the least that multiprocessors exchange
    /// with the L2 cache.
    pub block_bytes: u64,
    /// Bytes of the different sectors of all blocks.
    pub distinct_bytes: u64,
}

impl Work {
    /// The number of a kind of operands.
    pub(crate) fn kind(format: Format) -> usize {
        match format.bits() {
            64 => 0,
            32 => 1,
            16 => 2,
            5..=8 => 3,
            _ => 4,
        }
    }
}

type Hasher = BuildHasherDefault<FxHasher>;

/// The sectors of each block.
#[derive(Debug, Default)]
struct Sectors(HashMap<u32, HashSet<u64, Hasher>, Hasher>);

/// The work so far.
#[derive(Debug, Default)]
pub(crate) struct Working {
    pub(crate) work: Mutex<Work>,
    sectors: Mutex<Sectors>,
    /// The sectors of copies.
    copied: Mutex<HashSet<u64, Hasher>>,
}

/// Bytes of a sector.
const SECTOR: u64 = 32;

/// The sectors that an access touches.
fn sectors((address, bytes): (u64, u64)) -> std::ops::Range<u64> {
    address / SECTOR..(address + bytes).div_ceil(SECTOR)
}

impl Working {
    /// Adds work.
    pub(crate) fn add(&self, step: impl FnOnce(&mut Work)) {
        step(&mut self.work.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Lanes of a block access global memory: addresses and bytes.
    pub(crate) fn access(&self, block: u32, touches: &[(u64, u64)]) {
        let mut all = self.sectors.lock().unwrap_or_else(PoisonError::into_inner);
        let of_block = all.0.entry(block).or_default();
        touches.iter().for_each(|touch| of_block.extend(sectors(*touch)));
    }

    /// A copy reads or writes global memory.
    pub(crate) fn copy(&self, touches: &[(u64, u64)]) {
        let count: u64 = touches.iter().map(|touch| sectors(*touch).count() as u64).sum();
        self.add(|work| work.block_bytes += count * SECTOR);
        let mut all = self.copied.lock().unwrap_or_else(PoisonError::into_inner);
        touches.iter().for_each(|touch| all.extend(sectors(*touch)));
    }

    /// The work of a launch of so many blocks and warps of a block.
    pub(crate) fn finish(self, blocks: u64, warps: u64) -> Work {
        let mut work = self.work.into_inner().unwrap_or_else(PoisonError::into_inner);
        let by_block = self
            .sectors
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .0;
        let mut all = self.copied.into_inner().unwrap_or_else(PoisonError::into_inner);
        for of_block in by_block.into_values() {
            work.block_bytes += of_block.len() as u64 * SECTOR;
            all.extend(of_block);
        }
        work.distinct_bytes = all.len() as u64 * SECTOR;
        (work.blocks, work.warps) = (blocks, warps);
        work
    }
}
