//! Compiles the manifest's kernels: from their files to the outputs that are written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tirx_core::codegen::cuda;
use tirx_core::diagnostic::{Diagnostic, Level, Message, TextRange};
use tirx_core::ir::abi::ParamKind;
use tirx_core::ir::{AttrValue, IRModule, PrimFunc, on_one_stack, verify};
use tirx_core::script::NoImports;
use tirx_core::source::SourceMap;

use crate::compile::{self, Compiled, FileImports, Loaded, Settings};
use crate::error::{Error, Result};
use crate::generate::{GeneratedKernel, Variant, names};
use crate::hash::{digest, hex};
use crate::libraries::Libraries;
use crate::manifest::{Kernel, Manifest, Text};
use crate::nvcc::{self, Job};
use crate::source;
use crate::specialize::{self, Specialization};
use crate::target::Targets;
use crate::tuned::tuned;
use tirx_core::ir::Gpu;

/// Compiles every kernel of a manifest; gathers the errors of all of them.
pub(crate) fn compile_manifest(
    manifest: &Manifest,
    manifest_path: &Path,
    libraries: &Libraries,
    dump: Option<&Path>,
    inputs: &mut BTreeSet<PathBuf>,
    warnings: &mut Vec<Message>,
) -> Result<Vec<GeneratedKernel>> {
    on_one_stack(|| compile_kernels(manifest, manifest_path, libraries, dump, inputs, warnings))
}

