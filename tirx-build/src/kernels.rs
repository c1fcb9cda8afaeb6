//! The manifest's kernels: from their files through the compiler to what is written for them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use tirx_core::codegen::rust::ParamKind;
use tirx_core::diagnostic::Diagnostic;
use tirx_core::script::NoImports;

use crate::compile::{self, FileImports, Loaded, Settings};
use crate::error::{Error, Result};
use crate::generate::{GeneratedKernel, Variant};
use crate::manifest::{Kernel, Manifest, Text};
use crate::nvcc::{self, Job};
use crate::specialize::{self, Specialization};
use crate::target::{Architecture, Targets};
use crate::toolchain::Nvcc;

/// Compiles every kernel of a manifest; gathers the errors of all of them.
pub(crate) fn compile_manifest(
    manifest: &Manifest,
    manifest_path: &Path,
    dump: Option<&Path>,
    inputs: &mut BTreeSet<PathBuf>,
) -> Result<Vec<GeneratedKernel>> {
    let folder = manifest_path.parent().unwrap_or(Path::new(""));
    let mut files: BTreeMap<String, Loaded> = BTreeMap::new();
    let mut broken: BTreeSet<String> = BTreeSet::new();
    let mut kernels = Vec::new();
    let mut errors = Vec::new();
    for kernel in &manifest.kernels {
        let shown = match &kernel.text {
            Text::File(path) => path.clone(),
            Text::Inline(_) => format!("<kernel \"{}\">", kernel.name),
        };
        if broken.contains(&shown) {
            continue;
        }
        if !files.contains_key(&shown) {
            match load(manifest, kernel, folder, &shown, inputs) {
                Ok(loaded) => {
                    files.insert(shown.clone(), loaded);
                }
                Err(error) => {
                    errors.push(error);
                    broken.insert(shown);
                    continue;
                }
            }
        }
        match compile_kernel(manifest, kernel, &files[&shown], dump) {
            Ok(compiled) => kernels.push(compiled),
            Err(error) => errors.push(error),
        }
    }
    Error::all(errors)?;
    Ok(kernels)
}

fn load(
    manifest: &Manifest,
    kernel: &Kernel,
    folder: &Path,
    shown: &str,
    inputs: &mut BTreeSet<PathBuf>,
) -> Result<Loaded> {
    match &kernel.text {
        Text::Inline(text) => Loaded::new(shown, text, &NoImports),
        Text::File(relative) => {
            let path = folder.join(relative);
            let text = fs::read_to_string(&path).map_err(|error| {
                let message = format!("cannot read `{relative}`: {error}");
                let diagnostic = Diagnostic::new(kernel.source_span, message)
                    .help("the path is relative to the manifest's folder");
                Error::from_diagnostic(&diagnostic, &manifest.sources)
            })?;
            inputs.insert(path.clone());
            let shown_folder = relative
                .rsplit_once('/')
                .map_or(String::new(), |(folder, _)| format!("{folder}/"));
            let imports = FileImports::new(path.parent().unwrap_or(Path::new("")), shown_folder);
            let loaded = Loaded::new(shown, &text, &imports);
            inputs.extend(imports.files());
            loaded
        }
    }
}

fn compile_kernel(
    manifest: &Manifest,
    kernel: &Kernel,
    loaded: &Loaded,
    dump: Option<&Path>,
) -> Result<GeneratedKernel> {
    let entry = specialize::entry(manifest, kernel, loaded.file().entries())?;
    let (specializations, mut errors) = specialize::expand(manifest, kernel, entry);
    let mut variants: Vec<Variant> = Vec::new();
    for Specialization { name, given, values } in specializations {
        let file = match &name {
            Some(name) => format!("{}-{name}", kernel.name),
            None => kernel.name.clone(),
        };
        let settings = Settings {
            dump: dump.map(|folder| folder.join(&file)),
            also: kernel
                .targets
                .native
                .iter()
                .skip(1)
                .map(Architecture::sm)
                .collect(),
            ..Settings::new(kernel.targets.primary())
        };
        let compiled = loaded
            .build(Some(&entry.name), &given)
            .and_then(|module| compile::compile(module, &settings));
        match compiled {
            Ok(compiled) => variants.push(Variant {
                name,
                values,
                file,
                compiled,
                fatbin: false,
                targets: kernel.targets.native.iter().map(Architecture::sm).collect(),
                ptx: kernel.targets.ptx.as_ref().map(Architecture::compute),
                hash: String::new(),
            }),
            Err(error) => errors.push(error),
        }
    }
    Error::all(errors)?;
    write_alike(&mut variants);
    Ok(GeneratedKernel {
        name: kernel.name.clone(),
        entry: entry.name.clone(),
        variants,
    })
}

