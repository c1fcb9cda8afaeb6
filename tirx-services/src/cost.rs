//! The least time that a GPU takes for the work of a run, and the resource that limits it.
//!
//! Each resource has a rate. The work of a launch divided by the rate is a time that no schedule can beat; the largest of these times
//! is the bound. Blocks are whole: the multiprocessor with the most blocks has `ceil(blocks / multiprocessors)` of them. Resources
//! overlap without loss, and latencies count only at barriers, so a measured time is longer.

use tirx_sim::{Counts, KINDS, PRODUCTS, Work};

/// The rates of a GPU, in a second or a cycle. The comment of a figure names its source: a data sheet or whitepaper of NVIDIA, the CUDA C++
/// Programming Guide ("Arithmetic Instructions", "Technical Specifications per Compute Capability"), or a measurement. Rates of tensor
/// cores are those without sparsity; where the rate depends on the accumulator, it is the highest.
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
    /// Bytes of the L2 cache.
    pub l2_bytes: u64,
    /// Bytes per cycle that the L2 cache gives to all multiprocessors.
    pub l2_per_cycle: f64,
    /// Operations per second of all tensor cores, dense, by kind of operand ([`PRODUCTS`]).
    pub products: [f64; PRODUCTS.len()],
    /// The part of it that `mma.sync` reaches: 1 unless a measurement is known.
    pub warp_products: f64,
    /// Instructions of warps per cycle and multiprocessor that add or multiply float32 numbers.
    pub floats: f64,
    /// Most warps and most blocks of a multiprocessor at a time.
    pub resident: (u64, u64),
}

/// H100 SXM5 80GB.
const H100: Gpu = Gpu {
    name: "H100",
    // H100 whitepaper, table "H100 SXM5".
    multiprocessors: 132,
    // 66.9 TFLOP/s of float32 (data sheet) are 132 multiprocessors x 256 operations x this clock; `nvidia-smi` shows it as the highest.
    clock: 1.98e9,
    // Data sheet.
    memory: 3.35e12,
    // Whitepaper.
    l2_bytes: 50 << 20,
    // Assumed to be that of an A100: no figure is published. Measurements of an H100 PCIe lie below it (Chips and Cheese, 2023).
    l2_per_cycle: 5120.0,
    // Data sheet: float64 66.9, TF32 494.7, bfloat16 989.4, float8 1978.9, int8 1978.9 TFLOP/s. No rate of 4 bits: that of 8.
    products: [66.9e12, 494.7e12, 989.4e12, 1978.9e12, 1978.9e12],
    // Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking", 2024.
    warp_products: 0.63,
    // Programming Guide, compute capability 9.0: 128 results in a cycle.
    floats: 4.0,
    // Programming Guide, 9.0.
    resident: (64, 32),
};

/// GeForce RTX 4090.
const RTX_4090: Gpu = Gpu {
    name: "RTX4090",
    // Ada whitepaper, table of GeForce RTX 4090.
    multiprocessors: 128,
    // The same: boost clock. Boards run above it if they may.
    clock: 2.52e9,
    // The same.
    memory: 1.008e12,
    // The same: 73,728 KB.
    l2_bytes: 72 << 20,
    // Assumed to be that of an A100.
    l2_per_cycle: 5120.0,
    // The same: TF32 82.6, float16 with float16 accumulators 330.3 (165.2 with float32), int8 660.6, int4 1321.2. Float64 by the Programming
    // Guide, 8.9: 2 results in a cycle; a multiplication with its addition is one result and two operations.
    products: [1.29e12, 82.6e12, 330.3e12, 660.6e12, 1321.2e12],
    warp_products: 1.0,
    // Programming Guide, 8.9: 128 results in a cycle.
    floats: 4.0,
    // Programming Guide, 8.9.
    resident: (48, 24),
};

