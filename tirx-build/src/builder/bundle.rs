//! Makes and checks bundles.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tirx_bundle::{EXTENSION, Files, LOCK};

use super::{Builder, Found};
use crate::bundle::{self, Bundle, Offer};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::generate::{GeneratedKernel, Variant};
use crate::kernels::{compile_manifest, jobs};
use crate::libraries::Libraries;
use crate::manifest::Manifest;
use crate::nvcc::{Compilation, Job, Made};
use crate::paths::FileNames;
use crate::stats::{self, KernelStats};
use crate::store::Store;
use crate::toolchain::{self, Nvcc};

/// What to do with a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleAction {
    /// Compile what is missing and write it.
    Write,
    /// Fail where it is not up to date; compile and write nothing.
    Locked,
    /// Recompile everything without the stores, and fail where the bundle differs.
    Verify,
}

/// A bundle that was written or checked.
#[derive(Clone, Debug)]
pub struct BundleReport {
    /// Where it is.
    pub path: PathBuf,
    /// Its kernels.
    pub kernels: Vec<BundledKernel>,
    /// nvcc's release and build.
    pub nvcc: String,
}

/// A kernel of a bundle.
#[derive(Clone, Debug)]
pub struct BundledKernel {
    /// Its path in Rust.
    pub name: String,
    /// Targets and the bytes of the image for each.
    pub images: Vec<(String, usize)>,
    /// Bytes of its file, packed.
    pub packed: usize,
}

impl Builder {
    /// Makes or checks the bundle of a manifest: all kernels, whatever features they belong to. `single` writes one file
    /// instead of a folder. What a build does with it is described at [`bundle_dir`](Builder::bundle_dir). The kernels
    /// declared with [`kernel`](Builder::kernel) are in it, too; `cargo tirx bundle` has the build script call this.
    ///
    /// # Errors
    /// As [`build`](Builder::build); there is no nvcc; the bundle is not up to date, or differs.
    pub fn bundle(&self, action: BundleAction, single: bool, license: &str) -> Result<BundleReport> {
        let shown = self.manifest.to_string_lossy().replace('\\', "/");
        let names = FileNames::new(&self.environment, &self.manifest, &shown);
        self.bundle_in(action, single, license, &shown)
            .map_err(|error| error.with_files_named(&|file| names.name(file)))
    }

    fn bundle_in(
        &self,
        action: BundleAction,
        single: bool,
        license: &str,
        shown: &str,
    ) -> Result<BundleReport> {
        let environment = self.own_environment();
        let mut manifest = self.read_manifest(shown)?;
        manifest
            .resolve_native(|| Err("a bundle is for other machines than the one it is made on".into()))?;
        let kernels = compile_manifest(
            &manifest,
            &self.manifest,
            &Libraries::from_environment(&environment),
            None,
            &mut Default::default(),
            &mut Vec::new(),
        )?;
        let path = self
            .bundle
            .clone()
            .unwrap_or_else(|| bundle::place(&manifest, &self.manifest));
        let variants = kernels.iter().flat_map(GeneratedKernel::images);
        let (jobs, variants): (Vec<Job>, Vec<&Variant>) = jobs(&manifest, &kernels)
            .into_iter()
            .zip(variants)
            .filter(|(job, _)| !job.targets.is_empty())
            .unzip();
        if action != BundleAction::Write {
            let bundle = Bundle::open(&path, &path)?.ok_or_else(|| no_bundle(&path))?;
            let mut errors = Vec::new();
            for (job, variant) in jobs.iter().zip(&variants) {
                if let Offer::Stale(reason) = bundle.offer(&manifest, job, variant, true)? {
                    errors.push(stale(&bundle, job.what.as_str(), &reason));
                }
            }
            for locked in &bundle.lock.kernels {
                if !jobs.iter().any(|job| job.file == locked.file) {
                    let what = format!("kernel `{}`", locked.name);
                    errors.push(stale(&bundle, &what, "is not in the manifest"));
                }
            }
            Error::all(errors)?;
            if action == BundleAction::Locked {
                return report(&path, &Files::read(&path).map_err(Error::new)?, bundle.lock.nvcc);
            }
        }
        let share = action != BundleAction::Verify;
        let (nvcc, made) = self.compile_here(
            &environment,
            &manifest,
            &jobs,
            share,
            "a bundle needs an nvcc to be made",
        )?;
        stats::check_budgets(&jobs, &variants, &made)?;
        let identity = format!("{} {}", nvcc.version, nvcc.build);
        let files = bundle::make(&jobs, &variants, &made.images, &identity, license);
        if action == BundleAction::Verify {
            compare(&path, &files)?;
        } else {
            files
                .write(&path, single)
                .map_err(|error| Error::io("write", &path, &error))?;
        }
        report(&path, &files, identity)
    }

