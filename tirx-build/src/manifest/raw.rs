//! The manifest as it is written: keys and types of values; the values are checked later.

use toml::Spanned;
use toml::de::DeValue;

use super::values::Values;
use crate::document::{Fields, FromTable, FromToml, Mistake, Record, Wrong, wrong};

/// Structs of a table's keys, from one list of keys and fields.
macro_rules! tables {
    ($($(#[$meta:meta])* $name:ident { $($field:ident: $key:literal $read:ident $ty:ty,)* })*) => {$(
        $(#[$meta])*
        pub(crate) struct $name {
            $(pub(crate) $field: $ty,)*
        }

        impl FromTable for $name {
            const KEYS: &'static [&'static str] = &[$($key),*];

            fn from_table(fields: &Fields<'_, '_>) -> Result<$name, Mistake> {
                Ok($name {
                    $($field: fields.$read($key)?,)*
                })
            }
        }
    )*};
}

tables! {
    RawManifest {
        defaults: "defaults" or_default Record<RawDefaults>,
        toolchain: "toolchain" or_default Record<RawToolchain>,
        bundle: "bundle" or_default RawBundle,
        kernel: "kernel" or_default Vec<Spanned<Record<RawKernel>>>,
    }

    #[derive(Default)]
    RawBundleTable {
        path: "path" optional Option<String>,
        optional: "optional" or_default bool,
    }

    #[derive(Default)]
    RawDefaults {
        targets: "targets" optional Option<Vec<Spanned<String>>>,
        ptx: "ptx" optional Option<Spanned<String>>,
        require: "require" optional Option<bool>,
        flags: "flags" optional Option<Vec<Spanned<String>>>,
        fast_math: "fast-math" optional Option<bool>,
        max_registers: "max-registers" optional Option<Spanned<u32>>,
        lineinfo: "lineinfo" optional Option<bool>,
        debug: "debug" optional Option<bool>,
        allow_spills: "allow-spills" optional Option<bool>,
        max_spills: "max-spills" optional Option<u32>,
        min_occupancy: "min-occupancy" optional Option<Spanned<u32>>,
        multiprocessors: "multiprocessors" optional Option<u32>,
        tvm: "tvm" optional Option<Spanned<String>>,
    }

    #[derive(Default)]
    RawToolchain {
        cuda: "cuda" optional Option<Spanned<String>>,
        auto_install: "auto-install" or_default bool,
    }

    RawKernel {
        name: "name" required Spanned<String>,
        source: "source" optional Option<Spanned<String>>,
        script: "script" optional Option<Spanned<String>>,
        entry: "entry" optional Option<Spanned<String>>,
        specialize: "specialize" optional Option<Spanned<Vec<Spanned<Values>>>>,
        specialize_grid: "specialize-grid" optional Option<Spanned<Values>>,
        tune: "tune" optional Option<Spanned<Record<RawTune>>>,
        targets: "targets" optional Option<Vec<Spanned<String>>>,
        ptx: "ptx" optional Option<Spanned<String>>,
        require: "require" optional Option<bool>,
        feature: "feature" optional Option<String>,
        flags: "flags" optional Option<Vec<Spanned<String>>>,
        fast_math: "fast-math" optional Option<bool>,
        max_registers: "max-registers" optional Option<Spanned<u32>>,
        lineinfo: "lineinfo" optional Option<bool>,
        debug: "debug" optional Option<bool>,
        allow_spills: "allow-spills" optional Option<bool>,
        max_spills: "max-spills" optional Option<u32>,
        min_occupancy: "min-occupancy" optional Option<Spanned<u32>>,
        multiprocessors: "multiprocessors" optional Option<u32>,
        tvm: "tvm" optional Option<Spanned<String>>,
    }

    RawTune {
        values: "values" required Spanned<Values>,
        predicate: "predicate" optional Option<Spanned<String>>,
        sizes: "sizes" optional Option<Spanned<Vec<Spanned<Values>>>>,
    }
}

/// `bundle = "optional"`, or the table.
#[derive(Default)]
pub(crate) struct RawBundle(pub(super) RawBundleTable);

impl FromToml for RawBundle {
    const WORDS: (&'static str, &'static str) = ("`\"optional\"` or a table", "tables");

    fn from_toml(value: &Spanned<DeValue<'_>>) -> Result<RawBundle, Wrong> {
        match value.get_ref() {
            DeValue::String(text) if text == "optional" => Ok(RawBundle(RawBundleTable {
                path: None,
                optional: true,
            })),
            DeValue::Table(_) => Record::from_toml(value).map(|table| RawBundle(table.0)),
            _ => wrong(value),
        }
    }
}