fn compile_kernels(
    manifest: &Manifest,
    manifest_path: &Path,
    libraries: &Libraries,
    dump: Option<&Path>,
    inputs: &mut BTreeSet<PathBuf>,
    warnings: &mut Vec<Message>,
) -> Result<Vec<GeneratedKernel>> {
    let mut files: BTreeMap<String, Loaded> = BTreeMap::new();
    let mut broken: BTreeSet<String> = BTreeSet::new();
    let mut kernels = Vec::new();
    let mut errors = Vec::new();
    for kernel in &manifest.kernels {
        let shown = match &kernel.text {
            Text::File(path) => path.clone(),
            Text::Inline(_) => format!("<kernel \"{}\">", kernel.name),
            Text::Function(func) => {
                match compile_function(kernel, func, dump) {
                    Ok(compiled) => kernels.push(compiled),
                    Err(error) => errors.push(error),
                }
                continue;
            }
        };
        if broken.contains(&shown) {
            continue;
        }
        if !files.contains_key(&shown) {
            match load(manifest, kernel, manifest_path, libraries, &shown, inputs) {
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
        match compile_kernel(manifest, kernel, &files[&shown], dump, warnings) {
            Ok(compiled) => kernels.extend(compiled),
            Err(error) => errors.push(error),
        }
    }
    Error::all(errors)?;
    warnings.extend(files.values().flat_map(Loaded::warnings));
    Ok(kernels)
}

fn load(
    manifest: &Manifest,
    kernel: &Kernel,
    manifest_path: &Path,
    libraries: &Libraries,
    shown: &str,
    inputs: &mut BTreeSet<PathBuf>,
) -> Result<Loaded> {
    let folder = manifest_path.parent().unwrap_or(Path::new(""));
    let manifest_name = manifest_path.file_name().and_then(|name| name.to_str());
    let manifest_name = manifest_name.unwrap_or("kernels.toml");
    match &kernel.text {
        Text::Function(_) => Err(Error::new("a function has no text")),
        Text::Inline(text) => match manifest.inline_text(kernel) {
            // Errors point at the manifest's lines, under its name.
            Some(text) => Loaded::new(manifest_name, &text, &NoImports),
            None => Loaded::new(shown, text, &NoImports),
        },
        Text::File(relative) => {
            let path = folder.join(relative);
            let text = source::read(&path).map_err(|error| {
                let message = format!("cannot read `{relative}`: {error}");
                let diagnostic = Diagnostic::new(kernel.source_span, message)
                    .help("the path is relative to the manifest's folder");
                Error::from_diagnostic(&diagnostic, &manifest.sources)
            })?;
            inputs.insert(path.clone());
            let shown_folder = relative
                .rsplit_once('/')
                .map_or(String::new(), |(folder, _)| format!("{folder}/"));
            let imports = FileImports::new(path.parent().unwrap_or(Path::new("")), shown_folder)
                .with_libraries(libraries)
                .with_multiprocessors(kernel.multiprocessors)
                .with_release(kernel.tvm);
            let loaded = Loaded::new(shown, &text, &imports);
            inputs.extend(imports.files());
            loaded
        }
    }
}

/// The kernels that an entry gives in all its specializations: one, unless it is a function that returns several.
fn compile_kernel(
    manifest: &Manifest,
    kernel: &Kernel,
    loaded: &Loaded,
    dump: Option<&Path>,
    warnings: &mut Vec<Message>,
) -> Result<Vec<GeneratedKernel>> {
    let wanted = kernel.entry.as_deref().unwrap_or(&kernel.name);
    let entry = match loaded.file().entry(wanted) {
        Some(entry) => entry,
        None => specialize::entry(manifest, kernel, loaded.file().entries())?.clone(),
    };
    let (specializations, errors) = specialize::expand(manifest, kernel, &entry);
    let mut failed = Failures::default();
    let mut kernels: Vec<GeneratedKernel> = Vec::new();
    for Specialization { name, given, values } in specializations {
        let all = match loaded.build_all(Some(&entry.name), &given) {
            Ok(all) => all,
            Err(error) => {
                failed.add(error, name);
                continue;
            }
        };
        let several = all.len() > 1;
        for built in all {
            let result = several.then(|| names::result(&built.name));
            let parts = [Some(&kernel.name), result.as_ref(), name.as_ref()];
            let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
            let file = parts.join("-");
            let variant = match variant(kernel, file, built.module, dump) {
                Ok(variant) => Variant {
                    name: name.clone(),
                    values: values.clone(),
                    ..variant
                },
                Err(error) => {
                    failed.add(error, name.clone());
                    continue;
                }
            };
            for warning in variant.each().flat_map(|v| &v.compiled.warnings) {
                if !warnings.contains(warning) {
                    warnings.push(warning.clone());
                }
            }
            match kernels.iter_mut().find(|k| k.result == result) {
                Some(known) => known.variants.push(variant),
                None => kernels.push(GeneratedKernel {
                    name: kernel.name.clone(),
                    result,
                    entry: entry.name.clone(),
                    feature: kernel.feature.clone(),
                    variants: vec![variant],
                    tuned: None,
                }),
            }
        }
    }
    Error::all(errors.into_iter().chain(failed.errors()))?;
    for kernel in &mut kernels {
        unify_tensor_access(kernel.variants.iter_mut().flat_map(Variant::compiled_mut));
    }
    if let Some(tune) = &kernel.tune {
        for generated in &mut kernels {
            generated.tuned = Some(tuned(manifest, kernel, tune, &generated.variants)?);
        }
    }
    Ok(kernels)
}

/// The one variant of a kernel that a build script built as a function.
fn compile_function(kernel: &Kernel, func: &PrimFunc, dump: Option<&Path>) -> Result<GeneratedKernel> {
    let func = match func.global_symbol() {
        Some(_) => func.clone(),
        None => func
            .clone()
            .with_attr("global_symbol", AttrValue::Str(kernel.name.as_str().into())),
    };
    let module = IRModule::single("main", func, SourceMap::new());
    verify(&module).map_err(|errors| Error::from_diagnostics(&errors, &module.sources))?;
    Ok(GeneratedKernel {
        name: kernel.name.clone(),
        result: None,
        entry: kernel.name.clone(),
        feature: kernel.feature.clone(),
        variants: vec![variant(kernel, kernel.name.clone(), module, dump)?],
        tuned: None,
    })
}

/// A kernel made from one module: a variant without values, with the others of its targets that have code of their own.
fn variant(kernel: &Kernel, file: String, module: IRModule, dump: Option<&Path>) -> Result<Variant> {
    let settings = Settings {
        dump: dump.map(|folder| folder.join(&file)),
        also: kernel.targets.native.iter().skip(1).copied().collect(),
        max_registers: kernel.options.max_registers,
        ..Settings::new(kernel.targets.primary())
    };
    let ptx = kernel.targets.ptx.as_ref();
    let further: Vec<Gpu> = ptx.into_iter().copied().collect();
    let mut left_out = None;
    let mut no_ptx = |_: Gpu, error: &Error| left_out = error.messages().first().cloned();
    let mut shared = compile::compile_each(module, &settings, &further, &mut no_ptx)?.into_iter();
    let is_separate = shared.len() > 1;
    let variant = |shared: compile::Shared| {
        let named = |arch: &Gpu| shared.targets.contains(arch);
        let targets = match is_separate {
            false => kernel.targets.clone(),
            true => Targets {
                native: kernel
                    .targets
                    .native
                    .iter()
                    .filter(|a| named(a))
                    .cloned()
                    .collect(),
                ptx: ptx.filter(|a| named(a)).cloned(),
            },
        };
        let first = targets.each().into_iter().next().map(|(name, _)| name);
        let own = first.filter(|_| is_separate);
        let (mut targets, mut shared) = (targets, shared);
        if let Some(left_out) = targets
            .ptx
            .as_ref()
            .and_then(|ptx| without_ptx(ptx, &shared.compiled))
        {
            shared.compiled.warnings.push(left_out);
            targets.ptx = None;
        }
        Variant {
            name: None,
            values: Vec::new(),
            file: own.iter().fold(file.clone(), |file, own| format!("{file}-{own}")),
            compiled: shared.compiled,
            fatbin: None,
            targets,
            own,
            others: Vec::new(),
            hash: String::new(),
        }
    };
    let Some(first) = shared.next() else {
        return Err(Error::new(format_args!(
            "kernel `{}` names no targets",
            kernel.name
        )));
    };
    let mut first = variant(first);
    first.others = shared.map(variant).collect();
    if let Some((ptx, message)) = ptx.zip(left_out) {
        first.compiled.warnings.push(no_ptx_of(ptx, message));
    }
    unify_tensor_access(first.compiled_mut());
    Ok(first)
}

/// Why a kernel has no PTX of an architecture: it uses what that does not have, such as `wgmma`, which is of `sm_90a` alone.
/// One manifest serves kernels of both kinds.
fn without_ptx(ptx: &Gpu, compiled: &Compiled) -> Option<Message> {
    let missing = cuda::unsupported(&compiled.lowered, *ptx).err()?;
    let message = missing.messages(&compiled.sources).into_iter().next()?;
    Some(no_ptx_of(ptx, message))
}

/// The error about an architecture's PTX as a warning that there is none.
fn no_ptx_of(ptx: &Gpu, mut message: Message) -> Message {
    message.level = Level::Warning;
    message.children.retain(|child| child.level != Level::Help);
    message.text = format!("this kernel has no PTX of {}: {}", ptx.compute(), message.text);
    let help = "GPUs that `targets` does not name cannot run it; `ptx = \"none\"` at the kernel turns this warning off";
    message.child(Level::Help, help)
}

/// Errors in the specializations of one kernel: an error that several share is reported once, with their names.
#[derive(Default)]
struct Failures {
    messages: Vec<(Message, Vec<String>)>,
}

impl Failures {
    fn add(&mut self, error: Error, specialization: Option<String>) {
        for message in error.messages() {
            let known = self.messages.iter_mut().find(|(known, _)| known == message);
            match known {
                Some((_, names)) => names.extend(specialization.clone()),
                None => self
                    .messages
                    .push((message.clone(), specialization.clone().into_iter().collect())),
            }
        }
    }

    fn errors(self) -> impl Iterator<Item = Error> {
        self.messages.into_iter().filter_map(|(message, names)| {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let message = match names.as_slice() {
                [] => message,
                [one] => message.child(Level::Note, format!("in the specialization {one}")),
                [first, second, third, rest @ ..] if !rest.is_empty() => {
                    let more = match rest.len() {
                        1 => "1 more specialization".to_string(),
                        count => format!("{count} more specializations"),
                    };
                    let text = format!("in {first}, {second}, {third} and {more}");
                    message.child(Level::Note, text)
                }
                names => message.child(
                    Level::Note,
                    format!("in the specializations {}", names.join(", ")),
                ),
            };
            Error::from_messages(vec![message]).err()
        })
    }
}

/// A tensor that one specialization, or the code for one target, writes is `&mut` in all that have it: whether the compiler
/// can drop a store (`x * 1`) must not change a kernel's interface.
fn unify_tensor_access<'a>(all: impl Iterator<Item = &'a mut Compiled>) {
    let mut all: Vec<&mut Compiled> = all.collect();
    let mut all_written: BTreeSet<String> = BTreeSet::new();
    let mut all_read: BTreeSet<String> = BTreeSet::new();
    for param in all.iter().flat_map(|c| &c.launcher.signature.params) {
        if matches!(param.kind, ParamKind::Tensor { written: true, .. }) {
            all_written.insert(param.name.clone());
        }
        if matches!(param.kind, ParamKind::Tensor { read: true, .. }) {
            all_read.insert(param.name.clone());
        }
    }
    for compiled in &mut all {
        for param in &mut compiled.launcher.signature.params {
            if let ParamKind::Tensor { written, read, .. } = &mut param.kind {
                *written |= all_written.contains(&param.name);
                *read |= all_read.contains(&param.name);
            }
        }
    }
}

fn declared<'a>(manifest: &'a Manifest, name: &str) -> Option<&'a Kernel> {
    manifest.kernels.iter().find(|k| k.name == name)
}

