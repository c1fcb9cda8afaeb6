//! The images of all kernels: from the bundle where they fit, otherwise from nvcc.

use std::fs;
use std::path::{Path, PathBuf};

use tirx_bundle::fatbin;
use tirx_core::diagnostic::Message;

use super::bundle::{no_bundle, stale};
use super::request::BundleUse;
use super::{Builder, Found};
use crate::bundle::{self as bundles, Bundle, Offer};
use crate::claim::Claim;
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::generate::{GeneratedKernel, Variant};
use crate::kernels::{jobs, write_texts};
use crate::manifest::{Kernel, Manifest, Toolchain};
use crate::nvcc::{Compilation, Job};
use crate::paths;
use crate::stats;
use crate::store::Store;

/// The images of all kernels, and their origin.
pub(super) struct Images {
    /// The fat binary of each variant, in the order of the kernels, and the release and build of the nvcc that made it.
    pub(super) of_variants: Vec<Option<(Vec<u8>, String)>>,
    pub(super) found: Found,
    /// Warnings as text.
    pub(super) warnings: Vec<String>,
    /// Warnings of nvcc.
    pub(super) said: Vec<Message>,
    /// The bundle, if there is one.
    pub(super) bundle: Option<PathBuf>,
    /// Where a build looked for a bundle and found none.
    pub(super) missing_bundle: Option<PathBuf>,
    pub(super) compiled: usize,
    pub(super) cached: usize,
    pub(super) bundled: usize,
}

pub(super) fn joined(parts: &[Vec<u8>]) -> Vec<u8> {
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    fatbin::join(&parts)
}

impl Builder {
    /// The images of all kernels: from the bundle what fits, the rest from nvcc.
    pub(super) fn images(
        &self,
        environment: &Environment,
        manifest: &Manifest,
        kernels: &[GeneratedKernel],
        out_dir: &Path,
        claim: &Claim,
        say: &(dyn Fn(&str) + Sync),
    ) -> Result<Images> {
        let mut all = jobs(manifest, kernels);
        // For tools that show lines, such as compute-sanitizer.
        if environment.get("TIRX_LINEINFO").is_some_and(|value| value != "0") {
            all.iter_mut().for_each(|job| job.options.lineinfo = true);
        }
        let mut images = Images {
            of_variants: vec![None; all.len()],
            found: Found::NotWanted,
            warnings: Vec::new(),
            said: Vec::new(),
            bundle: None,
            missing_bundle: None,
            compiled: 0,
            cached: 0,
            bundled: 0,
        };
        // Documentation is built without network and toolkit, and machine code would show nothing there.
        if environment.get("DOCS_RS").is_some() {
            return Ok(images);
        }
        let bundle_use = BundleUse::of_variable(environment).unwrap_or(match manifest.bundle_is_optional {
            true => BundleUse::Optional,
            false => BundleUse::Required,
        });
        if bundle_use == BundleUse::Ignored && is_locked(environment) {
            return Err(Error::new(
                "TIRX_LOCKED requires the bundle, and TIRX_BUNDLE=ignore a build without it",
            )
            .help("unset one of them"));
        }
        let stale = match bundle_use {
            BundleUse::Ignored => Vec::new(),
            _ => self.take_from_bundle(environment, manifest, kernels, &all, bundle_use, &mut images)?,
        };
        let missing: Vec<usize> = (0..all.len())
            .filter(|at| images.of_variants[*at].is_none() && !all[*at].targets.is_empty())
            .collect();
        if missing.is_empty() && images.bundled > 0 {
            return Ok(images);
        }
        let auto_install = self.auto_install.unwrap_or(manifest.toolchain.auto_install);
        let toolchain = Toolchain {
            // Without the bundle a build is for the simulator, or for an nvcc that is there.
            auto_install: auto_install && bundle_use != BundleUse::Ignored,
            ..manifest.toolchain.clone()
        };
        let wanted = Manifest {
            kernels: of_missing(manifest, kernels, &missing),
            ..manifest.clone()
        };
        let search = self.find_nvcc(environment, &toolchain, &wanted, say);
        let required = wanted.kernels.iter().any(|kernel| kernel.require);
        let (found, warning) = match (search, bundle_use) {
            (Ok((Found::Nvcc(nvcc), warning)), _) => (Found::Nvcc(nvcc), warning),
            // Nothing can make the images that the bundle lacks.
            (_, BundleUse::Required) if !stale.is_empty() => {
                return Err(Error::all(stale)
                    .err()
                    .unwrap_or_else(|| Error::new("the bundle is stale")));
            }
            (Err(error), _) if required => return Err(error),
            (search, BundleUse::Optional) if !stale.is_empty() => {
                let found = search.map_or(Found::Nothing, |(found, _)| found);
                (found, Some(on_the_simulator(&stale)))
            }
            (Ok((found, warning)), _) => (found, warning),
            (Err(error), BundleUse::Ignored) => {
                let first = error.messages().first().map_or("", |message| &message.text);
                let text = format!("tirx: {first}: the kernels run on the simulator only");
                (Found::Nothing, Some(text))
            }
            (Err(error), _) => return Err(error),
        };
        images.warnings.extend(warning);
        // A kernel that nothing compiled is in the one warning above.
        for error in stale.iter().filter(|_| found.nvcc().is_some()) {
            if let Some(message) = error.messages().first() {
                let text = format!(
                    "tirx: {}; nvcc compiled it (run `cargo tirx bundle`)",
                    message.text
                );
                images.warnings.push(text);
            }
        }
        if let Some(nvcc) = found.nvcc() {
            let folder = out_dir.join("tirx");
            claim.write(|| write_texts(kernels, &folder))?;
            let work = out_dir.join(format!("tirx-work-{}", std::process::id()));
            let compilation = Compilation {
                nvcc,
                store: &Store::open(environment, out_dir, self.share),
                work: &work,
                environment,
                say,
            };
            let wanted: Vec<Job> = missing.iter().map(|at| all[*at].clone()).collect();
            let result = compilation.run(&wanted);
            let _ = fs::remove_dir_all(&work);
            let made = result?;
            let variants: Vec<&Variant> = kernels.iter().flat_map(GeneratedKernel::images).collect();
            let variants: Vec<&Variant> = missing
                .iter()
                .filter_map(|at| variants.get(*at).copied())
                .collect();
            stats::check_budgets(&wanted, &variants, &made)?;
            let identity = format!("{} {}", nvcc.version, nvcc.build);
            for (at, parts) in missing.into_iter().zip(&made.images) {
                images.of_variants[at] = Some((joined(parts), identity.clone()));
            }
            (images.compiled, images.cached, images.said) = (made.compiled, made.cached, made.warnings);
        }
        images.found = found;
        Ok(images)
    }

