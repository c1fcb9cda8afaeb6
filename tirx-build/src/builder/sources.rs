//! Launchers and compiled kernels as source files of a package: a crate that includes them needs no build script, so that its users
//! compile neither kernels nor the compiler.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{Builder, images::joined};
use crate::error::{Error, Result};
use crate::generate::{self, Form, GeneratedKernel, Variant};
use crate::kernels::{compile_manifest, fill_in, jobs};
use crate::libraries::Libraries;
use crate::nvcc::{self, Job};
use crate::paths::FileNames;
use crate::stats;

/// The file with the launchers.
const LAUNCHERS: &str = "tirx_kernels.rs";

/// In the first line of the launchers, the word before the version of nvcc.
const NVCC: &str = "nvcc ";

/// The source files of a manifest's kernels: [`Builder::sources`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcesReport {
    /// Kernels, each specialization counted.
    pub kernels: usize,
    /// Bytes of all files.
    pub bytes: usize,
    /// The nvcc that made the machine code.
    pub nvcc: String,
}

impl Builder {
    /// Writes the launchers (`tirx_kernels.rs`) and the compiled kernels of a manifest into a folder: all kernels, each under the Cargo feature
    /// that the manifest gives it. A crate includes them by `tirx_rt::include_kernels!("…/tirx_kernels.rs")` and has no build script. Other files
    /// of the folder are removed. With `locked` nothing is written, nvcc is not called, and files that are out of date are an error.
    ///
    /// Of [`only_targets`](Builder::only_targets), a kernel without one of them has a launcher whose call is an error. Kernels that a build
    /// script declares are not among the files.
    ///
    /// # Errors
    /// As [`build`](Builder::build); there is no nvcc; the folder has files of other programs; with `locked`, what is out of date.
    pub fn sources(&self, folder: &Path, locked: bool) -> Result<SourcesReport> {
        let shown = self.manifest.to_string_lossy().replace('\\', "/");
        let names = FileNames::new(&self.environment, &self.manifest, &shown);
        self.sources_in(folder, locked, &shown)
            .map_err(|error| error.with_files_named(&|file| names.name(file)))
    }

    fn sources_in(&self, folder: &Path, locked: bool, shown: &str) -> Result<SourcesReport> {
        let environment = self.own_environment();
        let mut manifest = self.read_manifest(shown)?;
        manifest.resolve_native(|| {
            Err("the files are for other machines than the one they are made on".into())
        })?;
        let libraries = Libraries::from_environment(&environment);
        let (inputs, warnings) = (&mut Default::default(), &mut Vec::new());
        let mut kernels = compile_manifest(&manifest, &self.manifest, &libraries, None, inputs, warnings)?;
        let all = jobs(&manifest, &kernels);
        let (nvcc, images) = match locked {
            true => known_images(folder, &kernels)?,
            false => {
                let variants = kernels.iter().flat_map(GeneratedKernel::images);
                let (wanted, variants): (Vec<Job>, Vec<&Variant>) = all
                    .iter()
                    .cloned()
                    .zip(variants)
                    .filter(|(job, _)| !job.targets.is_empty())
                    .unzip();
                let why = "compiled kernels need an nvcc";
                let (nvcc, made) = self.compile_here(&environment, &manifest, &wanted, true, why)?;
                stats::check_budgets(&wanted, &variants, &made)?;
                let nvcc = format!("{} {}", nvcc.version, nvcc.build);
                let mut made = made.images.iter().map(|parts| (joined(parts), nvcc.clone()));
                let images = all
                    .iter()
                    .map(|job| (!job.targets.is_empty()).then(|| made.next()).flatten());
                (nvcc.clone(), images.collect())
            }
        };
        if kernels.iter().any(|kernel| kernel.tuned.is_some()) {
            self.tunings(&environment, &mut kernels, &mut Vec::new())?;
        }
        fill_in(&mut kernels, images);
        let name = self.manifest.file_name().map(|name| name.to_string_lossy());
        let name = name.as_deref().unwrap_or(super::MANIFEST);
        let files = files(name, &kernels, &nvcc);
        match locked {
            true => compare(folder, &files)?,
            false => write(folder, &files)?,
        }
        Ok(SourcesReport {
            kernels: all.iter().filter(|job| !job.targets.is_empty()).count(),
            bytes: files.values().map(Vec::len).sum(),
            nvcc,
        })
    }
}

/// The contents of each file by its name.
fn files(manifest: &str, kernels: &[GeneratedKernel], nvcc: &str) -> BTreeMap<String, Vec<u8>> {
    let launchers = generate::file(manifest, kernels, Form::Source);
    let text = format!("// Machine code by {NVCC}{nvcc}.\n{launchers}");
    let mut files = BTreeMap::from([(LAUNCHERS.to_string(), text.into_bytes())]);
    for image in kernels.iter().flat_map(GeneratedKernel::images) {
        // A kernel for none of the targets has a launcher, which other code may name, and nothing that runs.
        let ir = image.fatbin.as_ref().map(|_| image.compiled.ir.clone());
        files.insert(format!("{}.ir", image.file), ir.unwrap_or_default());
        if let Some(fatbin) = &image.fatbin {
            files.insert(format!("{}.fatbin", image.file), fatbin.clone());
        }
    }
    files
}

/// The nvcc that the launchers of a folder name, and the machine code in the folder.
#[expect(clippy::type_complexity, reason = "as `fill_in` takes it")]
fn known_images(
    folder: &Path,
    kernels: &[GeneratedKernel],
) -> Result<(String, Vec<Option<(Vec<u8>, String)>>)> {
    let launchers = folder.join(LAUNCHERS);
    let text = fs::read_to_string(&launchers).map_err(|error| Error::io("read", &launchers, &error))?;
    let line = text.lines().next().unwrap_or_default();
    let nvcc = line
        .split_once(NVCC)
        .map_or("", |(_, nvcc)| nvcc.trim_end_matches('.'));
    let images = kernels.iter().flat_map(GeneratedKernel::images).map(|image| {
        let fatbin = fs::read(folder.join(format!("{}.fatbin", image.file))).ok()?;
        Some((fatbin, nvcc.to_string()))
    });
    Ok((nvcc.to_string(), images.collect()))
}

fn write(folder: &Path, files: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, &error))?;
    let entries = fs::read_dir(folder).map_err(|error| Error::io("read", folder, &error))?;
    for entry in entries.flatten() {
        let path = entry.path();
        let is_ours = path.file_name().is_some_and(|name| name == LAUNCHERS)
            || path
                .extension()
                .is_some_and(|extension| extension == "ir" || extension == "fatbin");
        if !is_ours {
            let error = Error::new(format_args!(
                "`{}` is no file that this command writes",
                path.display()
            ));
            return Err(
                error.help("name a folder that has only launchers and compiled kernels, or a new one")
            );
        }
    }
    for (name, contents) in files {
        nvcc::write_if_changed(&folder.join(name), contents)?;
    }
    nvcc::sweep(folder, &files.keys().cloned().collect::<Vec<_>>())
}

/// An error for each file that differs from what it is to be.
fn compare(folder: &Path, files: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    let stale = files.iter().filter_map(|(name, contents)| {
        let path = folder.join(name);
        let differs = match fs::read(&path) {
            Ok(found) if found == *contents => return None,
            Ok(_) => "is out of date",
            Err(_) => "is missing",
        };
        let error = Error::new(format_args!("`{}` {differs}", path.display()));
        Some(error.help("run `cargo tirx sources` on a machine with nvcc"))
    });
    Error::all(stale)
}