/// The texts that nvcc is to compile; without targets those of kernels that have no code.
pub(crate) fn jobs(manifest: &Manifest, kernels: &[GeneratedKernel]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for kernel in kernels {
        let Some(kernel_of) = declared(manifest, &kernel.name) else {
            continue;
        };
        for variant in kernel.images() {
            let compiled = &variant.compiled;
            jobs.push(Job {
                file: variant.file.clone(),
                what: format!("kernel `{}`", variant.file.replace('-', "::")),
                place: TextRange::from_span(&compiled.sources, compiled.authored.span),
                text: compiled.cuda.text.clone(),
                lines: compiled.cuda.lines.clone(),
                since: compiled.cuda.since.clone(),
                sources: compiled.sources.clone(),
                targets: match kernel_of.left_out {
                    true => Targets::default(),
                    false => variant.targets.clone(),
                },
                options: kernel_of.options.clone(),
            });
        }
    }
    jobs
}

/// Writes the CUDA texts before nvcc runs, so that its messages can be looked up even if it fails.
pub(crate) fn write_texts(kernels: &[GeneratedKernel], folder: &Path) -> Result<()> {
    for variant in kernels.iter().flat_map(GeneratedKernel::images) {
        let path = folder.join(format!("{}.cu", variant.file));
        nvcc::write_if_changed(&path, variant.compiled.cuda.text.as_bytes())?;
    }
    Ok(())
}