    /// Takes the fitting images from the bundle, if there is one; the errors describe the others.
    fn take_from_bundle(
        &self,
        environment: &Environment,
        manifest: &Manifest,
        kernels: &[GeneratedKernel],
        jobs: &[Job],
        bundle_use: BundleUse,
        images: &mut Images,
    ) -> Result<Vec<Error>> {
        let locked = is_locked(environment);
        let named = self.bundle.is_some() || manifest.bundle.is_some();
        let path = self
            .bundle
            .clone()
            .unwrap_or_else(|| bundles::place(manifest, &self.manifest));
        let shown = paths::shown(environment, &path);
        let Some(bundle) = Bundle::open(&path, &shown)? else {
            // The default place may be empty; an explicitly named one must not be, unless it is optional.
            images.missing_bundle = Some(path.clone());
            return match locked || named && bundle_use == BundleUse::Required {
                true => Err(no_bundle(&shown)),
                false => Ok(Vec::new()),
            };
        };
        images.bundle = Some(bundle.watched());
        let variants = kernels.iter().flat_map(GeneratedKernel::images);
        let debug_profile = environment
            .peek("PROFILE")
            .is_some_and(|profile| profile == "debug");
        let mut errors = Vec::new();
        for ((at, job), variant) in jobs.iter().enumerate().zip(variants) {
            if job.targets.is_empty() {
                continue;
            }
            // With `debug` a kernel is compiled here for cuda-gdb, where possible.
            let for_debugging = debug_profile && job.options.debug && !locked;
            match bundle.offer(manifest, job, variant, locked)? {
                Offer::Images(_) if for_debugging && self.has_nvcc(environment, manifest) => {}
                Offer::Images(parts) => {
                    images.of_variants[at] = Some((joined(&parts), bundle.lock.nvcc.clone()));
                    images.bundled += 1;
                }
                Offer::Stale(reason) => {
                    errors.push(self.of_script(&job.file, stale(&bundle, &job.what, &reason)))
                }
            }
        }
        if locked {
            Error::all(std::mem::take(&mut errors))?;
        }
        Ok(errors)
    }
}

/// Whether kernels may come from an up-to-date bundle only.
pub(super) fn is_locked(environment: &Environment) -> bool {
    environment.get("TIRX_LOCKED").is_some_and(|value| value != "0")
}

/// The kernels of the manifest whose images are missing.
fn of_missing(manifest: &Manifest, kernels: &[GeneratedKernel], missing: &[usize]) -> Vec<Kernel> {
    let names: Vec<&str> = kernels
        .iter()
        .flat_map(|kernel| kernel.images().map(|_| kernel.name.as_str()))
        .collect();
    let is_missing = |kernel: &&Kernel| missing.iter().any(|at| names[*at] == kernel.name);
    manifest.kernels.iter().filter(is_missing).cloned().collect()
}

/// The warning about kernels for which the bundle has nothing and that nothing compiled.
fn on_the_simulator(stale: &[Error]) -> String {
    let first = stale[0].messages().first().map_or("", |message| &message.text);
    let more = match stale.len() {
        1 => String::new(),
        2 => ", and 1 more kernel".to_string(),
        count => format!(", and {} more kernels", count - 1),
    };
    let what = if stale.len() == 1 { "it runs" } else { "they run" };
    format!(
        "tirx: {first}{more}; there is no nvcc, so {what} on the simulator only (run `cargo tirx bundle` on a \
         machine with nvcc)"
    )
}