    /// What the kernels of the manifest take of the GPUs that they are compiled for. Compiles those that no store has.
    ///
    /// # Errors
    /// As [`build`](Builder::build); there is no nvcc.
    pub fn stats(&self) -> Result<Vec<KernelStats>> {
        let shown = self.manifest.to_string_lossy().replace('\\', "/");
        let names = FileNames::new(&self.environment, &self.manifest, &shown);
        let stats = || {
            let environment = self.own_environment();
            let mut manifest = self.parse_manifest(&shown, "name the manifest with --manifest")?;
            manifest.resolve_native(|| toolchain::architectures(&environment))?;
            if manifest.kernels.is_empty() {
                let error = Error::new(format_args!("`{shown}` declares no kernel"));
                return Err(error.help("add one: `[[kernel]]` with `name`, `source` and `targets`"));
            }
            let inputs = &mut Default::default();
            let kernels = compile_manifest(
                &manifest,
                &self.manifest,
                &Libraries::from_environment(&self.environment),
                None,
                inputs,
                &mut Vec::new(),
            )?;
            let jobs = jobs(&manifest, &kernels);
            let variants: Vec<&Variant> = kernels.iter().flat_map(GeneratedKernel::images).collect();
            let why = "registers and memory are known when nvcc has compiled a kernel, and there is no nvcc";
            let (_, made) = self.compile_here(&environment, &manifest, &jobs, true, why)?;
            stats::of_made(&jobs, &variants, &made)
        };
        stats().map_err(|error: Error| error.with_files_named(&|file| names.name(file)))
    }

    /// Compiles jobs outside of a build: as in release builds, in a temporary folder. `why` is the error where there is no
    /// nvcc.
    pub(super) fn compile_here(
        &self,
        environment: &Environment,
        manifest: &Manifest,
        jobs: &[Job],
        share: bool,
        why: &str,
    ) -> Result<(Nvcc, Made)> {
        let (found, _) = self.find_nvcc(environment, &manifest.toolchain, manifest, &|_| {})?;
        let Found::Nvcc(nvcc) = found else {
            return Err(Error::new(why).help(toolchain::install_help(manifest.toolchain.cuda)));
        };
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let work = std::env::temp_dir().join(format!("tirx-bundle-{}-{number}", std::process::id()));
        let fresh = environment.clone().with("TIRX_STORE", "none");
        let store = match share {
            false => Store::open(&fresh, &work, false),
            true => Store::open(environment, &work, self.share),
        };
        let compilation = Compilation {
            nvcc: &nvcc,
            store: &store,
            work: &work.join("work"),
            environment: &environment.clone().without("PROFILE"),
            say: &|_| {},
        };
        let made = compilation.run(jobs);
        let _ = fs::remove_dir_all(&work);
        Ok((nvcc, made?))
    }
}

/// The warning of a build that is to use a bundle that does not exist.
pub(super) fn no_bundle(path: &Path) -> Error {
    let error = Error::new(format_args!("there is no bundle at `{}`", path.display()));
    error.help("make it with `cargo tirx bundle`")
}

/// The message about a kernel for which the bundle has no fitting images.
pub(super) fn stale(bundle: &Bundle, what: &str, reason: &str) -> Error {
    let error = Error::new(format_args!(
        "the bundle `{}` is stale: {what} {reason}",
        bundle.shown().display()
    ));
    error.help("run `cargo tirx bundle` on a machine with nvcc")
}

/// Compares a bundle with one that was just made. Compressed bytes may differ between versions of the compressor;
/// contents may not.
fn compare(path: &Path, files: &Files) -> Result<()> {
    let old = Files::read(path).map_err(Error::new)?;
    let unpacked = |files: &Files| files.kernels().map_err(Error::new);
    let (old_kernels, new_kernels) = (unpacked(&old)?, unpacked(files)?);
    let mut errors = Vec::new();
    for new in &new_kernels {
        let Some(old) = old_kernels.iter().find(|old| old.name == new.name) else {
            errors.push(Error::new(format_args!(
                "kernel `{}` is not in the bundle",
                new.name
            )));
            continue;
        };
        for (target, image) in &new.images {
            if old
                .images
                .iter()
                .find(|(known, _)| known == target)
                .map(|(_, old)| old)
                != Some(image)
            {
                let text = format!(
                    "the image of kernel `{}` for {target} differs from the result of this compilation",
                    new.name
                );
                errors.push(Error::new(text));
            }
        }
        if errors.is_empty() && old != new {
            errors.push(Error::new(format_args!(
                "kernel `{}` differs from the result of this compilation",
                new.name
            )));
        }
    }
    if errors.is_empty() && old.get(LOCK) != files.get(LOCK) {
        errors.push(Error::new(format_args!(
            "{LOCK} differs from the one of this build"
        )));
    }
    Error::all(errors)
}

fn report(path: &Path, files: &Files, nvcc: String) -> Result<BundleReport> {
    let kernels = files
        .kernels()
        .map_err(|problem| bundle::refused(path, &problem))?;
    let kernels = kernels.into_iter().map(|kernel| {
        let file = format!("{}.{EXTENSION}", kernel.name.replace("::", "-"));
        BundledKernel {
            packed: files.get(&file).map_or(0, <[u8]>::len),
            images: kernel
                .images
                .iter()
                .map(|(target, image)| (target.clone(), image.len()))
                .collect(),
            name: kernel.name,
        }
    });
    Ok(BundleReport {
        path: path.to_path_buf(),
        kernels: kernels.collect(),
        nvcc,
    })
}