/// The GPUs that have a model.
pub const GPUS: [Gpu; 6] = [
    // A100 SXM4 80GB.
    Gpu {
        name: "A100",
        // A100 whitepaper.
        multiprocessors: 108,
        // A100 whitepaper: boost clock.
        clock: 1.41e9,
        // Data sheet of the 80 GB version.
        memory: 2.039e12,
        // A100 whitepaper.
        l2_bytes: 40 << 20,
        // A100 whitepaper: "L2 cache read bandwidth", 5120 bytes in a cycle.
        l2_per_cycle: 5120.0,
        // Data sheet: float64 19.5, TF32 156, bfloat16 312, int8 624 TFLOP/s; whitepaper: int4 1248.
        products: [19.5e12, 156e12, 312e12, 624e12, 1248e12],
        warp_products: 1.0,
        // Programming Guide, 8.0: 64 results in a cycle.
        floats: 2.0,
        // Programming Guide, 8.0.
        resident: (64, 32),
    },
    H100,
    // H200 SXM: an H100 with another memory (data sheet).
    Gpu {
        name: "H200",
        memory: 4.8e12,
        ..H100
    },
    // B200 of HGX B200, 1000 W.
    Gpu {
        name: "B200",
        // Chips and Cheese, "Nvidia's B200", 2025; the data sheet has no figure.
        multiprocessors: 148,
        // The same, as `nvidia-smi` shows it.
        clock: 1.965e9,
        // Blackwell data sheet.
        memory: 8e12,
        // The same, as CUDA reports it.
        l2_bytes: 126 << 20,
        // Assumed: two dies, each as an A100.
        l2_per_cycle: 10240.0,
        // Blackwell architecture brief, HGX B200: float64 40, TF32 1,100, bfloat16 2,250, float8 4,500, float4 9,000 TFLOP/s.
        products: [40e12, 1.1e15, 2.25e15, 4.5e15, 9e15],
        warp_products: 1.0,
        // Programming Guide, 10.0: 128 results in a cycle.
        floats: 4.0,
        // Programming Guide, 10.0.
        resident: (64, 32),
    },
    // L40S: the multiprocessor of an RTX 4090.
    Gpu {
        name: "L40S",
        // Data sheet: 18,176 cores, 128 for each multiprocessor.
        multiprocessors: 142,
        // 91.6 TFLOP/s of float32 (data sheet) are 142 multiprocessors x 256 operations x this clock.
        clock: 2.52e9,
        // Data sheet.
        memory: 8.64e11,
        // As CUDA reports it: that of the whole AD102 (Ada whitepaper: 98,304 KB).
        l2_bytes: 96 << 20,
        // Data sheet: TF32 183, bfloat16 362.05, float8 and int8 733 TFLOP/s; int4 twice as many (Ada whitepaper). Float64 as above.
        products: [1.43e12, 183e12, 362.05e12, 733e12, 1466e12],
        ..RTX_4090
    },
    RTX_4090,
];

/// Bytes of a sector of global memory; bytes per cycle of a multiprocessor's L1 cache (Programming Guide and whitepapers: a line of 128 bytes),
/// and of its shared memory (32 banks of 4 bytes, Programming Guide).
const SECTOR: f64 = 32.0;
const L1_BYTES: f64 = 128.0;
const SHARED_BYTES: f64 = 128.0;
/// Instructions of warps per cycle and multiprocessor: all (four schedulers, whitepapers), and those of special functions (16 results in a
/// cycle, Programming Guide; all compute capabilities from 8.0 on).
const ISSUED: f64 = 4.0;
const SPECIALS: f64 = 0.5;
/// Cycles between the arrival of the last warp at a barrier and the next instruction of any: an assumption below measured ones.
const BARRIER: f64 = 16.0;

impl Gpu {
    /// The GPU of a name.
    pub fn named(name: &str) -> Option<Gpu> {
        GPUS.into_iter().find(|gpu| gpu.name.eq_ignore_ascii_case(name))
    }

    /// A GPU of one multiprocessor, with that multiprocessor's share of the bandwidths and of the tensor cores' rate. A few blocks take as
    /// long on it as they take when the whole GPU runs such blocks, so a small launch can stand for a large one.
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
    let resident = (gpu.resident.0 / warps).clamp(1, gpu.resident.1) * gpu.multiprocessors;
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

    /// Published rates of tensor cores are whole operations of a multiprocessor in a cycle, at a clock that the GPU has.
    #[test]
    fn published_rates_are_operations_per_cycle() {
        for gpu in GPUS {
            let of_16_bits = gpu.products[2] / gpu.multiprocessors as f64;
            let per_cycle = (of_16_bits / gpu.clock).log2().round().exp2();
            let clock = of_16_bits / per_cycle;
            assert!(
                (0.88 * gpu.clock..=1.001 * gpu.clock).contains(&clock),
                "{}: {per_cycle} operations at {clock:e}",
                gpu.name
            );
            assert!(gpu.products.is_sorted_by(|a, b| a <= b), "{}", gpu.name);
        }
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
