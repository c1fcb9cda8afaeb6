//! The release of a CUDA Toolkit.

use std::fmt;

/// A CUDA release: major and minor number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// 13 of 13.0.
    pub major: u32,
    /// 0 of 13.0.
    pub minor: u32,
}

impl Version {
    /// A release.
    pub const fn new(major: u32, minor: u32) -> Version {
        Version { major, minor }
    }

    /// The release in what `nvcc --version` prints (`Cuda compilation tools, release 13.0, V13.0.88`).
    pub fn from_nvcc(output: &str) -> Option<Version> {
        let after = output.split("release ").nth(1)?;
        let text = after.split(|c: char| c != '.' && !c.is_ascii_digit()).next()?;
        let (major, minor) = text.split_once('.')?;
        Some(Version::new(major.parse().ok()?, minor.parse().ok()?))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