/// Fills in the images: for each one, in order, its fat binary and the nvcc that made it.
pub(crate) fn fill_in(kernels: &mut [GeneratedKernel], images: Vec<Option<(Vec<u8>, String)>>) {
    let mut images = images.into_iter();
    let mut fill = |variant: &mut Variant| {
        let gencode: Vec<String> = variant
            .targets
            .each()
            .into_iter()
            .map(|(_, gencode)| gencode)
            .collect();
        let (fatbin, nvcc) = images.next().flatten().unzip();
        variant.fatbin = fatbin;
        let nvcc = nvcc.unwrap_or_default();
        variant.hash = hex(&digest(&[
            env!("CARGO_PKG_VERSION").as_bytes(),
            nvcc.as_bytes(),
            gencode.join(" ").as_bytes(),
            variant.compiled.cuda.text.as_bytes(),
            &variant.compiled.ir,
        ]));
    };
    for variant in kernels.iter_mut().flat_map(|kernel| &mut kernel.variants) {
        variant.for_each_mut(&mut fill);
    }
}

/// Writes the files that the generated Rust includes, and removes those of earlier builds.
pub(crate) fn write_outputs(kernels: &[GeneratedKernel], folder: &Path) -> Result<()> {
    let mut keep = Vec::new();
    for variant in kernels.iter().flat_map(GeneratedKernel::images) {
        let mut write = |extension: &str, content: &[u8]| {
            let name = format!("{}.{extension}", variant.file);
            let result = nvcc::write_if_changed(&folder.join(&name), content);
            keep.push(name);
            result
        };
        write("cu", variant.compiled.cuda.text.as_bytes())?;
        write("ir", &variant.compiled.ir)?;
        if let Some(fatbin) = &variant.fatbin {
            write("fatbin", fatbin)?;
        }
    }
    nvcc::sweep(folder, &keep)
}
