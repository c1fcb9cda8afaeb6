//! The least time that a GPU takes for the work of a run, and the resource that limits it.
//!
//! Each resource has a rate. The work of a launch divided by the rate is a time that no schedule can beat; the largest of these times
//! is the bound. Blocks are whole: the multiprocessor with the most blocks has `ceil(blocks / multiprocessors)` of them. Resources
//! overlap without loss, and latencies count only at barriers, so a measured time is longer.

use tirx_sim::{Counts, KINDS, PRODUCTS, Work};

/// What a GPU does in a second or a cycle. Numbers are those of NVIDIA's data sheets, the whitepapers of its architectures and the
/// CUDA C++ Programming Guide ("Arithmetic Instructions"), if no other source is named.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpu {
    /// Its name.
    pub name: &'static str,
    /// Multiprocessors.
    pub multiprocessors: u64,
    /// Cycles per second at the highest clock.
    pub clock: f64,
    /// Bytes per second of the memory.
    pub memory: f64,
    /// Bytes of the L2 cache, and bytes per cycle that it gives to all multiprocessors.
    pub l2_bytes: u64,
    /// See `l2_bytes`. Published for the A100; the other GPUs are assumed to have as much, and the B200 twice as much.
    pub l2_per_cycle: f64,
    /// Operations per second of all tensor cores, dense, by kind of operand ([`PRODUCTS`]).
    pub products: [f64; PRODUCTS.len()],
    /// The part of it that `mma.sync` reaches. H100: Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via
    /// Microbenchmarking", 2024. It is 1 if no measurement is known.
    pub warp_products: f64,
    /// Instructions of warps per cycle and multiprocessor that add or multiply float32 numbers.
    pub floats: f64,
}

const H100: Gpu = Gpu {
    name: "H100",
    multiprocessors: 132,
    clock: 1.98e9,
    memory: 3.35e12,
    l2_bytes: 50 << 20,
    l2_per_cycle: 5120.0,
    products: [66.9e12, 494.7e12, 989.4e12, 1978.9e12, 1978.9e12],
    warp_products: 0.63,
    floats: 4.0,
};

/// The GPUs that have a model.
pub const GPUS: [Gpu; 4] = [
    Gpu {
        name: "A100",
        multiprocessors: 108,
        clock: 1.41e9,
        memory: 2.039e12,
        l2_bytes: 40 << 20,
        l2_per_cycle: 5120.0,
        products: [19.5e12, 156e12, 312e12, 624e12, 1248e12],
        warp_products: 1.0,
        floats: 2.0,
    },
    H100,
    Gpu {
        name: "H200",
        memory: 4.8e12,
        ..H100
    },
    Gpu {
        name: "B200",
        multiprocessors: 148,
        clock: 1.965e9,
        memory: 8e12,
        l2_bytes: 126 << 20,
        l2_per_cycle: 10240.0,
        products: [40e12, 1.1e15, 2.25e15, 4.5e15, 9e15],
        warp_products: 1.0,
        floats: 4.0,
    },
];

/// Bytes of a sector of global memory; bytes per cycle of a multiprocessor's L1 cache, and of its shared memory.
const SECTOR: f64 = 32.0;
const L1_BYTES: f64 = 128.0;
const SHARED_BYTES: f64 = 128.0;
/// Instructions of warps per cycle and multiprocessor: all, and those of special functions (16 lanes).
const ISSUED: f64 = 4.0;
const SPECIALS: f64 = 0.5;
/// Cycles between the arrival of the last warp at a barrier and the next instruction of any: an assumption below measured ones.
const BARRIER: f64 = 16.0;
/// Most warps and most blocks of a multiprocessor at a time.
const RESIDENT: (u64, u64) = (64, 32);

impl Gpu {
    /// The GPU of a name.
    pub fn named(name: &str) -> Option<Gpu> {
        GPUS.into_iter().find(|gpu| gpu.name.eq_ignore_ascii_case(name))
    }

    /// One multiprocessor with its share of the memories: a small launch takes its time as a launch that fills the GPU.
    pub fn multiprocessor(self) -> Gpu {
        let count = self.multiprocessors as f64;
        Gpu {
            multiprocessors: 1,
            memory: self.memory / count,
            l2_per_cycle: self.l2_per_cycle / count,
            products: self.products.map(|rate| rate / count),
            ..self
        }
    }
}

/// A resource of a GPU and the time that it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The resource.
    pub resource: &'static str,
    /// The least time in seconds.
    pub seconds: f64,
}

