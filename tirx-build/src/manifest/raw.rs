//! The manifest as serde reads it: keys and types of values; the values are checked later.

use serde::Deserialize;
use tirx_core::script::Release;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawManifest {
    #[serde(default)]
    pub(super) defaults: RawDefaults,
    #[serde(default)]
    pub(super) toolchain: RawToolchain,
    #[serde(default)]
    pub(super) bundle: RawBundle,
    #[serde(default)]
    pub(super) kernel: Vec<Spanned<RawKernel>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBundle {
    pub(super) path: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RawDefaults {
    pub(super) targets: Option<Vec<Spanned<String>>>,
    pub(super) ptx: Option<Spanned<String>>,
    pub(super) require: Option<bool>,
    pub(super) flags: Option<Vec<Spanned<String>>>,
    pub(super) fast_math: Option<bool>,
    pub(super) max_registers: Option<Spanned<u32>>,
    pub(super) lineinfo: Option<bool>,
    pub(super) debug: Option<bool>,
    pub(super) allow_spills: Option<bool>,
    pub(super) max_spills: Option<u32>,
    pub(super) min_occupancy: Option<Spanned<u32>>,
    pub(super) multiprocessors: Option<u32>,
    pub(super) tvm: Option<RawRelease>,
}

/// A release of TVM.
#[derive(Clone, Copy, Deserialize)]
pub(super) enum RawRelease {
    #[serde(rename = "0.26")]
    V26,
    #[serde(rename = "0.27")]
    V27,
}

impl From<RawRelease> for Release {
    fn from(release: RawRelease) -> Release {
        match release {
            RawRelease::V26 => Release::V26,
            RawRelease::V27 => Release::V27,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RawToolchain {
    pub(super) cuda: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) auto_install: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RawKernel {
    pub(super) name: Spanned<String>,
    pub(super) source: Option<Spanned<String>>,
    pub(super) script: Option<Spanned<String>>,
    pub(super) entry: Option<Spanned<String>>,
    pub(super) specialize: Option<Spanned<Vec<Spanned<toml::Table>>>>,
    pub(super) specialize_grid: Option<Spanned<toml::Table>>,
    pub(super) targets: Option<Vec<Spanned<String>>>,
    pub(super) ptx: Option<Spanned<String>>,
    pub(super) require: Option<bool>,
    pub(super) feature: Option<String>,
    pub(super) flags: Option<Vec<Spanned<String>>>,
    pub(super) fast_math: Option<bool>,
    pub(super) max_registers: Option<Spanned<u32>>,
    pub(super) lineinfo: Option<bool>,
    pub(super) debug: Option<bool>,
    pub(super) allow_spills: Option<bool>,
    pub(super) max_spills: Option<u32>,
    pub(super) min_occupancy: Option<Spanned<u32>>,
    pub(super) multiprocessors: Option<u32>,
    pub(super) tvm: Option<RawRelease>,
}
