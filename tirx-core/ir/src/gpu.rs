//! GPUs by name, and their limits.
//!
//! A GPU is a value: every crate parses a name once and asks the [`Gpu`] for the rest. Which GPUs have an instruction is a
//! [`GpuSet`](crate::intrin::GpuSet).

use std::fmt;
use std::str::FromStr;

/// A GPU as nvcc names it: `sm_90`, `sm_90a`, `sm_100f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gpu {
    number: u32,
    variant: Variant,
}

/// The suffix of a GPU's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variant {
    /// None: the code also runs on later GPUs.
    Portable,
    /// `a`: with the features of this GPU, for this GPU alone.
    Specific,
    /// `f`: with the features of its family, for later GPUs of the family, too.
    Family,
}

impl Variant {
    const ALL: [Variant; 3] = [Variant::Portable, Variant::Specific, Variant::Family];

    /// The suffix: empty, `a` or `f`.
    pub fn suffix(self) -> &'static str {
        match self {
            Variant::Portable => "",
            Variant::Specific => "a",
            Variant::Family => "f",
        }
    }
}

/// Limits of a GPU. Sizes are in bytes. The source is the CUDA C++ Programming Guide, "Technical Specifications per Compute
/// Capability".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most shared memory of a block, static and dynamic together.
    pub block_shared_memory: u32,
    /// Shared memory that the system takes for itself beside that of each block.
    pub reserved_shared_memory: u32,
    /// Warps that a multiprocessor holds at a time.
    pub warps: u32,
    /// Blocks that a multiprocessor holds at a time.
    pub blocks: u32,
    /// The most blocks of a cluster that every GPU of the kind runs; 1 without clusters.
    pub cluster_blocks: u32,
    /// Columns of tensor memory; 0 without tensor memory.
    pub tensor_memory_columns: u32,
}

impl Limits {
    /// Those of Hopper, for code that names no GPU.
    pub const USUAL: Limits = HOPPER;

    /// Shared memory of a multiprocessor, for all of its blocks.
    pub fn multiprocessor_shared_memory(self) -> u32 {
        self.block_shared_memory + self.reserved_shared_memory
    }
}

const fn limits(block_kib: u32, warps: u32, blocks: u32) -> Limits {
    Limits {
        block_shared_memory: block_kib * 1024,
        reserved_shared_memory: 1024,
        warps,
        blocks,
        cluster_blocks: 1,
        tensor_memory_columns: 0,
    }
}

const HOPPER: Limits = Limits {
    cluster_blocks: 8,
    ..limits(227, 64, 32)
};

const BLACKWELL: Limits = Limits {
    tensor_memory_columns: 512,
    ..HOPPER
};

const CONSUMER_BLACKWELL: Limits = Limits {
    cluster_blocks: 8,
    ..limits(99, 48, 24)
};

/// A GPU that has no variants but the portable one.
const PORTABLE: &[Variant] = &[Variant::Portable];

/// GPUs up to Turing: they reserve no shared memory.
const fn old_limits(block_kib: u32, warps: u32, blocks: u32) -> Limits {
    Limits {
        reserved_shared_memory: 0,
        ..limits(block_kib, warps, blocks)
    }
}

/// Each GPU: number, variants and limits.
const GPUS: &[(u32, &[Variant], Limits)] = &[
    (50, PORTABLE, old_limits(48, 64, 32)),
    (52, PORTABLE, old_limits(48, 64, 32)),
    (53, PORTABLE, old_limits(48, 64, 32)),
    (60, PORTABLE, old_limits(48, 64, 32)),
    (61, PORTABLE, old_limits(48, 64, 32)),
    (62, PORTABLE, old_limits(48, 64, 32)),
    (70, PORTABLE, old_limits(96, 64, 32)),
    (72, PORTABLE, old_limits(96, 64, 32)),
    (75, PORTABLE, old_limits(64, 32, 16)),
    (80, PORTABLE, limits(163, 64, 32)),
    (86, PORTABLE, limits(99, 48, 16)),
    (87, PORTABLE, limits(163, 48, 16)),
    (88, PORTABLE, limits(163, 48, 16)),
    (89, PORTABLE, limits(99, 48, 24)),
    (90, &[Variant::Portable, Variant::Specific], HOPPER),
    (100, &Variant::ALL, BLACKWELL),
    (103, &Variant::ALL, BLACKWELL),
    // Rubin: the most that kernels of the package `tirx-kernels` use; not compared with a GPU.
    (
        107,
        &Variant::ALL,
        Limits {
            block_shared_memory: 327 * 1024,
            ..BLACKWELL
        },
    ),
    (
        110,
        &Variant::ALL,
        Limits {
            warps: 48,
            blocks: 24,
            ..BLACKWELL
        },
    ),
    (120, &Variant::ALL, CONSUMER_BLACKWELL),
    (121, &Variant::ALL, CONSUMER_BLACKWELL),
];

impl Gpu {
    /// An H100 or H200 with its own features.
    pub const SM_90A: Gpu = Gpu::specific(90);

    /// A B200 with its own features.
    pub const SM_100A: Gpu = Gpu::specific(100);

    /// A GPU with its own features: `sm_…a`.
    pub const fn specific(number: u32) -> Gpu {
        Gpu {
            number,
            variant: Variant::Specific,
        }
    }

    /// Every GPU that is known, with each of its variants.
    pub fn all() -> impl Iterator<Item = Gpu> {
        GPUS.iter().flat_map(|(number, variants, _)| {
            variants.iter().map(|variant| Gpu {
                number: *number,
                variant: *variant,
            })
        })
    }

