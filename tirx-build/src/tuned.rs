//! Which records fit the kernels of a build?

use std::path::{Path, PathBuf};

use tirx_core::codegen::rust;
use tirx_core::diagnostic::Diagnostic;
use tirx_core::ir::abi::ParamKind;
use tirx_core::suggest;

use crate::error::{Error, Result};
use crate::generate::{GeneratedKernel, Tuned, Variant};
use crate::hash::{digest, hex};
use crate::manifest::{Kernel, Manifest, TunedSizes};
use crate::tuning::{FOLDER, TuningRecord};

/// The choice between a kernel's variants.
///
/// # Errors
/// The candidates have different signatures, or the sizes are not those of the kernel.
pub(crate) fn tuned(
    manifest: &Manifest,
    kernel: &Kernel,
    tune: &TunedSizes,
    variants: &[Variant],
) -> Result<Tuned> {
    let refuse = |span, message: String, help: String| {
        Error::from_diagnostic(&Diagnostic::new(span, message).help(help), &manifest.sources)
    };
    let launcher = |variant: &Variant| variant.compiled.launcher.clone();
    let Some(first) = variants.first() else {
        return Err(Error::new(format_args!(
            "kernel `{}` has no candidates",
            kernel.name
        )));
    };
    let parameters = launcher(first).parameters();
    if let Some(other) = variants
        .iter()
        .find(|other| launcher(other).parameters() != parameters)
    {
        let name = |variant: &Variant| variant.name.clone().unwrap_or_default();
        return Err(refuse(
            tune.span,
            format!(
                "the candidates `{}` and `{}` of kernel `{}` have different signatures: ({parameters}) and ({})",
                name(first),
                name(other),
                kernel.name,
                launcher(other).parameters()
            ),
            "a tuned parameter changes neither parameters nor element types: declare a kernel for each signature".into(),
        ));
    }
    let known = sizes(first);
    let mut reads = Vec::new();
    for name in &tune.names {
        let Some((_, read)) = known.iter().find(|(known, _)| known == name) else {
            let known: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
            let help = match (suggest(name, known.iter().copied()), known.as_slice()) {
                (_, []) => "its sizes are all fixed: leave `sizes` out".to_string(),
                (Some(near), _) => format!("did you mean `{near}`?"),
                (None, known) => format!("its sizes are {}", known.join(", ")),
            };
            let message = format!(
                "kernel `{}` has no extent or integer parameter `{name}`",
                kernel.name
            );
            return Err(refuse(tune.sizes_span, message, help));
        };
        reads.push(read.clone());
    }
    if let Some((missing, _)) = known.iter().find(|(known, _)| !tune.names.contains(known)) {
        let message = format!("`sizes` of kernel `{}` does not give `{missing}`", kernel.name);
        let help = match tune.names.is_empty() {
            true => format!("add the sizes to measure: `sizes = [{{ {missing} = 1000 }}]`"),
            false => format!("add `{missing} = …` to each table: a measurement needs all sizes of a launch"),
        };
        return Err(refuse(tune.sizes_span, message, help));
    }
    let names = tune.names.clone();
    Ok(Tuned {
        hash: hash(kernel, variants),
        names,
        points: tune.points.clone(),
        reads,
        records: Vec::new(),
    })
}

/// The names of a kernel's open extents and integer parameters, with the Rust expression of each.
fn sizes(variant: &Variant) -> Vec<(String, String)> {
    let launcher = &variant.compiled.launcher;
    let mut sizes: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, read: String| {
        if !sizes.iter().any(|(known, _)| known == name) {
            sizes.push((name.to_string(), read));
        }
    };
    for (name, param) in launcher.params() {
        match &param.kind {
            ParamKind::Scalar(dtype) if dtype.is_integer() || dtype.is_bool() => {
                let read = match rust::rust_scalar(*dtype) {
                    Some("i64") => name.to_string(),
                    Some("u64") => format!("{name} as i64"),
                    _ => format!("i64::from({name})"),
                };
                add(&param.name, read);
            }
            _ => {}
        }
    }
    // A tensor that is only read is borrowed without `mut`.
    for is_written in [false, true] {
        for (name, param) in launcher.params() {
            let ParamKind::Tensor { shape, written, .. } = &param.kind else {
                continue;
            };
            let function = if is_written { "tensor_mut" } else { "tensor" };
            for (dimension, extent) in shape.iter().enumerate() {
                let is_name = extent.starts_with(|c: char| c.is_alphabetic() || c == '_')
                    && extent.chars().all(|c| c.is_alphanumeric() || c == '_');
                if *written == is_written && is_name {
                    add(
                        extent,
                        format!("::tirx_rt::host::Arg::{function}({name}).shape({dimension})"),
                    );
                }
            }
        }
    }
    sizes
}

