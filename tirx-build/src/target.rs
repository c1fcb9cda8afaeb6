//! The GPUs that a kernel is compiled for, and the releases of nvcc that support them.

use std::fmt;
use std::str::FromStr;

use crate::version::Version;

/// Architectures nvcc can compile for: number, suffixes, and the first release that knows each.
/// From the release notes of the CUDA Toolkit ("NVCC" sections, 11.0 to 13.0), and from the PTX ISA 9.4.
const ARCHITECTURES: &[(u32, &str, Version)] = &[
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

/// A real architecture, `sm_90a`, or a virtual one, `compute_90`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Architecture {
    /// What follows the prefix: `90a`.
    name: String,
    needs: Version,
}

impl Architecture {
    /// As nvcc's `code=` takes it: `sm_90a`.
    pub fn sm(&self) -> String {
        format!("sm_{}", self.name)
    }

    /// As nvcc's `arch=` takes it: `compute_90a`.
    pub fn compute(&self) -> String {
        format!("compute_{}", self.name)
    }

    /// The first nvcc that can compile for it.
    pub fn needs(&self) -> Version {
        self.needs
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.name)
    }
}

/// A name that is no architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownArchitecture {
    /// The error.
    pub message: String,
    /// The closest valid name, if one is close.
    pub suggestion: Option<String>,
}

fn parse(text: &str, prefix: &str) -> Result<Architecture, UnknownArchitecture> {
    let found = text.strip_prefix(prefix).and_then(|name| {
        ARCHITECTURES
            .iter()
            .find(|(n, suffix, _)| name == format!("{n}{suffix}"))
    });
    if let Some((number, suffix, needs)) = found {
        return Ok(Architecture {
            name: format!("{number}{suffix}"),
            needs: *needs,
        });
    }
    let names: Vec<String> = ARCHITECTURES
        .iter()
        .map(|(n, s, _)| format!("{prefix}{n}{s}"))
        .collect();
    Err(UnknownArchitecture {
        message: format!("unknown architecture `{text}`"),
        suggestion: tirx_core::suggest(text, names.iter().map(String::as_str)).map(str::to_string),
    })
}

impl FromStr for Architecture {
    type Err = UnknownArchitecture;

    /// Reads `sm_90a`.
    fn from_str(text: &str) -> Result<Architecture, UnknownArchitecture> {
        parse(text, "sm_")
    }
}

impl Architecture {
    /// Reads `compute_90`, the form of PTX targets.
    pub fn from_compute(text: &str) -> Result<Architecture, UnknownArchitecture> {
        parse(text, "compute_")
    }

    /// Reads a setting of PTX: `compute_90`, or `none` for no PTX.
    pub(crate) fn from_ptx(text: &str) -> Result<Option<Architecture>, UnknownArchitecture> {
        match text == NO_PTX {
            true => Ok(None),
            false => Architecture::from_compute(text).map(Some),
        }
    }
}

/// What stands in the place of PTX for kernels that have none.
pub(crate) const NO_PTX: &str = "none";

/// What one kernel is compiled to: native images and, optionally, PTX.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// One native image each; no duplicates.
    pub native: Vec<Architecture>,
    /// PTX for GPUs newer than these.
    pub ptx: Option<Architecture>,
}

impl Targets {
    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.native.is_empty() && self.ptx.is_none()
    }

    /// The architecture that passes and code generation use: the first one named.
    pub fn primary(&self) -> String {
        match (self.native.first(), &self.ptx) {
            (Some(arch), _) => arch.sm(),
            (None, Some(ptx)) => ptx.sm(),
            (None, None) => "sm_90a".to_string(),
        }
    }

    /// The target that needs the newest nvcc, with its name as the manifest spells it.
    pub fn most_demanding(&self) -> Option<(String, Version)> {
        let native = self.native.iter().map(|a| (a.sm(), a.needs));
        let ptx = self.ptx.iter().map(|a| (a.compute(), a.needs));
        native.chain(ptx).max_by_key(|(_, version)| *version)
    }

    /// Each target with its `-gencode` value for nvcc: `("sm_90a", "arch=compute_90a,code=sm_90a")`, PTX last.
    pub fn each(&self) -> Vec<(String, String)> {
        let native = self
            .native
            .iter()
            .map(|a| (a.sm(), format!("arch={},code={}", a.compute(), a.sm())));
        let ptx = self
            .ptx
            .iter()
            .map(|a| (a.compute(), format!("arch={0},code={0}", a.compute())));
        native.chain(ptx).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_architectures_parse_and_unknown_ones_suggest() {
        let hopper: Architecture = "sm_90a".parse().unwrap();
        assert_eq!(
            (hopper.sm(), hopper.compute()),
            ("sm_90a".into(), "compute_90a".into())
        );
        assert_eq!(hopper.needs(), Version::new(12, 0));
        let error = "sm90a".parse::<Architecture>().unwrap_err();
        assert_eq!(error.suggestion.as_deref(), Some("sm_90a"));
        assert!("compute_90".parse::<Architecture>().is_err());
        assert!("sm_90b".parse::<Architecture>().is_err());
    }

    /// Messages name them as targets that have an instruction.
    #[test]
    fn the_gpus_of_every_instruction_are_known() {
        for instruction in tirx_core::intrin::mnemonic::instructions() {
            for gpu in &instruction.gpus {
                let name = gpu.example();
                assert!(
                    name.parse::<Architecture>().is_ok(),
                    "{}: {name}",
                    instruction.place
                );
            }
        }
    }

    #[test]
    fn each_target_has_a_gencode_and_ptx_is_last() {
        let targets = Targets {
            native: vec!["sm_90a".parse().unwrap(), "sm_100a".parse().unwrap()],
            ptx: Some(Architecture::from_compute("compute_90").unwrap()),
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
