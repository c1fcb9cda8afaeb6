//! nvcc: discovery, releases, and installation.
//!
//! [`discover`] looks for one in a documented order; [`install`] fetches one through pip into a per-user cache.

mod disassembler;
mod discover;
mod install;
mod native;

pub use disassembler::{disassembler, install_disassembler};
pub(crate) use discover::install_help;
pub use discover::{Candidate, Discovered, Search, discover, survey};
pub use install::{cache_dir, install, installed, python, remove, stamp_dir};
pub(crate) use install::{offline, watched_stamp_dir};
pub(crate) use native::architectures;
pub use native::{InstalledGpu, gpus};

pub use crate::version::Version;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The release that a manifest requests: `13` or `13.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    major: u32,
    minor: Option<u32>,
}

impl Pin {
    /// Whether a release satisfies the request.
    pub fn accepts(self, version: Version) -> bool {
        self.major == version.major && self.minor.is_none_or(|minor| minor == version.minor)
    }

    /// The major number.
    pub fn major(self) -> u32 {
        self.major
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.minor {
            Some(minor) => write!(f, "{}.{minor}", self.major),
            None => write!(f, "{}", self.major),
        }
    }
}

/// A text that is no release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidPin;

impl FromStr for Pin {
    type Err = InvalidPin;

    fn from_str(text: &str) -> Result<Pin, InvalidPin> {
        // Digits only: `parse` alone would accept "+13".
        let number = |s: &str| {
            let digits = !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| s.parse().ok()).flatten().ok_or(InvalidPin)
        };
        match text.split_once('.') {
            Some((major, minor)) => Ok(Pin {
                major: number(major)?,
                minor: Some(number(minor)?),
            }),
            None => Ok(Pin {
                major: number(text)?,
                minor: None,
            }),
        }
    }
}

/// An nvcc that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nvcc {
    /// The program.
    pub path: PathBuf,
    /// Its release.
    pub version: Version,
    /// The build identifier from `nvcc --version` (`V13.0.88`).
    pub build: String,
    /// The reason for choosing it: `TIRX_NVCC`, `PATH`, `/usr/local/cuda`, …
    pub origin: String,
}

impl fmt::Display for Nvcc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "nvcc {} at `{}` (from {})",
            self.version,
            self.path.display(),
            self.origin
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_release_from_the_version_text() {
        let text = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 13.0, V13.0.88\n";
        assert_eq!(Version::from_nvcc(text), Some(Version::new(13, 0)));
        assert_eq!(Version::from_nvcc("clang version 18"), None);
    }

    #[test]
    fn pins_accept_their_releases() {
        let exact: Pin = "13.0".parse().unwrap();
        assert!(exact.accepts(Version::new(13, 0)) && !exact.accepts(Version::new(13, 1)));
        let major: Pin = "12".parse().unwrap();
        assert!(major.accepts(Version::new(12, 8)) && !major.accepts(Version::new(13, 0)));
        for bad in ["", "latest", "13.", ".0", "13.0.1", "+13"] {
            assert!(bad.parse::<Pin>().is_err(), "{bad}");
        }
    }
}
