//! What a GPU computes at most.

use tirx_rt::DeviceProperties;

/// What a kernel computes with, which decides the peak that it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Unit {
    /// float32 without tensor cores.
    F32,
    /// float64 without tensor cores.
    F64,
    /// Tensor cores on tfloat32.
    Tf32,
    /// Tensor cores on float16 or bfloat16.
    F16,
    /// Tensor cores on float8 and int8.
    F8,
    /// Tensor cores on float4.
    F4,
}

/// The most that a multiprocessor does in a cycle: a multiplication and an addition are two operations.
struct Row {
    compute_capability: (i32, i32),
    /// In the order of [`Unit`]; 0 where it has no such unit.
    operations: [u32; 6],
}

/// From NVIDIA's architecture papers and data sheets: dense products, float32 sums.
const ROWS: &[Row] = &[
    Row {
        compute_capability: (8, 0),
        operations: [128, 64, 1024, 2048, 4096, 0],
    },
    Row {
        compute_capability: (8, 9),
        operations: [256, 4, 256, 512, 1024, 0],
    },
    Row {
        compute_capability: (9, 0),
        operations: [256, 128, 2048, 4096, 8192, 0],
    },
    Row {
        compute_capability: (10, 0),
        operations: [256, 128, 4096, 8192, 16384, 32768],
    },
    Row {
        compute_capability: (10, 3),
        operations: [256, 4, 4096, 8192, 16384, 49152],
    },
    Row {
        compute_capability: (12, 0),
        operations: [256, 4, 256, 512, 1024, 2048],
    },
];

impl Unit {
    /// Its name in the table.
    pub(super) fn name(self) -> &'static str {
        match self {
            Unit::F32 => "float32",
            Unit::F64 => "float64",
            Unit::Tf32 => "tensor cores, tf32",
            Unit::F16 => "tensor cores, 16 bits",
            Unit::F8 => "tensor cores, 8 bits",
            Unit::F4 => "tensor cores, 4 bits",
        }
    }

    /// What the CUDA text of a kernel computes with: the narrowest type of its matrix products, or float32.
    pub(super) fn from_cuda(cuda: &str) -> Unit {
        let products = cuda.lines().filter(|line| {
            ["wgmma.mma_async", "mma.sync", "tcgen05.mma"]
                .iter()
                .any(|product| line.contains(product))
        });
        let products: Vec<&str> = products.collect();
        let any = |words: &[&str]| {
            products
                .iter()
                .any(|line| words.iter().any(|word| line.contains(word)))
        };
        match products.is_empty() {
            true if cuda.contains("double") => Unit::F64,
            true => Unit::F32,
            false if any(&["mxf4", ".e2m1.e2m1"]) => Unit::F4,
            false if any(&["f8f6f4", ".e4m3", ".e5m2", ".s8", ".u8"]) => Unit::F8,
            false if any(&["tf32"]) => Unit::Tf32,
            false => Unit::F16,
        }
    }

    /// Operations that a GPU does in a second, at most, at its highest clock; `None` where the table does not have it.
    pub(super) fn peak(self, gpu: &DeviceProperties) -> Option<f64> {
        let row = ROWS
            .iter()
            .find(|row| row.compute_capability == gpu.compute_capability)?;
        let operations = row.operations[self as usize];
        let cycles = f64::from(gpu.multiprocessors) * f64::from(gpu.clock_khz) * 1e3;
        (operations > 0).then(|| f64::from(operations) * cycles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_that_of_the_products() {
        assert_eq!(Unit::from_cuda("c[i] = a[i] + b[i];"), Unit::F32);
        assert_eq!(Unit::from_cuda("double s = a[i];"), Unit::F64);
        assert_eq!(
            Unit::from_cuda("\"wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 \""),
            Unit::F16
        );
        assert_eq!(
            Unit::from_cuda("\"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 \""),
            Unit::Tf32
        );
        assert_eq!(
            Unit::from_cuda("\"tcgen05.mma.cta_group::1.kind::f8f6f4 \""),
            Unit::F8
        );
        assert_eq!(
            Unit::from_cuda("\"tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale \""),
            Unit::F4
        );
    }
}