/// The bounds of a launch by resource, the largest first.
pub fn bounds(gpu: &Gpu, work: &Work, counts: &Counts) -> Vec<Bound> {
    let blocks = work.blocks.max(1);
    // The part of the work that the multiprocessor with the most blocks has.
    let part = blocks.div_ceil(gpu.multiprocessors) as f64 / blocks as f64;
    let cycles = |amount: f64, rate: f64| amount * part / rate / gpu.clock;
    let all = gpu.multiprocessors as f64;
    let products = |operations: &[u64; PRODUCTS.len()], share: f64| {
        let times = operations.iter().zip(gpu.products);
        times
            .map(|(count, rate)| *count as f64 * part * all / (rate * share))
            .sum::<f64>()
    };
    let kinds = KINDS.iter().zip(counts.instructions);
    // nvcc joins and splits the rest.
    let instructions: u64 = kinds
        .filter(|(kind, _)| !["arithmetic", "control", "local"].contains(*kind))
        .map(|(_, count)| count)
        .sum();
    let instructions = instructions + work.float_instructions + work.special_instructions;
    let moved = (counts.bulk_bytes + work.operand_bytes) as f64;
    let warps = work.warps.max(1);
    let resident = (RESIDENT.0 / warps).clamp(1, RESIDENT.1) * gpu.multiprocessors;
    let barriers = work.barriers as f64 / (blocks * warps) as f64;
    // What fits in the L2 cache may be there from the launch before.
    let from_memory = work.distinct_bytes.saturating_sub(gpu.l2_bytes) as f64;
    let mut bounds = vec![
        ("memory", from_memory / gpu.memory),
        ("L2 cache", work.block_bytes as f64 / gpu.l2_per_cycle / gpu.clock),
        ("L1 cache", cycles(work.lane_sectors as f64 * SECTOR, L1_BYTES)),
        (
            "shared memory",
            cycles(counts.passes as f64 + moved / SHARED_BYTES, 1.0),
        ),
        (
            "tensor cores",
            products(&work.products, 1.0) + products(&work.warp_products, gpu.warp_products),
        ),
        (
            "float32 arithmetic",
            cycles(work.float_instructions as f64, gpu.floats),
        ),
        (
            "special functions",
            cycles(work.special_instructions as f64, SPECIALS),
        ),
        ("instructions", cycles(instructions as f64, ISSUED)),
        (
            "barriers",
            barriers * BARRIER * blocks.div_ceil(resident) as f64 / gpu.clock,
        ),
    ]
    .into_iter()
    .map(|(resource, seconds)| Bound { resource, seconds })
    .collect::<Vec<_>>();
    bounds.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_time_is_the_bound() {
        let work = Work {
            blocks: 264,
            warps: 4,
            products: [0, 0, 2 * 989_400_000_000, 0, 0],
            block_bytes: 1 << 20,
            ..Work::default()
        };
        let bounds = bounds(&H100, &work, &Counts::default());
        assert_eq!(bounds[0].resource, "tensor cores");
        assert!((bounds[0].seconds - 2e-3).abs() < 1e-9, "{bounds:?}");
        assert_eq!(bounds[1].resource, "L2 cache");
    }

    #[test]
    fn blocks_are_whole() {
        let work = |blocks| Work {
            blocks,
            warps: 4,
            float_instructions: blocks * 1000,
            ..Work::default()
        };
        let time = |blocks| bounds(&H100, &work(blocks), &Counts::default())[0].seconds;
        assert_eq!(time(132), time(1));
        assert!((time(133) / time(132) - 2.0).abs() < 1e-9);
        let one = bounds(&H100.multiprocessor(), &work(1), &Counts::default())[0].seconds;
        assert!((one - time(132)).abs() < 1e-15);
    }

    #[test]
    fn what_fits_in_the_l2_cache_is_not_read_from_memory() {
        let work = |bytes| Work {
            blocks: 132,
            warps: 1,
            distinct_bytes: bytes,
            ..Work::default()
        };
        let memory = |bytes| {
            let all = bounds(&H100, &work(bytes), &Counts::default());
            all.into_iter()
                .find(|bound| bound.resource == "memory")
                .map(|bound| bound.seconds)
        };
        assert_eq!(memory(50 << 20), Some(0.0));
        assert_eq!(memory((50 << 20) + 3_350_000_000), Some(1e-3));
    }
}