    /// Ten times the major compute capability plus the minor one: 90.
    pub fn number(self) -> u32 {
        self.number
    }

    /// The suffix of its name.
    pub fn variant(self) -> Variant {
        self.variant
    }

    /// The number of its family's first GPU: 100 for 103.
    pub fn family(self) -> u32 {
        self.number / 10 * 10
    }

    /// Its limits.
    pub fn limits(self) -> Limits {
        let known = GPUS.iter().find(|(number, ..)| *number == self.number);
        known.map_or(Limits::USUAL, |(.., limits)| *limits)
    }

    /// The name of its virtual architecture, as nvcc's `arch=` takes it: `compute_90a`.
    pub fn compute(self) -> String {
        format!("compute_{}{}", self.number, self.variant.suffix())
    }

    /// Whether code for `target` may use the features of this GPU: `sm_90a` is that GPU alone, `sm_100f` includes later GPUs of
    /// its family, `sm_90` includes every later GPU.
    pub fn includes(self, target: Gpu) -> bool {
        match self.variant {
            Variant::Portable => target.number >= self.number,
            Variant::Family => {
                target.variant != Variant::Portable
                    && target.family() == self.family()
                    && target.number >= self.number
            }
            Variant::Specific => self == target,
        }
    }

    /// Reads `compute_90`, the name of a virtual architecture.
    ///
    /// # Errors
    /// The name is unknown.
    pub fn from_compute(name: &str) -> Result<Gpu, UnknownGpu> {
        Gpu::from_name(name, "compute_")
    }

    fn from_name(name: &str, prefix: &str) -> Result<Gpu, UnknownGpu> {
        // Passes read the name of a function's target often: no name is written to compare it.
        let is_named = |gpu: &Gpu| {
            let rest = name.strip_prefix(prefix);
            let digits = rest.and_then(|rest| rest.strip_suffix(gpu.variant.suffix()));
            digits.is_some_and(|digits| !digits.starts_with(['0', '+']) && digits.parse() == Ok(gpu.number))
        };
        if let Some(gpu) = Gpu::all().find(is_named) {
            return Ok(gpu);
        }
        let spelled = |gpu: Gpu| format!("{prefix}{}{}", gpu.number, gpu.variant.suffix());
        let names: Vec<String> = Gpu::all().map(spelled).collect();
        Err(UnknownGpu {
            message: format!("unknown architecture `{name}`"),
            suggestion: tirx_source::suggest(name, names.iter().map(String::as_str)).map(str::to_string),
        })
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.number, self.variant.suffix())
    }
}

impl FromStr for Gpu {
    type Err = UnknownGpu;

    /// Reads `sm_90a`.
    fn from_str(name: &str) -> Result<Gpu, UnknownGpu> {
        Gpu::from_name(name, "sm_")
    }
}

/// A name that no GPU has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownGpu {
    /// The error.
    pub message: String,
    /// The closest valid name, if one is close.
    pub suggestion: Option<String>,
}

impl fmt::Display for UnknownGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, ": did you mean `{suggestion}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for UnknownGpu {}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(name: &str) -> Gpu {
        name.parse().expect("a name of the test")
    }

    #[test]
    fn each_gpu_is_read_as_it_is_written() {
        for each in Gpu::all() {
            assert_eq!(each.to_string().parse(), Ok(each));
            assert_eq!(Gpu::from_compute(&each.compute()), Ok(each));
        }
        assert_eq!(gpu("sm_90a"), Gpu::SM_90A);
        let unknown = "sm90a".parse::<Gpu>().unwrap_err();
        assert_eq!(unknown.suggestion.as_deref(), Some("sm_90a"));
        for name in [
            "compute_90",
            "sm_90b",
            "sm_90f",
            "sm_999",
            "sm_090",
            "sm_+90",
            "sm_",
            "",
        ] {
            assert!(name.parse::<Gpu>().is_err(), "{name}");
        }
    }

    #[test]
    fn a_gpu_includes_compatible_targets() {
        let includes = |name: &str, target: &str| gpu(name).includes(gpu(target));
        assert!(
            includes("sm_90a", "sm_90a") && !includes("sm_90a", "sm_90") && !includes("sm_90a", "sm_100a")
        );
        assert!(includes("sm_90", "sm_90a") && includes("sm_90", "sm_120") && !includes("sm_90", "sm_80"));
        assert!(includes("sm_100f", "sm_103a") && includes("sm_100f", "sm_100f"));
        assert!(!includes("sm_100f", "sm_100") && !includes("sm_100f", "sm_110a"));
    }

    #[test]
    fn limits_are_those_of_the_compute_capability() {
        for (name, block, multiprocessor) in [
            ("sm_75", 64, 64),
            ("sm_80", 163, 164),
            ("sm_86", 99, 100),
            ("sm_90a", 227, 228),
            ("sm_100f", 227, 228),
            ("sm_107a", 327, 328),
            ("sm_120a", 99, 100),
        ] {
            let limits = gpu(name).limits();
            let found = (
                limits.block_shared_memory / 1024,
                limits.multiprocessor_shared_memory() / 1024,
            );
            assert_eq!(found, (block, multiprocessor), "{name}");
        }
        assert_eq!(gpu("sm_89").limits().cluster_blocks, 1);
        assert_eq!(gpu("sm_100a").limits().tensor_memory_columns, 512);
    }
}
