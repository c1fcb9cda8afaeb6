//! The GPUs that a kernel is compiled for, and the releases of nvcc that support them.

use tirx_core::ir::{Gpu, UnknownGpu};

use crate::version::Version;

/// GPUs that nvcc can compile for: number, suffix, and the first release that knows each.
/// From the release notes of the CUDA Toolkit ("NVCC" sections, 11.0 to 13.0), and from the PTX ISA 9.4.
const RELEASES: &[(u32, &str, Version)] = &[
    (75, "", Version::new(10, 0)),
    (80, "", Version::new(11, 0)),
    (86, "", Version::new(11, 1)),
    (87, "", Version::new(11, 4)),
    (88, "", Version::new(13, 0)),
    (89, "", Version::new(11, 8)),
    (90, "", Version::new(11, 8)),
    (90, "a", Version::new(12, 0)),
    (100, "", Version::new(12, 8)),
    (100, "a", Version::new(12, 8)),
    (100, "f", Version::new(12, 9)),
    (103, "", Version::new(12, 9)),
    (103, "a", Version::new(12, 9)),
    (103, "f", Version::new(12, 9)),
    (107, "", Version::new(13, 4)),
    (107, "a", Version::new(13, 4)),
    (107, "f", Version::new(13, 4)),
    (110, "", Version::new(13, 0)),
    (110, "a", Version::new(13, 0)),
    (110, "f", Version::new(13, 0)),
    (120, "", Version::new(12, 8)),
    (120, "a", Version::new(12, 8)),
    (120, "f", Version::new(12, 9)),
    (121, "", Version::new(12, 9)),
    (121, "a", Version::new(12, 9)),
    (121, "f", Version::new(12, 9)),
];

/// The first nvcc that can compile for a GPU; `None` if no supported release can.
pub fn needed_nvcc(gpu: Gpu) -> Option<Version> {
    let named = |(number, suffix, _): &&(u32, &str, Version)| {
        *number == gpu.number() && *suffix == gpu.variant().suffix()
    };
    RELEASES.iter().find(named).map(|(.., release)| *release)
}

/// Reads `sm_90a`, the name of a GPU that nvcc can compile for.
///
/// # Errors
/// The name is unknown.
pub fn parse(text: &str) -> Result<Gpu, UnknownGpu> {
    compiled(text, text.parse(), |gpu| gpu.to_string())
}

/// Reads `compute_90`, the form of PTX targets.
///
/// # Errors
/// The name is unknown.
pub fn parse_compute(text: &str) -> Result<Gpu, UnknownGpu> {
    compiled(text, Gpu::from_compute(text), Gpu::compute)
}

/// A parsed GPU if nvcc can compile for it.
fn compiled(
    text: &str,
    parsed: Result<Gpu, UnknownGpu>,
    spelled: impl Fn(Gpu) -> String,
) -> Result<Gpu, UnknownGpu> {
    match parsed {
        Ok(gpu) if needed_nvcc(gpu).is_some() => Ok(gpu),
        _ => {
            let all = Gpu::all().filter(|gpu| needed_nvcc(*gpu).is_some());
            let names: Vec<String> = all.map(spelled).collect();
            Err(UnknownGpu {
                message: format!("unknown architecture `{text}`"),
                suggestion: tirx_core::suggest(text, names.iter().map(String::as_str)).map(str::to_string),
            })
        }
    }
}

/// Reads a setting of PTX: `compute_90`, or `none` for no PTX.
pub(crate) fn parse_ptx(text: &str) -> Result<Option<Gpu>, UnknownGpu> {
    match text == NO_PTX {
        true => Ok(None),
        false => parse_compute(text).map(Some),
    }
}

/// What stands in the place of PTX for kernels that have none.
pub(crate) const NO_PTX: &str = "none";

/// What one kernel is compiled to: native images and, optionally, PTX.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// One native image each; no duplicates.
    pub native: Vec<Gpu>,
    /// PTX for GPUs newer than these.
    pub ptx: Option<Gpu>,
}

