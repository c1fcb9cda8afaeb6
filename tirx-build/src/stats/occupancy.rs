//! How many blocks of a kernel a multiprocessor holds at a time, and what it runs out of.
//!
//! The limits are those of the CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; registers are
//! allocated for a warp, 256 at a time, from one of four parts of the register file.

use tirx_core::ir::Gpu;

/// Registers of each of the four parts of a multiprocessor's register file.
const REGISTERS_OF_PART: u64 = 16_384;
const PARTS: u64 = 4;
/// Registers and bytes of shared memory that are allocated at a time.
const REGISTER_UNIT: u64 = 256;
const SHARED_UNIT: u64 = 128;

/// What a multiprocessor runs out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limiter {
    /// Warps, that is, threads.
    Threads,
    /// Blocks.
    Blocks,
    /// Registers.
    Registers,
    /// Shared memory.
    SharedMemory,
}

impl Limiter {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Limiter::Threads => "threads",
            Limiter::Blocks => "blocks",
            Limiter::Registers => "registers",
            Limiter::SharedMemory => "shared memory",
        }
    }
}

/// The blocks that a multiprocessor holds at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Blocks.
    pub blocks: u64,
    /// Their warps.
    pub warps: u64,
    /// The warps that there could be.
    pub most_warps: u64,
    /// What further blocks lack.
    pub limiter: Limiter,
}

impl Occupancy {
    /// Warps of those that there could be, in percent, rounded down.
    pub fn percent(&self) -> u64 {
        self.warps * 100 / self.most_warps.max(1)
    }

    /// The occupancy of a kernel on a GPU, by the threads of its blocks, the registers of a thread and the bytes of shared
    /// memory of a block. `None` for a block without threads.
    pub fn on(gpu: Gpu, threads: u64, registers: u64, shared: u64) -> Option<Occupancy> {
        let limits = gpu.limits();
        let (most_warps, most_blocks) = (u64::from(limits.warps), u64::from(limits.blocks));
        let warps = threads.div_ceil(32);
        if warps == 0 {
            return None;
        }
        let registers = (registers.max(1) * 32).next_multiple_of(REGISTER_UNIT);
        let shared = shared
            .saturating_add(u64::from(limits.reserved_shared_memory))
            .div_ceil(SHARED_UNIT)
            * SHARED_UNIT;
        // Of equal limits the first is named.
        let each = [
            (Limiter::Registers, REGISTERS_OF_PART / registers * PARTS / warps),
            (
                Limiter::SharedMemory,
                u64::from(limits.multiprocessor_shared_memory())
                    .checked_div(shared)
                    .unwrap_or(u64::MAX),
            ),
            (Limiter::Threads, most_warps / warps),
            (Limiter::Blocks, most_blocks),
        ];
        let (limiter, blocks) = each.into_iter().min_by_key(|(_, blocks)| *blocks)?;
        Some(Occupancy {
            blocks,
            warps: blocks * warps,
            most_warps,
            limiter,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_guide() {
        use Limiter::{Blocks, Registers, SharedMemory, Threads};
        for (arch, threads, registers, shared, blocks, limiter, percent) in [
            // 8 warps of 1280 registers: 12 warps a part, 48 in all.
            ("sm_90a", 256, 40, 0, 6, Registers, 75),
            ("sm_90a", 256, 32, 0, 8, Registers, 100),
            ("sm_90a", 256, 24, 0, 8, Threads, 100),
            ("sm_90a", 32, 24, 0, 32, Blocks, 50),
            // 227 KiB and the reserved one are all there is.
            ("sm_100a", 384, 80, 227 * 1024, 1, SharedMemory, 18),
            ("sm_100a", 384, 168, 100 * 1024, 1, Registers, 18),
            ("sm_89", 256, 32, 24 * 1024, 4, SharedMemory, 66),
            ("sm_75", 1024, 64, 0, 1, Registers, 100),
            ("sm_90a", 1024, 255, 0, 0, Registers, 0),
        ] {
            let found = Occupancy::on(arch.parse().unwrap(), threads, registers, shared).unwrap();
            assert_eq!(
                (found.blocks, found.limiter, found.percent()),
                (blocks, limiter, percent),
                "{arch} {threads} {registers} {shared}"
            );
        }
        assert_eq!(Occupancy::on(Gpu::SM_90A, 0, 32, 0), None);
    }
}