/// A hash over what makes a candidate fast or slow: its code, launch and flags of nvcc.
fn hash(kernel: &Kernel, variants: &[Variant]) -> String {
    let mut parts: Vec<String> = kernel.options.arguments(false);
    if let Some(registers) = kernel.options.max_registers {
        parts.push(format!("max-registers {registers}"));
    }
    for variant in variants {
        parts.extend(variant.name.clone());
        for image in variant.each() {
            parts.push(image.compiled.cuda.text.clone());
            parts.push(image.signature());
        }
    }
    hex(&digest(&parts))
}

/// The records beside a manifest.
pub(crate) struct Tunings {
    /// The folder, which may be missing.
    pub(crate) folder: PathBuf,
    /// The files with their records, in the order of their names.
    records: Vec<(PathBuf, TuningRecord)>,
}

impl Tunings {
    /// Reads the records beside a manifest; `shown` gives a path as messages name it.
    ///
    /// # Errors
    /// A record cannot be read.
    pub(crate) fn open(manifest: &Path, shown: &dyn Fn(&Path) -> PathBuf) -> Result<Tunings> {
        let folder = manifest.parent().unwrap_or(Path::new("")).join(FOLDER);
        let mut files: Vec<PathBuf> = match std::fs::read_dir(&folder) {
            Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
            Err(_) => Vec::new(),
        };
        files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
        files.sort();
        let mut records: Vec<(PathBuf, TuningRecord)> = Vec::new();
        for file in files {
            let text =
                crate::source::read(&file).map_err(|error| Error::io("read", &shown(&file), &error))?;
            let record = TuningRecord::read(&text).map_err(|reason| {
                Error::new(format_args!(
                    "the tuning record `{}` is damaged: {reason}",
                    shown(&file).display()
                ))
                .help("restore it from version control, or delete it and run `cargo tirx tune` on its GPU")
            })?;
            if let Some((other, _)) = records.iter().find(|(_, known)| known.device == record.device) {
                let message = format!(
                    "two tuning records are of `{}`: `{}` and `{}`",
                    record.device,
                    other.display(),
                    shown(&file).display()
                );
                return Err(Error::new(message).help("delete one of them"));
            }
            records.push((shown(&file), record));
        }
        Ok(Tunings { folder, records })
    }

    /// Gives each tuned kernel its records; the errors describe the stale ones.
    pub(crate) fn fill_in(&self, kernels: &mut [GeneratedKernel]) -> Vec<Error> {
        let mut stale = Vec::new();
        for kernel in kernels {
            let path = kernel.path();
            let candidates: Vec<String> = kernel.variants.iter().filter_map(|v| v.name.clone()).collect();
            let Some(tuned) = &mut kernel.tuned else { continue };
            for (file, record) in &self.records {
                let Some(times) = record.kernels.iter().find(|times| times.name == path) else {
                    continue;
                };
                let reason = if times.sizes != tuned.names {
                    Some("the sizes have other names".to_string())
                } else if times.candidates != candidates {
                    Some("the candidates are others".to_string())
                } else if times.hash != tuned.hash {
                    Some(format!("the kernel has changed, its hash is {}", tuned.hash))
                } else {
                    None
                };
                match reason {
                    None => tuned.records.push((record.device.clone(), times.clone())),
                    Some(reason) => stale.push(
                        Error::new(format_args!(
                            "the tuning record `{}` of kernel `{path}` is stale: {reason}",
                            file.display()
                        ))
                        .help(format_args!(
                            "run `cargo tirx tune {path}` on this GPU ({}), or remove the kernel from the record",
                            record.device
                        )),
                    ),
                }
            }
        }
        stale
    }
}
