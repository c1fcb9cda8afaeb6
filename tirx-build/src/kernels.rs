//! The manifest's kernels: from their files through the compiler to what is written for them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use tirx_core::codegen::rust::ParamKind;
use tirx_core::diagnostic::Diagnostic;
use tirx_core::script::{Entry, NoImports};

use crate::compile::{self, FileImports, Loaded, Settings};
use crate::error::{Error, Result};
use crate::generate::{self, GeneratedKernel, Variant};
use crate::manifest::{Kernel, Manifest, Text};
use crate::nvcc::{self, Job};
use crate::suggest::nearest;
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

/// The definition that a kernel means.
fn entry<'a>(manifest: &Manifest, kernel: &Kernel, loaded: &'a Loaded) -> Result<&'a Entry> {
    let entries = loaded.file().entries();
    let names: Vec<&str> = entries.iter().map(|e| e.name.as_str()).collect();
    let wanted = kernel.entry.as_deref().unwrap_or(&kernel.name);
    if let Some(entry) = entries.iter().find(|e| e.name == wanted) {
        return Ok(entry);
    }
    if let (None, [only]) = (&kernel.entry, entries) {
        return Ok(only);
    }
    let file = match &kernel.text {
        Text::File(path) => format!("`{path}`"),
        Text::Inline(_) => "the script".to_string(),
    };
    let message = match (&kernel.entry, entries.is_empty()) {
        (_, true) => format!("{file} defines no kernel"),
        (Some(entry), false) => format!("{file} defines no kernel `{entry}`"),
        (None, false) => format!("{file} defines several kernels, none of them `{wanted}`"),
    };
    let help = match (nearest(wanted, names.iter().copied()), names.as_slice()) {
        (_, []) => "decorate a function with @T.prim_func or @T.jit".to_string(),
        (Some(near), _) if kernel.entry.is_some() => format!("did you mean `{near}`?"),
        _ => format!("choose with `entry`: it defines {}", names.join(", ")),
    };
    let diagnostic = Diagnostic::new(kernel.entry_span, message).help(help);
    Err(Error::from_diagnostic(&diagnostic, &manifest.sources))
}

fn compile_kernel(
    manifest: &Manifest,
    kernel: &Kernel,
    loaded: &Loaded,
    dump: Option<&Path>,
) -> Result<GeneratedKernel> {
    let entry = entry(manifest, kernel, loaded)?;
    let order: Vec<String> = entry.constexprs.iter().map(|p| p.name.clone()).collect();
    let refuse = |index: usize, message: String, help: String| {
        let span = kernel
            .specialize_spans
            .get(index)
            .copied()
            .unwrap_or(kernel.entry_span);
        Error::from_diagnostic(&Diagnostic::new(span, message).help(help), &manifest.sources)
    };
    // A kernel without `specialize` is one variant without values.
    let specializations = if kernel.specialize.is_empty() {
        vec![BTreeMap::new()]
    } else {
        kernel.specialize.clone()
    };
    let mut variants: Vec<Variant> = Vec::new();
    let mut errors = Vec::new();
    for (index, given) in specializations.iter().enumerate() {
        if let Some(unknown) = given.keys().find(|name| !order.contains(name)) {
            let help = match (
                nearest(unknown, order.iter().map(String::as_str)),
                order.as_slice(),
            ) {
                (_, []) => "the kernel has no compile-time parameters: remove `specialize`".to_string(),
                (Some(near), _) => format!("did you mean `{near}`?"),
                (None, order) => format!("its compile-time parameters are {}", order.join(", ")),
            };
            let message = format!(
                "kernel `{}` has no compile-time parameter `{unknown}`",
                kernel.name
            );
            errors.push(refuse(index, message, help));
            continue;
        }
        let missing: Vec<&str> = entry
            .constexprs
            .iter()
            .filter(|p| p.required && !given.contains_key(&p.name))
            .map(|p| p.name.as_str())
            .collect();
        if !missing.is_empty() {
            let message = format!(
                "kernel `{}` needs a value for {}",
                kernel.name,
                missing.join(", ")
            );
            errors.push(refuse(
                index,
                message,
                format!("specialize = [{{ {} = … }}]", missing.join(" = …, ")),
            ));
            continue;
        }
        let values: Vec<_> = order
            .iter()
            .filter_map(|name| {
                let parameter = entry.constexprs.iter().find(|p| p.name == *name);
                let value = given
                    .get(name)
                    .or_else(|| parameter.and_then(|p| p.default.as_ref()));
                // A default is part of the choice only where some specialization gives that parameter.
                let used = specializations.iter().any(|s| s.contains_key(name));
                Some((name.clone(), value.filter(|_| used)?.clone()))
            })
            .collect();
        let name = (!kernel.specialize.is_empty()).then(|| generate::names::specialization(&order, given));
        let name = name.map(|name| {
            if name.is_empty() {
                "default".to_string()
            } else {
                name
            }
        });
        if let Some(clash) = variants.iter().find(|v| v.name == name) {
            let message = format!(
                "two specializations of kernel `{}` would both be named `{}`",
                kernel.name,
                clash.name.as_deref().unwrap_or_default()
            );
            errors.push(refuse(
                index,
                message,
                "their values differ in characters that Rust names cannot hold".into(),
            ));
            continue;
        }
        let file = match &name {
            Some(name) => format!("{}-{name}", kernel.name),
            None => kernel.name.clone(),
        };
        let settings = Settings {
            dump: dump.map(|folder| folder.join(&file)),
            ..Settings::new(kernel.targets.primary())
        };
        let compiled = loaded
            .build(Some(&entry.name), given)
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

/// A tensor that one specialization writes is `&mut` in all: which stores the compiler could drop (`x * 1`) is not
/// part of a kernel's interface.
fn write_alike(variants: &mut [Variant]) {
    let count = |v: &Variant| v.compiled.launcher.signature.params.len();
    let Some(params) = variants.iter().map(count).min() else {
        return;
    };
    for index in 0..params {
        let any = variants.iter().any(|v| {
            let param = &v.compiled.launcher.signature.params[index];
            matches!(param.kind, ParamKind::Tensor { written: true, .. })
        });
        for variant in variants.iter_mut() {
            let param = &mut variant.compiled.launcher.signature.params[index];
            if let ParamKind::Tensor { written, .. } = &mut param.kind {
                *written = any;
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
