//! Tuned kernels: those of the manifest, and the records that a build gives them.

use super::{Builder, images};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::generate::GeneratedKernel;
use crate::kernels::compile_manifest;
use crate::libraries::Libraries;
use crate::paths::{self, FileNames};
use crate::toolchain;
use crate::tuned::Tunings;

/// A tuned kernel, for `cargo tirx tune`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunedKernel {
    /// Its path in Rust: `scale`.
    pub name: String,
    /// The hash of its candidates, which a record of their times names.
    pub hash: String,
    /// Its candidates' names in Rust: `tile256`.
    pub candidates: Vec<String>,
    /// The names of the sizes that choose a candidate.
    pub sizes: Vec<String>,
    /// The sizes to measure.
    pub points: Vec<Vec<i64>>,
}

impl Builder {
    /// The tuned kernels of the manifest, in its order; nvcc is not called.
    ///
    /// # Errors
    /// As [`check`](Builder::check).
    pub fn tuned(&self) -> Result<Vec<TunedKernel>> {
        let shown = self.manifest.to_string_lossy().replace('\\', "/");
        let names = FileNames::new(&self.environment, &self.manifest, &shown);
        let tuned = || {
            let environment = self.own_environment();
            let mut manifest = self.parse_manifest(&shown, "name the manifest with --manifest")?;
            manifest.kernels.retain(|kernel| kernel.tune.is_some());
            manifest.resolve_native(|| toolchain::architectures(&environment))?;
            let libraries = Libraries::from_environment(&environment);
            let (inputs, warnings) = (&mut Default::default(), &mut Vec::new());
            let kernels = compile_manifest(&manifest, &self.manifest, &libraries, None, inputs, warnings)?;
            let tuned = kernels.iter().filter_map(|kernel| {
                let tuned = kernel.tuned.as_ref()?;
                Some(TunedKernel {
                    name: kernel.path(),
                    hash: tuned.hash.clone(),
                    candidates: kernel.variants.iter().filter_map(|v| v.name.clone()).collect(),
                    sizes: tuned.names.clone(),
                    points: tuned.points.clone(),
                })
            });
            Ok(tuned.collect())
        };
        tuned().map_err(|error: Error| error.with_files_named(&|file| names.name(file)))
    }

    /// Gives the tuned kernels their records, and warnings about stale records.
    pub(super) fn tunings(
        &self,
        environment: &Environment,
        kernels: &mut [GeneratedKernel],
        warnings: &mut Vec<String>,
    ) -> Result<Tunings> {
        let tunings = Tunings::open(&self.manifest, &|file| paths::shown(environment, file))?;
        let stale = tunings.fill_in(kernels);
        if images::is_locked(environment) {
            Error::all(stale)?;
            return Ok(tunings);
        }
        for message in stale.iter().flat_map(Error::messages) {
            let help = message.children.first().map_or("", |help| &help.text);
            warnings.push(format!("tirx: {}; the model chooses ({help})", message.text));
        }
        Ok(tunings)
    }
}