impl Targets {
    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.native.is_empty() && self.ptx.is_none()
    }

    /// The GPU that passes and code generation use: the first one named.
    pub fn primary(&self) -> Gpu {
        self.native.first().copied().or(self.ptx).unwrap_or(Gpu::SM_90A)
    }

    /// The target that needs the newest nvcc, with its name as the manifest spells it.
    pub fn most_demanding(&self) -> Option<(String, Version)> {
        let native = self.native.iter().map(|gpu| (gpu.to_string(), *gpu));
        let ptx = self.ptx.iter().map(|gpu| (gpu.compute(), *gpu));
        let releases = native
            .chain(ptx)
            .filter_map(|(name, gpu)| Some((name, needed_nvcc(gpu)?)));
        releases.max_by_key(|(_, release)| *release)
    }

    /// Each target with its `-gencode` value for nvcc: `("sm_90a", "arch=compute_90a,code=sm_90a")`, PTX last.
    pub fn each(&self) -> Vec<(String, String)> {
        let native = self
            .native
            .iter()
            .map(|a| (a.to_string(), format!("arch={},code={a}", a.compute())));
        let ptx = self
            .ptx
            .iter()
            .map(|a| (a.compute(), format!("arch={0},code={0}", a.compute())));
        native.chain(ptx).collect()
    }

    /// If the PTX is for the GPU of native image `at`: its place in [`each`](Self::each), and the `-gencode` value that makes both.
    pub(crate) fn with_ptx(&self, at: usize) -> Option<(usize, String)> {
        let gpu = self.ptx.filter(|ptx| self.native.get(at) == Some(ptx))?;
        let both = format!("arch={0},code=[{gpu},{0}]", gpu.compute());
        Some((self.native.len(), both))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_of_nvcc_parse_and_unknown_ones_suggest() {
        let hopper = parse("sm_90a").unwrap();
        assert_eq!((hopper, hopper.compute()), (Gpu::SM_90A, "compute_90a".into()));
        assert_eq!(needed_nvcc(hopper), Some(Version::new(12, 0)));
        let error = parse("sm90a").unwrap_err();
        assert_eq!(error.suggestion.as_deref(), Some("sm_90a"));
        assert!(parse("compute_90").is_err() && parse("sm_90b").is_err());
        // A GPU that nvcc 13 no longer compiles for.
        assert!("sm_70".parse::<Gpu>().is_ok() && parse("sm_70").is_err());
    }

    /// Messages name them as targets that have an instruction.
    #[test]
    fn the_gpus_of_every_instruction_are_known() {
        for instruction in tirx_core::intrin::mnemonic::instructions() {
            for gpu in &instruction.gpus {
                let name = gpu.example();
                assert!(parse(&name).is_ok(), "{}: {name}", instruction.place);
            }
        }
    }

    #[test]
    fn ptx_of_the_same_gpu_is_made_with_its_native_image() {
        let targets = |ptx: &str| Targets {
            native: vec![parse("sm_90a").unwrap(), parse("sm_80").unwrap()],
            ptx: parse_ptx(ptx).unwrap(),
        };
        let both = "arch=compute_80,code=[sm_80,compute_80]".to_string();
        assert_eq!(targets("compute_80").with_ptx(1), Some((2, both)));
        assert_eq!(targets("compute_80").with_ptx(0), None);
        assert_eq!(targets("compute_90").with_ptx(0), None);
        assert_eq!(targets("none").with_ptx(1), None);
    }

    #[test]
    fn each_target_has_a_gencode_and_ptx_is_last() {
        let targets = Targets {
            native: vec![Gpu::SM_90A, parse("sm_100a").unwrap()],
            ptx: Some(parse_compute("compute_90").unwrap()),
        };
        assert_eq!(
            targets.each(),
            [
                ("sm_90a", "arch=compute_90a,code=sm_90a"),
                ("sm_100a", "arch=compute_100a,code=sm_100a"),
                ("compute_90", "arch=compute_90,code=compute_90"),
            ]
            .map(|(target, gencode)| (target.to_string(), gencode.to_string()))
        );
        assert_eq!(
            targets.most_demanding().unwrap(),
            ("sm_100a".into(), Version::new(12, 8))
        );
    }
}