/// A tensor that one specialization writes is `&mut` in all that have it: which stores the compiler could drop
/// (`x * 1`) is not part of a kernel's interface.
fn write_alike(variants: &mut [Variant]) {
    let mut all_written: BTreeSet<String> = BTreeSet::new();
    for param in variants
        .iter()
        .flat_map(|v| &v.compiled.launcher.signature.params)
    {
        if matches!(param.kind, ParamKind::Tensor { written: true, .. }) {
            all_written.insert(param.name.clone());
        }
    }
    for variant in variants {
        for param in &mut variant.compiled.launcher.signature.params {
            if let ParamKind::Tensor { written, .. } = &mut param.kind {
                *written |= all_written.contains(&param.name);
            }
        }
    }
}

fn targets_of<'a>(manifest: &'a Manifest, name: &str) -> Option<&'a Targets> {
    manifest
        .kernels
        .iter()
        .find(|k| k.name == name)
        .map(|k| &k.targets)
}

/// What nvcc is to compile.
pub(crate) fn jobs(manifest: &Manifest, kernels: &[GeneratedKernel]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for kernel in kernels {
        let Some(targets) = targets_of(manifest, &kernel.name) else {
            continue;
        };
        for variant in &kernel.variants {
            let place = match variant.compiled.sources.locate(variant.compiled.authored.span) {
                Some(at) => format!("{}:{}:{} (`{}`)", at.file, at.line, at.column, kernel.entry),
                None => format!("`{}`", kernel.entry),
            };
            jobs.push(Job {
                file: variant.file.clone(),
                what: format!("kernel `{}`", variant.file.replace('-', "::")),
                place,
                text: variant.compiled.cuda.text.clone(),
                targets: targets.clone(),
            });
        }
    }
    jobs
}

/// Writes texts and IR images, fills in hashes, and removes what earlier builds left.
pub(crate) fn write_outputs(
    manifest: &Manifest,
    kernels: &mut [GeneratedKernel],
    nvcc: Option<&Nvcc>,
    folder: &Path,
) -> Result<()> {
    let mut keep = Vec::new();
    for kernel in kernels {
        let gencode = targets_of(manifest, &kernel.name)
            .map(Targets::gencode)
            .unwrap_or_default();
        for variant in &mut kernel.variants {
            let compiled = &variant.compiled;
            nvcc::write_if_changed(
                &folder.join(format!("{}.cu", variant.file)),
                compiled.cuda.text.as_bytes(),
            )?;
            nvcc::write_if_changed(&folder.join(format!("{}.ir", variant.file)), &compiled.ir)?;
            variant.fatbin = nvcc.is_some();
            let extensions: &[&str] = if variant.fatbin {
                &["cu", "ir", "fatbin", "key"]
            } else {
                &["cu", "ir"]
            };
            keep.extend(
                extensions
                    .iter()
                    .map(|extension| format!("{}.{extension}", variant.file)),
            );
            let nvcc_version = nvcc.map_or(String::new(), |nvcc| format!("{} {}", nvcc.version, nvcc.build));
            variant.hash = nvcc::digest(&[
                env!("CARGO_PKG_VERSION").as_bytes(),
                nvcc_version.as_bytes(),
                gencode.join(" ").as_bytes(),
                compiled.cuda.text.as_bytes(),
                &compiled.ir,
            ]);
        }
    }
    nvcc::sweep(folder, &keep)
}
